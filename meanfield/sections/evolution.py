"""Sections [stabilizers], [time], [sequence], [handover] and [output]: evolution of a state, and stored results."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.sections.section import Count, Key, NotNegative, Positive, Section


class Output(Section, frozen=True):
    """Times and diagnostics of a run file. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is
    given.

    ``spacing`` of snapshots and samples is linear by default, log with a handover. ``first`` is the first time after 0
    with logarithmic spacing, else None; the default is 1e-4 of the end, with a handover at most 0.1. ``diagnostics``:
    by default all that the domain has, except those of special studies. ``samples`` is the number of intervals between
    their samples. ``checkpoint`` is the wall time between checkpoints in seconds.
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
    """Mechanisms that prevent collapse, drift and blow-up: layer norm, residual, gate and noise.

    ``layer_norm`` is post, pre, peri, mix (post until ``switch``, then pre), ngpt (with ``alpha``), cod or none.
    ``scale`` is the radius g of the sphere on which layer norm keeps tokens (RMS norm: √d). Files hold directions θ =
    x/g: tokens attend by e^{βg²⟨Qθ,Kθ'⟩}, a network adds F(gθ)/g, and noise κ on the sphere of radius g is κ/g² Δ of
    directions. ``residual`` false: a layer replaces a token instead of moving it (depth in layers only). ``gate`` is
    the γ of −γx, for tokens with a radius. ``noise`` is the κ of κ Δρ, with Δ on the sphere of radius ``scale``.
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
            "scheme of layer norm, which fixes or scales the radius of tokens; none: tokens move freely in R^d", "post"
        ),
        "alpha": Key("speed α of tokens with layer_norm = 'ngpt'", 1.0),
        "switch": Key("time at which layer_norm = 'mix' changes from post to pre (1)", 2.0, unit="time"),
        "scale": Key("radius of the sphere that layer norm keeps tokens on (√d for RMS norm)", 1.0),
        "residual": Key("false: a layer replaces a token instead of moving it, with time.method = 'layers'", False),
        "gate": Key("γ of the decay −γx, where tokens have a radius", 0.5, unit="1/time"),
        "noise": Key("diffusion coefficient κ of κΔρ", 0.05, unit="1/time"),
    }

    @property
    def switch_time(self) -> float:
        """Return the time ``switch`` at which the layer norm mix changes from post to pre, 1 by default."""
        return 1.0 if self.switch is None else self.switch


class Time(Section, frozen=True):
    """Depth, as continuous time from 0 to ``end`` or as layers.

    ``method``: ssprk3 by default for densities and for particles with noise or stiff diffusion, else adaptive. adaptive
    keeps the error of a step below ``tolerance``; a given ``tolerance`` selects this method unless there is noise.
    layers: x ← N(αx + step·(A + F)), ``layers`` times. With the residual α = 1 and a layer takes the time ``step``;
    without, α = 0 and a layer takes time 1; ``end`` follows. The default ``step`` is ``end``/``layers``, or 1 if
    neither is given. ``step`` is also the duration of one set of matrices of attention.file. By default ``cfl`` is 0.9
    for a density without noise, where the error of time is far below that of the mesh, and 0.5 with noise and for
    particles. ``stop`` ends a run before ``end``, at a sample: "steady" once the relative change of the state in a unit
    of time is at most ``stop_at`` (1e-6), "clusters" once there are 1 to ``stop_at`` (1) clusters.
    """

    end: Positive = 0.0  # 0 if not given; a parsed case has a positive end
    method: Literal["auto", "ssprk3", "ssprk2", "adaptive", "layers"] = "auto"  # auto is resolved in a parsed case
    tolerance: Annotated[float, Meta(ge=1e-13, le=1e-2)] | None = None
    cfl: Annotated[float, Meta(gt=0, le=1)] = None  # type: ignore[assignment]  # resolved in a parsed case
    layers: Count | None = None
    step: Positive | None = None
    stop: Literal["steady", "clusters"] | None = None
    stop_at: Positive | None = None

    @property
    def counts_layers(self) -> bool:
        """Return whether the time of a parsed case is the number of layers passed."""
        return self.method == "layers" and self.end == self.layers

    about: ClassVar = {
        "end": Key(
            "final time, which is the depth; of layers with a step: layers × step, whatever is given", 40.0, unit="time"
        ),
        "method": Key("SSP Runge–Kutta, adaptive of order 8 (particles), or explicit layers", "ssprk3"),
        "tolerance": Key("relative error of an adaptive step", 1e-9),
        "cfl": Key(
            "largest fraction of a cell's mass that leaves it in a step (0.9, or 0.5 with noise);"
            " particles: step × fastest rate (0.5)",
            0.9,
        ),
        "layers": Key("number of layers, with method = 'layers'", 12),
        "step": Key("time of a layer, and of one set of matrices of attention.file", 0.1, unit="time"),
        "stop": Key("condition that ends a run early, at a sample: a steady state, or few clusters", "steady"),
        "stop_at": Key("bound of the relative change in a unit of time ('steady'), or number of clusters", 1e-6),
    }


class TokenSequence(Section, frozen=True):
    """Particles as a sequence: the representation field u(x), with the position x ∈ [0, ``length``] of a token.

    ``diffusion`` is the κ of κ ∂ₓₓu, which makes neighbors similar. ``ends``: closed with ∂ₓu = 0, or periodic with the
    last token beside the first.
    """

    length: Positive = 1.0
    diffusion: NotNegative = 0.0
    ends: Literal["closed", "periodic"] = "closed"

    about: ClassVar = {
        "length": Key("length L of the sequence: positions from 0 to L", 1.0),
        "diffusion": Key("κ of κ∂ₓₓu between neighbors in the sequence", 0.001, unit="length²/time"),
        "ends": Key("closed: no flux; periodic: the last token is a neighbor of the first", "periodic"),
    }


class Handover(Section, frozen=True):
    """Handover of a collapsed density or of particles to atoms, with which the run continues up to any later time.

    An atom is a point mass that stands for one cluster. ``spread``: the handover takes place once the root mean square
    distance of tokens to the center of their cluster is at most this number of cell widths, for every cluster; for
    particles, once each lies within this multiple of 1e-4 rad of the center of its cluster.
    ``again``: the original state is advanced further and handed over a second time after this delay, in units of the
    time in which the fastest token could move by 1 rad. The difference of both is the error estimate.
    """

    spread: Positive = 1.0
    again: Positive = 10.0

    about: ClassVar = {
        "spread": Key(
            "largest standard deviation of a cluster in cells; particles: largest distance to its center in 1e-4 rad",
            1.0,
        ),
        "again": Key(
            "delay of a second handover, which estimates the error; unit: time for 1 rad at the largest speed",
            10.0,
        ),
    }
