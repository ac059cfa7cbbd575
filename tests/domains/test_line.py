"""The line without layer norm: exact blow-up of Gaussians, gates, compact supports, fronts."""

from functools import cache

import numpy as np
import pytest

from meanfield.case.load import load
from meanfield.domains.line.equation import LineAttention, initial_gaussian, initial_interval, line_equation
from solvers.mesh.interval import from_edges, line
from solvers.remap.deposit_interval import deposit_on_interval
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

WIDE = line(512, 20.0, 5.0)  # even where a Gaussian of variance 1 has its mass
FAR = line(512, 3e7, 0.5)  # seven decades


def run(mesh, density, until, beta=1.0, noise=0.0, observers=(), **options):
    state = State(0.0, density.copy())
    equation = line_equation(mesh, LineAttention(mesh, beta, **options), noise)
    return evolve(state, equation, STEPPERS["ssprk3"], until, observers=observers, rtol=None)


def moments(mesh, density):
    x, masses = mesh.centers[:, 0], density * mesh.volumes
    mean = masses @ x
    return mean, masses @ (x - mean) ** 2


@cache
def gaussian_run(mean, until):
    """Return means and variances at ten times up to ``until``, from variance 0.2 at β = 1."""
    found = []
    observer = Observer(lambda state: found.append((state.time, *moments(WIDE, state.values))), Every(until, 10))
    run(WIDE, initial_gaussian(WIDE, mean, 0.2), until, observers=[observer])
    return np.array(found)


@pytest.mark.parametrize("mean", [0.0, 0.1])  # for a mean of −0.5 tokens would attend to 8 widths out
def test_a_gaussian_spreads_as_it_should(mean):
    """s = s₀/(1 − 2βs₀t), m = m₀ eᵗ (1 − 2βs₀t)^{−1/2}, from βs₀ = 0.2 until βs = 1."""
    time, means, variances = gaussian_run(mean, 2.0).T
    left = 1 - 0.4 * time
    assert variances == pytest.approx(0.2 / left, rel=0.01)
    assert means == pytest.approx(mean * np.exp(time) / np.sqrt(left), rel=0.01, abs=1e-10)


def test_the_time_of_blow_up():
    """1/s falls linearly to zero at 1/(2βs₀) = 2.5, extrapolated from βs < 1."""
    time, _, variances = gaussian_run(0.0, 2.0).T
    slope, start = np.polyfit(time, 1 / variances, 1)
    assert -start / slope == pytest.approx(2.5, rel=0.02)


@pytest.mark.parametrize(("beta", "gate"), [(1.0, 0.3), (2.0, 0.5)])
def test_the_gate_holds_below_its_threshold(beta, gate):
    """ṡ = 2s(βs − γ): from s₀ > γ/β the variance grows, below it shrinks; bisection finds the threshold."""
    low, high = 0.5 * gate / beta, 2.0 * gate / beta
    for _ in range(7):
        middle = np.sqrt(low * high)
        start = initial_gaussian(WIDE, 0.0, middle)
        found = run(WIDE, start, 0.5, beta, gate=gate)
        grows = moments(WIDE, found.values)[1] > moments(WIDE, start)[1]
        low, high = (low, middle) if grows else (middle, high)
    assert np.sqrt(low * high) == pytest.approx(gate / beta, rel=0.02)  # bisected to 0.5 %


def test_a_negative_value_draws_together():
    """V = −1: s = s₀/(1 + 2βs₀t) at all times, without a collapse."""
    mesh = line(512, 10.0, 1.0)
    state = run(mesh, initial_gaussian(mesh, 0.0, 1.0), 5.0, value=-1.0)
    assert moments(mesh, state.values)[1] == pytest.approx(1 / 11, rel=0.01)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", [1.0, 0.5])
def test_a_compact_support_grows_at_the_rate_of_the_value(value):
    """R(t) ≤ R₀ e^{|V|t}, and R′/R → |V|, over six decades of radius."""
    radii, times = [], []

    def sample_of(state):
        radii.append(np.sqrt(moments(FAR, state.values)[1]))
        times.append(state.time)

    run(
        FAR,
        initial_interval(FAR, -1.0, 1.0),
        17.0 / value,
        value=value,
        observers=[Observer(sample_of, Every(1 / value))],
    )
    radius, time = np.array(radii), np.array(times)
    rates = np.diff(np.log(radius)) / np.diff(time)
    late = radius[1:] > 20.0
    assert radius[-1] / 20.0 > 1e4
    assert rates[late] == pytest.approx(value, rel=0.02)
    assert (radius <= 1.0 * np.exp(value * time)).all()
    assert radius[-1] > 1e6


@pytest.mark.parametrize("place", [0.3, -2.0, 40.0])
def test_a_point_grows_at_the_rate_of_the_value(place):
    """ẋ = Vx of a Dirac, whatever β, holds for the first moment up to the time step's error."""
    mesh = line(256, 1e3, 1.0)
    for beta in (0.0, 1.0, 1e3):
        state = run(mesh, deposit_on_interval(mesh, [place], [1.0]), 1.0, beta)
        assert moments(mesh, state.values)[0] == pytest.approx(place * np.e, rel=1e-3)


def test_two_points_drive_each_other_apart():
    """u = βa² of the points ±a satisfies u̇ = 2u tanh u, so that sinh u = sinh u₀ e^{2t}."""
    state = run(WIDE, deposit_on_interval(WIDE, [-0.7, 0.7], [0.5, 0.5]), 1.0, beta=1.0)
    found = moments(WIDE, state.values)[1]
    # Point masses on cells have a width.
    assert found == pytest.approx(np.arcsinh(np.sinh(0.49) * np.exp(2.0)), rel=0.02)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_velocity_is_the_sum_over_cells(normalization):
    mesh = from_edges(np.linspace(-3, 3, 201), "line")
    x, density = mesh.centers[:, 0], initial_gaussian(mesh, 0.4, 0.3)
    kernel = np.exp(1.7 * np.outer(x, x)) * density * mesh.volumes
    size = kernel.sum(axis=1) if normalization == "softmax" else 1.0
    expected = -0.5 * (kernel @ x) / size - 0.2 * x
    attention = LineAttention(mesh, 1.7, normalization, value=-0.5, gate=0.2, least_mass=0.0)
    error = np.abs(attention.velocity(0.0, density)[:, 0] - expected).max()
    assert error < 1e-13 * np.abs(expected).max(), f"{error:.1e}"


def test_far_tokens_do_not_overflow():
    attention = LineAttention(FAR, 10.0)
    velocity = attention.velocity(0.0, initial_interval(FAR, -1e6, 2e6))[:, 0]
    x = FAR.centers[:, 0]
    assert np.isfinite(velocity).all()
    # Β x·10⁶ ≫ 1: all attend to the farthest token, to a cell's width.
    assert velocity[x > 1] == pytest.approx(2e6, rel=0.1)
    assert velocity[x < -1] == pytest.approx(-1e6, rel=0.1)


def test_noise_alone_spreads_a_gaussian():
    """s = s₀ + 2κt at V = 0 with distant ends."""
    steps = Observer(lambda state: None, Every(1.0, 20))  # no velocity limits the time step
    state = run(WIDE, initial_gaussian(WIDE, 0.5, 0.2), 1.0, value=0.0, noise=0.3, observers=[steps])
    mean, variance = moments(WIDE, state.values)
    assert mean == pytest.approx(0.5, abs=1e-4)
    assert variance == pytest.approx(0.8, rel=2e-3)


def test_a_gaussian_has_exact_cell_masses_and_tails():
    """Log-space sums of the density on a finer mesh are the reference: relative accuracy 12 widths out."""
    mesh = from_edges(np.linspace(-12, 12, 97), "line")
    node = mesh.centers + 0.5 * mesh.volumes[:, None] * np.polynomial.legendre.leggauss(20)[0]
    weight = np.polynomial.legendre.leggauss(20)[1] / 2
    expected = np.exp(-((node - 0.3) ** 2) / 2) @ weight / np.sqrt(2 * np.pi)
    assert initial_gaussian(mesh, 0.3, 1.0) == pytest.approx(expected, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: initial_interval(WIDE, 2.0, 1.0), r"interval \[2, 1\]: expected within \[-20, 20\], not empty"),
        (lambda: initial_interval(WIDE, 0.0, 30.0), r"interval \[0, 30\]: expected within \[-20, 20\]"),
        (
            lambda: LineAttention(WIDE, 1.0, "softmx"),
            r"normalization = 'softmx': expected one of softmax, unnormalized",
        ),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_check_states_the_width_of_the_narrowest_cells():
    domain = load("blow_up_line").domain
    mesh = line(domain.resolution, domain.outermost, domain.core)
    assert domain.cells_and_width() == (mesh.cells, pytest.approx(mesh.volumes.min(), rel=1e-3))
