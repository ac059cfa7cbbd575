"""Discrete operators of second order on a mesh: sparse matrices, and sources by the data of the boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..mesh.boundaries import Outflow, Part, Robin, Value
from ..mesh.calculus import least_squares_weights, quadratic_stencil, tangent_planes
from ..mesh.mesh import Floats, Mesh
from ..terms.diffusion import Diffusion, diffusion_parts
from ..terms.operators import add_at, diffusion_source, share_of_data

Boundaries = Mapping[str, Any]
Affine = tuple[Any, Callable[[float], float | Floats]]  # matrix M (cells, cells) and source s(t) of M u + s(t)


@dataclass(frozen=True, eq=False)
class Operators:
    """Operators of a mesh, of fields with conditions on the boundary and of other expressions, which have walls.

    mesh         mesh on the host
    boundaries   conditions of each field by name
    """

    mesh: Mesh
    boundaries: Mapping[str, Boundaries]

    @cached_property
    def laplacian(self) -> Any:
        """Return the matrix (cells, cells) of Δ between walls, of fourth order in boxes.

        On a sphere, two-point fluxes are used, of second order for values at the cell centers. Fluxes of fitted cubics
        would need cell averages, but a function of cell averages is not a cell average.
        """
        return Diffusion(self.mesh, 1.0, nonnegative=self.mesh.manifold == "sphere").jacobian(1)[0]

    @cached_property
    def two_point_laplacian(self) -> Any:
        """Return the matrix (cells, cells) of Δ between walls by differences of two cells at each face.

        The matrix is symmetric in the inner product Σ V u v with the cell volumes V.
        """
        return self._two_point({}).jacobian(1)[0]

    def _two_point(self, boundaries: Boundaries) -> Diffusion:
        """Return the diffusion term of coefficient 1 with monotone two-point fluxes."""
        return Diffusion(self.mesh, np.ones(self.mesh.cells), boundaries=boundaries, nonnegative=True)

    @cached_property
    def laplacians(self) -> dict[str, Affine]:
        """Return Δu = M u + s(t) of each field with conditions on the boundary, as pairs (M, s) by name."""
        return {
            field: (Diffusion(self.mesh, 1.0, boundaries=given).jacobian(1)[0], _RateOfData(self.mesh, given))
            for field, given in self.boundaries.items()
        }

    @cached_property
    def inflows(self) -> dict[str, list[Affine]]:
        """Return the parts M u + s(t) of Δu by fluxes through each part of the boundary, as pairs (M, s) by field."""
        return {
            field: [
                (self._two_point(each).jacobian(1)[0] - self.two_point_laplacian, _RateOfData(self.mesh, each))
                for each in ({part.tag: part.condition} for part in self._parts(given))
            ]
            for field, given in self.boundaries.items()
        }

    @cached_property
    def rises(self) -> dict[str, list[Any]]:
        """Return matrices (cells, cells) of the change of a coefficient from the cells to each part of the boundary.

        A condition a u + b ∂ₙu = g with b > 0 has the coefficient of div(a ∇u) at the faces, another one that in the
        cells, which is of second order there. The lists belong to the fields of :attr:`inflows`.
        """
        return {field: [self._rise(part) for part in self._parts(given)] for field, given in self.boundaries.items()}

    def _parts(self, boundaries: Boundaries) -> tuple[Part, ...]:
        """Return the parts of the boundary with conditions other than walls."""
        return diffusion_parts(self.mesh, boundaries)

    def _rise(self, part: Part) -> Any:
        """Return the matrix (cells, cells) of linear extrapolation from the cells to their faces in a boundary part."""
        from scipy.sparse import coo_array

        mesh = self.mesh
        owner, neighbor, weights = mesh.gradient_weights
        ways, areas = np.zeros((mesh.cells, mesh.ambient_dimension)), np.zeros(mesh.cells)
        np.add.at(areas, part.cells, part.areas)
        share = part.areas * part.distances / areas[part.cells] * (_robin(part)[1] > 0)
        np.add.at(ways, part.cells, share[:, None] * part.normals)
        entries = (ways[owner] * weights).sum(axis=1)
        places = np.append(owner, owner), np.append(neighbor, owner)
        return coo_array((np.append(entries, -entries), places), (mesh.cells, mesh.cells)).tocsr()

    @cached_property
    def gradient(self) -> list[Any]:
        """Return the matrices (cells, cells) of the components of ∇ between walls.

        On a circle ∇u·∇x = ½ (Δ(xu) − xΔu − uΔx) for each coordinate x. On closed surfaces ∇ is that of a quadratic
        fit, since Δ by fluxes has errors of order 1 where the numbers of cells of rings differ. Else ∇ is by least
        squares.
        """
        from scipy.sparse import coo_array, diags_array

        mesh = self.mesh
        if mesh.manifold == "circle":
            found = []
            for x in mesh.centers.T:
                of_x, times = diags_array(self.laplacian @ x), diags_array(np.array(x))
                found.append(0.5 * (self.laplacian @ times - times @ self.laplacian - of_x))
            return found
        if mesh.dimension != 2 or mesh.shape or mesh.boundary_faces:
            return [matrix for matrix, _ in self._gradient({})]
        owner, other, weights = quadratic_stencil(mesh)
        places = np.append(owner, owner), np.append(other, owner)
        return [coo_array((np.append(w, -w), places), (mesh.cells, mesh.cells)).tocsr() for w in weights.T]

    @cached_property
    def gradients(self) -> dict[str, list[Affine]]:
        """Return the components M u + s(t) of ∇u for fields with conditions on the boundary: pairs (M, s) by name."""
        return {field: self._gradient(given) for field, given in self.boundaries.items()}

    def _gradient(self, boundaries: Boundaries) -> list[Affine]:
        """Return ∂u/∂x for each coordinate x as a pair (M, s), ∂u/∂x = M u + s(t), by least squares.

        The squares are summed over the neighbors of a cell and over its images beyond the boundary. The image of cell i
        across a boundary face has the distance 2h, and the value u_i + 2h ∂ₙu, where h is the distance of the cell
        center from the face and ∂ₙu follows from a u + b ∂ₙu = g: 0 at a wall and at outflow.
        """
        from scipy.sparse import coo_array

        mesh, shape = self.mesh, (self.mesh.cells, self.mesh.cells)
        cells, sides = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start)), mesh.cell_sides
        neighbors, faces = mesh.side_cells[sides ^ 1], sides >> 1
        offsets = mesh.shortest(mesh.centers[neighbors] - mesh.centers[cells])
        outer = neighbors == cells
        normals = mesh.face_normals[faces[outer]]
        reach = mesh.shortest(mesh.face_centers[faces[outer]] - mesh.centers[cells[outer]])
        offsets[outer] = 2 * (normals * reach).sum(axis=1)[:, None] * normals
        weights = least_squares_weights(cells, offsets, tangent_planes(mesh))
        place = np.empty(2 * mesh.faces, dtype=np.int64)
        place[sides] = np.arange(len(sides))
        inner = np.flatnonzero(~outer)
        rows, columns = np.tile(cells[inner], 2), np.append(neighbors[inner], cells[inner])
        found: list[Affine] = []
        for weight in weights.T:
            entries = np.append(weight[inner], -weight[inner])
            matrix, data = coo_array((entries, (rows, columns)), shape).tocsr(), []
            for part in self._parts(boundaries):
                if isinstance(part.condition, Outflow):
                    continue
                a, b = _robin(part)
                share = weight[place[part.sides]] * 2 * part.distances / (a * part.distances + b)
                matrix = matrix - coo_array((a * share, (part.cells, part.cells)), shape).tocsr()
                data.append((part, share))
            found.append((matrix, _Data(mesh, tuple(data)) if data else _no_source))
        return found

    @cached_property
    def divergence(self) -> list[Any]:
        """Return the matrices (cells, cells) of the terms of div, one for each component of a vector field.

        Fluxes are those of linear interpolation between both cells at each face, and 0 through the boundary. Constant
        vectors have the divergence 0 in cells away from the boundary.
        """
        from scipy.sparse import coo_array

        mesh = self.mesh
        first, second = mesh.face_cells.T
        inner = np.flatnonzero(first != second)
        one, two = first[inner], second[inner]
        rows, columns = np.concatenate([one, one, two, two]), np.concatenate([one, two, one, two])
        found = []
        before, after = (
            np.abs(
                (mesh.shortest(mesh.face_centers[inner] - mesh.centers[cells]) * mesh.face_normals[inner]).sum(axis=1)
            )
            for cells in (one, two)
        )
        share = after / (before + after)  # of the first cell
        for component in mesh.face_normals.T:
            area = component[inner] * mesh.face_areas[inner]
            amounts = np.concatenate([share * area, (1 - share) * area, -share * area, (share - 1) * area])
            amounts /= mesh.volumes[rows]
            found.append(coo_array((amounts, (rows, columns)), (mesh.cells, mesh.cells)).tocsr())
        return found


def _robin(part: Part) -> tuple[complex, float]:
    """Return the numbers a, b of the condition a u + b ∂ₙu = g on a part of the boundary."""
    if isinstance(part.condition, Robin):
        return part.condition.a, part.condition.b
    return (1.0, 0.0) if isinstance(part.condition, Value) else (0.0, 1.0)


def _no_source(time: float) -> float:
    """Return 0, the source of a boundary condition that is zero at all times."""
    return 0.0


@dataclass(frozen=True, eq=False)
class _RateOfData:
    """Rate of change (cells,) of a field u with ∂ₜu = Δu by the data of the boundary, as a function of the time."""

    mesh: Mesh
    boundaries: Boundaries

    def __call__(self, time: float) -> float | Floats:
        shares = [share_of_data(self.mesh, 1.0, part) for part in self._parts]
        rate = diffusion_source(self.mesh, shares, self._parts, time)
        return 0.0 if rate is None else rate

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        """Return the parts of the boundary with conditions, other than walls and periodic ones."""
        return diffusion_parts(self.mesh, self.boundaries)


@dataclass(frozen=True, eq=False)
class _Data:
    """Sums (cells,) of the data of ``parts``, pairs of a part of the boundary and weights of its faces (faces,)."""

    mesh: Mesh
    parts: tuple[tuple[Part, Floats], ...]

    def __call__(self, time: float) -> Floats:
        sums = np.zeros(self.mesh.cells)
        for part, weights in self.parts:
            sums = add_at(self.mesh, sums, part.cells, weights * part.data(time))
        return sums
