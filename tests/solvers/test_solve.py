"""Orders of the methods of `solve`, exact solutions at the default tolerance, events, dense output, refused input."""

import pydoc

import numpy as np
import pytest
from support import exact
from support.methods import GENERAL

import solvers
from solvers import Advection, Diffusion, Equation, Every, Observer, SteadyState, Threshold, circle, solve
from solvers.timestepping.methods import METHODS, integrator_of
from solvers.timestepping.runge_kutta.error_controlled import ErrorControlled
from solvers.timestepping.state import State

ORDERS = {"ssp3": 3, "dopri5": 5, "ars2": 2, "ark3": 3, "ark4": 4, "implicit": 4, "rkl2": 2, "exponential": 2}
DEFAULT = 1e-4  # the relative tolerance
CIRCLE = circle(64)
ANGLE = np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0])


class Decay:
    """The rate −k u, as a stiff term."""

    def __init__(self, k=1.0):
        self.k = k

    def prepare(self, time, values):
        self.current = -self.k * values
        return np.inf

    def rate(self, dt, rate):
        rate += self.current

    def longest_step(self, values):
        return np.inf

    def step(self, dt, values, limited=True):
        values *= np.exp(-self.k * dt)
        return np.inf


class Diffusions:
    """The rates D_k Δu_k of two fields, as a stiff term."""

    def __init__(self, mesh, coefficients):
        self.mesh, self.coefficients, self._one = mesh, coefficients, Diffusion(mesh, 1.0)

    def prepare(self, time, values):
        self.current = np.empty_like(values)
        for row, found, D in zip(values, self.current, self.coefficients, strict=True):
            self._one.laplacian(row, found)
            found *= D
        return np.inf

    def rate(self, dt, rate):
        rate += self.current

    longest_step, step = Decay.longest_step, Decay.step


def bernoulli(time):
    """Return the solution of u' = u² cos t − u from u = ½: 1/u = C eᵗ + (cos t − sin t)/2."""
    return 1 / (1.5 * np.exp(time) + (np.cos(time) - np.sin(time)) / 2)


@pytest.mark.parametrize("method", ORDERS)
def test_order_of_each_method(method):
    """The equation is nonlinear, depends on time, and has two parts that do not commute; steps have a fixed length."""
    equation, counts, errors = Equation(None, [lambda t, u: u * u * np.cos(t), Decay()]), (10, 20, 40), []
    for count in counts:
        integrator = integrator_of(equation, method, 1e-4, 1e-8, None)
        assert isinstance(integrator, ErrorControlled)
        state = State(0.0, np.full(2, 0.5))
        integrator.begin(state)
        integrator.rtol = integrator.atol = 1e-9  # tolerance of Newton's iteration
        for k in range(count):
            state.time = k / count
            state.values, _ = integrator.attempt(state, 1 / count)
        errors.append(np.abs(state.values - bernoulli(1.0)).max())
    orders = exact.orders(errors, counts)
    assert orders[-1] == pytest.approx(ORDERS[method], abs=0.25), f"{method}: orders {orders}, errors {errors}"


def test_the_eighth_order_is_as_good_as_it_is_asked_to_be():
    equation = Equation(None, [lambda t, u: u * u * np.cos(t) - u])
    found = solve(equation, [0.5], (0.0, 1.0), method="dop853", rtol=1e-9)
    assert abs(found.u[-1, 0] - bernoulli(1.0)) < 1e-8


@pytest.mark.parametrize("method", ["auto", "ars2", "ark3", "ark4", "implicit", "exponential", "rkl2", "ssprk3"])
def test_heat_of_any_sign(method):
    """cos 2x e^{−4t} + ½ decays exactly; the fluxes of fourth order have a relative rate error of (2h)⁴/90."""
    u0 = np.cos(2 * ANGLE) + 0.5
    given = u0.copy()
    found = solve(Equation(CIRCLE, [Diffusion(CIRCLE, 1.0)]), u0, (0.0, 0.5), method=method)
    error = np.abs(found.u[-1] - 0.5 - np.exp(-2.0) * np.cos(2 * ANGLE)).max()
    assert error < DEFAULT, f"{method}: {error:.1e}"
    assert np.array_equal(u0, given)
    assert (method if method != "auto" else "ark4") in found.message


def test_a_front_of_fisher_s_equation_has_its_speed():
    """u = (1 + e^{z/√6})^{−2}, z = x − 5t/√6 (Ablowitz and Zeppetella 1979), to 0.1 %: two fronts move apart."""
    length, mesh = 100.0, circle(500)
    x = np.abs(np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])) * length / (2 * np.pi)
    equation = Equation(mesh, [Diffusion(mesh, (2 * np.pi / length) ** 2), lambda t, u: u * (1 - u)])
    found = solve(equation, (1 + np.exp((x - 20.0) / 6**0.5)) ** -2.0, (0.0, 6.0))
    mass = found.u @ mesh.volumes * length / (2 * np.pi)  # u = 1 between them up to e^{−20/√6}
    assert (mass[-1] - mass[0]) / 12.0 == pytest.approx(5 / 6**0.5, rel=1e-3), found.message


def test_kinks_of_allen_cahn_rest():
    """tanh(x/√2) is steady: two kinks on a circle, with interaction e^{−√2·20}, are within h² of it and stay."""
    length, mesh = 40.0, circle(400)
    x = np.abs(np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])) * length / (2 * np.pi)
    kinks = np.tanh((x - length / 4) / 2**0.5)
    equation = Equation(mesh, [Diffusion(mesh, (2 * np.pi / length) ** 2), lambda t, u: u - u**3])
    found = solve(equation, kinks, (0.0, 100.0), events=SteadyState(1e-6))
    assert found.event == 0
    assert "steady" in found.message
    assert np.abs(found.u[-1] - kinks).max() < 0.1**2


def schnakenberg():
    """Return the equation of two fields with one unstable mode, the steady state, the rate and the shape of the
    mode."""
    mesh, a, b, D = CIRCLE, 0.1, 0.9, (0.01, 0.3)

    def reaction(time, u):
        return np.stack([a - u[0] + u[0] ** 2 * u[1], b - u[0] ** 2 * u[1]])

    u = a + b
    v = b / u**2
    jacobian = np.array([[-1 + 2 * u * v, u * u], [-2 * u * v, -u * u]])
    mode, change = np.cos(4 * ANGLE), np.zeros(mesh.cells)
    Diffusion(mesh, 1.0).laplacian(mode, change)
    rates, shapes = np.linalg.eig(jacobian + (change @ mode) / (mode @ mode) * np.diag(D))
    best = int(rates.real.argmax())
    steady, shape = np.array([u, v])[:, None], shapes[:, best].real[:, None]
    return Equation(mesh, [Diffusions(mesh, D), reaction]), steady, float(rates[best].real), shape * mode


def test_a_pattern_grows_and_ends_right_by_default():
    """Schnakenberg's system grows at the linear rate to 1 %, and its maximum is that of a finer run to 1 %."""
    equation, steady, rate, mode = schnakenberg()
    assert rate > 0.1
    found = solve(equation, steady + 1e-6 * mode, (0.0, 6.0))
    grown = np.linalg.norm(found.u[-1] - steady) / np.linalg.norm(1e-6 * mode)
    assert np.log(grown) / 6.0 == pytest.approx(rate, rel=0.01), found.message
    fast, fine = (
        solve(equation, steady + 0.1 * mode, (0.0, 10.0), times=[10.0], rtol=rtol).u[-1, 0].max()
        for rtol in (1e-4, 1e-5)
    )
    assert fine > 1.2 * steady[0, 0]
    assert fast == pytest.approx(fine, rel=0.01)


@pytest.mark.parametrize("method", ["ark3", "ark4", "implicit"])
def test_stiff_decay_takes_few_steps(method):
    """u' = 1 − 10⁶ u ends at 10⁻⁶; an explicit method would take 10⁶ steps."""
    found = solve(Equation(None, [lambda t, u: 0 * u + 1.0, Decay(1e6)]), [1.0], (0.0, 1.0), method=method, atol=1e-9)
    assert found.u[-1, 0] == pytest.approx(1e-6, abs=1e-8)
    assert found.steps < 200, found.message  # most of them while u falls to atol


def test_fluxes_take_a_strong_stability_preserving_method():
    """A jump that moves around the circle stays within its values, to rounding."""
    velocity = np.stack([-CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]], axis=1)
    equation = Equation(CIRCLE, [Advection(CIRCLE, lambda t, u: velocity, limiter="mc")])
    found = solve(equation, np.where(ANGLE > 0, 1.0, -1.0), (0.0, 1.0))
    assert "ssp3" in found.message
    assert np.abs(found.u).max() < 1.0 + 1e-12
    density = Equation(CIRCLE, [Advection(CIRCLE, lambda t, u: velocity, nonnegative=True)])
    kept = solve(density, np.where(ANGLE > 0, 1.0, 0.0), (0.0, 1.0))
    assert "ssprk3" in kept.message
    assert kept.u.min() >= 0


FALL = Equation(None, [lambda t, u: -u])


@pytest.mark.parametrize("method", ["dopri5", "dop853", "ssp3", "ssprk3"])
def test_events_end_a_run_where_they_happen(method):
    def half(t, u):
        return u[0] - 0.5

    found = solve(FALL, [1.0], (0.0, 5.0), events=[Threshold(0.1), half], method=method, rtol=1e-6)
    assert found.event == 1
    assert found.t[-1] == pytest.approx(np.log(2), abs=1e-5)
    assert found.u[-1, 0] == pytest.approx(0.5, abs=1e-9)  # the zero of g itself is found to rounding
    assert found.message.startswith("event half at t = 0.693")
    unnamed = solve(FALL, [1.0], (0.0, 5.0), events=[Threshold(0.1), lambda t, u: u[0] - 0.5], method=method, rtol=1e-6)
    assert unnamed.message.startswith("events[1] at t = 0.693")


@pytest.mark.parametrize(("direction", "time"), [(0, np.pi / 2), (-1, np.pi / 2), (1, 3 * np.pi / 2)])
def test_an_event_has_the_direction_of_scipy_s(direction, time):
    """cos t falls through 0 at π/2 and rises through 0 at 3π/2."""

    def zero(t, u):
        return u[0]

    zero.direction, zero.terminal = direction, True
    swing = Equation(None, [lambda t, u: np.stack([u[1], -u[0]])])
    assert solve(swing, [1.0, 0.0], (0.0, 6.0), events=zero, rtol=1e-6).t[-1] == pytest.approx(time, abs=1e-4)
    zero.terminal = False
    with pytest.raises(ValueError, match=r"^events\[0\] with terminal = False: expected True, as events end a run"):
        solve(swing, [1.0, 0.0], (0.0, 6.0), events=zero)


def test_an_event_ends_what_observers_keep():
    found = solve(FALL, [1.0], (0.0, 5.0), times=[0.0, 0.5, 4.0], events=Threshold(0.5))
    assert found.t == pytest.approx([0.0, 0.5, np.log(2)], abs=1e-4)


def test_times_callbacks_and_the_end():
    seen, looked = [], []
    found = solve(
        FALL, np.array([1, 2]), (1.0, 2.0), times=(1.0, 1.25, 2.0),
        callbacks=[lambda s: seen.append(s.time), Observer(lambda s: looked.append(s.time), Every(0.5))],
    )  # fmt: skip
    assert found.t.tolist() == [1.0, 1.25, 2.0]
    assert found.u[:, 1] == pytest.approx(2 * np.exp(1 - found.t), rel=DEFAULT)
    assert looked == [1.0, 1.5, 2.0]
    assert len(seen) == found.steps
    assert found.message == f"reached t = 2, by dopri5 in {found.steps} steps"
    short = solve(FALL, [1.0], (0.0, 5.0), callbacks=lambda state: state.steps == 2)
    assert short.steps == 2
    assert "callback" in short.message


@pytest.mark.parametrize("method", GENERAL)
def test_a_first_step_is_taken(method):
    """Tolerances of 1e-2 accept it; without it, the first step is at most a thousandth of the run."""
    found = solve(FALL, [1.0], (0.0, 1.0), method=method, rtol=1e-2, atol=1e-2, first_step=0.05)
    assert found.t[1] == pytest.approx(0.05, rel=1e-12)
    default = solve(FALL, [1.0], (0.0, 1.0), method=method, rtol=1e-2, atol=1e-2)
    assert default.t[1] <= 1e-3
    assert found.steps < default.steps


def test_a_first_step_is_shortened_to_its_error_and_to_the_longest_step():
    stiff = Equation(None, [lambda t, u: -1e3 * u])
    assert solve(stiff, [1.0], (0.0, 1.0), first_step=0.1).t[1] < 1e-3
    assert solve(FALL, [1.0], (0.0, 1.0), first_step=0.1, max_step=0.01).t[1] <= 0.01


def test_rejected_steps_are_counted():
    """A step into the sudden change at t = 1 is too long."""
    found = solve(Equation(None, [lambda t, u: np.where(t < 1.0, 0.0, 50.0) - u]), [1.0], (0.0, 2.0))
    assert found.rejected > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "rk45"}, "method = 'rk45': expected 'auto', 'euler'"),
        ({"method": "arkk4"}, "did you mean 'ark4'"),
        (
            {"method": lambda equation: None},
            r"^method = <lambda>\(equation\): expected a function of \(equation, rtol,",
        ),
        ({"method": lambda *a: 1}, r"^method <lambda> returns int: expected an Integrator with begin and step$"),
        ({"t_span": (1.0, 1.0)}, r"t_span = \(1\.0, 1\.0\): expected finite times with t0 < t1"),
        ({"t_span": 3.0}, r"t_span = 3\.0: expected two times"),
        ({"times": [0.0, 2.0]}, r"times = \[0\.0, 2\.0\]: expected increasing times from t0 = 0 to t1 = 1"),
        ({"rtol": 0.0}, r"rtol = 0\.0: expected a finite number > 0"),
        ({"cfl": -1.0}, r"cfl = -1\.0"),
        ({"first_step": 0.0}, r"first_step = 0\.0: expected a finite number > 0"),
        ({"first_step": np.nan}, "first_step = nan: expected a finite number > 0"),
        ({"u0": np.ones(63)}, r"u0 of shape \(63,\): expected \(64,\) or \(fields, 64\)"),
        ({"u0": np.full(64, np.nan)}, "u0: 64 of 64 not finite"),
        ({"u0": np.full(64, "1")}, "u0 of <U1: expected numbers"),
        ({"equation": [1]}, "equation = list: expected an Equation"),
        ({"events": 3}, r"events\[0\] = int: expected a function of \(t, u\)"),
    ],
)
def test_what_does_not_fit_is_named_in_a_line(changes, message):
    given = {"equation": Equation(CIRCLE, [Diffusion(CIRCLE, 1.0)]), "u0": np.ones(64), "t_span": (0.0, 1.0)} | changes
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        solve(**given)
    assert "\n" not in str(caught.value)


def test_equations_that_do_not_fit_are_refused():
    other = circle(32)
    with pytest.raises(
        ValueError, match=r"Diffusion on another mesh \(circle of 32 cells\): .* \(circle of 64 cells\)"
    ):
        Equation(CIRCLE, [Diffusion(other, 1.0)])
    with pytest.raises(ValueError, match="StepsOnly has steps but no rate of change"):
        solve(Equation(CIRCLE, [Diffusion(CIRCLE, 1.0), StepsOnly()]), np.ones(64), (0.0, 1.0), method="ark4")
    with pytest.raises(TypeError, match="expected a list of terms"):
        Equation(CIRCLE, Diffusion(CIRCLE, 1.0))


class StepsOnly:
    """The rate −u as a step only, without a rate function."""

    k, longest_step, step = 1.0, Decay.longest_step, Decay.step


@pytest.mark.parametrize("method", ["auto", "implicit", "rkl2"])
def test_several_stiff_terms_are_implicit_together(method):
    """∂ₜu = Δu − 10³ u + 10³ cos φ from cos φ to 1000/1001 of it, at steps that resolve neither stiff term."""
    terms = [Diffusion(CIRCLE, 1.0), Decay(1e3), lambda t, u: 1e3 * np.cos(ANGLE)]
    found = solve(Equation(CIRCLE, terms), np.cos(ANGLE), (0.0, 0.1), method=method)
    assert np.abs(found.u[-1] - 1000 / 1001 * np.cos(ANGLE)).max() < DEFAULT
    if method == "auto":
        assert "ark4" in found.message
        assert found.steps < 60, found.message


def test_two_diffusions_are_their_sum():
    """Split steps are of second order, with terms that do not commute."""
    one, two = (Diffusion(CIRCLE, np.exp(sign * np.sin(ANGLE))) for sign in (1, -1))
    both = Diffusion(CIRCLE, np.exp(np.sin(ANGLE)) + np.exp(-np.sin(ANGLE)))
    start, errors = np.exp(np.cos(ANGLE)), []
    fine = solve(Equation(CIRCLE, [both]), start, (0.0, 0.2), rtol=1e-9).u[-1]
    together = solve(Equation(CIRCLE, [one, two]), start, (0.0, 0.2), rtol=1e-9).u[-1]
    for steps in (16, 32, 64):
        u = start.copy()
        for _ in range(steps):
            Equation(CIRCLE, [one, two]).stiff.step(0.2 / steps, u)
        errors.append(np.abs(u - together).max())
    assert exact.orders(errors, (16, 32, 64))[-1] > 1.8, errors
    assert np.abs(together - fine).max() < 1e-3  # h²: harmonic means of D at faces differ


def three(t, u):
    return np.ones(3)


def test_rates_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"three gives an array of shape \(3,\): expected \(64,\)"):
        solve(Equation(CIRCLE, [three]), np.ones(64), (0.0, 1.0))


def test_all_that_is_public_is_shown():
    assert set(solvers.__all__) <= set(dir(solvers))
    for name in solvers.__all__:
        assert getattr(solvers, name) is not None
    page = pydoc.plain(pydoc.render_doc(solvers))
    assert all(name in page for name in ("solve", "SteadyState", "Threshold", "Source"))
    assert all(name in solve.__doc__ for name in ("times", "method", "events", "callbacks"))
    assert set(ORDERS) < set(METHODS)
