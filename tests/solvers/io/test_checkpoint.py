"""Checkpoints: the written state is restored exactly, and the older one if the newer is torn."""

import hashlib
import io
import random
import subprocess
import sys

import numpy as np
import pytest

from solvers.io.attributes import Writer
from solvers.io.checkpoint import MAGIC, Checkpoints
from solvers.io.repair import FileError

ARRAYS = {
    "density": np.random.default_rng(0).random(1000) * 10.0 ** np.arange(-500, 500).clip(-300, 300),
    "counts": np.arange(3),
    "file": np.array([-0.0, 5e-324, 1.7976931348623157e308]),  # this name is an argument of NumPy's writer
}
WRITER = Writer("a")
SCALARS = {"t": 0.1 + 0.2, "dt": 5e-324, "state": 2**127 + 1, "bit_generator": "PCG64", "big": 1e308}


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "run.h5", [WRITER])


def names(checkpoints):
    return sorted(p.name for p in checkpoints.path.parent.iterdir())


def test_exact_round_trip(checkpoints):
    checkpoints.write(ARRAYS, SCALARS)
    arrays, scalars = checkpoints.read()
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].tobytes()) == (array.dtype, array.tobytes())
    assert scalars == SCALARS
    assert [type(value) for value in scalars.values()] == [type(value) for value in SCALARS.values()]


def test_two_in_rotation(checkpoints):
    for k in range(5):
        # As after a resume: the files determine the order.
        Checkpoints(checkpoints.path, [WRITER]).write(ARRAYS, {"k": k})
        assert checkpoints.read()[1] == {"k": k}
    assert names(checkpoints) == ["run.h5.checkpoint-0", "run.h5.checkpoint-1"]
    checkpoints.remove()
    assert names(checkpoints) == []
    assert checkpoints.read() is None


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:20], lambda b: b"", lambda b: b[:500] + b"x" + b[501:]]
)
def test_torn_checkpoint_is_skipped(checkpoints, damage):
    checkpoints.write(ARRAYS, {"k": 1})
    checkpoints.write(ARRAYS, {"k": 2})
    newer = max(checkpoints.path.parent.iterdir())
    newer.write_bytes(damage(newer.read_bytes()))
    assert checkpoints.read()[1] == {"k": 1}
    checkpoints.write(ARRAYS, {"k": 3})  # replaces the torn one
    newer.with_name("run.h5.checkpoint-0").unlink()
    assert checkpoints.read()[1] == {"k": 3}


def test_refused_states_leave_what_was_there(checkpoints):
    checkpoints.write(ARRAYS, {"k": 1})
    for arrays, scalars, message in (
        ({"a": np.array([1.0, np.nan])}, {}, "a is not finite"),
        ({"a": np.array([np.inf])}, {}, "a is not finite"),
        ({"a": np.array([None])}, {}, "a of type object, expected numbers"),
        ({}, {"t": float("inf")}, "t = inf, expected a finite"),
        ({}, {"t": np.float64(1)}, "t = np.float64.1.0., expected a finite"),
        ({}, {"t": None}, "t = None, expected a finite"),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match=message):
                checkpoints.write(arrays, scalars)
    assert checkpoints.read()[1] == {"k": 1}
    assert names(checkpoints) == ["run.h5.checkpoint-0"]


def test_full_disk(checkpoints):
    checkpoints.write(ARRAYS, {"k": 1})
    code = """
import resource, signal, sys
import numpy as np
from solvers.io.attributes import Writer
from solvers.io.checkpoint import Checkpoints, FileError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # what is cut short would stay, and fail others
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    Checkpoints(sys.argv[1], [Writer("a")]).write({"a": np.zeros(1000)}, {})
except FileError as error:
    print(error)
"""
    out = subprocess.check_output([sys.executable, "-c", code, checkpoints.path], text=True)
    assert out == f"{checkpoints.path}.checkpoint-1: cannot write the checkpoint: File too large\n"
    assert checkpoints.read()[1] == {"k": 1}
    assert names(checkpoints) == ["run.h5.checkpoint-0"]


def test_killed_while_writing(checkpoints):
    """The latest checkpoint is whole after a kill at a random time of a process that only writes checkpoints."""
    moments = random.Random(0)
    code = """
import sys, itertools
import numpy as np
from solvers.io.attributes import Writer
from solvers.io.checkpoint import Checkpoints
for k in itertools.count(int(sys.argv[2])):
    Checkpoints(sys.argv[1], [Writer("a")]).write({"a": np.full(100_000, k)}, {"k": k})
    print(flush=True)
"""
    last = -1
    for _ in range(5):
        command = [sys.executable, "-c", code, checkpoints.path, str(last + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0, 0.1))
            process.kill()
        arrays, scalars = checkpoints.read()
        assert scalars["k"] >= last + 2
        assert (arrays["a"] == scalars["k"]).all()
        last = scalars["k"]


def test_a_compressed_archive_is_refused(checkpoints):
    """Compressed entries could expand to any size; the hash of the file is right."""
    checkpoints.write(ARRAYS, {"k": 1})
    [path] = checkpoints.path.parent.iterdir()
    with np.load(io.BytesIO(path.read_bytes()[len(MAGIC) + 32 :])) as archive:
        entries, packed = dict(archive), io.BytesIO()
    np.savez_compressed(packed, **entries)
    path.write_bytes(MAGIC + hashlib.sha256(packed.getvalue()).digest() + packed.getvalue())
    with pytest.raises(FileError, match="damaged: its checkpoint cannot be read: it is compressed"):
        checkpoints.read()
