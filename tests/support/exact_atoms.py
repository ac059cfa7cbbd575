"""Exact dynamics of atoms to any number of digits: a drift e^{−cβ} is lost in plain double precision."""

from itertools import pairwise

import mpmath as mp
import numpy as np

from meanfield.domains.atoms.flow import advance

mp.mp.dps = 30


def flow(law, atoms, times):
    """Yield (time, atoms, mergers since the previous time) by the package at each of ``times`` after the first, the
    start."""
    for start, end in pairwise(times):
        atoms, mergers = advance(law, atoms, start, end)
        yield end, atoms, mergers


def pair_time_equal(beta, angle=2, cosine=0.5):
    """Return the time in which two equal atoms reach ``cosine`` under softmax, by Ei: see ORACLES,
    exact.pair_time_equal."""

    def clock(s):
        tails = -mp.ei(beta * (1 - s)) + mp.exp(2 * beta) * mp.ei(-beta * (1 + s))
        return mp.atanh(s) / 2 + tails / 4

    return float(clock(mp.mpf(cosine)) - clock(mp.cos(angle)))


def pair_time(beta, masses, angle=2, cosine=0.5):
    """Return ∫dφ/φ̇ for two atoms: φ̇ = −sin φ [m₂e/(m₁ + m₂e) + m₁e/(m₂ + m₁e)], e = e^{β(cos φ − 1)}."""
    m, n = (mp.mpf(mass) for mass in masses)

    def per_angle(phi):
        e = mp.exp(beta * (mp.cos(phi) - 1))
        return 1 / (mp.sin(phi) * (n * e / (m + n * e) + m * e / (n + m * e)))

    return float(mp.quad(per_angle, mp.linspace(mp.acos(cosine), angle, 9)))


def velocities(beta, positions, masses, normalization="softmax"):
    """Return P_i Σ_j m_j x_j e^{β(⟨x_i,x_j⟩ − 1)}/Z_i, term by term, from double positions taken as exact and
    normalized.

    The sums have 250 digits, so that e^{−400} is not lost beside 1.
    """
    with mp.workdps(250):
        return _velocities(beta, positions, masses, normalization)


def _velocities(beta, positions, masses, normalization):
    points = [mp.matrix([mp.mpf(float(c)) for c in x]) for x in positions]
    points = [x / mp.norm(x) for x in points]
    result = []
    for x in points:
        weights = [mp.mpf(float(m)) * mp.exp(beta * (_dot(x, y) - 1)) for m, y in zip(masses, points, strict=True)]
        total = mp.matrix(len(x), 1)
        for weight, y in zip(weights, points, strict=True):
            total += weight * y
        total -= _dot(x, total) * x
        result.append(total / mp.fsum(weights) if normalization == "softmax" else total * mp.exp(beta))
    return result


def relative_errors(found, exact):
    """Return |found − exact|/|exact| of each velocity (k,)."""
    errors = []
    for one, other in zip(found, exact, strict=True):
        errors.append(float(mp.norm(mp.matrix([mp.mpf(float(c)) for c in one]) - other) / mp.norm(other)))
    return np.array(errors)


def _dot(x, y):
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))
