"""The numbers of Dormand and Prince's method of order 8 are SciPy's, however they are read."""

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import DOP853

from solvers.timestepping.adaptive import dormand_prince


@pytest.mark.parametrize("has_file", [True, False])
def test_numbers_are_those_of_scipy(has_file, monkeypatch):
    if not has_file:
        monkeypatch.setattr(Path, "exists", lambda path: False)
    for read in (dormand_prince._numbers, dormand_prince.tableau, dormand_prince.dense_tableau):
        monkeypatch.setattr(dormand_prince, read.__name__, read.__wrapped__)
    stages, weights, errors, nodes = dormand_prince.tableau()
    within, places, coefficients = dormand_prince.dense_tableau()
    pairs = [
        (stages, DOP853.A), (weights, DOP853.B), (nodes, DOP853.C), (errors, [DOP853.E5[:-1], DOP853.E3[:-1]]),
        (within[1:], DOP853.A_EXTRA), (places[1:], DOP853.C_EXTRA), (coefficients, DOP853.D),
    ]  # fmt: skip
    for found, expected in pairs:
        np.testing.assert_array_equal(found, expected)
