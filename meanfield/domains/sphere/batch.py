"""Many cases of densities on the circle, solved together in one array: cases that differ in β, seeds, V and so on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.batch import Batch, Tables, tables_of
from meanfield.domains.common.model_of_case import heads_by_interval
from meanfield.domains.common.problem import Problem
from meanfield.domains.sphere.rows import VelocityOfRows, longest_steps
from meanfield.domains.sphere.setup import velocity_of
from meanfield.equation import Velocity
from meanfield.model.normalization import NORMALIZATIONS
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.density.rows import DensityRows
from solvers.timestepping.density.stacked import StackedDensities
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.steppers import STEPPERS
from solvers.timestepping.systems import Indices, Observation, Systems

MAX_CELLS, MAX_SYSTEMS = 1 << 14, 32  # of a batch: its arrays fit the cache of a core, and workers share a sweep
MAX_STEPS = 500_000  # of all systems of a batch, approximately: less than a minute, as a killed batch is lost
MAX_STATES = 64  # stored states of a system before its diagnostics are computed


def batch_key(case: Case) -> Hashable | None:
    """Return the properties that cases have to share to be solved together; None for a case that is solved alone.

    Cases are solved alone with single precision, labels, a reaction, a handover, layers, a stop condition, a file of
    matrices, or two-sided (sinkhorn) attention.
    """
    attention, time = case.attention, case.time
    is_solved_alone = (
        time.method not in STEPPERS
        or time.stop is not None
        or case.domain.is_single_precision
        or case.domain.labels is not None
        or case.handover is not None
        or case.reaction is not None
        or attention.file is not None
        or NORMALIZATIONS[attention.normalization].is_two_sided
    )
    if is_solved_alone:
        return None
    rule = attention.normalization, attention.rescaled, len(attention.all_heads)
    return case.domain.resolution, rule, time.method, time.cfl, case.noise_on_unit_sphere > 0


def batch_size(case: Case) -> int:
    """Return the number of cases like the given one that are solved together in one array."""
    cells, _ = case.domain.cells_and_width()
    return max(1, min(MAX_SYSTEMS, MAX_CELLS // cells, int(MAX_STEPS // max(case.flow_steps, 1.0))))


def solve_batch(
    cases: Sequence[Case], problems: Sequence[Problem], schedules: Sequence[Schedule], snapshots: Sequence[Schedule]
) -> Iterator[tuple[int, Tables | None]]:
    """Yield the number of each case of a batch when its run ends, with its times and diagnostics.

    Times and diagnostics are None for a case that has to be solved alone.

    cases       cases of one `batch_key`
    problems    problem of each case
    schedules   schedule of the diagnostics of each case
    snapshots   schedule of the snapshots of each case: steps end at these times, as those of a run do

    The error of each case is controlled separately. A case whose step fails is abandoned here; solved alone, it raises
    the error.
    """
    velocities = _velocities(cases, problems)
    groups: dict[Hashable, list[int]] = {}
    for k, velocity in enumerate(velocities):
        if velocity.attention.takes_rows:
            groups.setdefault((velocity.attention.tangent, len(velocity.attention.heads)), []).append(k)
    for group in groups.values():
        found = _solve(
            [cases[k] for k in group], [problems[k] for k in group], [schedules[k] for k in group],
            [snapshots[k] for k in group], [velocities[k] for k in group],
        )  # fmt: skip
        yield from ((group[k], tables) for k, tables in found)
    yield from ((k, None) for k, velocity in enumerate(velocities) if not velocity.attention.takes_rows)


def _velocities(cases: Sequence[Case], problems: Sequence[Problem]) -> list[Velocity]:
    """Return the velocity of the tokens of each case; cases with equal attention share it."""
    found: dict[str, Velocity] = {}
    for case, problem in zip(cases, problems, strict=True):
        name = repr((case.attention, case.stabilizers, case.feed_forward))
        if name not in found:
            found[name] = velocity_of(case, _mesh_of(problem), heads_by_interval(case).of_interval(0))
    return [found[repr((case.attention, case.stabilizers, case.feed_forward))] for case in cases]


def _mesh_of(problem: Problem) -> Mesh:
    """Return the mesh of a problem."""
    assert isinstance(problem.space, Mesh)
    return problem.space


def _solve(
    cases: Sequence[Case],
    problems: Sequence[Problem],
    schedules: Sequence[Schedule],
    snapshots: Sequence[Schedule],
    velocities: Sequence[Velocity],
) -> Iterator[tuple[int, Tables | None]]:
    """Yield the number and the diagnostics of each case when its run ends, for the given velocity of each case."""

    def densities(which: Indices) -> StackedDensities:
        some, some_noises = ([each[k] for k in which.tolist()] for each in (velocities, noises))
        diffusion = Diffusion(mesh, some_noises, nonnegative=True) if some_noises[0] > 0 else None
        longest = longest_steps(some, some_noises)
        return StackedDensities(mesh, len(some), VelocityOfRows(some), longest, cases[0].time.method, diffusion)

    mesh, noises = _mesh_of(problems[0]), [case.noise_on_unit_sphere for case in cases]
    rows = DensityRows(np.stack([problem.initial() for problem in problems]), densities, cases[0].time.cfl)
    samples = [
        _DensitySamples(problem.diagnostics(case.output.diagnostics or (), None))
        for case, problem in zip(cases, problems, strict=True)
    ]

    def measure(observations: Iterable[Observation]) -> None:
        for number, time, values in observations:
            samples[number].add(time, values)

    systems = Systems(rows, [case.time.end for case in cases], schedules, met=snapshots)
    yield from tables_of(systems, measure, lambda number: samples[number].tables())


class _DensitySamples:
    """Diagnostics of one case of a batch over time, computed for blocks of states."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics, self._times, self._states = diagnostics, list[float](), list[Floats]()
        self._parts: list[Tables] = []

    def add(self, time: float, values: Floats) -> None:
        """Store a state and its time, and compute the diagnostics of a full block of states."""
        self._times.append(time)
        self._states.append(values)
        if len(self._times) == MAX_STATES:
            self._compute()

    def _compute(self) -> None:
        """Compute the diagnostics of the stored states, and clear the store."""
        if self._times:
            columns = self._diagnostics.of_states(self._times, self._states)
            self._parts.append({"time": np.array(self._times), **columns})
            self._times, self._states = [], []

    def tables(self) -> Tables:
        """Return the times (samples,) and the diagnostics (samples, ...) by name."""
        self._compute()
        return {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}


BATCH = Batch(batch_key, batch_size, solve_batch, few=1)
