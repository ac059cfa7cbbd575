"""The sections of a case, frozen and typed: every key that a case file may state, with its default."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from meanfield.case.attention import (
    Attention,
    Count,
    FeedForward,
    NotNegative,
    Positive,
    Reaction,
    Section,
    Seed,
    scale_of,
)
from meanfield.case.initial import Initial

Diagnostic = Literal[
    "mass", "entropy", "energy", "speed", "centroid", "clusters", "power", "label_centroid", "variance", "radius",
    "escaped", "cluster_mass", "cluster_center", "pairs", "pairs_close", "entropy_rate", "leaders",
    "drift", "roughness",
]  # fmt: skip
_ON_SPHERES: tuple[Diagnostic, ...] = (
    "mass", "entropy", "energy", "speed", "centroid", "clusters", "power", "cluster_mass", "cluster_center", "pairs",
    "pairs_close",
)  # fmt: skip
DIAGNOSTICS: dict[str, tuple[Diagnostic, ...]] = {  # what can be measured on a manifold
    "circle": _ON_SPHERES,
    "sphere": _ON_SPHERES,
    "axisymmetric": ("mass", "entropy", "energy", "speed", "centroid"),
    "line": ("mass", "centroid", "variance", "radius", "escaped"),
    "free_radius_circle": ("mass", "centroid", "variance", "radius", "escaped", "clusters"),
    "free_radius_sphere": ("mass", "centroid", "variance", "radius", "escaped", "clusters"),
    "particles": (
        "mass", "energy", "speed", "centroid", "variance", "radius", "clusters", "cluster_mass", "cluster_center",
        "pairs", "pairs_close", "leaders", "drift", "roughness",
    ),
}  # fmt: skip
Manifold = Literal[
    "circle", "sphere", "axisymmetric", "line", "free_radius_circle", "free_radius_sphere", "particles"
]  # fmt: skip


class Domain(Section, frozen=True):
    """The space of tokens and its mesh.

    ``resolution``: cells of the circle, of the line and of the polar angle; rings of the sphere from pole to pole.
    ``dimension``: d of S^{d−1}, for axisymmetric and particles. ``labels``: of a causal mask. A parsed case has all
    that it needs. Particles: ``count`` tokens in R^d, drawn from the initial density by ``seed`` (points and tokens of
    a file are as many as they are).
    Free radius: ``radii`` cells from ``innermost`` to ``outermost``, equal within ``core`` and logarithmic beyond; all
    of them grow as e^{``expansion``·t}. Where tokens grow over decades let it be ‖V‖ − gate, which nothing outruns.
    Line: from −``outermost`` to ``outermost``, equal cells within ``core`` and logarithmic ones beyond.
    """

    manifold: Manifold
    resolution: Annotated[int, Meta(ge=4)] | None = None
    dimension: Annotated[int, Meta(ge=2, le=4096)] | None = None
    count: Count | None = None
    seed: Seed | None = None
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
    def place(self) -> str:
        """Where tokens are, as a message says it."""
        return "for particles" if self.manifold == "particles" else f"on the {self.manifold}"

    @property
    def across(self) -> int:
        """``resolution`` of a manifold that has cells."""
        assert self.resolution is not None  # a parsed case has it
        return self.resolution

    @property
    def has_radius(self) -> bool:
        """Whether tokens have a radius beside their direction."""
        return self.manifold.startswith("free_radius")


_FREE_RADIUS: dict[str, float] = {  # radial steps of 4 %: a Gaussian of variance 0.3 is followed to 1 %
    "radii": 128,
    "innermost": 0.02,
    "outermost": 100.0,
    "core": 2.0,
    "expansion": 0.0,
}
DOMAIN_DEFAULTS: dict[str, dict[str, float]] = {  # good for densities about as wide as 1
    "axisymmetric": {"dimension": 3},
    "particles": {"dimension": 3, "seed": 0},
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


class Time(Section, frozen=True):
    """Depth, as continuous time from 0 to ``end``, or in layers.

    ``method`` ssprk3 for densities, and for particles with noise or stiff diffusion, else adaptive, unless it is given;
    adaptive keeps the error of a step below ``tolerance``, and is chosen where this is given, if there is no noise.
    layers: x ← N(αx + step·(A + F)), ``layers`` times; α = 1 and a layer takes ``step`` of time with the residual,
    α = 0 and 1 without; ``end`` follows. Without ``step`` it is ``end``/``layers``, and 1 where neither is given.
    ``step`` is also the time that one set of matrices of attention.file lasts. A good ``cfl`` is 0.5.
    """

    end: Positive = 0.0  # not given; a parsed case has it
    method: Literal["auto", "ssprk3", "ssprk2", "adaptive", "layers"] = "auto"  # a parsed case has another
    tolerance: Annotated[float, Meta(ge=1e-13, le=1e-2)] | None = None
    cfl: Annotated[float, Meta(gt=0, le=1)] = 0.5
    layers: Count | None = None
    step: Positive | None = None


class TokenSequence(Section, frozen=True):
    """Particles in their order as a sequence: the representation field u(x), x ∈ [0, ``length``] the token's position.

    ``diffusion``: the κ of κ ∂ₓₓu, by which neighbours become alike.
    """

    length: Positive = 1.0
    diffusion: NotNegative = 0.0


class HandOver(Section, frozen=True):
    """When what has collapsed, a density or particles, goes on as atoms, its clusters as point masses: to any time.

    ``spread``: once tokens lie within that many cell widths (root mean square) of their cluster's center, for every
    cluster; particles: all of them within that many times 1e-4 rad. ``again`` (times in which the fastest token could
    move by a radian): after it what is carried on meanwhile is handed over a second time, and the difference is the
    estimate of the error.
    """

    spread: Positive = 1.0
    again: Positive = 10.0


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``spacing`` of snapshots and samples: linear, and log with a hand-over, unless it is given.
    ``first`` is the first time after 0 where the spacing is logarithmic, else None (default 1e-4 of the end, with a
    hand-over at most 0.1).
    ``diagnostics``: by default all that there are on the manifold. ``samples`` counts their samples, ``checkpoint`` is
    seconds of wall time between checkpoints.
    """

    snapshots: Count | None = None
    every: Positive | None = None
    times: Annotated[tuple[NotNegative, ...], Meta(min_length=1)] | None = None
    spacing: Literal["linear", "log"] | None = None
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
    sequence: TokenSequence | None = None
    hand_over: HandOver | None = None
    output: Output = Output()

    @property
    def tokens_have_radius(self) -> bool:
        """Whether tokens have a radius beside their direction."""
        free = self.stabilizers.layer_norm in ("pre", "peri", "mix", "none")
        return self.domain.has_radius or (self.domain.manifold == "particles" and free)

    @property
    def beta_on_unit_sphere(self) -> float:
        """β of the same law on the unit sphere: tokens on a sphere of radius g attend as there with β g²."""
        return self.attention.beta_effective * self.stabilizers.scale**2

    @property
    def possible_diagnostics(self) -> tuple[Diagnostic, ...]:
        """What can be measured of this case."""
        manifold = self.domain.manifold
        by_label = self.attention.mask == "causal" and manifold != "particles"
        labels: tuple[Diagnostic, ...] = ("label_centroid",) if by_label else ()
        without = set() if manifold != "particles" or self.tokens_have_radius else {"variance", "radius"}
        without |= {"drift", "roughness"} if self.sequence is None else set()
        identities = self._is_gradient_flow and manifold in ("circle", "sphere")
        rate: tuple[Diagnostic, ...] = ("entropy_rate",) if identities else ()
        return tuple(name for name in DIAGNOSTICS[manifold] if name not in without) + labels + rate

    @property
    def _is_gradient_flow(self) -> bool:
        """Whether tokens move by Q = K = V = I alone, from which the entropy's rate follows."""
        attention = self.attention
        ones = attention.is_scalar and all(
            scale_of(getattr(attention.all_heads[0], name)) == 1.0 for name in ("query", "key", "value")
        )
        plain = attention.kernel == "exponential" and attention.normalization != "sinkhorn" and attention.mask == "none"
        return ones and plain and self.stabilizers.layer_norm == "post" and self.feed_forward is None
