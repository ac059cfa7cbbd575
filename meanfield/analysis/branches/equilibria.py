"""Axisymmetric stationary densities with noise: equations and linear stability.

On S^{d−1} with z = ⟨x, e⟩ and f the density relative to the uniform one, a stationary state of ∂ₜρ + div(ρX) = κΔρ has

    κ log f = (v/β) φ(Z) + const ,   Z(z) = ∫ k(z, z') f(z') dμ(z') ,   φ(Z) = log Z (softmax), Z (unnormalized)

since X = (v/β) ∇φ(Z). k is e^{β⟨x,y⟩} averaged about the axis, μ the uniform distribution of z. The nodes z are those
of a Gauss–Jacobi rule, so that sums are exact to rounding where f is resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.analysis.branches.quadrature import gauss_rule, harmonics
from meanfield.analysis.branches.rates import Spectrum, spectra
from solvers.mesh.mesh import Floats

NODES = 128
MOMENTS = 32  # number of moments of each state, from degree 1 on
_RESOLVED = 1e-8  # permitted size of the last eighth of the coefficients of f, relative to the largest coefficient


@dataclass(frozen=True)
class Equilibrium:
    """Axisymmetric stationary density about an axis e, with its linear stability.

    Attributes
    ----------
    noise : float
        Noise κ.
    beta : float
        Inverse temperature β.
    moments : (degrees,) array
        Moments ``∫P_l(⟨x, e⟩)ρ`` for l = 1, 2, …, with P_l(1) = 1.
    log_density : (nodes,) array
        Logarithm of the density relative to the uniform one, at the nodes of a Gauss–Jacobi rule in ⟨x, e⟩.
    spectra : tuple of Spectrum
        Linear stability to perturbations of each order m about the axis (m = 0: the same axis), per unit of time.
        Rotations of the axis are neutral and left out.
    value : float
        Number v of V = vI.
    """

    noise: float
    beta: float
    moments: Floats
    log_density: Floats
    spectra: tuple[Spectrum, ...]
    value: float = 1.0

    @property
    def rates(self) -> tuple[Floats, ...]:
        """Return the growth rates of perturbations of each order m about the axis, one array for each order.

        They are the real parts of the eigenvalues of the linearized equation, largest first.
        """
        return tuple(spectrum.rates for spectrum in self.spectra)

    @property
    def order(self) -> float:
        """Return ∫⟨x, e⟩ρ, the component of the mean token along the axis e."""
        return float(self.moments[0])

    @property
    def fastest(self) -> float:
        """Return the largest growth rate of perturbations that are symmetric about the same axis."""
        return float(self.rates[0][0])

    @property
    def fastest_across(self) -> float:
        """Return the largest growth rate of perturbations that break the symmetry about the axis (orders m > 0)."""
        return max(float(found[0]) for found in self.rates[1:])

    @property
    def unstable(self) -> int:
        """Return the number of growth rates of axisymmetric perturbations that are positive beyond rounding."""
        return self.spectra[0].unstable

    @property
    def unstable_across(self) -> int:
        """Return the number of growth rates of perturbations of orders m > 0 that are positive beyond rounding.

        Perturbations of order m depend on the angle about the axis. A rate is counted once, not once for each harmonic
        of its order.
        """
        return sum(spectrum.unstable for spectrum in self.spectra[1:])

    @property
    def unknown(self) -> int:
        """Return the number of growth rates of axisymmetric perturbations whose sign is lost to rounding."""
        return self.spectra[0].unknown

    @property
    def unknown_across(self) -> int:
        """Return the number of growth rates of perturbations of orders m > 0 whose sign is lost to rounding."""
        return sum(spectrum.unknown for spectrum in self.spectra[1:])


class Equilibria:
    """Equations of axisymmetric stationary densities on S^{d−1} for β ≠ 0 and V = vI, at Gauss–Jacobi nodes."""

    def __init__(
        self, dimension: int, beta: float, normalization: str = "softmax", value: float = 1.0, nodes: int = NODES
    ) -> None:
        self.nodes, self.weights = gauss_rule(dimension, nodes)
        self.beta, self.dimension = beta, dimension
        self.gain = value / beta
        self._log = normalization == "softmax"
        self._kernels: dict[int, Floats] = {}
        self._kernel = self.kernel(0)

    def critical_noise(self, degree: int) -> float:
        """Return the noise κ at which modes of this degree neither grow nor decay about the uniform density."""
        mode = self.mode(degree)
        normalizer = self._kernel @ self.weights
        moved = self.slope(normalizer) * (self._kernel @ (self.weights * mode))
        return float(self.gain * (self.weights * mode) @ moved)

    def mode(self, degree: int) -> Floats:
        """Return the zonal harmonic of this degree at the nodes (nodes,), scaled to a mean square of 1."""
        values = self.zonal(degree)
        return np.asarray(values / np.sqrt(self.weights @ values**2))

    def zonal(self, degree: int) -> Floats:
        """Return the zonal harmonic of this degree at the nodes (nodes,), scaled to the value 1 at the axis."""
        from scipy.special import eval_chebyt, eval_gegenbauer

        if self.dimension == 2:
            return np.asarray(eval_chebyt(degree, self.nodes))
        nu = self.dimension / 2 - 1
        return np.asarray(eval_gegenbauer(degree, nu, self.nodes) / eval_gegenbauer(degree, nu, 1.0))

    def residual(self, u: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
        """Return the residual u − log f[u] of the stationary equation, and its derivatives with respect to u and log κ.

        u (nodes,) is the logarithm of the density. f[u] is the density for which noise κ balances the attention to e^u:
        log f[u] = v/(βκ) φ(Z) + const. v is the strength of V = vI, Z the kernel integrated over e^u, φ = log for
        softmax and φ(Z) = Z for unnormalized attention.
        """
        masses = self.weights * np.exp(u)
        normalizer = self._kernel @ masses
        h = self.gain / noise * (np.log(normalizer) if self._log else normalizer)
        shift = h.max()
        images = self.weights * np.exp(h - shift)
        total = images.sum()
        images /= total
        by_u = (self.gain / noise) * self.slope(normalizer)[:, None] * self._kernel * masses
        return u - h + shift + np.log(total), np.eye(len(u)) - by_u + images @ by_u, h - images @ h

    def by_log_beta(self, u: Floats, noise: float) -> Floats:
        """Return the derivative of the residual u − log f[u] with respect to log β, see `residual`.

        The stored kernel may have a constant factor that depends on β, which does not contribute.
        """
        masses = self.weights * np.exp(u)
        normalizer = self._kernel @ masses
        turned = self.beta * (self._kernel * _log_kernel_by_beta(self.dimension, self.beta, self.nodes)) @ masses
        scale = self.gain / noise
        h = scale * (np.log(normalizer) if self._log else normalizer)
        images = self.weights * np.exp(h - h.max())
        change = scale * self.slope(normalizer) * turned - h
        return np.asarray(images @ change / images.sum() - change)

    def kernel(self, m: int) -> Floats:
        """Return the absolute kernel e^{β⟨x,y⟩} of order m about the axis, at pairs of nodes (nodes, nodes).

        The kernel of order m is the average of e^{β⟨x,y⟩} Y(ξ′)/Y(ξ) over directions ξ′ about the axis, for a harmonic
        Y of order m. For softmax it is multiplied by e^{−|β|}, against overflow.
        """
        if m not in self._kernels:
            shift = abs(self.beta) if self._log else 0.0
            self._kernels[m] = np.exp(log_kernel(self.dimension, self.beta, self.nodes, m) - shift)
        return self._kernels[m]

    def harmonics(self, m: int) -> tuple[Floats, Floats]:
        """Return √w s^m p_k and √w s^m p_k' (nodes, k) for order m about the axis, where the first are orthonormal.

        w are the weights of the nodes z, s = √(1 − z²), and p_k are polynomials of degrees k up to 3/4 of the number of
        nodes. Sums of products of two of them and a potential then have no error from the rule.
        """
        return harmonics(self.dimension, len(self.nodes), m)

    def rounding(self, noise: float) -> float:
        """Return a bound of the rounding error of h = v/(βκ) φ(Z), the logarithm of the density up to a constant.

        Z is the kernel integrated over the density, and φ = log for softmax, φ(Z) = Z for unnormalized attention. The
        factor 32 is twice the largest measured one, that of d = 64. For small β the error exceeds the rounding of the
        logarithm of the density itself.
        """
        largest = 1.0 if self._log else float(self._kernel.max())
        return 32 * float(np.finfo(float).eps) * abs(self.gain) / noise * largest

    def equilibrium(self, u: Floats, noise: float) -> Equilibrium:
        """Return the stationary density e^u at this noise, with its moments and its linear stability."""
        masses = self.weights * np.exp(u)
        found = spectra(self, masses, noise)
        return Equilibrium(noise, self.beta, self._zonals @ masses, u, found, self.gain * self.beta)

    @cached_property
    def _zonals(self) -> Floats:
        """Return the zonal functions of degrees 1 to MOMENTS at the nodes: (MOMENTS, nodes)."""
        return np.array([self.zonal(degree) for degree in range(1, MOMENTS + 1)])

    def is_resolved(self, u: Floats) -> bool:
        """Return whether the nodes resolve f = e^u: its last coefficients are small relative to the largest one."""
        size = np.abs(self._to_coefficients @ np.exp(u - u.max()))
        return bool(size[-len(u) // 8 :].max() <= _RESOLVED * size.max())

    def slope(self, normalizer: Floats) -> Floats:
        """Return φ'(Z) at the nodes for the normalizer Z: 1/Z for softmax, where φ = log, and 1 for φ(Z) = Z."""
        return 1 / normalizer if self._log else np.ones_like(normalizer)

    @cached_property
    def _to_coefficients(self) -> Floats:
        """Return the matrix (degrees, nodes) from values at the nodes to coefficients of the zonal harmonics."""
        return np.stack([self.weights * self.mode(l) for l in range(len(self.nodes))])


def log_kernel(dimension: int, beta: float, z: Floats, m: int = 0) -> Floats:
    """Return log |c| at all pairs of nodes z, z' for c, the kernel e^{β⟨x,y⟩} of order m averaged about the axis.

    log |c| = β z z' + log |c_m(β √(1−z²) √(1−z'²))| with c_m(b) = Γ(h) (2/b)^{h−1} I_{h−1+m}(b), h = (d − 1)/2, and I
    the modified Bessel function (Funk–Hecke about the axis). Where b is small, the first two terms of the series are
    used. For odd m the sign of c is that of β.
    """
    from scipy.special import gammaln, ive

    h = (dimension - 1) / 2

    def log_average(b: Floats) -> Floats:
        """Return log |c_m(b)| for an array b ≥ 0."""
        small = b < 1e-4
        safe = np.where(small, 1.0, b)
        found = gammaln(h) + (h - 1) * np.log(2 / safe) + np.log(ive(h - 1 + m, safe)) + safe
        first = gammaln(h) - gammaln(h + m) + m * np.log(np.maximum(b, 1e-300) / 2) + b**2 / (4 * (h + m))
        return np.asarray(np.where(small, first, found))

    return np.asarray(beta * z[:, None] * z + _evaluate_at_sines(log_average, beta, z))


def _log_kernel_by_beta(dimension: int, beta: float, z: Floats) -> Floats:
    """Return ∂ log c/∂β at all pairs of nodes z, z' for c, the kernel e^{β⟨x,y⟩} averaged about the axis.

    The derivative is z z' + sign(β) √(1−z²) √(1−z'²) I_h(b)/I_{h−1}(b) with b = |β| √(1−z²) √(1−z'²), h = (d − 1)/2,
    and I the modified Bessel function.
    """
    from scipy.special import ive

    h = (dimension - 1) / 2

    def ratio(b: Floats) -> Floats:
        """Return I_h(b)/I_{h−1}(b) for an array b ≥ 0."""
        small = b < 1e-4
        safe = np.where(small, 1.0, b)
        return np.asarray(np.where(small, b / (2 * h), ive(h, safe) / ive(h - 1, safe)))

    sines = np.sqrt((1 - z) * (1 + z))
    return np.asarray(z[:, None] * z + np.sign(beta) * sines[:, None] * sines * _evaluate_at_sines(ratio, beta, z))


def _evaluate_at_sines(function: Callable[[Floats], Floats], beta: float, z: Floats) -> Floats:
    """Evaluate a function of b = |β| √(1−z²) √(1−z'²) at all pairs of nodes z, z' (nodes, nodes).

    The nodes are symmetric about 0, so that the function is called for half of them only.
    """
    n = len(z)
    folded = np.minimum(np.arange(n), n - 1 - np.arange(n))
    sines = np.sqrt((1 - z[: (n + 1) // 2]) * (1 + z[: (n + 1) // 2]))
    return np.asarray(function(abs(beta) * sines[:, None] * sines)[np.ix_(folded, folded)])
