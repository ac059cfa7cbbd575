"""Columns of many points, as read from an index."""

from __future__ import annotations

from pathlib import Path

import h5py

from meanfield.sweeping.columns import values_of


def test_equal_texts_are_one_object(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "index.h5", "w") as file:
        file.create_dataset("status", data=["done", "failed", "done"], dtype=h5py.string_dtype())
        found = values_of(file, "status")
        assert found.tolist() == ["done", "failed", "done"]
        assert found[0] is found[2]
        assert str(values_of(file, "status", 1)) == "failed"
