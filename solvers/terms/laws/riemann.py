"""Formulas that the Riemann solvers and wall states of several systems share."""

from __future__ import annotations

import numpy as np

from ...mesh.mesh import Floats


def hll_flux(
    flux_l: Floats, flux_r: Floats, left: Floats, right: Floats, slow: Floats, fast: Floats
) -> tuple[Floats, Floats]:
    """Return the flux of Harten, Lax and van Leer (fields, n) and the largest speed (n,) for two states (fields, n).

    ``slow`` and ``fast`` are bounds (n,) of the signal speeds; ``flux_l`` and ``flux_r`` the fluxes of both states.
    """
    a, b = np.minimum(slow, 0.0), np.maximum(fast, 0.0)
    through = (b * flux_l - a * flux_r + a * b * (right - left)) / (b - a)
    return through, np.maximum(np.abs(slow), np.abs(fast))


def mirror_rows(u: Floats, n: Floats, rows: slice) -> Floats:
    """Return the state u (fields, n) with the vector in ``rows`` reflected at walls with normals n (n, d)."""
    mirrored: Floats = u.copy()
    mirrored[rows] -= 2 * (u[rows] * n.T).sum(axis=0) * n.T
    return mirrored
