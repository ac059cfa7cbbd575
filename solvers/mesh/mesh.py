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
import numpy.typing as npt
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

    Functions such as :func:`~solvers.interval`, :func:`~solvers.box`, :func:`~solvers.sphere` and
    :func:`~solvers.triangles` make meshes. The two sides of face k are 2k and 2k + 1: the face seen from its first cell
    and from its second cell. A face of the boundary has the same cell on both sides, ``face_cells = [i, i]``; one
    of the two sides belongs to the cell.

    Parameters
    ----------
    manifold : str
        Name of the manifold.
    dimension : int
        Intrinsic dimension: 1 for a curve, 2 for a surface, 3 for a box of three axes.
    centers : (cells, d) array
        Centroids of the cells, projected to the manifold.
    volumes : (cells,) array
        Length, area or volume of each cell.
    face_cells : (faces, 2) array of int
        The two cells of each face.
    face_centers : (faces, d) array
        Centroids of the faces, not projected.
    face_normals : (faces, d) array
        Unit normal from the first cell to the second, averaged over the face; shorter than 1 if the face is curved.
    face_areas : (faces,) array
        Length or area of each face; 1 on a curve.
    face_curvatures : (faces,) array
        Geodesic curvature: rate of rotation of the normal along the face; 0 on a curve.
    face_conductances : function () -> (faces,) array
        Area over distance of the cell centers, on the host, for two-point diffusion fluxes.
    cell_start : (cells + 1,) array of int
        Start of each cell's sides in ``cell_sides``, followed by the number of all sides.
    cell_sides : (sides,) array of int
        Sides of the cells, cell by cell; on surfaces counterclockwise as seen from outside.
    ring_cells : (rings,) array of int
        Number of cells of each ring of latitude from north to south. A mesh without rings has one entry; a product has
        one entry for each cell of its first factor.
    boundary_faces : dict of str to (n,) array of int, optional
        Faces of each part of the boundary by its tag, on the host. A periodic part has no faces.
    periods : tuple of float, optional
        Period of each of the d coordinates, ∞ where not periodic. Empty if no coordinate is periodic.
    shape : tuple of int, optional
        Number of cells along each axis of a product, in row-major order. Empty for other meshes.
    face_ends : function () -> (faces, 2, d) array, optional
        Ends of each face on the host, counterclockwise around its first cell; only
        :class:`~solvers.StreamFunction` needs them.

    Notes
    -----
    NumPy arrays become read-only. The first term on a mesh checks the arrays; it raises ValueError where they
    contradict each other. Arrays of the mesh of :func:`~solvers.sphere` are evaluated at first access.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import sphere
    >>> mesh = sphere(16)
    >>> mesh
    <Mesh sphere: 344 cells in R^3, 712 faces, total volume 12.5664>
    >>> bool(np.isclose(mesh.volumes.sum(), 4 * np.pi))
    True
    >>> mesh.face_cells[0]  # the first face joins two cells of the northernmost ring
    array([0, 1], dtype=int32)
    >>> 1 in mesh.neighbors(0)
    True
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
        """Return the fields of the mesh for pickling, without cached quantities, which are computed again."""
        return {each.name: vars(self)[each.name] for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def on(self, backend: Backend, number: type[np.floating] = np.float64) -> Mesh:
        """Return the mesh with its arrays on the device of a backend.

        ``ring_cells`` and the data of the boundary stay on the host.

        Parameters
        ----------
        backend : Backend
            Backend of the device.
        number : floating-point type, optional
            Format of the arrays, and of arrays computed for the mesh.

        Returns
        -------
        Mesh
            The mesh itself if nothing changes, else a copy.
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
        """Return the same mesh with all arrays on the host (in the memory of the CPU)."""
        return self.on(backend_for(self.ring_cells), self.volumes.dtype.type)

    def __repr__(self) -> str:
        place = f"in R^{self.ambient_dimension}, {self.faces} faces, total volume {self.volume:.6g}"
        boundary = f", boundary {', '.join(self.boundary_faces)}" if self.boundary_faces else ""
        return f"<Mesh {self.manifold}: {self.cells} cells {place}{boundary}>"

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return len(self.volumes)

    @property
    def faces(self) -> int:
        """Return the number of faces."""
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
        """Return rows of one array of the mesh on the host, without evaluation of the whole array.

        Parameters
        ----------
        name : str
            Name of the array, such as "centers".
        index : array of int
            Indices of cells or faces, of any shape.

        Returns
        -------
        (..., ...) array
            The rows; the first axes are those of ``index``.
        """
        value = vars(self)[name]
        return value.at(index) if isinstance(value, Lazy) else self.backend.to_host(value)[index]

    @cached_property
    def volume(self) -> float:
        """Return the total length, area or volume: exactly 2π on the circle and 4π on the sphere."""
        return {"circle": 2 * np.pi, "sphere": 4 * np.pi}.get(self.manifold, float(self.volumes.sum()))

    @cached_property
    def width(self) -> float:
        """Return a typical cell width: the mean volume of a cell to the power 1/dimension."""
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
        """Return the backend of the device that holds the mesh: its array functions and kernels."""
        return backend_for(self.volumes)

    @cached_property
    def side_cells(self) -> Integers:
        """Return the cell that each side belongs to (2 faces,); ``side_cells[side ^ 1]`` is the neighbor across."""
        return self.face_cells.reshape(-1)

    @cached_property
    def side_neighbors(self) -> Integers:
        """Return the neighbors (sides,) of all cells; entries ``cell_start[i]:cell_start[i + 1]`` belong to cell i."""
        neighbors: Integers = self.side_cells[self.cell_sides ^ 1]
        return neighbors

    def shortest(self, offsets: Floats) -> Floats:
        """Return offsets between points to the nearest image where coordinates are periodic.

        Parameters
        ----------
        offsets : (n, d) array
            Differences of points.

        Returns
        -------
        (n, d) array
            Offsets of at most half a period along each periodic coordinate.
        """
        if not self.periods:
            return offsets
        period = np.where(np.isfinite(self.periods), self.periods, 1.0)
        images: Floats = np.where(np.isfinite(self.periods), np.rint(offsets / period), 0.0)
        return offsets - images * period

    @cached_property
    def gradient_weights(self) -> tuple[NDArray[np.intp], NDArray[np.integer[Any]], Floats]:
        """Return weights w (sides, d) of the least-squares gradient: ∇u_i = Σ w (u_j − u_i) over the sides of cell i.

        Returns the cells i (sides,), the neighbors j (sides,) and w, for meshes on the host only.
        """
        from .calculus import gradient_weights

        return gradient_weights(self)

    @cached_property
    def gradient_stencil(self) -> tuple[NDArray[np.intp], NDArray[np.integer[Any]], Floats]:
        """Return the weights w (n, d) that :meth:`gradient` uses: ∇u_i = Σ w (u_j − u_i) over the entries of cell i.

        Returns the cells i (n,) in ascending order, the cells j (n,) and w, for meshes on the host only. On
        triangulations, also of tetrahedra, w are the weights of a quadratic fit, on other meshes ``gradient_weights``.
        """
        from .calculus import quadratic_stencil

        return quadratic_stencil(self) if self.manifold in ("triangles", "tetrahedra") else self.gradient_weights

    def gradient(self, u: npt.ArrayLike) -> Floats:
        """Return the gradient of a field by least squares over the neighbors of each cell.

        Linear fields have their exact gradient in cells with neighbors along all directions. The order is 2 on equal
        cells, and at least 1 next to a boundary and where the sizes of cells change. On triangulations of any shape the
        order is 2, also next to a boundary, by a quadratic fit over neighbors and their neighbors.

        Parameters
        ----------
        u : (..., cells) array
            Field, or several.

        Returns
        -------
        (..., cells, d) array
            Tangent vectors at the cell centers.

        Raises
        ------
        ValueError
            If the last axis of u has another length than ``cells``.

        Examples
        --------
        >>> import numpy as np
        >>> from solvers import interval
        >>> mesh = interval(0.0, 1.0, 4)
        >>> mesh.gradient(3 * mesh.centers[:, 0])[:, 0].tolist()
        [3.0, 3.0, 3.0, 3.0]
        """
        from .calculus import gradient

        return gradient(self, self._field("u", u))

    def divergence(self, v: npt.ArrayLike) -> Floats:
        """Return the divergence of a vector field by its fluxes through the faces of each cell.

        The integral of the divergence is the flux through the boundary, and 0 on a closed mesh.

        Parameters
        ----------
        v : (..., cells, d) array
            Tangent vectors at the cell centers.

        Returns
        -------
        (..., cells) array
            Divergence.

        Raises
        ------
        ValueError
            If the last axes of v have other lengths than ``cells`` and d.

        Examples
        --------
        On the unit sphere, the gradient (0, 0, 1) − z x of the height z has the divergence −2z:

        >>> from solvers import sphere
        >>> mesh = sphere(32)
        >>> z = mesh.centers[:, 2]
        >>> divergence = mesh.divergence([0, 0, 1] - z[:, None] * mesh.centers)
        >>> bool(mesh.integrate(abs(divergence + 2 * z)) < 0.05)
        True
        """
        from .calculus import divergence
        from .checks import as_numbers, check_unmasked

        check_unmasked("v", v)
        vectors = np.moveaxis(as_numbers(v), -1, 0)
        if len(vectors) != self.ambient_dimension:
            raise ValueError(f"v of shape {np.shape(v)}: expected (..., {self.cells}, {self.ambient_dimension})")
        return divergence(self, np.moveaxis(self._field("v", vectors), 0, -1))

    def interpolate(self, u: npt.ArrayLike, points: npt.ArrayLike) -> Floats:
        """Return a field at points, linear around the nearest cell center and of second order.

        Points outside the mesh get the continuation of the nearest cell.

        Parameters
        ----------
        u : (..., cells) array
            Field, or several.
        points : (n, d) array
            Points of R^d, on or near the mesh.

        Returns
        -------
        (..., n) array
            Values at the points.

        Raises
        ------
        ValueError
            If the arrays have other shapes.

        Examples
        --------
        >>> from solvers import interval
        >>> mesh = interval(0.0, 1.0, 10)
        >>> mesh.interpolate(2 * mesh.centers[:, 0], [[0.03], [0.5]]).round(12).tolist()
        [0.06, 1.0]
        """
        from .calculus import interpolate
        from .checks import check_unmasked

        check_unmasked("points", points)
        at = np.asarray(points, dtype=np.float64)
        if at.ndim != 2 or at.shape[1] != self.ambient_dimension:
            raise ValueError(f"points of shape {at.shape}: expected (n, {self.ambient_dimension})")
        return interpolate(self, self._field("u", u), at)

    def integrate(self, u: npt.ArrayLike) -> Any:
        """Return the integral of a field: the sum over the cells of volume times value.

        Parameters
        ----------
        u : (..., cells) array
            Field, or several.

        Returns
        -------
        float or (...) array
            Integral of each field.

        Raises
        ------
        ValueError
            If the last axis of u has another length than ``cells``.

        Examples
        --------
        >>> from solvers import circle
        >>> mesh = circle(64)
        >>> round(float(mesh.integrate(mesh.centers[:, 0] ** 2)), 6)
        3.141593
        """
        return self._field("u", u) @ self.volumes

    def _field(self, name: str, u: npt.ArrayLike) -> Floats:
        """Return fields (…, cells) as numbers; ``name`` is that of the argument, for the message."""
        from .checks import as_numbers, check_unmasked

        check_unmasked(name, u)
        values: Floats = as_numbers(u)
        if values.ndim == 0 or values.shape[-1] != self.cells:
            raise ValueError(f"{name} of shape {np.shape(u)}: expected {self.cells} cells")
        return values

    def neighbors(self, cell: int) -> Integers:
        """Return the cells that share a face with a cell, in the order of its sides.

        Parameters
        ----------
        cell : int
            Index of the cell.

        Returns
        -------
        (n,) array of int
            Indices of the neighbors. Behind a face of the boundary it is the cell itself.
        """
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
    """Return the mesh of the unit circle S¹ with equal arcs.

    Cell i covers the angles [i, i + 1]·2π/cells. Points, centers among them, are vectors in R².

    Parameters
    ----------
    cells : int
        Number of cells, at least 3. Good values: 64 to 512.

    Returns
    -------
    Mesh
        The closed mesh, without boundaries.

    Raises
    ------
    TypeError
        If ``cells`` is not a whole number.
    ValueError
        For fewer than 3 cells, or more cells than 32-bit side numbers allow.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import circle
    >>> mesh = circle(64)
    >>> angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    >>> round(float(np.cos(angle) ** 2 @ mesh.volumes), 6)  # ∫cos² = π
    3.141593
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
    """Return the points (…, 2) of the unit circle at angles (…)."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def sphere(rings: int) -> Mesh:
    """Return the mesh of the unit sphere S² with rings of latitude of equal width, each divided into equal cells.

    All cells have nearly the same area. Neighboring rings have the same number of cells or the ratio 2:1. Cells are
    numbered ring by ring from the north pole, and eastward from azimuth 0. Areas, centroids and face lengths are exact.

    Parameters
    ----------
    rings : int
        Number of rings from pole to pole, at least 4. The mesh has about 1.35 rings² cells. Good values: 32 to 128.

    Returns
    -------
    Mesh
        The closed mesh. The centers, faces and sides of the mesh are evaluated at first access.

    Raises
    ------
    TypeError
        If ``rings`` is not a whole number.
    ValueError
        For fewer than 4 rings, or more cells than 32-bit side numbers allow.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import sphere
    >>> mesh = sphere(32)
    >>> mesh.cells
    1368
    >>> round(float(mesh.volumes.sum() / np.pi), 6)
    4.0
    >>> bool(abs(mesh.centers[:, 2] ** 2 @ mesh.volumes - 4 * np.pi / 3) < 0.01)  # ∫z²
    True
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
