"""What an initial density must satisfy, by its kind and the manifold that it is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from meanfield.case.attention import Matrix, Vector
from meanfield.case.initial import (
    Equiangular,
    Gaussian,
    Harmonic,
    Interval,
    Moebius,
    Perturbed,
    Points,
    Snapshot,
    Tokens,
    Uniform,
    VonMisesFisher,
    Waves,
)
from meanfield.case.sections import Case, Domain
from meanfield.case.validate_model import Problem, matrix_problem, tag_of

_MOST_AMPLITUDE = 100.0  # e^{100 g} reaches 10^200 where g is 4.6 standard deviations
_MOST_DEGREE = 200  # of a field that tokens are drawn from
_NORMS = (1e-150, 1e150)  # their squares are doubles too


def initial_problems(case: Case) -> Iterator[Problem]:
    """What is wrong with the initial density of a case."""
    initial, domain = case.initial, case.domain
    manifolds, problems = _INITIAL[type(initial)]
    kind = tag_of(type(initial))
    if domain.manifold not in manifolds:
        here = [tag_of(found) for found, (places, _) in _INITIAL.items() if domain.manifold in places]
        yield "initial.kind", kind, f"one of {', '.join(here)} {domain.place}"
    if initial.radius is not None and (not case.tokens_have_radius or isinstance(initial, Gaussian | Waves | Snapshot)):
        yield "initial.radius", initial.radius, f"no such key {domain.place} for initial.kind = {kind}"
    if isinstance(initial, Gaussian) and domain.manifold == "particles" and not case.tokens_have_radius:
        yield "initial.kind", kind, f"another with stabilizers.layer_norm = {case.stabilizers.layer_norm}: no radius"
    yield from problems(initial, domain)


def _uniform(initial: Uniform, domain: Domain) -> Iterator[Problem]:
    yield from ()


def _perturbed(initial: Perturbed, domain: Domain) -> Iterator[Problem]:
    yield from _degree("initial.degrees", initial.degrees, domain)
    if initial.amplitude > _MOST_AMPLITUDE:
        yield "initial.amplitude", initial.amplitude, f"a number > 0 and <= {_MOST_AMPLITUDE:g}"


def _harmonic(initial: Harmonic, domain: Domain) -> Iterator[Problem]:
    yield from _degree("initial.degree", initial.degree, domain)
    if (domain.d != 3 or domain.manifold == "axisymmetric") and initial.order != 0:
        yield "initial.order", initial.order, f"0 {domain.place}"
    if abs(initial.order) > initial.degree:
        yield "initial.order", initial.order, f"{-initial.degree} to {initial.degree}, the degree"


def _degree(key: str, degree: int, domain: Domain) -> Iterator[Problem]:
    """Degrees that cells can tell apart: a half wave spans more than one cell of the circle, or one ring."""
    if domain.manifold == "particles":
        if domain.d > 3:
            yield key, degree, "an initial.kind without degrees for particles with domain.dimension > 3"
        most = _MOST_DEGREE
    else:
        most = (domain.across - 1) // 2 if domain.manifold.endswith("circle") else domain.across - 1
    if degree > most:
        where = domain.place if domain.resolution is None else f"with domain.resolution = {domain.resolution}"
        yield key, degree, f"at most {most} {where}"


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
    if len(vector) != _coordinates(domain):
        yield key, vector, f"a vector of {_coordinates(domain)} numbers, {domain.place}"
    if domain.manifold == "axisymmetric" and not -1 <= vector[0] <= 1:
        yield key, vector, "the cosine of its angle with the axis, from -1 to 1"
    if domain.manifold not in ("line", "axisymmetric") and not _NORMS[0] <= math.hypot(*vector) <= _NORMS[1]:
        yield key, vector, f"a vector that is not zero (norm from {_NORMS[0]:g} to {_NORMS[1]:g})"


def _masses(key: str, masses: list[float]) -> Iterator[Problem]:
    if not 0 < sum(masses) < math.inf:
        yield key, masses, "masses with a positive, finite sum"


def _coordinates(domain: Domain) -> int:
    """Numbers that say where a token is: its vector, on axisymmetric domains its cosine with the axis."""
    return 1 if domain.manifold == "axisymmetric" else domain.d


def _tokens(initial: Tokens, domain: Domain) -> Iterator[Problem]:
    if not initial.file.endswith((".npy", ".h5", ".hdf5")):
        yield "initial.file", initial.file, "a file that ends in .npy or .h5"


def _snapshot(initial: Snapshot, domain: Domain) -> Iterator[Problem]:
    if not initial.file.endswith((".h5", ".hdf5")):
        yield "initial.file", initial.file, "a run, a file that ends in .h5"


def _gaussian(initial: Gaussian, domain: Domain) -> Iterator[Problem]:
    if isinstance(initial.mean, tuple):
        yield from _vector("initial.mean", initial.mean, domain)
    elif initial.mean != 0 and domain.d > 1:
        yield "initial.mean", initial.mean, f"0, or a vector of {domain.d} numbers"
    if isinstance(initial.variance, tuple):
        yield from matrix_problem("initial.variance", initial.variance, domain.d)
        if not _is_covariance(initial.variance):
            yield "initial.variance", initial.variance, "a number > 0, or a symmetric positive definite matrix"


def _is_covariance(matrix: Matrix) -> bool:
    import numpy as np

    given = np.array(matrix)
    return bool(np.allclose(given, given.T) and (np.linalg.eigvalsh(given) > 0).all())


def _equiangular(initial: Equiangular, domain: Domain) -> Iterator[Problem]:
    count = domain.count or 1
    if count > domain.d:
        yield "domain.count", count, f"at most domain.dimension = {domain.d} equiangular tokens"
    if initial.cosine * (count - 1) < -1:
        yield "initial.cosine", initial.cosine, f"at least -1/(count - 1) = {-1 / (count - 1)} of {count} tokens"


def _waves(initial: Waves, domain: Domain) -> Iterator[Problem]:
    yield from _vector("initial.mean", initial.mean, domain)
    if domain.count is not None and 2 * initial.modes > domain.count:
        yield "initial.modes", initial.modes, f"at most domain.count / 2 = {domain.count // 2}: two tokens a half wave"


def _interval(initial: Interval, domain: Domain) -> Iterator[Problem]:
    if initial.low >= initial.high:
        yield "initial.high", initial.high, f"more than initial.low = {initial.low}"


_ROUND = ("circle", "sphere", "free_radius_circle", "free_radius_sphere", "particles")
_INITIAL: dict[type, tuple[tuple[str, ...], Callable[[Any, Domain], Iterator[Problem]]]] = {
    Uniform: ((*_ROUND, "axisymmetric"), _uniform),
    Perturbed: ((*_ROUND, "axisymmetric"), _perturbed),
    Harmonic: ((*_ROUND, "axisymmetric"), _harmonic),
    VonMisesFisher: ((*_ROUND, "axisymmetric"), _von_mises_fisher),
    Moebius: ((*_ROUND, "axisymmetric"), _moebius),
    Points: ((*_ROUND, "axisymmetric", "line"), _points),
    Tokens: (_ROUND, _tokens),
    Snapshot: ((*_ROUND, "axisymmetric", "line"), _snapshot),
    Gaussian: (("line", "free_radius_circle", "free_radius_sphere", "particles"), _gaussian),
    Equiangular: (("particles",), _equiangular),
    Waves: (("particles",), _waves),
    Interval: (("line",), _interval),
}
