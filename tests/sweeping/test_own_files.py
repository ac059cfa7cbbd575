"""Files beside a sweep's index: only the sweep's own files are replaced or removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import pytest
from support.sweeping import CASE, in_this_process, statuses, write

from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.driver import DONE, sweep
from meanfield.sweeping.files import own_points, point_file, points_folder, run_file
from meanfield.sweeping.index import Index
from solvers.io.run_file import FileError

KEPT = "[keep]\nfiles = true\n"
TWO = '[keys]\n"attention.beta" = [2.0, 4.0]\n'


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve sweeps in this process."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)


def strangers(folder: Path) -> dict[Path, bytes]:
    """Write foreign files into a folder, with names as a sweep gives them and others, and return their content."""
    folder.mkdir(exist_ok=True)
    for name in ("0000.h5", "0001.h5", "mine.h5", "0000.h5.new", "0000-0123456789abcdef.h5", "notes.txt"):
        (folder / name).write_bytes(f"of somebody else: {name}".encode())
    with h5py.File(folder / "0003.h5", "w") as file:
        file["data"] = 1.0
    return {file: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_others_stay(tmp_path: Path, overwrite: bool) -> None:
    """Foreign files stay in the folder of single points, with a new index and with a replaced one."""
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, CASE)
    before = strangers(points_folder(index))
    assert sweep(file, index, overwrite=overwrite, quiet=True) == DONE
    assert {path: path.read_bytes() for path in points_folder(index).iterdir()} == before
    assert statuses(index) == ["done", "done"]


def interrupted(file: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill a sweep once it has put its first point into a file."""

    def put_and_die(self: Index, *arguments: object, put=Index.put) -> None:  # type: ignore[no-untyped-def]
        put(self, *arguments)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Index, "put", put_and_die)
        with pytest.raises(SystemExit):
            sweep(file, index, quiet=True)


def test_own_points_are_read_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, CASE)
    identity = parse_sweep(file.read_text()).identity
    interrupted(file, index, monkeypatch)
    (own,) = own_points(index, identity)
    assert own == point_file(index, identity, 0)
    with h5py.File(own, "r+") as point:
        point["wall_time"][0] = 77.0  # read again later: the point is not solved twice
    (points_folder(index) / f"{own.name}.0123abcd.new").write_bytes(b"cut short")
    assert sweep(file, index, quiet=True) == DONE
    with h5py.File(index) as found:
        assert found["wall_time"][0] == 77.0
    assert not points_folder(index).exists()


def test_overwriting_removes_the_points_of_what_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, CASE)
    interrupted(file, index, monkeypatch)
    assert len(list(points_folder(index).iterdir())) == 1
    write(file, TWO.replace("4.0", "5.0"), CASE)
    assert sweep(file, index, overwrite=True, quiet=True) == DONE
    assert not points_folder(index).exists()


def test_run_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    """The refusal comes before any point is solved; run files are replaced on request, and other files never."""
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, KEPT, CASE)
    mine = run_file(index, 1)
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"0001\.h5: exists already and is not a run file; -o writes"):
            sweep(file, index, overwrite=overwrite, quiet=True)
    assert mine.read_bytes() == b"mine"
    assert not index.exists()
    mine.unlink()
    assert sweep(file, index, quiet=True) == DONE
    index.unlink()
    with pytest.raises(FileError, match=r"0000\.h5: exists already; --overwrite replaces it, -o writes"):
        sweep(file, index, quiet=True)
    assert sweep(file, index, overwrite=True, quiet=True) == DONE


def test_own_run_files_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that is killed between the run file of a point and its result solves that point again."""
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, KEPT, CASE)
    interrupted(file, index, monkeypatch)
    point_file(index, parse_sweep(file.read_text()).identity, 0).unlink()
    assert run_file(index, 0).exists()
    assert sweep(file, index, quiet=True) == DONE
    shutil.copy(run_file(index, 0), run_file(index, 1))
    monkeypatch.setattr("meanfield.sweeping.index.FAILED", "done")  # all points wait again
    with pytest.raises(FileError, match=r"0001\.h5: exists already; --overwrite"):
        sweep(file, index, retry=True, quiet=True)


def test_temporary_files_of_others_stay(tmp_path: Path) -> None:
    """A temporary file beside an index has a name that no other file has."""
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, CASE)
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "two.h5.new").symlink_to(tmp_path / "victim")
    assert sweep(file, index, quiet=True) == DONE
    assert (tmp_path / "two.h5.new").is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not index.is_symlink()


@pytest.mark.parametrize("folder", ["two.points", "two.runs"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_by_the_name_of_a_folder_of_the_sweep(tmp_path: Path, folder: str, is_link: bool) -> None:
    """The refusal comes before a point is solved, and leaves nothing behind."""
    index, file = tmp_path / "two.h5", write(tmp_path / "two.toml", TWO, KEPT, CASE)
    other = tmp_path / folder
    other.symlink_to("nowhere") if is_link else other.write_text("of somebody else")
    with pytest.raises(FileError, match=f"{folder}: is not a folder"):
        sweep(file, index, quiet=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([folder, "two.toml"])
