"""Tokens in time: closed-form times, orders of convergence, and states that continue bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ive
from support import exact, exact_particles
from support.adaptive import evolve_adaptively
from support.exact_flow import flow

from meanfield.domains.particles.brownian import Brownian
from meanfield.domains.particles.initial import tokens_equiangular, tokens_uniform
from meanfield.domains.particles.steps import dynamics_adaptive, dynamics_explicit, dynamics_layers
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LAYER_NORMS, LayerNorm
from solvers.timestepping.integrate import integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed
from solvers.timestepping.state import Exploding, NonFinite, State

START = tokens_uniform(7, 3, seed=3)
MATRIX = np.random.default_rng(5).standard_normal((3, 3))
LAW = ParticleVelocity(2.0, heads=(Head(value=MATRIX),))


def always(law):
    return lambda k: law


def go(dynamics, state, until, observers=(), after_step=lambda state: False):
    return integrate(state, dynamics, until, observers, after_step)


def tracked(advance, start, until):
    """Return the times and states after each step."""
    found = []
    go(advance, State(0.0, start.copy()), until, (), lambda state: found.append(copy(state)))
    return found


def copy(state):
    return replace(state, values=state.values.copy())


def expected(law, start, time):
    """Return positions by the reference flow, from radius 1."""
    directions, radii = flow(law, start, np.ones(len(start)), np.array([0.0, time]), tolerance=1e-12)
    return radii[-1][:, None] * directions[-1]


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [4.0, 9.0])
def test_two_tokens_meet_when_they_should(beta, normalization):
    """The time at which the cosine is ½, in closed form with Ei, holds to 1e-8; for β = 4 and softmax also
    absolutely."""
    times = {"softmax": exact.pair_time_equal, "unnormalized": exact_particles.pair_time_unnormalized}
    time = times[normalization](beta)
    advance = dynamics_adaptive(always(ParticleVelocity(beta, normalization)), tolerance=1e-12)
    near = go(advance, State(0.0, np.array([[1.0, 0.0], [np.cos(2.0), np.sin(2.0)]])), 0.999 * time)

    def above(t):
        first, second = go(advance, copy(near), t).values
        return first @ second - 0.5

    found = brentq(above, (0.999 + 1e-9) * time, 1.001 * time, xtol=1e-12 * time)
    assert abs(found - time) < 1e-8 * min(time, 1.0 if beta == 4.0 else time), f"{found} for {time}"


@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0, 9.0])
def test_equiangular_tokens_close_when_they_should(beta):
    """The cosine of 32 orthonormal tokens at time ∫dg/ġ is g = 0.9 to ġ·1e-6."""
    law = ParticleVelocity(beta)
    time, _ = quad(lambda g: 1 / exact_particles.equiangular_rate(32, beta, g), 0.0, 0.9, epsabs=1e-12, epsrel=1e-12)
    advance = dynamics_adaptive(always(law), tolerance=1e-10)
    near = go(advance, State(0.0, tokens_equiangular(32, 32)), 0.99 * time)

    def above(t):
        first, second = go(advance, copy(near), t).values[:2]
        return first @ second - 0.9

    assert brentq(above, (0.99 + 1e-9) * time, 1.01 * time, xtol=1e-10) == pytest.approx(time, abs=1e-6)


@pytest.mark.parametrize(
    "name", [name for name in LAYER_NORMS if name != "mix"]
)  # another test covers the switch of mix
def test_adaptive_is_the_flow(name):
    law = ParticleVelocity(2.0, heads=(Head(value=MATRIX),), norm=LayerNorm(name))
    gated = replace(law, gate=0.3) if law.norm.carries_radius else law
    state = go(dynamics_adaptive(always(gated), tolerance=1e-11), State(0.0, START.copy()), 1.0)
    error = np.abs(state.values - expected(gated, START, 1.0)).max()
    assert error < 1e-8, f"{name}: {error:.1e}"  # tolerance times some tens of steps, whose errors grow along the flow


def test_mix_switches_at_its_time():
    """The flow is post until the switch, then pre, from equiangular tokens, and a step ends at the switch."""
    law = ParticleVelocity(2.0, norm=LayerNorm("mix", switch=1.0))
    for advance, close in ((dynamics_adaptive(always(law), tolerance=1e-11), 1e-8), (explicit(law), 2e-3)):
        steps = tracked(advance, tokens_equiangular(8, 8), 3.0)
        assert 1.0 in [state.time for state in steps]
        first, second = steps[-1].values[:2]
        gap = 1 - first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
        assert gap == pytest.approx(exact_particles.equiangular_gap("mix", 8, 2.0, [0.0, 3.0])[-1], rel=close)


def explicit(law, method="ssprk3", **more):
    return dynamics_explicit(always(law), method, **more)


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "order"), [("ssprk2", 2), ("ssprk3", 3)])
@pytest.mark.parametrize("name", ["post", "ngpt", "cod", "pre", "peri", "none"])
def test_explicit_methods_have_their_order(name, method, order):
    law = ParticleVelocity(1.0, heads=(Head(value=MATRIX / 2),), norm=LayerNorm(name))
    errors, counts = [], np.array([32, 64, 128])
    for count in counts:  # more steps than stability requires
        state = State(0.0, START.copy())
        go(explicit(law, method, cfl=1.0), state, 1.0, (Observer(lambda state: None, Every(1.0, count)),))
        assert state.steps == count
        errors.append(np.abs(state.values - expected(law, START, 1.0)).max())
    orders = exact.orders(errors, counts)
    assert np.abs(orders - order).max() < 0.3, f"{name}: orders {orders}, errors {errors}"


def test_layers_are_the_flow_to_first_order():
    errors, counts = [], np.array([50, 100, 200])
    for count in counts:
        state = go(dynamics_layers(always(LAW), 1 / count), State(0.0, START.copy()), 1.0)
        assert (state.steps, state.time) == (count, 1.0)
        errors.append(np.abs(state.values - expected(LAW, START, 1.0)).max())
    orders = exact.orders(errors, counts)
    assert np.abs(orders - 1).max() < 0.1, f"orders {orders}, errors {errors}"


def test_each_layer_has_its_law():
    laws = [ParticleVelocity(1.0, heads=(Head(value=MATRIX + k * MATRIX.T),), norm=LayerNorm("cod")) for k in range(3)]
    state = go(dynamics_layers(laws.__getitem__, 0.1), State(0.0, START.copy()), 0.3)
    positions = START
    for k, law in enumerate(laws):
        positions = layer_map(law, positions, 0.1, time=0.1 * k)
    assert state.values == pytest.approx(positions, rel=1e-14)
    bare = go(dynamics_layers(laws.__getitem__, 0.1, residual=False), State(0.0, START.copy()), 3.0)
    assert bare.steps == 3


TURNING = [ParticleVelocity(2.0, heads=(Head(value=MATRIX + k * MATRIX.T),)) for k in range(3)]
COD = replace(LAW, norm=LayerNorm("cod"))
PRE = replace(LAW, norm=LayerNorm("mix", switch=0.37), gate=0.2)
DYNAMICS = {
    "adaptive": dynamics_adaptive(always(LAW)),
    "adaptive, paced": dynamics_adaptive(always(COD)),
    "adaptive, with radius": dynamics_adaptive(always(PRE)),
    "adaptive, in turns": dynamics_adaptive(TURNING.__getitem__, Every(0.5)),
    "ssprk3": explicit(COD),
    "ssprk3, in turns": dynamics_explicit(TURNING.__getitem__, "ssprk3", Every(0.5)),
    "ssprk2, noisy": explicit(LAW, "ssprk2", noise=0.1, seed=4),
    "ssprk3, noisy, free": explicit(ParticleVelocity(1.0, norm=LayerNorm("none")), noise=0.1),
    "layers": dynamics_layers(TURNING.__getitem__, 0.5),
}


@pytest.mark.parametrize("name", DYNAMICS)
def test_a_stopped_run_goes_on_bit_for_bit(name):
    """The run is stopped after each step and restarted from time, values, steps and dt alone."""
    advance, schedule = DYNAMICS[name], Every(1.4, 3)
    whole, parts = State(0.0, START.copy()), State(0.0, START.copy())
    watch = Observer(lambda state: None, schedule)
    go(advance, whole, 1.4, (watch,))
    stops = 0
    while parts.time < 1.4:
        seen = sum(schedule.due(k) <= parts.time for k in range(5)) if parts.steps else 0
        parts = State(parts.time, parts.values.copy(), parts.steps, parts.dt)
        go(advance, parts, 1.4, (Observer(lambda state: None, schedule, seen),), lambda state: True)
        stops += 1
    assert stops == whole.steps > 2
    assert (parts.time, parts.steps, parts.dt) == (whole.time, whole.steps, whole.dt)
    assert np.array_equal(parts.values, whole.values)


@pytest.mark.parametrize("name", ["adaptive", "adaptive, in turns", "ssprk3", "ssprk2, noisy"])
def test_tokens_stay_on_the_sphere_and_observers_are_met(name):
    times, seen = (0.0, 0.1, 0.1 + 1e-13, 0.7, 1.2), []
    watch = Observer(lambda state: seen.append((state.time, state.values.copy())), Listed(times))
    go(DYNAMICS[name], State(0.0, START.copy()), 1.3, (watch,))
    assert [time for time, _ in seen] == list(times)
    for _, values in seen:
        assert np.abs(np.linalg.norm(values, axis=1) - 1).max() < 1e-15


@pytest.mark.parametrize("advance", [dynamics_adaptive, lambda law, turns: dynamics_explicit(law, "ssprk3", turns)])
def test_no_step_crosses_a_turn(advance):
    """A token with V = kJ in segment k, J a quarter turn, rotates by Σ k·duration."""
    spin = np.array([[0.0, -1.0], [1.0, 0.0]])
    steps = tracked(
        advance(lambda k: ParticleVelocity(1.0, heads=(Head(value=k * spin),)), Every(0.3)), np.array([[1.0, 0.0]]), 1.0
    )
    assert {0.3, 0.6, Every(0.3).due(3), 1.0} <= {state.time for state in steps}
    angle = 0.3 * (0 + 1 + 2) + 0.1 * 3
    assert steps[-1].values[0] == pytest.approx([np.cos(angle), np.sin(angle)], abs=1e-3)


def test_step_sizes_do_not_suffer_from_landing():
    """Fifty observations close together cost their steps; afterwards the step is as long as before."""
    few = go(DYNAMICS["adaptive"], State(0.0, START.copy()), 2.0)
    times = tuple(1.0 + 1e-6 * k for k in range(50))
    state = go(DYNAMICS["adaptive"], State(0.0, START.copy()), 2.0, (Observer(lambda state: None, Listed(times)),))
    assert state.steps <= few.steps + 52


def cube(points):
    return points**3


def test_a_blow_up_is_told_with_its_time():
    """ẋ = x³ from F: x = 1/√(1 − 2t) ends at t = ½, and the state is the last finite one."""
    law = ParticleVelocity(0.0, heads=(Head(value=0.0),), norm=LayerNorm("none"), feed_forward=cube)
    state = State(0.0, np.array([[1.0, 0.0]]))
    with pytest.raises(Exploding, match=r"at time 0\.5, step \d+: step size underflow \(blow-up\?\)"):
        go(dynamics_adaptive(always(law)), state, 1.0)
    assert state.time == pytest.approx(0.5, abs=1e-8)  # error in time of a tolerance of 1e-9 a step
    assert state.values[0, 0] > 1e3


def test_what_is_not_finite_is_told_and_left_out():
    def lost(points):
        return np.where(points[:, :1] > 1.1, np.nan, 1.0) * np.ones_like(points)

    law = ParticleVelocity(0.0, heads=(Head(value=0.0),), norm=LayerNorm("none"), feed_forward=lost)
    for advance in (dynamics_adaptive(always(law)), explicit(law), dynamics_layers(always(law), 0.3)):
        state = State(0.0, np.array([[1.0, 0.0]]))
        with pytest.raises(NonFinite, match=r"at time"):
            go(advance, state, 1.0)
        assert np.isfinite(state.values).all()
    with pytest.raises(NonFinite, match="at time 0, step 0: the rate of change is not finite"):
        go(dynamics_adaptive(always(law)), State(0.0, np.array([[1.2, 0.0]])), 1.0)
    with pytest.raises(ValueError, match="until = inf: expected a finite time"):
        evolve_adaptively(State(0.0, START.copy()), lambda time, values: values, np.inf)


def test_explicit_steps_are_short_enough():
    """The cases are one cluster, steep attention, and a small mean at β = 0, at the ordinary cfl of ½."""
    cluster = np.array([1.0, 0.0, 0.0]) + 1e-3 * START
    for beta, normalization, start in (
        (20.0, "softmax", cluster),
        (3.0, "unnormalized", cluster),
        (0.0, "softmax", START),
    ):
        law = ParticleVelocity(beta, normalization)
        start = start / np.linalg.norm(start, axis=1)[:, None]
        state = go(explicit(law), State(0.0, start.copy()), 2.0)
        assert np.abs(state.values - expected(law, start, 2.0)).max() < 1e-3


@pytest.mark.sampled
@pytest.mark.parametrize("steps", [1, 40])
@pytest.mark.parametrize("dimension", [2, 3, 8, 32])
def test_noise_on_the_sphere_decays_by_degree(dimension, steps):
    """Free Brownian motion: means of degree 1 and 2 of z = ⟨x(t), x(0)⟩ decay at (d − 1)κ and 2dκ, for any step."""
    noise, count, time = 0.4 / (dimension - 1), 20_000 if dimension < 4 else 4000, 1.0
    law = ParticleVelocity(0.0, heads=())
    start = tokens_uniform(count, dimension, seed=1)
    state = State(0.0, start.copy())
    steady = Observer(lambda state: None, Every(time / steps))
    go(explicit(law, "ssprk2", noise=noise, seed=2, cfl=1.0), state, time, (steady,))
    assert state.steps == steps
    assert np.abs(np.linalg.norm(state.values, axis=1) - 1).max() < 1e-15
    z = np.einsum("nd,nd->n", state.values, start)
    second = (1 - 1 / dimension) * np.exp(-2 * dimension * noise * time) + 1 / dimension
    for found, mean in ((z, np.exp(-(dimension - 1) * noise * time)), (z**2, second)):
        assert abs(found.mean() - mean) < 4 * found.std() / np.sqrt(count)


def mean_direction(points):
    """Return the output of attention at β = 0, without sums over pairs."""
    return np.repeat(points.mean(axis=0)[None], len(points), axis=0)


@pytest.mark.sampled
@pytest.mark.parametrize("samples", [10, 40])
@pytest.mark.parametrize(("dimension", "noise", "count"), [(2, 0.3, 8000), (3, 0.2, 8000), (32, 0.02, 4000)])
def test_stationary_mean_with_noise(dimension, noise, count, samples):
    """r = I_{d/2}(r/κ)/I_{d/2−1}(r/κ) at β = 0, coth(r/κ) − κ/r for d = 3, whatever the number of samples."""
    half = dimension / 2
    exact_mean = brentq(lambda r: ive(half, r / noise) / ive(half - 1, r / noise) - r, 0.1, 1.0)
    start = tokens_uniform(count, dimension, seed=1) + 1.5 * np.eye(dimension)[0]
    state = State(0.0, start / np.linalg.norm(start, axis=1)[:, None])
    lengths = []
    record = Observer(lambda state: lengths.append(np.linalg.norm(state.values.mean(axis=0))), Every(24 / samples))
    law = ParticleVelocity(0.0, heads=(), feed_forward=mean_direction)
    go(explicit(law, noise=noise, seed=3), state, 24.0, (record,))
    # The step error is 0.2 %, the sampling error 0.1 %: 8000 tokens of deviation 0.3 over some ten correlation times.
    assert np.mean(lengths[samples // 4 :]) == pytest.approx(exact_mean, rel=5e-3)


def test_noise_with_drift_is_of_second_order():
    """Tokens in a constant field e at κ = ½: the error of the stationary mean coth 2 − ½ is of second order in the
    step."""
    count, noise, field = 50_000, 0.5, np.array([1.0, 0.0, 0.0])
    law = ParticleVelocity(0.0, heads=(), feed_forward=lambda points: np.repeat(field[None], len(points), axis=0))
    errors = []
    for step in (1.0, 0.5):
        state, means = State(0.0, tokens_uniform(count, 3, seed=5)), []
        record = Observer(lambda state, means=means: means.append(state.values[:, 0].mean()), Every(step))
        go(explicit(law, noise=noise, seed=3, cfl=2.0), state, 6.0, (record,))
        assert state.steps == 6 / step
        errors.append(np.mean(means[int(3 / step) :]) - 1 / np.tanh(2) + 0.5)
    order = np.log2(errors[0] / errors[1])
    # The smaller error is seven standard errors of its mean: 0.2 of the order; steps this long show higher orders too.
    assert 1.7 < order < 2.8, f"order {order:.2f}, errors {errors}"


def test_noise_in_space_has_its_variance():
    law = ParticleVelocity(0.0, heads=(), norm=LayerNorm("none"))
    state = go(explicit(law, noise=0.3, seed=2), State(0.0, np.zeros((20_000, 3)) + 1.0), 1.5)
    square = ((state.values - 1.0) ** 2).sum(axis=1)
    assert abs(square.mean() - 2 * 3 * 0.3 * 1.5) < 4 * square.std() / np.sqrt(20_000)


def test_noise_keeps_the_radius_and_differs_by_step_and_seed():
    start = 2.5 * START
    moved = []
    for seed, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
        moved.append(start.copy())
        Brownian(0.2, seed).step(0.1, number, moved[-1])
        assert np.linalg.norm(moved[-1], axis=1) == pytest.approx(2.5, rel=1e-15)
    assert np.array_equal(moved[0], moved[3])
    assert min(np.abs(moved[0] - other).max() for other in moved[1:3]) > 0.1
