"""Heaps of texts made endless by damage: refused at once, where HDF5 would loop forever."""

import struct

import h5py
import numpy as np
import pytest

from meanfield.cli.parser import main
from solvers.io import opening
from solvers.io.arrays import read_array
from solvers.io.opening import HEADER, OBJECT, require_sound_heaps
from solvers.io.repair import FileError


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3.0)
        for k in range(300):  # several heaps
            file.attrs[f"text {k}"] = "words " * (k + 1)
    return path


def sizes(data):
    """Yield the positions and indexes of the sizes of all objects in all heaps."""
    start = data.find(b"GCOL")
    while start >= 0:
        place, end = start + HEADER.size, start + HEADER.unpack_from(data, start)[2]
        while end - place >= OBJECT.size:
            index, _, _, own = OBJECT.unpack_from(data, place)
            yield place + 8, index
            place += own if index == 0 else OBJECT.size + (own + 7) // 8 * 8
        start = data.find(b"GCOL", start + 4)


def test_sound_files_pass(texts, tmp_path):
    require_sound_heaps(texts)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("GCOL" * 100)
    for name in ("empty", "text"):
        require_sound_heaps(tmp_path / name)


def test_both_ends_of_a_long_file_are_searched(texts, tmp_path, monkeypatch):
    """A continued file has its texts at the end."""
    monkeypatch.setattr(opening, "MAX_SEARCHED", 1 << 16)
    data = texts.read_bytes()
    start = data.find(b"GCOL")
    length = HEADER.unpack_from(data, start)[2]
    heap = data[start : start + HEADER.size] + struct.pack("<HHIQ", 1, 1, 0, 2**40) + bytes(length - 32)
    path = tmp_path / "long"
    for place, refused in ((0, True), (1 << 18, False), ((1 << 19) - length, True)):
        path.write_bytes((bytes(place) + heap).ljust(1 << 19, b"\0"))
        if refused:
            with pytest.raises(FileError, match=f"the heap of texts at byte {place}"):
                require_sound_heaps(path)
        else:
            require_sound_heaps(path)


@pytest.mark.parametrize("wrong", [0, 2**64 - 16, 2**64 - 4096, 2**40])
def test_sizes_that_lead_nowhere_are_refused(texts, wrong, tmp_path):
    data = texts.read_bytes()
    found = list(sizes(data))
    assert len(found) > 300
    broken, refused = tmp_path / "broken.h5", 0
    for place, index in found[::40]:
        broken.write_bytes(data[:place] + struct.pack("<Q", wrong) + data[place + 8 :])
        if wrong == 0 and index:  # an empty text: HDF5 continues elsewhere, and ends
            continue
        with pytest.raises(FileError, match="damaged: the heap of texts at byte"):
            require_sound_heaps(broken)
        with pytest.raises(ValueError, match="the heap of texts"):
            read_array(broken, "x")
        refused += 1
    assert wrong == 0 or refused > 5


def test_commands_refuse_a_run_file_with_an_endless_heap(tmp_path, capsys):
    path = tmp_path / "run.h5"
    assert main(["run", "uniform", "-o", str(path), "--quiet", "--set", "time.end=0.1"]) == 0
    data = path.read_bytes()
    free = [place for place, index in sizes(data) if index == 0]
    assert free  # the free space in a heap
    path.write_bytes(data[: free[0]] + bytes(8) + data[free[0] + 8 :])
    capsys.readouterr()
    for command in ("info", "info --verify", "mergers", "compare", "resume", "plot"):
        verb, *options = command.split()
        assert main([verb, str(path), *options]) == 2, command
        error = capsys.readouterr().err
        assert "damaged: the heap of texts at byte" in error
        assert error.count("\n") == 1
