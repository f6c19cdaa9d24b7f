"""Pictures of statements: what they show, that they are the same every time, and that nothing breaks them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from audit.decide import decide
from audit.verdict import Limits
from certificates.pictures import Picture, make_picture
from mechanisms.claims import read_statement
from mechanisms.numbers import InputError

pytest.importorskip("matplotlib", reason="pictures need the extra plot")
import matplotlib as mpl
from matplotlib import image

from certificates.drawing import SETTINGS, SMALL, draw

MULTI = {"family": "multi-gaussian", "sensitivity": "2", "sigma": "0.53", "K": 2, "epsilon": "3"}
LAPLACE = {
    "family": "declared",
    "sensitivity": "1",
    "pieces": [{"from": "0", "to": "inf", "c": "0", "lines": [["0", "-1"]]}],
}
UNIFORM = {**LAPLACE, "pieces": [{"from": "0", "to": "4", "c": "0", "lines": [["0", "0"]]}]}
GAUSSIAN = {"family": "gaussian", "sensitivity": "1", "sigma": "4.5"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mixture": (MULTI, {"kind": "direct", "epsilon": "3", "delta": "0.01"}),
    "refuted": ({**MULTI, "sigma": "0.4"}, {"kind": "direct", "epsilon": "3", "delta": "0.01"}),
    "grid": (GAUSSIAN, {"kind": "theorem-3.2", "epsilon": "1", "delta": "1e-6", "eta": "0.01"}),
    "theorem-4.2": (
        {"family": "quasi-gaussian", "sensitivity": "1", "sigma": "2", "epsilon": "2"},
        {"kind": "theorem-4.2", "epsilon": "2", "delta": "1e-5"},
    ),
    "no-delta": (LAPLACE, {"kind": "direct", "epsilon": "1", "delta": "0"}),
    "no-epsilon": (UNIFORM, {"kind": "direct", "epsilon": "0", "delta": "0.2"}),
    "tiny": (
        {**GAUSSIAN, "sensitivity": "1e-30", "sigma": "1e-29"}, {"kind": "direct", "epsilon": "3", "delta": "1e-9"}
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pictures() -> dict[str, Picture]:
    made = {}
    for name, (mechanism, claim) in CASES.items():
        statement = read_statement({"mechanism": mechanism, "claim": claim})
        made[name] = make_picture(statement, decide(statement), Limits())
    return made


@pytest.mark.parametrize("name", CASES)
def test_every_picture_can_be_drawn(pictures: dict[str, Picture], name: str) -> None:
    png = image.imread(io.BytesIO(draw(pictures[name], "png")))
    assert png.shape[0] > 800 and png.shape[1] > 1000
    ink = (png[..., :3].mean(axis=2) < 0.9).mean(axis=1)
    # Something is drawn in the upper half, the panel of the density, and in the lower, the other two.
    assert ink[: len(ink) // 2].sum() > 10
    assert ink[len(ink) // 2 :].sum() > 10


def test_the_same_picture_has_the_same_bytes(pictures: dict[str, Picture]) -> None:
    mechanism, claim = CASES["no-delta"]
    statement = read_statement({"mechanism": mechanism, "claim": claim})
    again = make_picture(statement, decide(statement), Limits())
    first = draw(pictures["no-delta"], "svg")
    assert b"<dc:date>" not in first
    # Settings of the user's do not matter, and stay.
    with mpl.rc_context({"lines.linewidth": 9.0, "axes.facecolor": "black", "svg.fonttype": "none"}):
        assert draw(again, "svg") == first
        assert mpl.rcParams["lines.linewidth"] == 9.0


def test_no_text_is_smaller_than_eight_points() -> None:
    assert SMALL >= 8
    assert all(size >= 8 for name, size in SETTINGS.items() if name.endswith("size"))


def test_a_mixture_shows_its_components(pictures: dict[str, Picture]) -> None:
    density = pictures["mixture"].density
    assert (len(density.components), density.count) == (5, 5)
    x, f = density.density
    total = np.zeros_like(x)
    for places, heights in density.components:
        total += np.interp(x, places, heights, left=0.0, right=0.0)
    assert total == pytest.approx(f, rel=1e-2)
    assert np.trapezoid(f, x) == pytest.approx(1, abs=1e-2)  # all of the mass but the tails, in the unit of the query


def test_a_density_of_one_piece_has_no_components(pictures: dict[str, Picture]) -> None:
    assert pictures["no-delta"].density.components == ()
    assert pictures["no-delta"].density.count == 0


def test_the_worst_shift_is_among_the_enclosed(pictures: dict[str, Picture]) -> None:
    picture = pictures["mixture"]
    sup = picture.decision.sup_delta
    assert sup is not None
    (worst,) = [sample for sample in picture.divergence.samples if sample.at == picture.decision.worst_shift]
    assert worst.value.upper >= sup.lower
    assert 0 < picture.divergence.samples[-2].at < picture.divergence.samples[-1].at == 2
    assert max(picture.divergence.between) <= sup.upper  # D is nowhere above what is proved


def test_the_profile_passes_through_the_claim(pictures: dict[str, Picture]) -> None:
    picture = pictures["mixture"]
    (at,) = [sample for sample in picture.profile if sample.at == picture.claim.epsilon]
    sup = picture.decision.sup_delta
    assert sup is not None
    assert at.value.lower <= sup.upper
    assert at.value.upper >= sup.lower
    epsilons, low, high = picture.band
    assert (low <= high).all()
    assert epsilons[0] == 1.5 and epsilons[-1] == 4.5


def test_an_epsilon_of_zero_is_where_the_profile_begins(pictures: dict[str, Picture]) -> None:
    assert min(sample.at for sample in pictures["no-epsilon"].profile) == 0


def test_out_of_time_the_picture_shows_what_there_is() -> None:
    mechanism, claim = CASES["mixture"]
    statement = read_statement({"mechanism": mechanism, "claim": claim})
    decision = decide(statement, Limits(expired=lambda: True))
    picture = make_picture(statement, decision, Limits(expired=lambda: True))
    assert [sample.at for sample in picture.divergence.samples] == [0]  # where D is 0 without a proof
    assert picture.profile == ()
    assert not picture.divergence.complete
    assert draw(picture, "svg").startswith(b"<?xml")


def test_what_floats_cannot_draw_is_refused() -> None:
    mechanism = {**GAUSSIAN, "sensitivity": "1e-390", "sigma": "1e-389"}
    statement = read_statement({"mechanism": mechanism, "claim": CASES["grid"][1] | {"eta": "0.5"}})
    with pytest.raises(InputError, match="beyond the range of floats"):
        make_picture(statement, decide(statement), Limits())


def test_a_claim_without_epsilon_is_refused() -> None:
    statement = read_statement({"mechanism": GAUSSIAN, "claim": {"kind": "zcdp", "rho": "0.1"}})
    with pytest.raises(InputError, match="without epsilon and delta"):
        make_picture(statement, decide(statement), Limits())
