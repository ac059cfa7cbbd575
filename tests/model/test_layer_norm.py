"""Layer norms for densities as for tokens: rings of latitude and pairs, and CoD as post in another time."""

import numpy as np
import pytest
from scipy import special
from support.exact_flow import flow

from meanfield.domains.free_radius.attention import ShellAttention, output_at_directions
from meanfield.domains.free_radius.equation import FreeRadius, free_radius_equation, radial_mesh
from meanfield.domains.free_radius.initial import initial_at_radius
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import initial_points, initial_von_mises_fisher
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.layer_norm import LayerNorm
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

FIXED = [LayerNorm("post"), LayerNorm("ngpt", alpha=0.7), LayerNorm("cod")]
CARRIED = [LayerNorm("pre"), LayerNorm("peri"), LayerNorm("mix", switch=0.5)]


def name(norm):
    return norm.name


def equation_on(mesh, norm, beta):
    """Return the mean-field equation of a layer norm that keeps the radius."""
    return mean_field_equation(mesh, Velocity(Attention(mesh, beta, include_radial=norm.sees_size), norm))


def run(equation, values, *times, cfl=0.5):
    state = State(0.0, values.copy())
    for time in times:
        evolve(state, equation, STEPPERS["ssprk3"], time, cfl=cfl, rtol=None)
    return state.values


def ring(theta, count):
    """Return equally spaced tokens (count, 3) on the ring of latitude at polar angle θ."""
    phi = (np.arange(count) + 0.5) * 2 * np.pi / count
    return np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.full(count, np.cos(theta))], axis=1)


def ring_law(norm, beta, start, end):
    """Return polar angle and radius at ``end`` of 64 tokens on a ring, equivalent to a ring: I₆₄(β)/I₀(β) is
    rounding."""
    directions, radii = flow(ParticleVelocity(beta, norm=norm), ring(start, 64), np.ones(64), np.array([0.0, end]))
    return np.arccos(directions[-1, :, 2]).mean(), radii[-1].mean()


@pytest.mark.parametrize("norm", FIXED, ids=name)
def test_a_ring_of_latitude(norm):
    beta, start, end, mesh = 3.0, 1.0, 2.0, sphere(96)
    polar = mesh.volumes * np.arccos(mesh.centers[:, 2])
    before = initial_points(mesh, ring(start, 768))
    moved = (run(equation_on(mesh, norm, beta), before, end) - before) @ polar
    expected = ring_law(norm, beta, start, end)[0] - start
    assert abs(expected) > 0.1
    assert moved == pytest.approx(expected, rel=0.01)  # a ring some cells wide; 1.2 % at 64 rings


def test_the_law_of_a_ring_is_the_formula():
    """θ̇ = −sin θ cos θ (1 − I₁(b)/I₀(b)), b = β sin² θ: the initial rate of the reference of the tests above."""
    beta, theta, step = 3.0, 1.0, 1e-4
    moved = ring_law(LayerNorm("post"), beta, theta, step)[0] - theta
    b = beta * np.sin(theta) ** 2
    expected = -np.sin(theta) * np.cos(theta) * (1 - special.ive(1, b) / special.ive(0, b))
    assert moved / step == pytest.approx(expected, rel=1e-3)  # of first order in the step


@pytest.mark.sampled(1)
@pytest.mark.parametrize("norm", CARRIED, ids=name)
def test_a_ring_of_latitude_with_a_radius(norm):
    beta, start, end = 3.0, 1.0, 1.0
    space = FreeRadius(sphere(96), radial_mesh(0.8, 2.5, 10, 0.8))
    polar = space.directions.volumes * np.arccos(space.directions.centers[:, 2])
    before = initial_at_radius(space, initial_points(space.directions, ring(start, 768)), 1.0)
    attention = output_at_directions(space, ShellAttention(space.directions, beta))
    after = run(free_radius_equation(space, norm, attention), before, 0.5, end)  # steps end at the switch of mix
    theta, radius = ring_law(norm, beta, start, end)
    moved = (space.on_directions(after) - space.on_directions(before)) @ polar
    # Point masses move in log r.
    found = np.exp(space.on_radii(after) * space.radial.volumes @ space.radial.centers[:, 0])
    assert abs(theta - start) > 0.1
    assert moved == pytest.approx(theta - start, rel=0.01)  # 1.6 % at 64 rings
    assert found == pytest.approx(radius, rel=0.01)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("norm", FIXED, ids=name)
def test_a_pair_on_the_sphere(norm):
    """Two tokens 2 rad apart on a tilted great circle, two thirds of the mass in one: both positions, after t = 2."""
    beta, end, mesh, masses = 1.0, 2.0, sphere(128), np.array([2.0, 1.0]) / 3
    points = np.array([[0.520106754611884, -0.4302603430441815, 0.7378109520809493],
                       [-0.19592537109100025, 0.9705626489123212, 0.14007638451627735]])  # fmt: skip
    law = ParticleVelocity(beta, masses=masses, norm=norm)
    places = flow(law, points, np.ones(2), np.array([0.0, end]))[0][-1]
    density = run(equation_on(mesh, norm, beta), initial_points(mesh, points, masses.tolist()), end)
    side = np.sign(mesh.centers @ (points[0] - points[1]))
    found = np.array([(density * mesh.volumes * (side == s)) @ mesh.centers for s in (1, -1)])
    found /= np.linalg.norm(found, axis=1)[:, None]
    paths = np.linalg.norm(places - points, axis=1)
    assert paths.min() > 0.2
    # Half a per cent at 128 rings, see the tests of merging times; the longer path is the scale of both.
    assert np.linalg.norm(found - places, axis=1).max() < 0.01 * paths.max()


@pytest.mark.parametrize(("mesh", "cfl", "tolerance"), [
    (circle(64), 0.02, 1e-8),  # third order in the step: 2.8e-9 here, 8e-6 at the usual cfl of 0.5
    (sphere(16), 0.05, 1e-6),  # limited slopes are no smooth functions of time: 3e-7, falling more slowly
], ids=["circle", "sphere"])  # fmt: skip
def test_cod_is_post_by_another_clock(mesh, cfl, tolerance):
    """θ̇ = P A/√(t + 1) is post in time τ = 2(√(t + 1) − 1), cell for cell, up to temporal errors."""
    bumps = np.eye(mesh.centers.shape[1])[:2]
    start, end = initial_von_mises_fisher(mesh, bumps, [2.0, 1.0], [0.6, 0.4]), 3.0
    cod = run(equation_on(mesh, LayerNorm("cod"), 2.0), start, end, cfl=cfl)
    post = run(equation_on(mesh, LayerNorm("post"), 2.0), start, 2 * (np.sqrt(end + 1) - 1), cfl=cfl)
    assert np.abs(post - start).max() > 0.1 * post.max()
    assert np.abs(cod - post).max() < tolerance * post.max()


@pytest.mark.parametrize("norm", [LayerNorm("ngpt", alpha=0.7), LayerNorm("peri")], ids=name)
def test_sizes_whose_squares_vanish_are_sizes(norm):
    """θ̇ = α P A/|A| and P A/|A| at r = 1 are no larger where |A| is 1e-200."""
    direction, output = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 4.0], [1.0, 0.0]])
    plain, small = (norm.angular_velocity(0.0, np.ones(2), direction, scale * output) for scale in (1.0, 1e-200))
    np.testing.assert_allclose(small, plain, rtol=1e-14)
