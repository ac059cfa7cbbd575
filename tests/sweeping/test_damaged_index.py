"""Columns of an index with contradictory shapes: the sweep does not continue, and reading is refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.sweeping import CASE, in_this_process, statuses, write

from meanfield.sweeping import driver, index
from meanfield.sweeping.case import load_sweep
from meanfield.sweeping.columns import larger_shapes
from meanfield.sweeping.driver import sweep, work_of
from meanfield.sweeping.files import remove_points
from meanfield.sweeping.index import open_index
from meanfield.sweeping.results import read_sweep
from meanfield.sweeping.scalars import lengths
from solvers.io.repair import FileError

THREE = '[keys]\n"attention.beta" = [2.0, 4.0, 9.0]\n'
SHAPES = {  # wrong shapes of damaged columns of three points
    "result/most_clusters": (3, 3),
    "result/mass": (3, 5),
    "result/power": (3,),
    "result/centroid": (3, 2, 2),
    "samples/power": (3, 6),
    "samples/mass": (3,),
    "samples/time": (3, 6, 2),
}


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of a sweep of three points, beside its file."""
    folder = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "with_processes", in_this_process)
        sweep(write(folder / "three.toml", THREE, CASE), folder / "three.h5", quiet=True)
    return folder / "three.h5"


def require_refused(path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that the index is neither read nor continued, and no point is solved."""
    monkeypatch.setattr(driver, "with_processes", lambda jobs: pytest.fail("points are solved"))
    before = path.read_bytes()
    for refused in (lambda: read_sweep(path), lambda: sweep(file, path, quiet=True)):
        with pytest.raises(FileError, match=f"^{path}: damaged: ") as error:
            refused()
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_contradict_are_refused(solved: Path, tmp_path: Path, name: str, monkeypatch: Any) -> None:
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = np.zeros(SHAPES[name])
        file["status"][1], file.attrs["state"] = "waiting", "interrupted"
    require_refused(path, solved.with_suffix(".toml"), monkeypatch)


def test_an_index_of_another_version_is_refused(solved: Path, tmp_path: Path) -> None:
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs["schema_version"] = 1
    before = path.read_bytes()
    for refused in (lambda: read_sweep(path), lambda: sweep(solved.with_suffix(".toml"), path, quiet=True)):
        with pytest.raises(FileError, match=f"^{path}: index of a sweep of version 1, this program reads 2$"):
            refused()
    assert path.read_bytes() == before


def test_results_with_other_axes_than_the_index_stay_beside_it(solved: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Damage that the index alone does not show appears once the first point is solved, whose file stays."""
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        for name in ("result/power", "samples/power"):
            shape = file[name].shape
            del file[name]
            file[name] = np.zeros((*shape, 2))
        file["status"][1], file.attrs["state"] = "waiting", "interrupted"
    monkeypatch.setattr(driver, "with_processes", in_this_process)
    with pytest.raises(FileError, match=f"^{path}: damaged: power has values of shape") as error:
        sweep(solved.with_suffix(".toml"), path, quiet=True)
    assert "\n" not in str(error.value)
    assert statuses(path) == ["done", "waiting", "done"]
    assert len(list((tmp_path / "three.points").iterdir())) == 1


@pytest.mark.parametrize("lost", ["samples/time", "samples"])
def test_an_index_without_times_is_damaged(solved: Path, tmp_path: Path, lost: str, monkeypatch: Any) -> None:
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        del file[lost]
    require_refused(path, solved.parent / "three.toml", monkeypatch)


def test_an_index_without_keys_is_damaged(solved: Path, tmp_path: Path) -> None:
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        file.attrs["keys"] = ""
    with pytest.raises(FileError, match="damaged: attribute keys is empty"):
        read_sweep(path)


def test_shapes_of_as_many_axes_fit_in_the_larger() -> None:
    assert larger_shapes({"samples/power": (6, 9)}, {"samples/power": (8, 5)}) == {"samples/power": (8, 9)}


def test_the_length_of_a_centroid_out_of_range_is_infinite() -> None:
    """No warning is raised."""
    with np.errstate(over="raise"):
        assert lengths(np.array([[3e200, 4e200], [3.0, 4.0]])).tolist() == [np.inf, 5.0]


@pytest.mark.parametrize("name", ["title", "keys", "parameters/attention.beta"])
def test_texts_that_are_none_are_refused(solved: Path, tmp_path: Path, name: str) -> None:
    """The bytes are not UTF-8, which neither a figure nor a page can show."""
    path = tmp_path / "three.h5"
    path.write_bytes(solved.read_bytes())
    with h5py.File(path, "r+") as file:
        texts, attribute = (file[name].attrs, "spacing") if name in file else (file.attrs, name)
        text = h5py.string_dtype()
        texts.create(attribute, [b"\xe2\x28"] if name == "keys" else b"\xe2\x28", dtype=text)
    with pytest.raises(FileError, match=rf"^{path}: damaged: attribute {attribute} is '\\udce2\("):
        read_sweep(path)


def test_an_interrupt_while_files_of_points_are_removed(solved: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The points are then in the index, which is written once more as the sweep ends."""
    path, three = tmp_path / "three.h5", load_sweep(solved.with_suffix(".toml"))
    opened = open_index(path, three, "", overwrite=False, retry=False)
    for results in in_this_process(1)(work_of(opened)):
        opened.put(results)
    monkeypatch.setattr(index, "remove_points", removing_and_then(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        opened.write("running")
    monkeypatch.undo()
    opened.close("interrupted")
    np.testing.assert_array_equal(read_sweep(path).scalars["mass"], read_sweep(solved).scalars["mass"])


def removing_and_then(error: type[BaseException]) -> Any:
    def remove(*arguments: Any) -> None:
        remove_points(*arguments)
        raise error

    return remove
