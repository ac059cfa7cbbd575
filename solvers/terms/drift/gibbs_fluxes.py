"""Fluxes of drift and diffusion of second and fourth order, which vanish for the Gibbs density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh.lines import opposite_sides
from ...mesh.mesh import Floats, Integers, Mesh
from ..consistency import has_linear_precision
from ..operators import gradient_fluxes
from .drift_diffusion import bernoulli

Indices = NDArray[np.integer]
Q_FULL, Q_NONE = 0.5, 2.0  # |V − V at the face|/D: wide fluxes are used in full below the first, not above the second


class WideFluxes:
    """Fluxes Σ_j weight e^{(V_j − V_f)/D} u_j at faces f: differences of u e^{V/D}, zero for a Gibbs density.

    faces, cells, weights   of each entry
    mean        (faces, cells) sparse: V_f = mean V
    spread      (faces, faces) sparse: maps point fluxes to fluxes whose differences are cell averages; None for 1
    """

    def __init__(self, faces: Indices, cells: Indices, weights: Floats, mean: Any, spread: Any = None) -> None:
        from scipy.sparse import csr_matrix

        order = np.argsort(faces, kind="stable")
        self._faces, self._cells, self._weights = faces[order], cells[order], weights[order]
        starts = np.append(0, np.cumsum(np.bincount(faces, minlength=mean.shape[0])))
        self._at_points = csr_matrix((self._weights, self._cells, starts), mean.shape)
        self._mean, self._spread, self._starts = mean, spread, starts[:-1]

    def at(self, V: Floats) -> tuple[Any, Floats]:
        """Return the matrix (faces, cells) of the fluxes in a potential V/D (cells,), and their weight (faces,).

        The weight in a face follows from the largest exponent of its cells.
        """
        exponent = V[self._cells] - (self._mean @ V)[self._faces]
        largest = np.maximum.reduceat(np.abs(exponent), self._starts)
        matrix = self._at_points.copy()
        matrix.data[:] = self._weights * np.exp(np.clip(exponent, -Q_NONE, Q_NONE))
        if self._spread is not None:
            largest = np.maximum.reduceat(largest[self._spread.indices], self._spread.indptr[:-1])
            matrix = self._spread @ matrix
        return matrix, np.asarray(np.clip((Q_NONE - largest) / (Q_NONE - Q_FULL), 0.0, 1.0))


class GibbsFluxes:
    """Fluxes of −(D∇u + u∇V) between cells; 0 at walls.

    Two-point fluxes of Scharfetter and Gummel (1969), D c (B(q) u_i − B(−q) u_j), q = (V_j − V_i)/D, c area over
    distance, are monotone, of second order. Unless ``monotone``, wide fluxes replace them where |q| is small: on lines
    of equal cells −D e^{−V/D}∇(u e^{V/D}) by four cells, of fourth order; by gradients where two-point fluxes are
    inconsistent (:mod:`solvers.terms.consistency`).
    """

    def __init__(self, mesh: Mesh, D: float, monotone: bool) -> None:
        from scipy.sparse import csr_matrix

        host = mesh.on_host
        inner = np.flatnonzero(host.face_cells[:, 0] != host.face_cells[:, 1])
        self._D, self._volumes = D, host.volumes
        self._first, self._second = host.face_cells[inner].T.astype(np.int64)
        self._conductances = D * np.asarray(mesh.face_conductances(), dtype=np.float64)[inner]
        every, ones = np.arange(len(inner)), np.ones(len(inner))
        shape = (host.cells, len(inner))
        self._into = csr_matrix((ones, (self._second, every)), shape) - csr_matrix((ones, (self._first, every)), shape)
        self._wide = None if monotone else _wide(host, inner, D, self._conductances)

    def at(self, V: Floats) -> FluxesInPotential:
        """Return the fluxes in a potential V (cells,)."""
        rise = (V[self._second] - V[self._first]) / self._D
        ahead, back = self._conductances * bernoulli(rise), self._conductances * bernoulli(-rise)
        leaving = np.bincount(self._first, ahead, len(V)) + np.bincount(self._second, back, len(V))
        fastest = float((leaving / self._volumes).max()) * (1.0 if self._wide is None else 4 / 3)
        wide = None if self._wide is None else self._wide.at(V / self._D)
        return FluxesInPotential(self._first, self._second, self._into, ahead, back, wide, fastest)


@dataclass(frozen=True, eq=False)
class FluxesInPotential:
    """Fluxes between cells in one potential.

    first, second   (faces,) cells of each inner face
    into            (cells, faces) sparse: maps fluxes to the gain of each cell
    ahead, back     (faces,) rates of two-point fluxes from the first cell and from the second
    wide            matrix (faces, cells) of the wide fluxes, and their weight (faces,); None without wide fluxes
    fastest         rate of an explicit step, 4/3 times that of two-point fluxes where they are of fourth order
    """

    first: Indices
    second: Indices
    into: Any
    ahead: Floats
    back: Floats
    wide: tuple[Any, Floats] | None
    fastest: float

    def gain(self, values: Floats, monotone: bool = False) -> Floats:
        """Return (cells,) the mass that each cell gains per time; ``monotone``: by two-point fluxes."""
        flux = self.ahead * values[self.first] - self.back * values[self.second]
        if self.wide is not None and not monotone:
            matrix, share = self.wide
            flux += share * (matrix @ values - flux)
        found: Floats = self.into @ flux
        return found

    def matrix(self, monotone: bool = False) -> Any:
        """Return the sparse matrix (cells, cells) of :meth:`gain`."""
        from scipy.sparse import csr_matrix, diags

        every, shape = np.arange(len(self.first)), self.into.shape[::-1]
        entries = np.append(self.ahead, -self.back), (np.tile(every, 2), np.append(self.first, self.second))
        flux = csr_matrix(entries, shape)
        if self.wide is not None and not monotone:
            matrix, share = self.wide
            flux = diags(1.0 - share) @ flux + diags(share) @ matrix
        return self.into @ flux


def _wide(mesh: Mesh, inner: Indices, D: float, conductances: Floats) -> WideFluxes | None:
    opposite = opposite_sides(mesh)
    if opposite is not None:
        return _along_lines(mesh, inner, opposite, conductances)
    return None if has_linear_precision(mesh) else _by_gradients(mesh, inner, D)


def _along_lines(mesh: Mesh, inner: Indices, opposite: Integers, conductances: Floats) -> WideFluxes:
    """Return −D e^{−V/D}∇(u e^{V/D}) at faces by four cells, less 1/24 of the second difference."""
    from scipy.sparse import csr_matrix, identity

    table = mesh.cell_sides.reshape(mesh.cells, -1)
    rank = np.zeros(2 * mesh.faces, dtype=np.int64)
    rank[table] = np.arange(table.shape[1])
    first, second = mesh.face_cells[inner].T
    ahead, behind = table[second, rank[2 * inner]], table[first, opposite[rank[2 * inner]]]
    four = np.stack([mesh.side_cells[behind ^ 1], first, second, mesh.side_cells[ahead ^ 1]], axis=1)
    every, shape = np.arange(len(inner)), (len(inner), mesh.cells)
    faces, cells = np.repeat(every, 4), four.reshape(-1)
    mean = csr_matrix((np.tile(np.array([-1.0, 9.0, 9.0, -1.0]) / 16, len(inner)), (faces, cells)), shape)
    number = np.full(mesh.faces, -1)
    number[inner] = every
    spread = (26 / 24) * identity(len(inner))
    for sides, same in (
        (ahead, mesh.face_cells[ahead >> 1, 0] == second),
        (behind, mesh.face_cells[behind >> 1, 1] == first),
    ):
        neighbors = number[sides >> 1]  # −1 for a wall, whose flux is 0
        signs = np.where(same, 1.0, -1.0)[neighbors >= 0] / 24
        spread = spread - csr_matrix(
            (signs, (every[neighbors >= 0], neighbors[neighbors >= 0])), (len(inner), len(inner))
        )
    weights = (conductances[:, None] * np.array([-1.0, 27.0, -27.0, 1.0]) / 24).reshape(-1)
    return WideFluxes(faces, cells, weights, mean, spread.tocsr())


def _by_gradients(mesh: Mesh, inner: Indices, D: float) -> WideFluxes:
    """Return −D e^{−V/D}∇(u e^{V/D}) by two cells, and across the line between them by both cells' gradients."""
    from scipy.sparse import csr_matrix

    every, shape = np.arange(len(inner)), (len(inner), mesh.cells)
    faces, cells, weights = gradient_fluxes(mesh, inner, np.eye(mesh.centers.shape[1]))
    mean = csr_matrix((np.full(2 * len(inner), 0.5), (np.tile(every, 2), mesh.face_cells[inner].T.reshape(-1))), shape)
    return WideFluxes(faces, cells, -D * weights, mean)
