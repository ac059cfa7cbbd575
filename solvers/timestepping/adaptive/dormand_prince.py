"""Dormand and Prince's method of order 8: its tableaux, and the control of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from ...mesh.mesh import Floats
from . import coefficients

TARGET_SPACINGS = 16  # spacings of floating-point time from a target that count as there
MIN_SPACINGS = 10  # spacings of time that a step has to have
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # of the step that the error asks for; limits of a change of the step
ORDER = 8  # of the method: the error of a step is of the same order, which is that of the next lower method


@cache
def tableau() -> tuple[Floats, Floats, Floats, Floats]:
    """Stages (12, 12), weights (12), weights of the two errors (2, 12) and nodes (12)."""
    weights, *errors = _rows((coefficients.WEIGHTS, coefficients.ERROR_5, coefficients.ERROR_3), 12)
    return _rows(coefficients.STAGES, 12), weights, np.stack(errors), np.array(coefficients.NODES)


@cache
def dense_tableau() -> tuple[Floats, Floats, Floats]:
    """Of the interpolation stages (4, 16), the first of which is the step itself, nodes (4), coefficients (4, 16)."""
    stages = _rows((coefficients.WEIGHTS, *coefficients.INTERPOLATION_STAGES), 16)
    nodes = np.array([1.0, *coefficients.INTERPOLATION_NODES])
    return stages, nodes, _rows(coefficients.INTERPOLATION, 16)


def _rows(sparse: Sequence[Mapping[int, float]], columns: int) -> Floats:
    """(rows, columns) of the numbers in each row that are not 0, by column."""
    full = np.zeros((len(sparse), columns))
    for row, numbers in zip(full, sparse, strict=True):
        row[list(numbers)] = list(numbers.values())
    return full
