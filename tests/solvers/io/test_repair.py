"""Checksums of HDF5's superblock, which the package computes itself."""

import struct
from pathlib import Path

import h5py
import pytest

from solvers.io.repair import SUPERBLOCK, FileError, is_open_for_writing, lookup3, repair, with_checksum
from solvers.io.writing import bytes_of_file


@pytest.fixture
def data() -> bytes:
    return bytes_of_file(lambda file: file.attrs.update({"name": "value"}))


def test_a_file_laid_out_in_memory_has_the_checksum_of_its_superblock(data: bytes) -> None:
    assert SUPERBLOCK.unpack_from(data)[-1] == lookup3(data[: SUPERBLOCK.size - 4])


def test_flags_cleared_without_their_checksum_are_mended(data: bytes, tmp_path: Path) -> None:
    """HDF5 before 2.0 clears the flags alone when it returns a file's bytes, and no library opens the result."""
    wrong = data[: SUPERBLOCK.size - 4] + struct.pack("<I", 0) + data[SUPERBLOCK.size :]
    (tmp_path / "wrong.h5").write_bytes(wrong)
    with pytest.raises(OSError, match="checksum"):
        h5py.File(tmp_path / "wrong.h5", "r")
    assert with_checksum(wrong) == data
    (tmp_path / "right.h5").write_bytes(with_checksum(wrong))
    with h5py.File(tmp_path / "right.h5", "r") as file:
        assert file.attrs["name"] == "value"


def marked(data: bytes, flags: int, end: int) -> bytes:
    """Return the bytes of a file with these consistency flags and this end-of-file mark."""
    superblock = list(SUPERBLOCK.unpack_from(data))
    superblock[4], superblock[7] = flags, end
    return with_checksum(SUPERBLOCK.pack(*superblock) + data[SUPERBLOCK.size :])


@pytest.mark.parametrize("shift", [-100, 0, 4000])
def test_a_killed_writer_s_file_ends_behind_all_that_it_had_allocated(data: bytes, shift: int, tmp_path: Path) -> None:
    """The file and its mark end at the later of both ends; no written byte is lost."""
    path, end = tmp_path / "killed.h5", len(data) + shift
    path.write_bytes(marked(data, 5, end))
    assert is_open_for_writing(path)
    repair(path)
    assert path.read_bytes() == marked(data, 0, max(len(data), end)).ljust(end, b"\0")
    assert not is_open_for_writing(path)
    with h5py.File(path, "r") as file:
        assert file.attrs["name"] == "value"
    before = path.stat().st_mtime_ns
    repair(path)
    assert path.stat().st_mtime_ns == before


def test_a_closed_file_that_is_cut_short_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "short.h5"
    path.write_bytes(marked(data, 0, len(data) + 1))
    with pytest.raises(FileError, match=f"truncated, it has {len(data)} of {len(data) + 1} bytes"):
        is_open_for_writing(path)


def test_a_superblock_with_another_checksum_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.h5"
    path.write_bytes(data[:11] + b"\1" + data[12:])
    for use in (is_open_for_writing, repair):
        with pytest.raises(FileError, match="damaged: its first 48 bytes"):
            use(path)
