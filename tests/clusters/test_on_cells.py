"""Clusters of densities: right count, mass and position, whatever the mesh."""

from functools import cache

import numpy as np
import pytest

from meanfield.clusters.on_cells import CONTRAST, find_clusters
from meanfield.domains.sphere.initial import initial_points, initial_uniform, initial_von_mises_fisher
from solvers.mesh.mesh import circle, sphere

mesh_circle, mesh_sphere = cache(circle), cache(sphere)
MESHES = [lambda: mesh_circle(256), lambda: mesh_circle(101), lambda: mesh_sphere(32), lambda: mesh_sphere(64)]
MESH_NAMES = ["circle-256", "circle-101", "sphere-32", "sphere-64"]


def on_circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def on_sphere(colatitudes, azimuths):
    theta, phi = np.asarray(colatitudes), np.asarray(azimuths)
    return np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)


def spread_points(dimension, count, seed):
    """Return random unit vectors (count, d) at least 0.6 rad from each other, so that every mesh resolves them."""
    random, points = np.random.default_rng(seed), np.empty((0, dimension))
    while len(points) < count:
        x = random.standard_normal(dimension)
        x /= np.linalg.norm(x)
        if (points @ x < np.cos(0.6)).all():
            points = np.vstack([points, x])
    return points


def assert_found(mesh, points, masses, found, apart=1e-12):
    """Assert that each point is a cluster with its mass and position, to rounding, since deposits keep both."""
    assert found.count == len(points)
    np.testing.assert_allclose(found.masses, np.sort(masses)[::-1], atol=apart)
    angle = np.linalg.norm(found.centers[:, None] - points, axis=2)
    # Rounding of the lightest cluster, with 1e-3 of the mass, is larger by that factor.
    assert angle.min(axis=0).max() < 1e-9
    for center, mass in zip(found.centers, found.masses, strict=True):
        nearest = np.linalg.norm(points - center, axis=1).argmin()
        assert masses[nearest] == pytest.approx(mass, abs=apart)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("build", MESHES, ids=MESH_NAMES)
def test_points_anywhere(build, seed):
    mesh = build()
    count = 4 if mesh.dimension == 1 else 7
    points = spread_points(mesh.centers.shape[1], count, seed)
    # Down to a thousandth of the heaviest; on 101 cells that is below FLOOR when averaged over neighbors.
    masses = np.geomspace(1.0, 1e-2 if mesh.cells < 200 else 1e-3, count)
    masses /= masses.sum()
    assert_found(mesh, points, masses, find_clusters(mesh, initial_points(mesh, points, masses)))


@pytest.mark.parametrize("rings", [32, 48, 64, 128])
def test_points_on_the_poles(rings):
    points = on_sphere([0.0, np.pi, np.pi / 2], [0.0, 0.0, 1.0])
    masses = np.array([0.5, 0.2, 0.3])
    mesh = mesh_sphere(rings)
    assert_found(mesh, points, masses, find_clusters(mesh, initial_points(mesh, points, masses)))


@pytest.mark.parametrize("azimuth", [0.0, 0.05, 1.0])
def test_one_cluster_on_every_change_of_the_rings(azimuth):
    mesh = mesh_sphere(64)
    changes = np.flatnonzero(np.diff(mesh.ring_cells))
    assert len(changes) >= 8
    for ring in changes:
        for offset in (-0.01, 0.0, 0.01):
            place = on_sphere([mesh.ring_edges[ring + 1] + offset], [azimuth])
            found = find_clusters(mesh, initial_points(mesh, place))
            assert_found(mesh, place, np.ones(1), found)


@pytest.mark.parametrize("build", MESHES, ids=MESH_NAMES)
def test_points_closer_than_the_mesh_resolves_are_one(build):
    mesh = build()
    points = np.zeros((2, mesh.centers.shape[1]))
    for start in np.linspace(0.0, 3.0, 7):
        points[:, :2] = on_circle(np.array([start, start + 0.8 * mesh.width]))
        assert find_clusters(mesh, initial_points(mesh, points)).count == 1


@pytest.mark.parametrize("build", MESHES, ids=MESH_NAMES)
def test_points_eight_cells_apart_are_two(build):
    mesh = build()
    points = np.zeros((2, mesh.centers.shape[1]))
    for start in np.linspace(0.0, 3.0, 7):
        points[:, :2] = on_circle(np.array([start, start + 8 * mesh.width]))
        assert find_clusters(mesh, initial_points(mesh, points)).count == 2


@pytest.mark.parametrize("build", MESHES, ids=MESH_NAMES)
def test_uniform_and_nearly_uniform_have_none(build):
    mesh = build()
    ripple = 1.0 + 0.3 * np.cos(3 * np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0]))  # 1.3 / 0.7 < CONTRAST
    noise = np.random.default_rng(0).uniform(0.9, 1.1, mesh.cells)
    for shape in (np.ones(mesh.cells), ripple, noise):
        found = find_clusters(mesh, initial_uniform(mesh) * shape)
        assert found.count == 0
        assert found.centers.shape == (0, mesh.centers.shape[1])
        assert (found.basin == -1).all()


@pytest.mark.parametrize(("mass", "expected"), [(1e-6, 1), (1e-2, 2)])
def test_traces_of_mass_are_no_clusters(mass, expected):
    """A mass far below FLOOR of the mean density, averaged over its neighbors, counts as empty."""
    mesh = mesh_circle(256)
    points = on_circle(np.array([0.0, 2.0]))
    assert find_clusters(mesh, initial_points(mesh, points, [1 - mass, mass])).count == expected


def test_the_contrast_decides():
    """Ripples cos 2φ have two peaks, which count where they exceed CONTRAST times the density of the passes between."""
    mesh = mesh_circle(256)
    wave = np.cos(2 * np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0]))
    for contrast, expected in ((0.95 * CONTRAST, 0), (1.1 * CONTRAST, 2)):
        size = (contrast - 1) / (contrast + 1)
        assert find_clusters(mesh, initial_uniform(mesh) * (1 + size * wave)).count == expected


@pytest.mark.parametrize("build", [lambda: mesh_circle(256), lambda: mesh_sphere(48)], ids=["circle", "sphere"])
def test_bumps_on_a_background(build):
    """Two bumps of 20 and 10 % on a uniform 70 %: each basin also holds its share of the background."""
    mesh = build()
    centers = np.zeros((2, mesh.centers.shape[1]))
    centers[:, :2] = on_circle(np.array([0.3, 2.6]))
    bumps = initial_von_mises_fisher(mesh, list(centers), [60.0, 60.0], [2.0, 1.0])
    found = find_clusters(mesh, 0.3 * bumps + 0.7 * initial_uniform(mesh))
    assert found.count == 2
    assert found.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.masses.min() > 0.1
    peaks = mesh.centers[[np.where(found.basin == k, bumps, 0).argmax() for k in (0, 1)]]
    distance = np.linalg.norm(peaks[:, None] - centers, axis=2)
    assert distance.min(axis=0).max() < 1.5 * mesh.width


@pytest.mark.parametrize("build", MESHES, ids=MESH_NAMES)
def test_masses_sum_to_one_and_basins_hold_them(build):
    mesh = build()
    random = np.random.default_rng(3)
    density = random.lognormal(sigma=2.0, size=mesh.cells)
    density /= density @ mesh.volumes
    found = find_clusters(mesh, density)
    assert found.count > 1
    assert found.masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(found.masses) <= 0).all()
    held = np.bincount(found.basin, density * mesh.volumes)
    np.testing.assert_allclose(held, found.masses, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(found.centers, axis=1), 1.0, atol=1e-12)


def test_rotation_by_a_cell_changes_nothing_on_the_circle():
    mesh = mesh_circle(128)
    density = np.random.default_rng(1).lognormal(size=mesh.cells)
    density /= density @ mesh.volumes
    one, other = find_clusters(mesh, density), find_clusters(mesh, np.roll(density, 1))
    assert one.count > 1
    np.testing.assert_allclose(other.masses, one.masses, rtol=1e-12)
    np.testing.assert_array_equal(other.basin, np.roll(one.basin, 1))


def test_rotation_by_a_polar_cell_changes_nothing_on_the_sphere():
    """A rotation by one cell of the coarsest ring is a rotation by whole cells of every ring."""
    mesh = mesh_sphere(32)
    density = np.random.default_rng(1).lognormal(size=mesh.cells)
    density /= density @ mesh.volumes
    coarsest = mesh.ring_cells.min()

    def turned(values):
        rings = [values[a:b] for a, b in zip(mesh.ring_start[:-1], mesh.ring_start[1:], strict=True)]
        return np.concatenate([np.roll(ring, len(ring) // coarsest) for ring in rings])

    one, other = find_clusters(mesh, density), find_clusters(mesh, turned(density))
    assert one.count > 1
    np.testing.assert_allclose(other.masses, one.masses, rtol=1e-12)
    np.testing.assert_array_equal(other.basin, turned(one.basin))


def test_a_density_on_other_cells_is_refused():
    """Kernels would read and write beyond the end of the density."""
    with pytest.raises(ValueError, match=r"density \(48,\): expected \(64,\), a value for each cell"):
        find_clusters(mesh_circle(64), np.ones(48))
