"""Indexes of version 1, with a group of datasets for each point, are read, shown and gone on with."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from support.sweeping import CASE, SIX, as_version_1, contents, in_this_process, write

from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.driver import DONE, sweep
from meanfield.sweeping.files import points_folder
from meanfield.sweeping.results import describe_sweep, read_points, read_sweep
from solvers.io.repair import FileError

LEFT_OUT, BESIDE = 4, 5  # points that wait, and whose result is in a file of its own


def written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """A sweep of six points, its index, and the same index as version 1 wrote it."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    file, new, old = write(folder / "six.toml", SIX, CASE), folder / "new.h5", folder / "old.h5"
    assert sweep(file, new, quiet=True) == DONE
    as_version_1(new, old, parse_sweep(file.read_text()).identity, LEFT_OUT, BESIDE)
    return file, new, old


def test_an_index_of_version_1_is_read_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, new, old = written(tmp_path, monkeypatch)
    found, whole = read_sweep(old), read_sweep(new)
    assert found.status.tolist() == ["done"] * 4 + ["waiting", "done"]
    assert "6, 5 done, 1 waiting" in describe_sweep(old)
    assert read_points(old) == 5
    for number in (3, BESIDE):
        for one, other in zip(found.over_time(number, "energy"), whole.over_time(number, "energy"), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(found.scalars["centroid"][number], whole.scalars["centroid"][number])
    assert np.isnan(found.scalars["energy"][LEFT_OUT])
    assert sweep(file, old, quiet=True) == DONE
    assert contents(old) == contents(new)
    times = read_sweep(old).wall_times
    np.testing.assert_array_equal(np.delete(times, LEFT_OUT), 70.0 + np.array([0, 1, 2, 3, 5]))  # not solved again
    assert not points_folder(old).exists()


@pytest.mark.parametrize("linked", ["points", "points/0002", "points/0002/energy"])
def test_an_index_of_version_1_with_links_elsewhere_is_not_gone_on_with(
    linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _, old = written(tmp_path, monkeypatch)
    (tmp_path / "other.h5").write_bytes(old.read_bytes())
    with h5py.File(old, "r+") as index:
        del index[linked]
        index[linked] = h5py.ExternalLink("other.h5", f"/{linked}")
    before = old.read_bytes()
    with pytest.raises(FileError, match=r"old\.h5: damaged: .*is a link elsewhere"):
        sweep(file, old, quiet=True)
    assert old.read_bytes() == before


@pytest.mark.parametrize("renamed", ["points/0002/energy", "points/0002/clusters", "result/end_time", "result/energy"])
def test_an_index_of_version_1_whose_names_differ_is_gone_on_with(
    renamed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of damaged bits is one more column, of that point alone."""
    file, new, old = written(tmp_path, monkeypatch)
    with h5py.File(old, "r+") as index:
        index.move(renamed, f"{renamed}s")
    assert sweep(file, old, quiet=True) == DONE
    whole, found = read_sweep(new).scalars, read_sweep(old).scalars
    kept = [number for number in range(6) if number != 2 or not renamed.startswith("points/0002")]
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name][kept], values[kept])
