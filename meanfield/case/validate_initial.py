"""Checks of an initial density, by its kind and the domain that it is for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from meanfield.case.case import Case
from meanfield.case.formula import LABEL, formula_problem
from meanfield.case.validate_model import matrix_problem
from meanfield.domains.domain import Domain
from meanfield.sections.initial import (
    Array,
    ByLabel,
    Equiangular,
    Formula,
    Gaussian,
    Harmonic,
    InitialKind,
    Interval,
    Moebius,
    Perturbed,
    Points,
    Snapshot,
    Tokens,
    VonMisesFisher,
    Waves,
)
from meanfield.sections.section import Matrix, Problems, Vector, tag_of

_MAX_AMPLITUDE = 100.0  # e^{100 g} reaches 10^200 where g is 4.6 standard deviations


def initial_problems(case: Case) -> Problems:
    """What is wrong with the initial density of a case."""
    initial, domain, kind = case.initial, case.domain, tag_of(type(case.initial))
    if not isinstance(initial, domain.initial):
        yield "initial.kind", kind, f"one of {', '.join(map(tag_of, domain.initial))} {domain.where}"
    if initial.radius is not None and (not case.tokens_have_radius or isinstance(initial, Gaussian | Waves | Snapshot)):
        yield "initial.radius", initial.radius, f"not available {domain.where} for initial.kind = {kind}"
    if type(initial) in _PROBLEMS:
        yield from _PROBLEMS[type(initial)](initial, domain)
    if isinstance(initial, ByLabel):
        for index, part in enumerate(initial.parts):
            for key, value, expected in _PROBLEMS.get(type(part), _none)(part, domain):
                yield key.replace("initial.", f"initial.parts[{index}].", 1), value, expected


def _none(initial: InitialKind, domain: Domain) -> Problems:
    yield from ()


def _perturbed(initial: Perturbed, domain: Domain) -> Problems:
    yield from _degree("initial.degrees", initial.degrees, domain)
    if initial.amplitude > _MAX_AMPLITUDE:
        yield "initial.amplitude", initial.amplitude, f"a number > 0 and <= {_MAX_AMPLITUDE:g}"


def _harmonic(initial: Harmonic, domain: Domain) -> Problems:
    yield from _degree("initial.degree", initial.degree, domain)
    if not (domain.d == 3 and domain.unit_vectors) and initial.order != 0:
        yield "initial.order", initial.order, f"0 {domain.where}"
    if abs(initial.order) > initial.degree:
        yield "initial.order", initial.order, f"{-initial.degree} to {initial.degree}, the degree"


def _degree(key: str, degree: int, domain: Domain) -> Problems:
    """Degrees that cells resolve: a half wave spans more than one cell of the circle, or one ring."""
    if domain.has_tokens and domain.d > 3:
        yield key, degree, f"an initial.kind without degrees {domain.where} with domain.dimension > 3"
    if domain.max_degree is not None and degree > domain.max_degree:
        place = domain.where if domain.resolution is None else f"with domain.resolution = {domain.resolution}"
        yield key, degree, f"at most {domain.max_degree} {place}"


def _von_mises_fisher(initial: VonMisesFisher, domain: Domain) -> Problems:
    for index, component in enumerate(initial.components):
        yield from _vector(f"initial.components[{index}].center", component.center, domain)
    yield from _masses("initial.components.mass", [component.mass for component in initial.components])


def _moebius(initial: Moebius, domain: Domain) -> Problems:
    yield from _vector("initial.axis", initial.axis, domain)


def _points(initial: Points, domain: Domain) -> Problems:
    for index, point in enumerate(initial.points):
        yield from _vector(f"initial.points[{index}]", point, domain)
    if initial.masses is not None:
        if len(initial.masses) != len(initial.points):
            yield "initial.masses", initial.masses, f"one number for each of {len(initial.points)} points"
        yield from _masses("initial.masses", list(initial.masses))


def _vector(key: str, vector: Vector, domain: Domain) -> Problems:
    count = domain.coordinates or domain.d
    if len(vector) != count:
        yield key, vector, f"a vector of {count} numbers, {domain.where}"
    yield from domain.point_problems(key, vector)


def _masses(key: str, masses: list[float]) -> Problems:
    if not 0 < sum(masses) < math.inf:
        yield key, masses, "masses with a positive, finite sum"


def _tokens(initial: Tokens | Array, domain: Domain) -> Problems:
    if not initial.file.endswith((".npy", ".h5", ".hdf5")):
        yield "initial.file", initial.file, "a file that ends in .npy or .h5"


def _snapshot(initial: Snapshot, domain: Domain) -> Problems:
    if not initial.file.endswith((".h5", ".hdf5")):
        yield "initial.file", initial.file, "a run, a file that ends in .h5"


def _formula(initial: Formula, domain: Domain) -> Problems:
    labels = (LABEL,) if domain.labels is not None else ()
    if domain.formula and (expected := formula_problem(initial.density, (*domain.formula, *labels))) is not None:
        yield "initial.density", initial.density, expected


def _gaussian(initial: Gaussian, domain: Domain) -> Problems:
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


def _equiangular(initial: Equiangular, domain: Domain) -> Problems:
    count = domain.count or 1
    if count > domain.d:
        yield "domain.count", count, f"at most domain.dimension = {domain.d} equiangular tokens"
    if initial.cosine * (count - 1) < -1:
        yield "initial.cosine", initial.cosine, f"at least -1/(count - 1) = {-1 / (count - 1)} of {count} tokens"


def _waves(initial: Waves, domain: Domain) -> Problems:
    yield from _vector("initial.mean", initial.mean, domain)
    if domain.count is not None and 2 * initial.modes > domain.count:
        yield "initial.modes", initial.modes, f"at most domain.count / 2 = {domain.count // 2}: two tokens a half wave"


def _interval(initial: Interval, domain: Domain) -> Problems:
    if initial.low >= initial.high:
        yield "initial.high", initial.high, f"more than initial.low = {initial.low}"


_PROBLEMS: dict[type, Callable[[Any, Domain], Problems]] = {
    Perturbed: _perturbed,
    Harmonic: _harmonic,
    VonMisesFisher: _von_mises_fisher,
    Moebius: _moebius,
    Points: _points,
    Tokens: _tokens,
    Array: _tokens,
    Formula: _formula,
    Snapshot: _snapshot,
    Gaussian: _gaussian,
    Equiangular: _equiangular,
    Waves: _waves,
    Interval: _interval,
}
