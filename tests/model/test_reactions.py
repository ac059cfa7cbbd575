"""Local reactions and the feed-forward network, compared with exact solutions."""

import numpy as np
import pytest
from scipy.special import erf

from meanfield.domains.sphere.initial import initial_perturbed, initial_uniform
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.feed_forward import FeedForward, feed_forward_random
from meanfield.model.heads import Head
from meanfield.model.reactions import fitness_quadratic, reaction_linear, reaction_logistic, reaction_replicator
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

MESH = sphere(16)
STILL = Velocity(Attention(MESH, 0.0, heads=[Head(value=0.0)]))


def run(density, reaction, end=1.5, cfl=0.05):
    """Return the density at ``end``; cfl 0.05 keeps the Runge–Kutta error small, since exact solutions are of the
    reaction."""
    state = State(0.0, density.copy())
    evolve(state, mean_field_equation(MESH, STILL, reaction=reaction), STEPPERS["ssprk3"], end, cfl=cfl, rtol=None)
    return state.values


def test_linear():
    density = initial_perturbed(MESH, 0.5, 4)
    np.testing.assert_allclose(run(density, reaction_linear(-0.7)), density * np.exp(-0.7 * 1.5), rtol=1e-5)


def test_logistic():
    density = initial_perturbed(MESH, 0.5, 4)
    most, growth = 2.0 / MESH.volume, np.exp(0.8 * 1.5)
    exact = most * density * growth / (most + density * (growth - 1))
    np.testing.assert_allclose(run(density, reaction_logistic(MESH, 0.8, 2.0)), exact, rtol=1e-5)


@pytest.mark.parametrize("rate", [5.0, -5.0])
def test_linear_by_the_usual_step(rate):
    """The reaction alone bounds the step: at cfl = ½ ten steps an e-folding, e^{rate t} to (0.1)³/24 |rate| t =
    2e-4."""
    found = run(initial_uniform(MESH), reaction_linear(rate), 1.0, cfl=0.5)
    assert found @ MESH.volumes == pytest.approx(np.exp(rate), rel=3e-4)


def test_fast_logistic_growth_comes_to_rest():
    """g vanishes at the capacity, but deviations decay at the rate, which bounds the step."""
    found = run(initial_perturbed(MESH, 0.5, 4), reaction_logistic(MESH, 100.0, 2.0), 1.0, cfl=0.5)
    np.testing.assert_allclose(found, 2.0 / MESH.volume, rtol=1e-12)


def test_replicator_keeps_the_mass_and_selects():
    density = initial_perturbed(MESH, 0.5, 4)
    fitness = fitness_quadratic(MESH, np.array([0.0, 0.0, 1.0]), np.diag([0.5, -0.5, 0.0]))
    exact = density * np.exp(2.0 * 1.5 * fitness)
    exact /= exact @ MESH.volumes
    found = run(density, reaction_replicator(MESH, 2.0, fitness))
    np.testing.assert_allclose(found, exact, rtol=1e-4)
    assert found @ MESH.volumes == pytest.approx(1.0, abs=1e-12)


def test_uniform_stays_uniform_while_it_grows():
    """Attention at β = 9 would amplify the effect of a changing mass: the subtracted mean follows the mass."""
    mesh = circle(128)
    state = State(0.0, initial_uniform(mesh))
    equation = mean_field_equation(mesh, Velocity(Attention(mesh, 9.0)), reaction=reaction_linear(0.3))
    evolve(state, equation, STEPPERS["ssprk3"], 5.0, rtol=None)
    assert np.ptp(state.values) <= 1e-10 * state.values.mean()
    assert state.values @ mesh.volumes == pytest.approx(np.exp(1.5), rel=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_network_is_what_its_formula_says(activation):
    network = feed_forward_random(3, 7, activation, strength=0.5, seed=3)
    x = MESH.centers[5]
    inner = network.inner @ x + network.bias
    sigma = {"relu": np.maximum(inner, 0), "gelu": inner * (1 + erf(inner / np.sqrt(2))) / 2, "tanh": np.tanh(inner)}
    np.testing.assert_allclose(network(MESH.centers)[5], network.outer @ sigma[activation], rtol=1e-13)


def test_network_moves_tokens_along_the_sphere():
    """F(x) = e_z relu(1) everywhere: P_x e_z is the conformal flow ż = 1 − z² along the axis."""
    network = FeedForward(np.zeros((1, 3)), np.ones(1), np.array([[0.0], [0.0], [1.0]]))
    velocity = Velocity(Attention(MESH, 0.0, heads=[Head(value=0.0)]), feed_forward=network)
    z = MESH.centers[:, 2]
    expected = np.array([0, 0, 1]) - z[:, None] * MESH.centers
    np.testing.assert_allclose(velocity(0.0, initial_uniform(MESH)), expected, atol=1e-15)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"bias = \(3,\): expected shape \(4,\)"):
        FeedForward(np.zeros((4, 3)), np.zeros(3), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="activation = 'sigmoid'"):
        FeedForward(np.zeros((4, 3)), np.zeros(4), np.zeros((3, 4)), "sigmoid")
