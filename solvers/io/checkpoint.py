"""Checkpoints: the whole state of a run, from which it continues exactly.

While a run goes there are two beside its file, in rotation, so that one is always good; when the file is closed
the last one moves into it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .repair import FileError, reason
from .replacing import replacement
from .schema import dataset_of, require_size

if TYPE_CHECKING:
    import h5py

MAGIC = b"MFCHECK1"
LOCATION = "checkpoint/bytes"  # of the last one in a file
SCALARS = "scalars"  # name of the entry that holds the scalars, as JSON: exact for every float and any integer

Scalar = int | float | str
Contents = tuple[dict[str, NDArray[Any]], dict[str, Scalar]]


class Checkpoints:
    """The checkpoints of the run file ``path``: ``path.checkpoint-0`` and ``-1`` beside it, else that in the file.

    A checkpoint is a magic word, the SHA-256 of the rest, and an .npz archive. Files of these names without that word
    are somebody else's, and stay as they are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._slots = [self.path.with_name(f"{self.path.name}.checkpoint-{i}") for i in (0, 1)]

    def write(self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar]) -> None:
        """Write a new checkpoint in place of the older one, so that it is on the disk when this returns.

        Raises ValueError for a state that is not finite or cannot be stored exactly, FileError if writing
        fails; the checkpoints that were there are still there then.
        """
        for name, array in arrays.items():
            _check(name, array)
        for name, value in scalars.items():
            if type(value) not in (int, float, str) or (type(value) is float and not math.isfinite(value)):
                raise ValueError(f"checkpoint: {name} = {value!r}, expected a finite int or float, or a str")
        valid = [(contents[1]["sequence"], slot) for slot in self._slots if (contents := _load(slot))]
        sequence, latest = max(valid, default=(0, self._slots[1]))
        target = self._slots[1 - self._slots.index(latest)]
        self.require_own()
        try:
            _replace(target, packed(arrays, scalars, int(sequence) + 1))
        except OSError as error:
            raise FileError(f"{target}: cannot write the checkpoint: {reason(error)}") from error

    def read(self) -> Contents | None:
        """(arrays, scalars) of the latest whole checkpoint, None if there is none. FileError if it cannot be read."""
        data = self.latest_beside() or _bytes_in(self.path)
        if data is None or (contents := _unpacked(data)) is None:
            return None
        arrays, head = contents
        return arrays, head["scalars"]

    def latest_beside(self) -> bytes | None:
        """The latest whole checkpoint beside the file, as it is stored there, or None. FileError as ``read``."""
        valid = [(contents[1]["sequence"], slot) for slot in self._slots if (contents := _load(slot))]
        return max(valid)[1].read_bytes() if valid else None

    def require_own(self) -> None:
        """Raise FileError where something that is no checkpoint has a checkpoint's name."""
        for slot in self._slots:
            if _is_of_others(slot):
                raise FileError(f"{slot}: is no checkpoint, and stays as it is; choose another name for {self.path}")

    def remove(self) -> None:
        """Remove both. FileError if they cannot be removed, or are somebody else's files."""
        self.require_own()
        try:
            for slot in sorted(self._slots, key=_number):  # the latest last
                slot.unlink(missing_ok=True)
        except OSError as error:
            raise FileError(f"{self.path}: cannot remove its checkpoints: {reason(error)}") from error


def packed(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar], sequence: int = 1) -> bytes:
    """The bytes of a checkpoint, with its number in the sequence."""
    text = json.dumps({"sequence": sequence, "scalars": dict(scalars)}, allow_nan=False)
    archive = io.BytesIO()
    # savez's own parameters would swallow arrays named like them, hence the prefix
    entries: dict[str, Any] = {SCALARS: text, **{f"array.{name}": array for name, array in arrays.items()}}
    np.savez(archive, **entries)
    payload = archive.getvalue()
    return MAGIC + hashlib.sha256(payload).digest() + payload


def store(file: h5py.File, data: bytes) -> bool:
    """Put the bytes of a checkpoint into a run file that is open for writing; False where it has no room for one.

    Files of earlier versions have none, damaged ones something else in its place. What is written over is not whole
    until all is written: then its hash is right.
    """
    if (dataset := _room_in(file)) is None:
        return False
    dataset.resize(len(data), axis=0)
    dataset[:] = np.frombuffer(data, np.uint8)
    file.flush()
    return True


def _room_in(file: h5py.File) -> h5py.Dataset | None:
    """The dataset of a checkpoint's bytes in the file itself, which grows; None for anything else there."""
    try:
        dataset = dataset_of(file, LOCATION)
    except ValueError:
        return None
    return dataset if dataset.dtype == np.uint8 and dataset.maxshape == (None,) else None


def _bytes_in(path: Path) -> bytes | None:
    """What a run file holds in its place for a checkpoint; None if nothing, or if there is no file."""
    from .reading import read

    if not path.is_file():
        return None
    with read(path).opened() as file:
        if LOCATION not in file:
            return None
        dataset = dataset_of(file, LOCATION)
        require_size(dataset, path.stat().st_size)
        return bytes(dataset[...].tobytes()) or None


def _load(slot: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """(arrays, {"sequence", "scalars"}), or None if the slot is empty or torn."""
    try:
        data = slot.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{slot}: cannot read the checkpoint: {reason(error)}") from error
    return _unpacked(data)


def _unpacked(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """(arrays, {"sequence", "scalars"}) of a checkpoint's bytes; None if they are not whole."""
    head, payload = data[: len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        return None
    with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
        arrays = {name.removeprefix("array."): archive[name] for name in archive.files if name != SCALARS}
        return arrays, json.loads(str(archive[SCALARS]))


def _number(slot: Path) -> int:
    """Of a checkpoint in the sequence, 0 if it is not whole."""
    contents = _load(slot)
    return int(contents[1]["sequence"]) if contents else 0


def _is_of_others(slot: Path) -> bool:
    """Whether a file of a checkpoint's name holds something else; an empty file holds nothing."""
    try:
        if not stat.S_ISREG(os.lstat(slot).st_mode):
            return True
        with open(slot, "rb") as file:
            return file.read(len(MAGIC)) not in (MAGIC, b"")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError(f"{slot}: cannot read the checkpoint: {reason(error)}") from error


def _replace(target: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``target`` so that a crash at any moment leaves the old or the new one."""
    with replacement(target) as new, open(new, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)


def _check(name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "biufc":
        raise ValueError(f"checkpoint: {name} of type {array.dtype}, expected numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"checkpoint: {name} is not finite")
