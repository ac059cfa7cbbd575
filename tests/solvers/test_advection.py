"""Transport: mass and positivity in any state, point masses at their own velocity, second order for smooth data."""

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere.initial import (
    initial_perturbed,
    initial_points,
    initial_uniform,
    initial_von_mises_fisher,
)
from solvers.mesh.mesh import circle, sphere
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

CIRCLE, SPHERE = circle(128), sphere(64)
SCHEMES = [{}, {"resolved": (0.0, 0.0)}, {"limiter": "none"}, {"limiter": "mc"}, {"limiter": "koren"}]
by_manifold = pytest.mark.parametrize("mesh", [CIRCLE, SPHERE], ids=lambda mesh: mesh.manifold)


def tangent_part(mesh, vectors):
    return vectors - (vectors * mesh.centers).sum(axis=1)[:, None] * mesh.centers


def random_velocity(mesh, seed=0):
    """Return a rough velocity: each cell has its own direction and speed."""
    return tangent_part(mesh, np.random.default_rng(seed).standard_normal(mesh.centers.shape))


def rough_densities(mesh):
    random = np.random.default_rng(1)
    density = np.zeros(mesh.cells)
    density[random.integers(mesh.cells, size=12)] = 10.0 ** -np.arange(0, 12)
    yield density
    yield random.random(mesh.cells) ** 8
    yield np.where(random.random(mesh.cells) < 0.5, 1.0, 0.0)
    yield initial_perturbed(mesh, 0.1)


def rate_of(term, density, dt=0.0):
    rate = np.zeros(len(density))
    stable = term.prepare(0.0, density)
    term.rate(dt, rate)
    return rate, stable


def rotation(mesh):
    """Return the velocity of a rigid rotation once in 2π, about a tilted axis on the sphere, in every cell."""
    if mesh.dimension == 1:
        return np.stack([-mesh.centers[:, 1], mesh.centers[:, 0]], axis=1)
    return np.cross([0.36, 0.48, 0.8], mesh.centers)


@by_manifold
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_rate_keeps_the_mass(mesh, scheme):
    velocity = random_velocity(mesh)
    for density in rough_densities(mesh):
        rate, _ = rate_of(Advection(mesh, lambda t, u: velocity, nonnegative=True, **scheme), density)
        total = np.abs(rate * mesh.volumes).sum()
        assert abs(rate @ mesh.volumes) < 1e-14 * total, f"{abs(rate @ mesh.volumes) / total:.1e}"


@by_manifold
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("fraction", [1.0, 10.0, 1e4])
def test_a_step_keeps_density_nonnegative(mesh, scheme, fraction):
    """The limits are the stable time step, and, with the draining limiter, far larger ones; rounding may leave a
    last bit."""
    velocity = random_velocity(mesh)
    for density in rough_densities(mesh):
        term = Advection(mesh, lambda t, u: velocity, nonnegative=True, **scheme)
        _, stable = rate_of(term, density)
        rate, _ = rate_of(term, density, fraction * stable)
        lowest = (density + fraction * stable * rate).min()
        assert lowest >= -1e-13 * density.max(), f"{lowest:.1e}"
        assert density @ mesh.volumes == pytest.approx((density + fraction * stable * rate) @ mesh.volumes, rel=1e-12)


@by_manifold
def test_a_lump_moves_at_its_own_velocity(mesh):
    """The center of mass of one full cell moves with X of that cell, whatever the velocities of the neighbors."""
    velocity, worst = random_velocity(mesh), 0.0
    term = Advection(mesh, lambda t, u: velocity, nonnegative=True)
    for cell in np.random.default_rng(2).permutation(mesh.cells)[:300]:
        density = np.zeros(mesh.cells)
        density[cell] = 1 / mesh.volumes[cell]
        rate, _ = rate_of(term, density)
        pull = (rate * mesh.volumes) @ mesh.centers
        pull -= (pull @ mesh.centers[cell]) * mesh.centers[cell]
        worst = max(worst, np.linalg.norm(pull - velocity[cell]) / np.linalg.norm(velocity[cell]))
    assert worst < 1e-3, f"first moment off by {worst:.1e}"  # chords instead of arcs: h²/6


@by_manifold
def test_points_anywhere_move_at_the_velocity(mesh):
    """Point masses shared between cells move with a smooth velocity, too."""
    dimension = mesh.centers.shape[1]
    target = np.linspace(1.0, -0.5, dimension)
    velocity = tangent_part(mesh, np.broadcast_to(target, mesh.centers.shape))
    term, worst = Advection(mesh, lambda t, u: velocity, nonnegative=True), 0.0
    for point in np.random.default_rng(3).standard_normal((300, dimension)):
        point /= np.linalg.norm(point)
        rate, _ = rate_of(term, initial_points(mesh, [point.tolist()]))
        pull = (rate * mesh.volumes) @ mesh.centers
        pull -= (pull @ point) * point
        expected = target - (target @ point) * point
        worst = max(worst, np.linalg.norm(pull - expected) / np.linalg.norm(target))
    assert worst < 3e-3, f"first moment off by {worst:.1e}"  # the velocity is averaged over the sharing cells: h²


@pytest.mark.parametrize("mesh", [circle(256), sphere(128)], ids=lambda mesh: mesh.manifold)
def test_a_tracer_falls_onto_a_cluster(mesh):
    """X = Pₓe of a Dirac at e: z(t) = tanh(t + artanh z₀), for a point mass across many cells and rings."""
    axis = np.array([0.6, -0.8] if mesh.dimension == 1 else [0.36, 0.48, 0.8])
    velocity = tangent_part(mesh, np.broadcast_to(axis, mesh.centers.shape))
    across = np.array([0.8, 0.6] if mesh.dimension == 1 else [0.8, -0.6, 0.0])
    z = -0.8
    state = State(0.0, initial_points(mesh, [(z * axis + np.sqrt(1 - z * z) * across).tolist()]))
    equation = Equation(None, [Advection(mesh, lambda t, u: velocity, nonnegative=True)], limit=limit_positivity)
    worst = 0.0
    for time in (0.5, 1.0, 1.5, 2.0):
        evolve(state, equation, STEPPERS["ssprk3"], time, rtol=None)
        mean = (state.values * mesh.volumes) @ mesh.centers
        found = mean @ axis / np.linalg.norm(mean)
        worst = max(worst, abs(found - np.tanh(time + np.arctanh(z))))
    assert worst < 0.01, f"z off by {worst:.1e}"  # a point mass is some cells wide, and its front moves faster


@pytest.mark.parametrize(("build", "sizes", "reach"), [(circle, (64, 128, 256), 1.9), (sphere, (32, 64, 128), 1.8)])
def test_rotation_is_second_order(build, sizes, reach):
    """A resolved bump transported by a radian without deformation has an L¹ error of second order."""
    errors = []
    for size in sizes:
        mesh = build(size)
        start = np.array([0.6, -0.8] if mesh.dimension == 1 else [0.8, -0.6, 0.0])
        velocity = rotation(mesh)
        state = State(0.0, initial_von_mises_fisher(mesh, [start.tolist()], [2.0], [1.0]))
        term = Advection(mesh, lambda t, u, x=velocity: x, nonnegative=True)
        evolve(state, Equation(None, [term]), STEPPERS["ssprk3"], 1.0, rtol=None)
        side = np.array([-start[1], start[0]]) if mesh.dimension == 1 else np.cross([0.36, 0.48, 0.8], start)
        moved = initial_von_mises_fisher(mesh, [(np.cos(1) * start + np.sin(1) * side).tolist()], [2.0], [1.0])
        errors.append(np.abs(state.values - moved) @ mesh.volumes)
    observed = exact.orders(errors, sizes)
    assert observed[-1] > reach, f"orders {observed}, errors {errors}"


@by_manifold
def test_a_lost_velocity_is_passed_on(mesh):
    velocity = random_velocity(mesh)
    velocity[5] = np.nan
    assert np.isnan(Advection(mesh, lambda t, u: velocity, nonnegative=True).prepare(0.0, initial_perturbed(mesh, 0.1)))


@by_manifold
def test_nothing_limits_the_time_step_where_nothing_moves(mesh):
    still = np.zeros_like(mesh.centers)
    assert Advection(mesh, lambda t, u: still, nonnegative=True).prepare(0.0, initial_uniform(mesh)) == np.inf


@by_manifold
def test_growth_about_uniform_needs_nothing_from_the_caller(mesh):
    """X = K Pₓ∫yu and noise κ: degree 1 grows at (d − 1)(K/d − κ), though no flow limits the step."""
    d, coupling, noise = mesh.centers.shape[1], 2.0, 0.1
    x = mesh.centers

    def pull(time, density):
        mean = coupling * (density * mesh.volumes) @ x
        return mean - (x @ mean)[:, None] * x

    start = (1 + 1e-3 * x[:, 0]) / mesh.volume
    equation = Equation(None, [Advection(mesh, pull, nonnegative=True), Diffusion(mesh, noise, nonnegative=True)])
    state = evolve(State(0.0, start.copy()), equation, "ssprk3", 1.0)
    first, last = (np.linalg.norm((values * mesh.volumes) @ x) for values in (start, state.values))
    expected = (d - 1) * (coupling / d - noise)
    assert np.log(last / first) == pytest.approx(expected, rel=2e-3)  # h² of the coarsest mesh


@by_manifold
def test_cells_without_mass_do_not_rule_the_time_step(mesh):
    velocity = rotation(mesh)
    velocity[: mesh.cells // 2] *= 1e6
    density = np.where(np.arange(mesh.cells) < mesh.cells // 2, 1e-12, 1.0)
    density[: mesh.cells // 2 + 5] = 1e-12
    stable = Advection(mesh, lambda t, u: velocity, (0.0, 0.0), nonnegative=True).prepare(0.0, density)
    assert stable > 0.1 * mesh.width, f"{stable:.1e}"  # the width of a cell over the speed 1 of the occupied cells


@by_manifold
@pytest.mark.parametrize("thin", [0.5, 1e-3, 1e-7])
def test_thin_cells_rule_the_time_step(mesh, thin):
    """Cells above 1e-8 of the mean density bound the step: a thousandfold speed shortens the step as much."""
    slow, fast = rotation(mesh), rotation(mesh)
    fast[: mesh.cells // 2] *= 1e3
    density = np.where(np.arange(mesh.cells) < mesh.cells // 2, thin, 1.0)
    steps = [
        Advection(mesh, lambda t, u, velocity=velocity: velocity, (0.0, 0.0), nonnegative=True).prepare(0.0, density)
        for velocity in (slow, fast)
    ]
    assert steps[1] < 2e-3 * steps[0]


@pytest.mark.parametrize("mesh", [circle(64), sphere(16)], ids=lambda mesh: mesh.manifold)
def test_the_unit_of_mass_does_not_matter(mesh):
    """Scaling a density by 2⁻⁴⁰ or 2⁴⁰ scales its rates and leaves its time steps unchanged."""
    density = initial_perturbed(mesh, 1.0, 4, 0)
    velocity = random_velocity(mesh)
    found = []
    for unit in (1.0, 2.0**-40, 2.0**40):
        advection = Advection(mesh, lambda time, values: velocity, nonnegative=True)
        rate = np.zeros(mesh.cells)
        dt = advection.prepare(0.0, unit * density)
        advection.rate(0.5 * dt, rate)
        found.append((dt, rate / unit))
    for dt, rate in found[1:]:
        assert dt == pytest.approx(found[0][0], rel=1e-14)
        np.testing.assert_allclose(rate, found[0][1], rtol=0, atol=1e-14 * np.abs(found[0][1]).max())
