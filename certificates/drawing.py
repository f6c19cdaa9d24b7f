"""Pictures as SVG or PNG. Needs matplotlib, the extra ``plot``; imported where it is used (certificates.extras).

Line styles and widths tell the curves apart, so that nothing is lost in grey. The same picture gives the same bytes
with the same matplotlib: no date, no random identifiers, no settings of the user's.
"""

from __future__ import annotations

import io
import logging
import math
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it writes of its caches to standard error

import matplotlib as mpl  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

from audit.profile import Sample  # noqa: E402
from certificates.pictures import Floats, Picture  # noqa: E402
from certificates.present import statement_in_words  # noqa: E402
from mechanisms.numbers import exact_text, nearest_float  # noqa: E402

Format = Literal["svg", "png"]

INK: Final = "#111111"
BLUE: Final = "#0b5394"
RED: Final = "#b3361b"
PALE: Final = "#a9c8e6"
BAND_EDGE: Final = "#7ba6cf"
DOTS_PER_INCH: Final = 150
SMALL: Final = 8.5
"""Points of the smallest text."""
SETTINGS: Final[Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "sigmacert",
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
}
TITLE_WIDTH: Final = 110
LEAST_DELTA: Final = 1e-9
"""The lowest δ(ε) that is drawn, as a share of the claim's δ."""
NARROW: Final = 0.03
"""A peak narrower than this share of Δ is shown a second time, closer."""
DASHES: Final = (0, (4, 2))
BARS: Final[dict[str, Any]] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.2, "capsize": 2.6, "capthick": 1.2}
POINT: Final[dict[str, Any]] = {"marker": "D", "ms": 6.5, "mfc": "white", "mec": RED, "mew": 1.6, "ls": "none"}


def draw(picture: Picture, format_: Format) -> bytes:
    """The picture as a file of that format."""
    # rc_file_defaults and styles of the user's must not matter.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        figure = Figure(figsize=(10, 8.2), layout="constrained")
        axes = figure.subplot_mosaic([["density", "density"], ["divergence", "profile"]])
        figure.suptitle(_title(picture), fontsize=11, x=0.01, ha="left")
        _draw_density(axes["density"], picture)
        _draw_divergence(axes["divergence"], picture)
        _draw_profile(axes["profile"], picture)
        file = io.BytesIO()
        metadata = {"Date": None, "Creator": "sigmacert"} if format_ == "svg" else {"Software": "sigmacert"}
        figure.savefig(file, format=format_, dpi=DOTS_PER_INCH, metadata=metadata)
    return file.getvalue()


def _title(picture: Picture) -> str:
    words = f"{picture.decision.verdict.value}: {statement_in_words(picture.statement)}".replace(", by ", ",\nby ")
    lines = [textwrap.wrap(line, TITLE_WIDTH, max_lines=2, placeholder=" …") for line in words.splitlines()]
    return "\n".join(part for parts in lines for part in parts)


def _short(number: Fraction) -> str:
    """For a label: exact where that is short."""
    text = exact_text(number)
    return text if len(text) <= 10 and not text.startswith("0x") else f"{nearest_float(number):.6g}"


def _unit(picture: Picture) -> str:
    return f"unit of the query, Δ = {_short(picture.statement.mechanism.sensitivity)}"


def _enclosed(samples: Sequence[Sample]) -> tuple[Floats, Floats, Floats]:
    """The places of samples, and the lower and upper ends there."""
    rows = [(float(sample.at), float(sample.value.lower), float(sample.value.upper)) for sample in samples]
    at, low, high = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return at, low, high


def _use_log_scale(axes: Axes, low: float, high: float) -> None:
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(low, high)
    # Plain text: the exponent of a power would be set too small to read.
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e-0", "e-")))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _place_legend(axes: Axes, columns: int) -> None:
    """Below the panel, where it hides nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, columnspacing=1.6, handlelength=2.6)


def _draw_density(axes: Axes, picture: Picture) -> None:
    curves = picture.density
    axes.plot(*curves.density, color=PALE, linewidth=4.5, label="density f")
    drawn = len(curves.components)
    label = "its weighted components" if drawn == curves.count else f"{drawn} of its {curves.count} components"
    for number, (x, y) in enumerate(curves.components):
        axes.plot(x, y, color=INK, linewidth=0.9, label="" if number else label)
    if not drawn:
        axes.plot(*curves.density, color=BLUE, linewidth=1.2)
    _use_log_scale(axes, curves.least, float(curves.density[1].max()) * 2)
    axes.set_xlim(curves.density[0][0], curves.density[0][-1])
    axes.set_title("Density of the noise")
    axes.set_xlabel(f"noise x ({_unit(picture)})")
    axes.set_ylabel("f(x), log scale (1 / unit)")
    if drawn:
        axes.legend(loc="upper right")


def _draw_divergence(axes: Axes, picture: Picture) -> None:
    claim, found = picture.claim, picture.divergence
    _, _, high = _enclosed(found.samples)
    top = max(float(claim.threshold), _supremum(picture), float(high.max(initial=0.0)))
    power = math.floor(math.log10(top)) if top else 0
    unit = 1.0 if -3 < power < 3 else 10.0**power
    _plot_divergence(axes, picture, unit)
    end = float(picture.statement.mechanism.sensitivity)
    limits = (-0.02 * top / unit, 1.15 * top / unit) if top else (-0.02, 1.0)
    axes.set_xlim(-0.02 * end, 1.02 * end)
    axes.set_ylim(limits)
    axes.set_title(f"Divergence at ε = {_short(claim.epsilon)}" + ("" if found.complete else " (as far as time went)"))
    axes.set_xlabel(f"shift φ ({_unit(picture)})")
    axes.set_ylabel("D(φ) (probability)" if unit == 1 else f"D(φ) (probability, in units of 1e{power})")
    _place_legend(axes, 2)
    if (peak := _narrow_peak(picture)) is not None:
        start, stop = peak
        left = start + stop > end
        inset = axes.inset_axes((0.1 if left else 0.45, 0.24, 0.5, 0.54))
        _plot_divergence(inset, picture, unit)
        inset.set_xlim(start, stop)
        inset.set_ylim(limits)
        inset.set_title("the peak, closer", fontsize=SMALL, fontweight="normal", backgroundcolor="white")
        inset.locator_params(axis="x", nbins=3)
        inset.ticklabel_format(axis="x", useOffset=False)
        axes.indicate_inset_zoom(inset, edgecolor=INK)


def _supremum(picture: Picture) -> float:
    """The lower end of sup D, 0 where there is none."""
    sup = picture.decision.sup_delta
    return 0.0 if sup is None else float(sup.lower)


def _narrow_peak(picture: Picture) -> tuple[float, float] | None:
    """What to show closer: around the shifts where D is above half its maximum, where these are few."""
    if picture.divergence_curve is None:
        return None
    shifts, value = picture.divergence_curve
    high = shifts[value > value.max() / 2]
    width = float(high[-1] - high[0]) if len(high) else 0.0
    if not 0 < width < NARROW * shifts[-1]:
        return None
    return max(float(high[0]) - 1.5 * width, 0.0), min(float(high[-1]) + 1.5 * width, float(shifts[-1]))


def _plot_divergence(axes: Axes, picture: Picture, unit: float) -> None:
    """All marks of D over the shifts; ``unit`` is that of the vertical axis."""
    claim, decision, found = picture.claim, picture.decision, picture.divergence
    at, low, high = _enclosed(found.samples)
    if picture.divergence_curve is not None:
        x, y = picture.divergence_curve
        axes.plot(x, y / unit, color=BLUE, linewidth=1.4, linestyle=DASHES, label="D(φ), floats")
    if found.between:
        bounds = [float(bound) / unit for bound in found.between]
        axes.stairs(bounds, at, baseline=None, color=INK, linewidth=0.8, label="D(φ) is below, proved")
    error = axes.errorbar(at, (low + high) / 2 / unit, (high - low) / 2 / unit, **BARS)
    error.set_label("D(φ) enclosed")
    name = "δ" if claim.threshold == claim.delta else "(1 − η) δ"
    level = float(claim.threshold) / unit
    axes.axhline(level, color=RED, linewidth=1.6, linestyle="-.", label=f"{name} = {_short(claim.threshold)}")
    mark: tuple[float, float, str] | None = None
    if decision.worst_shift is not None:
        mark = float(decision.worst_shift), _supremum(picture), "worst shift"
    elif found.samples:  # the claim bounds no supremum (theorem-4.2), or the search ended early
        best = max(found.samples, key=lambda sample: sample.value.lower)
        mark = float(best.at), float(best.value.lower), "largest enclosed, at"
    if mark is not None:
        worst, height, name = mark
        axes.axvline(worst, color=RED, linewidth=0.9, linestyle=":")
        axes.plot([worst], [height / unit], label=f"{name} {worst:.6g}", **POINT)


def _draw_profile(axes: Axes, picture: Picture) -> None:
    claim = picture.claim
    at, low, high = _enclosed(picture.profile)
    delta = float(claim.delta)
    positive = [float(value) for value in (delta, *low, *high) if value > 0]
    most = max(positive, default=1.0)
    least = min(max(min(positive, default=1e-12), delta * LEAST_DELTA) / 4, most / 50)
    deep = least / 100  # what is lower leaves the panel
    epsilons, below, above = picture.band
    band = axes.fill_between(epsilons, np.maximum(below, deep), np.maximum(above, deep), facecolor=PALE)
    band.set(label="δ(ε) lies in here, proved", edgecolor=BAND_EDGE, linewidth=1.0)
    if picture.profile_curve is not None:
        x, y = picture.profile_curve
        axes.plot(x, np.maximum(y, deep), color=BLUE, linewidth=1.4, linestyle=DASHES, label="δ(ε), floats")
    seen = high > 0
    error = axes.errorbar(at[seen], ((low + high) / 2)[seen], ((high - low) / 2)[seen], **BARS)
    error.set_label("δ(ε) enclosed")
    epsilon = float(claim.epsilon)
    if delta:
        axes.plot([epsilon], [delta], label=f"the claim ({_short(claim.epsilon)}, {_short(claim.delta)})", **POINT)
    else:
        axes.axvline(epsilon, color=RED, linewidth=1.6, linestyle="-.", label="the claim: δ = 0 from here on")
    _use_log_scale(axes, least, min(most * 4, 1.5))
    axes.set_title("Privacy profile round the claim")
    axes.set_xlabel("privacy loss ε (nats)")
    axes.set_ylabel("δ(ε), log scale (probability)")
    _place_legend(axes, 2)
