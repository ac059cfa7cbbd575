"""Sections [stabilizers], [time], [sequence], [hand_over] and [output]: evolution of a state, and what a run keeps."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.sections.section import Count, Key, NotNegative, Positive, Section


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``spacing`` of snapshots and samples: linear, and log with a handover, unless it is given.
    ``first`` is the first time after 0 where the spacing is logarithmic, else None (default 1e-4 of the end, with a
    handover at most 0.1).
    ``diagnostics``: by default all that there are on the manifold. ``samples`` counts their samples, ``checkpoint`` is
    seconds of wall time between checkpoints.
    """

    snapshots: Count | None = None
    every: Positive | None = None
    times: Annotated[tuple[NotNegative, ...], Meta(min_length=1)] | None = None
    spacing: Literal["linear", "log"] | None = None
    first: Positive | None = None
    diagnostics: tuple[str, ...] | None = None
    samples: Count = 400
    checkpoint: Positive = 60.0

    about: ClassVar = {
        "snapshots": Key("number of intervals between snapshots", 100),
        "every": Key("time between snapshots", 0.5, unit="time"),
        "times": Key("times of snapshots", [0.0, 1.0, 10.0], unit="time"),
        "spacing": Key("distribution of snapshots and samples in time", "log"),
        "first": Key("first time after 0 with spacing = 'log'", 0.001, unit="time"),
        "diagnostics": Key("diagnostics to record; all that the domain has if left out", ["mass", "energy"]),
        "samples": Key("number of intervals between samples of the diagnostics", 400),
        "checkpoint": Key("wall time between checkpoints", 60.0, unit="s"),
    }


class Stabilizers(Section, frozen=True):
    """What holds collapse, drift and blow-up back.

    ``layer_norm`` post, pre, peri, mix (post until ``switch``, then pre), ngpt (with ``alpha``), cod or none; ``scale``
    is the radius g of the sphere that it keeps tokens on (RMS norm: √d). Files hold directions θ = x/g: tokens attend
    by e^{βg²⟨Qθ,Kθ'⟩}, a network adds F(gθ)/g, and noise κ acts on that sphere, which is κ/g² Δ of directions.
    ``residual`` false: a layer replaces a token instead of moving it (depth in layers only). ``gate``: the γ of −γx,
    where tokens have a radius. ``noise``: the κ of κ Δρ, Δ on the sphere of radius ``scale``.
    """

    layer_norm: str = "post"
    alpha: Positive = 1.0
    switch: NotNegative | None = None
    scale: Positive = 1.0
    residual: bool = True
    gate: NotNegative = 0.0
    noise: NotNegative = 0.0

    about: ClassVar = {
        "layer_norm": Key(
            "scheme of layer norm, which fixes or scales the radius of tokens; none: they are free in R^d", "post"
        ),
        "alpha": Key("speed α of tokens with layer_norm = 'ngpt'", 1.0),
        "switch": Key("time at which layer_norm = 'mix' changes from post to pre", 2.0, unit="time"),
        "scale": Key("radius of the sphere that layer norm keeps tokens on (√d for RMS norm)", 1.0),
        "residual": Key("false: a layer replaces a token instead of moving it, with time.method = 'layers'", False),
        "gate": Key("γ of the decay −γx, where tokens have a radius", 0.5, unit="1/time"),
        "noise": Key("diffusion coefficient κ of κΔρ", 0.05, unit="1/time"),
    }


class Time(Section, frozen=True):
    """Depth, as continuous time from 0 to ``end``, or in layers.

    ``method`` ssprk3 for densities, and for particles with noise or stiff diffusion, else adaptive, unless it is given;
    adaptive keeps the error of a step below ``tolerance``, and is chosen where this is given, if there is no noise.
    layers: x ← N(αx + step·(A + F)), ``layers`` times; α = 1 and a layer takes ``step`` of time with the residual,
    α = 0 and 1 without; ``end`` follows. Without ``step`` it is ``end``/``layers``, and 1 where neither is given.
    ``step`` is also the time that one set of matrices of attention.file lasts. A good ``cfl`` is 0.5.
    ``stop`` ends a run before ``end``, at a sample: "steady" once the state changes by at most ``stop_at`` (1e-6) of
    itself in a unit of time, "clusters" once there are ``stop_at`` (1) or fewer.
    """

    end: Positive = 0.0  # not given; a parsed case has it
    method: Literal["auto", "ssprk3", "ssprk2", "adaptive", "layers"] = "auto"  # a parsed case has another
    tolerance: Annotated[float, Meta(ge=1e-13, le=1e-2)] | None = None
    cfl: Annotated[float, Meta(gt=0, le=1)] = 0.5
    layers: Count | None = None
    step: Positive | None = None
    stop: Literal["steady", "clusters"] | None = None
    stop_at: Positive | None = None

    @property
    def counts_layers(self) -> bool:
        """Whether time is the number of layers so far, in a parsed case."""
        return self.method == "layers" and self.end == self.layers

    about: ClassVar = {
        "end": Key("last time, that is depth", 40.0, unit="time"),
        "method": Key("SSP Runge–Kutta, adaptive of order 8 (particles), or explicit layers", "ssprk3"),
        "tolerance": Key("relative error of an adaptive step", 1e-9),
        "cfl": Key("part of a cell's mass that may leave it in a step", 0.5),
        "layers": Key("number of layers, with method = 'layers'", 12),
        "step": Key("time of a layer, and of one set of matrices of attention.file", 0.1, unit="time"),
        "stop": Key("condition that ends a run early, at a sample: a steady state, or few clusters", "steady"),
        "stop_at": Key("relative change in a unit of time with stop = 'steady', number with stop = 'clusters'", 1e-6),
    }


class TokenSequence(Section, frozen=True):
    """Particles in their order as a sequence: the representation field u(x), x ∈ [0, ``length``] the token's position.

    ``diffusion``: the κ of κ ∂ₓₓu, by which neighbors become alike. ``ends``: closed, ∂ₓu = 0 there, or periodic, the
    last token beside the first.
    """

    length: Positive = 1.0
    diffusion: NotNegative = 0.0
    ends: Literal["closed", "periodic"] = "closed"

    about: ClassVar = {
        "length": Key("length of the sequence: positions run from 0 to it", 1.0),
        "diffusion": Key("κ of κ∂ₓₓu between neighbors in the sequence", 0.001, unit="length²/time"),
        "ends": Key("closed: nothing passes them; periodic: the last token is a neighbor of the first", "periodic"),
    }


class HandOver(Section, frozen=True):
    """When what has collapsed, a density or particles, continues as atoms, its clusters as point masses: to any time.

    ``spread``: once tokens lie within that many cell widths (root mean square) of their cluster's center, for every
    cluster; particles: all of them within that many times 1e-4 rad. ``again`` (times in which the fastest token could
    move by a radian): after it what is carried on meanwhile is handed over a second time, and the difference is the
    estimate of the error.
    """

    spread: Positive = 1.0
    again: Positive = 10.0

    about: ClassVar = {
        "spread": Key("largest distance to a cluster's center, in cells (particles: in 1e-4 rad)", 1.0),
        "again": Key("delay of a second handover, in times in which a token moves by 1 rad", 10.0),
    }
