"""Initial positions of tokens as particles: unit vectors (n, d), and positions (n, d) where they are normal.

The distributions are those of the initial densities of the same names, sampled exactly; equal seeds give equal tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.domains.particles.field import Field, draw_from_field, lowest
from meanfield.domains.sphere.fields import harmonic_coefficients, perturbed_coefficients
from meanfield.model.errors import ArgumentError
from meanfield.model.layer_norm import tangential_part
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats


def tokens_uniform(count: int, dimension: int, seed: int = 0) -> Floats:
    """Return (count, dimension) independent unit vectors, uniform on the sphere."""
    return unit_vectors(np.random.default_rng(seed).standard_normal((count, dimension)))


def tokens_perturbed(
    count: int, dimension: int, amplitude: float, degrees: int = 12, field_seed: int = 0, seed: int = 0
) -> Floats:
    """Return random tokens (count, dimension) of the density ρ̄ e^g, scaled to mass 1, with the uniform density ρ̄.

    g is the field of ``field_perturbed`` for ``field_seed``. Raises ValueError for a dimension other than 2 and 3.
    """
    field = field_perturbed(dimension, amplitude, degrees, field_seed)
    return draw_from_field(field, lambda g: g, count, seed)


def field_perturbed(dimension: int, amplitude: float, degrees: int, seed: int) -> Field:
    """Return the field amplitude·g, with a Gaussian random field g of unit variance determined by ``seed``.

    g has equal power in the degrees 1 to ``degrees``. The density ρ̄ e^{amplitude·g}, normalized, is that of
    ``initial_perturbed``. Raises ValueError for a dimension other than 2 and 3.
    """
    return Field(amplitude * perturbed_coefficients(dimension, degrees, seed))


def tokens_harmonic(count: int, dimension: int, degree: int, order: int, amplitude: float, seed: int = 0) -> Floats:
    """Return random tokens (count, dimension) of the density ρ̄ (1 + g), with the uniform density ρ̄.

    g is the field of ``field_harmonic``. Raises ValueError for a dimension other than 2 and 3, and where the density
    would be negative.
    """
    return draw_from_field(field_harmonic(dimension, degree, order, amplitude), np.log1p, count, seed)


def field_harmonic(dimension: int, degree: int, order: int, amplitude: float) -> Field:
    """Return amplitude·Y, with the real harmonic Y of ``initial_harmonic``.

    Raises ValueError for a dimension other than 2 and 3, and for a field below −1.
    """
    field = Field(amplitude * harmonic_coefficients(dimension, degree, order))
    if (minimum := lowest(field)) < -1:
        largest = abs(amplitude) / -minimum
        raise ArgumentError("amplitude", amplitude, f"at most {largest:.4g}, where the density becomes negative")
    return field


def tokens_von_mises_fisher(
    count: int, centers: ArrayLike, concentrations: ArrayLike, masses: ArrayLike, seed: int = 0
) -> Floats:
    """Return random tokens (count, d) of a mixture Σ_k m_k e^{c_k ⟨x, μ_k⟩} / ∫… of von Mises–Fisher densities.

    The centers μ are (k, d) for any d ≥ 2, the concentrations c ≥ 0, and Σ m_k is scaled to 1. Wood's rejection
    (Communications in Statistics 23, 1994) for w = 1 − ⟨x, μ⟩, so that no digit of a narrow density is lost: w = 2by/(1
    − (1 − b)y), y ~ Beta((d − 1)/2, (d − 1)/2), b = (d − 1)/(2c + √(4c² + (d − 1)²)).
    """
    random, middles = np.random.default_rng(seed), unit_vectors(np.asarray(centers, dtype=float))
    weights = np.asarray(masses, dtype=float)
    component = random.choice(len(middles), count, p=weights / weights.sum())
    w = _draw_cosine_deficits(np.asarray(concentrations, dtype=float)[component], middles.shape[1], random)[:, None]
    center = middles[component]
    around = tangential_part(center, random.standard_normal(center.shape))
    return unit_vectors((1 - w) * center + np.sqrt(w * (2 - w)) * unit_vectors(around))


def _draw_cosine_deficits(concentrations: Floats, dimension: int, random: np.random.Generator) -> Floats:
    """Return random numbers 1 − ⟨x, μ⟩ (n,) of von Mises–Fisher tokens x with center μ and concentrations (n,)."""
    c, p = concentrations, dimension - 1.0
    b = p / (2 * c + np.hypot(2 * c, p))
    deficits, left = np.empty(len(c)), np.arange(len(c))
    while len(left):
        y = random.beta(p / 2, p / 2, len(left))
        cl, bl = c[left], b[left]
        w = 2 * bl * y / (1 - (1 - bl) * y)
        ratio = (1 + bl) / 2 + (1 - bl * bl) * w / (4 * bl)
        accepted = np.log(random.random(len(left))) <= cl * (2 * bl / (1 + bl) - w) + p * np.log(ratio)
        deficits[left[accepted]] = w[accepted]
        left = left[~accepted]
    return deficits


def tokens_moebius(count: int, axis: ArrayLike, parameter: float, seed: int = 0) -> Floats:
    """Return uniform random tokens (count, d) transported along ``axis`` by :func:`transport_moebius`.

    Their distribution is the density of ``initial_moebius``. The dimension is that of the axis.
    """
    return transport_moebius(tokens_uniform(count, np.size(axis), seed), axis, parameter)


def transport_moebius(tokens: Floats, axis: ArrayLike, parameter: float) -> Floats:
    """Return unit vectors (n, d) transported along ``axis`` e by the flow ẋ = Pₓ e for the time s = ``parameter``.

    z = ⟨x, e⟩ ↦ tanh(artanh z + s) and x − ze ↦ (x − ze)/(cosh s + z sinh s).
    """
    (e,) = unit_vectors(np.atleast_2d(np.asarray(axis, dtype=float)))
    z = (tokens @ e)[:, None]
    return unit_vectors((z + np.tanh(parameter)) * e + (tokens - z * e) / np.cosh(parameter))


def tokens_gaussian(count: int, dimension: int, mean: ArrayLike, variance: ArrayLike, seed: int = 0) -> Floats:
    """Return random positions (count, dimension) of tokens with the normal distribution N(mean, variance) in R^d.

    The variance is a number or a matrix (d, d).
    """
    return scale_normal(np.random.default_rng(seed).standard_normal((count, dimension)), mean, variance)


def scale_normal(draws: Floats, mean: ArrayLike, variance: ArrayLike) -> Floats:
    """Return positions (n, d) distributed as N(mean, variance) from ``draws`` (n, d) distributed as N(0, I)."""
    given = np.asarray(variance, dtype=float)
    covariance = given * np.eye(draws.shape[1]) if given.ndim == 0 else given
    return np.asarray(mean, dtype=float) + draws @ np.linalg.cholesky(covariance).T


def tokens_equiangular(count: int, dimension: int, cosine: float = 0.0) -> Floats:
    """Return (count, dimension) unit vectors, any two with the same cosine g: x_i = √(1 − g) e_i + b Σ_j e_j.

    b makes the lengths 1. There are such vectors of this form if count ≤ dimension and −1/(count − 1) ≤ g ≤ 1.
    """
    diagonal = np.sqrt(1.0 - cosine)
    common = (np.sqrt(max(1.0 - cosine + count * cosine, 0.0)) - diagonal) / count  # rounding at the least cosine
    return np.asarray(diagonal * np.eye(count, dimension) + common * (np.arange(dimension) < count))


def tokens_waves(count: int, mean: ArrayLike, amplitude: float, modes: int = 4, seed: int = 0) -> Floats:
    """Return tokens (count, d) of a sequence, samples of a smooth random field mean + amplitude·g, not normalized.

    The positions in the sequence are x = (i + ½)/count. g = Σ_m a_m √2 cos(mπx), m = 1 … modes, a_m Gaussian, E|a_m|² =
    1/modes.
    """
    middle = np.asarray(mean, dtype=float)
    sizes = np.random.default_rng(seed).standard_normal((modes, len(middle))) / np.sqrt(modes * len(middle))
    waves = np.sqrt(2.0) * np.cos(np.pi * np.multiply.outer(np.arange(count) + 0.5, np.arange(1, modes + 1)) / count)
    return np.asarray(middle + amplitude * waves @ sizes)
