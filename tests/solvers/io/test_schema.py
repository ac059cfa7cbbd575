"""The schema and the checksums of a run file: damage is named, sound data are read, no foreign bytes are shown."""

import random
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from solvers.io import schema
from solvers.io.layout import Column
from solvers.io.run_file import FileError, RunFile, read
from solvers.io.verifying import verify
from solvers.mesh.mesh import circle

MESH = circle(32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    random_numbers = np.random.default_rng(0)  # so that each snapshot takes a large part of the file
    with RunFile.create(path, MESH, [Column("mass")], {"case": "title = 'x'"}) as file:
        for k in range(5):
            file.write_sample(k, {"mass": float(k)})
            file.write_snapshot(k, random_numbers.random(32))
    return path


def virtual(other: Path) -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout(shape=(5, 32), dtype="f8")
    layout[:] = h5py.VirtualSource(other, "density", (5, 32), "f8")
    return layout


CHANGES = {
    "a group": (lambda f: f.create_group("density"), "density is not a dataset"),
    "absent": (lambda f: None, "it has no dataset density"),
    "external storage": (
        lambda f: f.create_dataset("density", (5, 32), "f8", external=[(f.filename + ".secret", 0, 1280)]),
        "density takes its values from another file",
    ),
    "virtual": (lambda f: f.create_virtual_dataset("density", virtual(f.filename + ".secret")), "from another file"),
    "external link": (
        lambda f: f.__setitem__("density", h5py.ExternalLink("o.h5", "d")),
        "density is a link to another place",
    ),
    "soft link": (
        lambda f: f.__setitem__("density", h5py.SoftLink("/cell_center")),
        "density is a link to another place",
    ),
    "integers": (lambda f: f.create_dataset("density", (5, 32), "i4"), "density holds int32"),
    "single precision": (lambda f: f.create_dataset("density", (5, 32), "f4"), "density holds float32"),
    "other cells": (lambda f: f.create_dataset("density", (5, 31), "f8"), "cell"),
    "flat": (lambda f: f.create_dataset("density", (5,), "f8"), r"density has shape \(5,\)"),
    "large": (lambda f: f.create_dataset("density", (10**7, 32), "f8", chunks=(64, 32)), "than the file can hold"),
    "huge": (lambda f: f.create_dataset("density", (2**40, 32), "f8", chunks=(64, 32)), "than the file can hold"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_density_is_named(change: str, path: Path) -> None:
    make, message = CHANGES[change]
    with h5py.File(path, "r+", locking=False) as file:
        del file["density"]
        make(file)
    with pytest.raises(FileError, match=rf"run\.h5: damaged: .*{message}"):
        read(path)


def test_a_fault_of_a_time_is_named_once(path: Path) -> None:
    """The times of samples belong to every file, and to the table of diagnostics."""
    with h5py.File(path, "r+", locking=False) as file:
        del file["diagnostics/time"]
        file.create_dataset("diagnostics/time", (10**9,), "f8", chunks=(64,))
    with pytest.raises(FileError) as caught:
        read(path)
    assert str(caught.value).count("/diagnostics/time claims (1000000000,) values") == 1


def replace(file: h5py.File, name: str, values: np.ndarray) -> None:
    del file[name]
    file[name] = values


CONTRADICTIONS = {
    "equal times": (lambda f: f["time"].__setitem__(2, 1.0), "times do not increase"),
    "equal times of samples": (lambda f: f["diagnostics/time"].__setitem__(2, 1.0), "times do not increase"),
    "too few cells in rings": (lambda f: f["ring_cells"].__setitem__(0, 31), "ring_cells do not sum up to"),
    "too many cells in rings": (lambda f: f["ring_cells"].__setitem__(0, 33), "ring_cells do not sum up to"),
    "a ring without cells": (lambda f: replace(f, "ring_cells", np.array([32, 0])), "ring_cells do not sum up to"),
    "another resolution": (lambda f: f.attrs.__setitem__("resolution", 31), "resolution is 31, of 32 cells in 1 rings"),
    "a short column": (lambda f: replace(f, "diagnostics/mass", np.zeros(3)), "mass has 3 of 5 samples"),
}


@pytest.mark.parametrize("change", CONTRADICTIONS)
def test_datasets_that_contradict_each_other_are_named(change: str, path: Path) -> None:
    """The file of a killed run has no digest, which would detect most contradictions."""
    make, message = CONTRADICTIONS[change]
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs["digest"] = ""
        make(file)
    with pytest.raises(FileError, match=rf"run\.h5: damaged: {message}"):
        read(path)


def test_times_end_before_the_first_that_is_missing(path: Path) -> None:
    """Data of a killed writer beyond the first missing time was never committed, whatever blocks reached the disk."""
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs["digest"] = ""
        file["time"][2] = file["time"][4] = file["diagnostics/time"][3] = np.nan
    run = read(path)
    assert run.times.tolist() == [0.0, 1.0]
    assert run.sample_times.tolist() == [0.0, 1.0, 2.0]
    assert run.diagnostics["mass"].tolist() == [0.0, 1.0, 2.0]


def test_rows_that_are_only_in_the_memory_of_the_writer_are_no_damage(path: Path) -> None:
    """A reader may see the new length of a dataset before its rows are on disk; rows with a time are committed."""
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs["digest"] = ""  # a continuing run has no digest
        file["diagnostics/mass"].resize((10**5,))
    assert path.stat().st_size < 8 * 10**5
    np.testing.assert_array_equal(read(path).diagnostics["mass"], np.arange(5.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("manifold", 3),
        ("resolution", "x"),
        ("stop_reason", "x"),
        ("wall_time", "x"),
        ("wall_time", np.nan),
        ("message", None),
        ("contents", None),
        ("writers", None),
        ("digest", None),
    ],
)
def test_attributes_have_their_types(name: str, value: object, path: Path) -> None:
    with h5py.File(path, "r+", locking=False) as file:
        del file.attrs[name]
        if value is not None:
            file.attrs[name] = value
    with pytest.raises(FileError, match=f"damaged: .*attribute {name} is"):
        read(path)


def test_texts_and_diagnostics_have_a_digest(path: Path) -> None:
    assert len(read(path).attributes["digest"]) == 64
    for change in (
        lambda file: file["diagnostics/mass"].__setitem__(2, 2.0000001),
        lambda file: file["time"].__setitem__(1, 1.5),
        lambda file: file["diagnostics/time"].__setitem__(1, 1.5),
        lambda file: file.attrs.__setitem__("case", "title = 'y'"),
    ):
        whole = path.read_bytes()
        with h5py.File(path, "r+", locking=False) as file:
            change(file)
        with pytest.raises(FileError, match="damaged: times, diagnostics or attributes differ from what was written"):
            read(path)
        path.write_bytes(whole)
    with RunFile.append(path) as file:
        assert read(path).attributes["digest"] == ""  # the file changes
        file.write_sample(5.0, {"mass": 5.0})
    assert len(read(path).sample_times) == 6


def test_every_flipped_bit_of_a_closed_file_is_seen_or_harmless(path: Path) -> None:
    """A single flipped bit leads either to the written values or to an error."""
    chance, whole, run = random.Random(0), path.read_bytes(), read(path)
    values = [run.density(k) for k in range(5)]
    seen = 0
    for _ in range(150):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            found = read(path)
            assert found.diagnostics["mass"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
            assert found.attributes["case"] == "title = 'x'"
            for k in range(5):
                assert np.array_equal(found.density(k), values[k])
        except FileError:
            seen += 1
    assert seen > 10


def test_verify_says_what_is_still_good(path: Path) -> None:
    assert verify(read(path)) == (found := verify(read(path)))
    assert (found.checked, found.snapshots, found.damaged) == (True, 5, ())
    with h5py.File(path, locking=False) as file:
        offset = file["density"].id.get_chunk_info(2).byte_offset
    data = bytearray(path.read_bytes())
    data[offset + 40] ^= 1
    path.write_bytes(data)
    found = verify(read(path))
    assert (found.snapshots, found.damaged) == (4, ("snapshots 2 (of 0 to 4)",))
    with h5py.File(path, "r+", locking=False) as file:
        file["cell_area"][3] = np.nan
    assert verify(read(path)).damaged == ("cell_area", "snapshots 2 (of 0 to 4)")


def test_a_flipped_superblock_is_not_mended(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[11] ^= 1  # "open for writing"
    path.write_bytes(data)
    with pytest.raises(FileError, match="damaged: its first 48 bytes"):
        read(path)
    assert path.read_bytes() == bytes(data)


def test_a_text_that_is_none_is_named(path: Path) -> None:
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs.create("case", b"title = '\xe2\x28'", dtype=h5py.string_dtype())
    with pytest.raises(FileError, match="attribute case is"):
        read(path)


def test_times_beyond_what_the_bytes_can_hold_are_refused_unread(path: Path) -> None:
    """Chunks that were never written take no byte: their values would fill the memory."""
    with h5py.File(path, "r+") as file:
        for name in ("time", "diagnostics/time"):
            del file[name]
            file.create_dataset(name, (2 * 10**8,), "f8", chunks=(10**6,), compression="gzip", fillvalue=1.0)
            file[name][: 10**6] = np.arange(10**6)
    assert path.stat().st_size < 4e6
    with pytest.raises(FileError, match=r"claims .* values, more than the file can hold"):
        read(path)


def test_times_compressed_twice_are_refused_unread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred kilobytes hold 2·10⁸ zeros, 1.6 GB, when deflate is applied twice."""
    rows = 10**6
    chunk = zlib.compress(zlib.compress(bytes(8 * rows), 9), 9)
    with h5py.File(path, "r+") as file:
        for name in ("time", "diagnostics/time"):
            del file[name]
            storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            storage.set_chunk((rows,))
            storage.set_deflate(9)
            storage.set_deflate(9)
            space = h5py.h5s.create_simple((200 * rows,))
            dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_DOUBLE, space, storage)
            for k in range(200):
                dataset.write_direct_chunk((k * rows,), chunk)
    assert path.stat().st_size < 2e5
    monkeypatch.setattr("solvers.io.reading.read_times", lambda dataset: pytest.fail("times were read"))
    with pytest.raises(FileError, match=r"claims \(200000000,\) values, more than the file can hold"):
        read(path)


def test_an_error_without_a_message_is_reported_by_its_name():
    assert schema._first_line(MemoryError()) == "MemoryError"
    assert schema._first_line(ValueError("one\ntwo")) == "one"
