"""Calibrations by other libraries, in their environment: cases in, answers out, one JSON object a line.

    python benchmarks/peers_worker.py TOOL

A case is {"epsilon", "delta", "sensitivity"}; an answer is {"sigma"}, {"refuse"} or {"crash"} with what was said. The
first line out is {"ready": true}. It is started by benchmarks/peers.py, and imports nothing of this project.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

Tool = Callable[[float, float, float], float]
"""(epsilon, delta, sensitivity) to sigma. Where a library knows only sensitivity 1, its answer is multiplied."""


def dp_accounting_sigma() -> Tool:
    library = import_module("dp_accounting")
    return lambda epsilon, delta, unit: library.get_sigma_gaussian(epsilon, delta) * unit


def dp_accounting_smallest() -> Tool:
    library, common = import_module("dp_accounting.pld.accountant"), import_module("dp_accounting.pld.common")

    def calibrate(epsilon: float, delta: float, unit: float) -> float:
        promise = common.DifferentialPrivacyParameters(epsilon, delta)
        return float(library.get_smallest_gaussian_noise(promise, 1, unit))

    return calibrate


def dp_accounting_calibrate(module: str, accountant: str) -> Tool:
    library = import_module("dp_accounting")
    fresh = getattr(import_module(module), accountant)

    def calibrate(epsilon: float, delta: float, unit: float) -> float:
        return float(library.calibrate_dp_mechanism(fresh, library.GaussianDpEvent, epsilon, delta)) * unit

    return calibrate


def opendp() -> Tool:
    library = import_module("opendp.prelude")
    library.enable_features("contrib")
    space = library.atom_domain(T=float, nan=False), library.absolute_distance(T=float)

    def calibrate(epsilon: float, delta: float, unit: float) -> float:
        def make(scale: float) -> Any:
            noise = library.m.make_gaussian(*space, scale=scale)
            return library.c.make_fix_delta(library.c.make_zCDP_to_approxDP(noise), delta)

        return float(library.binary_search_param(make, d_in=unit, d_out=(epsilon, delta), T=float))

    return calibrate


def diffprivlib(mechanism: str) -> Tool:
    make = getattr(import_module("diffprivlib.mechanisms"), mechanism)
    return lambda epsilon, delta, unit: make(epsilon=epsilon, delta=delta, sensitivity=unit)._scale


def autodp(function: str) -> Tool:
    import_module("autodp.rdp_acct")  # first: the two modules import each other, and only this order works
    calibrate = getattr(import_module("autodp.privacy_calibrator"), function)
    return lambda epsilon, delta, unit: calibrate(epsilon, delta)["sigma"] * unit


def autodp_calibrator() -> Tool:
    zoo, mechanisms = import_module("autodp.calibrator_zoo"), import_module("autodp.mechanism_zoo")
    calibrate = zoo.ana_gaussian_calibrator()
    return lambda epsilon, delta, unit: (
        calibrate(mechanisms.ExactGaussianMechanism, epsilon, delta).params["sigma"] * unit
    )


def prv_accountant() -> Tool:
    find = import_module("prv_accountant.dpsgd").find_noise_multiplier
    return lambda epsilon, delta, unit: find(1.0, 1, epsilon, delta) * unit


def pydp() -> Tool:
    make = import_module("pydp.algorithms.numerical_mechanisms").GaussianMechanism
    return lambda epsilon, delta, unit: make(epsilon, delta, unit).std


TOOLS: dict[str, Callable[[], Tool]] = {
    "dp_accounting.get_sigma_gaussian": dp_accounting_sigma,
    "dp_accounting.get_smallest_gaussian_noise": dp_accounting_smallest,
    "dp_accounting.calibrate_dp_mechanism, PLD": lambda: dp_accounting_calibrate("dp_accounting.pld", "PLDAccountant"),
    "dp_accounting.calibrate_dp_mechanism, RDP": lambda: dp_accounting_calibrate("dp_accounting.rdp", "RdpAccountant"),
    "opendp.binary_search_param, zCDP": opendp,
    "diffprivlib.GaussianAnalytic": lambda: diffprivlib("GaussianAnalytic"),
    "diffprivlib.Gaussian": lambda: diffprivlib("Gaussian"),
    "autodp.ana_gaussian_mech": lambda: autodp("ana_gaussian_mech"),
    "autodp.ana_gaussian_calibrator": autodp_calibrator,
    "autodp.classical_gaussian_mech": lambda: autodp("classical_gaussian_mech"),
    "prv_accountant.find_noise_multiplier": prv_accountant,
    "pydp.GaussianMechanism": pydp,
}


def is_deliberate(error: Exception) -> bool:
    """Whether a library's own check turned the request down, rather than its arithmetic breaking on the way.

    That is a ValueError or AssertionError that a statement of the library raises, in no consequence of another error;
    or what PyDP makes of the INVALID_ARGUMENT of its compiled code.
    """
    if "INVALID_ARGUMENT" in str(error):
        return True
    if not isinstance(error, (ValueError, AssertionError)) or error.__context__ is not None:
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "scipy" not in last.filename and (last.line or "").startswith(("raise", "assert"))


def answer(tool: Tool, case: dict[str, float]) -> dict[str, Any]:
    """What the tool makes of one case."""
    try:
        return {"sigma": float(tool(*(float(case[name]) for name in ("epsilon", "delta", "sensitivity"))))}
    except Exception as error:  # whatever a library raises is the finding
        text = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
        return {"refuse" if is_deliberate(error) else "crash": text}


def main() -> None:
    """Answer cases until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    warnings.simplefilter("ignore")
    tool = TOOLS[sys.argv[1]]()
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(tool, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
