"""Call frames between a run and the sum u + dt·L: few enough to read a traceback, or to step through."""

import sys

import pytest

from meanfield import running
from meanfield.case.load import load
from meanfield.runtime.signals import Stop
from meanfield.simulation import set_up
from solvers.terms.advection import Advection

MAX_FRAMES = 8  # a run is a batch of one: the integrator of rows and its equation of one density are two of them


def frames_above(caller):
    """Return the names of the functions from ``caller`` down to the one that asks for a term's rate."""
    names, frame = [], sys._getframe(2)
    while frame.f_code is not caller.__code__:
        names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return [caller.__qualname__, *reversed(names)]


@pytest.mark.parametrize(
    "name", ["growth_circle", "layer_norm_pre", "blow_up_line", "collapse_high_dimension", "metastable_circle"]
)
def test_few_frames_from_a_run_to_the_sum(name, tmp_path, monkeypatch):
    """The sum is formed where the terms' rates are requested; a free radius has a product of advections at that
    place."""
    rate, seen = Advection.rate, []

    def looking(term, dt, values):
        frames = frames_above(running.run)
        seen.append(frames[:-1] if frames[-1] == "ProductAdvection.rate" else frames)
        rate(term, dt, values)

    monkeypatch.setattr(Advection, "rate", looking)
    changes = ["time.end=1e-3", "output.first=1e-4"] if name == "metastable_circle" else ["time.end=1e-3"]
    assert running.run(load(name, changes), tmp_path / "run.h5", quiet=True) is None
    assert seen
    assert {frames[-1] for frames in seen} <= {"Stepper.step", "rates_of"}  # the second is that of the error's moments
    longest = max((frames for frames in seen if frames[-1] == "Stepper.step"), key=len)
    assert len(longest) <= MAX_FRAMES, " → ".join(longest)


class InMemory:
    """A recorder that keeps only the times of steps, and requests an end after some."""

    observers = ()

    def __init__(self):
        self.times, self.errors = [], []

    def compiling(self):
        return self

    def after_step(self, state):
        self.times.append(state.time)

    def stop_when(self, stopping):
        pass

    def end(self, state):
        self.times.append(state.time)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.errors.append(error)


def test_a_recorder_may_keep_its_run_in_memory():
    case = load("growth_circle", ["time.end=0.5"])
    problem, recorder = set_up(case), InMemory()
    state = running.new_start(problem).state
    running.evolve(problem, state, case.time.end, recorder)
    assert state.time == recorder.times[-1] == 0.5
    assert recorder.errors == [None, None]  # the errors of the compilation, and of the run


def test_an_interrupt_is_raised_with_its_time(monkeypatch):
    class Stopped(Stop):
        def __bool__(self):
            return True

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(running, "stop_on_signal", Stopped)
    case = load("growth_circle", ["time.end=0.5"])
    problem, recorder = set_up(case), InMemory()
    with pytest.raises(running.Interrupted, match="interrupted at time"):
        running.evolve(problem, running.new_start(problem).state, case.time.end, recorder)
    assert isinstance(recorder.errors[-1], running.Interrupted)
    assert str(recorder.errors[-1]) == f"interrupted at time {recorder.times[0]:.6g}"
    assert recorder.times[0] > 0
