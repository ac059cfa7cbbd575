"""Statistics over seeds: mean with a 95 % interval by Student's t, and differences paired by seed.

    mean ± t s/√m ,     s² = Σ_k (x_k − mean)²/(m − 1) ,     t the 97.5 % quantile of Student's t with m − 1 degrees

x_k is one number of the network of seed k, such as a mean over examples. Examples of one network are not independent
draws of networks, and are never pooled with those of another seed. Networks of one seed have the same order of
examples, so that differences between two kinds of networks are taken seed by seed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from solvers.mesh.mesh import Floats

LEVEL = 0.95


def mean_and_half_width(values: ArrayLike, axis: int = -1) -> tuple[Floats, Floats]:
    """Return the mean over seeds, along ``axis``, and half the width of its 95 % interval: NaN for one seed."""
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    seeds = values.shape[axis]
    mean = values.mean(axis=axis)
    if seeds < 2:
        return mean, np.full_like(mean, np.nan)
    error = values.std(axis=axis, ddof=1) / math.sqrt(seeds)
    return mean, np.asarray(t.ppf((1 + LEVEL) / 2, seeds - 1) * error)


def describe(values: ArrayLike) -> str:
    """Return the mean of values, one for each seed, and half the width of its 95 % interval as a text."""
    mean, half_width = (float(x) for x in mean_and_half_width(values))
    if not (math.isfinite(half_width) and half_width > 0):
        return f"{mean:.3g}"
    decimals = max(1 - math.floor(math.log10(half_width)), 0)
    return f"{mean:.{decimals}f} ± {half_width:.{decimals}f}"


def describe_ratio(values: ArrayLike) -> str:
    """Return the geometric mean of positive values, one for each seed, and its 95 % interval as a text.

    The interval is that of the logarithms.
    """
    mean, half_width = (float(x) for x in mean_and_half_width(np.log(np.asarray(values, dtype=float))))
    if not math.isfinite(half_width):
        return f"{math.exp(mean):.3g}"
    return f"{math.exp(mean):.3g} [{math.exp(mean - half_width):.3g}, {math.exp(mean + half_width):.3g}]"


def describe_difference(values: ArrayLike, others: ArrayLike) -> str:
    """Return the mean of the differences ``values − others``, paired by seed, and its 95 % interval as a text."""
    return describe(np.asarray(values, dtype=float) - np.asarray(others, dtype=float))
