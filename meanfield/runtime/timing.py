"""Durations of a step and of a sample of a case, measured on this machine before the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np

from meanfield.case.case import Case
from meanfield.domains.common.problem import Problem
from meanfield.simulation import set_up
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import NonFinite, State

_STEPS, _SECONDS = 20, 1.0  # limits of the measured beginning of a run: steps, and seconds


def timing(case: Case) -> list[str]:
    """Return lines with the measured durations of a step, of a sample, and of each diagnostic slower than a step."""
    problem = set_up(case)
    state = State(0.0, problem.initial())
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            problem.prepare(state)
            step, steps = _step(problem, state, case.time.end)
    except NonFinite as error:
        return [f"a step        not measured: {error}"]
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    names = {name: problem.diagnostics([name], None) for name in diagnostics.names}
    sample = _duration(partial(diagnostics, state.time, state.values))
    each = {name: _duration(partial(one, state.time, state.values)) for name, one in names.items()}
    longer = [f"{name} {as_seconds(each[name])}" for name in each if each[name] > step]
    text = f"about {as_seconds(sample)}, {sample / step:.2g} of a step" if each else "none"
    return [
        f"a step        about {as_seconds(step)}, of {steps} from t = 0 to {state.time:.3g}",
        f"a sample      {text}" + (f"; longer than a step: {', '.join(longer)}" if longer else ""),
    ]


def _step(problem: Problem, state: State, end: float) -> tuple[float, int]:
    """Return the median duration of the first time steps in seconds, and the number of these steps.

    The median omits the first step, which loads or compiles kernels.
    """
    times = [perf_counter()]

    def after_step(state: State) -> bool:
        problem.check(state)
        times.append(perf_counter())
        return len(times) > _STEPS or times[-1] - times[1] > _SECONDS

    integrate(state, problem.dynamics, end, after_step=after_step)
    durations = np.diff(times)
    return float(median(durations[1:] if len(durations) > 1 else durations)), len(durations)


def _duration(function: Callable[[], object]) -> float:
    """Return the median duration in seconds of three calls of a function, after a first call that does not count."""
    durations = []
    for _ in range(4):
        start = perf_counter()
        function()
        durations.append(perf_counter() - start)
    return median(durations[1:])


def as_seconds(seconds: float) -> str:
    """Return a duration as text: "57 µs", "4.1 ms", "12 s"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
