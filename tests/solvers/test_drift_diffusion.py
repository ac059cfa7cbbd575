"""Drift and diffusion in a potential: Gibbs densities steady on every mesh, Ornstein–Uhlenbeck, Kramers' rate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from support import exact
from support.meshes import MESHES

from solvers import Equation, solve
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box, torus
from solvers.terms.drift.scharfetter_gummel import DriftDiffusion


def rate_of(term, values, time=0.0):
    rate = np.zeros_like(values)
    term.prepare(time, values)
    term.rate(0.0, rate)
    return rate


@pytest.mark.parametrize("name", MESHES)
def test_the_gibbs_density_is_steady_and_others_keep_their_mass(name):
    mesh = MESHES[name](16)[0]
    potential = 3 * np.sin(2 * mesh.centers).sum(axis=1)
    term = DriftDiffusion(mesh, 0.7, potential, nonnegative=True)
    gibbs = np.exp(-potential / 0.7)
    speed = gibbs.max() / term.prepare(0.0, gibbs)
    assert np.abs(rate_of(term, gibbs)).max() < 1e-13 * speed  # rounding
    kept = gibbs.copy()
    term.step(1e3, kept)
    assert np.abs(kept / gibbs - 1).max() < 1e-9
    other = np.where(np.arange(mesh.cells) == mesh.cells // 3, 1 / mesh.volumes[mesh.cells // 3], 0.0)
    for dt in (1e-3, 0.1, 10.0, 1e3, 1e3, 1e3):
        term.step(dt, other)
        assert other.min() >= 0.0
        assert other @ mesh.volumes == pytest.approx(1.0, rel=1e-13)
    departure = np.abs(other / gibbs * (gibbs @ mesh.volumes) - 1)
    assert departure.max() < 0.05  # relaxed, except for wells with slow escape


def gaussian(x, mean, variance):
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def test_ornstein_uhlenbeck_is_of_second_order():
    """V = x²/2, D = 1 from N(1, ¼): N(e^{−t}, 1 + (¼ − 1)e^{−2t}) at t = 1, with cells and steps refined together."""
    sizes, errors = (60, 120, 240), []
    for size in sizes:
        mesh = interval(-6.0, 6.0, size)
        x = mesh.centers[:, 0]
        term, u = DriftDiffusion(mesh, 1.0, x**2 / 2, nonnegative=True), gaussian(x, 1.0, 0.25)
        for _ in range(size // 2):
            term.step(2 / size, u)
        errors.append(np.abs(u - gaussian(x, np.exp(-1), 1 - 0.75 * np.exp(-2))) @ mesh.volumes)
    assert exact.orders(errors, sizes)[-1] > 1.8, errors
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("nonnegative", [False, True])
def test_ornstein_uhlenbeck_to_the_default_tolerance_in_one_call(nonnegative):
    mesh = interval(-6.0, 6.0, 90)
    x = mesh.centers[:, 0]
    term = DriftDiffusion(mesh, 1.0, x**2 / 2, nonnegative=nonnegative)
    found = solve(Equation(mesh, [term]), gaussian(x, 1.0, 0.25), (0.0, 1.0))
    exact_density = gaussian(x, np.exp(-1), 1 - 0.75 * np.exp(-2))
    assert np.abs(found.u[-1] - exact_density) @ mesh.volumes < 1e-4  # rtol
    assert found.steps < (60 if nonnegative else 30), found.message  # second order; fourth order


def test_equal_cells_are_of_fourth_order():
    """The rate div(D∇u + u∇V) of u = e^{sin x + cos y}, V = D(cos x + sin y) on a torus converges at fourth order."""
    D, sizes, errors = 0.8, (16, 32, 64), []
    for size in sizes:
        mesh = torus((size, size))
        x, y = (np.arctan2(mesh.centers[:, k + 1], mesh.centers[:, k]) for k in (0, 2))
        u = np.exp(np.sin(x) + np.cos(y))
        slopes = (np.cos(x) - np.sin(x), np.cos(y) - np.sin(y))  # slopes of u e^{V/D}, divided by u e^{V/D}
        found = rate_of(DriftDiffusion(mesh, D, D * (np.cos(x) + np.sin(y))), u)
        expected = (
            D * u * (slopes[0] * np.cos(x) - np.sin(x) - np.cos(x) - slopes[1] * np.sin(y) - np.cos(y) - np.sin(y))
        )
        errors.append(np.abs(found - expected).max())
    assert exact.orders(errors, sizes)[-1] > 3.9, errors


def inconsistent_sphere(rings):
    """Return rings of latitude whose conductances are area over distance, whatever the angle between line and face."""
    mesh = sphere(rings)
    distances = np.linalg.norm(np.diff(mesh.centers[mesh.face_cells], axis=1)[:, 0], axis=1)
    return replace(mesh, face_conductances=lambda: mesh.face_areas / distances)


@pytest.mark.parametrize("build", [sphere, inconsistent_sphere])
def test_rates_on_the_sphere_are_consistent(build):
    """V = D·x, u = e^{−2x}: div(D∇u + u∇V) = D e^{−2x}(2(1 − x²) + 2x) in L¹, of first order where rings meet 2:1.

    Inconsistent conductances are corrected by the gradients of the cells beside each face.
    """
    D, sizes, errors = 0.6, (16, 32, 64), []
    for size in sizes:
        mesh = build(size)
        x = mesh.centers[:, 0]
        found = rate_of(DriftDiffusion(mesh, D, D * x), np.exp(-2 * x))
        errors.append(np.abs(found - D * np.exp(-2 * x) * (2 * (1 - x**2) + 2 * x)) @ mesh.volumes)
    assert exact.orders(errors, sizes)[-1] > 0.9, errors


def test_a_plane_with_two_potentials_is_the_product():
    mesh = box((40, 30), ((-4.0, 4.0), (-3.0, 3.0)))
    x, y = mesh.centers.T
    lines = [interval(-4.0, 4.0, 40), interval(-3.0, 3.0, 30)]
    parts = [gaussian(line.centers[:, 0], 0.5, 0.3) for line in lines]
    rate = rate_of(DriftDiffusion(mesh, 1.0, x**2 / 2 + y**4 / 4), np.outer(*parts).reshape(-1)).reshape(40, 30)
    one, two = (
        rate_of(DriftDiffusion(line, 1.0, potential), part)
        for line, potential, part in zip(
            lines, (lines[0].centers[:, 0] ** 2 / 2, lines[1].centers[:, 0] ** 4 / 4), parts, strict=True
        )
    )
    assert np.abs(rate - np.outer(one, parts[1]) - np.outer(parts[0], two)).max() < 1e-11


def test_kramers_rate_at_100_cells():
    """Escape over the barrier of V = x⁴/4 − x²/2: the slowest rate is compared with 1/(∫e^{V/D} ∫e^{−V/D}).

    The reference is the same eigenvalue at 3200 cells; Kramers' formula is its limit for small D (here 8 % off).
    """
    rates = []
    for size in (100, 3200):
        mesh = interval(-2.2, 2.2, size)
        x = mesh.centers[:, 0]
        potential = x**4 / 4 - x**2 / 2
        term = DriftDiffusion(mesh, 0.05, potential)
        u = np.exp(-potential / 0.05) * np.tanh(5 * x)
        for _ in range(30):
            term.step(20.0, u)
        before = np.abs(u) @ mesh.volumes
        term.step(1.0, u)
        rates.append(-np.log(np.abs(u) @ mesh.volumes / before))
    assert rates[0] == pytest.approx(rates[1], rel=5e-3)
    well = quad(lambda x: np.exp(-(x**4 / 4 - x**2 / 2) / 0.05), -2.2, 0)[0]
    barrier = quad(lambda x: np.exp((x**4 / 4 - x**2 / 2) / 0.05), -1, 1)[0]
    assert rates[0] == pytest.approx(2 * 0.05 / (well * barrier), rel=0.02)  # mean passage time, up to e^{−ΔV/D}


def test_a_potential_that_changes_is_as_one_that_does_not():
    """Rates and matrices by V(t, u) at t = 2 after t = 1 are those of V(2)."""
    mesh = circle(32)
    V = np.sin(2 * mesh.centers[:, 0])
    u = np.exp(mesh.centers[:, 1])
    changing, fixed = DriftDiffusion(mesh, 0.7, lambda t, u: t * V), DriftDiffusion(mesh, 0.7, 2 * V)
    for time in (1.0, 2.0):
        found = rate_of(changing, u, time)
    np.testing.assert_array_equal(found, rate_of(fixed, u))
    np.testing.assert_array_equal(changing.jacobian(1)[0].toarray(), fixed.jacobian(1)[0].toarray())
    np.testing.assert_allclose(fixed.jacobian(1)[0] @ u, found, atol=1e-12 * np.abs(found).max())  # rounding


def test_a_potential_of_the_state_follows_it():
    """Desai–Zwanzig without confinement: V = θ(x − m)²/2 keeps the mean, and the variance tends to D/θ."""
    mesh = interval(-6.0, 6.0, 200)
    x = mesh.centers[:, 0]
    mean = lambda t, u: 0.5 * 2.0 * (x - (u * mesh.volumes) @ x / (u @ mesh.volumes)) ** 2  # noqa: E731
    term, u = DriftDiffusion(mesh, 0.5, mean, nonnegative=True), gaussian(x, 0.8, 1.0)
    for _ in range(400):
        term.prepare(0.0, u)
        term.step(0.02, u)
    center = (u * mesh.volumes) @ x
    assert center == pytest.approx(0.8, abs=1e-4)
    assert (u * mesh.volumes) @ (x - center) ** 2 == pytest.approx(0.25, abs=2e-3)  # h²/12·… of the mesh


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((0.0, np.zeros(8)), ValueError, "D = 0.0: expected a number > 0, finite"),
        ((-1.0, np.zeros(8)), ValueError, "D = -1.0: expected a number > 0, finite"),
        ((1.0, np.zeros(7)), ValueError, r"potential of shape \(7,\): expected \(8,\)"),
        ((1.0, np.full(8, np.nan)), ValueError, r"potential\[0\] = nan"),
        ((np.ones(8), np.zeros(8)), TypeError, r"D = an array \(8,\): expected a number"),
    ],
)
def test_wrong_input_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        DriftDiffusion(interval(0.0, 1.0, 8), *arguments)


@pytest.mark.parametrize(
    "potential",
    [
        lambda x: np.arange(8),
        lambda x: np.arange(8).tolist(),
        lambda x: lambda x: np.arange(8),
        lambda x: lambda t, u: np.arange(8),
    ],
)
def test_a_potential_may_be_integers(potential):
    """An array, a list, a function of position and a function of the state give the rates of an array of floats."""
    mesh = interval(0.0, 1.0, 8)
    u = 1.0 + mesh.centers[:, 0]
    found = rate_of(DriftDiffusion(mesh, 1.0, potential(mesh.centers)), u)
    np.testing.assert_array_equal(found, rate_of(DriftDiffusion(mesh, 1.0, np.arange(8.0)), u))


@pytest.mark.parametrize("call", [lambda term, u: term.prepare(0.0, u), lambda term, u: term.step(0.1, u)])
def test_a_field_that_is_not_finite_is_refused(call):
    with pytest.raises(ValueError, match=r"^values\[3\] = nan: expected finite numbers$"):
        call(DriftDiffusion(interval(0.0, 1.0, 8), 1.0, np.zeros(8)), np.where(np.arange(8) == 3, np.nan, 1.0))
