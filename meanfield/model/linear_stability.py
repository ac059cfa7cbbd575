"""Linear theory of the uniform density: growth rates of its modes, critical noise.

By Funk–Hecke with ν = d/2 − 1, a degree-l perturbation of the uniform density on S^{d−1} grows as e^{λ_l t},

    softmax       λ_l = l(l+d−2) (v I_{l+ν}(β) / (β I_ν(β)) − κ)
    unnormalized  λ_l = l(l+d−2) (v c_l/β − κ),   c_l = Γ(d/2) (2/β)^ν I_{l+ν}(β)
    sinkhorn      λ_l = l(l+d−2) (v q/(β (1 + q)) − κ),   q = I_{l+ν}(β)/I_ν(β)

(Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794; Mun and Rosenzweig 2606.05140 for the noise.) Sinkhorn: X is
−(v/β) ∇log a with a(x) ∫ e^{β⟨x,y⟩} a(y) ρ(y) dy = 1, so that a perturbation ε of ρ/ρ̄ gives δ log a = −qε/(1 + q).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from meanfield.model.normalization import normalization_of
from solvers.backends import formulas
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.mass import summary_of
from solvers.terms.term import Step


def linear_rates(dimension: int, response: Floats, noise: float = 0.0) -> Floats:
    """Return the growth rates λ_l = l(l+d−2)(c_l − κ) (degrees,), per unit time, about the uniform density ρ̄.

    λ_l is the rate of a perturbation of degree l.

    response   (degrees,) c_l: the velocity of tokens is, to first order, the gradient of Σ_l c_l ρ_l/ρ̄, where ρ_l is
               the part of degree l of the density
    noise      coefficient κ of the diffusion κΔρ
    """
    l = np.arange(len(response))
    return l * (l + dimension - 2) * (response - noise)


def growth_rates(
    dimension: int,
    beta: float,
    degrees: ArrayLike,
    normalization: str = "softmax",
    noise: float = 0.0,
    value: float = 1.0,
    rescaled: bool = False,
) -> Floats:
    """Return the growth rates λ_l, per unit time, of perturbations of the uniform density for each of the degrees l.

    dimension   ambient d ≥ 2
    beta        inverse temperature; negative where QᵀK = −I
    noise       coefficient κ of the diffusion κΔρ
    value       v of V = vI
    rescaled    unnormalized attention with e^{β⟨x,y⟩ − |β|}

    Raises ArgumentError for another normalization.
    """
    from solvers.transforms.exponential import exponential_gradient_spectrum

    rule = normalization_of(normalization)
    l = np.asarray(degrees)
    log_first, response = exponential_gradient_spectrum(dimension, beta, int(l.max()) + 1)
    if rule.is_two_sided:
        response = response / (1 + beta * response)
    elif not rule.is_relative:
        response = response * np.exp(log_first - (abs(beta) if rescaled else 0.0))
    return np.asarray(linear_rates(dimension, value * response, noise)[l])


def critical_noise(dimension: int, beta: float, normalization: str = "softmax", value: float = 1.0) -> float:
    """Return the noise κ below which the uniform density is unstable, for values V = vI with v = ``value``.

    κ is the maximum over the degrees l of λ_l/(l(l+d−2)), with the growth rates λ_l without noise, and at least 0.
    """
    l = np.arange(1, degrees_to_search(beta))
    rates = growth_rates(dimension, beta, l, normalization, value=value)
    return max(float((rates / (l * (l + dimension - 2))).max()), 0.0)


def transition_coefficient(dimension: int, beta: float, normalization: str = "softmax") -> float:
    """Return the coefficient C of 1 = κ#/κ + C a², for stationary densities with noise κ near the critical noise κ#.

    The densities are ρ̄(1 + a⟨x,e⟩ + …) with the uniform density ρ̄; I are modified Bessel functions at β, ν = d/2 − 1:

        softmax       C = (p − 1)/p² · [r(p − 1)(d − 1)/(1 − r) − (d + p)]/(d(d + 2)) ,   p = I_ν/I_{ν+1}
        unnormalized  C = [r(d − 1)/(1 − r) − 1]/(d(d + 2)) ,   r = I_{ν+2}/I_{ν+1}

    For C < 0 the branch extends to smaller noise: a continuous transition. For C > 0 the branch extends to larger
    noise, so that there is hysteresis. C follows from ρ ∝ Z^{1/(βκ)} and ρ ∝ e^{Z/(βκ)} expanded to a³, where mode 1 is
    the first to grow, which holds for all β > 0. Mun and Rosenzweig (2606.05140) have the zero of the second C, and the
    first C on the circle; for other d the first C is derived here. β > 0.
    """
    from solvers.transforms.exponential import exponential_spectrum

    d = dimension
    ratios = exponential_spectrum(d, beta, 3)[1]
    r = float(ratios[2] / ratios[1])
    if not normalization_of(normalization, two_sided=False).is_relative:
        return (r * (d - 1) / (1 - r) - 1) / (d * (d + 2))
    p = 1 / float(ratios[1])
    return (p - 1) / p**2 * (r * (p - 1) * (d - 1) / (1 - r) - (d + p)) / (d * (d + 2))


def continuous_up_to(dimension: int) -> float:
    """Return the β* up to which unnormalized attention has a continuous transition as the noise decreases.

    β* solves I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d, with modified Bessel functions I.
    """
    from scipy.optimize import brentq

    return float(brentq(lambda beta: transition_coefficient(dimension, beta, "unnormalized"), 1e-3, 20.0 + dimension))


def expected_clusters_from_tokens(beta: float) -> float:
    """Return the expected number of modes of the kernel density of many uniform random tokens on the circle.

    The number is √(Σk⁴I_k²/Σk²I_k²) ≈ √(3β/2), summed over k ≥ 1, with the modified Bessel functions I_k(β).
    """
    from scipy import special

    k = np.arange(1, degrees_to_search(beta))
    bessel = (special.ive(k, abs(beta)) / special.ive(1, abs(beta))) ** 2 if beta else k == 1  # the limit β → 0 is 1
    return float(np.sqrt((k**4 * bessel).sum() / (k**2 * bessel).sum()))


def degrees_to_search(beta: float) -> int:
    """Return the number of degrees to search for the fastest growing mode, well above its degree of about √(2|β|)."""
    return int(4 * np.sqrt(2 * abs(beta))) + 12


ACCURACY = 5.0  # 1/(rate · step): at cfl = ½ the error of Runge–Kutta 3 is (0.1)³/24 of the rate
MAX_DENSITY = 2.0  # relative to the mean: below, a density counts as near the uniform one
IfNear = Callable[[Floats, float], Step]


class HasRates(Protocol):
    """Attention with known linear theory about the uniform density.

    rate          largest growth or decay rate |λ_l| of a mode, without noise
    rate_degree   degree l of this mode
    """

    rate: float
    rate_degree: int


def linear_step(attention: HasRates, noise: float, dimension: int) -> float:
    """Return the longest accurate time step near the uniform density, 1/(ACCURACY (|λ_l| + κ l(l + d − 2))).

    l is the degree with the largest rate |λ_l| by attention alone, and κ = ``noise`` the coefficient of the diffusion
    κΔρ. The step is infinite where no mode grows or decays.
    """
    degree = attention.rate_degree
    fastest = attention.rate + noise * degree * (degree + dimension - 2)
    return 1.0 / (ACCURACY * fastest) if fastest > 0 else np.inf


class LinearRegime:
    """Bound of the time step near the uniform density, as a term of an equation that adds no rate of change.

    The bound is :func:`linear_step`, where the density is near the uniform one.

    attention   supplies the fastest linear growth or decay rate, and its degree
    noise       κ ≥ 0
    dimension   d of the space around the sphere
    if_near     function (values, step) that returns the step if the density is near the uniform one, else ∞
    """

    def __init__(self, attention: HasRates, noise: float, dimension: int, if_near: IfNear) -> None:
        self._step, self._if_near = linear_step(attention, noise, dimension), if_near

    def prepare(self, time: float, values: Floats) -> Step:
        return self._if_near(values, self._step)

    def rate(self, dt: float, rate: Floats) -> None:
        """Add nothing to the rate of change: this term only limits the time step."""


class BelowTwiceTheMean:
    """Condition that no cell of a density (cells,) reaches twice the mean density, MAX_DENSITY = 2.

    mesh   the mesh of the density
    """

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh

    def __call__(self, values: Floats, step: float) -> Step:
        """Return ``step`` if no cell of the density ``values`` reaches twice the mean, else ∞."""
        (mass, _, largest), limit = summary_of(self._mesh, values), MAX_DENSITY / self._mesh.volume
        highest = values.max() if largest is None else largest
        bound: Step = self._mesh.backend.evaluate(formulas.step_below, highest, mass, limit, step)
        return bound
