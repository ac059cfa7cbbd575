"""Exports of a sweep's index: CSV and netCDF contain all results, including those in other files of the sweep."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import xarray
from support.sweeping import CASE, SIX, in_this_process, write

from meanfield.cli.parser import main
from meanfield.export.formats import export
from meanfield.results.sweeps import open_sweep
from meanfield.sweeping import driver
from meanfield.sweeping.results import read_sweep
from solvers.io.run_file import FileError


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the index of six points, of which every second one is done, in another file of the sweep."""
    monkeypatch.setattr(driver, "with_processes", in_this_process)
    sweep, path = write(tmp_path / "six.toml", SIX, CASE), tmp_path / "six.h5"
    assert driver.sweep(sweep, path, quiet=True, part=(1, 2)) == 0
    return path


def test_csv_has_a_row_for_each_point(index: Path) -> None:
    found = read_sweep(index)
    with export(index, "csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == found.status.tolist() == ["done", "waiting"] * 3
    assert [float(row["attention.beta"]) for row in rows] == [2.0, 2.0, 4.0, 4.0, 9.0, 9.0]
    assert [row["energy"] for row in rows[1::2]] == [""] * 3
    done = rows[::2]
    assert [float(row["energy"]) for row in done] == found.scalars["energy"][::2].tolist()
    assert [float(row["centroid_y"]) for row in done] == found.scalars["centroid"][::2, 1].tolist()


def test_csv_of_some_scalars(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "energy.csv"
    assert main(["export", str(index), "--to", "csv", "--diagnostics", "energy", "-o", str(target)]) == 0
    header = target.read_text().partition("\n")[0]
    assert header == "point,attention.beta,initial.seed,status,reason,wall_time,energy"
    with pytest.raises(FileError, match="has no scalar enrgy; expected one of"):
        export(index, "csv", tmp_path / "other.csv", diagnostics=["enrgy"])


def test_netcdf_is_an_index_of_its_own(index: Path) -> None:
    """Xarray and this package read from the export the results of the index and of the other files together."""
    target, found = export(index, "netcdf"), read_sweep(index)
    with xarray.open_dataset(target, group="samples", engine="h5netcdf") as samples:
        assert samples["energy"].dims == ("point", "sample")
        for point in (0, 2, 4):
            np.testing.assert_array_equal(samples["energy"].values[point], found.time_series(point, "energy")[1])
        assert np.isnan(samples["energy"].values[1]).all()
    assert open_sweep(target).equals(open_sweep(index))


def test_what_an_index_cannot_be_is_refused(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(index), "--to", "vtkhdf"]) == 2
    assert "is the index of a sweep; expected one of csv, netcdf, got vtkhdf" in capsys.readouterr().err
