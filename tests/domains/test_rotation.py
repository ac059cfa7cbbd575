"""The mesh leaves no pattern: a rotated random density forms the same clusters with the same mergers."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

from meanfield.clusters.on_cells import Clusters, find_clusters
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

SEED = 1  # a seed with an early first merger


def random_field(points: np.ndarray, seed: int, degrees: int = 8) -> np.ndarray:
    """Return a Gaussian field of unit variance at any points of the sphere, the same function for each seed."""
    random = np.random.default_rng(seed)
    theta, phi = np.arccos(points[:, 2].clip(-1, 1)), np.arctan2(points[:, 1], points[:, 0])
    field = np.zeros(len(points))
    for degree in range(1, degrees + 1):
        draws = random.normal(size=(degree + 1, 2)) * np.sqrt(4 * np.pi / ((2 * degree + 1) * degrees))
        for order in range(degree + 1):
            harmonic = sph_harm_y(degree, order, theta, phi) * (np.sqrt(2) if order else 1)
            field += draws[order, 0] * harmonic.real + draws[order, 1] * harmonic.imag
    return field


def clusters_at(times: tuple[float, ...], rotation: np.ndarray, rings: int) -> list[Clusters]:
    """Return the clusters of the rotated problem, rotated back."""
    mesh = sphere(rings)
    density = np.exp(0.3 * random_field(mesh.centers @ rotation, seed=SEED))
    state = State(0.0, density / (density @ mesh.volumes))
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 6.0)))
    found = []
    for time in times:
        evolve(state, equation, STEPPERS["ssprk3"], time, rtol=None)
        clusters = find_clusters(mesh, state.values)
        found.append(Clusters(clusters.masses, clusters.centers @ rotation, clusters.basin))
    return found


@pytest.mark.slow
def test_the_same_clusters_form_and_merge_in_any_orientation():
    """Four clusters at t = 11, two after mergers: masses agree to 1 % of the whole, positions to a cell and a half.

    A basin boundary that moves by one cell of 64 rings, along the length of a cluster's rim, carries about 1 %.
    """
    times, rings = (11.0, 20.0), 64
    reference = clusters_at(times, np.eye(3), rings)
    assert [found.count for found in reference] == [4, 2]
    for seed in (1, 2):
        turned = clusters_at(times, Rotation.random(random_state=seed).as_matrix(), rings)
        for time, expected, found in zip(times, reference, turned, strict=True):
            assert found.count == expected.count, f"t = {time}: {found.count} clusters, {expected.count} unrotated"
            nearest = (found.centers @ expected.centers.T).argmax(axis=1)
            assert sorted(nearest) == list(range(expected.count))
            masses = np.abs(found.masses - expected.masses[nearest]).max()
            angles = np.arccos((found.centers * expected.centers[nearest]).sum(axis=1).clip(-1, 1))
            assert masses < 0.01, f"t = {time}: masses differ by {masses:.4f}"
            assert angles.max() < 1.5 * np.pi / rings, f"t = {time}: centers differ by {angles.max():.4f} rad"
