"""Cells as a VTKHDF time series, for ParaView: geometry in a small file, densities in the run file.

Particles are written as vertices. Densities or positions are a virtual dataset that refers to the run file by its
relative path, so both files have to be moved together. Without the run file densities are NaN and positions 0. VTK
cannot read them while a process writes the run file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.domains.domain import load
from meanfield.domains.table import DOMAINS, kind_of
from meanfield.runtime.messages import print_message
from solvers.io.memory import InMemoryRun
from solvers.io.run_file import FileError, Run
from solvers.io.writing import bytes_of_file

if TYPE_CHECKING:
    import h5py

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Geometry = tuple[Floats, Indices, Indices, int]  # points (n, 3), corners of all cells, corners per cell, VTK type
VTK_VERTEX, VTK_LINE, VTK_POLYGON = 1, 3, 7
VTK_BOXES = {1: VTK_LINE, 2: 8, 3: 11}  # lines, pixels and voxels, by the number of axes


def sphere_polygons(ring_cells: NDArray[np.int32]) -> Geometry:
    """Return the cells of a mesh of S² as polygons with corners counterclockwise from outside.

    A cell beside two finer cells includes the corner between them, so that the surface is closed; a cell at a pole has
    a single corner there.
    """
    counts = ring_cells.astype(np.int64)
    edge = np.linspace(0.0, np.pi, len(counts) + 1)
    on_edge = np.concatenate([[1], np.maximum(counts[:-1], counts[1:]), [1]])  # points on each circle, and poles
    first = np.concatenate([[0], np.cumsum(on_edge)])
    theta = np.repeat(edge, on_edge)
    phi = 2 * np.pi * np.concatenate([np.arange(n) / n for n in on_edge])
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)

    corners = []
    for r, count in enumerate(counts):
        north, south = (_corners(first[r + k], on_edge[r + k], count) for k in (0, 1))
        corners.append(np.concatenate([south, north[:, ::-1]], axis=1))
    sizes = np.repeat([polygons.shape[1] for polygons in corners], counts)
    return points, np.concatenate([polygons.reshape(-1) for polygons in corners]), sizes, VTK_POLYGON


def _corners(first: int, points: int, cells: int) -> Indices:
    """Return the numbers of the corners (cells, corners), west to east, of equal cells along a circle of latitude.

    ``first`` is the number of the first of the ``points`` on the circle.
    """
    if points == 1:  # a pole
        return np.full((cells, 1), first)
    per_cell = points // cells
    return first + (per_cell * np.arange(cells)[:, None] + np.arange(per_cell + 1)) % points


def circle_lines(ring_cells: NDArray[np.int32]) -> Geometry:
    """Return the cells of a mesh of the circle as chords between their ends, in the plane z = 0."""
    cells = int(ring_cells[0])
    angle, index = 2 * np.pi * np.arange(cells) / cells, np.arange(cells, dtype=np.int64)
    points = np.stack([np.cos(angle), np.sin(angle), np.zeros(cells)], axis=1)
    return points, np.stack([index, (index + 1) % cells], axis=1).reshape(-1), np.full(cells, 2), VTK_LINE


def write_vtkhdf(run: Run, path: Path) -> None:
    """Write geometry and times of a run to the VTKHDF file ``path``, with a link to the values in the run file.

    The values are densities or positions. The version of the format is 2.0. Raises FileError for a run in memory or
    without snapshots, or for a manifold without a geometry.
    """
    if isinstance(run, InMemoryRun):
        expected = "expected a run in a file, to which the export refers; save the result first: result.save(path)"
        raise FileError(f"to = 'vtkhdf': {expected}")
    if run.snapshots == 0:
        raise FileError(f"{run.path}: holds no snapshot yet")
    if run.is_complex:
        raise FileError(
            f"{run.path}: holds complex fields; vtkhdf export supports real ones only; xarray opens the file"
        )
    if run.is_solution and run.manifold not in DOMAINS:
        _write_file(run, path, lambda root, name: _write_cells(root, run, name, cells_of_centers(run.cell_centers)))
        return
    kind = kind_of(run.manifold)
    if kind.has_tokens and run.positions(0).shape[1] > 3:
        d = run.positions(0).shape[1]
        raise FileError(
            f"{run.path}: particles in {d} dimensions; vtkhdf export supports 2 and 3 only; xarray opens the run"
        )
    if kind.vtkhdf is None and not kind.has_tokens:
        only = ", ".join(name for name, other in DOMAINS.items() if other.vtkhdf or other.has_tokens)
        raise FileError(f"{run.path}: manifold {run.manifold!r}; vtkhdf export supports {only} only")

    if kind.has_tokens:
        _write_file(run, path, lambda root, name: _write_tokens(root, run, name))
    else:
        assert kind.vtkhdf is not None
        geometry = load(kind.vtkhdf)(run.ring_cells)
        _write_file(run, path, lambda root, name: _write_cells(root, run, name, geometry))


def _write_file(run: Run, path: Path, write: Callable[[h5py.Group, str], None]) -> None:
    """Write a VTKHDF file of a run: the function ``write`` fills its group, given the relative path of the run file.

    A message is printed if the run file is still being written.
    """

    def fill(file: h5py.File) -> None:
        """Write the group of a VTKHDF file."""
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 0])
        root.attrs["Type"] = np.bytes_("UnstructuredGrid")
        name = os.path.relpath(run.path.resolve(), path.resolve().parent).replace("%", "%%")  # VTK replaces %
        write(root, name)

    path.write_bytes(bytes_of_file(fill))
    if run.writer:
        print_message(f"meanfield: {run.path}: being written; VTK can open it when the run has stopped")


def cells_of_centers(centers: Floats) -> Geometry:
    """Return the cells of centers (cells, d ≤ 3) that form a grid: lines, rectangles or boxes; else a vertex at each.

    Raises FileError for centers in more than three dimensions.
    """
    d = centers.shape[1]
    if d > len(VTK_BOXES):
        raise FileError(f"a solution in {d} dimensions: vtkhdf export supports up to 3; xarray opens the file as it is")
    axes = [np.unique(column.round(12)) for column in centers.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    if len(grid) != len(centers) or min(map(len, axes)) < 2 or not np.allclose(grid, centers, atol=1e-9):
        points = np.zeros((len(centers), 3))
        points[:, :d] = centers
        return points, np.arange(len(centers)), np.ones(len(centers), dtype=np.int64), VTK_VERTEX
    edges = [
        np.concatenate([[1.5 * x[0] - 0.5 * x[1]], (x[1:] + x[:-1]) / 2, [1.5 * x[-1] - 0.5 * x[-2]]]) for x in axes
    ]
    points = np.zeros((np.prod([len(edge) for edge in edges]), 3))
    points[:, :d] = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, d)
    number = np.arange(len(points)).reshape([len(edge) for edge in edges])
    corners = [  # VTK requires the first axis to vary fastest
        number[tuple(slice(1, None) if k >> c & 1 else slice(-1) for c in range(d))].reshape(-1) for k in range(2**d)
    ]
    return points, np.stack(corners, axis=1).reshape(-1), np.full(len(centers), 2**d), VTK_BOXES[d]


def _write_cells(root: h5py.Group, run: Run, name: str, geometry: Geometry) -> None:
    """Write constant cells to a VTKHDF group, with fields that refer to the run file ``name``."""
    import h5py

    cells = _write_geometry(root, *geometry)
    data, steps = root.create_group("CellData"), root.create_group("Steps")
    each = run.fields if run.is_solution else ["density"]
    _write_steps(steps, run.times, cells, 0, each)
    for position, field in enumerate(each):
        layout = h5py.VirtualLayout(shape=(run.snapshots * cells,), dtype=np.float64)
        dataset = field if position else "density"  # the name of the first field in the run file
        source = h5py.VirtualSource(name, dataset, (run.snapshots, cells), np.float64)
        for k in range(run.snapshots):
            layout[k * cells : (k + 1) * cells] = source[k]
        data.create_virtual_dataset(field, layout, fillvalue=np.nan)


def _write_tokens(root: h5py.Group, run: Run, name: str) -> None:
    """Write a vertex for each token to a VTKHDF group, with positions that refer to the run file ``name``.

    The third coordinate of tokens in the plane is 0.
    """
    import h5py

    count, d = run.positions(0).shape
    index = np.arange(count, dtype=np.int64)
    layout = h5py.VirtualLayout(shape=(run.snapshots * count, 3), dtype=np.float64)
    source = h5py.VirtualSource(name, "position", (run.snapshots, count, d), np.float64)
    for k in range(run.snapshots):
        layout[k * count : (k + 1) * count, :d] = source[k]
    root.create_virtual_dataset("Points", layout, fillvalue=0.0)
    _write_topology(root, count, index, np.ones(count, dtype=np.int64), VTK_VERTEX)
    _write_steps(root.create_group("Steps"), run.times, 0, count, ["mass"])
    root.create_group("CellData")["mass"] = run.weights


def _write_geometry(root: h5py.Group, points: Floats, corners: Indices, sizes: Indices, kind: int) -> int:
    """Write the points and cells shared by all times to a VTKHDF group and return the number of cells."""
    root["Points"] = points
    return _write_topology(root, len(points), corners, sizes, kind)


def _write_topology(root: h5py.Group, points: int, corners: Indices, sizes: Indices, kind: int) -> int:
    """Write the corners of each cell to a VTKHDF group, given the number of points; return the number of cells."""
    root["NumberOfPoints"] = np.array([points])
    root["NumberOfCells"] = np.array([len(sizes)])
    root["NumberOfConnectivityIds"] = np.array([len(corners)])
    root["Connectivity"] = corners
    root["Offsets"] = np.concatenate([[0], np.cumsum(sizes)])
    root["Types"] = np.full(len(sizes), kind, dtype=np.uint8)
    return len(sizes)


def _write_steps(steps: h5py.Group, times: Floats, cells: int, points: int, fields: Sequence[str]) -> None:
    """Write the times to the group ``steps`` of a VTKHDF file, and where the data of each time begin in the arrays.

    Field values advance by ``cells`` and positions by ``points`` from one time to the next; the cells stay the same.
    """
    count = len(times)
    steps.attrs["NSteps"] = count
    steps["Values"] = times
    steps["PartOffsets"] = np.zeros(count, dtype=np.int64)
    steps["NumberOfParts"] = np.ones(count, dtype=np.int64)
    steps["PointOffsets"] = points * np.arange(count, dtype=np.int64)
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = np.zeros((count, 1), dtype=np.int64)
    for field in fields:
        steps[f"CellDataOffsets/{field}"] = cells * np.arange(count, dtype=np.int64)
