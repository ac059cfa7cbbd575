"""The run file survives any end of its writer, and opens in other tools."""

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import h5py
import numpy as np
import pytest
from filelock import lock_descriptor, unlock_descriptor

import solvers.io.series
from solvers.io import reading, run_file
from solvers.io.checkpoint import MAGIC
from solvers.io.layout import Measure, Points
from solvers.io.lock import Lock, holder
from solvers.io.repair import SUPERBLOCK, is_open_for_writing, lookup3
from solvers.io.run_file import Column, FileError, RunFile, read
from solvers.mesh.mesh import circle, sphere

COLUMNS = (
    Column("mass", units="1", long_name="mass"),
    Column("centroid", (("d", 2),)),
    Column("power", (("degree", 5),)),
)
MESH = circle(64)


def density(k):
    return np.random.default_rng(k).random(MESH.cells)


def sample(k):
    return {"mass": 1.0 + k, "centroid": [k, -k], "power": np.full(5, k)}


def write(file, start, stop):
    """Write snapshot k at time k/10, after two samples."""
    for k in range(start, stop):
        file.write_sample(k / 10, sample(2 * k))
        file.write_sample(k / 10 + 0.05, sample(2 * k + 1))
        file.write_snapshot(k / 10, density(k))


def check(run, snapshots=None):
    """Assert that every committed snapshot and sample equals the written one."""
    assert snapshots is None or run.snapshots == snapshots
    np.testing.assert_array_equal(run.times, np.arange(run.snapshots) / 10)
    for k in range(run.snapshots):
        np.testing.assert_array_equal(run.density(k), density(k))
    assert len(run.sample_times) >= 2 * run.snapshots  # a snapshot commits the earlier samples
    assert {len(values) for values in run.diagnostics.values()} == {len(run.sample_times)}
    for k in range(len(run.sample_times)):
        for name, value in sample(k).items():
            np.testing.assert_array_equal(run.diagnostics[name][k], value)


PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[2])]  # folder of this file and of tests/support


def child(code, *arguments, **options):
    """Start a Python process that has this module's names."""
    program = f"import os, signal, sys; sys.path[:0] = {PATHS}\nfrom test_run_file import *\n{code}"
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], text=True, **options)


def kill(process):
    process.kill()
    process.wait()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


@pytest.fixture
def writer(path):
    """Start a child that writes snapshots without end, and wait until it has written some."""
    code = """
file = RunFile.create(sys.argv[1], MESH, COLUMNS, {'case': 'x'})
for k in range(10**9):
    write(file, k, k + 1)
    time.sleep(0.02 * k)  # ever longer: checks of all snapshots keep up, also on a busy machine
"""
    process = child(code, path)
    deadline = time.monotonic() + 120
    while not path.exists() or read(path).snapshots < 5:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield process
    kill(process)


def test_finished_file(path):
    with RunFile.create(path, MESH, COLUMNS, {"case": "title = 'é'", "seed": 3}) as file:
        write(file, 0, 7)
        file.write_sample(0.7, sample(14))
    run = read(path)
    check(run, 7)
    assert len(run.sample_times) == 15
    assert run.attributes["case"] == "title = 'é'"
    assert run.attributes["seed"] == 3
    assert run.attributes["stop_reason"] == "finished"
    assert (run.manifold, run.resolution, run.cells, run.writer) == ("circle", 64, 64, None)
    np.testing.assert_array_equal(run.cell_centers, MESH.centers)
    np.testing.assert_array_equal(run.density(-1), density(6))
    with pytest.raises(IndexError):
        run.density(7)
    assert [p.name for p in path.parent.iterdir()] == ["run.h5"]  # no lock or temporary file is left


def test_events_have_times_of_their_own(path):
    """Several events may have one time; a file is truncated to a number of events, and holds only complete ones."""
    columns = [*COLUMNS, Column("mass", table="events"), Column("center", (("d", 2),), table="events")]
    with RunFile.create(path, MESH, columns) as file:
        write(file, 0, 2)
        for k, t in enumerate((0.5, 0.5, 0.7)):
            file.write_event(t, {"mass": k, "center": [k, -k]})
        with pytest.raises(ValueError, match="center: shape"):
            file.write_event(0.8, {"mass": 1.0, "center": 1.0})
        assert file.events == 3
    with RunFile.append(path, events=2) as file:
        file.write_event(0.6, {"mass": 5.0, "center": [6.0, 7.0]})
    run = read(path)
    check(run, 2)
    assert {name: values.tolist() for name, values in run.events.items()} == {
        "time": [0.5, 0.5, 0.6],
        "mass": [0.0, 1.0, 5.0],
        "center": [[0.0, 0.0], [1.0, -1.0], [6.0, 7.0]],
    }
    assert run.described()["events/center"].dims == ("event", "d")
    with pytest.raises(FileError, match="holds 3 events, cannot continue after 4"):
        RunFile.append(path, events=4)
    with h5py.File(path, "r+") as file:
        file["events/mass"][1] = 2.0
    with pytest.raises(FileError, match="differ from what was written"):
        read(path)


def test_a_file_without_a_table_of_events_keeps_none(path):
    with RunFile.create(path, MESH, COLUMNS) as file:
        file.write_event(0.5, {"mass": 1.0})
        assert file.events == 0
    with h5py.File(path) as file:
        assert "events" not in file
    assert read(path).events == {}


@pytest.mark.parametrize("failures", [1, 2, 1000])
def test_what_is_damaged_while_it_is_written_is_read_again(path, monkeypatch, failures):
    """Parts of the file may be of different times for a moment; without a writer, or permanently, this is damage."""
    from solvers.io import reading

    left, faults = [failures], reading.faults

    def sometimes(*arguments):
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("addr overflow")
        return faults(*arguments)

    with RunFile.create(path, MESH, COLUMNS, {"case": "x"}) as file:
        write(file, 0, 2)
        monkeypatch.setattr(reading, "faults", sometimes)
        if failures < 100:
            assert read(path).snapshots == 2
        else:
            with pytest.raises(FileError, match="damaged: addr overflow"):
                read(path)
            assert left == [1000 - reading.TRIES_WRITTEN - 1]
    left[0] = 1
    with pytest.raises(FileError, match="damaged: addr overflow"):
        read(path)


def test_xarray(path):
    import xarray

    mesh = sphere(8)
    columns = (Column("mass"), Column("power", (("degree", 5),), long_name="power"))
    with RunFile.create(path, mesh, columns) as file:
        for k in range(3):
            file.write_sample(k, {"mass": 1.0, "power": np.arange(5)})
            file.write_snapshot(k, np.full(mesh.cells, k))
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.density.dims == ("time", "cell")
        assert data.cell_center.dims == ("cell", "d")
        assert dict(data.sizes) == {"time": 3, "cell": mesh.cells, "d": 3, "ring": 8, "ring_edge": 9}
        assert set(data.variables) == {
            "time",
            "density",
            "cell_center",
            "cell_area",
            "ring_cells",
            "ring_edge",
        }
        np.testing.assert_array_equal(data.density.sel(time=2.0), 2.0)
        np.testing.assert_array_equal(data.ring_edge, mesh.ring_edges)
        assert data.density.attrs["units"] == "sr-1"
        assert all("long_name" in variable.attrs for variable in data.variables.values())
        assert data.attrs["manifold"] == "sphere"
    with xarray.open_dataset(path, engine="h5netcdf", group="diagnostics") as data:
        assert data.power.dims == ("time", "degree")
        assert dict(data.sizes) == {"time": 3, "degree": 5}
        np.testing.assert_array_equal(data.time, [0, 1, 2])
        np.testing.assert_array_equal(data.power[2], np.arange(5))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("attempt", range(3))
def test_killed_at_random_moments(path, attempt):
    """A growing file is sound and appendable after each of five kills, or more until it holds data."""
    moments = random.Random(attempt)
    code = """
file = RunFile.append(sys.argv[1]) if int(sys.argv[2]) else RunFile.create(sys.argv[1], MESH, COLUMNS)
file.sync()
print(file.snapshots, flush=True)
file._cut(file.snapshots, 2 * file.snapshots, 0)
write(file, file.snapshots, 10**9)
"""
    before = kills = 0
    while kills < 5 or before == 0:
        process = child(code, path, kills, stdout=subprocess.PIPE)
        assert int(process.stdout.readline()) == before
        time.sleep(moments.uniform(0, 0.15))
        kill(process)
        process.stdout.close()
        run = read(path)
        check(run)
        assert run.snapshots >= before
        assert run.attributes["stop_reason"] == "running"
        assert run.writer is None
        assert not is_open_for_writing(path)
        before, kills = run.snapshots, kills + 1
        with h5py.File(path) as plain:
            np.testing.assert_array_equal(plain["time"][:before], run.times)
    with RunFile.append(path, snapshots=before // 2, samples=before // 2 * 2) as file:
        write(file, before // 2, before // 2 + 3)
    check(read(path), before // 2 + 3)
    import xarray  # not at the top, since the children import this module

    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.sizes["time"] == before // 2 + 3


def test_killed_while_opening(path):
    """A writer killed before or just after opening leaves the file as it was."""
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    for plain in (True, False):
        code = "f = h5py.File(sys.argv[1], 'r+', libver=('v110', 'v110'), locking=False)\n"
        code += "" if plain else "f.swmr_mode = True\n"
        process = child(code + "os.kill(os.getpid(), 9)", path)
        assert process.wait() == -signal.SIGKILL
        assert is_open_for_writing(path)
        check(read(path), 3)
        assert not is_open_for_writing(path)


def test_half_written_snapshot_does_not_exist(path):
    """A snapshot without its time, after a kill between the two, is ignored by read and removed by append."""
    code = """
file = RunFile.create(sys.argv[1], MESH, COLUMNS)
write(file, 0, 3)
plain = file._handle
plain["density"].resize(4, axis=0); plain["density"][3] = 7.0
plain["time"].resize(4, axis=0)
plain["diagnostics/mass"].resize(7, axis=0)
plain.flush()
os.kill(os.getpid(), 9)
"""
    assert child(code, path).wait() == -signal.SIGKILL
    check(read(path), 3)
    RunFile.append(path).close()
    with h5py.File(path) as plain:
        assert len(plain["time"]) == len(plain["density"]) == 3


def test_killed_between_a_density_and_its_time(path):
    """The time commits a snapshot, so it must be the last to reach the file."""
    code = """
import solvers.io.series
from solvers.io import run_file
append, calls = solvers.io.series._append, []
def stop_at_the_second(*arguments):
    calls.append(arguments)
    if len(calls) == 2:
        os.kill(os.getpid(), 9)
    append(*arguments)
file = RunFile.create(sys.argv[1], MESH, COLUMNS)
write(file, 0, 3)
solvers.io.series._append = stop_at_the_second
file.write_snapshot(0.3, density(3))
"""
    assert child(code, path).wait() == -signal.SIGKILL
    check(read(path), 3)


def test_killed_file_that_must_not_be_written(path, monkeypatch):
    code = "file = RunFile.create(sys.argv[1], MESH, COLUMNS); write(file, 0, 5); os.kill(os.getpid(), 9)"
    assert child(code, path).wait() == -signal.SIGKILL
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # permissions do not stop root
    check(read(path), 5)
    assert path.read_bytes() == before


def test_end_of_file_mark_is_raised(path):
    """The mark may lag behind the data of a killed writer, and HDF5 refuses to read beyond the mark."""
    code = "file = RunFile.create(sys.argv[1], MESH, COLUMNS); write(file, 0, 30); os.kill(os.getpid(), 9)"
    assert child(code, path).wait() == -signal.SIGKILL
    with open(path, "r+b") as file:
        superblock = list(SUPERBLOCK.unpack(file.read(SUPERBLOCK.size)))
        superblock[7] = 20_000
        head = SUPERBLOCK.pack(*superblock)[:-4]
        file.seek(0)
        file.write(head + lookup3(head).to_bytes(4, "little"))
    check(read(path), 30)
    with RunFile.append(path) as file:
        file._cut(30, 60, 0)
        write(file, 30, 33)
    check(read(path), 33)


def test_interrupt_in_the_middle_of_a_snapshot(path, monkeypatch):
    """Closing removes the incomplete snapshot of Ctrl-C between a density and its time."""

    def interrupt(dataset, *arguments):
        append(dataset, *arguments)
        if dataset.name == "/density":
            raise KeyboardInterrupt

    append = solvers.io.series._append
    file = RunFile.create(path, MESH, COLUMNS)
    write(file, 0, 3)
    monkeypatch.setattr(solvers.io.series, "_append", interrupt)
    with pytest.raises(KeyboardInterrupt), file:
        file.write_snapshot(0.3, density(3))
    check(read(path), 3)
    with h5py.File(path) as plain:
        assert len(plain["density"]) == 3


@pytest.mark.parametrize("moment", ["solvers.io.run_file.open_shared", "solvers.io.run_file.RunFile._cut",
                                    "solvers.io.series.Series.cut"])  # fmt: skip
def test_stopped_while_a_closed_file_is_opened_again(path, moment, monkeypatch):
    """Texts change and samples are cut before anything is written: no digest of the closed file may be left."""
    with RunFile.create(path, MESH, COLUMNS, {"case": "first"}) as file:
        write(file, 0, 5)

    def stop(*given):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(moment, stop)
        with pytest.raises(SystemExit):
            RunFile.append(path, snapshots=3, samples=2, attributes={"case": "second"})
    run = read(path)
    assert run.attributes["case"] == "second"
    check(run, 5)
    with RunFile.append(path, snapshots=3, samples=6) as file:
        write(file, 3, 5)
    check(read(path), 5)


def test_reading_while_writing(path, writer):
    counts = []
    while len(counts) < 5 or counts[-1] == counts[0]:
        run = read(path)
        check(run)
        counts.append(run.snapshots)
        assert run.writer.startswith(f"process {writer.pid} on ")
    assert is_open_for_writing(path)  # reading repaired nothing


def test_reading_while_writers_come_and_go(path):
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    process = child("for _ in range(10): RunFile.append(sys.argv[1]).close()", path)
    while process.poll() is None:
        check(read(path), 3)
    assert process.returncode == 0


def test_a_writer_that_comes_and_goes_while_a_file_is_opened(path, monkeypatch):
    """The writer starts after the reader's first check for a writer, and ends before the second check."""
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    run, closed = read(path), path.read_bytes()
    with RunFile.append(path):
        opened = path.read_bytes()
    path.write_bytes(opened)
    looks = iter([False])
    monkeypatch.setattr("solvers.io.reading.is_open_for_writing", lambda path: next(looks, is_open_for_writing(path)))
    monkeypatch.setattr("solvers.io.reading.holder", lambda path: path.write_bytes(closed) and None)
    np.testing.assert_array_equal(run.density(2), density(2))


def test_a_file_that_nobody_writes_is_tried_five_times(path, monkeypatch):
    """A writer may come and go within one try, hardly within five; two seconds are for a file with a writer."""
    RunFile.create(path, MESH, COLUMNS).close()
    tries = []

    def failing(path, **options):
        tries.append(path)
        raise OSError("unable to open file")

    monkeypatch.setattr(reading, "open_to_read", failing)
    with pytest.raises(FileError, match="cannot read it: unable to open file"):
        read(path)
    assert len(tries) == 5


def test_a_reader_that_probes_the_lock_is_no_writer(path):
    """A writer waits for a probing reader, but not for a reader that has been stopped meanwhile."""
    path.with_name("run.h5.lock").write_text("process 1 on nowhere")
    with open(path.with_name("run.h5.lock"), "rb") as reader, ThreadPoolExecutor(1) as pool:
        assert lock_descriptor(reader.fileno(), blocking=False)
        with pytest.raises(FileError, match="being written by process 1 on nowhere"):
            Lock(path, timeout=0.01)
        writer = pool.submit(Lock, path, timeout=60.0)
        with pytest.raises(TimeoutError):
            writer.result(0.1)
        unlock_descriptor(reader.fileno())
        writer.result().release()


def test_readers_that_probe_the_lock_at_once_see_no_writer(path):
    path.with_name("run.h5.lock").write_text("process 1 on nowhere")
    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(holder, [path] * 400))


def test_second_writer_is_refused(path, writer):
    message = f"being written by process {writer.pid} on "
    with pytest.raises(FileError, match=message):
        RunFile.append(path)
    with pytest.raises(FileError, match=message):
        RunFile.create(path, MESH, COLUMNS, overwrite=True)
    kill(writer)
    check(read(path))
    RunFile.append(path).close()


def test_overwrite(path):
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    checkpoint = path.with_name("run.h5.checkpoint-0")
    checkpoint.write_bytes(MAGIC + b"of the old run")
    with pytest.raises(FileError, match="exists already"):
        RunFile.create(path, MESH, COLUMNS)
    with pytest.raises(ValueError, match="has lengths 2 and 3"):
        RunFile.create(path, MESH, [Column("a", (("d", 2),)), Column("b", (("d", 3),))], overwrite=True)
    check(read(path), 3)
    assert checkpoint.exists()
    with RunFile.create(path, MESH, COLUMNS, overwrite=True) as file:
        write(file, 0, 1)
    check(read(path), 1)
    assert not checkpoint.exists()


@pytest.mark.sampled
@pytest.mark.parametrize("room", [70_000, 100_000, 130_001])
@pytest.mark.parametrize("later", ["space again", "the same", "no byte at all"])
def test_failing_write(path, room, later):
    """A full disk, simulated by a limit on file sizes, gives one line and a file valid up to the last snapshot.

    The reason of the end is written in place, for which there is room as long as the disk takes a byte.
    """
    code = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = RunFile.create(sys.argv[1], MESH, COLUMNS)
size = os.path.getsize(sys.argv[1]) + int(sys.argv[2])
sys.dont_write_bytecode = True  # what is cut short would stay, and fail others
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
try:
    write(file, 0, 10**9)
except FileError as error:
    print(error)
    print(file.snapshots)
    sizes = {"space again": resource.RLIM_INFINITY, "the same": size, "no byte at all": 0}
    resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[sys.argv[3]], resource.RLIM_INFINITY))
    try:
        file.close(stop_reason="failed", message="no room")
    except FileError as error:
        print(error)
"""
    process = child(code, path, room, later, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert err == ""
    message, count, *unrecorded = out.splitlines()
    assert message == f"{path}: cannot write: File too large; the file is valid up to its {count} snapshots"
    run = read(path)
    check(run, int(count))
    assert run.snapshots > 10
    if later != "no byte at all":
        assert (run.attributes["stop_reason"], run.attributes["message"]) == ("failed", "no room")
        assert not unrecorded
    else:
        assert run.attributes["stop_reason"] == "running"
        assert unrecorded == [f"{path}: cannot record how the run ended: File too large"]
    with RunFile.append(path) as file:
        file._cut(file.snapshots, 2 * file.snapshots, 0)
        write(file, file.snapshots, file.snapshots + 3)
    check(read(path), int(count) + 3)


def test_failing_write_without_a_null_device(path, tmp_path):
    """A full disk does no more harm if /dev/null is a regular file, as after a mishap of an administrator."""
    code = """
import resource
os.devnull = sys.argv[2]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = RunFile.create(sys.argv[1], MESH, COLUMNS)
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(sys.argv[1]) + 70_000, resource.RLIM_INFINITY))
try:
    write(file, 0, 10**9)
except FileError:
    file.close(stop_reason="failed", message="no room")
"""
    null = tmp_path / "null"
    null.touch()
    assert child(code, path, null).wait() == 0
    assert read(path).attributes["message"] == "no room"
    assert null.stat().st_size == 0


def test_long_rows_that_hold_little_are_small_in_the_file(path):
    """Centers of 32 clusters in 4096 dimensions, only two of which exist, take 64 kB instead of 1 MB."""
    centers = np.full((32, 4096), np.nan)
    centers[:2] = np.random.default_rng(0).standard_normal((2, 4096))
    column = Column("center", (("cluster", 32), ("d", 4096)))
    with RunFile.create(path, circle(8), [column], {"case": "x"}) as file:
        for k in range(4):
            file.write_sample(k, {"center": centers})
    assert path.stat().st_size < 4 * (2 * centers[:2].nbytes) + 100_000
    np.testing.assert_array_equal(read(path).diagnostics["center"][3], centers)


def test_failing_creation_leaves_the_old_file(path):
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    code = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # as above
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    RunFile.create(sys.argv[1], MESH, COLUMNS, overwrite=True)
except FileError as error:
    print(error)
"""
    process = child(code, path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate()
    assert (out, process.returncode) == (f"{path}: cannot create it: File too large\n", 0), err
    check(read(path), 3)
    assert [p.name for p in path.parent.iterdir()] == ["run.h5"]


def test_interrupts_and_errors_are_recorded(path):
    with pytest.raises(KeyboardInterrupt), RunFile.create(path, MESH):
        raise KeyboardInterrupt
    assert read(path).attributes["stop_reason"] == "interrupted"
    file = RunFile.append(path)
    file.write_sample(0.0, {})
    assert read(path).attributes["stop_reason"] == "running"
    with pytest.raises(ZeroDivisionError), file:
        raise ZeroDivisionError("a reason")
    run = read(path)
    assert run.attributes["stop_reason"] == "failed"
    assert run.attributes["message"] == "ZeroDivisionError: a reason"
    assert len(run.sample_times) == 1  # the buffered sample was written


def test_snapshots_may_wait_in_memory(path, monkeypatch):
    """Snapshots after the first wait as copies until the next flush, in limited number; the file has all in order."""
    monkeypatch.setattr(run_file, "FLUSH_EVERY", 1e9)
    monkeypatch.setattr(run_file, "MAX_WAITING", 4 * 8 * MESH.cells)
    with RunFile.create(path, MESH, COLUMNS) as file:
        held, counts = np.empty(MESH.cells), []
        for k in range(6):
            held[:] = density(k)
            file.write_snapshot(k / 10, held, may_wait=True)
            file.write_sample(k / 10, sample(2 * k))
            file.write_sample(k / 10 + 0.05, sample(2 * k + 1))
            counts.append(read(path).snapshots)
            assert file.snapshots == k + 1
        assert counts == [1, 1, 1, 1, 5, 5]  # the buffer holds at most four
        file.flush_if_due()
        assert read(path).snapshots == 5
        monkeypatch.setattr(run_file, "FLUSH_EVERY", -1.0)
        file.flush_if_due()
        check(read(path), 6)
        monkeypatch.setattr(run_file, "FLUSH_EVERY", 1e9)
        file.write_sample(0.6, sample(12))
        file.write_sample(0.65, sample(13))
        file.write_snapshot(0.6, density(6), may_wait=True)
        assert read(path).snapshots == 6
    check(read(path), 7)


def test_bad_input(path):
    with RunFile.create(path, MESH, COLUMNS, {"note": "x"}) as file:
        for t, values, message in (
            (0.0, np.zeros(63), r"shape \(63,\), expected \(64,\)"),
            (np.nan, np.zeros(64), "expected a finite number"),
        ):
            with pytest.raises(ValueError, match=message):
                file.write_snapshot(t, values)
        with pytest.raises(ValueError, match=r"expected .*centroid.*mass.*power"):
            file.write_sample(0.0, {"mass": 1.0})
        with pytest.raises(ValueError, match="power: shape"):
            file.write_sample(0.0, {**sample(0), "power": 1.0})
        for attributes in (
            {"unknown": 1},
            {"note": 1},
            {"note": "a longer text"},
            {"stop_reason": "done"},
            {"wall_time": [1.0, 2.0]},
        ):
            with pytest.raises(ValueError, match="expected"):
                file._set(attributes)
        write(file, 0, 2)
        file.close(message="é" * 501, wall_time=2)
        with pytest.raises(FileError, match="closed"):
            file.write_snapshot(1.0, np.zeros(64))
    run = read(path)
    check(run, 2)
    assert (run.attributes["message"], run.attributes["wall_time"]) == ("é" * 500, 2.0)
    RunFile.append(path, attributes={"note": "a longer text", "segments": 2}).close()
    run = read(path)
    check(run, 2)
    assert (run.attributes["note"], run.attributes["segments"]) == ("a longer text", 2)
    with pytest.raises(FileError, match="holds 2 snapshots, cannot continue after 3"):
        RunFile.append(path, snapshots=3)
    for attributes in ({"manifold": "x"}, {"a": None}):
        with pytest.raises(ValueError, match="attribute"):
            RunFile.create(path, MESH, (), attributes, overwrite=True)
    for name in ("time", "mass"):
        with pytest.raises(ValueError, match="occurs twice"):
            RunFile.create(path, MESH, [*COLUMNS, Column(name)], overwrite=True)


def test_times_that_do_not_increase_are_refused(path):
    """Rows that are buffered or stored count, those that are dropped do not; the file stays readable."""
    with RunFile.create(path, MESH, [Column("mass"), Column("pair", table="events")]) as file:
        for time in (0.5, 1.0):
            file.write_snapshot(time, density(0), may_wait=True)
            file.write_sample(time, {"mass": 1.0})
            file.write_event(time, {"pair": 1.0})
        for time in (1.0, 0.75):
            with pytest.raises(ValueError, match=f"time: {time}, expected a time after 1.0"):
                file.write_snapshot(time, density(1))
            with pytest.raises(ValueError, match=f"time: {time}, expected a time after 1.0"):
                file.write_sample(time, {"mass": 2.0})
        with pytest.raises(ValueError, match=r"time: 1\.5, expected a time after 2\.0"):
            file.write_samples([2.0, 1.5], {"mass": [1.0, 2.0]})
        file.write_event(1.0, {"pair": 2.0})  # several events may have one time
        with pytest.raises(ValueError, match=r"time: 0\.5, expected a time from 1\.0 on"):
            file.write_event(0.5, {"pair": 3.0})
    assert read(path).times.tolist() == read(path).sample_times.tolist() == [0.5, 1.0]
    with RunFile.append(path, snapshots=1) as file:
        file.write_snapshot(0.75, density(1))
        with pytest.raises(ValueError, match=r"time: 1\.0, expected a time after 1\.0"):
            file.write_sample(1.0, {"mass": 2.0})
    assert read(path).times.tolist() == [0.5, 0.75]
    assert read(path).events["time"].tolist() == [0.5, 1.0, 1.0]


@pytest.mark.parametrize("copy", [deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_a_copy_of_a_run_reads_the_file(path, copy):
    with RunFile.create(path, MESH, COLUMNS) as file:
        write(file, 0, 3)
    check(copy(read(path)), 3)


def test_files_that_cannot_be_read(path):
    with pytest.raises(FileError, match="No such file"):
        read(path)
    with pytest.raises(FileError, match="no such file"):
        RunFile.append(path)
    path.write_text("[domain]\n" * 20)
    with pytest.raises(FileError, match="not an HDF5 file"):
        read(path)
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file["x"] = 1
    with pytest.raises(FileError, match="no schema_version"):
        read(path)
    with h5py.File(path, "w") as file:
        file["x"] = 1
    with pytest.raises(FileError, match="superblock version"):
        read(path)
    with RunFile.create(path, MESH, COLUMNS, overwrite=True) as file:
        write(file, 0, 5)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5000])
    with pytest.raises(FileError, match=f"truncated, it has {len(whole) - 5000} of {len(whole)} bytes"):
        read(path)


def test_a_lock_that_nobody_holds(path):
    """The lock file of a killed writer does not stop the next one."""
    path.with_name("run.h5.lock").write_text("process 1 on nowhere")
    RunFile.create(path, MESH).close()
    assert read(path).writer is None


def test_lookup3():
    """The reference values are Bob Jenkins' own."""
    assert lookup3(b"") == 0xDEADBEEF
    assert lookup3(b"Four score and seven years ago") == 0x17770551


def test_files_are_small(path):
    """1000 snapshots at 128 rings take at most 250 MB.

    Smooth densities are those of the start of a run; rough ones do not occur in runs: noise does not compress.
    """
    mesh = sphere(128)
    x, noise = mesh.centers, np.random.default_rng(0)
    smooth = [np.exp(9 * (x @ np.roll([0.6, 0.0, 0.8], k) - 1)) * (1 + 0.1 * x[:, 0]) for k in range(3)]
    fields = [*smooth, noise.random(mesh.cells)]
    count = 100  # instead of 1000: a snapshot is one chunk, whose size does not depend on the number of snapshots
    with RunFile.create(path, mesh, COLUMNS) as file:
        empty = path.stat().st_size
        for k in range(count):
            file.write_sample(k, sample(k))
            file.write_snapshot(k, fields[k % 4])
    assert empty + (path.stat().st_size - empty) * 1000 / count < 250e6


def test_what_a_density_and_points_are_called(tmp_path):
    """The default is the surface of a circle; the caller may name the measure of a mesh and of points."""
    with RunFile.create(tmp_path / "plain.h5", circle(8)):
        pass
    with RunFile.create(tmp_path / "own.h5", circle(8), measure=Measure("m", "heat of the wire")):
        pass
    with RunFile.create(tmp_path / "points.h5", Points(np.ones(2) / 2, 3, name="star")):
        pass
    expected = [("plain", "rad", "density with respect to surface area"), ("own", "m", "heat of the wire")]
    for name, units, density in expected:
        with h5py.File(tmp_path / f"{name}.h5") as file:
            assert file["cell_area"].attrs["units"] == units
            assert (file["density"].attrs["units"], file["density"].attrs["long_name"]) == (f"{units}-1", density)
    with h5py.File(tmp_path / "points.h5") as file:
        assert [dimension.label for dimension in file["position"].dims] == ["time", "star", "d"]
        assert file["weight"].attrs["long_name"] == "mass of each star"
