"""Coefficients of the method of order 8, equal to SciPy's."""

import numpy as np
from scipy.integrate import DOP853

from solvers.timestepping.adaptive.dormand_prince import dense_tableau, tableau


def test_the_tableau_is_scipys():
    stages, weights, errors, nodes = tableau()
    expected = DOP853.A, DOP853.B, np.stack([DOP853.E5, DOP853.E3])[:, :-1], DOP853.C
    for found, exact in zip((stages, weights, errors, nodes), expected, strict=True):
        np.testing.assert_array_equal(found, exact)


def test_the_tableau_of_the_interpolation_is_scipys():
    stages, nodes, coefficients = dense_tableau()
    np.testing.assert_array_equal(stages, [np.append(DOP853.B, np.zeros(4)), *DOP853.A_EXTRA])
    np.testing.assert_array_equal(nodes, [1.0, *DOP853.C_EXTRA])
    np.testing.assert_array_equal(coefficients, DOP853.D)
