"""Checkpoints of another run beside a file are refused, and stay; a user's additions to a file are left alone."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy

import h5py
import numpy as np
import pytest

from solvers.io.checkpoint import MAGIC, Checkpoints, pack
from solvers.io.layout import Column
from solvers.io.run_file import FileError, RunFile, read
from solvers.mesh.mesh import circle

MESH = circle(8)
SCALARS = {"snapshots": 1, "samples": 1}


def killed(path: Path, values: float, *, rows: int = 1) -> Path:
    """Write the file of a killed writer, with a checkpoint beside it."""
    file = RunFile.create(path, MESH, [Column("mass")])
    _write(file, values, rows)
    return path


def _write(file: RunFile, values: float, rows: int, start: int = 0) -> None:
    for k in range(start, start + rows):
        file.write_sample(float(k), {"mass": 1.0})
        file.write_snapshot(float(k), np.full(8, values))
    file.checkpoints.write({"values": np.full(8, values)}, {"snapshots": start + rows, "samples": start + rows})
    file._abandon()
    file._lock.release()


def beside(path: Path) -> dict[str, bytes]:
    return {found.name: found.read_bytes() for found in path.parent.glob(f"{path.name}.checkpoint-*")}


USES: dict[str, Callable[[Path], object]] = {
    "append": RunFile.append,
    "overwrite": lambda path: RunFile.create(path, MESH, overwrite=True),
    "read": lambda path: Checkpoints(path).read(),
}


@pytest.mark.parametrize("use", USES)
def test_a_checkpoint_of_another_run_is_refused_and_stays(use: str, tmp_path: Path) -> None:
    """The situation arises when a file is restored or copied over the name of a killed run."""
    path, other = killed(tmp_path / "a.h5", 1.0), killed(tmp_path / "b.h5", 2.0)
    copy(other, path)
    before = beside(path), read(path).times  # read repairs the file of a killed writer
    with pytest.raises(FileError, match=r"a\.h5\.checkpoint-0: is a checkpoint of another run than "):
        USES[use](path)
    assert (beside(path), read(path).times) == before


def test_a_new_file_does_not_replace_checkpoints_of_one_that_was_moved(tmp_path: Path) -> None:
    path = killed(tmp_path / "a.h5", 1.0)
    path.rename(tmp_path / "moved.h5")
    before = beside(path)
    with pytest.raises(FileError, match="of another run"):
        RunFile.create(path, MESH)
    assert beside(path) == before
    assert not path.exists()


def test_a_restored_file_does_not_take_the_checkpoint_of_its_continuation(tmp_path: Path) -> None:
    path = killed(tmp_path / "a.h5", 1.0)
    copy(path, tmp_path / "backup.h5")
    _write(RunFile.append(path), 2.0, 1, start=1)  # a continuation, for example with another key
    arrays, _ = Checkpoints(path).read()
    assert arrays["values"][0] == 2.0
    copy(tmp_path / "backup.h5", path)
    with pytest.raises(FileError, match="of another run"):
        RunFile.append(path)


def test_a_checkpoint_before_which_its_file_was_cut_is_ignored(tmp_path: Path) -> None:
    path = killed(tmp_path / "a.h5", 1.0, rows=3)
    file = RunFile.append(path, snapshots=1, samples=1)
    file._abandon()
    file._lock.release()
    assert Checkpoints(path).read() is None
    RunFile.append(path).close()
    assert beside(path) == {}


def test_checkpoints_that_a_kill_has_left_beside_a_closed_file_are_removed(tmp_path: Path) -> None:
    path = killed(tmp_path / "a.h5", 1.0)
    left = beside(path)
    RunFile.append(path).close()
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    Checkpoints(path).remove_copies()
    assert beside(path) == {}
    assert Checkpoints(path).read() is not None


def _whole(entries: dict[str, object]) -> bytes:
    payload = io.BytesIO()
    np.savez(payload, **entries)
    return _hashed(payload.getvalue())


def _hashed(payload: bytes) -> bytes:
    return MAGIC + hashlib.sha256(payload).digest() + payload


@pytest.mark.parametrize(
    "data",
    [
        _hashed(b"no archive"),
        _hashed(b""),
        _hashed(pack({}, {}, 1, "")[40:-30]),
        _whole({"scalars": "{"}),
        _whole({"scalars": "[" * 100_000}),
        _whole({"scalars": "[1, 2]"}),
        _whole({"scalars": json.dumps({"sequence": "1", "scalars": {}})}),
        _whole({"scalars": json.dumps({"sequence": 1, "scalars": {"time": [1]}})}),
        _whole({"array.values": np.array(["a"]), "scalars": json.dumps({"sequence": 1, "scalars": {}})}),
        _whole({"array.values": np.ones(3)}),
    ],
)
def test_a_checkpoint_with_a_right_hash_and_wrong_content_is_refused_in_a_line(data: bytes, tmp_path: Path) -> None:
    path = killed(tmp_path / "a.h5", 1.0)
    (tmp_path / "a.h5.checkpoint-1").write_bytes(data)
    with pytest.raises(FileError, match=r"checkpoint-1: damaged: its checkpoint cannot be read: [^\n]*$"):
        RunFile.append(path)


def _attributes(file: h5py.File) -> None:
    for owner in (file, file["time"], file["density"], file["diagnostics"], file["diagnostics/mass"]):
        owner.attrs["note"] = "hello"
        owner.attrs["list"] = np.arange(6.0).reshape(2, 3)
        owner.attrs["bytes"] = np.bytes_(b"\xff\xfe")
        owner.attrs["empty"] = h5py.Empty("f")
        owner.attrs["reference"] = file["time"].ref
        owner.attrs["table"] = np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
        for name in ("segments", "fields", "hand_over_time", "layers_of"):  # known names, which this file lacks
            owner.attrs[name] = "of mine"


def _groups(file: h5py.File) -> None:
    file["mine/deep"] = np.arange(5)
    file["text"], file["fields"] = "words", 3.0
    labelled = file.create_dataset("labelled", data=np.zeros((7, 9)))
    labelled.attrs["units"] = "m"
    labelled.dims[0].label, labelled.dims[1].label = "time", "cell"
    file.create_dataset("outside", (4,), "f8", external=[("nowhere", 0, 32)]).attrs["units"] = "1"
    file["link"] = h5py.ExternalLink("nowhere.h5", "/a")
    file["diagnostics/mine"] = np.arange(4.0)


def _scales(file: h5py.File) -> None:
    file["frame"] = np.arange(len(file["density"]))
    file["frame"].make_scale("frame")
    file["density"].dims[0].attach_scale(file["frame"])


@pytest.mark.parametrize("add", [_attributes, _groups, _scales])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_what_a_user_adds_is_left_alone(add: Callable[[h5py.File], None], libver: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with RunFile.create(path, MESH, [Column("mass")], {"case": "text"}) as file:
        file.write_sample(0.0, {"mass": 1.0})
        file.write_snapshot(0.0, np.ones(8))
    before = read(path)
    with h5py.File(path, "a", libver=libver) as file:
        add(file)
        added = sorted(file.attrs), sorted(file)
    after = read(path)
    assert after.attributes == before.attributes
    assert after.described().keys() == before.described().keys()
    with RunFile.append(path, attributes={"more": "text"}) as file:
        file.write_snapshot(1.0, np.ones(8))
    assert read(path).snapshots == 2
    with h5py.File(path) as file:
        assert (set(added[0]) - set(file.attrs), set(added[1]) - set(file)) == (set(), set())


def test_own_attributes_and_units_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    RunFile.create(path, MESH, [Column("mass")], {"case": "text"}).close()
    with h5py.File(path, "r+") as file:
        del file["diagnostics/mass"].attrs["units"]
    with pytest.raises(FileError, match="damaged: diagnostics/mass has no units"):
        read(path).described()
    with h5py.File(path, "r+") as file:
        del file.attrs["case"]
    with pytest.raises(FileError, match="damaged"):
        read(path)
