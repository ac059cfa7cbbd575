"""Section [initial], a class for each kind: the distribution of tokens at time 0."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from meanfield.sections.section import Count, Matrix, NotNegative, Positive, Section, Seed, Vector


class Start(Section, frozen=True):
    """``radius`` that all tokens have to begin with, where they have one: 1 unless it is given.

    Points and tokens of a file begin at their own without it.
    """

    radius: Positive | None = None


class Uniform(Start, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """The uniform density ρ̄."""


class Perturbed(Start, frozen=True, kw_only=True, tag_field="kind", tag="perturbed"):
    """ρ̄·e^{amplitude·g} normalized, g random of unit variance, equal power in degrees 1 … ``degrees``."""

    amplitude: Positive
    degrees: Count = 12
    seed: Seed = 0


class Harmonic(Start, frozen=True, kw_only=True, tag_field="kind", tag="harmonic"):
    """ρ̄(1 + amplitude·Y), Y the real harmonic of unit mean square; on the circle √2 cos lφ, ``order`` 0."""

    degree: Count
    amplitude: float
    order: int = 0


class Component(Section, frozen=True):
    """One von Mises–Fisher bump, e^{concentration·⟨x, center⟩} with the given share of the mass."""

    center: Vector
    concentration: NotNegative
    mass: NotNegative = 1.0


class VonMisesFisher(Start, frozen=True, kw_only=True, tag_field="kind", tag="von_mises_fisher"):
    """A mixture of von Mises–Fisher bumps; masses are relative."""

    components: Annotated[tuple[Component, ...], Meta(min_length=1)]


class Moebius(Start, frozen=True, kw_only=True, tag_field="kind", tag="moebius"):
    """The uniform density pushed along ``axis`` by ``parameter``: the exact flow at β = 0."""

    axis: Vector
    parameter: float


class Points(Start, frozen=True, kw_only=True, tag_field="kind", tag="points"):
    """Point masses, deposited with their mass and first moment; masses are relative, None means equal.

    Directions count, and lengths too where tokens have a radius and ``radius`` is not given.
    Under a causal mask they are in order, as many to each label; by default a label for each.
    """

    points: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    masses: tuple[NotNegative, ...] | None = None


class Tokens(Start, frozen=True, kw_only=True, tag_field="kind", tag="tokens"):
    """Embeddings (n, d) in a .npy file, or the dataset ``dataset`` of an .h5 file: equal point masses.

    Directions count, and lengths too where tokens have a radius and ``radius`` is not given.
    """

    file: str
    dataset: str = "tokens"


class Snapshot(Start, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """A snapshot of another run, ``file``: the last one up to ``time``, by default its last."""

    file: str
    time: NotNegative | None = None


class Gaussian(Start, frozen=True, kw_only=True, tag_field="kind", tag="gaussian"):
    """N(mean, variance) in R^d, where tokens have a radius; a number or one for each coordinate, or a matrix."""

    mean: float | Vector = 0.0
    variance: Positive | Matrix = 1.0


class Equiangular(Start, frozen=True, kw_only=True, tag_field="kind", tag="equiangular"):
    """Tokens any two of which have the same ``cosine``, at most as many as dimensions; particles only."""

    cosine: Annotated[float, Meta(ge=-1, lt=1)] = 0.0


class Waves(Start, frozen=True, kw_only=True, tag_field="kind", tag="waves"):
    """A smooth field over a sequence: ``mean`` + ``amplitude``·g, g of ``modes`` waves with E|g|² = 1, normalized.

    g = Σ_m a_m cos(mπx/length), m = 1 … ``modes``, a_m Gaussian by ``seed``.
    """

    mean: Vector
    amplitude: NotNegative
    modes: Count = 4
    seed: Seed = 0


class Interval(Start, frozen=True, kw_only=True, tag_field="kind", tag="interval"):
    """The uniform density on [low, high] of the line."""

    low: float
    high: float


Initial = (
    Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Snapshot | Gaussian | Equiangular
    | Waves | Interval
)  # fmt: skip
