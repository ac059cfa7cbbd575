"""Conservation laws: shocks at their speed and without overshoot, second order for smooth fields."""

import numpy as np
import pytest
from scipy.optimize import brentq
from support import exact

from solvers.mesh.boundaries import Outflow, Wall
from solvers.mesh.interval import from_edges, interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box, product
from solvers.terms.advection import Advection
from solvers.terms.conservation_law import ConservationLaw
from solvers.terms.source import Source
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.solve import solve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

STEP = STEPPERS["ssprk3"]
MONOTONE = pytest.mark.parametrize("limiter", ["koren", "mc", "vanleer"])
EACH = pytest.mark.parametrize("limiter", ["koren", "mc", "vanleer", "none"])


def burgers(mesh, limiter="mc"):
    return Equation(None, [ConservationLaw(mesh, lambda u, x: u * u / 2, lambda u, x: u, limiter)])


def traffic(mesh, walls="open", limiter="mc"):
    ends = dict.fromkeys(mesh.boundary_faces, Outflow() if walls == "open" else Wall())
    return Equation(
        None, [ConservationLaw(mesh, lambda u, x: u * (1 - u), lambda u, x: 1 - 2 * u, limiter, boundaries=ends)]
    )


def angles(mesh):
    return np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0]) % (2 * np.pi)


def sine_wave(angle, time):
    """Return u of Burgers' equation from 1 + sin x: v = sin y, y + t sin y = x − t, with the shock at x = t + π."""
    place = (angle - time + np.pi) % (2 * np.pi) - np.pi

    def value(s):
        y = np.linspace(0.0, np.pi, 2001)
        first = int(np.argmax(y + time * np.sin(y) >= s))  # the characteristic nearest to the shock's far side
        if first == 0:
            return 0.0
        return np.sin(brentq(lambda y: y + time * np.sin(y) - s, y[first - 1], y[first]))

    return 1.0 + np.sign(place) * np.array([value(s) for s in np.abs(place)])


def errors_of_burgers(limiter, time, sizes):
    errors, overshoots = [], []
    for size in sizes:
        mesh = circle(size)
        state = evolve(State(0.0, 1.0 + np.sin(angles(mesh))), burgers(mesh, limiter), STEP, time)
        wave = sine_wave(angles(mesh), time)
        errors.append(np.abs(state.values - wave) @ mesh.volumes)
        overshoots.append(max(state.values.max() - 2.0, -state.values.min()))
    return errors, overshoots


@EACH
def test_burgers_is_second_order_before_the_shock(limiter):
    sizes = (64, 128, 256)
    errors, _ = errors_of_burgers(limiter, 0.5, sizes)
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 1.85, f"orders {observed}, errors {errors}"


@pytest.mark.sampled(1)
@MONOTONE
def test_a_burgers_shock_is_first_order_and_does_not_overshoot(limiter):
    sizes = (32, 64, 128, 256)
    errors, overshoots = errors_of_burgers(limiter, 3.0, sizes)
    observed = np.log(errors[0] / errors[-1]) / np.log(sizes[-1] / sizes[0])
    # The order is measured over all sizes, because the position of the shock within a cell jumps.
    assert observed > 0.9, f"order {observed:.2f}, errors {errors}"
    assert max(overshoots) < 1e-13, f"{overshoots}"


def test_a_shock_does_not_shorten_the_steps_of_solve():
    """The steps to t = 4, with a shock, are those of the cfl alone, and the temporal error is far below the spatial
    one."""
    mesh = circle(200)
    u0, exact_wave = 1.0 + np.sin(angles(mesh)), sine_wave(angles(mesh), 4.0)
    found = solve(burgers(mesh), u0, (0.0, 4.0))
    precise = solve(burgers(mesh), u0, (0.0, 4.0), cfl=0.05)
    fewest = 4.0 / (0.5 * mesh.width / 2.0)  # cfl ½ at the largest initial speed
    assert found.steps + found.rejected < 1.1 * fewest, (found.steps, found.rejected, fewest)
    of_time, of_space = (np.abs(found.u[-1] - other).mean() for other in (precise.u[-1], exact_wave))
    assert of_time < 0.05 * of_space, (of_time, of_space)
    assert found.u[-1].max() < 2.0 + 1e-12
    assert found.u[-1].min() > -1e-12


def test_beside_a_reaction_a_front_counts_as_an_error():
    """A reaction may have its largest error at the front: steps are shorter than for the law alone, and follow rtol."""
    mesh = circle(64)
    u0, law = np.where(angles(mesh) < 3, 1.0, 0.0), burgers(mesh).terms[0]
    reaction = Source(lambda t, u: 40.0 * u * (1 - u) * (u - 0.5))
    both, alone = Equation(None, [law, reaction]), Equation(None, [law])
    found, fine = (solve(both, u0, (0.0, 0.5), rtol=rtol) for rtol in (1e-4, 1e-7))
    assert found.steps > 1.5 * solve(alone, u0, (0.0, 0.5)).steps
    assert np.abs(found.u[-1] - fine.u[-1]).max() < 1e-3  # 1e-4 of each step's change, which adds up to the range


def transport(mesh, kind, wind=lambda t: 1.0):
    """Return transport along an interval with a limiter of Advection, or of ConservationLaw with WENO."""
    if kind in ("koren", "mc", "vanleer"):
        return Advection(mesh, lambda t, u: np.full((mesh.cells, 1), wind(t)), limiter=kind)
    return ConservationLaw(mesh, lambda u: u, lambda u: 0 * u + 1, reconstruction=kind)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["koren", "mc", "vanleer", "weno5"])
@pytest.mark.parametrize("start", ["box", "gaussian"])
def test_transport_takes_the_steps_of_the_cfl_at_its_error(kind, start):
    """Half a turn over 100 cells in 100 steps at cfl ½; limiters switch in steps of any length."""
    mesh = interval(0.0, 1.0, 100, periodic=True)
    x = mesh.centers[:, 0] - 0.25
    u0 = np.where(np.abs(x) < 0.2, 1.0, 0.0) if start == "box" else np.exp(-0.5 * (x / 0.07) ** 2)
    equation = Equation(mesh, [transport(mesh, kind)])
    found, fine = (solve(equation, u0, (0.0, 0.5), times=[0.5], cfl=cfl) for cfl in (0.5, 0.1))
    error, of_fine = (np.abs(one.u[0] - np.roll(u0, 50)).mean() for one in (found, fine))
    if kind == "weno5" and start == "gaussian":  # the error of space is that of order 5, so that rtol limits the steps
        assert found.steps > 120, found.message
    else:
        assert found.steps + found.rejected < 1.1 * 100, f"{found.message}, {found.rejected} rejected"
        assert error < 1.02 * of_fine, (error, of_fine)


@pytest.mark.parametrize("per_step", [1, 2])
def test_a_wind_that_changes_faster_than_the_cfl_is_resolved(per_step):
    """The wind 1 + ½ cos ωt has periods of a step at cfl ½, or of half a step, and the mean 1."""
    mesh = interval(0.0, 1.0, 50, periodic=True)
    u0 = np.exp(-0.5 * ((mesh.centers[:, 0] - 0.5) / 0.1) ** 2)
    omega = 2 * np.pi * 100 * per_step
    winds = (lambda t: 1.0, lambda t: 1.0 + 0.5 * np.cos(omega * t))
    found = [solve(Equation(mesh, [transport(mesh, "koren", wind)]), u0, (0.0, 0.2), times=[0.2]) for wind in winds]
    error, of_gusts = (np.abs(one.u[0] - np.roll(u0, 10)).mean() for one in found)
    assert of_gusts < 1.1 * error, (of_gusts, error)
    assert found[1].steps > 3 * found[0].steps


def test_without_a_tolerance_the_cfl_limits_the_steps():
    mesh = interval(0.0, 1.0, 50, periodic=True)
    u0 = np.exp(-0.5 * ((mesh.centers[:, 0] - 0.5) / 0.1) ** 2)
    gusts = Equation(mesh, [transport(mesh, "koren", lambda t: np.cos(200 * np.pi * t))])
    for method in ("auto", "ssprk3"):
        assert solve(gusts, u0, (0.0, 0.2), rtol=None, method=method).steps < 40
    with pytest.raises(ValueError, match=r"^rtol = None with method = 'dopri5': expected a number > 0; None only with"):
        solve(gusts, u0, (0.0, 0.2), rtol=None, method="dopri5")


def test_numerical_diffusion_is_that_of_a_step_in_the_constant_reconstruction():
    """Godunov's fluxes of the speed 2 add 2 (u₊ − u₋)/2 between cells of width 1/8, and nothing at walls."""
    mesh = interval(0.0, 1.0, 8)
    law = ConservationLaw(mesh, lambda u: 2 * u, lambda u: 0 * u + 2, reconstruction="constant")
    law.prepare(0.0, np.array([0.0, 0, 0, 1, 1, 1, 1, 1]))
    np.testing.assert_allclose(law.numerical_diffusion(), [0, 0, 8, -8, 0, 0, 0, 0], atol=1e-13)


@pytest.mark.parametrize("speed", [2.0, -0.5])
def test_the_longest_step_takes_a_wave_through_a_cell(speed):
    """V/(½ Σ A a) is the width over the speed on a curve, and half of that on a square in both directions."""
    line = interval(0.0, 1.0, 10, periodic=True)
    law = ConservationLaw(line, lambda u, x: speed * u, lambda u, x: np.full_like(u, speed))
    assert law.prepare(0.0, np.linspace(0, 1, 10)) == pytest.approx(0.1 / abs(speed))
    square = box((8, 8), (1.0, 1.0), periodic=True)
    law = ConservationLaw(square, lambda u, x: u[:, None] * speed * np.ones(2), lambda u, x: np.full_like(u, speed))
    assert law.prepare(0.0, np.ones(64)) == pytest.approx(0.5 * (1 / 8) / abs(speed))


def test_steps_of_solve_are_half_of_the_stable_one_whatever_the_tolerance():
    """Speed 1 to t = 1 over cells of 2π/64: limiters are monotone up to cfl ½, which gives 21 steps."""
    mesh = circle(64)
    found = solve(burgers(mesh), np.where(angles(mesh) < 3, 1.0, 0.5), (0.0, 1.0), rtol=0.5, atol=10.0)
    assert found.steps >= 1.0 / (0.5 * 2 * np.pi / 64)


@MONOTONE
def test_no_step_of_burgers_adds_to_the_variation(limiter):
    mesh = circle(200)
    values = np.where(np.abs(angles(mesh) - np.pi) < 1, 1.0, -1.0)
    state, variations = State(0.0, values), []
    law = burgers(mesh, limiter)

    def look(state):
        variations.append(np.abs(state.values - np.roll(state.values, 1)).sum())
        return False

    evolve(state, law, STEP, 2.0, after_step=look)
    assert np.diff(variations).max() < 1e-13
    assert np.abs(state.values).max() <= 1 + 1e-14


@MONOTONE
@pytest.mark.parametrize(("left", "right"), [(0.1, 0.7), (0.3, 0.9), (0.0, 1.0)])
def test_a_traffic_jam_moves_at_the_speed_of_rankine_and_hugoniot(left, right, limiter):
    """f = ρ(1 − ρ): a jam grows at 1 − ρ₋ − ρ₊, measured by the mass, which is exact until a wave reaches an end."""
    mesh = from_edges(np.linspace(-1.0, 1.0, 201), "road")
    x = mesh.centers[:, 0]
    state = State(0.0, np.where(x < 0, left, right))
    evolve(state, traffic(mesh, limiter=limiter), STEP, 0.8)
    front = 1.0 - ((state.values - left) @ mesh.volumes) / (right - left)
    assert front == pytest.approx(0.8 * (1 - left - right), abs=1e-12)
    middle = np.interp((left + right) / 2, state.values, x)
    assert middle == pytest.approx(0.8 * (1 - left - right), abs=mesh.volumes[0])
    assert state.values.min() >= left - 1e-14
    assert state.values.max() <= right + 1e-14


def test_a_queue_that_starts_to_move_is_a_rarefaction():
    """ρ₋ = 1, ρ₊ = 0: ρ = ½ (1 − x/t), the entropy solution, with an L¹ error of first order from its corners."""
    sizes, errors = (100, 200, 400), []
    for size in sizes:
        mesh = from_edges(np.linspace(-1.0, 1.0, size + 1), "road")
        x = mesh.centers[:, 0]
        state = evolve(State(0.0, np.where(x < 0, 1.0, 0.0)), traffic(mesh), STEP, 0.6)
        errors.append(np.abs(state.values - np.clip(0.5 * (1 - x / 0.6), 0, 1)) @ mesh.volumes)
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 0.85, f"orders {observed}, errors {errors}"


def test_closed_walls_keep_the_mass():
    mesh = from_edges(np.linspace(-1.0, 1.0, 101), "road")
    state = State(0.0, 0.3 + 0.2 * np.sin(5 * mesh.centers[:, 0]))
    before = state.values @ mesh.volumes
    evolve(state, traffic(mesh, "closed"), STEP, 1.0)
    assert state.values @ mesh.volumes == pytest.approx(before, rel=1e-13)
    assert 0 <= state.values.min() <= state.values.max() <= 1


def test_burgers_along_both_angles_of_a_torus_is_second_order():
    """u_t + (u²/2)_a + (u²/2)_b = 0 from a function of a + b is Burgers' equation of twice the time."""
    sizes, errors = (32, 64, 128), []
    for size in sizes:
        mesh = product(circle(size), circle(size))
        a = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
        b = np.arctan2(mesh.centers[:, 3], mesh.centers[:, 2])

        def flux(u, x):
            along = np.stack([-x[:, 1], x[:, 0], -x[:, 3], x[:, 2]], axis=1)
            return 0.5 * (u * u)[:, None] * along

        law = ConservationLaw(mesh, flux, lambda u, x: u)
        state = evolve(State(0.0, 1.0 + np.sin(a + b)), Equation(None, [law]), STEP, 0.2)
        wave = np.sin(a + b)
        for _ in range(100):
            wave = np.sin(a + b - 0.4 * (1 + wave))
        errors.append(np.abs(state.values - 1 - wave) @ mesh.volumes / mesh.volume)
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 1.75, f"orders {observed}, errors {errors}"


def test_a_constant_stays_and_mass_is_kept_on_the_sphere():
    """A law about an axis on the sphere, f = u²/2 e × x, keeps mass to rounding and values within their bounds."""
    mesh = sphere(32)
    axis = np.array([0.36, 0.48, 0.8])
    law = ConservationLaw(mesh, lambda u, x: 0.5 * (u * u)[:, None] * np.cross(axis, x), lambda u, x: u)
    state = State(0.0, np.where(mesh.centers[:, 0] > 0, 1.0, 0.0))
    before = state.values @ mesh.volumes
    evolve(state, Equation(None, [law]), STEP, 1.0)
    assert state.values @ mesh.volumes == pytest.approx(before, rel=1e-13)
    assert state.values.min() > -0.02  # f(u, x)·n of a constant sums to zero over a cell's faces up to h²
    assert state.values.max() < 1.02


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((lambda u, x: u[:-1], lambda u, x: u), ValueError, r"flux of shape \(63,\): expected \(64,\)"),
        ((lambda u, x: x[:, :1], lambda u, x: u), ValueError, r"flux of shape \(64, 1\): expected \(64, 2\)"),
        ((lambda u, x: u, lambda u, x: 1.0), TypeError, r"speed = float: expected an array \(64,\)"),
        ((lambda u, x: u, 1.0), TypeError, "speed = float: expected a function"),
        ((lambda u, x: u, lambda u, x: u, "weno"), ValueError, "limiter = 'weno': expected one of 'none', 'mc'"),
    ],
)
def test_input_that_does_not_fit_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        ConservationLaw(circle(64), *arguments).prepare(0.0, np.ones(64))


@pytest.mark.parametrize("reconstruction", ["constant", "weno5"])
@pytest.mark.parametrize(
    ("limiter", "message"),
    [
        ("x", "limiter = 'x': expected one of 'none', 'mc', 'vanleer', 'koren'"),
        ("mc", "limiter = 'mc' with reconstruction = '{}': expected None, as only \"muscl\" has limiters"),
    ],
)
def test_a_limiter_is_refused_by_reconstructions_without_one(reconstruction, limiter, message):
    mesh = interval(0.0, 1.0, 8)
    with pytest.raises(ValueError, match=f"^{message.format(reconstruction)}$"):
        ConservationLaw(mesh, lambda u: u, lambda u: u, limiter, reconstruction=reconstruction)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"riemann": lambda left, right: left}, r"riemann = .*: expected a function of \(left, right, n, x\)"),
        ({"riemann": lambda left, right, n, x: left}, r"riemann returns ndarray: expected \(flux, speed\)"),
        ({"riemann": lambda left, right, n, x: ("a", left)}, r"flux of riemann = str: expected an array \(64,\)"),
        ({"riemann": lambda left, right, n, x: (left, 1j * left)}, "speed of riemann of dtype complex128: expected"),
        ({"riemann": lambda left, right, n, x: (left, left[1:])}, r"speed of riemann of shape \(63,\): expected"),
    ],
)
def test_a_riemann_solver_of_other_results_is_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        ConservationLaw(circle(64), lambda u: u, lambda u: u, **arguments).prepare(0.0, np.ones(64))


@pytest.mark.parametrize(
    ("mirror", "message"),
    [
        (3.0, r"mirror = float: expected a function of \(u, n\)"),
        (lambda u, n: None, r"mirror = NoneType: expected an array \(2, 1\)"),
        (lambda u, n: 1j * u, "mirror of dtype complex128: expected floating-point numbers"),
        (lambda u, n: u[0], r"mirror of shape \(1,\): expected \(2, 1\)"),
    ],
)
def test_a_mirror_of_other_results_is_refused(mirror, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        ConservationLaw(interval(0.0, 1.0, 8), lambda u: u, lambda u: u[0], mirror=mirror).prepare(0.0, np.ones((2, 8)))


def test_weno_takes_numbers_in_float32():
    """Constants beside a jump have smoothness indicators 0."""
    mesh = interval(0.0, 1.0, 64, periodic=True)
    law = ConservationLaw(mesh, lambda u, x: u**2 / 2, lambda u, x: u, reconstruction="weno5")
    jump = (mesh.centers[:, 0] < 0.5).astype(float)
    single, double = (solve(Equation(mesh, [law]), jump.astype(n), (0.0, 0.1)).u[-1] for n in (np.float32, np.float64))
    assert single.dtype == np.float32
    assert single == pytest.approx(double, abs=1e-4)  # the tolerance of steps
