"""Sections [stabilizers], [time], [sequence] and [hand_over]: how a state evolves, whatever the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from meanfield.model.layer_norm import LAYER_NORMS
from meanfield.sections.section import Count, NotNegative, Positive, Section

if TYPE_CHECKING:
    NormName = str
else:
    NormName = Literal[tuple(LAYER_NORMS)]


class Stabilizers(Section, frozen=True):
    """What holds collapse, drift and blow-up back.

    ``layer_norm`` post, pre, peri, mix (post until ``switch``, then pre), ngpt (with ``alpha``), cod or none; ``scale``
    is the radius g of the sphere that it keeps tokens on (RMS norm: √d). Files hold directions θ = x/g: tokens attend
    by e^{βg²⟨Qθ,Kθ'⟩}, a network adds F(gθ)/g, and noise κ acts on that sphere, which is κ/g² Δ of directions.
    ``residual`` false: a layer replaces a token instead of moving it (depth in layers only). ``gate``: the γ of −γx,
    where tokens have a radius. ``noise``: the κ of κ Δρ, Δ on the sphere of radius ``scale``.
    """

    layer_norm: NormName = "post"
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
