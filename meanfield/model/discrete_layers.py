"""Discrete layers: the push-forward of a density by one layer after another.

    x ← N(αx + Δt (A[ρ](x) + F(x)) / s)          ρ ← the distribution of the new x, all tokens at once

α = 1 with the residual, 0 without. N normalizes on the circle and the sphere, and is the identity on the line. With the
residual this is projected Euler for the flow, of first order in Δt (Geshkovski and others, 2312.10794).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from meanfield.model.layer_norm import LayerNorm
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.push_forward import PushForward
from solvers.timestepping.schedules import is_reached
from solvers.timestepping.state import NonFinite, State, StepResult

Output = Callable[[float, Floats], Floats]
OutputAt = Callable[[float, Floats, Floats], Floats]
ROUNDING = 1e-9  # relative to the duration of a layer: times closer than this are equal


class LayerMap:
    """Layer as a map of densities: ``layer(time, density)`` is the density after the layer.

    A layer moves each token x to N((α − γΔt)x + Δt (A + F)/s), where A is attention and F the feed-forward network. N
    normalizes to unit length on the circle and the sphere, and is the identity on the line. α is 1 with the residual,
    else 0.

    mesh        circle, sphere, or an interval, which represents the line
    output      (time, density) → A + F at the cell centers (cells, d), including the part along x; between the centers
                the output is interpolated to second order
    norm        layer norm: post, cod or ngpt on the circle and the sphere, where s is the speed scale at the time of
                the layer; none on the line, s = 1
    step        Δt > 0
    residual    whether the layer adds x itself. Without the residual, Δt has no effect on the circle and the sphere
    gate        coefficient γ of the decay −γx beside A + F; with a residual only
    output_at   (time, density, points (n, d)) → A + F (n, d), where exact values are available

    Good values: a step of 0.1 with the residual, 1 without.

    Where there is nothing to normalize, at A + F = 0 without a residual, a token does not move.
    """

    def __init__(
        self,
        mesh: Mesh,
        output: Output,
        norm: LayerNorm,
        step: float = 0.1,
        residual: bool = True,
        gate: float = 0.0,
        output_at: OutputAt | None = None,
    ) -> None:
        self.mesh, self.norm, self.step, self.residual, self.gate = mesh, norm, step, residual, gate
        self._output, self._output_at = output, output_at
        self._push = PushForward(mesh)

    @property
    def duration(self) -> float:
        """Return the duration of one layer in units of time: the step Δt with a residual connection, else 1."""
        return self.step if self.residual else 1.0

    def __call__(self, time: float, density: Floats) -> Floats:
        """Return the density (cells,) after a layer at ``time`` that begins with ``density`` (cells,).

        Raises FloatingPointError where the layer is not finite.
        """
        if self._output_at is not None:
            exact = self._output_at
            return self._push.apply(density, lambda points: self.move(time, points, exact(time, density, points)))
        output = self._output(time, density)
        return self._push.apply(
            density, lambda points: self.move(time, points, self._push.dual.interpolate(output, points))
        )

    def move(self, time: float, points: Floats, output: Floats) -> Floats:
        """Return the positions N((α − γΔt)x + Δt (A + F)/s) after a layer of tokens at ``points`` x (n, d).

        ``output`` (n, d) is A + F at these points, attention plus feed-forward network. The layer norm supplies the
        normalization N and the speed scale s; γ is the gate; α is 1 with the residual, else 0.
        """
        return self.norm.layer_map(time, points, output, self.step, residual=self.residual, gate=self.gate)


class Layer(Protocol):
    """Layer of a Transformer as a map: ``layer(time, values)`` is the state after a layer that begins at ``time``.

    ``duration`` is the length of the layer in units of time.
    """

    @property
    def duration(self) -> float: ...

    def __call__(self, time: float, values: Floats, /) -> Floats: ...


class LayerIntegrator:
    """Integrator that advances a state by one layer a step, from one multiple of ``layer.duration`` to the next.

    ``state.steps`` counts layers. A target time does not shorten a layer. Where the end of a layer is within ROUNDING
    durations of the target, the time is set to the target, so that the times of output agree exactly. Raises NonFinite
    with the state after the last finite layer.
    """

    def __init__(self, layer: Layer, to_device: Callable[[Floats], Floats] = lambda values: values) -> None:
        self._layer, self._to_device = layer, to_device

    def begin(self, state: State) -> None:
        state.values = self._to_device(state.values)

    def step(self, state: State, target: float) -> StepResult:
        duration = self._layer.duration
        if is_reached(target, state.time):
            state.time = target
            return StepResult(stable_dt=duration)
        try:
            values = self._layer(state.time, state.values)
        except FloatingPointError as error:
            raise NonFinite(f"at time {state.time:.6g}, layer {state.steps}: {error}") from error
        if not np.isfinite(values).all():
            raise NonFinite(f"at time {state.time:.6g}, layer {state.steps}: the state is not finite")
        state.values[...] = values
        end = (round(state.time / duration) + 1) * duration
        state.time = target if abs(end - target) < ROUNDING * duration else end
        state.steps, state.dt = state.steps + 1, duration
        return StepResult(stable_dt=duration)
