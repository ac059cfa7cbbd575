"""Whole runs: interrupted, killed, resumed, extended, failed; their files and exit statuses."""

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time as clock
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import numpy as np
import pytest
from support.noisy_circle import SECTIONS
from support.status import DONE, INTERRUPTED, NON_FINITE, resume, run

from meanfield.analysis.info import describe
from meanfield.case.errors import CaseError
from meanfield.case.load import parse, to_toml
from meanfield.equation import Velocity
from meanfield.figures.captions import describe_state
from meanfield.runtime.progress import Progress
from meanfield.runtime.remaining import RemainingTime
from meanfield.runtime.segments import read_segments
from solvers.io.checkpoint import Checkpoints
from solvers.io.run_file import FileError, RunFile, read

CASE = f"""
title = "A small case"
{SECTIONS}
[time]
end = 4.0
[output]
snapshots = 8
samples = 40
"""
PATIENCE = 300.0  # seconds for a process to start, compile and end: it takes a few, but machines are shared
LONG = ["time.end=1e6", "output.snapshots=1000000", "output.samples=2000000"]  # no test waits for its end


def assert_same(one, other):
    """Assert equal snapshots and diagnostics, bit for bit."""
    np.testing.assert_array_equal(one.times, other.times)
    np.testing.assert_array_equal(one.sample_times, other.sample_times)
    for k in range(one.snapshots):
        np.testing.assert_array_equal(one.density(k), other.density(k))
    assert one.diagnostics.keys() == other.diagnostics.keys()
    for name, values in one.diagnostics.items():
        np.testing.assert_array_equal(values, other.diagnostics[name], err_msg=name)


def start(tmp_path, *overrides):
    """Start `meanfield run` of the case as a process that writes run.h5, and return it with the file's path."""
    (tmp_path / "case.toml").write_text(CASE)
    path = tmp_path / "run.h5"
    sets = [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, "-m", "meanfield", "run", str(tmp_path / "case.toml"), "-o", str(path), *sets]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path), path


def wait_for(condition, process, seconds=PATIENCE):
    """Wait, also for the kernels to compile, until the condition holds while the process runs."""
    deadline = clock.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert clock.monotonic() < deadline
        clock.sleep(0.02)


def has_snapshots(path, count):
    return path.exists() and read(path).snapshots >= count


@pytest.fixture
def interrupt_after(monkeypatch):
    """Return a function that sends SIGINT to a run, as Ctrl-C does, at evaluation number ``evaluations`` of its
    velocity."""

    def arm(evaluations):
        left = [evaluations]

        def counting(velocity):
            def counted(self, *arguments):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGINT)
                return velocity(self, *arguments)

            return counted

        for name in ("__call__", "along_rings"):  # in space, and along the rings of a sphere
            monkeypatch.setattr(Velocity, name, counting(getattr(Velocity, name)))

    return arm


@pytest.fixture
def lose_velocity(monkeypatch):
    """Return a function that makes the velocity NaN after a given model time."""
    velocity = Velocity.__call__

    def arm(after):
        def losing(self, time, density):
            found = velocity(self, time, density)
            return np.full_like(found, np.nan) if time > after else found

        monkeypatch.setattr(Velocity, "__call__", losing)

    return arm


@pytest.mark.parametrize("manifold", ["circle", "sphere"])
@pytest.mark.parametrize("method", ["ssprk3", "ssprk2"])
def test_interrupted_and_resumed_is_the_uninterrupted_run(tmp_path, interrupt_after, capsys, manifold, method):
    resolution = {"circle": 64, "sphere": 16}[manifold]
    case = parse(CASE, [f"domain.manifold={manifold}", f"domain.resolution={resolution}", f"time.method={method}"])
    assert run(case, tmp_path / "whole.h5", quiet=True) == DONE
    interrupt_after(100)
    assert run(case, tmp_path / "parts.h5", quiet=True) == INTERRUPTED
    before = describe(tmp_path / "parts.h5")
    assert before["state"] == "interrupted"
    assert 0 < before["last_time"] < case.time.end
    assert f"meanfield resume {tmp_path / 'parts.h5'}" in capsys.readouterr().err
    assert resume(tmp_path / "parts.h5", quiet=True) == DONE
    assert_same(read(tmp_path / "whole.h5"), read(tmp_path / "parts.h5"))
    assert read(tmp_path / "parts.h5").attributes["stop_reason"] == "finished"


def test_interrupted_again_and_again(tmp_path, interrupt_after):
    case = parse(CASE)
    run(case, tmp_path / "whole.h5", quiet=True)
    interrupt_after(30)
    status, rounds = run(case, tmp_path / "parts.h5", quiet=True), 1
    while status == INTERRUPTED:
        interrupt_after(50)
        status, rounds = resume(tmp_path / "parts.h5", quiet=True), rounds + 1
    assert status == DONE
    assert rounds > 3
    assert_same(read(tmp_path / "whole.h5"), read(tmp_path / "parts.h5"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_from_outside(tmp_path, number):
    """The status is 130 soon after Ctrl-C or a batch system's SIGTERM; the file is whole and continues where it
    stopped."""
    process, path = start(tmp_path, *LONG)
    wait_for(lambda: has_snapshots(path, 5), process)
    process.send_signal(number)
    assert process.wait(PATIENCE) == INTERRUPTED
    assert "meanfield resume" in process.stderr.read()
    facts = describe(path)
    assert facts["state"] == "interrupted"
    stopped = facts["last_time"]
    assert resume(path, until=stopped + 1.0, quiet=True) == DONE
    assert read(path).sample_times[-1] >= stopped + 0.5
    assert np.all(np.diff(read(path).times) > 0)


def test_killed_and_resumed_is_the_uninterrupted_run(tmp_path):
    """SIGKILL leaves no time for any action: data after the last checkpoint are cut off and computed again."""
    process, path = start(tmp_path, *LONG, "output.checkpoint=0.05")
    checkpoints = Checkpoints(path)
    wait_for(lambda: has_snapshots(path, 5) and path.with_name("run.h5.checkpoint-1").exists(), process)
    process.kill()
    process.wait(PATIENCE)
    facts = describe(path)
    assert facts["state"] == "killed"
    assert "meanfield resume" in facts["next"]
    reached = float(checkpoints.read()[1]["time"])
    assert reached > 0
    until = math.ceil(reached) + 1.0  # a time of the schedules: a run that ends between two of them steps differently
    assert resume(path, until=until, quiet=True) == DONE
    short = parse(CASE, [f"time.end={until}", f"output.snapshots={until:.0f}", f"output.samples={2 * until:.0f}"])
    assert run(short, tmp_path / "whole.h5", quiet=True) == DONE
    assert_same(read(tmp_path / "whole.h5"), read(path))


def test_until_goes_beyond_the_end_of_the_case(tmp_path):
    case = parse(CASE, ["time.end=2.0", "output.snapshots=4", "output.samples=20"])
    assert run(case, tmp_path / "parts.h5", quiet=True) == DONE
    assert resume(tmp_path / "parts.h5", until=4.0, quiet=True) == DONE
    assert run(parse(CASE), tmp_path / "whole.h5", quiet=True) == DONE
    assert_same(read(tmp_path / "whole.h5"), read(tmp_path / "parts.h5"))


def test_until_before_what_is_reached_is_refused(tmp_path):
    run(parse(CASE), tmp_path / "run.h5", quiet=True)
    before = (tmp_path / "run.h5").read_bytes()
    with pytest.raises(CaseError, match=r"until = 1: .* has reached time 4 already; nothing was done"):
        resume(tmp_path / "run.h5", until=1.0, quiet=True)
    assert (tmp_path / "run.h5").read_bytes() == before


def test_the_lock_of_a_writer_killed_after_its_last_word_goes(tmp_path):
    run(parse(CASE), tmp_path / "run.h5", quiet=True)
    lock = tmp_path / "run.h5.lock"
    lock.write_text("process 4000000 on a node")
    assert resume(tmp_path / "run.h5", quiet=True) == DONE
    assert not lock.exists()
    lock.write_text("notes of mine")
    assert resume(tmp_path / "run.h5", quiet=True) == DONE
    assert lock.read_text() == "notes of mine"


def test_until_may_be_a_number_of_numpy(tmp_path):
    run(parse(CASE), tmp_path / "run.h5", quiet=True)
    assert resume(tmp_path / "run.h5", until=np.float64(5.0), quiet=True) == DONE


@pytest.fixture
def interrupted(tmp_path, interrupt_after):
    """Return the file of a run of the case that has stopped midway."""
    interrupt_after(100)
    assert run(parse(CASE), tmp_path / "run.h5", quiet=True, command="meanfield run") == INTERRUPTED
    interrupt_after(10**9)
    return tmp_path / "run.h5"


def test_changed_settings_hold_from_there_on_and_are_recorded(interrupted):
    stopped = float(Checkpoints(interrupted).read()[1]["time"])
    before = read(interrupted)
    assert resume(interrupted, changes=["attention.beta=1", "stabilizers.noise=0.5"], quiet=True, command="me") == DONE
    after = read(interrupted)
    assert_beginning(before, after)
    assert after.attributes["case"] == before.attributes["case"]
    first, second = read_segments(after.attributes)
    assert (first.from_time, first.until, first.command, first.changes) == (0.0, 4.0, "meanfield run", [])
    assert (second.from_time, second.until, second.command) == (stopped, 4.0, "me")
    assert second.changes == ["attention.beta=1", "stabilizers.noise=0.5"]
    assert parse(second.case) == parse(CASE, second.changes)
    assert second.versions.startswith("python 3")
    assert describe(interrupted)["beta"] == 1.0
    last = after.density(-1)
    assert last.max() / last.min() < 1.3  # this noise dissolves the clusters; without it the ratio is above 1e3
    assert before.density(-1).max() / before.density(-1).min() > 1.3


def assert_beginning(one, other):
    """Assert that all of one file's snapshots and diagnostics are in the other."""
    np.testing.assert_array_equal(one.times, other.times[: one.snapshots])
    for k in range(one.snapshots):
        np.testing.assert_array_equal(one.density(k), other.density(k))
    for name, values in one.diagnostics.items():
        np.testing.assert_array_equal(values, other.diagnostics[name][: len(values)], err_msg=name)


def test_a_changed_setting_outlives_a_further_stop(interrupted, interrupt_after):
    """A change given to resume holds for the next resume too, even if the run is killed immediately."""
    interrupt_after(1)
    assert resume(interrupted, changes=["attention.beta=1"], quiet=True) == INTERRUPTED
    interrupt_after(10**9)
    assert resume(interrupted, quiet=True) == DONE
    cases = [parse(segment.case).attention.beta for segment in read_segments(read(interrupted).attributes)]
    assert cases == [6.0, 1.0, 1.0]


def test_the_same_change_at_the_start_is_the_same_run(tmp_path, interrupt_after):
    """The former settings have no effect: changed before the first step, the run is that of the changed case."""
    changes = ["attention.beta=3", "time.cfl=0.2", "time.method=ssprk2", "output.snapshots=16", "output.samples=10"]
    path = tmp_path / "parts.h5"
    run(parse(CASE), path, quiet=True)
    RunFile.append(path, snapshots=0, samples=0).close(stop_reason="interrupted")
    assert resume(path, changes=changes, quiet=True) == DONE
    run(parse(CASE, changes), tmp_path / "whole.h5", quiet=True)
    assert_same(read(tmp_path / "whole.h5"), read(path))


def test_other_schedules_begin_where_the_run_is(interrupted):
    """No snapshot is doubled or out of order, and none due in both schedules is omitted."""
    before = read(interrupted)
    reached = float(Checkpoints(interrupted).read()[1]["time"])
    assert resume(interrupted, changes=["output.every=0.25", "output.samples=80", "time.end=5"], quiet=True) == DONE
    after = read(interrupted)
    later = 0.25 * np.arange(21)
    np.testing.assert_array_equal(after.times, [*before.times, *later[later > reached]])
    assert np.all(np.diff(after.sample_times) > 0)
    assert after.times[-1] == 5.0


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("domain.resolution=128", "domain"),
        ("domain.manifold=sphere", "domain"),
        ("initial.seed=8", "initial"),
        ("output.diagnostics=['mass']", "output.diagnostics"),
    ],
)
def test_what_cannot_change_within_a_run(interrupted, change, key):
    before = interrupted.read_bytes()
    with pytest.raises(CaseError) as refused:
        resume(interrupted, changes=["attention.beta=3", change])
    assert str(refused.value) == f"{change}: {key} cannot change within a run; `meanfield run` starts another"
    assert interrupted.read_bytes() == before


def test_an_extension_that_was_broken_off_goes_on_to_its_end(interrupted, interrupt_after):
    interrupt_after(1)
    assert resume(interrupted, until=6.0, quiet=True) == INTERRUPTED
    interrupt_after(10**9)
    assert resume(interrupted, quiet=True) == DONE
    assert read(interrupted).times[-1] == 6.0


@pytest.mark.sampled
@pytest.mark.parametrize("later", [False, True], ids=["no checkpoint", "later checkpoint"])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_without_a_checkpoint_of_its_rows_a_file_is_continued_from_its_last_snapshot(tmp_path, rows, later, capsys):
    """A run killed before the first checkpoint, moved without it, or restored from an older copy keeps its rows."""
    run(parse(CASE), tmp_path / "whole.h5", quiet=True)
    path = tmp_path / "moved" / "run.h5"
    path.parent.mkdir()
    shutil.copy(tmp_path / "whole.h5", path)
    RunFile.append(path, snapshots=rows).close(stop_reason="interrupted")
    if later:
        arrays, scalars = Checkpoints(tmp_path / "whole.h5").read()
        Checkpoints(path).write({**arrays, "values": read(tmp_path / "whole.h5").snapshot(-1)}, scalars)
    assert resume(path, quiet=True) == DONE
    reason = "the checkpoint is later than the file" if later else "no checkpoint"
    source = "computed again from the initial density" if rows == 0 else "continuing from the last snapshot, t = "
    time = "" if rows == 0 else f"{rows / 2 - 0.5:g}"
    assert capsys.readouterr().err.rstrip().endswith(f"{reason}: {source}{time}")
    assert_same(read(tmp_path / "whole.h5"), read(path))


@pytest.mark.parametrize("changes", [[], ["domain.labels=3", "attention.mask=causal"]], ids=["snapshot", "labels"])
def test_a_run_leaves_its_file_alone_and_goes_on_from_it_bit_for_bit(tmp_path, changes):
    """The last state is in the file: as its last snapshot, or beside the snapshots where these are not a full state."""
    path, whole = tmp_path / "run.h5", tmp_path / "whole.h5"
    for target, end in ((path, 1.0), (whole, 2.0)):
        schedule = ["output.every=0.5", f"time.end={end}", f"output.samples={2 * int(end)}"]
        assert run(parse(CASE, [*changes, *schedule]), target, quiet=True) == DONE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5", "whole.h5"]
    arrays, scalars = Checkpoints(path).read()
    assert (set(arrays), scalars["time"]) == ({"values"} if changes else set(), 1.0)
    assert resume(path, until=2.0, quiet=True) == DONE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.h5", "whole.h5"]
    assert read(path).snapshot(-1).tobytes() == read(whole).snapshot(-1).tobytes()


def test_a_checkpoint_beside_a_file_counts_before_that_within(tmp_path):
    """Files of earlier versions have their checkpoints beside them, and so has a killed run."""
    path = tmp_path / "run.h5"
    run(parse(CASE, ["time.end=1"]), path, quiet=True)
    arrays, scalars = Checkpoints(path).read()
    Checkpoints(path).write({"values": read(path).snapshot(-1)}, scalars | {"steps": 12345})
    assert Checkpoints(path).read()[1]["steps"] == 12345
    RunFile.append(path).close()
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    assert Checkpoints(path).read()[1]["steps"] == 12345
    assert not arrays


def test_runs_outside_the_main_thread(tmp_path):
    """Signals are for the main thread alone, but a thread of a notebook or of a worker has to run, too."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, parse(CASE), tmp_path / "run.h5", quiet=True).result() == DONE


def test_a_finished_run_has_nothing_to_resume(tmp_path, capsys):
    path = tmp_path / "run.h5"
    run(parse(CASE), path, quiet=True)
    before = path.read_bytes()
    assert resume(path, quiet=True) == DONE
    assert "--until" in capsys.readouterr().err
    assert path.read_bytes() == before


SHARP = ("attention.beta=1e4", 'attention.key={ensemble = "ginibre"}')


@pytest.mark.parametrize("manifold", ["circle", "particles"])
def test_sinkhorn_attention_without_a_balance(tmp_path, capsys, manifold):
    """The status is 3, and the file states the reason: at β = 10⁴ with a random key 1000 rounds do not converge."""
    path = tmp_path / "run.h5"
    domain = "domain.resolution=64" if manifold == "circle" else 'domain={manifold = "particles", count = 20}'
    case = parse(CASE, [domain, "attention.normalization=sinkhorn", "stabilizers.noise=0.0", *SHARP])
    assert run(case, path, quiet=True) == NON_FINITE
    assert "marginals are off by" in capsys.readouterr().err
    facts = read(path).attributes
    assert facts["stop_reason"] == "failed"
    assert "marginals are off by" in facts["message"]


@pytest.mark.parametrize("after", [0.0, 0.9])
def test_non_finite_state(tmp_path, lose_velocity, capsys, after):
    """The status is 3; the file states the reason and is valid to its last, finite snapshot; so are the checkpoints."""
    path = tmp_path / "run.h5"
    lose_velocity(after)
    assert run(parse(CASE, ["output.checkpoint=1e-6"]), path, quiet=True) == NON_FINITE
    message = capsys.readouterr().err
    assert "non-finite" in message
    file = read(path)
    assert file.attributes["stop_reason"] == "failed"
    assert "non-finite" in file.attributes["message"]
    assert describe_state(file, parse(str(file.attributes["case"]))).startswith("failed at")
    assert file.snapshots == 1 + int(after / 0.5)
    for k in range(file.snapshots):
        assert np.isfinite(file.density(k)).all()
    assert file.sample_times[-1] <= after + 0.1
    for name, values in file.diagnostics.items():
        assert np.isfinite(values).all() or name in ("cluster_mass", "cluster_center")  # NaN for a missing cluster
    if after > 0:
        arrays, scalars = Checkpoints(path).read()
        assert np.isfinite(arrays["values"]).all()
        assert float(scalars["time"]) <= after + 0.1


def test_a_second_run_into_the_same_file_is_refused(tmp_path):
    path = tmp_path / "run.h5"
    run(parse(CASE), path, quiet=True)
    before = path.read_bytes()
    with pytest.raises(FileError, match="exists already"):
        run(parse(CASE), path, quiet=True)
    assert path.read_bytes() == before
    assert run(parse(CASE, ["time.end=1.0"]), path, overwrite=True, quiet=True) == DONE
    assert read(path).times[-1] == 1.0


def test_a_running_file_can_be_read_and_not_be_written(tmp_path):
    process, path = start(tmp_path, *LONG)
    try:
        wait_for(lambda: has_snapshots(path, 3), process)
        facts = describe(path)
        assert facts["state"] == "running"
        assert str(process.pid) in facts["writer"]
        assert facts["snapshots"] >= 3
        assert facts["mass_drift"] < 1e-12
        assert abs(facts["minimum_density"]) < np.inf
        with pytest.raises(FileError):
            run(parse(CASE), path, overwrite=True, quiet=True)
        assert process.poll() is None
        assert has_snapshots(path, facts["snapshots"])
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stderr.close()


@pytest.mark.parametrize("words", [["attention.beta=-1"], ["time.ende=1"], ["initial.kind=nothing"]])
def test_bad_input_has_status_2_and_leaves_no_file(tmp_path, words):
    process, path = start(tmp_path, *words)
    assert process.wait(PATIENCE) == 2
    lines = process.stderr.read().splitlines()
    assert len(lines) == 1
    assert words[0].split("=")[0] in lines[0]
    assert not path.exists()


def test_what_a_run_tells_in_a_log(tmp_path):
    process, path = start(tmp_path)
    assert process.wait(PATIENCE) == DONE
    lines = process.stderr.read().splitlines()
    assert re.fullmatch(rf"{re.escape(str(path))}: t = 4 in \d+ steps, [\d.]+ s", lines[-2])
    assert lines[-1] == f"plot it: meanfield plot {path}"
    assert all("\r" not in line for line in lines)


def test_a_slow_block_is_explained_and_a_quick_one_is_not(monkeypatch, capfd):
    remaining = RemainingTime(1.0, (), handover=False)
    progress = Progress("run", 0.0, 1.0, quiet=False, remaining=remaining)
    shown, show = threading.Event(), progress.show
    monkeypatch.setattr(progress, "show", lambda text: (show(text), shown.set()))
    monkeypatch.setattr("meanfield.runtime.progress.COMPILING", 0.01)
    with progress.show_if_slow("compiling the kernels"):
        assert shown.wait(PATIENCE)  # the block lasts until the line is shown
    monkeypatch.setattr("meanfield.runtime.progress.COMPILING", 2 * PATIENCE)
    with progress.show_if_slow("not this one"):
        pass
    assert capfd.readouterr().err.splitlines() == ["compiling the kernels"]


def test_quiet_says_nothing(tmp_path, capfd):
    run(parse(CASE), tmp_path / "run.h5", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_attributes_tell_what_made_the_file(tmp_path):
    case, path = parse(CASE), tmp_path / "run.h5"
    before = clock.time()
    run(case, path, quiet=True, command="meanfield run small.toml")
    attributes = read(path).attributes
    assert parse(attributes["case"]) == case
    assert attributes["case"] == to_toml(case)
    assert attributes["title"] == "A small case"
    assert attributes["command"] == "meanfield run small.toml"
    assert attributes["seed"] == 7
    assert attributes["device"] == "cpu"
    assert attributes["stop_reason"] == "finished"
    assert attributes["schema_version"] == 1
    for name in ("python", "meanfield", "numpy", "scipy", "numba", "h5py"):
        assert re.search(rf"\b{name} \d", attributes["versions"])
    assert re.fullmatch(r"[0-9a-f]{40}|", attributes["git_commit"])
    started = datetime.fromisoformat(attributes["start"]).timestamp()  # in whole seconds
    assert before - 1 <= started <= clock.time()
    assert 0 < attributes["wall_time"] < clock.time() - before + 1


def test_snapshots_and_samples_come_when_they_are_due(tmp_path):
    path = tmp_path / "run.h5"
    run(parse(CASE), path, quiet=True)
    file = read(path)
    np.testing.assert_array_equal(file.times, 4.0 * np.arange(9) / 8)
    np.testing.assert_array_equal(file.sample_times, 4.0 * np.arange(41) / 40)
    run(parse(CASE, ["output.spacing=log", "output.first=0.1"]), path, quiet=True, overwrite=True)
    times = read(path).times
    assert (times[0], times[1], times[-1]) == (0.0, 0.1, 4.0)
    np.testing.assert_allclose(times[2:] / times[1:-1], 40 ** (1 / 7), rtol=1e-12)
    run(parse(CASE.replace("snapshots = 8", "times = [0.5, 3.0]")), path, quiet=True, overwrite=True)
    np.testing.assert_array_equal(read(path).times, [0.5, 3.0])


def test_wall_time_adds_up_over_a_resumed_run(tmp_path, interrupt_after):
    path = tmp_path / "run.h5"
    interrupt_after(100)
    run(parse(CASE), path, quiet=True)
    first = read(path).attributes["wall_time"]
    interrupt_after(10**9)
    resume(path, quiet=True)
    assert read(path).attributes["wall_time"] > first


EXPLODING = """
[domain]
manifold = "line"
resolution = 128
outermost = 8.0
core = 4.0
[attention]
beta = 1.0
[stabilizers]
layer_norm = "none"
[initial]
kind = "gaussian"
variance = 0.4
[time]
end = 20.0
[output]
samples = 40
"""


@pytest.mark.parametrize("manifold", ["line", "free_radius_circle"])
def test_what_outgrows_its_mesh_is_stopped_and_said(tmp_path, capsys, manifold):
    """A Gaussian with βs₀ = 0.4 blows up at 1.25: status 3 once a thousandth of the mass is at the end of the mesh."""
    path = tmp_path / "run.h5"
    changes = [] if manifold == "line" else ["domain.resolution=16", "domain.radii=24", "domain.core=1.0"]
    assert run(parse(EXPLODING, [f"domain.manifold={manifold}", *changes]), path, quiet=True) == NON_FINITE
    said = capsys.readouterr().err
    assert re.search(r"stopped on an exploding state: at time [\d.]+, step \d+: 0\.\d+ of the mass has reached ", said)
    assert said.count("\n") == 1
    file = read(path)
    assert file.attributes["stop_reason"] == "failed"
    assert "mesh ends" in file.attributes["message"]
    assert 0.5 < file.times[-1] < 10
    assert file.diagnostics["escaped"][-1, -1] <= 1e-3  # kept data are from before
    assert "exploded" in describe_state(file, parse(str(file.attributes["case"])))
