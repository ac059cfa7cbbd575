"""Dormand and Prince's method of order 8: its tableaux, and the control of its steps."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...mesh.mesh import Floats

TARGET_SPACINGS = 16  # spacings of floating-point time from a target that count as there
MIN_SPACINGS = 10  # spacings of time that a step has to have
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # of the step that the error asks for; limits of a change of the step
ORDER = 8  # of the method: the error of a step is of the same order, which is that of the next lower method


@cache
def tableau() -> tuple[Floats, Floats, Floats, Floats]:
    """Stages (12, 12), weights (12), weights of the two errors (2, 12) and nodes (12); SciPy has the numbers."""
    from scipy.integrate import DOP853

    stages, weights, nodes, fifth, third = DOP853.A, DOP853.B, DOP853.C, DOP853.E5, DOP853.E3
    return stages, weights, np.stack([fifth[:-1], third[:-1]]), nodes  # the last is of the rate after: 0


@cache
def dense_tableau() -> tuple[Floats, Floats, Floats]:
    """Of the interpolation stages (4, 16), the first of which is the step itself, nodes (4), coefficients (4, 16)."""
    from scipy.integrate import DOP853

    stages = np.zeros((4, 16))
    stages[0, :12], stages[1:] = DOP853.B, DOP853.A_EXTRA
    return stages, np.array([1.0, *DOP853.C_EXTRA]), DOP853.D
