"""Meshes: a list of cells and the faces between cells, in R^d.

A mesh holds geometry and nothing else. Cells carry averages; a face joins two cells. A *side* is a face as seen from
one of its cells. It is numbered ``2 * face + 0`` for ``face_cells[face, 0]`` and ``2 * face + 1`` for
``face_cells[face, 1]``, so that ``side ^ 1`` is the same face seen from the other cell. The sides of cell i are
``cell_sides[cell_start[i]:cell_start[i + 1]]``, on surfaces counterclockwise as seen from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends import Backend, backend_for
from .arguments import check_count, check_sides
from .conductances import ring_conductances
from .lazy import ArrayField, Lazy
from .rings import Rings, cells_of_rings, ring_face_ends

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Mesh:
    """Cells and faces of a manifold in R^d, closed or with a boundary.

    A face of the boundary has the same cell on both sides, ``face_cells = [i, i]``; one of its two sides belongs to the
    cell. Centers, faces and sides may be :class:`~solvers.mesh.lazy.Lazy`: evaluated at first access and cached. The
    mesh of :func:`sphere` uses lazy arrays; the kernels for the sphere read none of them.

    manifold       name of the manifold
    dimension      intrinsic dimension: 1 for a curve, 2 for a surface
    centers        (cells, d) centroids, projected to the manifold
    volumes        (cells,) length or area of each cell
    face_cells     (faces, 2) the two cells of each face
    face_centers   (faces, d) centroids, not projected
    face_normals   (faces, d) unit normal, from the first cell to the second, averaged over the face
    face_areas     (faces,) length of each face (1 on a curve)
    face_curvatures (faces,) geodesic curvature: rate of rotation of the normal along the face (0 on a curve)
    face_conductances  function that returns (faces,) on the host: area over distance of the cell centers, for two-point
                   diffusion fluxes; used by diffusion only
    cell_start, cell_sides   sides of each cell, see the module's docstring
    ring_cells     (rings,) number of cells of each ring of latitude from north to south; the circle has one ring
    boundary_faces   tag of each part of the boundary → indices of its faces, on the host; a periodic part has none
    periods        (d,) period of each coordinate, ∞ where not periodic; () if no coordinate is periodic
    shape          number of cells along each axis of a product, in row-major order; () for other meshes
    face_ends      function that returns (faces, 2, d) on the host: the ends of each face, counterclockwise around its
                   first cell; used by stream functions only. None for meshes without it
    """

    manifold: str
    dimension: int
    centers: ArrayField[Floats] = ArrayField()
    volumes: Floats
    face_cells: ArrayField[Integers] = ArrayField()
    face_centers: ArrayField[Floats] = ArrayField()
    face_normals: ArrayField[Floats] = ArrayField()
    face_areas: ArrayField[Floats] = ArrayField()
    face_curvatures: ArrayField[Floats] = ArrayField()
    face_conductances: Callable[[], Floats]
    cell_start: ArrayField[Integers] = ArrayField()
    cell_sides: ArrayField[Integers] = ArrayField()
    ring_cells: Integers
    boundary_faces: Mapping[str, Integers] = field(default_factory=dict)
    periods: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()
    face_ends: Callable[[], Floats] | None = None

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: cached quantities are computed again after unpickling."""
        return {each.name: vars(self)[each.name] for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def on(self, backend: Backend, number: type[np.floating] = np.float64) -> Mesh:
        """Return the same mesh with its arrays on the device of a backend; ``ring_cells`` stays on the host.

        number   floating-point format of the arrays, and of arrays computed for the mesh
        """
        if backend is self.backend and number == self.volumes.dtype:
            return self

        def to_device(value: Any) -> Any:
            if isinstance(value, Lazy):
                return replace(value, backend=backend, number=number)
            array = self.backend.to_host(value)
            return backend.to_device(array.astype(number) if array.dtype.kind == "f" else array)

        return replace(self, **{name: to_device(value) for name, value in vars(self).items() if name in _ON_DEVICE})

    @property
    def on_host(self) -> Mesh:
        """Return the same mesh with all arrays on the host."""
        return self.on(backend_for(self.ring_cells), self.volumes.dtype.type)

    def __repr__(self) -> str:
        place = f"in R^{self.ambient_dimension}, {self.faces} faces, total volume {self.volume:.6g}"
        boundary = f", boundary {', '.join(self.boundary_faces)}" if self.boundary_faces else ""
        return f"<Mesh {self.manifold}: {self.cells} cells {place}{boundary}>"

    @property
    def cells(self) -> int:
        return len(self.volumes)

    @property
    def faces(self) -> int:
        return int(vars(self)["face_areas"].shape[0])

    @property
    def ambient_dimension(self) -> int:
        """Return the dimension d of the surrounding R^d."""
        return int(vars(self)["centers"].shape[1])

    @property
    def is_by_formula(self) -> bool:
        """Return whether centers, faces and sides are all given by formula, and are therefore consistent."""
        return all(isinstance(vars(self)[name], Lazy) for name in _BY_FORMULA)

    def rows(self, name: str, index: NDArray[np.integer[Any]]) -> Any:
        """Return rows (…, …) of the named array on the host by index; the whole array is not evaluated."""
        value = vars(self)[name]
        return value.at(index) if isinstance(value, Lazy) else self.backend.to_host(value)[index]

    @cached_property
    def volume(self) -> float:
        """Return the total length or area: 2π on the circle, 4π on the sphere, elsewhere the sum over the cells."""
        return {"circle": 2 * np.pi, "sphere": 4 * np.pi}.get(self.manifold, float(self.volumes.sum()))

    @cached_property
    def width(self) -> float:
        """Return a typical cell width: the mean length on a curve, the square root of the mean area on a surface."""
        return float((self.volume / self.cells) ** (1 / self.dimension))

    @cached_property
    def ring_start(self) -> NDArray[np.int64]:
        """Return the index of the first cell of each ring, followed by the number of cells (rings + 1,)."""
        return np.concatenate([[0], np.cumsum(self.ring_cells, dtype=np.int64)])

    @cached_property
    def ring_axis(self) -> tuple[Floats, Floats]:
        """Return the distance from the axis and the height of the centers of each ring, (rings,) each, on the host."""
        x, y, z = self.rows("centers", self.ring_start[:-1]).T
        return np.hypot(x, y), z

    @cached_property
    def ring_edges(self) -> Floats:
        """Return polar angles of the circles between rings of latitude (rings + 1,), 0 to π; empty on other meshes."""
        return np.linspace(0.0, np.pi, len(self.ring_cells) + 1) if self.manifold == "sphere" else np.empty(0)

    @cached_property
    def backend(self) -> Backend:
        """Return the backend of the device that holds the mesh."""
        return backend_for(self.volumes)

    @cached_property
    def side_cells(self) -> Integers:
        """Return the cell that each side belongs to (2 faces,); ``side_cells[side ^ 1]`` is the neighbor across."""
        return self.face_cells.reshape(-1)

    @cached_property
    def side_neighbors(self) -> Integers:
        """Return the neighbors (sides,) of all cells: those of cell i from cell_start[i] to cell_start[i + 1]."""
        neighbors: Integers = self.side_cells[self.cell_sides ^ 1]
        return neighbors

    def shortest(self, offsets: Floats) -> Floats:
        """Return offsets (n, d) between points, to the nearest image where coordinates are periodic."""
        if not self.periods:
            return offsets
        period = np.where(np.isfinite(self.periods), self.periods, 1.0)
        images: Floats = np.where(np.isfinite(self.periods), np.rint(offsets / period), 0.0)
        return offsets - images * period

    def neighbors(self, cell: int) -> Integers:
        """Return the indices of the cells that share a face with ``cell``, in the order of its sides."""
        sides = self.cell_sides[self.cell_start[cell] : self.cell_start[cell + 1]]
        neighbors: Integers = self.side_cells[sides ^ 1]
        return neighbors


_ON_HOST = {
    "manifold",
    "dimension",
    "face_conductances",
    "ring_cells",
    "boundary_faces",
    "periods",
    "shape",
    "face_ends",
}
_ON_DEVICE = {each.name for each in fields(Mesh)} - _ON_HOST
_BY_FORMULA = [name for name, value in vars(Mesh).items() if isinstance(value, ArrayField)]


def circle(cells: int) -> Mesh:
    """Return the mesh of S¹ with ``cells`` equal arcs; cell i covers the angles [i, i + 1]·2π/cells.

    Raises ValueError for fewer than 3 cells, and for more cells than 32-bit side numbers allow.
    """
    check_count("cells", cells, 3)
    check_sides("cells", cells, cells)
    index = np.arange(cells, dtype=np.int32)
    width = 2 * np.pi / cells
    edge: Floats = width * np.arange(1, cells + 1, dtype=np.float64)
    return Mesh(
        manifold="circle",
        dimension=1,
        centers=_unit_circle(edge - 0.5 * width),
        volumes=np.full(cells, width),
        face_cells=np.stack([index, np.roll(index, -1)], axis=1),
        face_centers=_unit_circle(edge),
        face_normals=np.stack([-np.sin(edge), np.cos(edge)], axis=1),
        face_areas=np.ones(cells),
        face_curvatures=np.zeros(cells),
        face_conductances=partial(np.full, cells, 1 / width),
        cell_start=2 * np.arange(cells + 1, dtype=np.int32),
        cell_sides=np.stack([2 * np.roll(index, 1) + 1, 2 * index], axis=1).reshape(-1),
        ring_cells=np.array([cells], dtype=np.int32),
    )


def _unit_circle(angle: Floats) -> Floats:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def sphere(rings: int) -> Mesh:
    """Return the mesh of S² with ``rings`` rings of latitude of equal height, each divided into equal cells.

    All cells have nearly the same area. Neighboring rings have the same number of cells or the ratio 2:1. Cells are
    numbered ring by ring from the north pole, and eastward from azimuth 0. The mesh has about 1.35 rings² cells; areas,
    centroids and face lengths are exact.
    Raises ValueError for fewer than 4 rings, and for more cells than 32-bit side numbers allow.
    """
    check_count("rings", rings, 4)
    check_sides("rings", rings, 2 * int(rings) ** 2)  # a lower bound of the faces, before any array is allocated
    counts, edges = cells_of_rings(rings), np.linspace(0.0, np.pi, rings + 1)
    by_number = Rings(counts, edges)
    cells, faces = int(counts.sum()), by_number.faces
    check_sides("rings", rings, faces)
    shapes = {
        "centers": (cells, 3), "face_cells": (faces, 2), "face_centers": (faces, 3), "face_normals": (faces, 3),
        "face_areas": (faces,), "face_curvatures": (faces,), "cell_start": (cells + 1,), "cell_sides": (2 * faces,),
    }  # fmt: skip
    host = backend_for(counts)
    by_formula: dict[str, Any] = {name: Lazy(shape, getattr(by_number, name), host) for name, shape in shapes.items()}
    return Mesh(
        manifold="sphere",
        dimension=2,
        volumes=np.repeat(by_number.areas, counts),
        face_conductances=partial(ring_conductances, counts, by_number.areas, by_number.colatitudes),
        ring_cells=counts.astype(np.int32),
        face_ends=partial(ring_face_ends, counts, edges),
        **by_formula,
    )
