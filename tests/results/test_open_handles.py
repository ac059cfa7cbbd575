"""A run's file with a user's open handles of h5py and xarray in the same process, in any order, closed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from shutil import copy
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import meanfield as mf
from solvers.io.run_file import FileError

CASE = mf.load_case(
    "metastable_circle", ["domain.resolution=32", "time.end=0.1", "output.snapshots=2", "output.samples=4"]
)
UNTIL = 0.2


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "o.h5"
    mf.run(CASE, path)
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    return Path(copy(sound, tmp_path))


def by_xarray(path: Path) -> Any:
    """Open the diagnostics in xarray, as in the README."""
    opened = xarray.open_dataset(path, group="diagnostics", engine="h5netcdf")
    assert opened["mass"].values[-1] == pytest.approx(1.0)
    return opened


def by_h5py(path: Path) -> Any:
    opened = h5py.File(path)
    assert np.isfinite(opened["density"][-1]).all()
    return opened


def by_us(path: Path) -> Any:
    result = mf.open_run(path)
    assert np.isfinite(result.density[-1]).all()
    return result


def resumed(path: Path) -> Any:
    assert mf.resume(path, until=UNTIL).time[-1] == UNTIL


def run_again(path: Path) -> Any:
    assert mf.run(CASE, path, overwrite=True).time[-1] == 0.1


def as_an_initial_density(path: Path) -> Any:
    mf.simulate(mf.load_case(CASE, {"initial": {"kind": "file", "file": str(path)}, "time.end": 0.01}))


OPEN = (by_xarray, by_h5py, by_us)
USE: tuple[Callable[[Path], Any], ...] = (
    resumed,
    run_again,
    as_an_initial_density,
    lambda path: mf.compare(path),
    lambda path: by_us(path).plot(),
    lambda path: by_us(path).to_xarray()["density"].values,
    lambda path: by_us(path).save(path.with_name("copy.h5")),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "order", list(permutations([*OPEN, resumed])), ids=lambda order: "-".join(f.__name__ for f in order)
)
def test_every_order(order: tuple[Callable[[Path], Any], ...], path: Path) -> None:
    handles = [step(path) for step in order]
    for handle in handles:
        if hasattr(handle, "close"):
            handle.close()
    assert by_us(path).time[-1] == UNTIL


@pytest.mark.parametrize("locking", [None, False])
def test_every_use_beside_open_handles(locking: bool | None, path: Path) -> None:
    with h5py.File(path, locking=locking) as plain:
        before = plain["density"][:]
        for use in USE:
            use(path)
        np.testing.assert_array_equal(plain["density"][:], before)  # a handle keeps its opened file
    with xarray.open_dataset(path, engine="h5netcdf") as opened:
        for use in USE[:-1]:
            use(path)
        assert len(opened["time"]) == len(by_us(path).time)


def test_a_table_of_a_run_is_an_initial_density_while_it_is_open(tmp_path: Path) -> None:
    table = tmp_path / "table.h5"
    with h5py.File(table, "w") as file:
        file["density"] = np.full(32, 1 / (2 * np.pi))
    with h5py.File(table, locking=False):
        initial = {"kind": "array", "file": str(table), "dataset": "density"}
        mf.simulate(mf.load_case(CASE, {"initial": initial, "time.end": 0.01}))


def test_a_run_is_opened_while_it_continues(path: Path) -> None:
    seen: list[int] = []
    with h5py.File(path) as plain:
        mf.resume(path, until=UNTIL, callbacks=[lambda moment: seen.append(len(by_us(path).time))])
        assert len(plain["time"]) == 3
    assert seen
    assert by_us(path).stop_reason == "finished"


@pytest.fixture
def open_for_writing(path: Path) -> Iterator[Path]:
    with h5py.File(path, "a") as file:
        file["mine"] = np.arange(3.0)
        yield path


def test_a_file_that_a_user_writes_is_refused_in_a_line(open_for_writing: Path) -> None:
    before = open_for_writing.read_bytes()
    for use in (mf.open_run, resumed):
        with pytest.raises(FileError, match="open for writing in h5py or another program; close it there first"):
            use(open_for_writing)
    assert open_for_writing.read_bytes() == before
