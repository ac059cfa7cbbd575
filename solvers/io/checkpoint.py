"""Checkpoints: the whole state of a run, from which the run resumes exactly.

A running writer alternates between two checkpoints beside the run file, so that one is always valid. When the file is
closed, the last checkpoint moves into it. Each checkpoint carries the identity of its writer, see
`solvers.io.attributes`.
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
    """Complete checkpoint of a run: a state from which the run resumes exactly.

    data       bytes of the checkpoint
    contents   arrays and scalars of the state, each by name
    writer     identity of the run that has written the checkpoint
    sequence   number that increases from one checkpoint to the next
    """

    data: bytes
    contents: Contents
    writer: str
    sequence: int


class Checkpoints:
    """Checkpoints of a run file: ``path.checkpoint-0`` and ``-1`` beside the file, or else one inside the file.

    A running writer replaces the older of the two files, so that one is always valid. When the run file is closed, the
    last checkpoint moves into it.

    A checkpoint is a magic word, the SHA-256 of the rest, and an .npz archive. Files of these names without the magic
    word, and checkpoints of writers outside ``writers``, are never changed. The default of ``writers`` is the list in
    the run file.
    """

    def __init__(self, path: str | Path, writers: Sequence[Writer] | None = None) -> None:
        self.path, self._given = Path(path), writers
        self._slots = [self.path.with_name(f"{self.path.name}.checkpoint-{i}") for i in (0, 1)]

    @classmethod
    def to_be_replaced(cls, path: Path) -> Checkpoints:
        """Return the `Checkpoints` of a run file that is about to be replaced.

        An absent or damaged file lists no writers; every checkpoint beside it then counts as one of another run.
        """
        try:
            return cls(path, _writers_of(path))
        except FileError:
            return cls(path, ())

    @cached_property
    def writers(self) -> Sequence[Writer]:
        """Return the writers (the run and its continuations) whose checkpoints belong to the file, in their order."""
        return self._given if self._given is not None else _writers_of(self.path)

    def write(self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar]) -> None:
        """Write a state as a new checkpoint in place of the older one, and flush it to the disk.

        Raises ValueError for a state that is not finite or cannot be stored exactly. Raises FileError for a failed
        write, which leaves the existing checkpoints intact.
        """
        for name, array in arrays.items():
            _check(name, array)
        for name, value in scalars.items():
            if type(value) not in (int, float, str) or (type(value) is float and not math.isfinite(value)):
                raise ValueError(f"checkpoint: {name} = {value!r}, expected a finite int or float, or a str")
        valid = self._checkpoints_beside()
        sequence = max((found.sequence for found in valid.values()), default=0) + 1
        latest = max(valid, key=lambda slot: self._order(valid[slot]), default=self._slots[1])
        target = self._slots[1 - self._slots.index(latest)]
        try:
            _replace(target, pack(arrays, scalars, sequence, self.writers[-1].identity))
        except OSError as error:
            raise FileError(f"{target}: cannot write the checkpoint: {reason(error)}") from error

    def read(self) -> Contents | None:
        """Return the arrays and scalars, each by name, of the latest checkpoint; None if there is no checkpoint.

        Raises FileError for a checkpoint of another run.
        """
        found = [*self._checkpoints_beside().values()]
        inside = _checkpoint_inside(self.path)
        if inside is not None and self._is_valid(inside):
            found.append(inside)
        return max(found, key=self._order).contents if found else None

    def latest_beside(self) -> bytes | None:
        """Return the bytes of the latest checkpoint beside the run file; None if there is none."""
        valid = self._checkpoints_beside()
        return max(valid.values(), key=self._order).data if valid else None

    def copy_to(self, path: Path) -> None:
        """Copy the latest checkpoint beside the run file, if there is one, to a checkpoint beside its copy ``path``."""
        target = Checkpoints(path, self.writers)
        target.require_own()
        if data := self.latest_beside():
            _replace(target._slots[0], data)

    def require_own(self) -> None:
        """Raise FileError if a file with the name of a checkpoint is no checkpoint, or belongs to another run."""
        self._checkpoints_beside()

    def remove(self) -> None:
        """Remove both checkpoints beside the run file, the latest one last.

        Raises FileError if this fails, or if a file of such a name is no checkpoint of this run.
        """
        valid = self._checkpoints_beside()
        orders = {slot: self._order(found) for slot, found in valid.items()}
        try:
            for slot in sorted(self._slots, key=lambda slot: orders.get(slot, (-1, 0))):  # the latest last
                slot.unlink(missing_ok=True)
        except OSError as error:
            raise FileError(f"{self.path}: cannot remove its checkpoints: {reason(error)}") from error

    def remove_copies(self) -> None:
        """Remove the checkpoints beside a closed run file if the file itself holds the same or a later state.

        Raises the errors of `remove`.
        """
        latest = max(map(self._order, self._checkpoints_beside().values()), default=None)
        inside = None if latest is None else _checkpoint_inside(self.path)
        if latest is not None and inside is not None and self._order(inside) >= latest:
            lock = Lock(self.path)
            try:
                self.remove()
            finally:
                lock.release()

    def _checkpoints_beside(self) -> dict[Path, Checkpoint]:
        """Return the valid checkpoints beside the run file by their paths; raise the errors of `require_own`."""
        valid = {}
        for slot in self._slots:
            if _is_foreign(slot):
                raise FileError(f"{slot}: is not a checkpoint and is not replaced; choose another name for {self.path}")
            if (found := _load(slot)) is not None and self._order(found)[0] < 0:
                raise FileError(f"{slot}: is a checkpoint of another run than {self.path}; move it away, or remove it")
            if found is not None and self._is_valid(found):
                valid[slot] = found
        return valid

    def _is_valid(self, found: Checkpoint) -> bool:
        """Return whether a checkpoint belongs to a writer of the file, and has no data after the next writer's start.

        The data are counted in snapshots and samples.
        """
        number = self._order(found)[0]
        if number < 0:
            return False
        later, scalars = self.writers[number + 1 :], found.contents[1]
        limits = {"snapshots": later[0].snapshots, "samples": later[0].samples} if later else {}
        return all(int(scalars.get(name, 0)) <= limit for name, limit in limits.items())

    def _order(self, found: Checkpoint) -> tuple[int, int]:
        """Return the index of a checkpoint's writer (−1 for another run) and its sequence number, to sort by age."""
        identities = [writer.identity for writer in self.writers]
        return identities.index(found.writer) if found.writer in identities else -1, found.sequence


def pack(arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar], sequence: int, writer: str) -> bytes:
    """Return the bytes of a checkpoint of these arrays and scalars, with its sequence number and writer's identity."""
    text = json.dumps({"sequence": sequence, "writer": writer, "scalars": dict(scalars)}, allow_nan=False)
    archive = io.BytesIO()
    # the prefix avoids clashes of array names with the parameters of savez
    entries: dict[str, Any] = {SCALARS: text, **{f"array.{name}": array for name, array in arrays.items()}}
    np.savez(archive, **entries)
    payload = archive.getvalue()
    return MAGIC + hashlib.sha256(payload).digest() + payload


def require_scalars(
    path: Path, scalars: Mapping[str, Scalar], floats: Sequence[str], counts: Sequence[str], signed: Sequence[str] = ()
) -> None:
    """Raise FileError unless a checkpoint of the file ``path`` has valid numbers of all these names in ``scalars``.

    floats   names of finite numbers ≥ 0
    counts   names of whole numbers ≥ 0
    signed   names of finite numbers of any sign
    """
    for name in (*floats, *counts, *signed):
        value = scalars.get(name)
        is_count = type(value) is int and 0 <= value < 2**63
        is_float = type(value) is float and math.isfinite(value) and (value >= 0 or name in signed)
        if not is_count and (name in counts or not is_float):
            expected = "a whole number" if name in counts else "a finite number"
            expected += "" if name in signed else " >= 0"
            raise FileError(f"{path}: damaged: its checkpoint has {name} = {value!r:.40}, expected {expected}")


def store(file: h5py.File, data: bytes) -> None:
    """Store the bytes of a checkpoint in a run file that is open for writing.

    An interrupted write leaves a checkpoint with a wrong hash, which readers ignore.
    """
    dataset = dataset_of(file, LOCATION)
    dataset.resize(len(data), axis=0)
    dataset[:] = np.frombuffer(data, np.uint8)
    file.flush()


def _writers_of(path: Path) -> Sequence[Writer]:
    """Return the writers that a run file lists; an empty sequence if the file is absent."""
    from .reading import read

    return read(path).writers if path.is_file() else ()


def _checkpoint_inside(path: Path) -> Checkpoint | None:
    """Return the checkpoint inside a run file; None if there is no file, or no complete checkpoint in it."""
    from .reading import read

    if not path.is_file():
        return None
    with read(path).opened() as file:
        if LOCATION not in file:
            return None
        dataset = dataset_of(file, LOCATION)
        require_size(dataset, path.stat().st_size)
        data = bytes(dataset[...].tobytes())
    return _unpack(data, path)


def _load(slot: Path) -> Checkpoint | None:
    """Return the checkpoint in the file ``slot`` beside a run file; None if the checkpoint is absent or incomplete."""
    try:
        data = slot.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{slot}: cannot read the checkpoint: {reason(error)}") from error
    return _unpack(data, slot)


def _unpack(data: bytes, path: Path) -> Checkpoint | None:
    """Return the checkpoint that ``data`` encodes; None for incomplete bytes.

    Raises FileError, which names ``path``, for invalid contents.
    """
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
    """Raise ValueError for an archive with compressed entries, which could expand to any size."""
    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
        raise ValueError("it is compressed")


def _is_foreign(slot: Path) -> bool:
    """Return whether a file with the name of a checkpoint is something else; False for an absent or empty file."""
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
    """Replace the file ``target`` by the bytes ``data`` atomically, so that a crash leaves the old or the new file."""
    with replacement(target) as new, open(new, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    with suppress(PermissionError):  # Windows cannot open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # makes the rename durable
        finally:
            os.close(folder)


def _check(name: str, array: NDArray[Any]) -> None:
    """Raise ValueError unless an array of a checkpoint holds finite numbers."""
    if array.dtype.kind not in "biufc":
        raise ValueError(f"checkpoint: {name} of type {array.dtype}, expected numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"checkpoint: {name} is not finite")
