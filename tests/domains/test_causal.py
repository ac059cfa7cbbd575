"""The causal mask, compared with causal particles."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield.domains.sphere.causal import CausalVelocity, causal_equation
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.domains.sphere.initial import initial_perturbed, initial_points
from meanfield.equation import Velocity
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS


def turned(angle, d):
    return np.array([np.cos(angle), np.sin(angle), 0.0][:d])


def causal_tokens(places, beta, end):
    """Return the final positions of tokens in a row by ẋ_k = P Σ_{j≤k} softmax_j(β⟨x_k, x_j⟩) x_j."""

    def rate(time, flat):
        x = flat.reshape(places.shape)
        weights = np.tril(np.exp(beta * x @ x.T))
        mean = weights @ x / weights.sum(axis=1)[:, None]
        return (mean - (mean * x).sum(axis=1)[:, None] * x).reshape(-1)

    return solve_ivp(rate, (0, end), places.reshape(-1), rtol=1e-10, atol=1e-12).y[:, -1].reshape(places.shape)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_velocity_sees_labels_up_to_its_own(normalization):
    mesh, labels = sphere(24), 3
    densities = np.array([initial_perturbed(mesh, 0.8, 4, seed) for seed in range(labels)]) / labels
    velocity = Velocity(Attention(mesh, 4.0, normalization))
    found = CausalVelocity(velocity, labels)(0.0, densities).reshape(labels, mesh.cells, 3)
    for k in range(labels):
        seen = densities[: k + 1].sum(axis=0)
        # A uniform density of mass 1 − (k + 1)/labels moves nothing, so that it may replace the hidden labels.
        np.testing.assert_allclose(found[k], velocity(0.0, seen), atol=1e-12 * np.abs(found).max())


@pytest.mark.parametrize("build", [lambda: circle(256), lambda: sphere(48)], ids=["circle", "sphere"])
def test_first_label_is_frozen_and_the_rest_come_to_it(build):
    """V = I, one token a label: label 1 stays, label k approaches at the rate 1 − 1/k, the whole at ½ (2411.04990)."""
    mesh, labels = build(), 4
    d = mesh.centers.shape[1]
    places = [turned(angle, d) for angle in (0.3, 0.9, -0.5, 1.4)]
    start = np.array([initial_points(mesh, [place]) for place in places]) / labels
    equation = causal_equation(mesh, Velocity(Attention(mesh, 1.0)), labels)
    state = State(0.0, start.reshape(-1))

    def angles():
        means = (state.values.reshape(labels, -1) * mesh.volumes * labels) @ mesh.centers
        return np.array([np.arccos(np.clip(m @ places[0] / np.linalg.norm(m), -1, 1)) for m in means])

    evolve(state, equation, STEPPERS["ssprk3"], 3.0, rtol=None)
    early = angles()
    evolve(state, equation, STEPPERS["ssprk3"], 6.0, rtol=None)
    late = angles()
    # A point between cells is split over them, and the parts merge: their center stays to second order.
    assert late[0] <= 1e-3 * mesh.width
    # Label 2 attends to label 1 and itself only; for small angles angle' = −angle/2, independent of β.
    assert np.log(early[1] / late[1]) / 3.0 == pytest.approx(0.5, rel=0.01)
    expected = causal_tokens(np.array(places), 1.0, 6.0)
    means = (state.values.reshape(labels, -1) * mesh.volumes * labels) @ mesh.centers
    directions = means / np.linalg.norm(means, axis=1)[:, None]
    assert np.linalg.norm(directions - expected, axis=1).max() <= 0.01  # relative to a path of about 1 radian


def test_speed_is_that_of_labels_as_they_see():
    """Two labels, one token each: the first rests, the second moves as a particle; without a mask both would move."""
    mesh, places = circle(512), [turned(0.3, 2), turned(1.3, 2)]
    density = np.concatenate([initial_points(mesh, [place]) for place in places]) / 2
    velocity = Velocity(Attention(mesh, 1.0))
    found = diagnostics_round(("speed", "label_centroid"), mesh, velocity, labels=2)(0.0, density)
    weight = np.exp(np.cos(1.0)) / (np.exp(np.cos(1.0)) + np.e)
    assert found["speed"] == pytest.approx(weight * np.sin(1.0) / np.sqrt(2), rel=1e-3)  # points lie between cells
    np.testing.assert_allclose(found["label_centroid"], places, atol=1e-4)
