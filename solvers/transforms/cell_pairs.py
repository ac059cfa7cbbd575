"""Direct sums of a zonal kernel over pairs of cells, for sums that a transform has lost to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats, Mesh
from .lost_sums import lost_sums

TILE_PAIRS = 1 << 20  # pairs in a tile on the host


class SumsOverPairs(Protocol):
    """Direct sums of a kernel over pairs of cells, which replace sums that a transform has lost to rounding."""

    def redo(self, lost: NDArray[np.bool_], masses: Floats, sums: tuple[Floats, Floats, Floats]) -> None:
        """Replace ``sums`` by direct sums in the cells ``lost``.

        lost     (cells,) true where a transform has lost the sums to rounding
        masses   (cells,) masses m_j of the cells with centers x_j
        sums     log_scale (cells,), Z e^{−log_scale} (cells,) and N e^{−log_scale} (cells, d), with Z_i = Σ_j m_j K_ij
                 and N_i = Σ_j m_j K_ij x_j for the kernel K
        """
        ...


class ExponentialPairs:
    """Direct sums over pairs of cells with the kernel e^{t⟨x,y⟩ − log_factor}, t = ``steepness``."""

    def __init__(self, mesh: Mesh, steepness: float, log_factor: float = 0.0) -> None:
        self._mesh, self._steepness, self._log_factor = mesh, steepness, log_factor

    def redo(self, lost: NDArray[np.bool_], masses: Floats, sums: tuple[Floats, Floats, Floats]) -> None:
        backend, centers = self._mesh.backend, self._mesh.centers
        occupied, count = backend.true_indices(masses != 0)

        def towards(places: Floats) -> Floats:
            exponents: Floats = centers[places] * self._steepness
            return exponents

        backend.redo_sums(lost, occupied, count, towards, centers, masses, sums, lost_sums)
        if self._log_factor:
            sums[0][lost] -= self._log_factor


class ZonalPairs:
    """Direct sums over pairs of cells with the kernel k(⟨x,y⟩) e^{log_factor}, in tiles on the host.

    ``log_kernel`` is log k, a function of cosines ⟨x,y⟩ (...).
    """

    def __init__(self, mesh: Mesh, log_kernel: Callable[[Floats], Floats], log_factor: float = 0.0) -> None:
        self._mesh, self._log_kernel, self._log_factor = mesh, log_kernel, log_factor

    def redo(self, lost: NDArray[np.bool_], masses: Floats, sums: tuple[Floats, Floats, Floats]) -> None:
        backend, points = self._mesh.backend, self._mesh.on_host.centers.astype(np.float64)
        places, weights = np.flatnonzero(backend.to_host(lost)), backend.to_host(masses).astype(np.float64)
        occupied = np.flatnonzero(weights > 0)
        sources, logs = points[occupied], np.log(weights[occupied])
        step = max(TILE_PAIRS // max(len(occupied), 1), 1)
        for start in range(0, len(places), step):
            some = places[start : start + step]
            parts = self._tile(points[some], sources, logs)
            for whole, part in zip(sums, parts, strict=True):
                whole[backend.to_device(some)] = backend.to_device(part)

    def _tile(self, targets: Floats, sources: Floats, logs: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log_scale (n,), Z e^{−log_scale} (n,) and N e^{−log_scale} (n, d) at targets (n, d), see `redo`.

        The sums run over sources (m, d), whose masses have the logarithms ``logs`` (m,). The largest term of Z at a
        target is e^{log_scale}, against overflow.
        """
        exponents = self._log_kernel(targets @ sources.T) + logs
        log_scale = np.maximum(exponents.max(axis=1, initial=-np.inf), np.finfo(np.float64).min)  # not −∞
        kernel = np.exp(exponents - log_scale[:, None])
        return log_scale + self._log_factor, kernel.sum(axis=1), kernel @ sources
