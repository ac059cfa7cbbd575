"""Axisymmetric densities on S^{d−1}: sums by quadrature, growth, exact flow, the sphere's solver, collapse, noise."""

from functools import cache

import numpy as np
import pytest
import scipy.integrate
from scipy import special
from support import exact

from meanfield.case.load import parse
from meanfield.domains.axisymmetric import initial
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention, axisymmetric_equation
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.linear_stability import growth_rates
from meanfield.simulation import set_up
from solvers.mesh.interval import from_edges, polar
from solvers.mesh.mesh import sphere
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.timestepping.evolution import SplitIntegrator, evolve
from solvers.timestepping.integrate import fixed, integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms.bessel import log_bessel
from solvers.transforms.gegenbauer import gegenbauer
from solvers.transforms.polar import log_masses, uniform_distribution
from solvers.transforms.polar_kernel import PolarKernel

DEGREES = np.arange(40)  # more degrees than the fastest-growing one
mesh_polar = cache(polar)
NODES, GAUSS = np.polynomial.legendre.leggauss(400)
ANGLE = (NODES + 1) * np.pi / 2


@cache
def attention(mesh, dimension, beta, normalization="softmax", value=1.0):
    return AxisymmetricAttention(mesh, dimension, beta, normalization, value, rescaled=True)


def run(law, density, until, noise=0.0, **more):
    state = State(0.0, density.copy())
    return evolve(state, axisymmetric_equation(law, noise), STEPPERS["ssprk3"], until, rtol=None, **more)


def height(mesh, density):
    return (density * mesh.volumes) @ np.cos(mesh.centers[:, 0])


# --- velocity -------------------------------------------------------------------------------------------


def laws(mesh, dimension):
    cluster = np.zeros(mesh.cells)
    cluster[:2] = 0.5 / mesh.volumes[:2]
    yield "perturbed", initial.initial_perturbed(mesh, dimension, 0.3, 3, 1)
    yield "cap", initial.initial_von_mises_fisher(mesh, dimension, [2.0 * dimension], [1.0])
    yield "pole and bulk", 0.5 * cluster + 0.5 * uniform_distribution(mesh, dimension)
    yield "pole and a trace", (1 - 1e-6) * cluster + 1e-6 * uniform_distribution(mesh, dimension)
    yield "circles", initial.initial_points(mesh, [0.7, 1.9], [1.0, 2.0])


def dense_sums(mesh, dimension, beta, masses):
    """Return (3, cells) Z and both parts of ∫ y e^{β⟨x,y⟩} dμ, times e^{−|β|}, as means over angles φ on circles of
    latitude.

    y = cosθ′ e + sinθ′ (cosφ t + …), t the direction of x across e; φ has the density ∝ sin^{d−3} φ, on S¹ 0 or π.
    """
    theta = mesh.centers[:, 0]
    turns, odds = (np.array([1.0, -1.0]), np.ones(2)) if dimension == 2 else (np.cos(ANGLE), law_of(dimension - 1))
    sums = np.zeros((3, mesh.cells))
    for turn, weight in zip(turns, odds / odds.sum(), strict=True):
        along = np.outer(np.cos(theta), np.cos(theta)) + turn * np.outer(np.sin(theta), np.sin(theta))
        across = turn * np.outer(np.cos(theta), np.sin(theta)) - np.outer(np.sin(theta), np.cos(theta))
        kernel = weight * np.exp(beta * along - abs(beta)) * masses
        sums += [kernel.sum(axis=1), (kernel * along).sum(axis=1), (kernel * across).sum(axis=1)]
    return sums


@cache
def dense_sums_of_uniform(mesh, dimension, beta):
    """Return the sums (3, cells) of the uniform density."""
    return dense_sums(mesh, dimension, beta, uniform_distribution(mesh, dimension) * mesh.volumes)


def dense_attention(mesh, dimension, beta, density, normalization):
    """Return Z e^{−|β|} (cells,) and the output (2, cells), minus 1 − (2D)² times the same sums' error for a uniform
    density."""

    def normalized(sums):
        return sums[1:] / sums[0] if normalization == "softmax" else sums[1:]

    odds = law_of(dimension) / law_of(dimension).sum()
    kernel, ones = odds * np.exp(beta * np.cos(ANGLE) - abs(beta)), np.ones(mesh.cells)
    exact_sums = np.stack([kernel.sum() * ones, (kernel @ np.cos(ANGLE)) * ones, 0 * ones])
    masses, uniform = density * mesh.volumes, uniform_distribution(mesh, dimension) * mesh.volumes
    found, error = dense_sums(mesh, dimension, beta, masses), dense_sums_of_uniform(mesh, dimension, beta)
    share = max(0.0, 1 - np.abs(masses - uniform).sum() ** 2)
    output = normalized(found) - share * (normalized(error) - normalized(exact_sums))
    return found[0] - share * (error[0] - exact_sums[0]), output


def law_of(dimension):
    return GAUSS * np.exp((dimension - 2) * np.log(np.sin(ANGLE)))


by_beta = pytest.mark.parametrize("beta", [0.0, 1.0, 9.0, 100.0, -9.0])
by_dimension = pytest.mark.parametrize("dimension", [2, 3, 4, 64, 1024, 4096])


@pytest.mark.sampled
@by_beta
@by_dimension
def test_kernel_by_quadrature(dimension, beta):
    """The error of every sum at every latitude is relative to its own Z, however small: no cluster dominates the
    rounding."""
    mesh = polar(64, dimension)
    kernel = PolarKernel(mesh, dimension, beta)
    for name, density in laws(mesh, dimension):
        masses = density * mesh.volumes
        expected = dense_sums(mesh, dimension, beta, masses) * np.exp(abs(beta) - kernel.log_scale)
        found = np.stack([kernel.apply(masses)[0], kernel.radial(masses), kernel.apply(masses)[1]])
        error = np.abs(found - expected).max(axis=0) / expected[0]
        assert error.max() < 1e-11, f"{name}: {error.max():.1e}"


@pytest.mark.sampled
@by_beta
@by_dimension
def test_attention_by_quadrature(dimension, beta):
    """The error is mass-weighted, relative to the largest output."""
    mesh = polar(64, dimension)
    for value, normalization in ((1.0, "softmax"), (-0.5, "unnormalized")):
        law = attention(mesh, dimension, beta, normalization, value)
        for name, density in laws(mesh, dimension):
            normalizer, output = dense_attention(mesh, dimension, beta, density, normalization)
            masses, size = density * mesh.volumes, np.abs(output[:, density > 0]).max()
            found, velocity = law.normalizer_and_velocity(density)
            assert masses @ np.abs(velocity[:, 0] - value * output[1]) < 1e-11 * size, name
            assert masses @ np.abs(law.output(0.0, density) - value * output.T).max(axis=1) < 1e-11 * size, name
            assert masses @ np.abs(found - normalizer) < 1e-12 * normalizer.max(), name


@pytest.mark.parametrize("dimension", [2, 3, 64, 4096])
@pytest.mark.parametrize("beta", [4.0, 100.0, 1000.0, -100.0])
def test_velocity_is_finite_and_at_most_one(dimension, beta):
    mesh = mesh_polar(128, dimension)
    law = AxisymmetricAttention(mesh, dimension, beta)
    for name, density in laws(mesh, dimension):
        velocity = law.normalizer_and_velocity(density)[1]
        assert velocity.shape == (mesh.cells, 1)
        assert np.isfinite(velocity).all(), name
        assert np.abs(velocity).max() <= 1 + 1e-3  # up to the subtracted error, O(h²)
    assert np.abs(law.normalizer_and_velocity(initial.initial_uniform(mesh, dimension))[1]).max() < 1e-15


def test_too_many_cells_and_unknown_normalizations_are_refused():
    with pytest.raises(ValueError, match="5000 polar angles: expected at most 4096"):
        AxisymmetricAttention(polar(5000, 3), 3, 1.0)
    with pytest.raises(ValueError, match=r"normalization = 'softmx': expected one of softmax, unnormalized"):
        AxisymmetricAttention(mesh_polar(64, 3), 3, 1.0, "softmx")


# --- linear theory --------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("dimension", [2, 3, 64, 1024, 4096])
def test_a_uniform_density_stays(dimension, normalization, noise):
    """β = 9, t = 10: the density stays to the last bit, noise included."""
    mesh = mesh_polar(256, dimension)
    start = initial.initial_uniform(mesh, dimension)
    state = run(attention(mesh, dimension, 9.0, normalization), start, 10.0, noise / dimension)
    assert np.array_equal(state.values, start)


def test_growth_rates_agree_with_quadrature():
    for dimension in (2, 3):
        for normalization in ("softmax", "unnormalized"):
            found = growth_rates(dimension, 5.0, DEGREES, normalization)
            expected = [exact.growth_rate(dimension, 5.0, l, normalization) for l in range(1, 9)]
            assert found[1:9] == pytest.approx(expected, rel=3e-11)  # SciPy 1.15: 1.1e-11
            assert attention(mesh_polar(64, dimension), dimension, 5.0).rate_degree == 1 + int(np.argmax(expected))
    assert growth_rates(64, 0.0, DEGREES).max() == pytest.approx(63 / 64)
    assert growth_rates(64, 1e-9, DEGREES)[1] == pytest.approx(63 / 64, rel=1e-8)


def growth_error(mesh, dimension, beta, degree, normalization, noise):
    """Return the measured minus the exact rate, over the larger of the exact rate and a quarter of attraction's part.

    The difference of two runs from ρ̄ e^{±εφ_l}, ε = 1e-4, has no terms in ε². The runs end when the fastest mode
    has grown by half.
    """
    law = attention(mesh, dimension, beta, normalization)
    attraction = growth_rates(dimension, beta, DEGREES, normalization, rescaled=True)
    rate = attraction[degree] - noise * degree * (degree + dimension - 2)
    test = gegenbauer(dimension, mesh.centers[:, 0], degree)[degree] * mesh.volumes
    until, odd = 0.5 / attraction.max(), np.zeros(2)
    for sign in (1.0, -1.0):
        relative = 1e-4 * sign
        start = np.exp(log_masses(mesh, dimension, lambda t, e=relative: e * gegenbauer(dimension, t, degree)[degree]))
        state = run(law, start / mesh.volumes, until, noise)
        odd += [sign * (test @ (start / mesh.volumes - law.uniform)), sign * (test @ (state.values - law.uniform))]
    return (np.log(odd[1] / odd[0]) / until - rate) / max(abs(rate), 0.25 * attraction[degree])


@pytest.mark.sampled
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(
    ("dimension", "beta", "reach"),
    [(2, 5.0, 5e-3), (3, 5.0, 5e-3), (4, 5.0, 5e-3), (64, 5.0, 5e-3), (64, 64.0, 5e-3), (1024, 5.0, 0.01),
     (1024, 64.0, 0.01)],
)  # fmt: skip
def test_growth(dimension, beta, reach, normalization, noisy):
    """The degrees are 1 to 4; the noise is a third of the value at which degree 1 does not grow."""
    noise = 0.3 * growth_rates(dimension, beta, DEGREES, normalization, rescaled=True)[1] / (dimension - 1) * noisy
    for degree in (1, 2, 3, 4):
        error = growth_error(mesh_polar(512, dimension), dimension, beta, degree, normalization, noise)
        assert abs(error) < reach, f"degree {degree}: rate off by {100 * error:.4f} %"


def test_growth_is_second_order():
    """The order holds until the error of the time step, some 1e-5 of the rate, dominates."""
    for dimension, degree, noise in ((3, 3, 0.05), (64, 3, 0.0), (64, 3, 2e-3)):
        errors = [abs(growth_error(polar(n, dimension), dimension, 5.0, degree, "softmax", noise)) for n in (128, 512)]
        observed = exact.orders(errors, (128, 512))
        reach = 1.4 if dimension == 3 else 1.6  # p ∝ θ at the poles: the cells at the poles are of first order
        assert observed[0] > reach, f"d = {dimension}: order {observed[0]:.2f}, errors {errors}"


# --- exact flow and the sphere --------------------------------------------------------------------------


def moebius_parameter(dimension, start, until):
    """Return s(t) at β = 0: ṡ = ⟨z⟩, with z = (z₀ + tanh s)/(1 + z₀ tanh s) and z₀ uniform on the sphere."""
    odds, z = law_of(dimension) / law_of(dimension).sum(), np.cos(ANGLE)

    def mean(_, s):
        return [odds @ ((z + np.tanh(s[0])) / (1 + z * np.tanh(s[0])))]

    return scipy.integrate.solve_ivp(mean, (0, until), [start], rtol=1e-11, atol=1e-13).y[0, -1]


def test_the_exact_flow_agrees_with_the_circle_and_the_sphere():
    for dimension in (2, 3):
        assert moebius_parameter(dimension, 0.2, 2.0) == pytest.approx(
            exact.moebius_parameter(dimension, 0.2, 2.0), rel=1e-9
        )


@pytest.mark.parametrize(
    ("dimension", "start", "until", "reach"),
    [(2, 0.2, 2.0, 1.9), (3, 0.2, 2.0, 1.8), (4, 0.2, 2.0, 1.9), (64, 0.05, 1.0, 1.9), (1024, 0.02, 1.0, 1.9)],
)
def test_order_on_the_exact_flow(dimension, start, until, reach):
    """β = 0: the uniform density is pushed along the axis. L¹ error; d = 3 has p ∝ θ at the poles, resolved to order
    1."""
    sizes, errors = (128, 256, 512), []
    for size in sizes:
        mesh = polar(size, dimension)
        state = run(attention(mesh, dimension, 0.0), initial.initial_moebius(mesh, dimension, start), until)
        end = initial.initial_moebius(mesh, dimension, moebius_parameter(dimension, start, until))
        errors.append(np.abs(state.values - end) @ mesh.volumes)
    observed = exact.orders(errors, sizes)
    assert observed.min() > reach, f"orders {observed}, errors {errors}"
    assert errors[-1] < 1e-3, f"{errors[-1]:.1e}"


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_d_3_is_the_sphere(normalization, noise):
    """The mass in each ring of the sphere's mesh, from the same start, β = 4, converges to the same limit in both."""
    differences = []
    for rings in (32, 64, 128):
        surface, line = sphere(rings), from_edges(np.linspace(0, np.pi, rings + 1), "axisymmetric")
        start = initial.initial_moebius(line, 3, 0.4)
        density = np.repeat(start * line.volumes, surface.ring_cells) / np.repeat(
            surface.ring_cells, surface.ring_cells
        )
        whole = State(0.0, density / surface.volumes)
        law = Attention(surface, 4.0, normalization, rescaled=True)
        evolve(whole, mean_field_equation(surface, Velocity(law), noise), STEPPERS["ssprk3"], 1.5, rtol=None)
        held = np.add.reduceat(whole.values * surface.volumes, surface.ring_start[:-1])
        found = run(attention(line, 3, 4.0, normalization), start, 1.5, noise)
        differences.append(np.abs(held - found.values * line.volumes).sum())
    observed = exact.orders(differences[::2], (32, 128))
    assert observed[0] > 1.6, f"order {observed[0]:.2f}, differences {differences}"
    assert differences[-1] < 2e-3, f"{differences[-1]:.1e}"


# --- collapse -------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("dimension", "beta"), [(64, 100.0), (512, 9.0)])
def test_collapse_in_high_dimensions(dimension, beta):
    """A start with ⟨z⟩ of some 1e-3 ends in one cluster at the pole, all mass within a cell or two, none lost."""
    mesh = mesh_polar(512, dimension)
    start = initial.initial_von_mises_fisher(mesh, dimension, [0.01 * np.sqrt(dimension)], [1.0])
    heights, lowest = [], []

    def sample_of(state):
        heights.append(height(mesh, state.values))
        lowest.append(state.values.min())

    state = run(attention(mesh, dimension, beta), start, 24.0, observers=[Observer(sample_of, Every(2.0))])
    masses = state.values * mesh.volumes
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert min(lowest) >= 0
    assert np.all(np.diff(heights) > 0)
    assert masses[:2].sum() > 1 - 1e-6
    assert heights[0] < 2e-3


def test_two_opposite_poles():
    """An even density at d = 4 forms two clusters, mirror images of each other, that stay."""
    mesh = mesh_polar(256, 4)
    start = initial.initial_von_mises_fisher(mesh, 4, [40.0, -40.0], [0.5, 0.5])
    masses = run(attention(mesh, 4, 9.0), start, 20.0).values * mesh.volumes
    assert masses == pytest.approx(masses[::-1], abs=1e-9)
    assert masses[:3].sum() == pytest.approx(0.5, abs=1e-6)
    assert masses[-3:].sum() == pytest.approx(0.5, abs=1e-6)


def test_the_clock_bounds_the_step_near_uniform_only():
    mesh = mesh_polar(128, 64)
    law = attention(mesh, 64, 9.0)
    equation = axisymmetric_equation(law, 1e-3)
    degree = law.rate_degree
    fastest = law.rate + 1e-3 * degree * (degree + 62)
    assert equation.prepare(0.0, law.uniform) == pytest.approx(0.2 / fastest)
    far = initial.initial_points(mesh, [0.0])
    assert equation.terms[1].prepare(0.0, far) == np.inf


# --- initial laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3, 64, 4096])
def test_initial_laws(dimension):
    mesh = mesh_polar(512, dimension)
    odds, z = law_of(dimension) / law_of(dimension).sum(), np.cos(ANGLE)
    for s in (0.3 / np.sqrt(dimension), -0.3 / np.sqrt(dimension)):
        density = initial.initial_moebius(mesh, dimension, s)
        expected = odds @ ((z + np.tanh(s)) / (1 + z * np.tanh(s)))
        assert height(mesh, density) == pytest.approx(expected, rel=2e-4)
        density = initial.initial_von_mises_fisher(mesh, dimension, [dimension * s], [1.0])
        tilted = odds * np.exp(dimension * s * (z - np.sign(s)))
        assert height(mesh, density) == pytest.approx(tilted @ z / tilted.sum(), rel=2e-4)
    density = initial.initial_harmonic(mesh, dimension, 2, 0.02 / dimension)
    harmonic = gegenbauer(dimension, mesh.centers[:, 0], 2)[2]
    departure = (density - initial.initial_uniform(mesh, dimension)) * mesh.volumes
    assert harmonic @ departure == pytest.approx(0.02 / dimension, rel=2e-3)
    for density in (
        initial.initial_perturbed(mesh, dimension, 0.5, 6, 3),
        initial.initial_moebius(mesh, dimension, 12.0),
        initial.initial_moebius(mesh, dimension, -12.0),
        initial.initial_von_mises_fisher(mesh, dimension, [1e6, -30.0], [1.0, 3.0]),
        initial.initial_points(mesh, [0.0, 1.0, np.pi], [1.0, 2.0, 3.0]),
    ):
        assert density.min() >= 0
        assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    assert initial.initial_moebius(mesh, dimension, 12.0)[0] * mesh.volumes[0] > 0.99


def test_a_perturbation_has_the_size_that_it_says():
    """⟨g²⟩ under the uniform distribution is 1 on average over seeds, whatever the dimension."""
    for dimension in (3, 1024):
        mesh = mesh_polar(512, dimension)
        uniform = initial.initial_uniform(mesh, dimension)
        squares = []
        for seed in range(60):
            density = initial.initial_perturbed(mesh, dimension, 1e-3, 12, seed)
            ratio = np.divide(density, uniform, out=np.ones(mesh.cells), where=uniform > 0)
            squares.append(uniform * mesh.volumes @ ((ratio - 1) / 1e-3) ** 2)
        # Spread of a χ² with 12 degrees of freedom.
        assert np.mean(squares) == pytest.approx(1.0, abs=3 * np.sqrt(2 / 12 / 60))


def test_points_keep_mass_and_place():
    mesh = mesh_polar(64, 64)
    density = initial.initial_points(mesh, [0.3, 1.7], [1.0, 3.0])
    assert (density * mesh.volumes) @ mesh.centers[:, 0] == pytest.approx((0.3 + 3 * 1.7) / 4, rel=1e-13)
    assert np.count_nonzero(density) == 4


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: initial.initial_harmonic(mesh_polar(64, 3), 3, 1, 2.0),
            "^amplitude = 2.0: expected at most 0.57",
        ),
        (lambda: initial.initial_points(mesh_polar(64, 3), [4.0]), r"point 4: expected within \[0, 3.14159\]"),
    ],
)
def test_bad_initial_laws_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# --- noise ----------------------------------------------------------------------------------------------


def diffusion(mesh, dimension, noise):
    return IntervalDriftDiffusion(mesh, noise, log_masses(mesh, dimension) - np.log(mesh.volumes), nonnegative=True)


@pytest.mark.parametrize("dimension", [2, 3, 64, 4096])
def test_modes_decay_at_their_rates(dimension):
    """Modes decay as e^{−l(l + d − 2)κt}, to second order in space."""
    for degree in (1, 2, 4):
        errors = []
        for cells in (128, 512):
            mesh = polar(cells, dimension)
            uniform = uniform_distribution(mesh, dimension)
            mode = gegenbauer(dimension, mesh.centers[:, 0], degree)[degree]
            rate = degree * (degree + dimension - 2)
            density, before = uniform + 1e-3 * uniform * mode, (uniform * mode * mesh.volumes) @ mode * 1e-3
            term = diffusion(mesh, dimension, 1.0)
            for _ in range(500):
                term.step(0.5 / rate / 500, density)
            after = ((density - uniform) * mesh.volumes) @ mode
            errors.append(abs(np.log(before / after) / 0.5 - 1))
        observed = exact.orders(errors, (128, 512))
        assert observed[0] > 1.7, f"degree {degree}: order {observed[0]:.2f}, errors {errors}"
        assert errors[-1] < 3e-3, f"degree {degree}: {errors[-1]:.1e}"


def test_noise_is_second_order_in_time():
    """The reference takes tiny steps on the same mesh."""
    mesh = polar(128, 8)
    start = initial.initial_von_mises_fisher(mesh, 8, [20.0], [1.0])

    def solve(steps):
        density, term = start.copy(), diffusion(mesh, 8, 1.0)
        for _ in range(steps):
            term.step(0.05 / steps, density)
        return density

    fine = solve(512)
    errors = [np.abs(solve(steps) - fine) @ mesh.volumes for steps in (16, 32, 64)]
    observed = exact.orders(errors, (16, 32, 64))
    assert observed.min() > 1.8, f"orders {observed}, errors {errors}"


@pytest.mark.parametrize("dt", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("dimension", [3, 4096])
def test_a_lump_spreads_without_loss_or_undershoot(dimension, dt):
    """⟨z⟩ decays as e^{−(d−1)κt} by one step and by many, and the density is nowhere below zero."""
    mesh = polar(256, dimension)
    density, term = initial.initial_points(mesh, [1.2]), diffusion(mesh, dimension, 1.0 / dimension)
    start, steps = height(mesh, density), 20
    for _ in range(steps):
        term.step(dt, density)
        assert density.min() >= 0
    assert density @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    expected = start * np.exp(-(dimension - 1) / dimension * steps * dt)
    assert height(mesh, density) == pytest.approx(expected, rel=0.01, abs=2e-3 * start)


def test_an_undershoot_is_told_and_mended_if_it_is_to_be():
    mesh = polar(64, 8)
    left, mended, term = (
        initial.initial_points(mesh, [1.2]),
        initial.initial_points(mesh, [1.2]),
        diffusion(mesh, 8, 1.0),
    )
    lowest = term.step(0.05, left, limited=False)
    assert lowest == left.min() < 0
    assert term.step(0.05, mended) == lowest
    assert mended.min() >= 0
    assert mended @ mesh.volumes == pytest.approx(left @ mesh.volumes, abs=1e-14)  # the rounding of 64 masses


def test_what_is_not_finite_is_told_by_the_step():
    """The step returns NaN, and the linear solver raises no error: a run then stops as for any non-finite state."""
    term = diffusion(mesh_polar(64, 8), 8, 1.0)
    term.step(0.05, np.full(64, 1 / np.pi))  # the first values are the caller's, and refused if not finite
    assert np.isnan(term.step(0.05, np.full(64, np.nan)))


def test_steps_that_are_taken_again_are_those_that_were_limited_at_once():
    """Steps agree to the last bit, whether undershoots are expected in all steps or only detected afterwards."""
    mesh, found = mesh_polar(64, 8), []
    for steps in (0, 1000):
        state = State(0.0, initial.initial_points(mesh, [0.7, 1.9]))
        equation = axisymmetric_equation(attention(mesh, 8, 4.0), 0.05)
        integrate(state, fixed(SplitIntegrator(equation, "ssprk3", unlimited_after=steps)), 0.5)
        found.append(state.values)
    assert np.array_equal(*found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dimension", "noise", "start"), [(2, 0.3, 0.5), (3, 0.2, 40.0), (16, 0.04, 0.5), (16, 0.04, 40.0)]
)
def test_noise_and_attraction_settle_on_von_mises_fisher(dimension, noise, start):
    """β = 0: the stationary density is p̄ e^{Rz/κ}, R = I_{d/2}(R/κ)/I_{d/2−1}(R/κ), from either side."""
    mesh = mesh_polar(256, dimension)
    density = initial.initial_von_mises_fisher(mesh, dimension, [start], [1.0])
    state = run(attention(mesh, dimension, 0.0), density, 20.0, noise)
    resultant = exact.stationary_resultant(dimension, noise)
    assert height(mesh, state.values) == pytest.approx(resultant, rel=2e-3)  # 1e-3 at d = 16, 2e-5 at d = 3
    shape = initial.initial_von_mises_fisher(mesh, dimension, [resultant / noise], [1.0])
    distance = np.abs(state.values - shape) @ mesh.volumes
    assert distance < 6e-3, f"L¹ distance {distance:.1e}"


@pytest.mark.parametrize("coefficient", [-0.1, float("nan")])
def test_a_coefficient_that_is_not_nonnegative_is_refused(coefficient):
    with pytest.raises(ValueError, match=rf"diffusion coefficient = {coefficient}: expected a number >= 0"):
        IntervalDriftDiffusion(polar(8, 3), coefficient, np.zeros(8), nonnegative=True)


@pytest.mark.parametrize("dimension", [2, 3, 5, 64])
def test_a_bump_off_the_axis_is_spread_around_it(dimension):
    """⟨x⟩ = Aμ and ⟨xxᵀ⟩ = (A/c)I + (1 − dA/c)μμᵀ of a von Mises–Fisher density, A = I_{d/2}(c)/I_{d/2−1}(c)."""
    mesh, c, cosine = mesh_polar(512, dimension), 60.0, -0.3
    masses = initial.initial_von_mises_fisher(mesh, dimension, [c], [1.0], [cosine]) * mesh.volumes
    length = special.ive(dimension / 2, c) / special.ive(dimension / 2 - 1, c)
    z = np.cos(mesh.centers[:, 0])
    assert masses @ z == pytest.approx(length * cosine, abs=1e-5)  # cells of 0.006 rad: h²/24 = 2e-6
    assert masses @ z**2 == pytest.approx(length / c + (1 - dimension * length / c) * cosine**2, abs=1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("dimension", [2, 3, 64])
@pytest.mark.parametrize("c", [3e3, 1e5, -1e7])
def test_a_bump_within_a_cell_keeps_its_place(dimension, c):
    """The mean angle is that of 8192 cells; all mass at a cell's center could be half a cell off."""
    coarse, fine = mesh_polar(64, dimension), mesh_polar(8192, dimension)
    for cosine in np.cos([0.7, 0.72, 0.74]):
        found, expected = (
            initial.initial_von_mises_fisher(mesh, dimension, [c], [1.0], [cosine]) * mesh.volumes @ mesh.centers[:, 0]
            for mesh in (coarse, fine)
        )
        assert found == pytest.approx(expected, abs=1 / abs(c) + 1e-3 * coarse.width)  # angle of the mean: 1/c off


def test_a_case_says_where_a_bump_is():
    """The key ``center`` is a cosine: the bump of a case lies about that latitude, not about the pole."""
    components = "[{center = [0.5], concentration = 2000.0}]"
    domain = 'manifold = "axisymmetric"\nresolution = 64\ndimension = 3'
    text = f"attention.beta = 1.0\ntime.end = 1.0\n[domain]\n{domain}"
    case = parse(text, [f'initial={{kind = "von_mises_fisher", components = {components}}}'])
    problem = set_up(case)
    assert problem.space.centers[np.argmax(problem.initial()), 0] == pytest.approx(np.pi / 3, abs=0.05)


@pytest.mark.parametrize("dimension", [2, 3, 64])
@pytest.mark.parametrize("beta", [100.0, 1000.0, -1000.0])
def test_velocity_far_from_all_mass(dimension, beta):
    """Velocities by sums of logarithms are the reference: Z at the far pole is e^{−2000} of Z beside the mass."""
    mesh = polar(64, dimension)
    density = np.where(mesh.centers[:, 0] < 0.3, 1.0, 0.0)
    density /= density @ mesh.volumes
    law = AxisymmetricAttention(mesh, dimension, beta)
    theta, held = mesh.centers[:, 0], density > 0
    logs, ratio = log_bessel((dimension - 3) / 2, abs(beta) * np.outer(np.sin(theta), np.sin(theta[held])))
    logs += beta * np.outer(np.cos(theta), np.cos(theta[held]))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True)) * (density * mesh.volumes)[held]
    ratio = np.sign(beta) * ratio
    along = np.outer(np.cos(theta), np.sin(theta[held])) * ratio - np.outer(np.sin(theta), np.cos(theta[held]))
    expected = (weights * along).sum(axis=1) / weights.sum(axis=1)
    assert np.abs(law.normalizer_and_velocity(density)[1][:, 0] - expected).max() <= 1e-11
    assert np.abs(law.output(0.0, density)[:, 1] - expected).max() <= 1e-11
    cheap = law.normalizer_and_velocity(density, "nan")[1][:, 0]
    assert np.isnan(cheap).any() == (abs(beta) == 1000.0)
    assert np.nanmax(np.abs(cheap - expected)) <= 1e-11
