"""Section [initial], a class for each kind: the distribution of tokens at time 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.sections.section import (
    Count,
    Key,
    Matrix,
    NotNegative,
    Positive,
    Problems,
    Section,
    Seed,
    Vector,
    matrix_problem,
)

if TYPE_CHECKING:
    from meanfield.domains.domain import Domain

MAX_AMPLITUDE = 100.0  # e^{100 g} reaches 10^200 where g is 4.6 standard deviations


class InitialKind(Section, frozen=True):
    """Kind of initial distribution. ``radius`` is the initial radius of all tokens if they have one, by default 1.

    Without ``radius``, points and tokens of a file keep their own radii.
    """

    radius: Positive | None = None

    about: ClassVar = {
        "radius": Key(
            "radius of all tokens at time 0 if layer norm leaves it free; default: radius of each point, else 1", 1.0
        )
    }

    def problems(self, domain: Domain) -> Problems:
        """Yield the faults of this section [initial] beyond types and ranges, on a ``domain`` that allows its kind.

        A fault is a key, its value and the expected value.
        """
        yield from ()


class OwnDensity(InitialKind, frozen=True):
    """Base class of the initial densities that user-defined components add as kinds of [initial]."""


class OwnTokens(InitialKind, frozen=True):
    """Base class of the initial tokens that user-defined components add as kinds of [initial]."""


class SampledDensity(InitialKind, frozen=True):
    """Base of the densities from which tokens can be drawn: at random, at quantiles or at scrambled Sobol points.

    Quantiles need one or two coordinates: circle, sphere, line and plane.
    """

    sampling: Literal["random", "quantiles", "sobol"] = "random"

    about: ClassVar = {
        "sampling": Key(
            "tokens: drawn at random, at quantiles (d ≤ 3; gaussian: d ≤ 2) or at Sobol points", "quantiles"
        )
    }

    def problems(self, domain: Domain) -> Problems:
        yield from _sampling(self.sampling, domain, domain.d - 1)


class Uniform(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """Uniform density ρ̄."""


class Perturbed(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="perturbed"):
    """Density ρ̄·e^{ag} with a = ``amplitude`` and a random field g of unit variance, normalized.

    On an axisymmetric domain the density is ρ̄(ag + √(1 + a²g²)). g has equal power in degrees 1 to ``degrees``.
    """

    amplitude: Positive = 0.01  # small, so that the linear growth about the uniform density is visible
    degrees: Count = 12
    seed: Seed = 0

    about: ClassVar = {
        "amplitude": Key("standard deviation of the logarithm of the density", 0.1),
        "degrees": Key("largest degree of the random field", 12),
        "seed": Key("seed of the random field", 1),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from super().problems(domain)
        yield from _degree("initial.degrees", self.degrees, domain)
        if self.amplitude > MAX_AMPLITUDE:
            yield "initial.amplitude", self.amplitude, f"a number > 0 and <= {MAX_AMPLITUDE:g}"


class Harmonic(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="harmonic"):
    """Density ρ̄(1 + amplitude·Y): Y is the real harmonic of unit mean square; on the circle √2 cos lφ, ``order`` 0."""

    degree: Count
    amplitude: float
    order: int = 0

    about: ClassVar = {
        "degree": Key("l of the harmonic Y", 2),
        "amplitude": Key("factor of Y, which has unit mean square", 0.01),
        "order": Key("m of the harmonic, on the sphere", 0),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from super().problems(domain)
        yield from _degree("initial.degree", self.degree, domain)
        if not (domain.d == 3 and domain.unit_vectors) and self.order != 0:
            yield "initial.order", self.order, f"0 {domain.location}"
        if abs(self.order) > self.degree:
            yield "initial.order", self.order, f"{-self.degree} to {self.degree}, the degree"


class Component(Section, frozen=True):
    """Von Mises–Fisher density, e^{concentration·⟨x, center⟩} with the given share of the mass."""

    center: Vector
    concentration: NotNegative
    mass: NotNegative = 1.0

    about: ClassVar = {
        "center": Key("direction of the largest density", [1.0, 0.0]),
        "concentration": Key("κ of e^{κ⟨x, center⟩}", 50.0),
        "mass": Key("share of the mass, relative to the other components", 0.7),
    }


class VonMisesFisher(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="von_mises_fisher"):
    """Mixture of von Mises–Fisher densities; the masses are relative."""

    components: Annotated[tuple[Component, ...], Meta(min_length=1)]

    about: ClassVar = {"components": Key("densities of the mixture", [{"center": [1.0, 0.0], "concentration": 50.0}])}

    @property
    def columns(self) -> tuple[list[Vector], list[float], list[float]]:
        """Return the centers, the concentrations and the masses of the components."""
        parts = self.components
        return [part.center for part in parts], [part.concentration for part in parts], [part.mass for part in parts]

    def problems(self, domain: Domain) -> Problems:
        yield from super().problems(domain)
        for index, component in enumerate(self.components):
            yield from _vector(f"initial.components[{index}].center", component.center, domain)
        yield from _masses("initial.components.mass", self.columns[2])


class Moebius(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="moebius"):
    """Uniform density moved along ``axis`` by ``parameter``: the exact flow at β = 0."""

    axis: Vector
    parameter: float

    about: ClassVar = {
        "axis": Key("direction towards which the uniform density is moved", [1.0, 0.0]),
        "parameter": Key("s: an angle θ from the axis becomes 2 arctan(e^{−s} tan(θ/2))", 0.3),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from super().problems(domain)
        yield from _vector("initial.axis", self.axis, domain)


class Points(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="points"):
    """Point masses, deposited with their mass and first moment; masses are relative, and equal if left out.

    Points give directions; their lengths are radii if tokens have a radius and ``radius`` is not given. With a causal
    mask the points are in order of their labels, with an equal number of points for each label, by default one.
    """

    points: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    masses: tuple[NotNegative, ...] | None = None

    about: ClassVar = {
        "points": Key("positions of the point masses", [[1.0, 0.0], [0.0, 1.0]]),
        "masses": Key("masses of the points, relative to each other; equal if left out", [0.7, 0.3]),
    }

    def problems(self, domain: Domain) -> Problems:
        for index, point in enumerate(self.points):
            yield from _vector(f"initial.points[{index}]", point, domain)
        if self.masses is not None:
            if len(self.masses) != len(self.points):
                yield "initial.masses", self.masses, f"one number for each of {len(self.points)} points"
            yield from _masses("initial.masses", self.masses)


class Tokens(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="tokens"):
    """Embeddings (n, d) in a .npy file, or in the dataset ``dataset`` of an .h5 file, as equal point masses.

    Tokens give directions; their lengths are radii if tokens have a radius and ``radius`` is not given.
    """

    file: str
    dataset: str = "tokens"

    about: ClassVar = {
        "file": Key(".npy file of shape (n, d), or .h5", "tokens.npy"),
        "dataset": Key("name of the dataset in an .h5 file", "tokens"),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from _array_file(self.file)


class Snapshot(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """Snapshot of another run, ``file``: the last one up to ``time``, by default the last of all."""

    file: str
    time: NotNegative | None = None

    about: ClassVar = {
        "file": Key("run file", "pair.h5"),
        "time": Key("latest time of the snapshot; if left out, the last snapshot", 5.0, unit="time"),
    }

    def problems(self, domain: Domain) -> Problems:
        if not self.file.endswith((".h5", ".hdf5")):
            yield "initial.file", self.file, "a run, a file that ends in .h5"


class Gaussian(SampledDensity, frozen=True, kw_only=True, tag_field="kind", tag="gaussian"):
    """Gaussian N(mean, variance) in R^d, for tokens with a radius.

    ``mean`` is a number or a vector, ``variance`` a number or a matrix.
    """

    mean: float | Vector = 0.0
    variance: Positive | Matrix = 1.0

    about: ClassVar = {
        "mean": Key("mean of N(mean, variance): a number, or one for each coordinate", [0.5, 0.0]),
        "variance": Key("a number, or a d×d covariance matrix", 0.3),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from _sampling(self.sampling, domain, domain.d)
        if isinstance(self.mean, tuple):
            yield from _vector("initial.mean", self.mean, domain, may_be_zero=True)
        elif self.mean != 0 and domain.d > 1:
            yield "initial.mean", self.mean, f"0, or a vector of {domain.d} numbers"
        if isinstance(self.variance, tuple):
            yield from matrix_problem("initial.variance", self.variance, domain.d)
            if not _is_covariance(self.variance):
                yield "initial.variance", self.variance, "a number > 0, or a symmetric positive definite matrix"


class Equiangular(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="equiangular"):
    """Tokens with the same ``cosine`` for all pairs, at most as many tokens as dimensions; for particles only."""

    cosine: Annotated[float, Meta(ge=-1, lt=1)] = 0.0

    about: ClassVar = {"cosine": Key("⟨x, y⟩ of any two tokens", 0.2)}

    def problems(self, domain: Domain) -> Problems:
        count = domain.count or 1
        if count > domain.d:
            yield "domain.count", count, f"at most domain.dimension = {domain.d} equiangular tokens"
        if self.cosine * (count - 1) < -1:
            yield "initial.cosine", self.cosine, f"at least -1/(count - 1) = {-1 / (count - 1)} of {count} tokens"


class Waves(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="waves"):
    """Smooth field ``mean`` + ``amplitude``·g over a sequence; g is a sum of ``modes`` waves, with E|g|² = 1.

    The field is normalized. g = Σ_m a_m cos(mπx/length), m = 1 … ``modes``, with Gaussian a_m drawn by ``seed``. In a
    periodic sequence waves of odd m have a corner at the ends.
    """

    mean: Vector
    amplitude: NotNegative
    modes: Count = 4
    seed: Seed = 0

    about: ClassVar = {
        "mean": Key("mean of the field over the sequence", [1.0, 0.0]),
        "amplitude": Key("root mean square of the deviation from the mean", 0.5),
        "modes": Key("number of cosine waves", 4),
        "seed": Key("seed of the waves' coefficients", 1),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from _vector("initial.mean", self.mean, domain)
        if domain.count is not None and 2 * self.modes > domain.count:
            expected = f"at most domain.count / 2 = {domain.count // 2}: two tokens for each half wave"
            yield "initial.modes", self.modes, expected


class Interval(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="interval"):
    """Uniform density on [low, high] of the line."""

    low: float
    high: float

    about: ClassVar = {
        "low": Key("left end", -1.0),
        "high": Key("right end", 1.0),
    }

    def problems(self, domain: Domain) -> Problems:
        if self.low >= self.high:
            yield "initial.high", self.high, f"more than initial.low = {self.low}"


class Array(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="array"):
    """Unnormalized density, a number ≥ 0 for each cell, in a .npy file or the dataset ``dataset`` of an .h5 file.

    With a causal mask the shape is (cells,), the same for all labels, or (labels, cells).
    """

    file: str
    dataset: str = "density"

    about: ClassVar = {
        "file": Key(".npy or .h5 file with a number for each cell", "density.npy"),
        "dataset": Key("name of the dataset in an .h5 file", "density"),
    }

    def problems(self, domain: Domain) -> Problems:
        yield from _array_file(self.file)


class Values(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="values"):
    """Unnormalized density, a number ≥ 0 for each cell, in the case itself. With a causal mask: for all labels."""

    density: Annotated[tuple[NotNegative, ...], Meta(min_length=1)]

    about: ClassVar = {"density": Key("unnormalized density, a number for each cell", [0.5, 1.0, 0.5])}

    def problems(self, domain: Domain) -> Problems:
        cells = domain.cells_and_width()[0] // (domain.labels or 1)
        if len(self.density) != cells:
            yield "initial.density", self.density, f"{cells} numbers, one for each cell, not {len(self.density)}"


class Formula(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="formula"):
    """Unnormalized density ≥ 0 as a formula in x, y, z, phi, theta (radians) and label.

    Allowed are numbers, pi, + − * / **, exp, log, sqrt, abs, sin, cos, tan, arcsin, arccos, arctan, sinh, cosh, tanh.
    On the circle phi is the angle; on the sphere phi is the azimuth and theta the polar angle. Axisymmetric densities
    are formulas in theta and z = cos(theta), and densities on the line in x. With a free radius the formula is the
    density of directions. With a causal mask, label is (k + ½)/labels for the label k = 0, 1, …
    """

    density: str

    about: ClassVar = {"density": Key("unnormalized density, as a formula in coordinates", "1 + 0.5*x")}

    def problems(self, domain: Domain) -> Problems:
        from meanfield.sections.formula import LABEL, formula_problem

        labels = (LABEL,) if domain.labels is not None else ()
        if domain.formula and (expected := formula_problem(self.density, (*domain.formula, *labels))) is not None:
            yield "initial.density", self.density, expected


class ByLabel(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="by_label"):
    """Densities of the labels of a causal mask, in order: each of ``parts`` for an equal number of labels."""

    parts: Annotated[
        tuple[
            Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Array | Values | Formula, ...
        ],
        Meta(min_length=1),
    ]

    about: ClassVar = {
        "parts": Key("an initial density for each label, or each group of labels of equal size", [{"kind": "uniform"}])
    }

    def problems(self, domain: Domain) -> Problems:
        for index, part in enumerate(self.parts):
            for key, value, expected in part.problems(domain):
                yield key.replace("initial.", f"initial.parts[{index}].", 1), value, expected


Initial = (
    Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Snapshot | Gaussian | Equiangular
    | Waves | Interval | Array | Values | Formula | ByLabel
)  # fmt: skip


def _sampling(sampling: str, domain: Domain, coordinates: int) -> Problems:
    """Yield a fault if tokens cannot be drawn by ``sampling`` from a density on a domain.

    ``coordinates`` is the number of coordinates of a point of the density.
    """
    if sampling == "random":
        return
    if not domain.has_tokens:
        yield "initial.sampling", sampling, f'"random" {domain.location}, where no tokens are drawn'
    elif coordinates == 0:
        yield "initial.sampling", sampling, f'"random" {domain.location} with domain.dimension = 1'
    elif sampling == "quantiles" and coordinates > 2:
        largest = domain.d - coordinates + 2
        yield "initial.sampling", sampling, f'"random" or "sobol" {domain.location} with domain.dimension > {largest}'


def _degree(key: str, degree: int, domain: Domain) -> Problems:
    """Yield a fault if the cells do not resolve harmonics of a degree, or if the domain has no degrees.

    Half a wave has to span more than one cell, on the sphere more than one ring.
    """
    if domain.has_tokens and domain.d > 3:
        yield key, degree, f"an initial.kind without degrees {domain.location} with domain.dimension > 3"
    if domain.max_degree is not None and degree > domain.max_degree:
        condition = domain.location if domain.resolution is None else f"with domain.resolution = {domain.resolution}"
        yield key, degree, f"at most {domain.max_degree} {condition}"


def _vector(key: str, vector: Vector, domain: Domain, *, may_be_zero: bool = False) -> Problems:
    """Yield the problems of a vector, the value of ``key``: a wrong length, or no point of the domain.

    The zero vector is no point of most domains; ``may_be_zero`` allows it.
    """
    count = domain.coordinates or domain.d
    if len(vector) != count:
        yield key, vector, f"a vector of {count} numbers, {domain.location}"
    if any(vector) or not may_be_zero:
        yield from domain.point_problems(key, vector)


def _masses(key: str, masses: Sequence[float]) -> Problems:
    """Yield the problem of masses without a positive, finite sum."""
    if not 0 < sum(masses) < math.inf:
        yield key, list(masses), "masses with a positive, finite sum"


def _array_file(file: str) -> Problems:
    """Yield the problem of a file of numbers with another ending than .npy, .h5 or .hdf5."""
    if not file.endswith((".npy", ".h5", ".hdf5")):
        yield "initial.file", file, "a file that ends in .npy or .h5"


def _is_covariance(matrix: Matrix) -> bool:
    """Return whether a matrix is symmetric and positive definite."""
    import numpy as np

    given = np.array(matrix)
    return bool(np.allclose(given, given.T) and (np.linalg.eigvalsh(given) > 0).all())
