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
    """Fluxes of drift and diffusion at faces f by several cells j: Σ_j weight e^{(V_j − V_f)/D} u_j in a potential V.

    The fluxes are differences of u e^{V/D}, which vanish for the Gibbs density u = e^{−V/D}.

    faces, cells, weights   face f, cell j and weight of each summand
    mean        (faces, cells) sparse: the potential V_f = mean V at the faces
    spread      (faces, faces) sparse: maps fluxes at face centers to fluxes whose differences are cell averages; None
                for the identity
    """

    def __init__(self, faces: Indices, cells: Indices, weights: Floats, mean: Any, spread: Any = None) -> None:
        order = np.argsort(faces, kind="stable")
        self._faces, self.cells, self._weights = faces[order], cells[order], weights[order]
        self.starts = np.append(0, np.cumsum(np.bincount(faces, minlength=mean.shape[0])))
        self._mean, self.spread, self.shape = mean, spread, mean.shape

    def at(self, V: Floats) -> WideFluxesInPotential:
        """Return the fluxes in a potential; V (cells,) is the potential divided by D."""
        exponent = V[self.cells] - (self._mean @ V)[self._faces]
        largest = np.maximum.reduceat(np.abs(exponent), self.starts[:-1])
        if self.spread is not None:
            largest = np.maximum.reduceat(largest[self.spread.indices], self.spread.indptr[:-1])
        share = np.clip((Q_NONE - largest) / (Q_NONE - Q_FULL), 0.0, 1.0)
        return WideFluxesInPotential(self, self._weights * np.exp(np.clip(exponent, -Q_NONE, Q_NONE)), share)


@dataclass(frozen=True, eq=False)
class WideFluxesInPotential:
    """Fluxes by several cells in one potential, linear in the density.

    fluxes         the fluxes in any potential
    coefficients   of the density in each summand
    share          (faces,) weight of the fluxes from 0 to 1: 1 where V differs from its value at the face by at most
                   Q_FULL in all cells of the flux, and 0 where a difference exceeds Q_NONE. Two-point fluxes have the
                   remaining weight.
    """

    fluxes: WideFluxes
    coefficients: Floats
    share: Floats

    def of(self, values: Floats) -> Floats:
        """Return the fluxes (faces,) of the density ``values`` (cells,)."""
        fluxes = self.fluxes
        found = np.add.reduceat(self.coefficients * values[fluxes.cells], fluxes.starts[:-1])
        return np.asarray(found if fluxes.spread is None else fluxes.spread @ found)

    def matrix(self) -> Any:
        """Return the sparse matrix (faces, cells) that maps a density to the fluxes."""
        from scipy.sparse import csr_matrix

        fluxes = self.fluxes
        found = csr_matrix((self.coefficients, fluxes.cells, fluxes.starts), fluxes.shape)
        return found if fluxes.spread is None else fluxes.spread @ found


class GibbsFluxes:
    """Fluxes of −(D∇u + u∇V) between cells, which vanish for the Gibbs density u = e^{−V/D}; 0 at walls.

    Two-point fluxes of Scharfetter and Gummel (1969) between cells i and j are D c (B(q) u_i − B(−q) u_j), with q =
    (V_j − V_i)/D, c area over distance and B(q) = q/(e^q − 1): monotone, of second order. Unless ``monotone``, wide
    fluxes replace them where |q| is small. On lines of equal cells these are −D e^{−V/D}∇(u e^{V/D}) by four cells, of
    fourth order. On meshes whose two-point fluxes are inconsistent (:mod:`solvers.terms.consistency`), gradients are
    used.
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
        """Return the fluxes of drift and diffusion in a potential V (cells,), for any density."""
        rise = (V[self._second] - V[self._first]) / self._D
        ahead, back = self._conductances * bernoulli(rise), self._conductances * bernoulli(-rise)
        leaving = np.bincount(self._first, ahead, len(V)) + np.bincount(self._second, back, len(V))
        fastest = float((leaving / self._volumes).max()) * (1.0 if self._wide is None else 4 / 3)
        wide = None if self._wide is None else self._wide.at(V / self._D)
        return FluxesInPotential(self._first, self._second, self._into, ahead, back, wide, fastest)


@dataclass(frozen=True, eq=False)
class FluxesInPotential:
    """Fluxes of drift and diffusion between cells in one potential, linear in the density.

    first, second   (faces,) cells of each inner face
    into            (cells, faces) sparse: maps fluxes to the gain of each cell
    ahead, back     (faces,) coefficients of the two-point fluxes ahead · u_first − back · u_second
    wide            wide fluxes; None without them
    fastest         1 / the largest explicit step that keeps u ≥ 0: the largest outflow rate of a cell by two-point
                    fluxes, times 4/3 if there are wide fluxes
    """

    first: Indices
    second: Indices
    into: Any
    ahead: Floats
    back: Floats
    wide: WideFluxesInPotential | None
    fastest: float

    def gain(self, values: Floats, monotone: bool = False) -> Floats:
        """Return the mass (cells,) that each cell gains per time at the density ``values`` (cells,).

        ``monotone``: use two-point fluxes alone, without the fluxes that depend on more than two cells.
        """
        flux = self.ahead * values[self.first] - self.back * values[self.second]
        if self.wide is not None and not monotone:
            flux += self.wide.share * (self.wide.of(values) - flux)
        return np.asarray(self.into @ flux)

    def matrix(self, monotone: bool = False) -> Any:
        """Return the sparse matrix (cells, cells) that maps a density to the mass that each cell gains per time.

        ``monotone``: use two-point fluxes alone, without the fluxes that depend on more than two cells.
        """
        from scipy.sparse import csr_matrix, diags

        every, shape = np.arange(len(self.first)), self.into.shape[::-1]
        entries = np.append(self.ahead, -self.back), (np.tile(every, 2), np.append(self.first, self.second))
        flux = csr_matrix(entries, shape)
        if self.wide is not None and not monotone:
            flux = diags(1.0 - self.wide.share) @ flux + diags(self.wide.share) @ self.wide.matrix()
        return self.into @ flux


def _wide(mesh: Mesh, inner: Indices, D: float, conductances: Floats) -> WideFluxes | None:
    """Return the fluxes of a stencil beyond two cells, along lines or by gradients; None where two cells suffice."""
    opposite = opposite_sides(mesh)
    if opposite is not None:
        return _fluxes_along_lines(mesh, inner, opposite, conductances)
    return None if has_linear_precision(mesh) else _fluxes_by_gradients(mesh, inner, D)


def _fluxes_along_lines(mesh: Mesh, inner: Indices, opposite: Integers, conductances: Floats) -> WideFluxes:
    """Return the fluxes −D e^{−V/D}∇(u e^{V/D}) at inner faces by four cells in line, on a mesh of equal cells.

    1/24 of the second difference of neighboring fluxes is subtracted, so that flux differences are cell averages.
    ``opposite`` is the side opposite to each side of a cell.
    """
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


def _fluxes_by_gradients(mesh: Mesh, inner: Indices, D: float) -> WideFluxes:
    """Return the fluxes −D e^{−V/D}∇(u e^{V/D}) at inner faces, by differences and gradients of both cells.

    The difference of the two cells gives the part along the line between their centers, the mean gradient the rest.
    """
    from scipy.sparse import csr_matrix

    every, shape = np.arange(len(inner)), (len(inner), mesh.cells)
    faces, cells, weights = gradient_fluxes(mesh, inner, np.eye(mesh.centers.shape[1]))
    mean = csr_matrix((np.full(2 * len(inner), 0.5), (np.tile(every, 2), mesh.face_cells[inner].T.reshape(-1))), shape)
    return WideFluxes(faces, cells, -D * weights, mean)
