"""Diagnostics, compared with their formulas."""

from functools import cache

import numpy as np
import pytest
from scipy import special

from meanfield.clusters.pairs import EDGES
from meanfield.domains.sphere.diagnostics import DIAGNOSTICS, diagnostics_round
from meanfield.domains.sphere.initial import (
    initial_harmonic,
    initial_moebius,
    initial_points,
    initial_uniform,
    initial_von_mises_fisher,
)
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Listed
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

mesh_circle, mesh_sphere = cache(circle), cache(sphere)
ON_SPHERES = tuple(name for name in DIAGNOSTICS if name != "label_centroid")
BUILDERS = pytest.mark.parametrize(
    "build", [lambda: mesh_circle(128), lambda: mesh_sphere(48)], ids=["circle", "sphere"]
)


# Attention adds the uniform density's part exactly, whereas the cells' masses count at their centers. The difference is
# rounding on the circle, and on rings the midpoint rule's error for a smooth kernel.
KERNEL_SUM = {"circle": 1e-11, "sphere": 1e-5}


def measure(mesh, density, beta, normalization="softmax"):
    law = Velocity(Attention(mesh, beta, normalization))
    return diagnostics_round(ON_SPHERES, mesh, law)(0.0, density)


def cell_points(mesh, count):
    """Return ``count`` cells whose centers are far from each other, so that point masses fill one cell each."""
    chosen = [0]
    while len(chosen) < count:
        nearest = (mesh.centers @ mesh.centers[chosen].T).max(axis=1)
        chosen.append(int(nearest.argmin()))
    return np.array(chosen)


@BUILDERS
@pytest.mark.parametrize("beta", [0.0, 3.0, 40.0])
def test_uniform(build, beta):
    """The values are log ρ̄; E = Z/2β with Z = I₀(β) on S¹, sinh(β)/β on S²; zero speed and centroid, power in
    degree 0 only."""
    mesh = build()
    values = measure(mesh, initial_uniform(mesh), beta)
    assert values["mass"] == pytest.approx(1.0, abs=1e-14)
    assert values["entropy"] == pytest.approx(-np.log(mesh.volume), rel=1e-13)
    if beta == 0:
        assert values["energy"] == pytest.approx(0.0, abs=1e-28)
    else:
        z = special.iv(0, beta) if mesh.dimension == 1 else np.sinh(beta) / beta
        assert values["energy"] == pytest.approx(z / (2 * beta), rel=1e-12)
    assert values["speed"] < 1e-15
    assert np.abs(values["centroid"]).max() < 1e-14
    assert values["clusters"] == 0
    assert values["power"][0] == pytest.approx(1.0, abs=1e-12)
    assert values["entropy_rate"] == pytest.approx(0.0, abs=1e-13)
    assert np.isnan(values["cluster_mass"]).all()


@BUILDERS
def test_uniform_has_no_power_in_other_degrees(build):
    """Power in other degrees vanishes to rounding, which must not hide a mode of amplitude 1e-6, of power 1e-12."""
    mesh = build()
    assert measure(mesh, initial_uniform(mesh), 3.0)["power"][1:].max() < 1e-24


@BUILDERS
@pytest.mark.parametrize("beta", [0.5, 9.0, 300.0])
def test_one_atom(build, beta):
    """2β e^{−β} E = 1, the entropy is the log of a cell's density, and the atom is at rest."""
    mesh = build()
    cell = cell_points(mesh, 3)[-1]
    values = measure(mesh, initial_points(mesh, mesh.centers[[cell]]), beta)
    assert 2 * beta * np.exp(-beta) * values["energy"] == pytest.approx(1.0, rel=KERNEL_SUM[mesh.manifold])
    assert values["entropy"] == pytest.approx(-np.log(mesh.volumes[cell]), rel=1e-11)
    # The deposit leaves 1e-16 of the mass in the next cell; speed is the root of a mean square.
    assert values["speed"] < 1e-6
    assert values["clusters"] == 1
    np.testing.assert_allclose(values["centroid"], mesh.centers[cell], atol=1e-14)


@BUILDERS
def test_energy_beyond_the_range_of_floats_is_in_units_of_its_exponential(build):
    """e^β overflows at β = 1000; the column is E e^{−β} = 1/2β for an atom, and an attribute states the unit."""
    mesh = build()
    law = Velocity(Attention(mesh, 1000.0))
    diagnostics = diagnostics_round(("energy",), mesh, law)
    energy = diagnostics(0.0, initial_points(mesh, mesh.centers[[5]]))["energy"]
    assert 2000 * energy == pytest.approx(1.0, rel=1e-3)  # a kernel narrower than a cell: see KERNEL_SUM
    assert dict(diagnostics.columns[0].attributes)["log_unit"] == 1000.0


@BUILDERS
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_two_atoms(build, normalization):
    """2βE = Σ m_i m_j e^{β g_ij} for cosine g; each atom moves at its share of the other, times the sine of the
    angle."""
    mesh, beta, masses = build(), 2.0, np.array([0.7, 0.3])
    points = mesh.centers[[cell_points(mesh, 2)[0], mesh.cells // 3]]
    cosine = float(points[0] @ points[1])
    assert abs(cosine) < 0.9
    values = measure(mesh, initial_points(mesh, points, masses), beta, normalization)
    energy = (masses**2).sum() * np.exp(beta) + 2 * masses.prod() * np.exp(beta * cosine)
    assert 2 * beta * values["energy"] == pytest.approx(energy, rel=KERNEL_SUM[mesh.manifold])
    other = masses[::-1] * np.exp(beta * cosine)
    share = other / (other + masses * np.exp(beta)) if normalization == "softmax" else other
    speed = np.sqrt(masses @ (share**2 * (1 - cosine**2)))
    assert values["speed"] == pytest.approx(speed, rel=10 * KERNEL_SUM[mesh.manifold])
    np.testing.assert_allclose(values["centroid"], masses @ points, atol=1e-14)
    assert values["clusters"] == 2


@BUILDERS
@pytest.mark.parametrize("beta", [0.0, 3.0, 40.0])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_entropy_rate_of_one_atom(build, beta, normalization):
    """−∫ρ div X is d − 1 with softmax and (d − 1) e^β without, however narrow the density."""
    mesh = build()
    d = mesh.centers.shape[1]
    values = measure(mesh, initial_points(mesh, mesh.centers[[cell_points(mesh, 2)[1]]]), beta, normalization)
    exact = (d - 1) * (1 if normalization == "softmax" else np.exp(beta))
    # the cell's mass counts at its center, and the deposit is within 1e-16 of it
    assert values["entropy_rate"] == pytest.approx(exact, rel=10 * beta * KERNEL_SUM[mesh.manifold] + 1e-10)


def entropy_steps(mesh, normalization):
    """Return dH/dt by a difference over a run, and by the diagnostic, when the density is smooth but far from
    uniform."""
    beta, time, step = 3.0, 0.3 if normalization == "softmax" else 0.06, 2e-4
    law, d = Velocity(Attention(mesh, beta, normalization)), mesh.centers.shape[1]
    diagnostics, seen = diagnostics_round(("entropy", "entropy_rate"), mesh, law), []
    density = initial_von_mises_fisher(mesh, [np.eye(d)[0], np.ones(d)], [2.0, 3.0], [0.6, 0.4])
    observer = Observer(lambda s: seen.append(diagnostics(s.time, s.values)), Listed((time - step, time, time + step)))
    evolve(State(0.0, density), mean_field_equation(mesh, law), STEPPERS["ssprk3"], time + step, (observer,), rtol=None)
    before, here, after = seen[-3:]
    return (after["entropy"] - before["entropy"]) / (2 * step), here["entropy_rate"]


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_entropy_rate_is_how_the_entropy_grows(normalization):
    """The two differ on the circle by the order of the scheme, 2."""
    errors = []
    for cells in (48, 96, 192):
        difference, rate = entropy_steps(mesh_circle(cells), normalization)
        errors.append(abs(difference / rate - 1))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates.min() > 1.7, f"errors {errors}, rates {rates}"
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_entropy_rate_is_how_the_entropy_grows_on_the_sphere(normalization):
    """Rings leave 1 % at 24 and less at 48; the rate is positive, since tokens concentrate."""
    errors = []
    for rings in (24, 48):
        difference, rate = entropy_steps(mesh_sphere(rings), normalization)
        assert rate > 0.1
        errors.append(abs(difference / rate - 1))
    assert errors[0] < 0.01
    assert errors[1] < 0.7 * errors[0]


def test_entropy_rate_unnormalized_is_a_sum_over_degrees():
    """Σ_l (l(l+d−2) c_l/β) ‖ρ_l‖² with Funk–Hecke's c_l = 2π I_l(β) / 2π on the circle, by the recorded power."""
    beta, mesh = 2.5, mesh_circle(128)
    values = measure(mesh, initial_moebius(mesh, np.array([0.6, 0.8]), 0.9), beta, "unnormalized")
    l = np.arange(len(values["power"]))
    square = values["power"] / (2 * np.pi)  # ‖ρ_l‖²: the mean square over ρ̄² times ρ̄² 2π
    by_degree = l**2 * 2 * np.pi * special.iv(l, beta) / beta * square
    assert by_degree[-1] < 1e-12  # the last degree of the power is negligible
    assert values["entropy_rate"] == pytest.approx(by_degree.sum(), rel=1e-10)


@BUILDERS
def test_masses_and_centers_of_clusters(build):
    mesh = build()
    points, masses = mesh.centers[cell_points(mesh, 3)], np.array([0.2, 0.5, 0.3])
    values = measure(mesh, initial_points(mesh, points, masses), 9.0)
    np.testing.assert_allclose(values["cluster_mass"][:3], [0.5, 0.3, 0.2], atol=1e-13)
    np.testing.assert_allclose(values["cluster_center"][:3], points[[1, 2, 0]], atol=1e-12)
    assert np.isnan(values["cluster_mass"][3:]).all()
    assert np.isnan(values["cluster_center"][3:]).all()


@BUILDERS
def test_pairs_of_clusters(build):
    """Σ m² of the pairs have met, and 2 m_i m_j lie at the angle between i and j, smeared over two cells at most."""
    mesh = build()
    points, masses = mesh.centers[cell_points(mesh, 2)], np.array([0.6, 0.4])
    values = measure(mesh, initial_points(mesh, points, masses), 9.0)
    assert values["pairs_close"] == pytest.approx(0.52, rel=0.02)  # a cell of this circle is as wide as 1 − z = 1e-3
    assert values["pairs"][:-5].sum() == pytest.approx(0.48, abs=1e-12)
    there = np.searchsorted(EDGES, points[0] @ points[1]) - 1
    assert values["pairs"][max(there - 1, 0) : there + 2].sum() == pytest.approx(0.48, abs=1e-12)


@BUILDERS
@pytest.mark.parametrize("count", [2, 3, 4])
def test_staircase(build, count):
    """2β e^{−β} E → Σ m_j² for distant clusters, within e^{−β(1 − cos)} of the nearest two."""
    mesh, beta = build(), 60.0
    points = mesh.centers[cell_points(mesh, count)]
    masses = np.arange(1.0, count + 1) / (count * (count + 1) / 2)
    cosines = points @ points.T - 2 * np.eye(count)
    values = measure(mesh, initial_points(mesh, points, masses), beta)
    apart = np.exp(-beta * (1 - cosines.max()))
    assert apart < 1e-6
    tolerance = 10 * KERNEL_SUM[mesh.manifold]
    assert 2 * beta * np.exp(-beta) * values["energy"] == pytest.approx((masses**2).sum(), abs=2 * apart + tolerance)
    assert values["clusters"] == count


@pytest.mark.parametrize("degree", [1, 3, 7, 16])
@pytest.mark.parametrize("amplitude", [1e-6, 1e-2])
def test_power_of_a_harmonic_on_the_circle(degree, amplitude):
    """The power is amplitude² in its degree, and rounding elsewhere."""
    mesh = mesh_circle(128)
    values = measure(mesh, initial_harmonic(mesh, degree, 0, amplitude), 5.0)
    assert values["power"][degree] == pytest.approx(amplitude**2, rel=1e-8)
    assert np.delete(values["power"], [0, degree]).max() < 1e-24


@pytest.mark.parametrize(("degree", "order"), [(1, 0), (1, -1), (2, 1), (3, -3), (5, 2)])
def test_power_of_a_harmonic_on_the_sphere(degree, order):
    """The power is amplitude² in its degree; harmonics are orthogonal over cells to second order in the mesh width."""
    amplitude, leaks = 1e-2, []
    for rings in (48, 96):
        mesh = mesh_sphere(rings)
        power = measure(mesh, initial_harmonic(mesh, degree, order, amplitude), 5.0)["power"]
        assert power[degree] == pytest.approx(amplitude**2, rel=20 * mesh.width**2)
        leaks.append(np.sqrt(np.delete(power, [0, degree]).max()) / amplitude)
    assert leaks[1] < 0.01
    assert leaks[1] < leaks[0] / 3 + 1e-9


@BUILDERS
def test_centroid_and_energy_of_a_smooth_density(build):
    """The Möbius push by s has centroid tanh(s/2) on S¹, coth s − s/sinh² s on S²; at β = 0 E is half its square."""
    mesh, s = build(), 0.7
    axis = np.array([0.6, 0.8, 0.0])[: mesh.centers.shape[1]]
    values = measure(mesh, initial_moebius(mesh, axis, s), 0.0)
    length = np.tanh(s / 2) if mesh.dimension == 1 else 1 / np.tanh(s) - s / np.sinh(s) ** 2
    # On the circle sums of smooth functions are exact to rounding; on rings the midpoint rule is of second order.
    tolerance = 1e-12 if mesh.dimension == 1 else mesh.width**2
    np.testing.assert_allclose(values["centroid"], length * axis, atol=tolerance)
    assert values["energy"] == pytest.approx(length**2 / 2, abs=tolerance)
    # X = P_x m at β = 0: ∫|X|²ρ = |m|² − ∫⟨x,m⟩²ρ, which the sum over the cells confirms
    m = values["centroid"]
    square = m @ m - (initial_moebius(mesh, axis, s) * mesh.volumes) @ (mesh.centers @ m) ** 2
    assert values["speed"] == pytest.approx(np.sqrt(square), rel=1e-10)


def test_columns_tell_their_shape_and_only_the_chosen_are_measured():
    mesh = mesh_sphere(16)
    diagnostics = diagnostics_round(("power", "mass", "centroid"), mesh, Velocity(Attention(mesh, 4.0)))
    values = diagnostics(0.0, initial_uniform(mesh))
    assert list(values) == ["power", "mass", "centroid"] == [column.name for column in diagnostics.columns]
    shapes = {column.name: tuple(length for _, length in column.dims) for column in diagnostics.columns}
    assert shapes == {name: np.shape(value) for name, value in values.items()}
