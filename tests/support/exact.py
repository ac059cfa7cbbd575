"""Exact solutions and rates, references of the numerical tests, each a formula with its source.

The formulas use other methods than the package where possible: quadrature, dense sums, closed forms.
"""

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy import integrate, optimize, special


def growth_rate(dimension, beta, degree, normalization="softmax", noise=0.0, value=1.0):
    """Return the growth rate λ_l of the uniform density, with Funk–Hecke's c_l = ∫ e^{βz} P_l(z) dν(z).

    ν is the distribution of ⟨x, e⟩ for x uniform on S^{d−1}, P_l the Gegenbauer polynomial with P_l(1) = 1 (Dai and
    Xu, Approximation Theory and Harmonic Analysis on Spheres, theorem 1.2.9). Rates: l(l+d−2)(v c_l/(β c_0) − κ) for
    softmax, l(l+d−2)(v c_l/β − κ) unnormalized (Geshkovski and others, 2312.10794). β ≠ 0, d = 2 or 3.
    """
    if dimension == 2:
        angle = (np.arange(400) + 0.5) * np.pi / 400
        nodes, weights, zonal = np.cos(angle), np.full(400, 1 / 400), np.cos(degree * angle)
    else:
        nodes, weights = leggauss(80)
        weights, zonal = weights / 2, special.eval_legendre(degree, nodes)
    kernel = weights * np.exp(beta * nodes)
    size = beta * (kernel.sum() if normalization == "softmax" else 1.0)
    return degree * (degree + dimension - 2) * (value * (kernel @ zonal) / size - noise)


def velocity(mesh, beta, density, normalization="softmax", value=1.0):
    """Return velocity (cells, d) and Z (cells,) by dense sums over cells, with a uniform share in closed form.

    Both have the factor e^{β⟨x,y⟩ − |β|}. The uniform part of Z is Γ(d/2)(2/β)^ν I_ν(β) e^{−|β|}; the uniform part
    of the numerator is normal to the manifold. |X| is bounded by |value| where Z is lost to rounding, as the softmax
    bounds |X|.
    """
    x, dimension = mesh.centers, mesh.centers.shape[1]
    distance = 0.5 * np.abs(density - 1.0 / mesh.volume) @ mesh.volumes
    share = max(0.0, 1.0 - 4.0 * distance**2)  # the same share as in meanfield.model.kernel_sums.ZonalSums
    masses = (density - share / mesh.volume) * mesh.volumes
    size = abs(beta)
    mean = special.ive(0, size) if dimension == 2 else (-np.expm1(-2 * size) / (2 * size) if size else 1.0)
    normalizer, numerator = np.empty(mesh.cells), np.empty_like(x)
    for rows in np.array_split(np.arange(mesh.cells), max(1, mesh.cells // 500)):  # blocks of 500 rows bound the memory
        kernel = np.exp(beta * (x[rows] @ x.T) - size) * masses
        normalizer[rows] = kernel.sum(axis=1) + share * mean
        numerator[rows] = kernel @ x
    numerator -= (numerator * x).sum(axis=1)[:, None] * x
    if normalization == "softmax":
        bound = np.maximum(normalizer, np.linalg.norm(numerator, axis=1))
        numerator /= np.where(bound > 0, bound, 1.0)[:, None]
    return value * numerator, normalizer


def pair_time(beta, masses=(0.5, 0.5), normalization="softmax", angle=2.0, cosine=0.5):
    """Return the time in which two point masses, ``angle`` apart, reach ``cosine``: ∫ dφ/φ̇, with e = e^{β(cos φ − 1)}.

    Softmax: φ̇ = −sin φ [m₂e/(m₁ + m₂e) + m₁e/(m₂ + m₁e)]; unnormalized: φ̇ = −e^{β cos φ} sin φ. This is the case
    of two tokens of 2312.10794, with masses.
    """
    m, n = np.asarray(masses) / np.sum(masses)

    def per_angle(phi):
        e = np.exp(beta * (np.cos(phi) - 1))
        closing = n * e / (m + n * e) + m * e / (n + m * e)
        return 1 / (np.sin(phi) * (closing if normalization == "softmax" else np.exp(beta * np.cos(phi))))

    return integrate.quad(per_angle, np.arccos(cosine), angle, epsrel=1e-12)[0]


def pair_time_equal(beta, angle=2.0, cosine=0.5):
    """Return :func:`pair_time` for equal masses and softmax in closed form, by the exponential integral Ei."""

    def clock(s):
        tails = -special.expi(beta * (1 - s)) + np.exp(2 * beta) * special.expi(-beta * (1 + s))
        return np.arctanh(s) / 2 + tails / 4

    return clock(cosine) - clock(np.cos(angle))


def moebius_parameter(dimension, start, time):
    """Return the parameter s(t) of the exact flow at β = 0 from s(0) = start, under which a pushed uniform density
    stays one.

    ṡ = ⟨z⟩: on S¹ r = tanh(s/2) with ṙ = r(1 − r²)/2, so that r²/(1 − r²) grows as eᵗ; on S² ṡ = coth s − s/sinh² s
    (ORACLES, from the Möbius group's action; Watanabe and Strogatz 1994 on the circle).
    """
    if dimension == 2:
        odds = np.sinh(start / 2) ** 2 * np.exp(time)
        return 2 * np.arcsinh(np.sqrt(odds))
    solution = integrate.solve_ivp(lambda _, s: mean_cosine(s), (0, time), [start], "DOP853", rtol=1e-13, atol=1e-15)
    return float(solution.y[0, -1])


def mean_cosine(parameter):
    """Return ⟨z⟩ of the uniform density on S² pushed by s along an axis: coth s − s/sinh² s."""
    return 1 / np.tanh(parameter) - parameter / np.sinh(parameter) ** 2


def resultant(dimension, concentration):
    """Return ⟨z⟩ of a von Mises–Fisher density e^{c z}: I_{d/2}(c)/I_{d/2−1}(c)."""
    return special.ive(dimension / 2, concentration) / special.ive(dimension / 2 - 1, concentration)


def stationary_resultant(dimension, noise):
    """Return R > 0 of the stationary density e^{R⟨x,e⟩/κ} at β = 0: R = I_{d/2}(R/κ)/I_{d/2−1}(R/κ), for κ < 1/d."""
    return optimize.brentq(lambda r: resultant(dimension, r / noise) - r, 0.01, 1.0)


def harmonic(degree, order, theta, phi):
    """Return the orthonormal Y_lm = P̄_lm(cos θ) e^{imφ}, m ≥ 0, without the Condon–Shortley sign, from SciPy's
    P_lm."""
    log_size = np.log((2 * degree + 1) / (4 * np.pi)) + special.gammaln(degree - order + 1)
    size = np.exp((log_size - special.gammaln(degree + order + 1)) / 2)
    return (-1) ** order * size * special.lpmv(order, degree, np.cos(theta)) * np.exp(1j * order * phi)


def harmonic_sine_derivative(degree, order, theta, phi):
    """Return sin θ ∂Y_lm/∂θ by sin θ dP/dθ = l cos θ P_lm − (l + m) P_{l−1,m} (DLMF 14.10.5)."""
    value = degree * np.cos(theta) * harmonic(degree, order, theta, phi)
    if order == degree:
        return value
    ratio = np.sqrt((2 * degree + 1) / (2 * degree - 1) * (degree - order) / (degree + order))
    return value - (degree + order) * ratio * harmonic(degree - 1, order, theta, phi)


def orders(errors, sizes):
    """Return the observed orders of convergence between successive sizes (cells across)."""
    errors, sizes = np.asarray(errors, dtype=float), np.asarray(sizes, dtype=float)
    return np.log(errors[:-1] / errors[1:]) / np.log(sizes[1:] / sizes[:-1])
