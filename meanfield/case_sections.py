"""The sections of a case, frozen and typed: every key that a case file may state, with its default."""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0)]
Vector = tuple[float, ...]
Matrix = tuple[Vector, ...]
Diagnostic = Literal["mass", "entropy", "energy", "speed", "centroid", "clusters", "power"]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a case file; unknown keys are refused."""


class Domain(Section, frozen=True):
    """The manifold and its mesh: ``resolution`` cells on the circle, or rings from pole to pole."""

    manifold: Literal["circle", "sphere"]
    resolution: Annotated[int, Meta(ge=4)]

    @property
    def dimension(self) -> int:
        """The d of the ambient R^d."""
        return {"circle": 2, "sphere": 3}[self.manifold]


class Attention(Section, frozen=True):
    """The kernel e^{β⟨Qx, Ky⟩}, divided by its mean (softmax) or not, and the values Vy.

    ``rescaled`` (unnormalized only) has the kernel e^{β(⟨x,y⟩ − 1)} instead: the same flow, with clock e^β t.
    Matrices are d×d, None is the identity; in this release they are multiples of it.
    """

    beta: NotNegative
    normalization: Literal["softmax", "unnormalized"] = "softmax"
    rescaled: bool = False
    query: Matrix | None = None
    key: Matrix | None = None
    value: Matrix | None = None

    @property
    def beta_effective(self) -> float:
        """β times the scales of query and key: the kernel is e^{beta_effective ⟨x,y⟩}. May be negative."""
        return self.beta * _scale(self.query) * _scale(self.key)

    @property
    def value_scale(self) -> float:
        """The v of V = v I. May be negative."""
        return _scale(self.value)

    @property
    def log_kernel_bound(self) -> float:
        """Logarithm of the largest weight that a token can get: 0 for softmax."""
        if self.normalization == "softmax":
            return 0.0
        beta = self.beta_effective
        return abs(beta) - beta if self.rescaled else abs(beta)

    @property
    def speed_bound(self) -> float:
        """An upper bound of |X|, the speed of any token."""
        return abs(self.value_scale) * math.exp(self.log_kernel_bound)


class Stabilizers(Section, frozen=True):
    """What holds collapse back; ``noise`` is the κ of κ Δρ."""

    noise: NotNegative = 0.0


class Uniform(Section, frozen=True, tag_field="kind", tag="uniform"):
    """The uniform density ρ̄."""


class Perturbed(Section, frozen=True, tag_field="kind", tag="perturbed"):
    """ρ̄·e^{amplitude·g} normalized, g random of unit variance, equal power in degrees 1 … ``degrees``."""

    amplitude: Positive
    degrees: Count = 12
    seed: Seed = 0


class Harmonic(Section, frozen=True, tag_field="kind", tag="harmonic"):
    """ρ̄(1 + amplitude·Y), Y the real harmonic of unit mean square; on the circle √2 cos lφ, ``order`` 0."""

    degree: Count
    amplitude: float
    order: int = 0


class Component(Section, frozen=True):
    """One von Mises–Fisher bump, e^{concentration·⟨x, center⟩} with the given share of the mass."""

    center: Vector
    concentration: NotNegative
    mass: NotNegative = 1.0


class VonMisesFisher(Section, frozen=True, tag_field="kind", tag="von_mises_fisher"):
    """A mixture of von Mises–Fisher bumps; masses are relative."""

    components: Annotated[tuple[Component, ...], Meta(min_length=1)]


class Moebius(Section, frozen=True, tag_field="kind", tag="moebius"):
    """The uniform density pushed along ``axis`` by ``parameter``: the exact flow at β = 0."""

    axis: Vector
    parameter: float


class Points(Section, frozen=True, tag_field="kind", tag="points"):
    """Point masses, deposited with their mass and first moment; masses are relative, None means equal."""

    points: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    masses: tuple[NotNegative, ...] | None = None


Initial = Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points


class Time(Section, frozen=True):
    """Depth, as continuous time from 0 to ``end``. A good ``cfl`` is 0.5; smaller only to study the error."""

    end: Positive
    method: Literal["ssprk3", "ssprk2"] = "ssprk3"
    cfl: Annotated[float, Meta(gt=0, le=1)] = 0.5


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``first`` is the first time after 0 where the spacing is logarithmic (default 1e-4 of the end), else None.
    ``samples`` counts samples of the diagnostics, ``checkpoint`` is seconds of wall time between checkpoints.
    """

    snapshots: Count | None = None
    every: Positive | None = None
    times: Annotated[tuple[NotNegative, ...], Meta(min_length=1)] | None = None
    spacing: Literal["linear", "log"] = "linear"
    first: Positive | None = None
    diagnostics: tuple[Diagnostic, ...] = get_args(Diagnostic)
    samples: Count = 400
    checkpoint: Positive = 60.0


class Case(Section, frozen=True):
    """What to run: the resolved content of a case file."""

    domain: Domain
    attention: Attention
    initial: Initial
    time: Time
    title: str = ""
    stabilizers: Stabilizers = Stabilizers()
    output: Output = Output()


def _scale(matrix: Matrix | None) -> float:
    return 1.0 if matrix is None else matrix[0][0]
