"""Input of `evolve`: mistakes are refused in one line, and observers begin at the time of the state."""

import numpy as np
import pytest
from support.adaptive import evolve_adaptively

from solvers.mesh.mesh import circle
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed
from solvers.timestepping.solve import solve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS


class Decay:
    """The equation u' = −u."""

    def prepare(self, time, values):
        self.current = -values
        return 0.02

    def rate(self, dt, rate):
        rate += self.current


DECAY = Equation(None, [Decay()])
MESH = circle(16)
HEAT = Equation(None, [Diffusion(MESH, 0.1)])
LOOPS = {
    "evolve": lambda state, until, observers=(): evolve(state, DECAY, "ssprk3", until, observers),
    "evolve_adaptively": lambda state, until, observers=(): evolve_adaptively(
        state, lambda time, values: -values, until, observers
    ),
}


@pytest.fixture(params=LOOPS)
def loop(request):
    return LOOPS[request.param]


def watching(schedule):
    times = []
    return times, Observer(lambda state: times.append(state.time), schedule)


@pytest.mark.parametrize("schedule", [Every(0.25), Listed((0.0, 4.9, 5.0, 5.25, 5.5, 5.75, 6.0))])
def test_a_schedule_that_begins_before_the_state_goes_on_from_there(loop, schedule):
    """An earlier version stepped back to time 0 and gave e^{−1/…} = 0.111 instead of e^{−1}."""
    times, observer = watching(schedule)
    state = loop(State(5.0, np.ones(1)), 6.0, [observer])
    assert times == [5.0, 5.25, 5.5, 5.75, 6.0]
    assert state.values[0] == pytest.approx(np.exp(-1.0), rel=1e-5)  # third order, dt 0.01


def test_an_observer_that_is_used_again_sees_the_other_run_too(loop):
    for schedule in (Every(0.5), Every(2.0), Listed((0.0, 0.5, 1.0))):
        times, observer = watching(schedule)
        loop(State(0.0, np.ones(1)), 1.0, [observer])
        first = list(times)
        assert first[0] == 0.0
        loop(State(0.0, np.ones(1)), 1.0, [observer])
        assert times == 2 * first


def test_an_observer_of_a_state_that_goes_on_sees_each_time_once(loop):
    times, observer = watching(Every(0.25))
    state = State(0.0, np.ones(1))
    for until in (0.5, 0.6, 1.0):
        loop(state, until, [observer])
    assert times == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_until_before_the_state_is_refused(loop):
    state = State(2.0, np.ones(1))
    with pytest.raises(ValueError, match=r"^until = 1\.0: expected a time >= state\.time = 2\.0$"):
        loop(state, 1.0)
    with pytest.raises(ValueError, match=r"^until = inf: expected a finite time$"):
        loop(state, np.inf)
    with pytest.raises(ValueError, match=r"^state\.time = nan: expected a finite time$"):
        loop(State(np.nan, np.ones(1)), 1.0)


def test_a_stepper_is_named_or_given():
    given, named = (evolve(State(0.0, np.ones(1)), DECAY, stepper, 1.0) for stepper in (STEPPERS["ssprk3"], "ssprk3"))
    assert given.values[0] == named.values[0]
    with pytest.raises(ValueError, match=r"^stepper = 'rk4': expected a Stepper, or one of euler, ssprk2, ssprk3$"):
        evolve(State(0.0, np.ones(1)), DECAY, "rk4", 1.0)
    with pytest.raises(TypeError, match=r"^stepper = 3: expected a Stepper, or one of euler, ssprk2, ssprk3$"):
        evolve(State(0.0, np.ones(1)), DECAY, 3, 1.0)


@pytest.mark.parametrize("method", ["auto", "ssprk3", "dop853"])
def test_tolerances_below_rounding_are_refused(method):
    """No step would be accepted; one of the two tolerances is enough, as the message says."""
    message = r"^rtol = 1e-30, atol = 1e-30: expected rtol >= 8\.9e-16 or atol >= 1\.8e-15, the rounding of a step$"
    with pytest.raises(ValueError, match=message):
        solve(DECAY, [2.0], (0.0, 1.0), method=method, rtol=1e-30, atol=1e-30)
    assert solve(DECAY, [2.0], (0.0, 1.0), method=method, rtol=1e-30, atol=1e-4).t[-1] == 1.0


def test_evolve_refuses_tolerances_below_rounding():
    with pytest.raises(ValueError, match=r"^rtol = 1e-30, atol = 1e-30: expected rtol"):
        evolve(State(0.0, np.ones(1)), DECAY, "ssprk3", 1.0, rtol=1e-30, atol=1e-30)


@pytest.mark.parametrize("cfl", [0.0, -0.5, np.nan, np.inf, "0.5"])
def test_a_cfl_that_is_no_positive_number_is_refused(cfl):
    with pytest.raises(ValueError, match=r"^cfl = .*: expected a finite number > 0$"):
        evolve(State(0.0, np.ones(1)), DECAY, "ssprk3", 1.0, cfl=cfl)


def read_only():
    values = np.ones(16)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(16, dtype=int), r"^state\.values of int64: expected an array of float32 or float64$"),
        (np.ones(16, dtype=np.float16), r"^state\.values of float16: expected an array of float32 or float64$"),
        ([1.0] * 16, r"^state\.values of list: expected an array of float32 or float64$"),
        (np.array(1.0), r"^state\.values of shape \(\): expected \(cells\) or \(cells, components\)$"),
        (np.ones(32)[::2], r"^state\.values of strides \(16,\): expected a contiguous array$"),
        (read_only(), r"^state\.values is read-only: expected an array that can be written to$"),
        (np.ones(15), r"^state\.values of shape \(15,\): expected 16 cells, as the mesh of Diffusion has$"),
        (np.full(16, np.inf), r"^state\.values: 16 of 16 not finite: expected finite numbers$"),
        (np.append(np.ones(15), np.nan), r"^state\.values: 1 of 16 not finite: expected finite numbers$"),
    ],
)
def test_values_that_kernels_would_misread_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        evolve(State(0.0, values), HEAT, "ssprk3", 1.0)


def test_values_that_do_not_fit_the_mesh_of_an_explicit_term_are_refused():
    transport = Advection(MESH, lambda time, density: np.zeros((16, 2)))
    with pytest.raises(ValueError, match=r"^state\.values of shape \(17,\): expected 16 cells, as the mesh of Adv"):
        evolve(State(0.0, np.ones(17)), Equation(None, [transport]), "ssprk3", 1.0)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([3.0], r"^terms\[0\] = 3\.0: expected an object with the methods prepare and rate$"),
        ([Decay], r"^terms\[0\] = <class .*Decay'>: expected an object with the methods prepare and rate$"),
        ([Decay(), MESH], r"(?s)^terms\[1\] = <Mesh.*: expected .* prepare and rate$"),
        (Decay(), r"^terms = .*Decay.*: expected a list of terms$"),
    ],
)
def test_what_is_no_term_of_its_kind_is_refused(terms, message):
    with pytest.raises(TypeError, match=message):
        Equation(None, terms)


def test_terms_in_place_of_the_mesh_are_refused():
    with pytest.raises(TypeError, match=r"^mesh = list: expected a Mesh, or None, before the list of terms$"):
        Equation([Decay()], [])
