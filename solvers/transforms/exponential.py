"""Multipliers of the kernel e^{β⟨x,y⟩} on the unit sphere of R^d: its eigenvalue for each degree.

Funk–Hecke (e.g. Dai and Xu, Approximation Theory and Harmonic Analysis on Spheres, theorem 1.2.9), ν = d/2 − 1:

    c_l = |S^{d−1}| Γ(d/2) (2/β)^ν I_{l+ν}(β) = |S^{d−1}| g_ν(β) r_ν(β) … r_{ν+l−1}(β)

with g and r of solvers/transforms/bessel.py; odd degrees have the sign of β.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..mesh.mesh import Floats
from .bessel import bessel_ratios


def exponential_spectrum(dimension: int, beta: float, degrees: int) -> tuple[float, Floats]:
    """Return log(c_0/|S^{d−1}|) and c_l/c_0 (degrees,) for the multipliers c_l of e^{β⟨x,y⟩} on S^{d−1}, d ≥ 2.

    A convolution with the kernel multiplies harmonics of degree l by c_l. The results do not overflow for any d and β.
    """
    log_first, ratios = bessel_ratios(dimension / 2 - 1, abs(beta), max(degrees - 1, 1))
    return log_first, np.cumprod([1.0, *np.sign(beta) * ratios])[:degrees]


def exponential_gradient_spectrum(dimension: int, beta: float, degrees: int) -> tuple[float, Floats]:
    """Return log(c_0/|S^{d−1}|) and c_l/(β c_0) (degrees,) for the multipliers c_l of e^{β⟨x,y⟩} on S^{d−1}, d ≥ 2.

    The second result is 0 for l = 0. For β = 0 it is the limit, 1/d for l = 1 and 0 for other l. A convolution with the
    kernel multiplies harmonics of degree l by c_l.
    """
    log_first, relative = exponential_spectrum(dimension, beta, degrees)
    l = np.arange(degrees)
    return log_first, np.where(l == 1, 1 / dimension, 0.0) if beta == 0 else np.where(l == 0, 0.0, relative / beta)


def exponential_multipliers(dimension: int, beta: float, degrees: int) -> Floats:
    """Return e^{−|β|} c_l (degrees,), l = 0, 1, …, for the multipliers c_l of the kernel e^{β⟨x,y⟩} on S^{d−1}.

    A convolution with the kernel multiplies harmonics of degree l by c_l. The factor e^{−|β|} prevents overflow.
    """
    return _absolute(dimension, beta, exponential_spectrum(dimension, beta, degrees))


def exponential_gradient_multipliers(dimension: int, beta: float, degrees: int) -> Floats:
    """Return e^{−|β|} c_l/β (degrees,), 0 for l = 0, for the multipliers c_l of the kernel e^{β⟨x,y⟩} on S^{d−1}.

    For β = 0 the result is the limit, |S^{d−1}|/d for l = 1 and 0 for other l. The factor e^{−|β|} prevents overflow.
    """
    return _absolute(dimension, beta, exponential_gradient_spectrum(dimension, beta, degrees))


def _absolute(dimension: int, beta: float, spectrum: tuple[float, Floats]) -> Floats:
    """Return a relative spectrum of e^{β⟨x,y⟩}, the second part of ``spectrum``, times e^{−|β|} c_0.

    c_0 is the kernel's multiplier of degree 0 on S^{d−1}. This c_0 is computed without log c_0, whose rounding error
    grows as |β|.
    """
    nu = dimension / 2 - 1
    surface = 2 * np.pi ** (nu + 1) / math.gamma(nu + 1)
    return np.asarray(surface * _scaled_mean(dimension, abs(beta)) * spectrum[1])


def _scaled_mean(dimension: int, beta: float) -> float:
    """Return the mean of e^{β(z − 1)} over the unit sphere of R^d, β ≥ 0, z one coordinate of its points.

    The mean equals g_ν(β) e^{−β} with g_ν(β) = Γ(ν + 1)(2/β)^ν I_ν(β), ν = d/2 − 1. SciPy is not imported for d = 2 and
    3.
    """
    if beta == 0:
        return 1.0
    if dimension == 2:  # few equal angles suffice for a periodic function
        half = _max_degree(beta)  # the other half of the angles is symmetric
        values = np.exp(-2 * beta * np.sin(np.pi / (2 * half) * np.arange(half + 1)) ** 2)
        return float((values.sum() - 0.5 * (values[0] + values[-1])) / half)
    if dimension == 3:
        return -math.expm1(-2 * beta) / (2 * beta)
    from scipy.special import ive

    nu = dimension / 2 - 1
    return float(math.gamma(nu + 1) * (2 / beta) ** nu * ive(nu, beta))


def _max_degree(beta: float) -> int:
    """Return a degree beyond which the multipliers of e^{β⟨x,y⟩} on a sphere are below 1e-20 of the first.

    A multiplier is the number by which a convolution with the kernel multiplies harmonics of one degree.
    """
    return int(np.sqrt(2 * abs(beta) * 50) + 60)


@lru_cache(maxsize=256)
def exponential_degree(dimension: int, beta: float) -> int:
    """Return the degree L beyond which harmonics of the kernel e^{β⟨x,y⟩} and its gradient are negligible in float64.

    L is about √(2β ln(1/ε)) for large β. The multipliers of the kernel, one for each degree, are positive, so the tail
    bounds the error of the kernel.
    """
    max_degree = _max_degree(beta)
    l = np.maximum(np.arange(max_degree), 1)
    harmonics_of_degree = (2 * l + dimension - 2.0) * l ** (dimension - 3.0)  # up to a constant
    tail = np.abs(exponential_multipliers(dimension, beta, max_degree)) * l * harmonics_of_degree
    significant = np.flatnonzero(np.cumsum(tail[::-1])[::-1] > 1e-17 * tail[0])
    return max(int(significant[-1]), 1)
