"""Velocity of atoms: the exact mean-field velocity of a density that is k weighted point masses.

    θ̇_i = P_i (Σ_h w_h V_h Σ_j a_ij x_j + F(x_i)) / s ,   a_ij = m_j e^{β⟨Q_h x_i, K_h x_j⟩} / Z_hi

Clusters far apart move at rates e^{−cβ}, far below the rounding of the output of attention, whose largest part points
along x_i. The velocity is therefore summed from parts that are small themselves: V = vI + V' gives v Σ_{j≠i} a_ij P_i
x_j, with P_i x_j from x_j − x_i (or from x_j + x_i near the antipode), and exponents from the differences as well. The
error is relative to the largest part, which is small where V is a multiple of the identity and F = 0. A sum of parts
that cancel to rounding counts as zero, so that equilibria are exact.

Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), with masses in the place of 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Factor, Head, matrix_of, multiple
from meanfield.model.layer_norm import by_row, tangential_part
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats

ROUNDING = 16 * np.finfo(float).eps  # relative: a smaller sum of canceling parts is set to zero


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms, point masses that replace collapsed clusters: positions (k, d) on the unit sphere and masses (k,) > 0.

    Raises ValueError for shapes that do not fit, masses that are not positive, and positions off the sphere.
    """

    positions: Floats
    masses: Floats

    def __post_init__(self) -> None:
        if self.positions.ndim != 2 or self.masses.shape != self.positions.shape[:1]:
            raise ValueError(f"atoms at {self.positions.shape} of masses {self.masses.shape}: expected (k, d) and (k,)")
        if not (self.masses > 0).all():
            raise ValueError(f"atoms of mass {self.masses.min()}: expected positive masses")
        if not np.allclose(np.linalg.norm(self.positions, axis=1), 1.0, rtol=0, atol=1e-6):
            raise ValueError("atoms off the unit sphere")

    @property
    def count(self) -> int:
        """Return the number of atoms."""
        return len(self.masses)


@dataclass(frozen=True, eq=False)
class AtomVelocity:
    """Velocity of atoms (point masses that replace clusters) on the unit sphere, under the model of ``particles``.

    The masses and the gate of ``particles`` are not used. The model has no causal mask, and a layer norm that keeps the
    radius.
    """

    particles: ParticleVelocity

    def period(self, time: float) -> float:
        """Return the time scale on which the velocity of atoms depends on time itself.

        The time scale is t + 1 for the layer norm CoD, whose speed scale is √(t + 1), else infinite.
        """
        return self.particles.norm.scheme.period(time)

    @cached_property
    def only_attracts(self) -> bool:
        """Return whether each atom attracts all others along great circles: atoms have no stable fixed points then."""
        velocity = self.particles
        return velocity.feed_forward is None and all(_attracts(head, velocity.beta) for head in velocity.heads)

    def velocities(self, time: Floats | float, positions: Floats, masses: Floats) -> Floats:
        """Return the velocities (..., k, d) of k atoms at unit ``positions`` (..., k, d), of ``masses`` (k,).

        The times are a number or (..., 1).
        """
        velocity, d = self.particles, positions.shape[-1]
        offsets, tangents = _pairs(positions)
        lengths = np.linalg.norm(tangents, axis=-1)
        tangent, output = np.zeros_like(positions), np.zeros_like(positions)
        roundoff_bound = np.zeros(positions.shape[:-1])
        for head in velocity.heads:
            weights = head.weight * self._weights(head, positions, offsets, masses)
            mean = weights @ positions
            scale, rest = _split(head.value if head.out is None else head.value_matrix(d), d)
            tangent += scale * (weights[..., None, :] @ tangents)[..., 0, :]
            output += scale * mean
            parts = np.abs(scale) * (np.abs(weights) * lengths).sum(axis=-1)
            if rest is not None:
                mapped_mean = mean @ rest.T
                tangent += tangential_part(positions, mapped_mean.copy())
                output += mapped_mean
                parts += np.linalg.norm(mapped_mean, axis=-1)
            roundoff_bound += (
                1 + _size(*_split_bilinear(velocity.beta, head, d))
            ) * parts  # exponents have rounding errors as well
        if velocity.feed_forward is not None:
            local = velocity.feed_forward(positions.reshape(-1, d)).reshape(positions.shape)
            tangent += tangential_part(positions, local.copy())
            output += local
            roundoff_bound += np.linalg.norm(local, axis=-1)
        tangent[np.linalg.norm(tangent, axis=-1) < ROUNDING * roundoff_bound] = 0.0
        return np.asarray(tangent / by_row(velocity.norm.speed_scale(time, 1.0, output)))

    def _weights(self, head: Head, positions: Floats, offsets: Floats, masses: Floats) -> Floats:
        """Return the attention weights a_ij = m_j k(x_i, x_j)/Z_i (..., k, k) of atoms x with masses m, by one head.

        ``offsets`` are x_j − x_i. Exponents are relative to the exponent of i itself, −c|x_j − x_i|²/2 where βQᵀK = cI.
        """
        velocity, d = self.particles, positions.shape[-1]
        scale, rest = _split_bilinear(velocity.beta, head, d)
        exponents = -scale / 2 * (offsets**2).sum(axis=-1)
        reference: Floats | float = scale
        if rest is not None:
            mapped = positions @ rest
            exponents += (mapped[..., None, :] * offsets).sum(axis=-1)
            reference = scale + (mapped * positions).sum(axis=-1)[..., None]
        rule, log_rescaling = normalization_of(velocity.normalization), velocity.log_bound if velocity.rescaled else 0.0
        shift = exponents.max(axis=-1, keepdims=True) if rule.is_relative else log_rescaling - reference
        weights = masses * np.exp(exponents - shift)
        return rule((log_rescaling, weights.sum(axis=-1), weights), log_rescaling)


def _pairs(positions: Floats) -> tuple[Floats, Floats]:
    """Return the differences x_j − x_i and the tangential parts P_i x_j of unit vectors x, both (..., i, j, d).

    P_i x_j = x_j − ⟨x_i,x_j⟩x_i is exactly zero for equal and for opposite points.
    """
    targets, sources = positions[..., :, None, :], positions[..., None, :, :]
    offsets = sources - targets
    sign = np.where((targets * sources).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
    differences = sources - sign * targets  # P_i x_j = P_i (x_j ∓ x_i), whichever is shorter
    return offsets, differences - (targets * differences).sum(axis=-1, keepdims=True) * targets


def _attracts(head: Head, beta: float) -> bool:
    """Return whether a head moves tokens towards all others: Q, K, V are multiples of I with βqk ≥ 0, v·weight > 0."""
    query, key, value = multiple(head.query), multiple(head.key), multiple(head.value)
    if head.out is not None or query is None or key is None or value is None:
        return False
    return beta * query * key >= 0 and value * head.weight > 0


def _split(factor: Factor, d: int) -> tuple[float, Floats | None]:
    """Return the number v and the matrix V' of a (d, d) matrix vI + V'; V' is None for a multiple of the identity.

    v is the mean of the diagonal.
    """
    if (scale := multiple(factor)) is not None:
        return scale, None
    matrix = matrix_of(factor, d)
    mean = float(np.trace(matrix)) / d
    return mean, matrix - mean * np.eye(d)


def _split_bilinear(beta: float, head: Head, d: int) -> tuple[float, Floats | None]:
    """Return the number c and the matrix M' of βQᵀK = cI + M' of a head; M' is None for a multiple of the identity."""
    query, key = multiple(head.query), multiple(head.key)
    if query is not None and key is not None:
        return beta * query * key, None
    return _split(beta * matrix_of(head.query, d).T @ matrix_of(head.key, d), d)


def _size(scale: float, rest: Floats | None) -> float:
    """Return the spectral norm ‖cI + M'‖ of a number c = ``scale`` and a matrix M' = ``rest``, None for 0."""
    return abs(scale) if rest is None else float(np.linalg.norm(scale * np.eye(len(rest)) + rest, 2))
