"""Time at which n independent uniform tokens leave the uniform density, by linear theory; derived here.

A real mode Y of degree l with the mean square 1 over the uniform distribution has the amplitude a = Σ Y(x_i)/n. At the
start its variance is 1/n. It grows at the rate λ of linear theory, and noise κ adds fluctuations:

    Var a = (e^{2λt} + l(l + d − 2) κ (e^{2λt} − 1)/λ)/n

Amplitudes are Gaussian and independent for large n, so that the sum S of the squares of all growing modes is a sum of
χ² variables. S is the mean square of ρ/ρ̄ − 1 in these modes. Linear theory ends where S is not small: the symmetry
counts as broken at the first time with S = AMPLITUDE². The distribution of this time is P(S(t) > AMPLITUDE²), exact for
modes that only grow, as without noise. Terms beyond linear theory delay it, by a time independent of n.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.mesh.mesh import Floats

AMPLITUDE = 0.3
_DRAWS = 20_000  # probabilities have errors of 0.004
_HALVINGS = 40


def mode_variances(time: Floats, rates: Floats, damping: Floats, tokens: int) -> Floats:
    """Return the variance (times, degrees) of the amplitude of one mode of each degree.

    time      (times,)
    rates     (degrees,) growth rates λ > 0, with noise
    damping   (degrees,) rates l(l + d − 2) κ of damping by noise
    """
    grown = np.exp(2 * rates * time[:, None])
    return np.asarray((grown + damping * (grown - 1) / rates) / tokens)


def breaking_times(rates: Floats, damping: Floats, modes: Floats, tokens: int) -> Floats:
    """Return a sorted sample (draws,) of the time at which the symmetry of n = ``tokens`` uniform tokens is broken.

    The sample is the same in each call. Times are 0 where the symmetry is broken from the start.

    rates     (degrees,) growth rates λ > 0, with noise
    damping   (degrees,) rates l(l + d − 2) κ of damping by noise
    modes     (degrees,) numbers of real modes
    """
    squares = np.random.default_rng(0).chisquare(modes, (_DRAWS, len(modes)))

    def is_broken(time: Floats) -> Floats:
        return np.asarray((mode_variances(time, rates, damping, tokens) * squares).sum(axis=1) >= AMPLITUDE**2)

    first, last = np.zeros(_DRAWS), np.full(_DRAWS, 1 / rates.max())
    while not (broken := is_broken(last)).all():
        last = np.where(broken, last, 2 * last)
    for _ in range(_HALVINGS):
        middle = (first + last) / 2
        broken = is_broken(middle)
        first, last = np.where(broken, first, middle), np.where(broken, middle, last)
    return np.sort(np.where(is_broken(np.zeros(_DRAWS)), 0.0, last))


def count_modes(dimension: int, degree: int) -> int:
    """Return the number of independent real harmonics of a degree on S^{d−1}, d = ``dimension``."""
    below = math.comb(degree + dimension - 3, dimension - 1) if degree >= 2 else 0
    return math.comb(degree + dimension - 1, dimension - 1) - below
