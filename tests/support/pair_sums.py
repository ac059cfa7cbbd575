"""Sums of exponentials over pairs in extended precision, from the matrix of all exponents."""

import numpy as np


def expected(targets, sources, weights, vectors, log_scale=None, log_weights=0.0, causal=False):
    """Return the same three arrays by whole matrices in extended precision."""
    wide = np.longdouble
    exponents = targets.astype(wide) @ sources.T.astype(wide) + np.asarray(log_weights, wide)
    hidden = np.broadcast_to(weights == 0, exponents.shape).copy()
    if causal:
        hidden |= np.triu(np.ones(exponents.shape, bool), 1)
    exponents[hidden] = -np.inf
    scale = exponents.max(axis=1) if log_scale is None else log_scale.astype(wide)
    kernel = np.exp(exponents - scale[:, None]) * weights
    return scale, kernel.sum(axis=1), kernel @ vectors


def assert_same(found, reference, rounding):
    """Assert log Z + s and N/Z, which do not depend on s, within ``rounding``, absolute and relative to the largest."""
    scale, normalizer, sums = (np.asarray(array, np.longdouble) for array in found)
    size = np.abs(reference[2]).max(axis=1)
    factor = np.exp(scale - reference[0])
    assert np.abs(normalizer * factor / reference[1] - 1).max() < rounding
    assert (np.abs(sums * factor[:, None] - reference[2]).max(axis=1) / size).max() < rounding
