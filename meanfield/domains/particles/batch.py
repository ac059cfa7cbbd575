"""Many cases of few tokens solved together in one array: cases that differ in β, seeds, matrices and initial tokens."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.batch import Batch, Tables, tables_of
from meanfield.domains.common.model_of_case import heads_by_interval
from meanfield.domains.common.problem import Problem
from meanfield.domains.particles.diagnostics import OF_ATTENTION, ParticleSample
from meanfield.domains.particles.motion import to_unit_length
from meanfield.domains.particles.setup import particle_velocity
from meanfield.domains.particles.systems import MAX_TOKENS, RatesOfSystems
from meanfield.model.layer_norm import LAYER_NORMS
from meanfield.model.normalization import NORMALIZATIONS
from solvers.io.layout import Points
from solvers.mesh.mesh import Floats
from solvers.timestepping.adaptive.dormand_prince import DormandPrince
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.systems import Observation, Systems

MAX_PAIRS, MAX_NUMBERS, MAX_SYSTEMS = 1 << 18, 1 << 16, 1024  # of a batch: its arrays fit the cache of a core


def batch_key(case: Case) -> Hashable | None:
    """Return the properties that cases of tokens must share to be solved together; None for a case solved alone.

    Cases are solved alone with an order of tokens, a sparse pattern, noise, a handover, layers, a stop condition, a
    file of matrices, two-sided (sinkhorn) attention, a layer norm that changes at a time or moves radii, kernels other
    than the exponential, and more than MAX_TOKENS tokens.
    """
    attention, norm, count = case.attention, case.stabilizers.layer_norm, case.domain.count
    scheme = LAYER_NORMS[norm]
    is_solved_alone = (
        case.time.method != "adaptive"
        or case.time.stop is not None
        or case.sequence is not None
        or case.handover is not None
        or attention.file is not None
        or attention.pattern is not None
        or attention.kernel != "exponential"
        or NORMALIZATIONS[attention.normalization].is_two_sided
        or scheme.parameter == "switch"
        or (scheme.carries_radius and not scheme.sees_positions)
    )
    if is_solved_alone or count is None or count > MAX_TOKENS:
        return None
    stabilizers = norm, case.stabilizers.alpha, case.stabilizers.gate
    rule = attention.normalization, attention.mask, attention.rescaled
    # on a sphere of radius g the network is F(gθ)/g
    network = None if case.feed_forward is None else (repr(case.feed_forward), case.stabilizers.scale)
    return count, case.domain.d, stabilizers, rule, len(attention.all_heads), network


def batch_size(case: Case) -> int:
    """Return the number of cases like the given one that are solved together in one array."""
    count, d = case.domain.count or 1, case.domain.d
    return max(1, min(MAX_SYSTEMS, MAX_PAIRS // count**2, MAX_NUMBERS // (count * d)))


def solve_batch(
    cases: Sequence[Case],
    problems: Sequence[Problem],
    schedules: Sequence[Schedule],
    snapshots: Sequence[Schedule] = (),
) -> Iterator[tuple[int, Tables | None]]:
    """Yield the number of each case of a batch when its run ends, with its times and diagnostics.

    Times and diagnostics are None for a case that has to be solved alone.

    cases       cases of one `batch_key`
    problems    problem of each case
    schedules   schedule of the diagnostics of each case
    snapshots   schedule of the snapshots of each case, which steps of tokens need not meet

    The error of each case is controlled separately. A case whose rates are not finite, or whose step size underflows,
    is abandoned here; solved alone, it raises the error.
    """
    masses = np.stack([_masses(problem) for problem in problems])
    velocities = [
        particle_velocity(case, heads_by_interval(case).of_interval(0), weights)
        for case, weights in zip(cases, masses, strict=True)
    ]
    rates = RatesOfSystems(velocities, masses, cases[0].domain.d)
    tolerances = np.array([case.time.tolerance for case in cases], dtype=float)
    limit = None if velocities[0].norm.carries_radius else to_unit_length
    rows = DormandPrince(rates, np.stack([problem.initial() for problem in problems]), tolerances, tolerances, limit)
    measured = [
        _ParticleSamples(problem.diagnostics(case.output.diagnostics or (), None))
        for case, problem in zip(cases, problems, strict=True)
    ]
    yield from tables_of(
        Systems(rows, [case.time.end for case in cases], schedules),
        lambda observations: _measure(measured, rates, observations),
        lambda number: measured[number].tables(),
    )


def _masses(problem: Problem) -> Floats:
    """Return the masses (n,) of the tokens of a problem."""
    assert isinstance(problem.space, Points)
    return problem.space.weights


def _measure(measured: Sequence[_ParticleSamples], rates: RatesOfSystems, observations: Iterable[Observation]) -> None:
    """Compute diagnostics of sampled states, with attention of all cases at once.

    ``observations`` are the samples: the number of the case, the time, and the values of the state.
    """
    numbers, samples = list[int](), list[ParticleSample]()
    for number, time, values in observations:
        numbers.append(number)
        samples.append(measured[number].diagnostics.sample_of(time, values))
    for first in range(0, len(samples), len(measured)):  # a few samples of each at once: the memory is that of a step
        some = slice(first, first + len(measured))
        if any(measured[number].needs_attention for number in numbers[some]):
            found = rates.normalizer_and_output(
                np.array(numbers[some]), np.stack([one.attention_points for one in samples[some]])
            )
            for sample, *attention in zip(samples[some], *found, strict=True):
                sample.set_attention(*attention)
        for number, sample in zip(numbers[some], samples[some], strict=True):
            measured[number].add(sample)


class _ParticleSamples:
    """Diagnostics of one case of a batch, collected over time."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics, self._times = diagnostics, list[float]()
        self._rows: dict[str, list[float | Floats]] = {name: [] for name in diagnostics.names}
        self.needs_attention = not self._rows.keys().isdisjoint(OF_ATTENTION)

    def add(self, sample: ParticleSample) -> None:
        """Compute the diagnostics of a sample, and append them with the time of the sample."""
        self._times.append(sample.time)
        for name, value in self.diagnostics.values(sample).items():
            self._rows[name].append(value)

    def tables(self) -> Tables:
        """Return the times (samples,) and the diagnostics (samples, ...) by name."""
        columns = {name: np.array(rows, dtype=float) for name, rows in self._rows.items()}
        return {"time": np.array(self._times), **columns}


BATCH = Batch(batch_key, batch_size, solve_batch, few=4)
