"""Dormand and Prince's method of order 8: its tableaux, and the control of its steps."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import scipy

from ...mesh.mesh import Floats

TARGET_SPACINGS = 16  # spacings of floating-point time from a target that count as there
MIN_SPACINGS = 10  # spacings of time that a step has to have
SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # of the step that the error asks for; limits of a change of the step
ORDER = 8  # of the method: the error of a step is of the same order, which is that of the next lower method


@cache
def _numbers() -> dict[str, Floats]:
    """SciPy's numbers of the method; the rest of `scipy.integrate` takes as long to import as a small run."""
    file = Path(scipy.__file__).parent / "integrate" / "_ivp" / "dop853_coefficients.py"
    if file.exists():
        found = runpy.run_path(str(file))
        stages, nodes = found["A"], found["C"]
        return {
            "A": stages[:12, :12],
            "C": nodes[:12],
            "A_EXTRA": stages[13:],
            "C_EXTRA": nodes[13:],
            **{name: found[name] for name in ("B", "D", "E3", "E5")},
        }
    from scipy.integrate import DOP853

    numbers: dict[str, Floats] = {**vars(DOP853)}
    return numbers


@cache
def tableau() -> tuple[Floats, Floats, Floats, Floats]:
    """Stages (12, 12), weights (12), weights of the two errors (2, 12) and nodes (12)."""
    numbers = _numbers()
    errors = np.stack([numbers["E5"][:-1], numbers["E3"][:-1]])  # the last is of the rate after: 0
    return numbers["A"], numbers["B"], errors, numbers["C"]


@cache
def dense_tableau() -> tuple[Floats, Floats, Floats]:
    """Of the interpolation stages (4, 16), the first of which is the step itself, nodes (4), coefficients (4, 16)."""
    numbers, stages = _numbers(), np.zeros((4, 16))
    stages[0, :12], stages[1:] = numbers["B"], numbers["A_EXTRA"]
    return stages, np.array([1.0, *numbers["C_EXTRA"]]), numbers["D"]
