"""Diffusion: rates of its modes, decay in time, mass and positivity at any step, equilibrium with attraction."""

import numpy as np
import pytest
from scipy import special
from support import exact

from meanfield.domains.sphere.initial import initial_harmonic, initial_points, initial_uniform, initial_von_mises_fisher
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.interval import from_edges, line
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion, clip_to_zero
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.terms.operators import FaceOperator
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

MODES = [(2, 0), (2, 1), (2, -1), (2, 2), (2, -2), (3, 2), (4, 4)]


def eigenvalue(mesh, degree, order):
    """Return ⟨u, Δu⟩/⟨u, u⟩ of one harmonic."""
    values = initial_harmonic(mesh, degree, order, 0.1) - 1 / mesh.volume
    rate = np.empty(mesh.cells)
    Diffusion(mesh, 1.0, nonnegative=True).laplacian(values, rate)
    masses = values * mesh.volumes
    return (masses @ rate) / (masses @ values)


@pytest.mark.parametrize(("degree", "order"), MODES)
def test_modes_on_the_sphere_are_second_order(degree, order):
    sizes = (32, 64, 128)
    errors = [abs(eigenvalue(sphere(n), degree, order) / (degree * (degree + 1)) + 1) for n in sizes]
    observed = exact.orders(errors, sizes)
    assert observed.min() > 1.9, f"orders {observed}, errors {errors}"
    assert errors[-1] < degree**2 * 6e-5, f"relative error {errors[-1]:.1e} at 128 rings"  # (l h)²/10


@pytest.mark.parametrize("rings", [4, 5, 13, 48, 97])
def test_coordinates_of_centers_are_eigenvectors_on_the_sphere(rings):
    """Δx = −2x holds in every cell, in all directions, with conductances > 0: noise prefers no direction."""
    mesh = sphere(rings)
    operator = FaceOperator(mesh, 1.0)
    assert operator.conductances.min() > 0.4
    for direction in (*np.eye(3), np.array([0.36, 0.48, 0.8])):
        values, rate = mesh.centers @ direction, np.empty(mesh.cells)
        operator.apply(values, rate)
        # Rounding of rates 1/h²; of their sums, 1/h⁴, in cells next to the poles.
        np.testing.assert_allclose(rate, -2 * values, rtol=0, atol=1e-16 * rings**2 * (10 + rings**2))


def test_the_center_of_mass_decays_in_all_directions_alike():
    """The decay is e^{−2t} to the temporal error of 20 steps, (2 dt)³/6 each at most, of a density of all degrees
    near a pole."""
    mesh, t = sphere(48), 0.1
    density = initial_von_mises_fisher(mesh, [[0.3, 0.2, 0.93]], [8.0], [1.0])
    diffusion = Diffusion(mesh, 1.0, nonnegative=True)
    before = (density * mesh.volumes) @ mesh.centers
    for _ in range(20):
        diffusion.step(t / 20, density)
    after = (density * mesh.volumes) @ mesh.centers
    np.testing.assert_allclose(after / before, np.exp(-2 * t), rtol=3.4e-6)
    assert np.ptp(after / before) < 1e-12


def test_heat_on_the_sphere_is_second_order_in_every_cell():
    """The density has all orders of degrees 1 to 6, also next to the poles and where rings of N and 2N cells meet."""
    weights = np.random.default_rng(1).standard_normal((7, 13)) * 0.1

    def density(mesh, t):
        modes = [
            weights[degree, order] * np.exp(-degree * (degree + 1) * t)
            * (mesh.volume * initial_harmonic(mesh, degree, order, 0.1) - 1)
            for degree in range(1, 7)
            for order in range(-degree, degree + 1)
        ]  # fmt: skip
        return 4.0 + np.sum(modes, axis=0)

    sizes, errors, t = (24, 48, 96), [], 0.05
    for size in sizes:
        mesh = sphere(size)
        values, diffusion = density(mesh, 0.0), Diffusion(mesh, 1.0, nonnegative=True)
        for _ in range(100):
            diffusion.step(t / 100, values)
        expected = density(mesh, t)
        errors.append(np.abs(values - expected).max() / np.abs(expected - 4.0).max())
    observed = exact.orders(errors, sizes)
    assert observed.min() > 1.85, f"orders {observed}, errors {errors}"


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_modes_on_the_circle_are_fourth_order(degree):
    """The limiter acts next to extrema of a coarse mode only; a smooth mode has fluxes of fourth order."""
    sizes = (32, 64, 128)
    errors = [abs(eigenvalue(circle(n), degree, 0) / degree**2 + 1) for n in sizes]
    observed = exact.orders(errors, sizes)
    assert observed.min() > 3.8, f"orders {observed}, errors {errors}"


@pytest.mark.parametrize(
    ("mesh", "degree", "order", "reach"),
    [
        (circle(128), 1, 0, 1e-4),
        (circle(128), 3, 0, 1e-4),
        (sphere(64), 1, 0, 1e-3),
        (sphere(64), 3, -2, 5e-3),
    ],
    ids=["circle-1", "circle-3", "sphere-1", "sphere-3"],
)
def test_a_mode_decays_as_the_heat_kernel(mesh, degree, order, reach):
    """The factor is e^{−κ l(l+d−2) t}, over one e-folding in 50 steps, to (1/50)²/6 in time and the eigenvalue's
    error."""
    noise, steps, rate = 0.7, 50, degree * (degree + mesh.dimension - 1)
    density = initial_harmonic(mesh, degree, order, 0.1)
    departure = (density - 1 / mesh.volume) * mesh.volumes
    diffusion = Diffusion(mesh, noise, nonnegative=True)
    before = departure @ density
    for _ in range(steps):
        diffusion.step(1 / (noise * rate * steps), density)
    error = abs(np.log(departure @ density / before) + 1)
    assert error < reach, f"relative error of the rate {error:.1e}"


def test_super_time_stepping_is_second_order():
    """The reference uses tiny steps on the same mesh, so that the error in space cancels."""
    mesh = sphere(24)

    def solve(steps):
        density = initial_von_mises_fisher(mesh, [[0.6, 0.0, 0.8]], [5.0], [1.0])
        diffusion = Diffusion(mesh, 1.0, nonnegative=True)
        for _ in range(steps):
            diffusion.step(0.2 / steps, density)
        return density

    fine = solve(1024)
    errors = [np.abs(solve(steps) - fine) @ mesh.volumes for steps in (4, 32)]
    # The order is measured over the whole range, within which the number of stages and the error constant jump.
    observed = exact.orders(errors, (4, 32))
    assert observed[0] > 1.8, f"order {observed[0]:.2f}, errors {errors}"


@pytest.mark.parametrize("steps", [0.3, 10.0, 1000.0])  # in units of the explicit limit
@pytest.mark.parametrize("mesh", [circle(256), sphere(48)], ids=lambda mesh: mesh.manifold)
def test_a_dirac_spreads_without_loss_or_undershoot(mesh, steps):
    start = np.zeros(mesh.centers.shape[1])
    start[0] = 1.0
    density = initial_points(mesh, [start.tolist()])
    center = (density * mesh.volumes) @ mesh.centers
    diffusion = Diffusion(mesh, 1.0, nonnegative=True)
    dt = steps * diffusion._explicit_dt
    for _ in range(5):
        diffusion.step(dt, density)
    assert density.min() >= 0
    assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    decay = ((density * mesh.volumes) @ mesh.centers) @ center / (center @ center)
    expected = np.exp(-mesh.dimension * 5 * dt)
    # A point mass in one cell would undershoot at first; limiting its fluxes costs some of its center of mass.
    assert decay == pytest.approx(expected, rel=0.02, abs=5e-3), f"{decay:.4f} for {expected:.4f}"


def test_negative_values_become_zero_and_the_mass_is_kept():
    """∫u = 8 of −1, 2, 5 in volumes 1, 2, 1; the clipped integral is 9, so that the rest is scaled by 8/9."""
    mesh = from_edges([0.0, 1.0, 3.0, 4.0])
    values = np.array([-1.0, 2.0, 5.0])
    clip_to_zero(mesh, values)
    np.testing.assert_allclose(values, [0.0, 16 / 9, 40 / 9], rtol=1e-15)
    before = values.copy()
    clip_to_zero(mesh, values)
    assert values.tobytes() == before.tobytes()
    nothing = np.array([-1.0, 0.0, 0.0])
    clip_to_zero(mesh, nothing)
    assert nothing.tolist() == [0.0, 0.0, 0.0]


def test_a_limiter_that_is_not_done_leaves_no_undershoot():
    """All undershoots are clipped without any round of the limiter: positivity and mass do not depend on its
    convergence."""
    mesh = circle(64)
    density = np.where(np.arange(64) == 5, 1 / mesh.volumes, 0.0)
    diffusion = Diffusion(mesh, 1.0, nonnegative=True, limiter_rounds=0)
    assert diffusion.step(10 * diffusion._explicit_dt, density) < 0
    assert density.min() == 0
    assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-14)


def test_a_tensor_keeps_a_density_nonnegative_and_its_mass():
    """Two-point fluxes of a strongly anisotropic tensor undershoot by far for a point mass, and clipping adds no
    mass."""
    mesh = box((32, 32), (1.0, 1.0))
    density = np.where(np.arange(mesh.cells) == 500, 1 / mesh.volumes, 0.0)
    diffusion = Diffusion(mesh, np.array([[1.0, 0.95], [0.95, 1.0]]), nonnegative=True)
    for _ in range(3):
        assert diffusion.step(20 * diffusion._explicit_dt, density) < 0
        assert density.min() == 0
        assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_does_not_wipe_out_a_point_in_a_run(noise):
    """The center of mass decays at most as by diffusion alone, e^{−2κt}, at the time steps of a run."""
    mesh = sphere(64)
    state = State(0.0, initial_points(mesh, [[0.6, 0.0, 0.8]]))
    evolve(state, mean_field_equation(mesh, Velocity(Attention(mesh, 4.0)), noise), STEPPERS["ssprk3"], 0.05, rtol=None)
    length = np.linalg.norm((state.values * mesh.volumes) @ mesh.centers)
    # The point is shared by three cells at first, which takes some h²/4 of its center of mass.
    assert np.exp(-2 * noise * 0.05) - mesh.width**2 / 2 < length < 1, f"length {length:.5f}"


@pytest.mark.parametrize("mesh", [circle(100), sphere(33)], ids=lambda mesh: mesh.manifold)
def test_uniform_stays_to_the_last_bit(mesh):
    density = initial_uniform(mesh)
    diffusion = Diffusion(mesh, 0.3, nonnegative=True)
    for dt in (1e-3, 0.1, 10.0):
        diffusion.step(dt, density)
    assert np.array_equal(density, initial_uniform(mesh))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mesh", "noise", "axis", "until"),
    [(circle(256), 0.3, [0.6, -0.8], 25.0), (sphere(48), 0.2, [0.36, 0.48, 0.8], 20.0)],
    ids=["circle", "sphere"],
)
@pytest.mark.parametrize("start", [0.4, 30.0])
def test_noise_and_attraction_settle_on_von_mises_fisher(mesh, noise, axis, until, start):
    """The stationary density at β = 0 is e^{R⟨x,e⟩/κ}, R = I_{d/2}(R/κ)/I_{d/2−1}(R/κ), approached from either side."""
    density = initial_von_mises_fisher(mesh, [axis], [start], [1.0])
    state = State(0.0, density)
    evolve(
        state, mean_field_equation(mesh, Velocity(Attention(mesh, 0.0)), noise), STEPPERS["ssprk3"], until, rtol=None
    )
    mean = (state.values * mesh.volumes) @ mesh.centers
    expected = exact.stationary_resultant(mesh.dimension + 1, noise)
    error = abs(np.linalg.norm(mean) / expected - 1)
    assert error < 2e-3, f"R off by {100 * error:.3f} %"
    drift = np.linalg.norm(mean / np.linalg.norm(mean) - axis)
    assert drift < until * mesh.width**2, (
        f"its axis turned by {drift:.1e}"
    )  # rotation costs no energy: O(h²) per unit of time
    shape = initial_von_mises_fisher(mesh, [mean.tolist()], [expected / noise], [1.0])
    distance = np.abs(state.values - shape) @ mesh.volumes
    assert distance < 5e-3, f"L¹ distance {distance:.1e}"


@pytest.mark.parametrize("coefficient", [-0.1, float("nan")])
def test_a_coefficient_that_is_not_nonnegative_is_refused(coefficient):
    with pytest.raises(ValueError, match=rf"diffusion coefficient = {coefficient}: expected a number >= 0"):
        Diffusion(circle(8), coefficient, nonnegative=True)


@pytest.mark.parametrize(("mesh", "error"), [(circle(128), 1.5e-3), (sphere(64), 4e-3)], ids=["circle", "sphere"])
def test_a_point_spreads_as_the_heat_kernel_whatever_else_moves(mesh, error):
    """Nothing else limits a step, and a stage keeps half of the highest modes: a single step had errors of 0.7 to 1.1.

    The L¹ errors are 9e-4 and 3e-3; steps contribute some 8e-4, the cells the rest.
    """
    kappa, until, d = 0.2, 0.8, mesh.dimension + 1
    center = np.array([[0.6, 0.8], [0.36, 0.48, 0.8]][d - 2])
    still = Advection(mesh, lambda time, density: np.zeros_like(mesh.centers), nonnegative=True)
    equation = Equation(None, [still, Diffusion(mesh, kappa, nonnegative=True)])
    state = evolve(State(0.0, initial_points(mesh, [center])), equation, STEPPERS["ssprk3"], until, rtol=None)
    l, z = np.arange(1, 40)[:, None], mesh.centers @ center
    zonal = 2 * np.cos(l * np.arccos(z)) if d == 2 else (2 * l + 1) * special.eval_legendre(l, z)
    exact = (1 + (np.exp(-l * (l + d - 2) * kappa * until) * zonal).sum(axis=0)) / mesh.volume
    found = np.abs(state.values - exact) @ mesh.volumes
    assert found < error, f"L1 error {found:.1e}"
    assert state.steps < 30  # the step grows with the age of the spot


def test_a_flat_density_limits_no_step():
    mesh = sphere(16)
    assert Diffusion(mesh, 0.5, nonnegative=True).longest_step(np.full(mesh.cells, 1 / mesh.volume)) > 1e9


def test_a_point_on_the_line_spreads_while_it_is_drawn_back():
    """The variance of Ornstein and Uhlenbeck, v = −x, is κ(1 − e^{−2t}); a single step, from a resting point, gave
    85 % more."""
    mesh = line(200, 10.0, 5.0)
    x, kappa, until = mesh.centers[:, 0], 0.3, 0.8
    start = np.zeros(mesh.cells)
    start[99:101] = 1 / mesh.volumes[99:101].sum()  # on both sides of 0
    equation = Equation(
        None,
        [
            Advection(mesh, lambda time, p: -mesh.centers, nonnegative=True),
            IntervalDriftDiffusion(mesh, kappa, np.zeros(mesh.cells), nonnegative=True),
        ],
    )
    state = evolve(State(0.0, start), equation, STEPPERS["ssprk3"], until, rtol=None)
    variance = (state.values * mesh.volumes) @ x**2
    assert variance == pytest.approx(kappa * (1 - np.exp(-2 * until)), rel=0.01)  # 3e-3 from the cells
