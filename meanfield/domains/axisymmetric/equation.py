"""Mean-field equation of densities on S^{d−1} that are symmetric about an axis, for any d ≥ 2.

    ∂ₜp + ∂_θ(p v[p]) = κ ∂_θ(∂_θ p − (d − 2) cot θ p)

p(θ) is the distribution of the polar angle, per radian, Σ p_i Δθ_i = 1: a density with respect to surface area would
exceed 10^{4872} for d = 4096. The uniform density is p̄ ∝ sin^{d−2} θ.
"""

from __future__ import annotations

import numpy as np

from meanfield.model.layer_norm import LayerNorm
from meanfield.model.linear_stability import LinearRegime, degrees_to_search, growth_rates
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.advection import Advection
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.terms.term import Step
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.transforms.lost_sums import Empty
from solvers.transforms.polar import log_masses, uniform_distribution
from solvers.transforms.polar_kernel import PolarKernel
from solvers.transforms.uniform import uniform_share

UNDERFLOW = 1e-280  # relative to the mass: a smaller Z has lost digits


class AxisymmetricAttention:
    """Attention velocity of an axisymmetric density: v[p](θ) = v ⟨e_θ, ∫ y e^{β⟨x,y⟩} dμ(y)⟩ / Z(θ), for Q, K, V ∝ I.

    μ is the distribution of the tokens y, p that of their polar angle θ, and e_θ points towards growing θ. softmax: Z =
    ∫ e^{β⟨x,y⟩} dμ, so v[p] = (v/β) ∂_θ log Z and |v[p]| ≤ |v|. unnormalized: Z = 1. Geshkovski and others
    (2312.10794), (SA) and (USA); sums by ``PolarKernel``.

    mesh            polar angles, see ``solvers.mesh.interval.polar``
    dimension       d ≥ 2, of the space around the sphere
    beta            inverse temperature; negative where QᵀK = −I
    normalization   "softmax" or "unnormalized"
    value           v of V = vI
    rescaled        unnormalized attention with e^{β⟨x,y⟩ − |β|}: the same flow in the time e^{|β|} t

    Attributes: ``rate``: the largest growth or decay rate |λ_l| of a mode about the uniform distribution, without
    noise; ``rate_degree``: the degree l of that mode.

    Sums treat the mass of each cell as a circle at the cell center. Near the uniform distribution the error O(h²) of
    these sums would grow. The fraction :func:`solvers.transforms.uniform.uniform_share` of their error at the uniform
    distribution is therefore subtracted. The uniform distribution is then exactly stationary, and the correction
    vanishes for clusters.

    Sums are accurate to rounding at every latitude, except where all mass is so far away that Z underflows (e^{−700} of
    the value with mass at that latitude). With softmax, the argument ``empty`` of the methods selects v[p] at these
    latitudes: "exact" recomputes it to rounding, "nan" sets NaN, and "bounded" leaves the inaccurate quotient.
    """

    def __init__(
        self,
        mesh: Mesh,
        dimension: int,
        beta: float,
        normalization: str = "softmax",
        value: float = 1.0,
        rescaled: bool = False,
    ) -> None:
        self.mesh, self.dimension, self.beta = mesh, dimension, beta
        self.normalization, self.value = normalization_of(normalization, two_sided=False), value
        self._log_rescaling = abs(beta) if rescaled else 0.0
        self.uniform: Floats = mesh.backend.to_device(uniform_distribution(mesh.on_host, dimension))
        self._sums = PolarKernel(mesh, dimension, beta)
        self._size = np.exp(self._sums.log_scale - abs(beta))
        self._error = self._error_of_uniform()
        degrees = np.arange(degrees_to_search(beta))
        rates = np.abs(growth_rates(dimension, beta, degrees, normalization, value=value, rescaled=rescaled))
        self.rate, self.rate_degree = float(rates.max()), int(rates.argmax())

    def normalizer_and_velocity(self, density: Floats, empty: Empty = "exact") -> tuple[Floats, Floats]:
        """Return kernel sums (cells,) and attention velocities (cells, 1) of a distribution of polar angles (cells,).

        The kernel sums are ∫ e^{β⟨x,y⟩ − |β|} dμ(y) over the tokens y. ``empty`` selects the velocities where these
        sums underflow, far from all mass: "exact", "nan" or "bounded", see the class.
        """
        masses = density * self.mesh.volumes
        normalizer, slope = self._sums.apply(masses)
        velocity = self._normalize_sums(normalizer, slope[:, None])
        share = self._uniform_share(masses)
        velocity = velocity - share * self._error[2][:, None]
        self._fill_underflowed_cells(velocity, normalizer, masses, share, empty)
        return (normalizer - share * self._error[0]) * self._size, velocity

    def output(self, time: float, density: Floats, empty: Empty = "exact") -> Floats:
        """Return the attention field v ∫ y e^{β⟨x,y⟩} dμ / Z (cells, 2): its parts along x and along the polar angle.

        Some layer norms need the first part. Z is the normalizer. ``empty`` selects the field where Z underflows, far
        from all mass: "exact", "nan" or "bounded", see the class.
        """
        masses = density * self.mesh.volumes
        normalizer, slope = self._sums.apply(masses)
        xp = self.mesh.backend.xp
        vectors = self._normalize_sums(normalizer, xp.stack([self._sums.radial(masses), slope], axis=1))
        share = self._uniform_share(masses)
        vectors = vectors - share * self._error[1:].T
        self._fill_underflowed_cells(vectors, normalizer, masses, share, empty)
        return vectors

    def _fill_underflowed_cells(
        self, vectors: Floats, normalizer: Floats, masses: Floats, share: Floats, empty: Empty
    ) -> None:
        """Set the attention field (cells, parts) in cells where its normalizer has underflowed, far from all mass.

        ``empty`` = "exact" sets accurate values, and "nan" sets NaN; "bounded" changes nothing. ``share`` is the
        fraction of the error at the uniform density that is subtracted. The last part is that along growing polar
        angle.
        """
        if empty == "bounded" or not self.normalization.is_relative:
            return
        backend = self.mesh.backend
        lost = np.flatnonzero(backend.to_host(normalizer) < UNDERFLOW * float(masses.sum()))
        if len(lost) == 0 or not float(masses.max()) > 0:
            return
        found = np.stack(self._sums.means(backend.to_host(masses), lost), axis=1)
        if float(share) > 0:
            of_uniform = self._sums.means(backend.to_host(self.uniform * self.mesh.volumes), lost)
            found -= float(share) * np.stack([of_uniform[0] - self._sums.uniform_mean, of_uniform[1]], axis=1)
        parts = backend.to_device(self.value * found[:, -vectors.shape[1] :])
        vectors[backend.to_device(lost)] = np.nan if empty == "nan" else parts

    def if_near_uniform(self, density: Floats, step: float) -> Step:
        """Return the time step ``step`` if a distribution p of the polar angle is near the uniform one p̄, else ∞.

        Near means ½ ∫|p − p̄| < ½. Unlike the uniform density on the sphere, p̄ is not constant in θ.
        """
        distance = 0.5 * np.abs(density - self.uniform) @ self.mesh.volumes
        bound: Step = self.mesh.backend.xp.where(distance < 0.5, step, np.inf)
        return bound

    def _normalize_sums(self, normalizer: Floats, vectors: Floats) -> Floats:
        """Return the attention field v A (cells, parts) from the kernel sums Z (cells,) and N (cells, parts).

        N is overwritten. The field is 0 where softmax has N = Z = 0.
        """
        output: Floats = self.normalization((self._sums.log_scale, normalizer, vectors), self._log_rescaling, reach=1.0)
        output *= self.value
        return output

    def _uniform_share(self, masses: Floats) -> Floats:
        """Return the fraction () of the error at the uniform density that is subtracted from the sums over cells.

        The fraction is 1 for the uniform density, and 0 far from uniform.
        """
        return uniform_share(masses - self.uniform * self.mesh.volumes, np.ones(()))

    def _error_of_uniform(self) -> Floats:
        """Return errors (3, cells) of sums over cells at the uniform density: in Z, and in both parts of attention.

        Z is the sum of the kernel. The parts are along x and along growing polar angle.
        """
        masses = self.uniform * self.mesh.volumes
        normalizer, slope = self._sums.apply(masses)
        xp = self.mesh.backend.xp
        found = self._normalize_sums(normalizer, xp.stack([self._sums.radial(masses), slope], axis=1))
        exact_normalizer, exact_radial = self._sums.uniform_sums
        exact = self._normalize_sums(exact_normalizer, xp.stack([exact_radial, xp.zeros_like(slope)], axis=1))
        error: Floats = xp.concatenate([(normalizer - exact_normalizer)[None], (found - exact).T])
        return error


class AxisymmetricVelocity:
    """Angular velocity v[p]/s of tokens at the cell centers: attention v[p] over the speed scale s of a layer norm."""

    def __init__(self, attention: AxisymmetricAttention, norm: LayerNorm) -> None:
        self.attention, self.norm = attention, norm
        mesh = attention.mesh
        self._along_x = mesh.backend.to_device(np.tile([1.0, 0.0], (mesh.cells, 1)))

    def __call__(self, time: float, density: Floats) -> Floats:
        """Return the angular velocity (cells, 1) of tokens for a density (cells,), in radians per unit time."""
        if not self.norm.sees_size:
            return self.normalizer_and_velocity(time, density)[1]
        output = self.attention.output(time, density, "bounded")  # along x and along e_θ
        return self.norm.angular_velocity(time, 1.0, self._along_x, output)[:, 1:]

    def normalizer_and_velocity(self, time: float, density: Floats) -> tuple[Floats, Floats]:
        """Return kernel sums ∫ e^{β⟨x,y⟩ − |β|} dμ(y) (cells,) over tokens y, and the angular velocity (cells, 1)."""
        normalizer, velocity = self.attention.normalizer_and_velocity(density, "bounded")
        if self.norm.sees_size:
            return normalizer, self(time, density)
        return normalizer, velocity / self.norm.speed_scale(time, 1.0, None)


def axisymmetric_equation(
    attention: AxisymmetricAttention, noise: float = 0.0, norm: LayerNorm | None = None
) -> Equation:
    """Return ∂ₜp = −∂_θ(p v[p]/s) + κ ∂_θ(∂_θ p − (d − 2) cot θ p) for a distribution p (cells,) of the polar angle.

    v[p] is the velocity by attention, p has mass 1, and κ ≥ 0 is the noise.

    norm   a layer norm that fixes the radius and determines the speed scale s; post if absent
    """
    mesh, velocity = attention.mesh, AxisymmetricVelocity(attention, LayerNorm() if norm is None else norm)
    host = mesh.on_host
    near_uniform = LinearRegime(attention, noise, attention.dimension, attention.if_near_uniform)
    log_uniform = log_masses(host, attention.dimension) - np.log(host.volumes)
    diffusion = [IntervalDriftDiffusion(mesh, noise, log_uniform, nonnegative=True)] if noise > 0 else []
    flow = Advection(mesh, velocity, nonnegative=True)
    return Equation(mesh, [flow, near_uniform, *diffusion], limit=limit_positivity)
