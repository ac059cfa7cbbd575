"""Convergence of Newton's iteration for stationary densities."""

from __future__ import annotations

import numpy as np

from solvers.mesh.mesh import Floats

_ROUNDING = 1e-12  # of u, in the largest node, beside that of h, of which u is the difference of two values
_RESIDUAL = 32 * float(np.finfo(float).eps)  # rounding of u − log f[u] relative to u: ten times what is found
_SOFT = 1e-6  # change of u that rounding may cause along a direction in which the equations are nearly singular


def has_converged(residual: Floats, change: Floats, state: Floats, rounding: float) -> bool:
    """Return whether the change is that of rounding, or the residual is and the change is small.

    residual  (nodes,) before the change
    change    (nodes + 1,) of the state
    rounding  of h, see `Equilibria.rounding`
    """
    size, moved = max(1.0, float(np.abs(state).max())), float(np.abs(change).max())
    if moved < _ROUNDING * size + rounding:
        return True
    return moved < _SOFT and float(np.abs(residual).max()) < _RESIDUAL * size + rounding
