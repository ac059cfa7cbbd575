"""Transport along two meshes at once: mass, positivity, and point masses that move diagonally."""

import numpy as np
import pytest

from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.stack import stack
from solvers.terms.product import ProductAdvection

RADIAL = from_edges(np.linspace(0.0, 2.0, 13), "line")
by_directions = pytest.mark.parametrize("directions", [circle(24), sphere(8)], ids=lambda mesh: mesh.manifold)


def flow(directions, seed=0):
    """Return a rough velocity on the product, and its advection term."""
    random = np.random.default_rng(seed)
    x, cells = directions.centers, (RADIAL.cells, directions.cells)
    turn = random.standard_normal((*cells, x.shape[1]))
    turn -= np.einsum("rnd,nd->rn", turn, x)[..., None] * x
    drift = random.standard_normal((*cells, 1))
    in_rows, in_columns = stack(directions, RADIAL.cells), stack(RADIAL, directions.cells)
    return turn, drift, ProductAdvection(in_rows, in_columns, cells, lambda time, density: (turn, drift))


def rough(shape):
    random = np.random.default_rng(3)
    yield random.random(shape) ** 8
    yield np.where(random.random(shape) < 0.3, 1.0, 0.0)


@by_directions
@pytest.mark.parametrize("fraction", [0.5, 20.0])
def test_mass_is_kept_and_stays_nonnegative(directions, fraction):
    term = flow(directions)[2]
    volumes = np.outer(RADIAL.volumes, directions.volumes)
    for density in rough(volumes.shape):
        rate = np.zeros_like(density)
        dt = fraction * term.prepare(0.0, density)
        term.rate(dt, rate)
        assert abs(np.vdot(rate, volumes)) < 1e-13 * np.vdot(np.abs(rate), volumes)
        assert (density + dt * rate).min() > -1e-14 * density.max()  # rounding of a drained cell


@by_directions
def test_a_lump_moves_diagonally(directions):
    """The mean position of one full cell moves with the velocity of that cell, along both meshes."""
    turn, drift, term = flow(directions, 1)
    x, area = directions.centers, directions.volumes
    for cell in range(0, directions.cells, 7):
        density, rate = np.zeros((RADIAL.cells, directions.cells)), np.zeros((RADIAL.cells, directions.cells))
        density[5, cell] = 1 / (RADIAL.volumes[5] * area[cell])
        term.prepare(0.0, density)
        term.rate(0.0, rate)
        moved = rate * np.outer(RADIAL.volumes, area)
        outward, around = moved.sum(axis=1) @ RADIAL.centers[:, 0], moved.sum(axis=0) @ x
        around -= (around @ x[cell]) * x[cell]
        assert outward == pytest.approx(drift[5, cell, 0], rel=1e-10)
        # Chords instead of arcs: h²/6.
        assert np.linalg.norm(around - turn[5, cell]) < 0.03 * np.linalg.norm(turn[5, cell])


def test_the_stable_step_counts_both():
    """A cell with outflow at speed 1 along widths h and k has the stable step 1/(1/h + 1/k)."""
    directions = circle(24)
    tangent = np.stack([-directions.centers[:, 1], directions.centers[:, 0]], axis=1)
    cells = (RADIAL.cells, directions.cells)
    velocities = np.broadcast_to(tangent, (*cells, 2)), np.ones((*cells, 1))
    in_rows, in_columns = stack(directions, RADIAL.cells), stack(RADIAL, directions.cells)
    density = np.zeros(cells)
    density[5, 3] = 1.0
    widths = directions.volumes[0], RADIAL.volumes[5]
    whole = ProductAdvection(in_rows, in_columns, cells, lambda time, density: velocities)
    assert whole.prepare(0.0, density) == pytest.approx(1 / (1 / widths[0] + 1 / widths[1]), rel=0.01)
    still = np.zeros((*cells, 2)), np.zeros((*cells, 1))
    assert ProductAdvection(in_rows, in_columns, cells, lambda t, u: still).prepare(0.0, density) == np.inf


def test_stacks_that_do_not_fit():
    with pytest.raises(ValueError, match="expected"):
        ProductAdvection(stack(circle(8), 5), stack(RADIAL, 8), (5, 8), lambda time, density: (density, density))
