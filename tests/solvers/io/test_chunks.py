"""Chunks made here against those of HDF5's own filters."""

from __future__ import annotations

import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from solvers.io.chunks import BLOCK, LONGEST, deflated, filtered, fletcher32
from solvers.io.series import Series

rng = np.random.default_rng(5)
VALUES = {
    "noise": rng.standard_normal(4001),
    "near one": 1.0 + 1e-3 * rng.standard_normal(4001),
    "zeros": np.zeros(4001),
    "mostly zeros": np.where(np.arange(4001) % 97 == 0, rng.random(4001), 0.0),
    "every kind": np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -1e308, 1.0]),
    "one": np.array([np.pi]),
    "larger than a block": rng.random(LONGEST + 10),
    "noise in every byte": np.frombuffer(rng.bytes(8 * LONGEST)),
    "of several dimensions": rng.random((70, 3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_hdf5_reads_what_was_written_bit_for_bit(tmp_path: Path, name: str) -> None:
    values = VALUES[name]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        rows = {"shuffle": True, "compression": "gzip", "compression_opts": 1, "fletcher32": True}
        dataset = file.create_dataset("x", (1, *values.shape), chunks=(1, *values.shape), dtype=float, **rows)
        dataset.id.write_direct_chunk((0,) * dataset.ndim, filtered(values))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"][0].tobytes() == values.tobytes()


@pytest.mark.parametrize("length", [2, 3, 7, 8, 719, 720, 721, 2 * BLOCK - 1, 2 * BLOCK + 5, 1 << 21])
@pytest.mark.parametrize("kind", ["noise", "zeros", "ones"])
def test_checksum_is_that_of_hdf5(tmp_path: Path, length: int, kind: str) -> None:
    """Of ones every sum is a multiple of 65535, which is not the 0 of zeros."""
    bytes_of = {"noise": rng.bytes(length), "zeros": bytes(length), "ones": b"\xff" * length}
    data = np.frombuffer(bytes_of[kind], np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=data, chunks=(length,), fletcher32=True)
        stored = dataset.id.read_direct_chunk((0,))[1]
    assert stored == data.tobytes() + fletcher32(data.tobytes()).to_bytes(4, "little")


@pytest.mark.parametrize("name", VALUES)
def test_stream_is_no_longer_than_its_bytes_but_for_a_few_of_each_plane(name: str) -> None:
    """A stored block has five bytes of its own, a flush as many, and deflate begins a block at 4 kB at least."""
    planes = np.ascontiguousarray(VALUES[name].reshape(-1).view(np.uint8).reshape(-1, 8).T)
    stream = deflated(planes)
    assert zlib.decompress(stream) == planes.tobytes()
    assert len(stream) <= planes.size + 8 * (16 + planes.shape[1] // 4096)
    if name in ("zeros", "mostly zeros"):
        assert len(stream) < planes.size / 10


@pytest.mark.parametrize("filters", [{}, {"compression": "gzip"}, {"fletcher32": True, "compression": "lzf"}])
def test_datasets_with_other_filters_are_left_to_hdf5(tmp_path: Path, filters: dict[str, object]) -> None:
    values = rng.random((3, 50))
    with h5py.File(tmp_path / "a.h5", "w", libver="v110") as file:
        file.create_dataset("time", (0,), maxshape=(None,), chunks=(8,), dtype=float, fillvalue=np.nan)
        file.create_dataset("x", (0, 50), maxshape=(None, 50), chunks=(1, 50), dtype=float, **filters)
        Series(file, file, ["x"]).append(0, [0.0, 1.0, 2.0], {"x": values})
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"][:].tobytes() == values.tobytes()
