"""Pages of indexes of sweeps that lack what a page draws."""

import numpy as np

from meanfield.view.sweep import _series


def test_a_point_without_times_has_no_curves():
    tables = {"time": np.linspace(0.0, 1.0, 5), "mass": np.ones(5)}
    assert _series(tables, 100) is not None
    assert _series({"mass": tables["mass"]}, 100) is None
