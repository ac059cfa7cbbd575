"""Meshes from files of mesh generators."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..mesh import Floats, Mesh
from .arrays import Table, boundary_of, facets_of, rows_in
from .tetrahedra import tetrahedra
from .triangles import triangles

_FACETS = {"triangle": ("line", 1), "tetra": ("triangle", 2)}  # names in meshio and dimensions


def read_triangles(path: str | PathLike[str]) -> Mesh:
    """Return the mesh of the triangles in a file of Gmsh, VTK, STL or another format that meshio reads.

    Named lines become tags of the boundary, see :func:`~solvers.triangles`. Lines inside the mesh are omitted, and so
    are names without a line on the boundary and points without a triangle. The mesh is plane if all z are 0.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Mesh
        Mesh with one cell around each point.

    Raises
    ------
    ImportError
        Without meshio.
    FileNotFoundError
        Without the file.
    ValueError
        For a file without triangles, and as :func:`~solvers.triangles`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from solvers import read_triangles
    >>> tetrahedron = ["OFF", "4 4 0", "0 0 0", "1 0 0", "0 1 0", "0 0 1", "3 0 2 1", "3 0 1 3", "3 0 3 2", "3 1 2 3"]
    >>> _ = Path("tetrahedron.off").write_text(chr(10).join(tetrahedron))
    >>> mesh = read_triangles("tetrahedron.off")
    >>> round(float(mesh.volume), 6)  # three halves and √3/2
    2.366025
    """
    points, corners, tags = _read(path, "triangle", "triangles")
    if points.shape[1] == 3 and not points[:, 2].any():
        points = points[:, :2]
    return triangles(points, corners, tags)


def read_tetrahedra(path: str | PathLike[str]) -> Mesh:
    """Return the mesh of the tetrahedra in a file of Gmsh, VTK or another format that meshio reads.

    Named surfaces become tags of the boundary, see :func:`~solvers.tetrahedra`. Triangles inside the mesh are omitted,
    and so are names without a triangle on the boundary and points without a tetrahedron.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Mesh
        Mesh with one cell around each point.

    Raises
    ------
    ImportError
        Without meshio.
    FileNotFoundError
        Without the file.
    ValueError
        For a file without tetrahedra, and as :func:`~solvers.tetrahedra`.

    Examples
    --------
    >>> import meshio
    >>> from solvers import read_tetrahedra
    >>> points = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> meshio.Mesh(points, [("tetra", [[0, 1, 2, 3]])]).write("tetrahedron.vtu")
    >>> round(6 * float(read_tetrahedra("tetrahedron.vtu").volume), 6)
    1.0
    """
    return tetrahedra(*_read(path, "tetra", "tetrahedra"))


def _read(path: str | PathLike[str], kind: str, plural: str) -> tuple[Floats, Table, dict[str, Table]]:
    """Return the points, the corners of the simplices of a ``kind`` of meshio, and the named facets of their boundary.

    ``plural`` is the name of the simplices in messages.
    """
    try:
        import meshio
    except ImportError:
        raise ImportError(f"reading a mesh file needs meshio: pip install meshio, or use {plural}()") from None
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: expected an existing file")
    file: Any = meshio.read(path)
    if kind not in file.cells_dict:
        raise ValueError(f"{path}: expected {plural}, it has {', '.join(file.cells_dict) or 'nothing'}")
    corners = file.cells_dict[kind]
    used, place = np.unique(corners, return_inverse=True)
    renumbered = np.full(len(file.points), -1)
    renumbered[used] = np.arange(len(used))
    table = place.reshape(corners.shape)
    facets, of_corner = facets_of(table)
    rim, tags = facets[boundary_of(facets, of_corner)], {}
    for name, points in _named(file, *_FACETS[kind]).items():
        chosen = renumbered[points]
        on_boundary = rows_in(rim, chosen) >= 0
        if on_boundary.any():
            tags[name] = chosen[on_boundary]
    return file.points[used], table, tags


def _named(file: Any, kind: str, dimension: int) -> dict[str, Table]:
    """Return the named simplices of a ``kind`` in a file of meshio, as points (n, k): sets, or groups of Gmsh 2.2."""
    sets = {name: cells[kind] for name, cells in file.cell_sets_dict.items() if kind in cells}
    group = file.cell_data_dict.get("gmsh:physical", {}).get(kind)
    if group is not None:
        sets |= {name: group == number for name, (number, of) in file.field_data.items() if of == dimension}
    return {name: file.cells_dict[kind][chosen] for name, chosen in sets.items() if not name.startswith("gmsh:")}
