"""Checkpoints: the whole state of a run, from which it continues exactly.

While a run continues there are two beside its file, in rotation, so that one is always good; when the file is closed
the last one moves into it. Each carries the identity of its writer, see `solvers.io.attributes`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arrays import ARRAY_DAMAGE
from .attributes import Writer
from .lock import Lock
from .repair import FileError, reason
from .replacing import replacement
from .schema import DAMAGE, LOCATION, dataset_of, require_size

if TYPE_CHECKING:
    import h5py

MAGIC = b"MFCHECK1"
SCALARS = "scalars"  # name of the entry that holds the scalars, as JSON: exact for every float and any integer

ROWS = ("snapshots", "samples", "events")  # scalars: rows of the file that belong to the state, by default 0

Scalar = int | float | str
Contents = tuple[dict[str, NDArray[Any]], dict[str, Scalar]]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A whole checkpoint: its bytes, what they hold, its writer and its number among those of the writer."""

    data: bytes
    contents: Contents
    writer: str
    sequence: int


class Checkpoints:
    """The checkpoints of the run file ``path``: ``path.checkpoint-0`` and ``-1`` beside it, else that in the file.

    A checkpoint is a magic word, the SHA-256 of the rest, and an .npz archive. Files of these names without that word
    are somebody else's, and stay as they are; so do checkpoints of other writers than ``writers``, by default those
    that the file names.
    """

    def __init__(self, path: str | Path, writers: Sequence[Writer] | None = None) -> None:
        self.path, self._given = Path(path), writers
        self._slots = [self.path.with_name(f"{self.path.name}.checkpoint-{i}") for i in (0, 1)]

    @classmethod
    def to_be_replaced(cls, path: Path) -> Checkpoints:
        """Return those of a file that is about to be replaced: of none if there is no such file, or a damaged one."""
        try:
            return cls(path, _writers_of(path))
        except FileError:
            return cls(path, ())

    @cached_property
    def writers(self) -> Sequence[Writer]:
        """Writers of the file, the last of which writes checkpoints."""
        return self._given if self._given is not None else _writers_of(self.path)

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
        valid = self._beside()
        sequence = max((found.sequence for found in valid.values()), default=0) + 1
        latest = max(valid, key=lambda slot: self._order(valid[slot]), default=self._slots[1])
        target = self._slots[1 - self._slots.index(latest)]
        try:
            _replace(target, packed(arrays, scalars, sequence, self.writers[-1].identity))
        except OSError as error:
            raise FileError(f"{target}: cannot write the checkpoint: {reason(error)}") from error

    def read(self) -> Contents | None:
        """(arrays, scalars) of the latest checkpoint, None if there is none. FileError for one of another run."""
        found = [*self._beside().values()]
        inside = _inside(self.path)
        if inside is not None and self._is_valid(inside):
            found.append(inside)
        return max(found, key=self._order).contents if found else None

    def latest_beside(self) -> bytes | None:
        """The bytes of the latest checkpoint beside the file, or None."""
        valid = self._beside()
        return max(valid.values(), key=self._order).data if valid else None

    def copy_to(self, path: Path) -> None:
        """Put the latest checkpoint beside the file, if there is one, beside a copy of the file."""
        target = Checkpoints(path, self.writers)
        target.require_own()
        if data := self.latest_beside():
            _replace(target._slots[0], data)

    def require_own(self) -> None:
        """Raise FileError where a checkpoint of another run, or no checkpoint, has a checkpoint's name."""
        self._beside()

    def remove(self) -> None:
        """Remove both. FileError if they cannot be removed, or are somebody else's files."""
        valid = self._beside()
        orders = {slot: self._order(found) for slot, found in valid.items()}
        try:
            for slot in sorted(self._slots, key=lambda slot: orders.get(slot, (-1, 0))):  # the latest last
                slot.unlink(missing_ok=True)
        except OSError as error:
            raise FileError(f"{self.path}: cannot remove its checkpoints: {reason(error)}") from error

    def remove_copies(self) -> None:
        """Remove checkpoints beside a closed file that holds a state as late as theirs. Raises as ``remove``."""
        latest = max(map(self._order, self._beside().values()), default=None)
        inside = None if latest is None else _inside(self.path)
        if latest is not None and inside is not None and self._order(inside) >= latest:
            lock = Lock(self.path)
            try:
                self.remove()
            finally:
                lock.release()

    def _beside(self) -> dict[Path, Checkpoint]:
        """Return the valid ones beside the file. Raises FileError as ``require_own``."""
        valid = {}
        for slot in self._slots:
            if _is_of_others(slot):
                raise FileError(f"{slot}: is no checkpoint, and stays as it is; choose another name for {self.path}")
            if (found := _load(slot)) is not None and self._order(found)[0] < 0:
                raise FileError(f"{slot}: is a checkpoint of another run than {self.path}; move it away, or remove it")
            if found is not None and self._is_valid(found):
                valid[slot] = found
        return valid

    def _is_valid(self, found: Checkpoint) -> bool:
        """Whether it is of a writer of the file, and of no state after the one from which the next writer began."""
        number = self._order(found)[0]
        if number < 0:
            return False
        later, scalars = self.writers[number + 1 :], found.contents[1]
        limits = {"snapshots": later[0].snapshots, "samples": later[0].samples} if later else {}
        return all(int(scalars.get(name, 0)) <= limit for name, limit in limits.items())

    def _order(self, found: Checkpoint) -> tuple[int, int]:
        """Return a number that grows from one checkpoint to the next; of other writers' the first part is -1."""
        identities = [writer.identity for writer in self.writers]
        return identities.index(found.writer) if found.writer in identities else -1, found.sequence


def packed(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar], sequence: int, writer: str) -> bytes:
    """The bytes of a checkpoint, with its number in the sequence and the identity of its writer."""
    text = json.dumps({"sequence": sequence, "writer": writer, "scalars": dict(scalars)}, allow_nan=False)
    archive = io.BytesIO()
    # savez's own parameters would swallow arrays named like them, hence the prefix
    entries: dict[str, Any] = {SCALARS: text, **{f"array.{name}": array for name, array in arrays.items()}}
    np.savez(archive, **entries)
    payload = archive.getvalue()
    return MAGIC + hashlib.sha256(payload).digest() + payload


def require_scalars(path: Path, scalars: Mapping[str, Scalar], floats: Sequence[str], counts: Sequence[str]) -> None:
    """Raise FileError unless a checkpoint has finite numbers >= 0 by these names, and whole ones for ``counts``."""
    for name in (*floats, *counts):
        value = scalars.get(name)
        is_count = type(value) is int and 0 <= value < 2**63
        if not is_count and (name in counts or not (type(value) is float and 0 <= value < math.inf)):
            expected = "a whole number >= 0" if name in counts else "a finite number >= 0"
            raise FileError(f"{path}: damaged: its checkpoint has {name} = {value!r:.40}, expected {expected}")


def store(file: h5py.File, data: bytes) -> None:
    """Put the bytes of a checkpoint into a run file that is open for writing.

    What is written over is not whole until all is written: then its hash is right.
    """
    dataset = dataset_of(file, LOCATION)
    dataset.resize(len(data), axis=0)
    dataset[:] = np.frombuffer(data, np.uint8)
    file.flush()


def _writers_of(path: Path) -> Sequence[Writer]:
    """Return the writers that a file names; none where there is no file."""
    from .reading import read

    return read(path).writers if path.is_file() else ()


def _inside(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a run file; None if there is none, or no file."""
    from .reading import read

    if not path.is_file():
        return None
    with read(path).opened() as file:
        if LOCATION not in file:
            return None
        dataset = dataset_of(file, LOCATION)
        require_size(dataset, path.stat().st_size)
        data = bytes(dataset[...].tobytes())
    return _unpacked(data, path)


def _load(slot: Path) -> Checkpoint | None:
    """Return the checkpoint in a file beside; None if the file is absent or torn."""
    try:
        data = slot.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{slot}: cannot read the checkpoint: {reason(error)}") from error
    return _unpacked(data, slot)


def _unpacked(data: bytes, path: Path) -> Checkpoint | None:
    """Return the checkpoint of these bytes; None if they are not whole. FileError for whole ones that are none."""
    head, payload = data[: len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        return None
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
            _require_stored(archive.zip)
            arrays = {name.removeprefix("array."): archive[name] for name in archive.files if name != SCALARS}
            facts = json.loads(str(archive[SCALARS]))
        scalars, sequence, writer = facts["scalars"], facts["sequence"], facts["writer"]
        known = all(type(value) in (int, float, str) for value in scalars.values())
        known = known and all(type(scalars.get(name, 0)) is int for name in ROWS)
        if not known or type(sequence) is not int or type(writer) is not str:
            raise ValueError("scalars of another type")
        for name, array in arrays.items():
            _check(name, array)
    except (*DAMAGE, *ARRAY_DAMAGE, RecursionError) as error:
        raise FileError(f"{path}: damaged: its checkpoint cannot be read: {reason(error)}") from None
    return Checkpoint(data, (arrays, scalars), writer, sequence)


def _require_stored(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for compressed entries, which could be of any size."""
    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
        raise ValueError("it is compressed")


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
    with suppress(PermissionError):  # Windows opens no folder
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
