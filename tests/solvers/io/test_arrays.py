"""Arrays in foreign files: read exactly, or refused in one line without filling the memory."""

import io
from pathlib import Path

import h5py
import numpy as np
import pytest

from solvers.io.arrays import read_array, read_arrays

VALUES = np.arange(6.0).reshape(3, 2)


def npy(array: np.ndarray) -> bytes:
    found = io.BytesIO()
    np.save(found, array)
    return found.getvalue()


def test_arrays_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    np.savez(tmp_path / "a.npz", value=VALUES, other="text")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["layer/value"] = VALUES
    assert np.array_equal(read_array(tmp_path / "a.npy", ""), VALUES)
    assert np.array_equal(read_array(tmp_path / "a.h5", "layer/value"), VALUES)
    assert np.array_equal(read_arrays(tmp_path / "a.npz", ["value", "key"])["value"], VALUES)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x93NUMPY", npy(VALUES)[:-8], npy(VALUES)[:60], b"[domain]\n" * 40,
        npy(VALUES).replace(b"(3, 2), }" + b" " * 12, b"(3000000000000, 2), }"),
        npy(np.array([None])), npy(np.array(["text"])), npy(VALUES.astype(complex)), npy(VALUES > 1),
    ],
)  # fmt: skip
def test_what_is_no_array_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_array(tmp_path / "a.npy", "")


@pytest.mark.parametrize("cut", [0, 4, 100, 300, -30])
def test_a_broken_archive_is_refused(cut: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "whole.npz", value=VALUES)
    (tmp_path / "a.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_arrays(tmp_path / "a.npz", ["value"])


@pytest.mark.parametrize("kind", ["external", "virtual", "link", "soft", "group", "huge"])
def test_bytes_of_other_files_are_not_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(48))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["value"] = VALUES
    layout = h5py.VirtualLayout(shape=(3, 2), dtype="f8")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "value", (3, 2), "f8")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        {
            "external": lambda: file.create_dataset("value", (3, 2), "f8", external=[(tmp_path / "secret", 0, 48)]),
            "virtual": lambda: file.create_virtual_dataset("value", layout),
            "link": lambda: file.__setitem__("value", h5py.ExternalLink(tmp_path / "other.h5", "value")),
            "soft": lambda: file.__setitem__("value", h5py.SoftLink("/nowhere")),
            "group": lambda: file.create_group("value"),
            "huge": lambda: file.create_dataset("value", (2**40, 2), "f8", chunks=(1024, 2)),
        }[kind]()
    with pytest.raises(ValueError, match=r"another file|is a link|not a dataset|no dataset|than the file can hold"):
        read_array(tmp_path / "a.h5", "value")


def test_devices_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.npz").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="expected a regular file"):
        read_arrays(tmp_path / "a.npz", ["value"])


def test_what_is_no_archive_is_not_said_to_hold_objects(tmp_path: Path) -> None:
    """NumPy's own message explains unsafe loading."""
    (tmp_path / "a.npz").write_bytes(b"PKzz, no archive")
    with pytest.raises(ValueError, match=r"^not a NumPy archive$"):
        read_arrays(tmp_path / "a.npz", ["value"])
