"""Meshes: closed, exact in area, centroid and face, with sides in the documented order."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from solvers.mesh.mesh import circle, sphere
from solvers.mesh.rings import cells_of_rings

MESHES = [circle(3), circle(64), *(sphere(rings) for rings in (4, 5, 7, 12, 33, 64))]
SPHERES = [mesh for mesh in MESHES if mesh.manifold == "sphere"]
ROUNDING = 1e-13  # sums of some thousand terms of order 1, each exact to 1e-16


def name(mesh):
    return f"{mesh.manifold}-{len(mesh.ring_cells) if mesh.dimension == 2 else mesh.cells}"


def first_moments(mesh):
    """Return ∫ x over each cell by Gauss–Legendre quadrature in its angles."""
    nodes, weights = leggauss(12)
    moments = np.zeros_like(mesh.centers)
    for ring, count in enumerate(mesh.ring_cells):
        here = slice(mesh.ring_start[ring], mesh.ring_start[ring + 1])
        half = np.pi / count
        phi = (2 * np.arange(count) + 1)[:, None] * half + half * nodes
        if mesh.dimension == 1:
            moments[here] = half * np.stack([np.cos(phi) @ weights, np.sin(phi) @ weights], axis=1)
            continue
        north, south = mesh.ring_edges[ring : ring + 2]
        theta = (north + south) / 2 + (south - north) / 2 * nodes
        area = (south - north) / 2 * half * weights * np.sin(theta)
        moments[here, 0] = (np.cos(phi) @ weights) * (area @ np.sin(theta))
        moments[here, 1] = (np.sin(phi) @ weights) * (area @ np.sin(theta))
        moments[here, 2] = 2 * (area @ np.cos(theta))
    return moments


@pytest.mark.parametrize("mesh", MESHES, ids=name)
def test_areas_sum_to_the_whole(mesh):
    error = abs(mesh.volumes.sum() / mesh.volume - 1)
    assert mesh.volumes.min() > 0
    assert error < ROUNDING, f"relative error of the area {error:.1e}"


@pytest.mark.parametrize("mesh", MESHES, ids=name)
def test_centers_are_projected_centroids(mesh):
    moments = first_moments(mesh)
    error = np.abs(mesh.centers - moments / np.linalg.norm(moments, axis=1, keepdims=True)).max()
    assert error < ROUNDING, f"center off its centroid by {error:.1e}"


@pytest.mark.parametrize("mesh", MESHES, ids=name)
def test_faces_close_each_cell(mesh):
    """∮ n ds = −(d − 1) ∫ x dA, the divergence theorem for the fields Pₓa, tests faces and normals."""
    flux = np.zeros_like(mesh.centers)
    outward = mesh.face_areas[:, None] * mesh.face_normals
    np.add.at(flux, mesh.face_cells[:, 0], outward)
    np.add.at(flux, mesh.face_cells[:, 1], -outward)
    error = np.abs(flux + mesh.dimension * first_moments(mesh)).max()
    assert error < ROUNDING, f"cells are open by {error:.1e}"


@pytest.mark.parametrize("mesh", MESHES, ids=name)
def test_sides_belong_to_their_cells(mesh):
    owner = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    assert np.array_equal(np.sort(mesh.cell_sides), np.arange(2 * mesh.faces))
    assert np.array_equal(mesh.face_cells[mesh.cell_sides >> 1, mesh.cell_sides & 1], owner)
    for cell in range(0, mesh.cells, max(1, mesh.cells // 50)):
        assert all(cell in mesh.neighbors(other) for other in mesh.neighbors(cell))


@pytest.mark.parametrize("mesh", MESHES, ids=name)
def test_normals_point_from_the_first_cell_to_the_second(mesh):
    first, second = mesh.centers[mesh.face_cells].swapaxes(0, 1)
    assert (((second - first) * mesh.face_normals).sum(axis=1) > 0).all()


@pytest.mark.parametrize("mesh", SPHERES, ids=name)
def test_sides_run_counterclockwise(mesh):
    """The turns from neighbor to neighbor are all to the left, and add up to one full turn."""
    for cell in range(mesh.cells):
        x = mesh.centers[cell]
        offsets = mesh.centers[mesh.neighbors(cell)] - x
        offsets -= (offsets @ x)[:, None] * x
        after = np.roll(offsets, -1, axis=0)
        turn = np.arctan2(np.cross(offsets, after) @ x, (offsets * after).sum(axis=1))
        assert turn.min() > 0, f"cell {cell} turns right"
        assert turn.sum() == pytest.approx(2 * np.pi, abs=1e-12)


@pytest.mark.parametrize("rings", [4, 5, 7, 12, 33, 64, 100, 128])
def test_rings_change_two_to_one_and_cells_are_nearly_equal(rings):
    mesh = sphere(rings)
    counts = mesh.ring_cells.astype(int)
    ratio = counts[1:] / counts[:-1]
    assert set(ratio) <= {0.5, 1.0, 2.0}
    assert np.array_equal(counts, counts[::-1])
    assert 3 <= counts[0] <= 6
    spread = mesh.volumes.max() / mesh.volumes.min()
    assert spread < 3.5, f"largest over smallest area {spread:.2f}"  # √2 on either side of a square, and polar caps
    if rings >= 12:
        assert mesh.cells / rings**2 == pytest.approx(1.35, rel=0.12)


def test_mesh_is_frozen():
    mesh = circle(8)
    with pytest.raises(ValueError, match="read-only"):
        mesh.centers[0] = 0.0
    with pytest.raises(AttributeError):
        mesh.volumes = np.ones(8)


@pytest.mark.parametrize(("build", "few"), [(circle, 2), (circle, 0), (sphere, 3), (sphere, -1)])
def test_too_few_cells_are_refused(build, few):
    with pytest.raises(ValueError, match=rf"= {few}: expected a whole number >= \d"):
        build(few)


def test_rings_are_the_same_on_both_sides_of_the_equator():
    """The harmonics require symmetric rings. The level of two rings at 10 rings is a tie, log₂(4 sin(π/4)) = 3/2."""
    for rings in range(4, 200):
        counts = cells_of_rings(rings)
        assert np.array_equal(counts, counts[::-1]), f"{rings} rings: {counts}"
