"""Velocity of atoms: the mean-field velocity of a density that is k weighted point masses, exactly.

    θ̇_i = P_i (Σ_h w_h V_h Σ_j a_ij x_j + F(x_i)) / s ,   a_ij = m_j e^{β⟨Q_h x_i, K_h x_j⟩} / Z_hi

Clusters far apart move at rates e^{−cβ}, far below the rounding of the attention's output, whose largest part points
along x_i. So the velocity is summed from parts that are small themselves: V = vI + V' gives v Σ_{j≠i} a_ij P_i x_j,
with P_i x_j from x_j − x_i (or from x_j + x_i near the antipode), and exponents from the differences as well. Its
error is relative to its largest part, which is small where V is a multiple of the identity and F = 0; what is left
where parts cancel to rounding counts as zero, so that equilibria are exact.
Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), with masses in the place of 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Factor, Head, matrix_of, multiple
from meanfield.model.layer_norm import by_row, projected
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats

ROUNDING = 16 * np.finfo(float).eps  # relative: a smaller sum of parts that cancel is set to zero


@dataclass(frozen=True, eq=False)
class Atoms:
    """positions (k, d) on the unit sphere and masses (k,) > 0.

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
        return len(self.masses)


@dataclass(frozen=True, eq=False)
class AtomVelocity:
    """The velocity of ``particles`` for atoms on the unit sphere; its masses and gate are not used.

    Raises ValueError for a causal mask, and for a layer norm with which tokens have a radius.
    """

    particles: ParticleVelocity

    def __post_init__(self) -> None:
        if self.particles.causal:
            raise ValueError("causal = True: atoms have no order; expected False")
        if self.particles.norm.carries_radius:
            raise ValueError(f"layer_norm = {self.particles.norm.name!r}: expected one without a radius for atoms")

    def period(self, time: float) -> float:
        """Time scale on which the velocity depends on time: t + 1 with CoD's s = √(t + 1), else infinite."""
        return self.particles.norm.scheme.period(time)

    def velocities(self, time: Floats | float, positions: Floats, masses: Floats) -> Floats:
        """θ̇ (..., k, d) of atoms at ``positions`` (..., k, d), unit vectors, of ``masses`` (k,), at times (..., 1)."""
        velocity, d = self.particles, positions.shape[-1]
        offsets, tangents = _pairs(positions)
        lengths = np.linalg.norm(tangents, axis=-1)
        tangent, output = np.zeros_like(positions), np.zeros_like(positions)
        roundoff_bound = np.zeros(positions.shape[:-1])
        for head in velocity.heads:
            weights = head.weight * self._weights(head, positions, offsets, masses)
            mean = weights @ positions
            scale, rest = _split(head.value, d)
            tangent += scale * (weights[..., None, :] @ tangents)[..., 0, :]
            output += scale * mean
            parts = np.abs(scale) * (np.abs(weights) * lengths).sum(axis=-1)
            if rest is not None:
                turned = mean @ rest.T
                tangent += projected(positions, turned.copy())
                output += turned
                parts += np.linalg.norm(turned, axis=-1)
            roundoff_bound += (1 + _size(*_split_bilinear(velocity.beta, head, d))) * parts  # exponents round as well
        if velocity.feed_forward is not None:
            local = velocity.feed_forward(positions.reshape(-1, d)).reshape(positions.shape)
            tangent += projected(positions, local.copy())
            output += local
            roundoff_bound += np.linalg.norm(local, axis=-1)
        tangent[np.linalg.norm(tangent, axis=-1) < ROUNDING * roundoff_bound] = 0.0
        return np.asarray(tangent / by_row(velocity.norm.speed_scale(time, 1.0, output)))

    def _weights(self, head: Head, positions: Floats, offsets: Floats, masses: Floats) -> Floats:
        """a_ij (..., k, k); exponents are relative to that of i itself, −c|x_j − x_i|²/2 where βQᵀK = cI."""
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
    """x_j − x_i and P_i x_j, both (..., i, j, d): the latter exactly zero for the same and for opposite points."""
    targets, sources = positions[..., :, None, :], positions[..., None, :, :]
    offsets = sources - targets
    sign = np.where((targets * sources).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
    differences = sources - sign * targets  # P_i x_j = P_i (x_j ∓ x_i), whichever is short
    return offsets, differences - (targets * differences).sum(axis=-1, keepdims=True) * targets


def _split(factor: Factor, d: int) -> tuple[float, Floats | None]:
    """v and V' of a matrix vI + V', V' = None for a multiple of the identity."""
    if (scale := multiple(factor)) is not None:
        return scale, None
    matrix = matrix_of(factor, d)
    mean = float(np.trace(matrix)) / d
    return mean, matrix - mean * np.eye(d)


def _split_bilinear(beta: float, head: Head, d: int) -> tuple[float, Floats | None]:
    """The same for βQᵀK."""
    query, key = multiple(head.query), multiple(head.key)
    if query is not None and key is not None:
        return beta * query * key, None
    return _split(beta * matrix_of(head.query, d).T @ matrix_of(head.key, d), d)


def _size(scale: float, rest: Floats | None) -> float:
    """‖cI + M'‖."""
    return abs(scale) if rest is None else float(np.linalg.norm(scale * np.eye(len(rest)) + rest, 2))
