"""Initial densities: mass 1, nonnegative, and each with its defining property."""

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere import initial
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.harmonics import harmonic_transform

CIRCLE, SPHERE = circle(256), sphere(64)
AXES = {"circle": [0.6, -0.8], "sphere": [0.36, -0.48, 0.8]}
by_manifold = pytest.mark.parametrize("mesh", [CIRCLE, SPHERE], ids=lambda mesh: mesh.manifold)


@by_manifold
def test_mass_is_one_and_nothing_is_negative(mesh):
    axis = AXES[mesh.manifold]
    for density in (
        initial.initial_uniform(mesh),
        initial.initial_perturbed(mesh, 0.5, 12, 3),
        initial.initial_harmonic(mesh, 3, 0, 0.1),
        initial.initial_von_mises_fisher(mesh, [axis, [-a for a in axis]], [5.0, 2e4], [3.0, 1.0]),
        initial.initial_moebius(mesh, axis, 1.0),
        initial.initial_points(mesh, [axis, [-a for a in axis]], [3.0, 1.0]),
        initial.initial_points(mesh, [axis]),
    ):
        assert density.shape == (mesh.cells,)
        assert density.min() >= 0
        assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-13)


@by_manifold
def test_uniform_is_one_number(mesh):
    assert set(initial.initial_uniform(mesh)) == {1.0 / mesh.volume}


@by_manifold
def test_perturbed_has_unit_variance_and_equal_power(mesh):
    """The mean square over seeds of each degree 1 … 6 of log ρ is amplitude²/6, and zero beyond."""
    degrees, seeds, amplitude = 6, 400, 1e-3
    transform, mean = harmonic_transform(mesh, 9), 1 / mesh.volume
    power = np.mean(
        [
            transform.power((initial.initial_perturbed(mesh, amplitude, degrees, seed) - mean) * mesh.volumes)[1:]
            for seed in range(seeds)
        ],
        axis=0,
    )
    scaled = power * degrees / amplitude**2
    # Power of degree l is the mean of 2 or 2l + 1 squares of normal numbers, over all seeds: four standard errors.
    l = np.arange(1, degrees + 1)
    terms = 2 * np.ones(degrees) if mesh.dimension == 1 else 2 * l + 1
    off = np.abs(scaled[:degrees] - 1) / np.sqrt(2 / (terms * seeds))
    assert off.max() < 4, f"power {scaled} is {off} standard errors off"
    assert scaled[degrees:].max() < 1e-3  # amplitude², and the squared O(h²) of cell averages


@pytest.mark.parametrize(("coarse", "fine"), [(circle(128), circle(384)), (sphere(48), sphere(96))])
def test_perturbed_depends_on_the_seed_alone(coarse, fine):
    """The field is the same at any resolution: its first moment agrees to second order in the width."""
    first, second = (initial.initial_perturbed(m, 0.5, 4, 7) * m.volumes @ m.centers for m in (coarse, fine))
    assert np.abs(first - second).max() < 1e-3
    assert np.abs(first).max() > 0.01
    other = initial.initial_perturbed(coarse, 0.5, 4, 8) * coarse.volumes @ coarse.centers
    assert np.abs(first - other).max() > 0.01
    assert np.array_equal(initial.initial_perturbed(coarse, 0.5, 4, 7), initial.initial_perturbed(coarse, 0.5, 4, 7))


@pytest.mark.parametrize(("degree", "order"), [(1, 0), (1, 1), (2, -1), (3, 3), (4, 2)])
def test_harmonic_on_the_sphere_is_the_real_harmonic(degree, order):
    theta, phi = np.arccos(SPHERE.centers[:, 2]), np.arctan2(SPHERE.centers[:, 1], SPHERE.centers[:, 0])
    value = exact.harmonic(degree, abs(order), theta, phi) * np.sqrt(4 * np.pi)
    if order > 0:
        value = np.sqrt(2) * value.real
    elif order < 0:
        value = np.sqrt(2) * value.imag
    density = initial.initial_harmonic(SPHERE, degree, order, 0.2) * 4 * np.pi
    assert np.abs(density - (1 + 0.2 * value.real)).max() < 1e-3  # the mass of Y's cell averages, O(h²)


def test_harmonic_on_the_circle():
    angle = np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0])
    density = initial.initial_harmonic(CIRCLE, 3, 0, 0.2) * 2 * np.pi
    assert np.abs(density - (1 + 0.2 * np.sqrt(2) * np.cos(3 * angle))).max() < 1e-13


def test_negative_harmonic_is_refused_with_the_largest_amplitude():
    with pytest.raises(ValueError, match=r"^amplitude = 0.8: expected at most 0.7075"):
        initial.initial_harmonic(circle(100), 1, 0, 0.8)  # √2 cos(π/100) · 0.7075 = 1: the cell nearest to the trough
    assert initial.initial_harmonic(circle(100), 1, 0, 0.7074).min() >= 0


@by_manifold
def test_von_mises_fisher_has_its_resultant(mesh):
    """⟨x⟩ = I_{d/2}(c)/I_{d/2−1}(c) along the center, for wide components and narrow ones, deposited as points."""
    axis, dimension = np.array(AXES[mesh.manifold]), mesh.centers.shape[1]
    for concentration in (0.5, 4.0, 30.0, 1e4):
        density = initial.initial_von_mises_fisher(mesh, [axis.tolist()], [concentration], [2.0])
        mean = (density * mesh.volumes) @ mesh.centers
        expected = exact.resultant(dimension, concentration) * axis
        error = np.abs(mean - expected).max()
        assert error < 3e-3, f"concentration {concentration}: {error:.1e}"  # deposit: 1 − cos of a cell, h²/2


@by_manifold
def test_von_mises_fisher_masses_are_shares(mesh):
    axis = np.array(AXES[mesh.manifold])
    density = initial.initial_von_mises_fisher(mesh, [axis.tolist(), (-axis).tolist()], [50.0, 5e4], [3.0, 1.0])
    north = mesh.centers @ axis > 0
    assert (density * mesh.volumes)[north].sum() == pytest.approx(0.75, abs=1e-3)  # cells cut by the great circle


def test_moebius_has_the_mean_of_its_parameter():
    for s in (0.1, 0.7, 1.5):
        mean = initial.initial_moebius(CIRCLE, [3.0, -4.0], s) * CIRCLE.volumes @ CIRCLE.centers
        assert mean == pytest.approx(np.tanh(s / 2) * np.array([0.6, -0.8]), abs=1e-12)
        mean = initial.initial_moebius(SPHERE, AXES["sphere"], s) * SPHERE.volumes @ SPHERE.centers
        assert mean == pytest.approx(exact.mean_cosine(s) * np.array(AXES["sphere"]), abs=2e-3)  # O(h²)


@by_manifold
def test_points_keep_their_center_of_mass(mesh):
    axis = np.array(AXES[mesh.manifold])
    density = initial.initial_points(mesh, [(5 * axis).tolist(), (-axis).tolist()], [3.0, 1.0])
    masses = density * mesh.volumes
    north = mesh.centers @ axis > 0
    assert masses[north].sum() == pytest.approx(0.75, abs=1e-14)
    center = masses[north] @ mesh.centers[north]
    assert center / np.linalg.norm(center) == pytest.approx(axis, abs=1e-13)


@pytest.mark.parametrize("s", [-8.0, 8.0, 400.0])
@pytest.mark.parametrize("manifold", ["circle", "sphere"])
def test_narrow_moebius_keeps_its_place(manifold, s):
    """A density narrower than cells has its exact position; at a cell center it would be half a cell off."""
    mesh, axis = {"circle": (circle(31), [0.3, 1.0]), "sphere": (sphere(12), [0.5, -0.2, 0.7])}[manifold]
    density = initial.initial_moebius(mesh, axis, s)
    mean, towards = (density * mesh.volumes) @ mesh.centers, np.sign(s) * np.array(axis) / np.linalg.norm(axis)
    assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.norm(mean - (mean @ towards) * towards) <= 2e-3 * mesh.width  # 2048 points, uneven by 1e-3
    assert mean @ towards >= 1 - 0.3 * mesh.width**2  # points inside a cell count at its corners
