"""Handover of densities to atoms: width of a collapsed cluster, and merging times beyond the reach of a density."""

import numpy as np
import pytest
from support import exact, exact_atoms

from meanfield.clusters.on_cells import find_clusters
from meanfield.domains.atoms.handover import (
    SPREAD,
    _time_below,
    atoms_of,
    cluster_spreads,
    collapsed_clusters,
    difference,
    hand_over_error,
)
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import (
    initial_perturbed,
    initial_points,
    initial_uniform,
    initial_von_mises_fisher,
)
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

ANGLE, MESH = 2.0, circle(512)


def on_circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def largest_cluster_width(mesh, density):
    """Return the largest width of the clusters of a density (cells) in cell widths."""
    return cluster_spreads(mesh, density, find_clusters(mesh, density)).max()


def law(beta):
    return AtomVelocity(ParticleVelocity(float(beta)))


def blobs():
    """Return two equal blobs 0.07 rad wide, six cells, ANGLE apart and off the mesh's symmetries."""
    return initial_von_mises_fisher(MESH, on_circle(0.3, 0.3 + ANGLE), [200.0, 200.0], [0.5, 0.5])


def carry(beta, density, start, end, most=None):
    """Return the state at ``end``, or when the density has collapsed to ``most``, by the mesh."""
    state = State(start, density.copy())
    equation = mean_field_equation(MESH, Velocity(Attention(MESH, beta)))

    def done(state):
        return most is not None and collapsed_clusters(MESH, state.values, most) is not None

    return evolve(state, equation, STEPPERS["ssprk3"], end, after_step=done, rtol=None)


def test_the_spread_of_points_in_cells():
    """The spread is 0 for a point at a cell's center, √(p(1 − p)) for one that two cells share: at most ½ on the
    circle."""
    width = 2 * np.pi / 512
    for shift, expected in ((0.5, 0.0), (1.0, 0.5), (0.8, np.sqrt(0.3 * 0.7))):
        density = initial_points(MESH, on_circle(shift * width))
        assert largest_cluster_width(MESH, density) == pytest.approx(
            expected, abs=1e-4
        )  # chords instead of arcs, over three cells


def test_the_spread_of_a_blob_is_its_width():
    """The spread is in units of the cells, and the widest cluster counts."""
    mesh = circle(2048)
    density = initial_von_mises_fisher(mesh, on_circle(0.3, 2.3), [2000.0, 200.0], [0.5, 0.5])
    assert largest_cluster_width(mesh, density) * mesh.width == pytest.approx(
        1 / np.sqrt(200), rel=0.01
    )  # 1/√c up to 1/c


def test_points_on_the_sphere_are_held_within_a_cell_or_so():
    points = np.random.default_rng(0).standard_normal((40, 3))
    mesh = sphere(32)
    assert max(largest_cluster_width(mesh, initial_points(mesh, point[None])) for point in points) < 0.9


def test_a_density_counts_as_collapsed_when_all_clusters_have():
    uniform = initial_uniform(MESH)
    assert collapsed_clusters(MESH, uniform) is None
    narrow, wide = initial_points(MESH, on_circle(0.3)), initial_von_mises_fisher(MESH, on_circle(2.3), [200.0], [1.0])
    assert collapsed_clusters(MESH, 0.7 * narrow + 0.3 * wide) is None
    points = initial_points(MESH, on_circle(0.3, 2.3), [0.7, 0.3])
    clusters = collapsed_clusters(MESH, points)
    assert clusters is not None
    atoms = atoms_of(clusters)
    np.testing.assert_allclose(atoms.masses, [0.7, 0.3], rtol=1e-12)
    # points are deposited with their first moment, to the chord of a cell
    np.testing.assert_allclose(atoms.positions, on_circle(0.3, 2.3), rtol=0, atol=1e-6)


@pytest.mark.parametrize("beta", [9, 16, 25])
def test_a_pair_handed_over_meets_at_the_time_of_the_closed_form(beta):
    """The cosine is ½ within 1 % of t = 2e4, 2e8 and 6e13. The blobs collapse in about two time units."""
    state = carry(beta, blobs(), 0.0, 100.0, SPREAD)
    atoms = atoms_of(collapsed_clusters(MESH, state.values))
    assert atoms.count == 2
    assert state.time < 20
    expected = exact_atoms.pair_time_equal(beta)
    stops = [state.time, 0.99 * expected, 1.01 * expected]
    cosines = [now.positions[0] @ now.positions[-1] for _, now, _ in exact_atoms.flow(law(beta), atoms, stops)]
    assert cosines[0] < 0.5 < cosines[1]


def at_clusters(density):
    return atoms_of(collapsed_clusters(MESH, density, np.inf))


def carried_on(density, start, end):
    return carry(9, density, start, end).values


def test_the_error_of_a_handover_falls_with_the_spread():
    """Four clusters from noise are handed over at 10, 5 and 1 cells and then at time 30; the next merger is at 337.

    The mesh's own error, which moves the clusters by 4e-5 rad meanwhile, limits the last one.
    """
    density, time, errors = initial_perturbed(MESH, 1e-2), 0.0, []
    for most in (10.0, 5.0, SPREAD):
        early = carry(9, density, time, 100.0, most)
        density, time = early.values, early.time
        errors.append(hand_over_error(law(9), at_clusters, density, time, 30.0, 1e3, carried_on))
    mergers = [error.merger for error in errors]
    assert mergers[0] > mergers[1] > mergers[2], f"relative errors {mergers}"
    assert errors[-1].merger < 1e-3, f"relative errors {mergers}"
    assert errors[-1].angle < 0.01 * MESH.width
    assert errors[-1].mass < 1e-9


def test_the_difference_of_states():
    one = Atoms(on_circle(0.0, 2.0), np.array([0.5, 0.5]))
    other = Atoms(on_circle(2.001, 0.0), np.array([0.4, 0.6]))
    assert difference(one, other) == pytest.approx((1e-3, 0.1), rel=1e-9)
    pair = Atoms(on_circle(-1e-4, 1e-4, 2.0), np.array([0.25, 0.25, 0.5]))
    assert difference(one, pair) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert difference(pair, one) == pytest.approx((0.0, 0.0), abs=1e-12)
    elsewhere = Atoms(on_circle(0.0, 0.1), np.array([0.5, 0.5]))
    assert difference(elsewhere, Atoms(on_circle(0.09, 0.12), np.array([0.5, 0.5]))) == (np.inf, np.inf)


def test_error_is_of_a_merger_that_neither_moment_has_had():
    """The later of two handovers merges a pair that is about to meet: both then wait for the next merger, at nearly
    one time."""
    early = Atoms(on_circle(0.3, 0.32, 0.31 + ANGLE), np.array([0.25, 0.25, 0.5]))
    late = Atoms(on_circle(0.31, 0.31 + ANGLE), np.array([0.5, 0.5]))
    times = [_time_below(2, law(9), atoms, 0.0, 1e6) for atoms in (early, late)]
    assert times[0] == pytest.approx(times[1], rel=1e-3)
    # A further e^{4.5} after the cosine 1/2.
    assert times[1] == pytest.approx(exact.pair_time_equal(9.0, ANGLE), rel=1e-2)
    assert _time_below(3, law(9), early, 0.0, 1e6) < 100
    assert _time_below(1, law(9), late, 0.0, 1e6) == 1e6
