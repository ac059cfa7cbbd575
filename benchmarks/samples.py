"""Overhead of `mf.simulate` over its time loop: samples of all diagnostics, snapshots, and signal handling.

The loop alone has the same setup and makes the same steps: a step ends at each snapshot, and nothing is stored. Both
are measured alternately in one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import meanfield as mf
from benchmarks.measure import CORES, Figure, both_timed
from meanfield.case.case import Case
from meanfield.runtime.restart import new_start
from meanfield.simulation import set_up, snapshot_schedule
from solvers.timestepping.integrate import integrate
from solvers.timestepping.observers import Observer

CASES: dict[str, tuple[dict[str, Any], float | None]] = {  # name → case, and target of the ratio
    "512 cells of the circle, time loop": (
        {
            "domain": {"manifold": "circle", "resolution": 512},
            "attention": {"beta": 10.0},
            "initial": {"kind": "perturbed", "amplitude": 1e-2, "seed": 1},
            "time": {"end": 30.0, "cfl": 0.1},
        },
        1.05,
    ),
    "3066 cells of the sphere, time loop": (
        {
            "domain": {"manifold": "sphere", "resolution": 49},
            "attention": {"beta": 9.0},
            "initial": {"kind": "perturbed", "amplitude": 1e-2, "seed": 1},
            "time": {"end": 20.0, "cfl": 0.1},
        },
        None,
    ),
    "500 tokens on the sphere, time loop": (
        {
            "domain": {"manifold": "particles", "dimension": 3, "count": 500},
            "attention": {"beta": 9.0},
            "initial": {"kind": "uniform"},
            "time": {"end": 60.0},
        },
        None,
    ),
}


def samples(resolution: int | None = None, end: float | None = None) -> list[Figure]:
    """Measure the ratio of the processor time of `mf.simulate` to that of its time loop alone.

    resolution   number of cells, rings or tokens, instead of the number of each case
    end          end time, instead of the time of each case
    """
    figures = []
    for name, (data, most) in CASES.items():
        case = mf.load_case(data)
        if resolution is not None:
            case = case.replace({"domain.count" if case.domain.count else "domain.resolution": resolution})
        if end is not None:
            case = case.replace({"time.end": end})
        run, loop = both_timed(lambda case=case: mf.simulate(case), lambda case=case: _loop(case), clock=CORES)
        what = f"{name}: mf.simulate with {case.output.samples + 1} samples relative to the loop"
        figures += [Figure.of(f"{name}", loop, "s"), Figure.of(what, run / loop, "×", most=most)]
    return figures


def _loop(case: Case) -> int:
    """Run the time loop of a case without recording and return the number of steps."""
    problem = set_up(case)
    state = new_start(problem).state
    snapshots = Observer(lambda state: None, snapshot_schedule(case), keeps=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        problem.prepare(state)
        return integrate(state, problem.dynamics, case.time.end, [snapshots]).steps
