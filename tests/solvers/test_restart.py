"""Restarts: a stopped or killed run and its continuation have the bits of one run, with every method."""

import multiprocessing
import os
import signal

import numpy as np
import pytest

from solvers import (
    METHODS,
    Advection,
    Diffusion,
    Equation,
    Noise,
    NonlinearDiffusion,
    State,
    circle,
    interval,
    read,
    record,
    restart,
    solve,
)

CIRCLE, LINE = circle(32), interval(0.0, 1.0, 24)
X, Y = CIRCLE.centers.T
SMOOTH, BUMP = 1 + 0.3 * X, np.maximum(0.0, 1 - 16 * (LINE.centers[:, 0] - 0.5) ** 2)
HEAT = Equation(CIRCLE, [Diffusion(CIRCLE, 0.3), lambda t, u: u - u**3 + 0.1 * np.sin(7 * t)])
ROTATION = Advection(CIRCLE, lambda t, u: (1 + 0.3 * np.sin(t)) * np.stack([-Y, X], axis=1), nonnegative=True)
DENSITY = Equation(CIRCLE, [ROTATION, Diffusion(CIRCLE, 0.3)])
POROUS = Equation(
    LINE, [NonlinearDiffusion(LINE, lambda u: u**3), Diffusion(LINE, 0.01), lambda t, u: np.sin(9 * t) * u]
)
STIFF = Equation(CIRCLE, [Diffusion(CIRCLE, 0.3), lambda t, u: 3e4 * (np.cos(t) - u)])
PENDULUM = Equation(None, [lambda t, u: np.stack([u[1], -np.sin(u[0])])])
DRIVEN = Equation(None, [lambda t, u: np.stack([u[1], -np.sin(u[0]) * (1 + 0.2 * np.sin(t))])])
START = np.array([[0.3, 1.0, 0.0], [1.0, 0.2, 0.5]])

# method, equation, u0, t1, and the number of steps before the stop; by default half of all
CASES = {name: (name, HEAT, SMOOTH, 0.8, None) for name in METHODS} | {
    "euler": ("euler", HEAT, SMOOTH, 0.05, None),
    "ars2": ("ars2", HEAT, SMOOTH, 0.2, None),
    "symplectic": ("symplectic", PENDULUM, START, 120.0, 110),
    "density": ("auto", DENSITY, SMOOTH, 0.5, None),
    "nonlinear": ("implicit", POROUS, BUMP, 0.1, None),
    "exponential": ("exponential", HEAT, SMOOTH, 0.3, None),
    "rkl2": ("rkl2", POROUS, BUMP, 0.05, None),
    "trial": ("auto", POROUS, BUMP, 0.4, 41),
    "growth": ("auto", STIFF, SMOOTH, 5.0, 61),
    "changed": ("auto", STIFF, SMOOTH, 5.0, 80),
    "oscillator": ("dopri5", DRIVEN, START, 10.0, None),
    "noise": (Noise(CIRCLE, 0.1, step=0.05, seed=1), HEAT, SMOOTH, 0.5, None),
}


def recorded(path, name, u0=None, stop=lambda state: False, **options):
    method, equation, start, end, _ = CASES[name]
    u0, fields = start if u0 is None else u0, ("q", "p") if start.ndim > 1 else "u"
    with record(path, equation.mesh or circle(3), every=end / 4, fields=fields, **options) as recorder:
        return solve(equation, u0, (0.0, end), method=method, callbacks=[recorder, stop])


def stop_at(name, whole):
    return CASES[name][-1] or whole.steps // 2


def assert_continued(folder, name, whole):
    """Continue the run in the file "parts.h5", and compare bits of its end and of all its snapshots with one run."""
    state = restart(folder / "parts.h5")
    assert state.steps == stop_at(name, whole)
    rest = recorded(folder / "parts.h5", name, state, resume=True)
    assert (rest.steps, rest.rejected) == (whole.steps, whole.rejected)
    assert rest.message == whole.message
    assert rest.u[-1].tobytes() == whole.u[-1].tobytes()
    one, parts = read(folder / "whole.h5"), read(folder / "parts.h5")
    assert parts.times.tolist() == one.times.tolist()
    for field in one.fields:
        for k in range(len(one.times)):
            assert parts.field(field, k).tobytes() == one.field(field, k).tobytes()


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_and_continued_run_has_the_bits_of_one_run(tmp_path, name):
    whole = recorded(tmp_path / "whole.h5", name)
    assert ("implicit (stiff)" in whole.message) == (name in ("trial", "growth", "changed"))
    recorded(tmp_path / "parts.h5", name, stop=lambda state: state.steps == stop_at(name, whole))
    assert_continued(tmp_path, name, whole)


def run_killed(path, name, steps):
    def stop(state):
        if state.steps == steps:
            os.kill(os.getpid(), signal.SIGKILL)

    recorded(path, name, stop=stop, checkpoint=0.0)


@pytest.mark.parametrize("name", ["ssp3", "nonlinear"])
def test_a_killed_and_continued_run_has_the_bits_of_one_run(tmp_path, name):
    whole = recorded(tmp_path / "whole.h5", name)
    arguments = tmp_path / "parts.h5", name, stop_at(name, whole)
    process = multiprocessing.get_context("fork").Process(target=run_killed, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert_continued(tmp_path, name, whole)


@pytest.mark.parametrize("name", ["ssp3", "density", "ark4"])
def test_an_interrupted_run_continues_from_its_first_step_to_the_bits_of_one_run(tmp_path, name):
    """Ctrl-C within the first minute, after the second snapshot, leaves no later checkpoint."""
    whole, end = recorded(tmp_path / "whole.h5", name), CASES[name][3]

    def interrupt(state):
        if state.time > 0.4 * end:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded(tmp_path / "parts.h5", name, stop=interrupt)
    state = restart(tmp_path / "parts.h5")
    assert state.steps == 1
    rest = recorded(tmp_path / "parts.h5", name, state, resume=True)
    assert rest.steps == whole.steps
    assert rest.u[-1].tobytes() == whole.u[-1].tobytes()


def test_a_state_outside_the_run_is_refused():
    with pytest.raises(ValueError, match=r"u0 is a state at t = 2.0: expected 0 <= t < 2, as t_span has"):
        solve(HEAT, State(2.0, SMOOTH), (0.0, 2.0))


@pytest.mark.parametrize(("times", "stored"), [([0.1, 0.3, 0.4], [0.3, 0.4]), ([0.1], [0.4])])
def test_a_continued_run_stores_the_times_from_its_state_on_or_its_end(times, stored):
    found = solve(HEAT, State(0.2, SMOOTH), (0.0, 0.4), times=times)
    assert found.t.tolist() == stored


def test_a_file_without_checkpoints_is_continued_from_its_last_snapshot(tmp_path):
    recorded(tmp_path / "u.h5", "ssp3", checkpoint=np.inf, stop=lambda state: state.time > 0.5)
    state = restart(tmp_path / "u.h5")
    assert (state.time, state.method_state) == (0.4, {})


def test_a_run_that_stops_at_a_negative_time_is_continued(tmp_path):
    path, span = tmp_path / "u.h5", (-1.0, 1.0)
    with record(path, CIRCLE, every=1.0) as recorder:
        solve(HEAT, SMOOTH, span, callbacks=[recorder, lambda state: state.time > -0.5])
    assert -0.5 < restart(path).time < 0
    assert solve(HEAT, restart(path), span).u[-1].tobytes() == solve(HEAT, SMOOTH, span).u[-1].tobytes()
