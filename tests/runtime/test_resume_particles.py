"""Runs with particles, also handed over to atoms, interrupted after any step: they continue bit for bit."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from support.status import DONE, INTERRUPTED, resume, run

from meanfield import running
from meanfield.analysis.info import describe
from meanfield.analysis.mergers import report
from meanfield.case.load import parse
from meanfield.runtime.signals import Stop
from solvers.io.run_file import FileError, RunFile, read

TOKENS = """
[domain]
manifold = "particles"
count = 12
[attention]
beta = 4.0
[initial]
kind = "uniform"
[time]
end = 4.0
[output]
snapshots = 8
samples = 16
"""
HANDED = """
[domain]
manifold = "circle"
resolution = 64
[attention]
beta = 6.0
[initial]
kind = "points"
points = [[1.0, 0.0], [-0.4, 0.9], [-0.6, -0.8]]
masses = [0.5, 0.3, 0.2]
[handover]
[time]
end = 1e6
[output]
spacing = "log"
first = 0.05
snapshots = 12
samples = 40
"""
CASES = {
    "adaptive": (TOKENS, []),
    "sobol": (TOKENS, ["initial.sampling=sobol"]),
    "quantiles": (TOKENS, ["initial.sampling=quantiles"]),
    "noise": (TOKENS, ["stabilizers.noise=0.1"]),
    "ssprk3": (TOKENS, ["time.method=ssprk3"]),
    "layers": (TOKENS, ["time.method=layers", "time.layers=16", "time.step=0.25"]),
    "radius": (TOKENS, ["stabilizers.layer_norm=pre"]),
    "sequence": (TOKENS, ["sequence={diffusion = 0.001}"]),
    "sequence, ssprk3": (TOKENS, ["sequence={diffusion = 0.001}", "time.method=ssprk3"]),
    "handed over": (HANDED, []),
    "handed over, tokens": (TOKENS, ["handover={}", "time.end=200", "output.spacing=log", "output.samples=40"]),
}


class StopAfter(Stop):
    """Replacement of the object of ``stop_on_signal``, with a signal before check number ``after``."""

    def __init__(self, after):
        super().__init__()
        self.after, self.looks = after, 0

    def __bool__(self):
        self.looks += 1
        return self.looks > self.after


@pytest.mark.sampled
@pytest.mark.parametrize("steps", [0, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_goes_on_to_the_bit(name, steps, tmp_path, monkeypatch):
    text, changes = CASES[name]
    case = parse(text, changes)
    assert run(case, tmp_path / "whole.h5", quiet=True) == DONE
    whole, path = read(tmp_path / "whole.h5"), tmp_path / "run.h5"

    @contextmanager
    def stops(show=None):
        yield StopAfter(steps)

    with monkeypatch.context() as patch:
        patch.setattr(running, "stop_on_signal", stops)
        assert run(case, path, quiet=True) == INTERRUPTED
        stopped = read(path)
        assert 0 < stopped.snapshots < whole.snapshots
        assert describe(path)["state"] == "interrupted"
    assert resume(path, quiet=True) == DONE
    found = read(path)
    assert found.times.tobytes() == whole.times.tobytes()
    assert found.sample_times.tobytes() == whole.sample_times.tobytes()
    for k in range(whole.snapshots):
        assert found.snapshot(k).tobytes() == whole.snapshot(k).tobytes()
    for column, values in whole.diagnostics.items():
        assert found.diagnostics[column].tobytes() == values.tobytes(), column
    assert bool(whole.events) == name.startswith("handed over")
    assert {column: values.tobytes() for column, values in found.events.items()} == {
        column: values.tobytes() for column, values in whole.events.items()
    }
    for mark in ("hand_over_time", "hand_over_error", "hand_over_angle"):
        assert (mark in found.attributes) == name.startswith("handed over")
        assert repr(found.attributes.get(mark)) == repr(whole.attributes.get(mark))  # in repr NaN equals NaN


@pytest.mark.parametrize("name", ["adaptive", "noise", "ssprk3", "layers", "sequence"])
def test_ended_at_once_before_the_first_checkpoint_in_time(name, tmp_path, monkeypatch):
    """A run is ended within the first minute: a step of tokens depends on more than a snapshot holds."""
    text, changes = CASES[name]
    case = parse(text, changes)
    assert run(case, tmp_path / "whole.h5", quiet=True) == DONE
    whole, path, write = read(tmp_path / "whole.h5"), tmp_path / "run.h5", RunFile.write_snapshot

    def write_three(file, *arguments, **options):
        write(file, *arguments, **options)
        if file.snapshots == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFile, "write_snapshot", write_three)
        assert run(case, path, quiet=True) == INTERRUPTED
    assert read(path).snapshots == 3
    assert resume(path, quiet=True) == DONE
    found = read(path)
    assert found.times.tobytes() == whole.times.tobytes()
    assert [found.snapshot(k).tobytes() for k in range(9)] == [whole.snapshot(k).tobytes() for k in range(9)]


def test_handover_is_marked_and_mergers_are_samples(tmp_path):
    path = tmp_path / "run.h5"
    assert run(parse(HANDED), path, quiet=True) == DONE
    file = read(path)
    assert 0 < file.attributes["hand_over_time"] < 10
    assert 0 <= file.attributes["hand_over_angle"] < 0.01  # a tenth of a cell's width, 2π/64
    clusters, mass = file.diagnostics["clusters"], file.diagnostics["cluster_mass"]
    assert list(np.unique(clusters)) == [1, 2, 3]
    assert len(file.sample_times) == 41 + 2 + 2  # of the schedule, at two mergers, and at two contacts of atoms
    assert list(np.unique(file.diagnostics["atoms"])) == [0, 1, 2, 3]
    assert np.abs(np.nansum(mass, axis=1) - 1).max() < 1e-12
    assert np.nanmax(np.abs(file.density(-1) @ file.cell_areas - 1)) < 1e-12


KILLED_AT_AN_EVENT = """
import os, sys
from meanfield.case.load import parse
from meanfield.running import run
from solvers.io.run_file import RunFile
write = RunFile.write_event
def write_and_die(file, *row):
    write(file, *row)
    if file.events == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
RunFile.write_event = write_and_die
run(parse(sys.stdin.read()), sys.argv[1])
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the file of an uninterrupted run with a handover."""
    path = tmp_path_factory.mktemp("whole") / "whole.h5"
    assert run(parse(HANDED), path, quiet=True) == DONE
    return read(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("events", [2, 3, 4, 5])
def test_events_after_the_checkpoint_are_found_again(events, whole, tmp_path):
    """The kills are among the events of the handover, after them, and after each merger, with a checkpoint of time 0
    alone."""
    path = tmp_path / "run.h5"
    assert len(whole.events["time"]) == 5
    command = [sys.executable, "-c", KILLED_AT_AN_EVENT, str(path), str(events)]
    assert subprocess.run(command, input=HANDED, text=True, check=False).returncode == -signal.SIGKILL
    assert len(read(path).events["time"]) == events
    assert describe(path)["state"] == "killed"
    assert resume(path, quiet=True) == DONE
    found = read(path)
    for name, values in whole.events.items():
        assert found.events[name].tobytes() == values.tobytes(), name
    assert found.sample_times.tobytes() == whole.sample_times.tobytes()
    assert report(found) == report(whole)


def test_files_tell_particles_from_densities(tmp_path):
    path = tmp_path / "run.h5"
    assert run(parse(TOKENS), path, quiet=True) == DONE
    file = read(path)
    assert (file.manifold, file.resolution, file.cells) == ("particles", 12, 0)
    assert file.positions(-1).shape == (12, 3)
    assert file.weights.sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(FileError, match="holds particles: expected a file with a density"):
        file.density(0)
    other = tmp_path / "other.h5"
    assert run(parse(HANDED, ["time.end=0.1"]), other, quiet=True) == DONE
    with pytest.raises(FileError, match="holds a density: expected a file with particles"):
        read(other).positions(0)


def test_particles_open_in_xarray(tmp_path):
    """The layout is netCDF-4's: token and d are dimensions, units and names are present."""
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.h5"
    assert run(parse(TOKENS), path, quiet=True) == DONE
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data["position"].dims == ("time", "token", "d")
        assert data["weight"].dims == ("token",)
        assert data["position"].attrs["long_name"]
        assert data.sizes["token"] == 12


@pytest.mark.parametrize("text", [TOKENS, HANDED])
def test_an_end_of_its_own_is_kept(text, tmp_path):
    """`resume --until TIME` leaves a snapshot and a sample at TIME, between the schedule's, and continues from TIME."""
    path = tmp_path / "run.h5"
    case = parse(text, ["time.end=1.0", "output.spacing=linear"])
    assert run(case, path, quiet=True) == DONE
    assert resume(path, until=1.3141, quiet=True) == DONE
    file = read(path)
    assert file.times[-1] == file.sample_times[-1] == 1.3141
    assert resume(path, until=2.0, quiet=True) == DONE
    file = read(path)
    assert file.times[-1] == 2.0
    assert np.diff(file.times).min() > 0
    assert 1.3141 in file.times
