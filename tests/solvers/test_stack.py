"""Stacks of a mesh: terms act on each copy as on the mesh alone, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from meanfield.domains.sphere.initial import initial_perturbed
from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.stack import stack
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion

COPIES = 3
CIRCLE, SPHERE = circle(40), sphere(12)
INTERVAL = from_edges(np.linspace(0.0, 2.0, 31) ** 2, "line")
by_mesh = pytest.mark.parametrize("mesh", [CIRCLE, SPHERE, INTERVAL], ids=lambda mesh: mesh.manifold)


def densities(mesh):
    """Return one density per copy, all of the same mass: smooth, rough, with empty cells."""
    random = np.random.default_rng(0)
    smooth = 1.0 + 0.5 * np.cos(np.linspace(0.0, np.pi, mesh.cells))
    if mesh.manifold != "line":
        smooth = initial_perturbed(mesh, 0.3, 3)
    found = np.stack([smooth, random.random(mesh.cells), np.where(random.random(mesh.cells) < 0.5, 1.0, 0.0)])
    return found / (found @ mesh.volumes)[:, None]


@by_mesh
def test_advection_is_that_of_each_copy(mesh):
    """Kernels of lists of faces, which a stack has, agree to the last bit; a sphere alone has kernels of rings."""
    single = replace(mesh, manifold="surface") if mesh.manifold == "sphere" else mesh
    velocity = np.random.default_rng(1).standard_normal((COPIES, *mesh.centers.shape))
    if mesh.centers.shape[1] > mesh.dimension:
        velocity -= (velocity * mesh.centers).sum(axis=-1, keepdims=True) * mesh.centers  # tangent
    flat = velocity.reshape(-1, mesh.centers.shape[1])
    whole = Advection(stack(mesh, COPIES), lambda time, density: flat, nonnegative=True)
    rates = np.zeros((COPIES, mesh.cells))
    stable = whole.prepare(0.0, densities(mesh).reshape(-1))
    whole.rate(2 * stable, rates.reshape(-1))
    alone = []
    for copy, density in enumerate(densities(mesh)):
        term = Advection(single, lambda time, density, copy=copy: velocity[copy], nonnegative=True)
        rate = np.zeros(mesh.cells)
        alone.append(term.prepare(0.0, density))
        term.rate(2 * stable, rate)
        np.testing.assert_array_equal(rates[copy], rate)
    assert stable == min(alone)


@pytest.mark.parametrize("mesh", [CIRCLE, SPHERE], ids=lambda mesh: mesh.manifold)
def test_diffusion_is_that_of_each_copy(mesh):
    density = densities(mesh)[:2].copy()  # an empty cell's limiter continues until no copy is below zero
    alone = density.copy()
    Diffusion(stack(mesh, 2), 0.1, nonnegative=True).step(0.05, density.reshape(-1))
    for values in alone:
        Diffusion(mesh, 0.1, nonnegative=True).step(0.05, values)
    np.testing.assert_array_equal(density, alone)


@by_mesh
def test_copies_are_disjoint_and_alike(mesh):
    whole = stack(mesh, COPIES)
    assert (whole.cells, whole.faces) == (COPIES * mesh.cells, COPIES * mesh.faces)
    assert whole.volume == pytest.approx(COPIES * mesh.volume, rel=1e-14)
    for cell in range(mesh.cells):
        for copy in range(COPIES):
            around = whole.neighbors(copy * mesh.cells + cell)
            np.testing.assert_array_equal(around, mesh.neighbors(cell) + copy * mesh.cells)


def test_memory():
    """The memory per cell is that of the mesh itself, 213 bytes on a sphere: only the arrays are kept."""
    mesh = stack(sphere(32), 50)
    assert sum(a.nbytes for a in vars(mesh).values() if isinstance(a, np.ndarray)) < 260 * mesh.cells
    assert mesh.face_cells.dtype == mesh.cell_sides.dtype == mesh.cell_start.dtype == np.int32


@pytest.mark.parametrize("copies", [0, 2**30])
def test_impossible_numbers_of_copies(copies):
    with pytest.raises(ValueError, match=f"copies = {copies}"):
        stack(CIRCLE, copies)
