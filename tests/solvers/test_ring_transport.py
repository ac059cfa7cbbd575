"""Transport by the geometry of rings equals transport by lists of faces, on every number of rings."""

from dataclasses import replace

import numpy as np
import pytest

from solvers.mesh.checks import check_mesh
from solvers.mesh.mesh import sphere
from solvers.terms.advection import Advection
from solvers.terms.ring_geometry import is_of_rings, ring_geometry

# Relative to the largest rate: sums of ten terms, whose smoothness indicators are differences of neighbors.
EQUAL = 1e-12
RINGS = [*range(4, 36), 48, 65]  # odd and even, with rings that have half or twice as many cells on either side


def densities(mesh):
    random = np.random.default_rng(mesh.cells)
    yield np.exp(2.0 * mesh.centers[:, 0]) * (1.0 + 0.1 * random.random(mesh.cells))  # partly resolved
    # Unresolved cells, and cells without mass.
    yield np.where(random.random(mesh.cells) < 0.5, random.random(mesh.cells), 0.0)
    yield np.exp(-60.0 * random.random(mesh.cells))  # thin cells, which the limiter drains


def tangent(mesh, seed):
    vectors = np.random.default_rng(seed).standard_normal(mesh.centers.shape)
    return vectors - mesh.centers * (vectors * mesh.centers).sum(axis=1, keepdims=True)


def rates(mesh, density, velocity):
    """Return the stable step, and the rates of a step a hundred times as long and of a short step."""
    advection = Advection(mesh, lambda t, u: velocity, nonnegative=True)
    dt = float(advection.prepare(0.0, density))
    found = np.zeros((2, mesh.cells))
    advection.rate(100.0 * dt, found[0])
    advection.rate(1e-3 * dt, found[1])
    return dt, found


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rings", RINGS)
def test_rates_are_those_of_lists_of_faces(rings):
    mesh = sphere(rings)
    for density in densities(mesh):
        velocity = tangent(mesh, rings)
        dt, found = rates(mesh, density, velocity)
        expected_dt, expected = rates(replace(mesh, manifold="surface"), density, velocity)
        assert abs(dt / expected_dt - 1.0) < EQUAL
        for one, other in zip(found, expected, strict=True):
            error = np.abs(one - other).max() / np.abs(other).max()
            assert error < EQUAL, f"relative error {error:.1e}"
            assert abs(one @ mesh.volumes) < 1e-14 * (np.abs(one) @ mesh.volumes)  # mass, to rounding


class AlongRings:
    """A velocity given only by its components along rings."""

    def __init__(self, mesh, vectors):
        x, y, z = mesh.centers.T
        east, north = np.stack([-y, x, 0 * x], axis=1), np.stack([-z * x, -z * y, x * x + y * y], axis=1)
        self.components = np.stack([(each * vectors).sum(axis=1) for each in (east, north)]) / np.hypot(x, y)

    def __call__(self, time, density):
        raise AssertionError("asked for vectors")

    def along_rings(self, time, density):
        return self.components


def test_components_move_a_density_as_vectors_do():
    mesh = sphere(20)
    density, vectors = next(densities(mesh)), tangent(mesh, 1)
    dt, expected = rates(mesh, density, vectors)
    advection = Advection(mesh, AlongRings(mesh, vectors), nonnegative=True)
    assert abs(advection.prepare(0.0, density) / dt - 1.0) < EQUAL
    found = np.zeros(mesh.cells)
    advection.rate(100.0 * dt, found)
    assert np.abs(found - expected[0]).max() < EQUAL * np.abs(found).max()


def test_any_number_of_workers_gives_the_same(monkeypatch):
    mesh = sphere(20)
    density, velocity = next(densities(mesh)), tangent(mesh, 0)
    monkeypatch.setattr("solvers.backends.cpu.launching.SHARE", 1)
    found = []
    for workers in (1, 2, 3, 7):
        monkeypatch.setattr("solvers.backends.cpu.launching.WORKERS", workers)
        found.append(rates(mesh, density, velocity))
    for dt, rate in found[1:]:
        assert dt == found[0][0]
        assert np.array_equal(rate, found[0][1])


@pytest.mark.parametrize("where", [0, 7, 400, -1])
def test_nan_reaches_the_step(where):
    """The NaN is at a pole, beside a change of the number of cells, or within equal rings."""
    mesh = sphere(20)
    velocity = tangent(mesh, 0)
    velocity[where] = np.nan
    with np.errstate(invalid="ignore"):
        dt = Advection(mesh, lambda t, u: velocity, nonnegative=True).prepare(0.0, np.ones(mesh.cells))
    assert np.isnan(dt)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rings", RINGS)
def test_formulas_agree_with_the_arrays_that_they_make(rings):
    """The arrays also fit together, and give the same tables."""
    mesh = sphere(rings)
    of_arrays = replace(mesh)
    assert is_of_rings(mesh)
    assert not is_of_rings(of_arrays)
    check_mesh(of_arrays)
    for name, table in vars(ring_geometry(mesh)).items():
        assert np.array_equal(table, getattr(ring_geometry(of_arrays), name)), name
