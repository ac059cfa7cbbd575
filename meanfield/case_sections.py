"""The sections of a case, frozen and typed: every key that a case file may state, with its default."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from meanfield.case_attention import (
    Attention,
    Count,
    FeedForward,
    Matrix,
    NotNegative,
    Positive,
    Reaction,
    Section,
    Seed,
    Vector,
)

Diagnostic = Literal[
    "mass", "entropy", "energy", "speed", "centroid", "clusters", "power", "label_centroid", "variance", "radius",
    "escaped",
]  # fmt: skip
_ON_SPHERES: tuple[Diagnostic, ...] = ("mass", "entropy", "energy", "speed", "centroid", "clusters", "power")
DIAGNOSTICS: dict[str, tuple[Diagnostic, ...]] = {  # what can be measured on a manifold
    "circle": _ON_SPHERES,
    "sphere": _ON_SPHERES,
    "axisymmetric": ("mass", "entropy", "energy", "speed", "centroid"),
    "line": ("mass", "centroid", "variance", "radius", "escaped"),
    "free_radius_circle": ("mass", "centroid", "variance", "radius", "escaped", "clusters"),
    "free_radius_sphere": ("mass", "centroid", "variance", "radius", "escaped", "clusters"),
}


class Domain(Section, frozen=True):
    """The space of tokens and its mesh.

    ``resolution``: cells of the circle, of the line and of the polar angle; rings of the sphere from pole to pole.
    ``dimension``: d of S^{d−1}, axisymmetric only. ``labels``: of a causal mask. A parsed case has all that it needs.
    Free radius: ``radii`` cells from ``innermost`` to ``outermost``, equal within ``core`` and logarithmic beyond; all
    of them grow as e^{``expansion``·t}. Where tokens grow over decades let it be ‖V‖ − gate, which nothing outruns.
    Line: from −``outermost`` to ``outermost``, equal cells within ``core`` and logarithmic ones beyond.
    """

    manifold: Literal["circle", "sphere", "axisymmetric", "line", "free_radius_circle", "free_radius_sphere"]
    resolution: Annotated[int, Meta(ge=4)]
    dimension: Annotated[int, Meta(ge=2, le=4096)] | None = None
    labels: Count | None = None
    radii: Annotated[int, Meta(ge=4)] | None = None
    innermost: Positive | None = None
    outermost: Positive | None = None
    core: Positive | None = None
    expansion: float | None = None

    @property
    def d(self) -> int:
        """The d of the ambient R^d."""
        fixed = {"circle": 2, "sphere": 3, "line": 1, "free_radius_circle": 2, "free_radius_sphere": 3}
        return fixed.get(self.manifold) or self.dimension or 3

    @property
    def has_radius(self) -> bool:
        """Whether tokens have a radius beside their direction."""
        return self.manifold.startswith("free_radius")


_FREE_RADIUS: dict[str, float] = {
    "radii": 64,
    "innermost": 0.02,
    "outermost": 100.0,
    "core": 2.0,
    "expansion": 0.0,
}
DOMAIN_DEFAULTS: dict[str, dict[str, float]] = {  # good for densities about as wide as 1
    "axisymmetric": {"dimension": 3},
    "line": {"outermost": 20.0, "core": 5.0},
    "free_radius_circle": _FREE_RADIUS,
    "free_radius_sphere": _FREE_RADIUS,
}
LABELS = 8  # of a causal mask, unless they are given


class Stabilizers(Section, frozen=True):
    """What holds collapse, drift and blow-up back.

    ``layer_norm`` post, pre, peri, mix (post until ``switch``, then pre), ngpt (with ``alpha``), cod or none; ``scale``
    is the radius of the sphere that it keeps tokens on (RMS norm: √d).
    ``residual`` false: a layer replaces a token instead of moving it (depth in layers only). ``gate``: the γ of −γx,
    where tokens have a radius. ``noise``: the κ of κ Δρ.
    """

    layer_norm: Literal["post", "pre", "peri", "mix", "ngpt", "cod", "none"] = "post"
    alpha: Positive = 1.0
    switch: NotNegative | None = None
    scale: Positive = 1.0
    residual: bool = True
    gate: NotNegative = 0.0
    noise: NotNegative = 0.0


class Start(Section, frozen=True):
    """``radius`` that all tokens have to begin with, where they have one: 1 unless it is given."""

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

    Under a causal mask they are in order, as many to each label; by default a label for each.
    """

    points: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    masses: tuple[NotNegative, ...] | None = None


class Tokens(Start, frozen=True, kw_only=True, tag_field="kind", tag="tokens"):
    """Embeddings (n, d) in a .npy file, or the dataset ``dataset`` of an .h5 file, normalized: equal point masses."""

    file: str
    dataset: str = "tokens"


class Gaussian(Start, frozen=True, kw_only=True, tag_field="kind", tag="gaussian"):
    """N(mean, variance) in R^d, where tokens have a radius; a number or one for each coordinate, or a matrix."""

    mean: float | Vector = 0.0
    variance: Positive | Matrix = 1.0


class Interval(Start, frozen=True, kw_only=True, tag_field="kind", tag="interval"):
    """The uniform density on [low, high] of the line."""

    low: float
    high: float


Initial = Uniform | Perturbed | Harmonic | VonMisesFisher | Moebius | Points | Tokens | Gaussian | Interval


class Time(Section, frozen=True):
    """Depth, as continuous time from 0 to ``end``, or in layers.

    ``method`` layers: x ← N(αx + step·(A + F)), ``layers`` times; α = 1 and a layer takes ``step`` of time with the
    residual, α = 0 and 1 without; ``end`` follows.
    ``step`` is also the time that one set of matrices of attention.file lasts. A good ``cfl`` is 0.5.
    """

    end: Positive = 0.0  # not given; a parsed case has it
    method: Literal["ssprk3", "ssprk2", "layers"] = "ssprk3"
    cfl: Annotated[float, Meta(gt=0, le=1)] = 0.5
    layers: Count | None = None
    step: Positive | None = None


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``first`` is the first time after 0 where the spacing is logarithmic (default 1e-4 of the end), else None.
    ``diagnostics``: by default all that there are on the manifold. ``samples`` counts their samples, ``checkpoint`` is
    seconds of wall time between checkpoints.
    """

    snapshots: Count | None = None
    every: Positive | None = None
    times: Annotated[tuple[NotNegative, ...], Meta(min_length=1)] | None = None
    spacing: Literal["linear", "log"] = "linear"
    first: Positive | None = None
    diagnostics: tuple[Diagnostic, ...] | None = None
    samples: Count = 400
    checkpoint: Positive = 60.0


class Case(Section, frozen=True):
    """What to run: the resolved content of a case file."""

    domain: Domain
    attention: Attention
    initial: Initial
    time: Time = Time()
    title: str = ""
    feed_forward: FeedForward | None = None
    reaction: Reaction | None = None
    stabilizers: Stabilizers = Stabilizers()
    output: Output = Output()

    @property
    def possible_diagnostics(self) -> tuple[Diagnostic, ...]:
        """What can be measured of this case."""
        labels: tuple[Diagnostic, ...] = ("label_centroid",) if self.attention.mask == "causal" else ()
        return DIAGNOSTICS[self.domain.manifold] + labels
