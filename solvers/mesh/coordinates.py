"""Coordinates of cells in figures and datasets: axes of a product, a length, angles; and unit vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .mesh import Floats, Mesh

AXES = ("x", "y", "z")
RADIAL = "radial"  # manifold of the mesh of shells
ANGLES = {"circle": "angle"}  # manifold → name of its angular coordinate


class Layout(NamedTuple):
    """Dimensions and coordinates of a field on a mesh, for figures and datasets.

    dimensions    names of the dimensions of a field, in the order of the cells
    shape         number of cells along each dimension
    coordinates   name → (dimensions, values)
    """

    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: Mapping[str, tuple[tuple[str, ...], Floats]]


def layout(mesh: Mesh) -> Layout:
    """Return the coordinates of a mesh's cells for figures and datasets.

    An interval or a box has x, y, z; shells have r; a circle has the angle (radians, from −π). Other meshes have the
    dimension "cell" with the coordinates of the centers. Cells of a surface in R³ also have longitude and latitude
    (degrees), as seen from the origin.
    """
    centers = mesh.centers
    if mesh.manifold in ANGLES:
        name = ANGLES[mesh.manifold]
        angle = np.arctan2(centers[:, 1], centers[:, 0])
        return Layout((name,), (mesh.cells,), {name: ((name,), angle)})
    shape = mesh.shape or ((mesh.cells,) if centers.shape[1] == 1 else ())
    if shape and len(shape) == centers.shape[1]:
        grid, axes = centers.reshape(*shape, -1), ("r",) if mesh.manifold == RADIAL else AXES[: len(shape)]
        lines = {
            name: ((name,), np.asarray(np.moveaxis(grid[..., k], k, 0).reshape(shape[k], -1)[:, 0]))
            for k, name in enumerate(axes)
        }
        return Layout(axes, shape, lines)
    of_cells = {name: (("cell",), centers[:, k]) for k, name in enumerate(AXES[: centers.shape[1]])}
    if centers.shape[1] == 3 and mesh.dimension < 3:
        of_cells["longitude"] = ("cell",), np.degrees(np.arctan2(centers[:, 1], centers[:, 0]))
        of_cells["latitude"] = ("cell",), np.degrees(np.arctan2(centers[:, 2], np.hypot(centers[:, 0], centers[:, 1])))
    return Layout(("cell",), (mesh.cells,), of_cells)


def middle_layer(centers: Floats, thickness: float) -> NDArray[np.bool_]:
    """Return which cells (cells,) of a body, with ``centers`` (cells, 3), a figure of its middle height z shows.

    These are the cells within half a ``thickness`` of the middle, or else the layer nearest to it.
    """
    height = np.abs(centers[:, 2] - (centers[:, 2].min() + centers[:, 2].max()) / 2)
    return np.asarray(height <= max(height.min() * (1 + 1e-9) + 1e-12, thickness / 2))


def unit_vectors(vectors: ArrayLike) -> Floats:
    """Return x/|x| of vectors x (..., d) in double precision; a zero vector stays 0."""
    x = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.where(lengths > 0, lengths, 1.0))


def along_east_and_north(mesh: Mesh, vectors: Floats) -> Floats:
    """Return the east and north components (2, cells) of vectors (cells, 3) at the centers of a sphere of rings."""
    x, y, z = mesh.centers.T
    radius = np.hypot(x, y)
    east = (x * vectors[:, 1] - y * vectors[:, 0]) / radius
    north = radius * vectors[:, 2] - z * (x * vectors[:, 0] + y * vectors[:, 1]) / radius
    components: Floats = mesh.backend.xp.stack([east, north])
    return components
