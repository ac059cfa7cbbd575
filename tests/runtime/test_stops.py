"""Stopped runs: by Ctrl-C, once and twice, by a full disk, by a read-only folder, by another writer."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time as clock
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from runtime.test_run import CASE, LONG, PATIENCE, assert_same, has_snapshots, start, wait_for
from support.status import DONE, INTERRUPTED, resume, run

import solvers.io.checkpoint
import solvers.io.series
from meanfield.analysis.info import describe
from meanfield.case.load import parse
from meanfield.cli.parser import main
from meanfield.equation import Velocity
from meanfield.runtime.recorder import Record
from solvers.io.checkpoint import Checkpoints
from solvers.io.run_file import RunFile, read
from solvers.timestepping.state import State

COLUMNS = 80  # width of a new terminal
NOBODY = 65534  # a user without rights: permissions do not bind root


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the run without a stop."""
    path = tmp_path_factory.mktemp("whole") / "run.h5"
    assert run(parse(CASE), path, quiet=True) == DONE
    return path


def twice_in(owner: object, name: str, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send Ctrl-C twice after the ``call``-th call of a function."""
    original, calls = getattr(owner, name), []

    def interrupting(*arguments: object) -> object:
        found = original(*arguments)
        calls.append(None)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(owner, name, interrupting)


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (Velocity, "__call__", 40),  # in a step
        (Velocity, "__call__", 1),  # before the first step
        (solvers.io.series, "_append", 1),  # a density without its time
        (solvers.io.series, "_append", 2),  # a snapshot, its time not yet flushed
        (solvers.io.series, "_append", 13),  # some columns of the samples
        (os, "fsync", 5),  # during the second checkpoint
    ],
)
def test_ctrl_c_twice_leaves_at_once(
    owner: object,
    name: str,
    call: int,
    tmp_path: Path,
    whole: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "run.h5"
    twice_in(owner, name, call, monkeypatch)
    assert run(parse(CASE, ["output.checkpoint=1e-3"]), path, quiet=True) == INTERRUPTED
    assert capfd.readouterr().err.splitlines() == [
        "stopping after this step; press Ctrl-C again to abort",
        f"meanfield: interrupted at once; continue from the last checkpoint: meanfield resume {path}",
    ]
    facts = describe(path)
    assert (facts["state"], facts["message"]) == ("interrupted", "interrupted at once")
    assert facts["last_time"] is None or facts["last_time"] < 2.0
    monkeypatch.undo()
    assert resume(path, quiet=True) == DONE
    assert_same(read(whole), read(path))


@pytest.mark.parametrize("holder", ["finalizer", "weak reference"])
def test_an_interrupt_comes_through_a_finalizer(
    holder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python drops an exception raised in a finalizer and prints its traceback; the run has to end at once all the
    same."""

    def twice(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    original, calls, began = Velocity.__call__, [], clock.monotonic()

    def collecting(*arguments: object) -> object:
        calls.append(None)
        if len(calls) == 40:
            thing = type("Thing", (), {"__del__": twice} if holder == "finalizer" else {})()
            kept = weakref.ref(thing, twice if holder == "weak reference" else None)
            del thing
            assert kept() is None
            clock.sleep(PATIENCE)
        return original(*arguments)

    monkeypatch.setattr(Velocity, "__call__", collecting)
    path = tmp_path / "run.h5"
    assert run(parse(CASE), path, quiet=True) == INTERRUPTED
    assert clock.monotonic() - began < PATIENCE
    assert capfd.readouterr().err.splitlines() == [
        "stopping after this step; press Ctrl-C again to abort",
        f"meanfield: interrupted at once; continue from the last checkpoint: meanfield resume {path}",
    ]


@pytest.mark.parametrize("until", [None, 1.0])
def test_signals_do_not_cut_the_closing_short(
    until: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    """The cases are a run that has reached its end, and one that a first signal has stopped."""
    path, close = tmp_path / "run.h5", Record.close

    def closing(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        close(*arguments)

    def stopping(record: Record, state: State) -> None:
        if until is not None and state.time >= until:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Record, "close", closing)
        patch.setattr(Record, "after_step", stopping)
        assert run(parse(CASE), path, quiet=True) == (DONE if until is None else INTERRUPTED)
    assert describe(path)["state"] == ("finished" if until is None else "interrupted")
    if until is not None:
        assert resume(path, quiet=True) == DONE
    assert_same(read(whole), read(path))


def test_ctrl_c_twice_from_outside(tmp_path: Path) -> None:
    """The status is 130 without a traceback, whichever of the two exits the second signal meets."""
    process, path = start(tmp_path, *LONG)
    wait_for(lambda: has_snapshots(path, 5), process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == INTERRUPTED
    said = process.stderr.read()
    assert "Traceback" not in said
    assert f"meanfield resume {path}" in said.splitlines()[-1]
    assert describe(path)["state"] == "interrupted"


def test_a_signal_is_obeyed_where_nobody_reads_what_is_said(tmp_path: Path) -> None:
    """A batch system may stop `meanfield run ... 2>&1 | head` this way: the state is saved all the same."""
    process, path = start(tmp_path, *LONG)
    wait_for(lambda: has_snapshots(path, 5), process)
    process.stderr.close()
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    facts = describe(path)
    assert facts["state"] == "interrupted"
    assert facts["message"].startswith("interrupted at time ")
    assert Checkpoints(path).read()[1]["time"] > 0


def test_a_run_goes_on_where_nobody_reads_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run continues to its end, although no reader is left for its messages."""
    monkeypatch.setattr("meanfield.runtime.progress.LOG_EVERY", 0.0)
    reader, writer = os.pipe()
    os.close(reader)
    with suppress(BrokenPipeError), open(writer, "w") as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        run(parse(CASE), tmp_path / "run.h5")
    monkeypatch.undo()
    assert describe(tmp_path / "run.h5")["state"] == "finished"


FULL_DISK = """
import resource, signal, sys
from meanfield.cli.parser import main
sys.dont_write_bytecode = True  # a truncated file would stay and break other processes
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
case, *limits = sys.argv[1:]
for path, size in zip(limits[::2], limits[1::2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))
    print(main(["run", case, "-o", path, "--quiet", "--force"]))
"""


def test_full_disk(tmp_path: Path, whole: Path) -> None:
    """A limit on file sizes simulates the disk. One line says how to continue, and the continuation is exact.

    The failure is in an early write, in a later one, and in the last.
    """
    (tmp_path / "case.toml").write_text(CASE)
    sizes = {tmp_path / f"{part}.h5": int(part * whole.stat().st_size) for part in (0.8, 0.9, 0.99)}
    limits = [str(word) for limit in sizes.items() for word in limit]
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "case.toml"), *limits]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "2\n2\n2\n", done.stderr
    for path, line in zip(sizes, done.stderr.splitlines(), strict=True):
        assert re.fullmatch(
            rf"meanfield: {path}: cannot write: File too large; the file is valid up to its \d+ snapshots; "
            rf"when it can be written again, continue from the last checkpoint: meanfield resume {path}",
            line,
        )
        facts = describe(path)
        assert facts["state"] in (
            "interrupted",
            "killed",
        )  # killed: no room for the record of the stop
        assert facts["next"] == f"continue from the last checkpoint: meanfield resume {path}"
        assert resume(path, quiet=True) == DONE
        assert_same(read(whole), read(path))


def test_samples_that_waited_when_a_writer_died_are_computed_again(tmp_path: Path, whole: Path) -> None:
    """Snapshots may be in the file before samples of earlier times."""
    path = Path(shutil.copy(whole, tmp_path))
    RunFile.append(path, snapshots=5, samples=8).close(stop_reason="interrupted")
    assert resume(path, quiet=True) == DONE
    assert_same(read(whole), read(path))


@pytest.fixture
def readonly(whole: Path) -> Iterator[Path]:
    """Yield a read-only folder that holds run.h5 of a killed writer beside whole.h5."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    path = folder / "run.h5"
    shutil.copy(whole, folder / "whole.h5")
    shutil.copy(whole, path)
    file = RunFile.append(path)
    killed = path.read_bytes()
    file.close()
    path.write_bytes(killed)
    path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_written(readonly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Existing files can be read, also after a killed writer; a write is refused in one line, and changes nothing."""
    path = readonly / "run.h5"
    before = path.read_bytes()
    assert describe(path)["state"] == "killed"
    assert_same(read(readonly / "whole.h5"), read(path))
    for arguments, message in [
        (["run", "uniform", "-o", str(readonly / "new.h5")], f"the folder {readonly} cannot be written: "),
        (["run", "uniform", "-o", str(path), "--overwrite"], f"the folder {readonly} cannot be written: "),
        (["resume", str(path), "--until", "9"], f"{path}: cannot lock it for writing: "),
    ]:
        assert main(arguments) == 2
        assert re.fullmatch(rf"meanfield: .*{message}Permission denied\n", capsys.readouterr().err)
    assert path.read_bytes() == before
    assert sorted(file.name for file in readonly.iterdir()) == ["run.h5", "whole.h5"]


def test_a_second_writer_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process, path = start(tmp_path, *LONG, "output.checkpoint=0.05")
    try:
        wait_for(lambda: has_snapshots(path, 3) and path.with_name("run.h5.checkpoint-0").exists(), process)
        for arguments in (["run", "uniform", "-o", str(path), "--overwrite"], ["resume", str(path)]):
            assert main(arguments) == 2
            said = capsys.readouterr().err
            assert said.startswith(f"meanfield: {path}: being written by process {process.pid} on ")
            assert said.count("\n") == 1
        count = describe(path)["snapshots"]
        wait_for(lambda: has_snapshots(path, count + 1), process)  # the first continues undisturbed
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stderr.close()


def in_terminal(arguments: list[str]) -> tuple[int, str]:
    """Return the exit status of a `meanfield` command in a terminal of its own, and all text shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", 24, COLUMNS, 0, 0))
        os.execv(sys.executable, [sys.executable, "-m", "meanfield", *arguments])
    shown = bytearray()
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # Linux's error for the end of a terminal
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """The bar shows elapsed and remaining time, model time, step, step size and clusters, redrawn in place."""
    (tmp_path / "case.toml").write_text(CASE)
    many = ["--set", "time.cfl=0.05"]  # many steps, so that the bar is drawn between the first and the last
    status, shown = in_terminal(["run", str(tmp_path / "case.toml"), "-o", str(tmp_path / "run.h5"), *many])
    assert status == DONE
    bars = [line for line in re.split("[\r\n]+", shown) if line.startswith("run:")]
    assert len(bars) > 3
    assert max(map(len, bars)) <= COLUMNS
    form = r"run: 100%\|.*\| t = 4/4 \[\d\d:\d\d<\d\d:\d\d, step \d+, dt = [\d.]+, \d clusters?\]"
    assert re.fullmatch(form, bars[-1])
    assert shown.splitlines()[-1] == f"plot it: meanfield plot {tmp_path / 'run.h5'}"


def test_progress_in_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log has the same information, a line at a time."""
    monkeypatch.setattr("meanfield.runtime.progress.LOG_EVERY", 0.0)
    assert run(parse(CASE), tmp_path / "run.h5") == DONE
    lines = capsys.readouterr().err.splitlines()[:-2]
    form = (
        r"t = ([\d.]+) of 4, step \d+, dt = [\d.]+, \d clusters?, \d+ s, (about \d+ s remain|estimating what remains)"
    )
    times = [float(found[1]) for line in lines if (found := re.fullmatch(form, line))]
    assert len(times) > 20
    assert times == sorted(times)
    assert times[-1] == 4.0
