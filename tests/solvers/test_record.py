"""Recorded solutions: content of a file, several fields, exact restarts, refused input."""

import gc
import subprocess
import sys

import h5py
import numpy as np
import pytest
from support.methods import GENERAL

from solvers.io.run_file import FileError, RunFile, read
from solvers.io.verifying import verify
from solvers.mesh.mesh import circle
from solvers.mesh.product import box
from solvers.recording.record import record, restart
from solvers.terms.source import Source
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.solve import solve
from solvers.timestepping.state import State


def swing(t, u):
    return np.stack([-u[1], u[0]])


def equation():
    return Equation(None, [Source(swing, fastest=4.0)])


MESH = box((4, 3), (1.0, 1.0))


def start():
    x, y = MESH.centers.T
    return State(0.0, np.stack([x, y]))


def recorded(path, end, state=None, **options):
    watch = record(path, MESH, every=0.25, fields=("x", "y"), diagnostics={"size": lambda u: (u**2).sum()}, **options)
    with watch:
        return evolve(state or start(), equation(), "ssprk3", end, [watch], rtol=None)


def test_fields_and_diagnostics_are_kept(tmp_path):
    path = tmp_path / "swing.h5"
    state = recorded(path, 1.0)
    run = read(path)
    assert run.fields == ("x", "y")
    assert run.attributes["stop_reason"] == "finished"
    np.testing.assert_array_equal(run.times, [0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_array_equal(run.field("y", 0), MESH.centers[:, 1])
    np.testing.assert_array_equal(np.stack([run.field(name, -1) for name in run.fields]), state.values)
    assert run.diagnostics["size"][-1] == pytest.approx((state.values**2).sum(), rel=1e-15)
    with pytest.raises(FileError, match="holds no field 'z': expected one of x, y"):
        run.field("z", 0)


def test_a_restart_is_exact(tmp_path):
    whole, parts = tmp_path / "whole.h5", tmp_path / "parts.h5"
    expected = recorded(whole, 2.0)
    recorded(parts, 1.1)  # ends between snapshots
    state = restart(parts)
    assert state.time == 1.0
    found = recorded(parts, 2.0, state, resume=True)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(read(parts).times, read(whole).times)
    for k in range(9):
        np.testing.assert_array_equal(read(parts).field("x", k), read(whole).field("x", k))
    np.testing.assert_array_equal(read(parts).diagnostics["size"], read(whole).diagnostics["size"])


def test_a_checkpoint_holds_the_latest_step(tmp_path):
    path = tmp_path / "checked.h5"
    state = recorded(path, 1.1, checkpoint=0.0)
    again = restart(path)
    assert again.time == 1.1
    np.testing.assert_array_equal(again.values, state.values)
    assert again.steps == state.steps


@pytest.mark.parametrize("method", GENERAL)
def test_a_restart_with_the_last_step_agrees_to_the_tolerance_in_fewer_steps(tmp_path, method):
    path, decay, options = tmp_path / "u.h5", Equation(None, [lambda t, u: -u]), {"method": method, "rtol": 1e-2}
    with record(path, circle(8), every=4.0, checkpoint=0.0) as recorder:
        solve(decay, np.ones(8), (0.0, 1.0), callbacks=recorder, **options)
    state = restart(path)
    by_default = solve(decay, state.values, (state.time, 2.0), **options)
    found = solve(decay, state.values, (state.time, 2.0), first_step=state.dt, **options)
    assert found.u[-1] == pytest.approx(np.exp(-2.0), abs=1e-2)  # errors add up to rtol times the path, below 1
    assert found.steps < by_default.steps


def test_xarray_opens_it_with_its_fields(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "swing.h5"
    recorded(path, 0.5)
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data["y"].dims == ("time", "cell")
        assert data.sizes["time"] == 3


def test_a_recorder_that_nobody_keeps_closes_its_file(tmp_path):
    path, mesh = tmp_path / "one.h5", circle(8)
    evolve(State(0.0, np.ones(8)), Equation(None, [Source(lambda t, u: -u, fastest=1.0)]), "ssprk3", 1.0,
           [record(path, mesh, every=0.5)])  # fmt: skip
    gc.collect()
    run = read(path)
    assert run.attributes["stop_reason"] == "finished"
    assert run.fields == ("u",)
    assert run.field("u", -1)[0] == pytest.approx(np.exp(-1), rel=1e-3)


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ValueError("no number"), ("failed", "ValueError: no number")),
        (KeyboardInterrupt(), ("interrupted", "interrupted")),
    ],
)
def test_a_block_that_raises_stores_its_error(tmp_path, error, ending):
    """The recorder stores the ending that RunFile stores."""
    for path, opened in (
        (tmp_path / "recorded.h5", lambda path: record(path, MESH, every=1.0)),
        (tmp_path / "written.h5", lambda path: RunFile.create(path, MESH)),
    ):
        with pytest.raises(type(error)), opened(path):
            raise error
        run = read(path)
        assert (run.attributes["stop_reason"], run.attributes["message"]) == ending, path.name


NEVER_CLOSED = """
import sys
import numpy as np
from solvers import Equation, circle, record, solve
path, end = sys.argv[1], float(sys.argv[2])
recorder = record(path, circle(8), every=0.5)
if end:
    solve(Equation(None, [lambda t, u: -u]), np.ones(8), (0.0, end), callbacks=recorder)
"""


@pytest.mark.parametrize("end", [0, 1])
def test_a_recorder_that_is_never_closed_is_closed_at_the_exit(tmp_path, end):
    """A recorder without a state is closed too."""
    path = tmp_path / "u.h5"
    command = [sys.executable, "-c", NEVER_CLOSED, str(path), str(end)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("", "")
    assert not path.with_name("u.h5.lock").exists()
    run = read(path)
    assert (run.attributes["stop_reason"], run.writer) == ("finished", None)
    assert run.times.tolist() == [0.0, 0.5, 1.0][: 3 * end]


def test_what_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "swing.h5"
    recorded(path, 0.25)
    with pytest.raises(FileError, match="exists already"):
        record(path, MESH, every=1.0)
    with pytest.raises(ValueError, match=r"fields = \('a b',\): expected names"):
        record(tmp_path / "other.h5", MESH, every=1.0, fields=("a b",))
    with pytest.raises(ValueError, match="'time' occurs twice, or is a name of the file's own"):
        record(tmp_path / "other.h5", MESH, every=1.0, fields=("x", "time"))
    with pytest.raises(TypeError, match=r"diagnostics\['mass'\] = float: expected a function"):
        record(tmp_path / "other.h5", MESH, every=1.0, diagnostics={"mass": 1.0})
    with pytest.raises(ValueError, match=r"a state of shape \(2, 12\), expected \(12,\) for fields u"):
        record(tmp_path / "other.h5", MESH, every=1.0).begin(start())
    with pytest.raises(FileError, match="holds x, y and size diagnostics: expected the recorded ones"):
        record(path, MESH, every=1.0, resume=True).begin(State(0.0, np.ones(12)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every = 0: expected a finite number > 0"),
        ({"every": "often"}, "every = 'often': expected a finite number > 0"),
        ({"checkpoint": -1.0}, "checkpoint = -1.0: expected a number >= 0"),
        ({"fields": ("u", "u")}, r"fields = \('u', 'u'\): expected names .* each once"),
        ({"diagnostics": {"size": lambda t, u: 0.0}}, r"diagnostics\['size'\] = .* expected a function of \(u\)"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_there_is_a_file(tmp_path, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        record(tmp_path / "u.h5", MESH, **{"every": 1.0, **options})
    assert not list(tmp_path.iterdir())


def test_verify_reads_every_field(tmp_path):
    path = tmp_path / "swing.h5"
    recorded(path, 1.0)
    assert verify(read(path)).damaged == ()
    with h5py.File(path, locking=False) as file:
        offset = file["y"].id.get_chunk_info(2).byte_offset
    data = bytearray(path.read_bytes())
    data[offset + 20] ^= 1
    path.write_bytes(data)
    assert verify(read(path)).damaged == ("snapshots 2 (of 0 to 4)",)
