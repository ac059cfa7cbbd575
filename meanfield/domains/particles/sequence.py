"""Tokens in a sequence: the representation field u(x, t) ∈ R^d over token position x, with depth t.

    ∂ₜu = κ ∂ₓₓu + Σ_h w_h V_h ∫ softmax_y(β⟨Q_h u(x), K_h u(y)⟩) u(y) dy + F(u) − γu ,     ∂ₓu = 0 at both ends,
    or u periodic

Layer norm keeps |u| = 1; without it u may drift and blow up. On n equal cells of x this is the motion of n ordered
tokens (meanfield/domains/particles/velocity.py), to which this module adds κ ∂ₓₓu, diffusion between neighboring
tokens. For κ = 0 the distribution of u therefore satisfies the equation of the density.

Source: this form of a Transformer, with diffusion, non-local attention, a local reaction and stabilizers, is
reconstructed from the abstract of Zhang and Zhou (2408.09523).
"""

from __future__ import annotations

import numpy as np

from solvers.backends import backend_for
from solvers.mesh.mesh import Floats

MAX_ROTATION = 0.1  # κ|∂ₓu|²dt of a substep on the sphere; the error is proportional to its square


class SequenceDiffusion:
    """Diffusion κ ∂ₓₓu between neighboring tokens of a sequence: a rate, and a stiff term for steps of any length.

    The sequence is n equal cells of [0, L], closed or periodic, whose tokens are samples of a field u(x).

    coefficient   κ ≥ 0
    length        L > 0
    on_sphere     whether layer norm keeps the length of each u (n, d): rates are then tangent, P_u κ ∂ₓₓu, and a step
                  ends with u/|u|, of second order in its length
    periodic      whether the last cell is a neighbor of the first; else there is no flux through the ends

    Two-point fluxes: mode cos(kx), k = mπ/L, 2mπ/L where periodic, decays at κ (2 sin(kh/2)/h)², second order in h =
    L/n. Off the sphere a step is exact for these fluxes, so that u stays within the convex hull of its previous values.
    """

    def __init__(
        self, coefficient: float, length: float = 1.0, on_sphere: bool = False, periodic: bool = False
    ) -> None:
        self.coefficient, self.length, self.on_sphere, self.periodic = coefficient, length, on_sphere, periodic

    def for_tokens(self, on_sphere: bool) -> SequenceDiffusion:
        """Return this diffusion for tokens whose lengths layer norm keeps (on the sphere), or for free tokens."""
        return SequenceDiffusion(self.coefficient, self.length, on_sphere, self.periodic)

    def rate(self, values: Floats) -> Floats:
        """Return the rate of change κ ∂ₓₓu (n, d) of tokens u by diffusion along the sequence.

        On the sphere it is the tangent part.
        """
        flux = self.coefficient * (len(values) / self.length) ** 2 * self.differences(values)
        xp = backend_for(values).xp
        if self.periodic:
            rate: Floats = xp.concatenate([flux[1:], flux[:1]]) - flux
        else:
            rate = xp.zeros_like(values)
            rate[:-1] += flux
            rate[1:] -= flux
        if not self.on_sphere:
            return rate
        along = xp.einsum("nd,nd->n", rate, values) / xp.einsum("nd,nd->n", values, values)
        tangent: Floats = rate - along[:, None] * values
        return tangent

    def longest_step(self, values: Floats, time: float = 0.0) -> float:
        """Return infinity: a step of any length is stable, since long steps are divided internally."""
        return np.inf

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> float:
        """Advance tokens u (n, d) by diffusion over the time dt in place, and return 0.

        The result has a meaning only for stiff terms of densities, which return the least density; tokens have none.
        """
        if not self.on_sphere:
            values[...] = self._diffuse(dt, values)
            return 0.0
        lengths, left = _lengths(values), dt
        while left > 0:
            part = left / max(np.ceil(left * self._steepest(values, lengths) / MAX_ROTATION), 1.0)
            values[...] = self._diffuse_directions(part, values, lengths)
            left = left - part if part < left else 0.0
        return 0.0

    def differences(self, values: Floats) -> Floats:
        """Return the differences u_i − u_{i−1} of neighboring tokens: (n − 1, d), or (n, d) in a periodic sequence.

        The first difference of a periodic sequence is that from its last token.
        """
        steps: Floats = values[1:] - values[:-1]
        if self.periodic:
            steps = backend_for(values).xp.concatenate([values[:1] - values[-1:], steps])
        return steps

    def _diffuse_directions(self, dt: float, values: Floats, lengths: Floats) -> Floats:
        """Return tokens u (n, d) of given lengths after diffusion over the time dt, rescaled to these lengths.

        Richardson extrapolation removes the error proportional to dt².
        """
        half = _of_length(lengths, self._diffuse(dt / 2, values))
        halves = _of_length(lengths, self._diffuse(dt / 2, half))
        return _of_length(lengths, 2 * halves - _of_length(lengths, self._diffuse(dt, values)))

    def _steepest(self, values: Floats, lengths: Floats) -> float:
        """Return the largest κ|∂ₓu|²/|u|² of tokens u along a sequence.

        This number is the rate at which curvature of the sphere affects diffusion.
        """
        steps = self.differences(values) / (lengths if self.periodic else lengths[1:])
        squares = backend_for(steps).xp.einsum("nd,nd->n", steps, steps)
        return self.coefficient * (len(values) / self.length) ** 2 * float(squares.max()) if len(squares) else 0.0

    def _diffuse(self, dt: float, values: Floats) -> Floats:
        """Return e^{dt κ ∂ₓₓ} u (n, d): tokens u after free diffusion along the sequence, by Fourier transforms.

        Closed ends are mirrored, so that u is a periodic field of 2n cells.
        """
        n, backend = len(values), backend_for(values)
        whole = (values if self.periodic else backend.xp.concatenate([values, values[::-1]])).T
        cells = whole.shape[1]
        waves = 2 * n / self.length * np.sin(np.pi / cells * np.arange(cells // 2 + 1))
        decay = backend.to_device(np.exp(-self.coefficient * dt * waves**2))
        return backend.irfft(backend.rfft(whole.copy()) * decay, cells)[:, :n].T


def _of_length(lengths: Floats, values: Floats) -> Floats:
    """Return vectors (n, d), rescaled to the lengths (n, 1)."""
    return values * (lengths / _lengths(values))


def _lengths(values: Floats) -> Floats:
    """Return the lengths (n, 1) of vectors (n, d)."""
    lengths: Floats = np.sqrt(backend_for(values).xp.einsum("nd,nd->n", values, values))[:, None]
    return lengths
