"""Harmonic transforms of one velocity by ducc0 on the same rings: a reference where ducc0 is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from solvers.backends import host_backend
from solvers.mesh.mesh import Floats, Mesh


def ducc0_installed() -> bool:
    return find_spec("ducc0") is not None


def ducc0_transforms(mesh: Mesh, masses: Floats, degree: int) -> Callable[[], None]:
    """Return a function that makes the harmonic transforms of one velocity on a mesh by ducc0.

    The transforms are an analysis, a synthesis and a synthesis of the gradient.
    """
    ducc0 = import_module("ducc0")

    counts = mesh.ring_cells.astype(np.uint64)
    axis = mesh.centers[mesh.ring_start[:-1]]
    grid = {
        "theta": np.arctan2(np.hypot(axis[:, 0], axis[:, 1]), axis[:, 2]),
        "nphi": counts,
        "phi0": np.pi / counts,
        "ringstart": mesh.ring_start[:-1].astype(np.uint64),
        "lmax": degree,
        "nthreads": host_backend().WORKERS,
    }
    values = masses[None]

    def call() -> None:
        coefficients = ducc0.sht.adjoint_synthesis(map=values, spin=0, **grid)
        ducc0.sht.synthesis(alm=coefficients, spin=0, **grid)
        ducc0.sht.synthesis(alm=coefficients, spin=1, mode="DERIV1", **grid)

    return call


def ducc0_at_points(points: Floats, degree: int, tolerance: float = 1e-13) -> Callable[[], None]:
    """Return a function that makes the harmonic transforms of the attention among ``points`` (n, 3) by ducc0.

    The transforms are an analysis, a synthesis and a synthesis of the gradient; the angles of the points are computed
    too.
    """
    ducc0 = import_module("ducc0")
    masses = np.full((1, len(points)), 1.0 / len(points))
    options = {"lmax": degree, "epsilon": tolerance, "nthreads": host_backend().WORKERS}

    def call() -> None:
        x, y, z = points.T
        angles = np.stack([np.arctan2(np.hypot(x, y), z), np.arctan2(y, x) % (2 * np.pi)], axis=1)
        coefficients = ducc0.sht.adjoint_synthesis_general(map=masses, spin=0, loc=angles, **options)
        ducc0.sht.synthesis_general(alm=coefficients, spin=0, loc=angles, **options)
        ducc0.sht.synthesis_general(alm=coefficients, spin=1, mode="DERIV1", loc=angles, **options)

    return call
