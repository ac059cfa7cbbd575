"""Entropy and energy: the same meaning in every domain, with unit and reference stated in files."""

import h5py
import numpy as np
import pytest
from support.status import DONE, resume, run

from meanfield.case.load import parse
from meanfield.diagnostics.table import energy_beta, energy_unit, entropy_is_relative
from meanfield.domains.particles.diagnostics import diagnostics_particles
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.functionals import energy
from meanfield.model.heads import Head
from meanfield.simulation import set_up
from solvers.io.run_file import FileError, read
from solvers.transforms.polar import log_area

CASE = """
[domain]
manifold = "{}"
resolution = {}
[attention]
beta = {}
[initial]
kind = "von_mises_fisher"
components = [{{center = [{}1], concentration = 4}}]
[time]
end = 1e-6
[output]
snapshots = 1
samples = 1
diagnostics = ["entropy", "energy"]
"""


def recorded(folder, name, resolution, beta):
    text = CASE.format(name, resolution, beta, "0, 0, " if name == "sphere" else "")
    if name == "axisymmetric":
        text = text.replace("[attention]", "dimension = 3\n[attention]")
    path = folder / f"{name}.h5"
    run(parse(text), path, quiet=True)
    return read(path)


def test_a_sphere_and_polar_angles_have_the_same_entropy_and_energy(tmp_path):
    sphere, polar = recorded(tmp_path, "sphere", 96, 3.0), recorded(tmp_path, "axisymmetric", 384, 3.0)
    k = 4.0  # ρ = e^{k cos θ} k/(4π sinh k): H = k(coth k − 1/k) + log(k/(4π sinh k))
    exact = k / np.tanh(k) - 1 + np.log(k / (4 * np.pi * np.sinh(k)))
    for found in (sphere, polar):
        assert found.diagnostics["entropy"][0] == pytest.approx(exact, abs=2e-3)  # cell averages, O(h²)
    assert polar.diagnostics["energy"][0] == pytest.approx(sphere.diagnostics["energy"][0], rel=2e-3)
    assert not entropy_is_relative(polar, True)
    assert energy_unit(polar, 3.0) == energy_unit(sphere, 3.0) == 0.0


def test_an_older_file_is_read_by_its_own_convention(tmp_path):
    found = recorded(tmp_path, "axisymmetric", 64, 3.0)
    with h5py.File(found.path, "a") as file:
        del file["diagnostics/entropy"].attrs["reference"], file["diagnostics/energy"].attrs["log_unit"]
        file["diagnostics/energy"].attrs["long_name"] = "interaction energy, in units of e^|beta|"
    assert entropy_is_relative(read(found.path), True)
    assert not entropy_is_relative(read(found.path), False)
    assert energy_unit(read(found.path), -3.0) == 3.0


def test_energies_beyond_the_range_of_numbers_are_in_the_unit_of_the_largest_kernel():
    masses, normalizer = np.array([0.25, 0.75]), np.array([1.0, 1.0])
    assert energy(masses, normalizer, 800.0, 800.0, float) == pytest.approx(1 / 1600, rel=1e-15)
    assert energy(masses, normalizer, 5.0, 5.0, float) == pytest.approx(np.exp(5) / 10, rel=1e-15)


@pytest.mark.parametrize(("dimension", "area"), [(2, 2 * np.pi), (3, 4 * np.pi), (4, 2 * np.pi**2)])
def test_area_of_spheres(dimension, area):
    assert log_area(dimension) == pytest.approx(np.log(area), rel=1e-15)


def test_rows_of_another_unit_are_not_added(tmp_path):
    found = recorded(tmp_path, "axisymmetric", 64, 750.0)
    assert resume(found.path, until=2e-6, quiet=True) == DONE
    with pytest.raises(FileError, match=r"its energy is in units of e\^750, now e\^760; run the case again"):
        resume(found.path, until=3e-6, changes=["attention.beta=760"], quiet=True)
    with h5py.File(found.path, "a") as file:
        del file["diagnostics/entropy"].attrs["reference"]
    with pytest.raises(FileError, match="its entropy is relative to the uniform density, as in older versions"):
        resume(found.path, until=3e-6, quiet=True)


MATRIX = np.array([[1.5, 0.4], [0.4, -0.7]])
ANGLES = np.array([0.3, 1.1, 2.9, 4.0])
TOKENS, MASSES = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1), np.array([0.1, 0.2, 0.3, 0.4])


def energy_of(law, points=TOKENS, masses=MASSES):
    return diagnostics_particles(("energy",), law, masses, 2)(0.0, points)["energy"]


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_energy_is_a_lyapunov_function_where_values_follow_the_kernel(normalization, factor):
    """V = c QᵀK symmetric: dE/dt = Σ m s|X|²/c with s = Z or 1, whatever the matrix."""
    law = ParticleVelocity(2.0, normalization, (Head(key=MATRIX, value=factor * MATRIX),), MASSES)
    velocity = law.rates(0.0, TOKENS, np.ones(4))[0]
    size = np.exp(2 * TOKENS @ MATRIX @ TOKENS.T) @ MASSES if normalization == "softmax" else 1.0
    expected = (MASSES * size * (velocity**2).sum(axis=1)).sum() / factor
    step = 1e-5
    ahead, behind = (
        energy_of(law, (moved := TOKENS + sign * step * velocity) / np.linalg.norm(moved, axis=1)[:, None])
        for sign in (1, -1)
    )
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-7)  # step², over rounding/step
    assert np.sign(expected) == np.sign(factor)


@pytest.mark.parametrize("manifold", ["circle", "particles"])
@pytest.mark.parametrize("key", [2.0, -1.0, -6.0])
def test_energy_is_continuous_in_the_matrices(manifold, key):
    """(1/2β) ∬ e^{β⟨x,Ky⟩}ρρ by a sum over all pairs, whether or not K and V are multiples of the identity."""
    cell = 2 * np.pi / 64
    angles = cell * (np.array([5, 18, 40]) + 0.5)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    expected = np.exp(1.5 * key * points @ points.T).mean() / 3
    domain = 'manifold = "circle"\nresolution = 64' if manifold == "circle" else 'manifold = "particles"'
    for change in (0.0, 1e-13):
        case = parse(
            f"[domain]\n{domain}\n[attention]\nbeta = 1.5\nkey = {(key * np.eye(2)).tolist()}\n"
            f"value = [[1.0, 0.0], [0.0, {1 + change!r}]]\n[initial]\nkind = 'points'\npoints = {points.tolist()}\n"
            "[time]\nend = 1.0"
        )
        problem = set_up(case)
        value = problem.diagnostics(["energy"], None)(0.0, problem.initial())["energy"]
        assert value == pytest.approx(expected, rel=1e-6)  # the uniform density's share is exact, see ZonalSums


def test_energy_under_a_causal_mask_is_that_of_the_pairs_that_attend():
    """Labels with a token each, at the centers of cells, are tokens in a row: Σ_{j ≤ i}."""
    cell = 2 * np.pi / 64
    angles = cell * (np.array([5, 18, 40]) + 0.5)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    expected = np.tril(np.exp(1.5 * points @ points.T)).sum() / 9 / 3
    case = parse(
        "[domain]\nmanifold = 'circle'\nresolution = 64\n[attention]\nbeta = 1.5\nmask = 'causal'\n"
        f"[initial]\nkind = 'points'\npoints = {points.tolist()}\n[time]\nend = 1.0"
    )
    problem = set_up(case)
    found = problem.diagnostics(["energy"], None)(0.0, problem.initial())["energy"]
    assert found == pytest.approx(expected, rel=1e-6)
    assert energy_of(ParticleVelocity(1.5, causal=True), points, np.ones(3) / 3) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
def test_energy_without_beta_is_the_limit_less_its_constant(kernel, causal):
    heads = (Head(query=MATRIX, key=2.0, weight=0.5), Head(value=MATRIX, weight=0.25))
    at = [
        energy_of(ParticleVelocity(beta, heads=heads, masses=MASSES, kernel=kernel, causal=causal))
        for beta in (0.0, 1e-5)
    ]
    pairs = (np.tril if causal else np.asarray)(np.outer(MASSES, MASSES)).sum()
    assert at[0] == pytest.approx(at[1] - 0.75 * pairs / 2e-5, rel=1e-3, abs=1e-4)  # β, and rounding of 1/β


def test_older_energies_have_the_scales_of_matrices_in_their_factor(tmp_path):
    text = CASE.format("circle", 32, 3.0, "0, ").replace("[initial]", "key = [[2.0, 0.0], [0.0, 2.0]]\n[initial]")
    case, path = parse(text), tmp_path / "run.h5"
    run(case, path, quiet=True)
    assert energy_beta(read(path), case) == 3.0
    with h5py.File(path, "a") as file:
        del file["diagnostics/energy"].attrs["factor"]
    assert energy_beta(read(path), case) == 6.0
    with pytest.raises(FileError, match="the factor of its energy has the scales of query and key"):
        resume(path, until=2e-6, quiet=True)
