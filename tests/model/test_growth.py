"""Small perturbations of the uniform density: growth and decay at the rates of linear theory."""

from functools import cache

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere.initial import initial_harmonic, initial_uniform
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

BETA = 5.0
AMPLITUDE = 1e-6  # quadratic terms are then 1e-6 of the linear ones, rounding 1e-9
mesh_circle, mesh_sphere = cache(circle), cache(sphere)


@cache
def attention(mesh, normalization):
    return Attention(mesh, BETA, normalization)


def growth_error(mesh, degree, order, normalization, noise, steps_of_growth=0.5):
    """Return the measured minus the exact rate, the exact rate, and attraction's part of the exact rate."""
    dimension = mesh.centers.shape[1]
    attraction = exact.growth_rate(dimension, BETA, degree, normalization)
    rate = exact.growth_rate(dimension, BETA, degree, normalization, noise)
    density = initial_harmonic(mesh, degree, order, AMPLITUDE)
    test = (density - 1 / mesh.volume) * mesh.volumes
    before, until = test @ (density - 1 / mesh.volume), steps_of_growth / attraction
    state = State(0.0, density.copy())
    evolve(
        state,
        mean_field_equation(mesh, Velocity(attention(mesh, normalization)), noise),
        STEPPERS["ssprk3"],
        until,
        rtol=None,
    )
    found = np.log(test @ (state.values - 1 / mesh.volume) / before) / until
    return found - rate, rate, attraction


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_growth_on_the_circle(degree, normalization, noise):
    error, rate, _ = growth_error(mesh_circle(256), degree, 0, normalization, noise)
    assert abs(error / rate) < 1e-3, f"rate {rate:.5f} off by {100 * error / rate:.4f} %"


@pytest.mark.sampled
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(
    ("degree", "order"),
    [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, -1), (3, 3), (4, 0), (4, 1), (4, 4)],
)
def test_growth_on_the_sphere(degree, order, normalization, noise):
    error, rate, attraction = growth_error(mesh_sphere(128), degree, order, normalization, noise)
    # Where attraction and diffusion nearly cancel (0.624 − 0.600, 0.511 − 0.400), a quarter of the former is the scale.
    size = max(abs(rate), 0.25 * attraction)
    assert abs(error / size) < 5e-3, f"rate {rate:.5f} off by {error:.2e}, {100 * error / size:.4f} %"


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(
    ("build", "sizes", "reach"), [(mesh_circle, (16, 24, 32), 3.5), (mesh_sphere, (32, 64, 128), 1.8)]
)
def test_order_of_growth(build, sizes, reach, noise):
    """The order is two on rings, four on the circle, until the time step's error dominates."""
    for degree in (2, 3):
        errors = [abs(growth_error(build(size), degree, 0, "softmax", noise)[0]) for size in sizes]
        observed = exact.orders(
            errors[::2], sizes[::2]
        )  # over both refinements, since the rings where counts change vary
        assert observed[0] > reach, f"degree {degree}: order {observed[0]:.2f}, errors {errors}"


@pytest.mark.parametrize(
    ("normalization", "rescaled", "until"),
    [("softmax", False, 10.0), ("unnormalized", True, 10.0), ("unnormalized", False, 0.1)],
)
@pytest.mark.parametrize("mesh", [circle(256), sphere(48)], ids=lambda mesh: mesh.manifold)
def test_a_uniform_density_stays(mesh, normalization, rescaled, until):
    """β = 9 to the last bit: an error ε of the velocity would grow to ε e⁷, unnormalized without bound."""
    state = State(0.0, initial_uniform(mesh))
    law = Velocity(Attention(mesh, 9.0, normalization, rescaled=rescaled))
    evolve(state, mean_field_equation(mesh, law), STEPPERS["ssprk3"], until, rtol=None)
    assert np.array_equal(state.values, initial_uniform(mesh))


def test_a_uniform_density_stays_with_noise():
    mesh = mesh_sphere(24)
    state = State(0.0, initial_uniform(mesh))
    evolve(state, mean_field_equation(mesh, Velocity(Attention(mesh, 9.0)), 0.05), STEPPERS["ssprk3"], 10.0, rtol=None)
    assert np.array_equal(state.values, initial_uniform(mesh))
