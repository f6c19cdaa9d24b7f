"""The picture of a comparison: one bar a family, as SVG or PNG (matplotlib, the extra ``plot``)."""

from __future__ import annotations

import io
import logging
from pathlib import Path

from certificates.comparison import LOSS_NAMES, Comparison, loss_of
from certificates.digits import certain
from certificates.extras import optional
from certificates.files import require_writable, write_atomically
from mechanisms.numbers import InputError, exact_text, nearest_float

FORMATS = {".svg": "svg", ".png": "png"}
BEST, BEST_UNBOUNDED, OTHERS = "#0b4f8a", "#3d8bcd", "#b9c4ce"
"""Dark, middle and light, so that they differ in grey too; bounded support is hatched."""
FEW = 100
"""Losses whose ratio is larger are drawn on a logarithmic axis."""


def check_path(path: str) -> None:
    """Refuse a name that is not a picture's, a place where none can be, and a machine without matplotlib, before any
    work."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError("--plot", path, f"a name that ends in {' or '.join(FORMATS)}")
    require_writable(path)
    optional("matplotlib", "plot", "--plot")


def draw(comparison: Comparison, path: str) -> None:
    """Write the picture to ``path``; the losses shown are the certified ones, upper ends."""
    matplotlib = optional("matplotlib", "plot", "--plot")
    figure_module = optional("matplotlib.figure", "plot", "--plot")
    offers = comparison.ranked
    values = [nearest_float(loss_of(found, comparison.loss).upper) for found in offers]
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it writes of its caches to standard error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "sigmacert", "svg.fonttype": "path", "hatch.linewidth": 0.6})
        figure = figure_module.Figure(figsize=(8, 1.2 + 0.42 * len(offers)), layout="constrained")
        axes = figure.add_subplot()
        marks = comparison.marks
        colours = {marks.get("+"): BEST_UNBOUNDED, marks["*"]: BEST}
        bars = axes.barh(
            [found.family for found in offers],
            values,
            color=[colours.get(found.family, OTHERS) for found in offers],
            hatch=["//" if found.support == "bounded" else "" for found in offers],
            edgecolor="white",
        )
        axes.bar_label(bars, [certain(loss_of(found, comparison.loss), 5) for found in offers], padding=4)
        axes.invert_yaxis()
        logarithmic = values[-1] > FEW * values[0]
        if logarithmic:
            axes.set_xscale("log")
        axes.margins(x=0.18)
        axes.spines[["top", "right"]].set_visible(False)
        request = comparison.request
        point = f"({exact_text(request.epsilon)}, {exact_text(request.delta)})"
        axes.set_title(f"Certified {LOSS_NAMES[comparison.loss]} at {point}", loc="left")
        axis = f"{LOSS_NAMES[comparison.loss]}{' on a logarithmic axis' if logarithmic else ''}"
        axes.set_xlabel(f"{axis}\nhatched: bounded support; darkest: least of all; middle: least of unbounded support")
        picture, kind = io.BytesIO(), FORMATS[Path(path).suffix.lower()]
        figure.savefig(picture, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    write_atomically(path, picture.getvalue())
