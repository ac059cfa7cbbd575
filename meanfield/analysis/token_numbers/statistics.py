"""Estimates over seeds with intervals of confidence LEVEL: means, variances, exponents in n. Seeds are independent."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats

LEVEL = 0.95


class Estimate(NamedTuple):
    """Estimated number, and the half width of its interval of confidence LEVEL."""

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ± {self.half_width:.3f}"


def quantile_t(count: int) -> float:
    """Return the factor of the standard error in the t-interval of confidence LEVEL for a mean of ``count`` values."""
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, 0.5 + LEVEL / 2))


def mean_half_width(values: Floats, axis: int) -> Floats:
    """Return the half widths of the t-intervals of means over the seeds along an axis."""
    count = values.shape[axis]
    return np.asarray(quantile_t(count) * values.std(axis=axis, ddof=1) / np.sqrt(count))


def variance_interval(variance: Floats, count: int) -> Floats:
    """Return the chi-square intervals (2, ...) of variances (...) over ``count`` seeds, for normal values."""
    from scipy.special import chdtri

    ends = chdtri(count - 1, np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return np.asarray((count - 1) * np.multiply.outer(1 / ends, variance))


def exponent_of_means(n: NDArray[np.intp], values: Floats) -> Estimate:
    """Return the exponent p of means over seeds ∝ nᵖ, from values (sizes, seeds) > 0 for the numbers n (sizes,).

    p is the slope of the unweighted regression of the logarithm of the means, as for equal relative errors at all n.
    """
    return _jackknife(lambda some: slope(n, np.log(some.mean(axis=1))), values)


def exponent_of_deviations(n: NDArray[np.intp], values: Floats) -> Estimate:
    """Return the exponent p of standard deviations over seeds ∝ nᵖ, from values (sizes, seeds, times).

    p is the slope of the regression of the logarithm, averaged over the times.
    """
    return _jackknife(lambda some: slope(n, np.log(some.std(axis=1, ddof=1)).mean(axis=-1)), values)


def slope(n: NDArray[np.intp], logarithms: Floats) -> float:
    """Return the slope of the least-squares line of ``logarithms`` (sizes,) over log n."""
    x = np.log(n) - np.log(n).mean()
    return float(x @ logarithms / (x @ x))


def _jackknife(statistic: Callable[[Floats], float], values: Floats) -> Estimate:
    """Return a statistic of values (sizes, seeds, ...), with an interval by the jackknife: omission of single seeds."""
    count = values.shape[1]
    without = np.array([statistic(np.delete(values, seed, axis=1)) for seed in range(count)])
    error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    return Estimate(statistic(values), quantile_t(count) * float(error))


def first_above(times: Floats, values: Floats, level: float) -> float:
    """Return the first time at which values (times,) exceed a level, by linear interpolation; ∞ if they never do."""
    above = np.flatnonzero(values > level)
    if not len(above):
        return np.inf
    k = int(above[0])
    if k == 0:
        return float(times[0])
    share = (level - values[k - 1]) / (values[k] - values[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def mean_ratio(scaled: Floats) -> Estimate:
    """Return the mean variance over seeds of values (sizes, seeds, times) that are scaled to have variance 1."""
    return _jackknife(lambda some: float(some.var(axis=1, ddof=1).mean()), scaled)
