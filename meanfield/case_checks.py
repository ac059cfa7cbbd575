"""What a case must satisfy beyond the types and ranges of its keys. A Problem is (key, value, expected)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from meanfield.case_errors import refusal
from meanfield.case_sections import (
    Attention,
    Case,
    Domain,
    Harmonic,
    Matrix,
    Moebius,
    Output,
    Perturbed,
    Points,
    Uniform,
    Vector,
    VonMisesFisher,
)

Problem = tuple[str, object, str]

_LEAST = {"circle": 8, "sphere": 4}
_MOST = {"circle": 10**8, "sphere": 8600}  # 10⁸ cells, about 40 GB
_MOST_BETA = 1e5
_MOST_LOG_KERNEL = 700.0  # e^709 is the largest double
_MOST_AMPLITUDE = 100.0  # e^{100 g} reaches 10^200 where g is 4.6 standard deviations
_MOST_SNAPSHOTS = 10**6
_MOST_SAMPLES = 10**7
_NORMS = (1e-150, 1e150)  # their squares are doubles too


def check(case: Case) -> None:
    """Raise CaseError for the first impossible value or combination."""
    for key, value, expected in _problems(case):
        raise refusal(key, value, expected)


def _problems(case: Case) -> Iterator[Problem]:
    yield from _domain(case.domain)
    yield from _attention(case.attention, case.domain.dimension)
    yield from _INITIAL[type(case.initial)](case.initial, case.domain)
    yield from _snapshots(case.output, case.time.end)
    yield from _output(case.output, case.time.end)


def _domain(domain: Domain) -> Iterator[Problem]:
    least, most = _LEAST[domain.manifold], _MOST[domain.manifold]
    if not least <= domain.resolution <= most:
        yield "domain.resolution", domain.resolution, f"{least} to {most} on the {domain.manifold}"


def _attention(attention: Attention, d: int) -> Iterator[Problem]:
    for name in ("query", "key", "value"):
        matrix = getattr(attention, name)
        if matrix is not None and not _is_multiple_of_identity(matrix, d):
            yield f"attention.{name}", matrix, f"a multiple of the {d}×{d} identity (no others yet)"
    if attention.rescaled and attention.normalization == "softmax":
        yield "attention.rescaled", True, 'false, unless attention.normalization is "unnormalized"'
    scales = "" if attention.query is attention.key is None else ", times the scales of query and key"
    if not abs(attention.beta_effective) <= _MOST_BETA:  # not nan either, which 0·∞ would give
        yield "attention.beta", attention.beta, f"a number <= {_MOST_BETA:g}{scales}"
    if attention.log_kernel_bound > _MOST_LOG_KERNEL:
        most = f"a number <= {_MOST_LOG_KERNEL:g}{scales}; beyond, e^beta overflows"
        hint = "" if attention.rescaled else " (attention.rescaled = true avoids it)"
        yield "attention.beta", attention.beta, most + hint


def _is_multiple_of_identity(matrix: Matrix, d: int) -> bool:
    if [len(row) for row in matrix] != [d] * d:
        return False
    scale = matrix[0][0]
    return all(matrix[i][j] == (scale if i == j else 0.0) for i in range(d) for j in range(d))


def _uniform(initial: Uniform, domain: Domain) -> Iterator[Problem]:
    yield from ()


def _perturbed(initial: Perturbed, domain: Domain) -> Iterator[Problem]:
    yield from _degree("initial.degrees", initial.degrees, domain)
    if initial.amplitude > _MOST_AMPLITUDE:
        yield "initial.amplitude", initial.amplitude, f"a number > 0 and <= {_MOST_AMPLITUDE:g}"


def _harmonic(initial: Harmonic, domain: Domain) -> Iterator[Problem]:
    yield from _degree("initial.degree", initial.degree, domain)
    if domain.manifold == "circle" and initial.order != 0:
        yield "initial.order", initial.order, "0 on the circle"
    if abs(initial.order) > initial.degree:
        yield "initial.order", initial.order, f"{-initial.degree} to {initial.degree}, the degree"


def _degree(key: str, degree: int, domain: Domain) -> Iterator[Problem]:
    """Degrees that cells can tell apart: a half wave spans more than one cell of the circle, or one ring."""
    most = (domain.resolution - 1) // 2 if domain.manifold == "circle" else domain.resolution - 1
    if degree > most:
        yield key, degree, f"at most {most} with domain.resolution = {domain.resolution}"


def _von_mises_fisher(initial: VonMisesFisher, domain: Domain) -> Iterator[Problem]:
    for index, component in enumerate(initial.components):
        yield from _vector(f"initial.components[{index}].center", component.center, domain)
    yield from _masses("initial.components.mass", [component.mass for component in initial.components])


def _moebius(initial: Moebius, domain: Domain) -> Iterator[Problem]:
    yield from _vector("initial.axis", initial.axis, domain)


def _points(initial: Points, domain: Domain) -> Iterator[Problem]:
    for index, point in enumerate(initial.points):
        yield from _vector(f"initial.points[{index}]", point, domain)
    if initial.masses is not None:
        if len(initial.masses) != len(initial.points):
            yield "initial.masses", initial.masses, f"one number for each of {len(initial.points)} points"
        yield from _masses("initial.masses", list(initial.masses))


def _vector(key: str, vector: Vector, domain: Domain) -> Iterator[Problem]:
    if len(vector) != domain.dimension:
        yield key, vector, f"a vector of {domain.dimension} numbers, for the {domain.manifold}"
    if not _NORMS[0] <= math.hypot(*vector) <= _NORMS[1]:
        yield key, vector, f"a vector that is not zero (norm from {_NORMS[0]:g} to {_NORMS[1]:g})"


def _masses(key: str, masses: list[float]) -> Iterator[Problem]:
    if not 0 < sum(masses) < math.inf:
        yield key, masses, "masses with a positive, finite sum"


def _snapshots(output: Output, end: float) -> Iterator[Problem]:
    given = [name for name in ("snapshots", "every", "times") if getattr(output, name) is not None]
    if len(given) > 1:
        yield f"output.{given[1]}", getattr(output, given[1]), f"no such key beside output.{given[0]}"
    if output.snapshots is not None and output.snapshots > _MOST_SNAPSHOTS:
        yield "output.snapshots", output.snapshots, f"an integer from 1 to {_MOST_SNAPSHOTS}"
    if output.every is not None and end / output.every > _MOST_SNAPSHOTS:
        yield "output.every", output.every, f"at least time.end / {_MOST_SNAPSHOTS}"
    if output.times is not None and not all(a < b for a, b in pairwise(output.times)):
        yield "output.times", list(output.times), "increasing numbers"
    if output.times is not None and output.times[-1] > end:
        yield "output.times", list(output.times), f"numbers from 0 to time.end = {end}"


def _output(output: Output, end: float) -> Iterator[Problem]:
    if output.first is not None and output.spacing == "linear":
        yield "output.first", output.first, 'no such key with output.spacing = "linear"'
    if output.first is not None and not 0 < output.first < end:  # 0 from the default of a subnormal end
        yield "output.first", output.first, f"a number > 0 and < time.end = {end}"
    if output.samples > _MOST_SAMPLES:
        yield "output.samples", output.samples, f"an integer from 1 to {_MOST_SAMPLES}"
    if len(set(output.diagnostics)) < len(output.diagnostics):
        yield "output.diagnostics", list(output.diagnostics), "each name once"


_INITIAL: dict[type, Callable[[Any, Domain], Iterator[Problem]]] = {
    Uniform: _uniform,
    Perturbed: _perturbed,
    Harmonic: _harmonic,
    VonMisesFisher: _von_mises_fisher,
    Moebius: _moebius,
    Points: _points,
}
