"""Checksums of HDF5's superblock, which the package computes itself."""

import struct
from pathlib import Path

import h5py
import pytest

from solvers.io.repair import SUPERBLOCK, lookup3, with_checksum
from solvers.io.writing import bytes_of_file


@pytest.fixture
def data() -> bytes:
    return bytes_of_file(lambda file: file.attrs.update({"name": "value"}))


def test_a_file_laid_out_in_memory_has_the_checksum_of_its_superblock(data: bytes) -> None:
    assert SUPERBLOCK.unpack_from(data)[-1] == lookup3(data[: SUPERBLOCK.size - 4])


def test_flags_cleared_without_their_checksum_are_mended(data: bytes, tmp_path: Path) -> None:
    """As HDF5 before 2.0 does when it gives a file's bytes: nothing opens them."""
    wrong = data[: SUPERBLOCK.size - 4] + struct.pack("<I", 0) + data[SUPERBLOCK.size :]
    (tmp_path / "wrong.h5").write_bytes(wrong)
    with pytest.raises(OSError, match="checksum"):
        h5py.File(tmp_path / "wrong.h5", "r")
    assert with_checksum(wrong) == data
    (tmp_path / "right.h5").write_bytes(with_checksum(wrong))
    with h5py.File(tmp_path / "right.h5", "r") as file:
        assert file.attrs["name"] == "value"
