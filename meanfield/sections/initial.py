"""Section [initial], a class for each kind: the distribution of tokens at time 0."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from meanfield.sections.section import Count, Key, Matrix, NotNegative, Positive, Section, Seed, Vector


class InitialKind(Section, frozen=True):
    """``radius`` that all tokens have to begin with, where they have one: 1 unless it is given.

    Points and tokens of a file begin at their own without it.
    """

    radius: Positive | None = None

    about: ClassVar = {
        "radius": Key(
            "radius of all tokens at time 0 where layer norm leaves it free; if left out each point's own, else 1", 1.0
        )
    }


class Uniform(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """The uniform density ρ̄."""


class Perturbed(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="perturbed"):
    """ρ̄·e^{amplitude·g} normalized, g random of unit variance, equal power in degrees 1 … ``degrees``."""

    amplitude: Positive = 0.01  # small: the linear growth about the uniform density is seen
    degrees: Count = 12
    seed: Seed = 0

    about: ClassVar = {
        "amplitude": Key("standard deviation of the logarithm of the density", 0.1),
        "degrees": Key("largest degree of the random field", 12),
        "seed": Key("seed of the random field", 1),
    }


class Harmonic(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="harmonic"):
    """ρ̄(1 + amplitude·Y), Y the real harmonic of unit mean square; on the circle √2 cos lφ, ``order`` 0."""

    degree: Count
    amplitude: float
    order: int = 0

    about: ClassVar = {
        "degree": Key("l of the harmonic Y", 2),
        "amplitude": Key("factor of Y, which has unit mean square", 0.01),
        "order": Key("m of the harmonic, on the sphere", 0),
    }


class Component(Section, frozen=True):
    """One von Mises–Fisher density, e^{concentration·⟨x, center⟩} with the given share of the mass."""

    center: Vector
    concentration: NotNegative
    mass: NotNegative = 1.0

    about: ClassVar = {
        "center": Key("direction of the largest density", [1.0, 0.0]),
        "concentration": Key("κ of e^{κ⟨x, center⟩}", 50.0),
        "mass": Key("share of the mass, relative to the other components", 0.7),
    }


class VonMisesFisher(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="von_mises_fisher"):
    """A mixture of von Mises–Fisher densities; masses are relative."""

    components: Annotated[tuple[Component, ...], Meta(min_length=1)]

    about: ClassVar = {"components": Key("densities of the mixture", [{"center": [1.0, 0.0], "concentration": 50.0}])}


class Moebius(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="moebius"):
    """The uniform density pushed along ``axis`` by ``parameter``: the exact flow at β = 0."""

    axis: Vector
    parameter: float

    about: ClassVar = {
        "axis": Key("direction towards which the uniform density is pushed", [1.0, 0.0]),
        "parameter": Key("r on the circle, s on the sphere: how far", 0.3),
    }


class Points(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="points"):
    """Point masses, deposited with their mass and first moment; masses are relative, None means equal.

    Directions count, and lengths too where tokens have a radius and ``radius`` is not given.
    Under a causal mask they are in order, as many to each label; by default a label for each.
    """

    points: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    masses: tuple[NotNegative, ...] | None = None

    about: ClassVar = {
        "points": Key("positions of the point masses", [[1.0, 0.0], [0.0, 1.0]]),
        "masses": Key("masses of the points, relative to each other; equal if left out", [0.7, 0.3]),
    }


class Tokens(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="tokens"):
    """Embeddings (n, d) in a .npy file, or the dataset ``dataset`` of an .h5 file: equal point masses.

    Directions count, and lengths too where tokens have a radius and ``radius`` is not given.
    """

    file: str
    dataset: str = "tokens"

    about: ClassVar = {
        "file": Key(".npy file of shape (n, d), or .h5", "tokens.npy"),
        "dataset": Key("name of the dataset in an .h5 file", "tokens"),
    }


class Snapshot(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """A snapshot of another run, ``file``: the last one up to ``time``, by default its last."""

    file: str
    time: NotNegative | None = None

    about: ClassVar = {
        "file": Key("run file", "pair.h5"),
        "time": Key("the last snapshot up to it; the last of all if left out", 5.0, unit="time"),
    }


class Gaussian(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="gaussian"):
    """N(mean, variance) in R^d, where tokens have a radius; a number or one for each coordinate, or a matrix."""

    mean: float | Vector = 0.0
    variance: Positive | Matrix = 1.0

    about: ClassVar = {
        "mean": Key("mean of N(mean, variance): a number, or one for each coordinate", [0.5, 0.0]),
        "variance": Key("a number, or a d×d covariance matrix", 0.3),
    }


class Equiangular(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="equiangular"):
    """Tokens any two of which have the same ``cosine``, at most as many as dimensions; particles only."""

    cosine: Annotated[float, Meta(ge=-1, lt=1)] = 0.0

    about: ClassVar = {"cosine": Key("⟨x, y⟩ of any two tokens", 0.2)}


class Waves(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="waves"):
    """A smooth field over a sequence: ``mean`` + ``amplitude``·g, g of ``modes`` waves with E|g|² = 1, normalized.

    g = Σ_m a_m cos(mπx/length), m = 1 … ``modes``, a_m Gaussian by ``seed``. In a periodic
    sequence waves of odd m have a corner at its ends.
    """

    mean: Vector
    amplitude: NotNegative
    modes: Count = 4
    seed: Seed = 0

    about: ClassVar = {
        "mean": Key("mean of the field over the sequence", [1.0, 0.0]),
        "amplitude": Key("root mean square of the departure from the mean", 0.5),
        "modes": Key("number of cosine waves", 4),
        "seed": Key("seed of the waves' coefficients", 1),
    }


class Interval(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="interval"):
    """The uniform density on [low, high] of the line."""

    low: float
    high: float

    about: ClassVar = {
        "low": Key("left end", -1.0),
        "high": Key("right end", 1.0),
    }


class Array(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="array"):
    """A number ≥ 0 for each cell in its order, in a .npy file or the dataset ``dataset`` of an .h5 file, normalized.

    Under a causal mask (cells,), the same for all labels, or (labels, cells).
    """

    file: str
    dataset: str = "density"

    about: ClassVar = {
        "file": Key(".npy or .h5 file with a number for each cell", "density.npy"),
        "dataset": Key("name of the dataset in an .h5 file", "density"),
    }


class Formula(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="formula"):
    """A formula that the density is in proportion to, nowhere negative, in x, y, z, phi, theta (radians) and label.

    Numbers, pi, + − * / **, exp, log, sqrt, abs, sin, cos, tan, arcsin, arccos, arctan, sinh, cosh, tanh. On the circle
    phi is the angle; on the sphere phi the azimuth and theta the polar angle. label of a causal mask: (k + ½)/labels.
    With an axis: in theta and z = cos(theta), a density on the sphere. On the line: in x. With a free radius: of
    directions.
    """

    density: str

    about: ClassVar = {"density": Key("formula in coordinates, that the density is in proportion to", "1 + 0.5*x")}


class ByLabel(InitialKind, frozen=True, kw_only=True, tag_field="kind", tag="by_label"):
    """Densities of the labels of a causal mask, in order: each of ``parts`` for as many labels as the others."""

    parts: Annotated[
        tuple[Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Array | Formula, ...],
        Meta(min_length=1),
    ]

    about: ClassVar = {
        "parts": Key("an initial density for each label, or for as many labels each", [{"kind": "uniform"}])
    }


Initial = (
    Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Snapshot | Gaussian | Equiangular
    | Waves | Interval | Array | Formula | ByLabel
)  # fmt: skip
