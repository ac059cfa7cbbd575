"""Error of a density in float32: the difference from float64 after a few steps."""

from __future__ import annotations

import msgspec
import numpy as np

from meanfield.case.case import Case
from meanfield.domains.domain import load
from solvers.mesh.mesh import Floats
from solvers.timestepping.state import State

MAX_CELLS = 10**5  # of the mesh on which `check` measures: rounding errors are similar on any mesh
STEPS = 20


def describe_rounding_error(case: Case) -> str:
    """Return the line about the error of single precision in the output of `check`."""
    return f"precision     single: {error(case):.1e} of the largest density after {STEPS} steps"


def error(case: Case, steps: int = STEPS) -> float:
    """Return the largest difference of a case's density in float32 from float64 after a few equal steps.

    The difference is relative to the maximum of the density.
    """
    resolution = case.domain.resolution
    assert resolution is not None
    while (cells := msgspec.structs.replace(case.domain, resolution=resolution).cells_and_width()[0]) > MAX_CELLS:
        resolution = int(resolution * 0.7)
    assert cells
    exact, times = _density(_case_with(case, resolution, "double"), steps, None)
    found, _ = _density(_case_with(case, resolution, "single"), steps, times)
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def _case_with(case: Case, resolution: int, precision: str) -> Case:
    """Return a case with another resolution and number format of its domain."""
    domain = msgspec.structs.replace(case.domain, resolution=resolution, precision=precision)
    return msgspec.structs.replace(case, domain=domain)


def _density(case: Case, steps: int, times: list[float] | None) -> tuple[Floats, list[float]]:
    """Return the density of a case after some steps, and the times at which the steps have ended.

    The steps end at ``times``, or are ``steps`` adaptive ones where ``times`` is None.
    """
    problem = load(case.domain.set_up)(case, None)
    state = State(0.0, problem.initial())
    integrator, _ = problem.dynamics(state, case.time.end)
    integrator.begin(state)
    ends = []
    for target in times or [case.time.end] * steps:
        while state.time < target:
            integrator.step(state, target)
            if times is None:
                break
        ends.append(state.time)
    return np.asarray(state.values, dtype=float), ends
