"""Foreign files beside a run's files: none is written, removed or followed."""

import os
from pathlib import Path

import numpy as np
import pytest

from solvers.io import replacing
from solvers.io.checkpoint import Checkpoints
from solvers.io.lock import Lock, holder
from solvers.io.replacing import replacement
from solvers.io.run_file import FileError, RunFile, read
from solvers.mesh.mesh import circle

MESH = circle(8)
NOTES = b"notes of mine\n"
BESIDE = ("run.h5.lock", "run.h5.checkpoint-0", "run.h5.checkpoint-1")


def everything(folder: Path) -> dict[str, bytes | str]:
    """Return the content of each file in a folder, and the target of each link."""
    return {p.name: os.readlink(p) if p.is_symlink() else p.read_bytes() for p in folder.iterdir() if not p.is_dir()}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("kind", ["text", "link", "dangling", "folder", "fifo"])
def test_what_has_the_name_of_a_file_of_ours_stays(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(NOTES)
    target = tmp_path / name
    make = {
        "text": lambda: target.write_bytes(NOTES),
        "link": lambda: target.symlink_to("victim"),
        "dangling": lambda: target.symlink_to("nowhere"),
        "folder": target.mkdir,
        "fifo": lambda: os.mkfifo(target),
    }
    make[kind]()
    if kind == "fifo":
        descriptor = os.open(target, os.O_RDWR)  # otherwise reading the folder would wait for a writer
    before = {} if kind == "fifo" else everything(tmp_path)
    assert holder(tmp_path / "run.h5") is None
    with pytest.raises(FileError, match=rf"{name}: is not a .* and is not replaced"):
        RunFile.create(tmp_path / "run.h5", MESH)
    if kind == "fifo":
        os.close(descriptor)
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "victim"])
    else:
        assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["run.h5.new", "run.h5.checkpoint-0.new", "run.h5.lock.new", "run.h5.1.new"])
def test_temporary_files_have_names_of_their_own(name: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(NOTES)
    (tmp_path / name).symlink_to("victim")
    with RunFile.create(tmp_path / "run.h5", MESH) as file:
        file.write_snapshot(0.0, np.ones(8))
        Checkpoints(file.path).write({"values": np.ones(8)}, {})
    RunFile.append(tmp_path / "run.h5", attributes={"more": "text"}).close()
    assert (tmp_path / "victim").read_bytes() == NOTES
    assert os.readlink(tmp_path / name) == "victim"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["run.h5", "victim", name])


def test_an_output_that_is_a_link(tmp_path: Path) -> None:
    """A link counts as an existing file, wherever it leads; overwriting replaces the link, not its target."""
    path, victim = tmp_path / "run.h5", tmp_path / "victim"
    path.symlink_to("victim")
    with pytest.raises(FileError, match="exists already"):
        RunFile.create(path, MESH)
    assert not victim.exists()
    victim.write_bytes(NOTES)
    RunFile.create(path, MESH, overwrite=True).close()
    assert victim.read_bytes() == NOTES
    assert not path.is_symlink()


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_meanwhile(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(replacing.os, "link", refuse_links)
    path = tmp_path / "run.h5"
    with pytest.raises(FileExistsError), replacement(path, overwrite=False) as new:  # noqa: PT012
        new.write_text("new")
        path.write_bytes(NOTES)
    assert everything(tmp_path) == {"run.h5": NOTES}
    with replacement(path) as new:
        new.write_text("new")
    assert everything(tmp_path) == {"run.h5": b"new"}


def test_a_lock_that_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    (tmp_path / "run.h5.lock").write_text("process 1 on a node whose name is longer than that of this one")
    lock = Lock(path)
    assert everything(tmp_path).keys() == {"run.h5.lock"}
    assert holder(path) == (tmp_path / "run.h5.lock").read_text()
    with pytest.raises(FileError, match=f"being written by process {os.getpid()} on "):
        Lock(path, timeout=0.05)
    lock.release()
    assert everything(tmp_path) == {}


def test_a_lock_file_that_another_writer_removes_meanwhile_is_no_error(tmp_path, monkeypatch):
    path, name, lstat = tmp_path / "run.h5", tmp_path / "run.h5.lock", os.lstat
    name.touch()

    def removing(file, **options):
        found = lstat(file, **options)
        monkeypatch.setattr(os, "lstat", lstat)
        name.unlink()
        return found

    monkeypatch.setattr(os, "lstat", removing)
    Lock(path).release()
    assert not name.exists()


def test_a_lock_that_others_have_replaced_stays(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "run.h5")
    (tmp_path / "run.h5.lock").unlink()
    (tmp_path / "run.h5.lock").write_bytes(NOTES)
    lock.release()
    assert everything(tmp_path) == {"run.h5.lock": NOTES}


def refuse_links(*names: object, **options: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_pipe_is_neither_replaced_nor_read(tmp_path: Path) -> None:
    """A device is not replaced either; a command that opened a pipe would wait for a writer."""
    pipe, link = tmp_path / "run.h5", tmp_path / "link.h5"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(FileExistsError, match="a device or a pipe"), replacement(path):
            pytest.fail("something was written")
        with pytest.raises(FileError, match="a device or a pipe"):
            read(path)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.h5", "run.h5"]
