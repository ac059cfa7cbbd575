"""Weights of RKL2, super-time-stepping of second order by Legendre polynomials (Meyer, Balsara and Aslam 2014, § 2.3).

y₁ = y₀ + w dt/3 f(y₀) ,
y_j = μ_j y_{j−1} + ν_j y_{j−2} + (1 − μ_j − ν_j) y₀ + μ_j w dt (f(y_{j−1}) − (1 − b_{j−1}) f(y₀)) ,  j = 2 … s
w = 4/(s² + s − 2) ,  stable for real eigenvalues down to −(s² + s − 2)/(2 dt)
"""

from __future__ import annotations

FIRST = 1 / 3  # b₀ = b₁ = b₂


def width(stages: int) -> float:
    """Return w = 4/(s² + s − 2), the factor of dt in an RKL2 step of s = ``stages`` stages."""
    return 4.0 / (stages * stages + stages - 2)


def stage_weights(j: int) -> tuple[float, float, float]:
    """Return the weights μ_j, ν_j and 1 − b_{j−1} of stage j = 2, 3, … of RKL2 (Meyer, Balsara and Aslam 2014)."""
    mu, nu = (2 * j - 1) / j * _b(j) / _b(j - 1), -(j - 1) / j * _b(j) / _b(j - 2)
    return mu, nu, 1 - _b(j - 1)


def _b(j: int) -> float:
    """Return the coefficient b_j of the RKL2 method."""
    return FIRST if j < 2 else (j * j + j - 2) / (2 * j * (j + 1))
