"""Whole time steps: overhead on a small mesh, growth of cost, speedup by a second core, and error."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.measure import CORES, REPEATS, Figure, Spread, both_timed, timed
from benchmarks.problem import sphere_problem
from meanfield.case.case import Case
from meanfield.case.load import load, parse
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.simulation import set_up
from solvers.backends import cpu
from solvers.backends.cpu import launching
from solvers.mesh.mesh import sphere
from solvers.timestepping.integrate import integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

GROWTH = (86, 272, 860, 2720)  # rings: 10⁴, 10⁵, 10⁶ and 10⁷ cells
RINGS = (280, 860)  # about 10⁵ and 10⁶ cells
IN_A_ROW = 2_000_000  # total cells of the consecutive steps in one measurement
STEPS = 60
FINE = 2000  # equal steps of the reference for a departure from equilibrium
NEARLY_OPPOSITE = """
domain = {manifold = "circle", resolution = 128}
attention = {beta = 1.0}
initial = {kind = "points", points = [[1.0, 0.0], [-0.99991, 0.0131]]}
time = {end = 6.0}
"""
DEPARTURES = {"without noise": 0.0, "with noise": 0.01}


def steps(
    growth: tuple[int, ...] = GROWTH, rings: tuple[int, ...] = RINGS, count: int = STEPS, fine: int = FINE
) -> list[Figure]:
    """Measure whole time steps: overhead, growth of cost with the number of cells, speedup by cores, and error.

    growth       numbers of rings for the growth of cost
    rings        numbers of rings for the speedup
    count        number of steps for the overhead over kernels
    fine         number of steps of the reference for the error
    """
    costs = [(sphere(each).cells, timed(_step(each), clock=CORES).low) for each in growth]
    figures = [_over_kernels(load("metastable_sphere"), count)]
    for (few, short), (many, long) in pairwise(costs):
        exponent = np.log(long / short) / np.log(many / few)
        figures.append(Figure(f"SSPRK3 step, from {few} to {many} cells: exponent", float(exponent), "1", most=1.05))
    for number in rings:
        cells = sphere(number).cells
        name = f"SSPRK3 step, {cells} cells: speed by {launching.WORKERS} cores relative to one, in wall time"
        figures.append(Figure.of(name, _over_one_core(number), "×", least=1.7 if cells > 500_000 else 1.3))
    return figures + [_departure(name, noise, fine) for name, noise in DEPARTURES.items()]


def _step(rings: int) -> Callable[[], None]:
    """Return a function that makes one step of length 1e-3 from the same state at every call.

    The largest stable step is computed too, as in a run.
    """
    problem = sphere_problem(rings, 9.0)
    equation = mean_field_equation(problem.mesh, Velocity(Attention(problem.mesh, 9.0)))
    state = State(0.0, problem.density.copy())
    work = (np.empty_like(state.values), np.empty_like(state.values))

    def call() -> None:
        state.values[...] = problem.density
        equation.prepare(0.0, state.values, with_stiff=True)
        STEPPERS["ssprk3"].step(equation, state, 1e-3, work)

    return call


def _over_one_core(rings: int) -> Spread:
    """Return the speedup of steps by all cores: the ratio of the wall time in one thread to that with all threads."""
    cores, count = launching.WORKERS, max(IN_A_ROW // sphere(rings).cells, 1)

    def with_workers(workers: int, call: Callable[[], Any]) -> Any:
        launching.WORKERS = workers
        try:
            return call()
        finally:
            launching.WORKERS = cores

    def several(step: Callable[[], None]) -> None:
        for _ in range(count):
            step()

    alone, together = (with_workers(workers, lambda: _step(rings)) for workers in (1, cores))
    one, all_cores = both_timed(lambda: with_workers(1, lambda: several(alone)), lambda: several(together), 3 * REPEATS)
    return one / all_cores


def _clock_seconds() -> float:
    """Return the seconds that one reading of the clock of processor time takes."""
    began = time.thread_time()
    for _ in range(200):
        time.thread_time()
    return (time.thread_time() - began) / 200


def _over_kernels(case: Case, count: int) -> Figure:
    """Return the ratio of the processor time of a whole step to the time within its compiled kernels.

    The ratio is measured over ``count`` steps of a case.
    """
    problem = set_up(case)
    state, launch, inside = State(0.0, problem.initial()), cpu.launch, [0.0]
    integrator, _ = problem.dynamics(state, case.time.end)
    integrator.begin(state)
    clock = _clock_seconds()

    def measured_launch(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return launch(*arguments)
        finally:
            inside[0] += time.process_time() - began - clock

    def measured() -> float:
        began = time.process_time()
        integrator.step(state, case.time.end)
        return time.process_time() - began

    plain = np.median([measured() for _ in range(count)])
    cpu.launch = measured_launch
    try:
        for _ in range(count):
            measured()
    finally:
        cpu.launch = launch
    name = f'step of the case "{case.title}", {len(state.values)} cells: time relative to its kernels'
    return Figure(name, float(plain / (inside[0] / count)), "×")


def _departure(name: str, noise: float, fine: int) -> Figure:
    """Return the largest relative error of the length |m| of the mean token of two nearly opposite clusters.

    The reference is a run with at least ``fine`` equal steps.
    """
    case = parse(NEARLY_OPPOSITE, [f"stabilizers.noise={noise}"])
    found, exact = (_mean(case, count) for count in (1, fine))
    error = float(np.abs(found - exact).max() / exact.max())
    return Figure(f"two clusters that leave an equilibrium {name}: error of |m|", error, "1", most=1e-3)


def _mean(case: Case, count: int) -> np.ndarray:
    """Return the length |m| of the mean token (400,) at equally spaced times of a run with at least ``count`` steps."""
    problem, end, means = set_up(case), case.time.end, []
    x = problem.space.centers * problem.space.volumes[:, None]
    sample = Observer(lambda state: means.append(np.linalg.norm(state.values @ x)), Every(end, 400))
    limit = Observer(lambda state: None, Every(end, count), keeps=True)  # makes steps end at these times
    integrate(State(0.0, problem.initial()), problem.dynamics, end, [sample, limit])
    return np.array(means)
