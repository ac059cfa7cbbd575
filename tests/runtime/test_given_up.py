"""Samples that a signal cancels: no further diagnostic is computed, and the run continues with the same numbers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from support.status import DONE, INTERRUPTED, resume, run

from meanfield.analysis.info import describe
from meanfield.case.load import load
from meanfield.diagnostics.table import Diagnostics, DiagnosticsTogether
from solvers.io.run_file import read
from solvers.timestepping.integrate import fixed, integrate
from solvers.timestepping.observers import Cancelled, Observer
from solvers.timestepping.schedules import Listed
from solvers.timestepping.state import State, StepResult

SAMPLED = ["output.samples=40", "output.snapshots=4", 'output.diagnostics=["mass","energy","clusters"]']
TOKENS = ["domain.count=8", "domain.dimension=3", "time.end=4", *SAMPLED]
CASES = {
    "in steps of tokens": ("tokens_high_dimension", TOKENS),
    "in steps of a density": ("growth_circle", ["domain.resolution=48", "time.end=2", *SAMPLED]),
    "after layers": ("representation_drift", ["domain.count=32", "time.layers=40", *SAMPLED]),
}


@pytest.fixture
def signal_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Send Ctrl-C in the energy of the n-th sample, n the first item; then list the samples whose clusters follow."""
    seen, values = [0], Diagnostics.values

    def signalling(self: Diagnostics, sample: object, *rest: object) -> dict[str, object]:
        def energy(sample: object, entry=self.table["energy"]) -> object:
            seen[0] -= 1
            if seen[0] == 0:
                os.kill(os.getpid(), signal.SIGINT)
            return entry.function(sample)

        def clusters(sample: object, entry=self.table["clusters"]) -> object:
            seen.append(seen[0])
            return entry.function(sample)

        entries = {name: self.table[name] for name in self.names}
        for name, function in (("energy", energy), ("clusters", clusters)):
            if name in entries:
                entries[name] = entries[name]._replace(function=function)
        return values(Diagnostics(self.names, entries, self.lengths, self.sample_of), sample, *rest)

    monkeypatch.setattr(Diagnostics, "values", signalling)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_COST", 0.0)  # every sample takes long
    return seen


@pytest.mark.sampled
@pytest.mark.parametrize("at", [1, 12])
@pytest.mark.parametrize("kind", CASES)
def test_a_signal_within_a_sample_gives_it_up(kind: str, at: int, tmp_path: Path, signal_in: list[int]) -> None:
    case, path, whole = load(*CASES[kind]), tmp_path / "run.h5", tmp_path / "whole.h5"
    assert run(case, whole, quiet=True) == DONE
    signal_in[:] = [at]
    assert run(case, path, quiet=True) == INTERRUPTED
    assert signal_in[1:] == [*range(at - 1, 0, -1)]  # no clusters for the sample of the signal
    facts = describe(path)
    assert facts["state"] == "interrupted"
    assert read(path).times[-1] <= facts["last_time"] < case.time.end
    assert resume(path, quiet=True) == DONE
    one, other = read(whole), read(path)
    assert one.times.tolist() == other.times.tolist()
    assert one.sample_times.tolist() == other.sample_times.tolist()
    assert one.snapshot(-1).tobytes() == other.snapshot(-1).tobytes()
    for name, values in one.diagnostics.items():
        assert values.tobytes() == other.diagnostics[name].tobytes(), name


def test_the_last_sample_is_not_given_up(tmp_path: Path, signal_in: list[int]) -> None:
    """The run has reached its end, and could not continue with the sample."""
    path = tmp_path / "run.h5"
    signal_in[:] = [41]
    assert run(load("tokens_high_dimension", TOKENS), path, quiet=True) == DONE
    assert len(read(path).sample_times) == 41


LONG = {  # for each long diagnostic a function that it calls internally
    "clusters": "meanfield.clusters.among_tokens._cover",
    "modes": "meanfield.clusters.modes.exponential_sums",
    "pairs": "solvers.backends.cpu.bin_pairs",
    "leaders": "meanfield.domains.particles.diagnostics.apply_factor",
}


@pytest.mark.parametrize("name", LONG)
def test_a_signal_within_a_long_diagnostic_gives_it_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal cancels the diagnostic itself, which would otherwise complete, and its sample would be written."""
    changes = [*TOKENS, "domain.count=40", "domain.dimension=5", f'output.diagnostics=["{name}"]']
    case, path, whole = load("tokens_high_dimension", changes), "a.h5", "b.h5"
    function, times = resolve_name(LONG[name]), [0]

    def signalling(*arguments: object, **options: object) -> object:
        times[0] += 1
        if times[0] == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("meanfield.clusters.pairs.BLOCK", 2)
    monkeypatch.setattr("meanfield.clusters.among_tokens.FEW_TOKENS", 0)
    assert run(case, Path(whole), quiet=True) == DONE
    monkeypatch.setattr(LONG[name], signalling)
    assert run(case, Path(path), quiet=True) == INTERRUPTED
    assert len(read(path).sample_times) == 0
    assert resume(Path(path), quiet=True) == DONE
    assert read(path).diagnostics[name].tobytes() == read(whole).diagnostics[name].tobytes()


def test_a_signal_while_samples_that_waited_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples take milliseconds and are written; the run ends after its step, and continues with the same
    numbers."""
    case, path, whole = load(*CASES["in steps of a density"]), tmp_path / "run.h5", tmp_path / "whole.h5"
    of_states, found = DiagnosticsTogether.of_states, list[int]()

    def signalling(self: DiagnosticsTogether, times: list[float], states: list[np.ndarray]) -> object:
        found.append(len(times))
        if len(found) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return of_states(self, times, states)

    monkeypatch.setattr("meanfield.runtime.recorder.MAX_COST", np.inf)  # all samples wait, however slow the machine
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_SAMPLES", 4)
    assert run(case, whole, quiet=True) == DONE
    monkeypatch.setattr(DiagnosticsTogether, "of_states", signalling)
    assert run(case, path, quiet=True) == INTERRUPTED
    assert found[0] > 1
    assert len(read(path).sample_times) == sum(found) < 41
    assert resume(path, quiet=True) == DONE
    one, other = read(whole), read(path)
    assert one.snapshot(-1).tobytes() == other.snapshot(-1).tobytes()
    for name, values in one.diagnostics.items():
        assert values.tobytes() == other.diagnostics[name].tobytes(), name


class Doubling:
    """Integrator that adds 1 to time and values in each step, interpolated or not."""

    ends_at_restarts = False

    def begin(self, state: State) -> None:
        pass

    def step(self, state: State, target: float) -> StepResult:
        state.time, state.values[...] = state.time + 1.0, state.values + 1.0
        return StepResult()


class Interpolated(Doubling):
    def interpolate(self, time: float) -> np.ndarray:
        return np.array([time])


@pytest.mark.parametrize(("integrator", "due", "expected"), [(Interpolated(), 2.5, 2.0), (Doubling(), 3.0, 3.0)])
def test_the_state_that_a_loop_goes_on_from(integrator: Doubling, due: float, expected: float) -> None:
    """A loop that interpolates continues from the state before the step, and observes the due time again."""
    times: list[float] = []

    def observed(state: State) -> None:
        times.append(state.time)
        if len(times) == 1:
            raise Cancelled

    state, observer = State(0.0, np.zeros(1)), Observer(observed, Listed((due,)))
    with pytest.raises(Cancelled):
        integrate(state, fixed(integrator), 5.0, [observer], stopping=lambda: False)
    assert (state.time, state.values[0]) == (expected, expected)
    integrate(state, fixed(integrator), 5.0, [observer], stopping=lambda: False)
    assert times == [due, due]
    assert (state.time, state.values[0]) == (5.0, 5.0)
