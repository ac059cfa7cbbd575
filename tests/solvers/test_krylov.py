"""φ₁ of a matrix times a vector in its Krylov space: comparison with eigenvalues, and the error estimate."""

import numpy as np
import pytest

from solvers import Diffusion, Equation, interval, solve
from solvers.timestepping.runge_kutta.exponential import MAX_DIMENSION, phi1_times

CELLS = 200
MATRIX = np.diag(np.full(CELLS, -2.0)) + np.diag(np.ones(CELLS - 1), 1) + np.diag(np.ones(CELLS - 1), -1)
VALUES, VECTORS = np.linalg.eigh(MATRIX)
FEW = [0, 100, 199]
VECTOR = np.random.default_rng(0).standard_normal(CELLS)


def exact(dt):
    return VECTORS @ (np.expm1(dt * VALUES) / VALUES * (VECTORS.T @ VECTOR))


@pytest.mark.parametrize("dt", [100.0, 300.0, 1000.0])
def test_the_estimate_is_of_the_size_of_the_error(dt):
    """The loss of a space of 60 vectors, for a spectrum of 4 dt, is estimated from above, by less than 20 times."""
    found, lost = phi1_times(lambda vector: MATRIX @ vector, VECTOR, dt)
    error, estimate = np.linalg.norm(found - exact(dt)), np.linalg.norm(lost)
    assert error < estimate < 20 * error, f"estimate {estimate:.1e} of {error:.1e}"


def test_a_space_that_holds_the_answer_loses_nothing():
    """Few eigenvectors need as many products, and small steps fewer than all."""
    products = []

    def matrix(vector):
        products.append(vector)
        return MATRIX @ vector

    vector = VECTORS[:, FEW] @ np.array([1.0, 2.0, 3.0])
    found, lost = phi1_times(matrix, vector, 1.0)
    assert len(products) <= 4
    expected = VECTORS[:, FEW] @ (np.expm1(VALUES[FEW]) / VALUES[FEW] * np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert np.linalg.norm(lost) < 1e-11
    products.clear()
    found, _ = phi1_times(matrix, VECTOR, 10.0)
    np.testing.assert_allclose(found, exact(10.0), atol=1e-12)
    assert len(products) == MAX_DIMENSION


def test_a_small_rest_outside_a_small_space_is_kept():
    """The vector is three eigenvectors and a millionth of a full one: the space ends only at rounding."""
    vector = VECTORS[:, FEW] @ np.array([1.0, 2.0, 3.0]) + 1e-6 * VECTOR
    expected = VECTORS @ (np.expm1(VALUES) / VALUES * (VECTORS.T @ vector))
    np.testing.assert_allclose(phi1_times(lambda v: MATRIX @ v, vector, 1.0)[0], expected, atol=1e-13)


def test_steps_follow_what_the_space_loses():
    """Heat from a jump on fine cells is linear, so that the Krylov space is the only source of error."""
    mesh = interval(0.0, 1.0, CELLS)
    term = Diffusion(mesh, 1 + mesh.centers[:, 0])  # waves are no eigenvectors
    start = np.where(mesh.centers[:, 0] < 0.3, 1.0, 0.0)
    found = solve(Equation(mesh, [term]), start, (0.0, 0.02), method="exponential", times=[0.02])
    matrix = term.jacobian(1)[0].toarray()
    values, vectors = np.linalg.eigh(matrix)
    expected = vectors @ (np.exp(0.02 * values) * (vectors.T @ start))
    assert np.abs(found.u[-1] - expected).max() < 1e-4  # rtol
