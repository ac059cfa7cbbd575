"""Clusters nearer than the kernel resolves are one: the same for densities, tokens and atoms, at the same times."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support.exact_atoms import pair_time

from meanfield import run as write
from meanfield import simulate
from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.clusters.modes import count_modes
from meanfield.clusters.near import SCALE, groups_of_number, groups_within, merging_angle
from meanfield.clusters.on_cells import find_clusters
from meanfield.domains.sphere.initial import initial_points
from solvers.io.run_file import read
from solvers.mesh.mesh import circle


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def on_circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("beta", [100.0, 400.0])
@pytest.mark.parametrize(("softmax", "least", "most"), [(False, 0.99, 1.0), (True, 1.09, 1.11)])
def test_the_energy_of_a_pair_grows_fastest_at_the_merging_angle(beta, softmax, least, most):
    """dE/dt ∝ sin²θ e² for unnormalized attention, e = e^{β(cos θ − 1)}; /(1 + e) for softmax and equal masses."""

    def growth(angle):
        kernel = np.exp(beta * (np.cos(angle) - 1))
        return -(np.sin(angle) ** 2) * kernel**2 / ((1 + kernel) if softmax else 1)

    fastest = minimize_scalar(growth, bounds=(1e-3, 1), method="bounded", options={"xatol": 1e-10}).x
    assert least < fastest / merging_angle(beta) < most


def test_the_merging_angle_of_a_flat_kernel_is_the_largest():
    assert merging_angle(0.0) == merging_angle(16.0) == SCALE
    assert merging_angle(64.0) == 1 / 8


def test_groups_are_chains_numbered_by_their_first_members():
    points = on_circle(0.0, 2.0, 0.2, 2.1, 0.4)
    np.testing.assert_array_equal(groups_within(points, 0.25), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(groups_within(points, 0.15), [0, 1, 2, 1, 3])
    np.testing.assert_array_equal(groups_of_number(points, 2), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(groups_of_number(points, 5), np.arange(5))


@pytest.mark.filterwarnings("error")
def test_points_that_resemble_a_matrix_of_distances_are_grouped_without_a_warning():
    points = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(groups_within(points, 0.1), [0, 1])
    assert count_modes(points, np.full(2, 0.5), 100.0) == 2


@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.9, 0.1)])
def test_clusters_of_a_density_are_one_below_the_reach(masses):
    mesh = circle(512)
    for angle, expected in ((0.24, 1), (0.26, 2)):
        density = initial_points(mesh, on_circle(1.0, 1.0 + angle), masses)
        found = find_clusters(mesh, density, reach=0.25)
        assert found.count == expected
        assert find_clusters(mesh, density).count == 2
        np.testing.assert_allclose(found.masses, sorted(masses, reverse=True) if expected == 2 else [1.0])
        assert set(found.basin[density > 0]) == set(range(expected))
    center = np.array(masses) @ on_circle(1.0, 1.24)
    near = find_clusters(mesh, initial_points(mesh, on_circle(1.0, 1.24), masses), reach=0.25)
    np.testing.assert_allclose(near.centers[0], unit(center), atol=1e-12)


STATES = {
    "circle, equal": (10.0, (0.0, 1.1, 2.5, 4.2), (5, 5, 5, 5)),
    "circle, unequal": (7.0, (0.0, 1.2, 3.0, 4.6), (8, 2, 6, 4)),
    "circle, light": (10.0, (0.0, 1.0, 3.0), (16, 1, 3)),
    "sphere": (16.0, ((0, 0, 1), (0.7, 0, 0.75), (-0.7, 0.7, -0.3), (0, -1, 0.1)), (2, 8, 6, 4)),
}


def scattered():
    """Yield eight states, four on the circle and four on the sphere, with points at random between two distances."""
    random = np.random.default_rng(12)
    for beta, count, dimension in zip(
        (6.0, 9.0, 12.0, 16.0, 8.0, 12.0, 16.0, 20.0), (4, 5, 4, 5, 4, 4, 5, 5), 4 * [2] + 4 * [3], strict=True
    ):
        nearest = 0.0
        while not 1.69 < nearest * np.sqrt(beta) < 2.47:
            points = unit(random.standard_normal((count, dimension)))
            nearest = (np.arccos(np.clip(points @ points.T, -1, 1)) + 10 * np.eye(count)).min()
        yield beta, points, random.integers(1, 9, count)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_density_tokens_and_atoms_merge_at_the_same_times(state):
    """The sample after each merger of a density, and of tokens, is within two of the exact one of the atoms."""
    beta, places, sizes = state
    points = on_circle(*places) if np.ndim(places) == 1 else unit(np.array(places, dtype=float))
    resolution, end = (256, 120.0) if points.shape[1] == 2 else (64, 30.0)
    atoms = same_mergers(beta, points, sizes, resolution, end, every=0.5)
    assert all(exact.since == exact.time for exact in atoms)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", range(8))
def test_mergers_of_scattered_points(number):
    """The states of docs/theory.md, on meshes with 13 cells or more in the merging angle.

    A merger before the handover to atoms is known to the interval between two samples.
    """
    beta, points, sizes = list(scattered())[number]
    on_the_circle = points.shape[1] == 2
    resolution, end = (512, 45.0) if on_the_circle else (192, 10.0)
    same_mergers(beta, points, sizes, resolution, end, every=0.25)


def same_mergers(beta, points, sizes, resolution, end, every):
    """Assert that a density, atoms and tokens merge at the same times, up to one interval ``every`` between samples.

    Return the mergers of the run with atoms.
    """
    manifold = "circle" if points.shape[1] == 2 else "sphere"
    rest = {
        "attention": {"beta": beta},
        "time": {"end": end},
        "output": {
            "samples": round(end / every),
            "spacing": "linear",
            "diagnostics": ["clusters", "cluster_mass", "cluster_center"],
        },
    }
    weighted = {"kind": "points", "points": points.tolist(), "masses": list(map(float, sizes))}
    domain = {"manifold": manifold, "resolution": resolution}
    density = simulate({"domain": domain, "initial": weighted, **rest}).mergers()
    atoms = simulate({"domain": domain, "initial": weighted, "handover": {}, **rest}).mergers()
    particles = {"manifold": "particles", "dimension": points.shape[1], "count": int(sum(sizes))}
    tokens = simulate(
        {"domain": particles, "initial": {"kind": "points", "points": points.repeat(sizes, axis=0).tolist()}, **rest}
    ).mergers()
    assert len(atoms) == len(density) == len(tokens) >= 1
    for exact, *others in zip(atoms, density, tokens, strict=True):
        for other in others:
            assert other.since - every <= exact.time
            assert exact.since <= other.time + every
            np.testing.assert_allclose(other.masses, exact.masses, atol=1e-4)  # traces between cells
    return atoms


def test_contact_of_atoms_is_recorded_apart_from_the_merger(tmp_path):
    """The clusters merge at the merging angle, and the two atoms become one later, at 1e-4 rad."""
    beta, masses = 20.0, (0.25, 0.75)
    case = {
        "domain": {"manifold": "circle", "resolution": 512},
        "attention": {"beta": beta},
        "initial": {"kind": "points", "points": on_circle(0.0, 0.7).tolist(), "masses": list(masses)},
        "handover": {},
        "time": {"end": 1000.0},
        "output": {"samples": 5, "diagnostics": ["clusters"]},
    }  # fmt: skip
    merger, run = write(case, tmp_path / "run.h5").mergers()[0], read(tmp_path / "run.h5")
    start = run.attributes["hand_over_time"]
    angles = np.arctan2(*run.events["center"][:2].T[::-1])
    from_handover = [pair_time(beta, masses, abs(np.diff(angles)[0]), np.cos(angle)) for angle in (beta**-0.5, 1e-4)]
    times, atoms = run.sample_times, run.diagnostics["atoms"]
    assert set(atoms[times < start]) <= {0.0}
    np.testing.assert_allclose(times[atoms == 1][0] - start, from_handover[1], rtol=1e-6)
    np.testing.assert_allclose(merger.time - start, from_handover[0], rtol=1e-6)


NULLS = [(16, 2), (16, 4), (16, 64), (40, 3), (64, 2), (64, 8), (150, 3), (200, 2), (2000, 3), (2000, 384)]


@pytest.mark.sampled
@pytest.mark.parametrize(("count", "dimension"), NULLS)
@pytest.mark.parametrize("beta", [4.0, 64.0, 400.0])
def test_uniform_tokens_have_no_clusters(count, dimension, beta):
    """One of forty draws may have a cluster, where one of a hundred is promised: the seed is fixed."""
    random, draws = np.random.default_rng(0), 40 if count * dimension < 10_000 else 3
    points = unit(random.standard_normal((draws, count, dimension)))
    shares, scale = np.full(count, 1 / count), merging_angle(beta)
    assert sum(find_clusters_of_tokens(each, shares, scale).count > 0 for each in points) <= 1


@pytest.mark.parametrize("dimension", [2, 3, 8, 384])
@pytest.mark.parametrize("count", [16, 30, 500])
def test_collapsed_tokens_are_clusters_however_many(count, dimension):
    """Four points at right angles, where the kernel's sum over pairs is about that of uniform tokens on the circle."""
    axes = np.vstack([np.eye(dimension)[:2], -np.eye(dimension)[:2]])
    found = find_clusters_of_tokens(np.resize(axes, (count, dimension)), np.full(count, 1 / count))
    assert found.count == 4


def test_many_random_tokens_in_a_density_with_two_peaks_are_two_clusters():
    """The number for tokens converges to that of their density: none, then two."""
    random = np.random.default_rng(1)
    angles = random.vonmises(0.0, 4.0, 20_000) + np.pi * random.integers(2, size=20_000)
    assert find_clusters_of_tokens(on_circle(*angles), np.full(20_000, 5e-5)).count == 2
