"""Indexes of version 1, with a group of datasets for each point, are read, shown and gone on with."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from support.sweeping import CASE, SIX, contents, in_this_process, write

from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.driver import DONE, sweep
from meanfield.sweeping.files import points_folder
from meanfield.sweeping.results import describe_sweep, read_points, read_sweep

LEFT_OUT, BESIDE = 4, 5  # points that wait, and whose result is in a file of its own


def as_version_1(new: Path, old: Path, identity: str) -> None:
    """The index ``new`` as version 1 wrote it: point 4 waits, 5 is in a file beside it that knows it by attributes."""
    points_folder(old).mkdir()
    beside = points_folder(old) / f"{BESIDE:04}-{identity[:16]}.h5"
    with h5py.File(new) as file, h5py.File(old, "w") as into, h5py.File(beside, "w") as alone:
        into.attrs.update({**file.attrs, "schema_version": 1, "state": "running"})
        alone.attrs["identity"] = identity
        file.copy("parameters", into)
        for name in ("status", "reason", "exit_status", "wall_time"):
            into[name] = file[name][:]
        into["status"][LEFT_OUT:] = "waiting"
        for name, values in file["result"].items():
            if values.attrs.get("CLASS") != b"DIMENSION_SCALE":
                into[f"result/{name}"] = values[:]
        for number in range(6):
            group = alone if number == BESIDE else into.create_group(f"points/{number:04}")
            for name, values in file["samples"].items():
                if name != "count" and values.attrs.get("CLASS") != b"DIMENSION_SCALE":
                    group[name] = values[number]
            group.attrs.update(status="done", exit_status=0, reason="", wall_time=70.0 + number)
        into["wall_time"][:] = 70.0 + np.arange(6)
        del into[f"points/{LEFT_OUT:04}"]


def test_an_index_of_version_1_is_read_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    file, new, old = write(tmp_path / "six.toml", SIX, CASE), tmp_path / "new.h5", tmp_path / "old.h5"
    assert sweep(file, new, quiet=True) == DONE
    as_version_1(new, old, parse_sweep(file.read_text()).identity)
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
