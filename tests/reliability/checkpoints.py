"""Checkpoints with a right hash and changed content: scalars, arrays and their archive."""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from solvers.io.checkpoint import MAGIC, SCALARS, store
from solvers.io.schema import LOCATION

HEAD = len(MAGIC) + hashlib.sha256().digest_size
Entries = dict[str, Any]
VALUES = (-1, 0, 1, 2**63, 10**30, -0.5, 1e300, 5e-324, float("nan"), float("inf"), True, None, "text", "", [1], {})


def change_checkpoint(path: Path, chance: random.Random) -> None:
    """Change the content of a checkpoint, in a file or beside one, and give it a right hash."""
    if path.suffix != ".h5":
        path.write_bytes(changed(path.read_bytes(), chance))
        return
    with h5py.File(path, "r+", locking=False) as file:
        store(file, changed(file[LOCATION][...].tobytes(), chance))


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes of a checkpoint with another content."""
    entries = entries_of(data)
    if "array.values" not in entries and chance.random() < 0.3:
        entries["array.values"] = np.full(32, 1 / (2 * np.pi))
    changes = [chance.choice(CHANGES) for _ in range(chance.choice([1, 1, 2]))]
    for change in sorted(changes, key=lambda change: change is _json):  # invalid JSON comes last
        change(entries, chance)
    archive = archive_of(entries)
    return hashed(archive if chance.random() < 0.9 else archive[: chance.randrange(500)])


def entries_of(data: bytes) -> Entries:
    """Return the arrays of a checkpoint, and its scalars as JSON."""
    with np.load(io.BytesIO(data[HEAD:])) as archive:
        return {name: archive[name] for name in archive.files}


def archive_of(entries: Entries) -> bytes:
    """Return the archive of a checkpoint."""
    archive = io.BytesIO()
    np.savez(archive, **entries)
    return archive.getvalue()


def hashed(archive: bytes) -> bytes:
    """Return the bytes of a checkpoint."""
    return MAGIC + hashlib.sha256(archive).digest() + archive


def _scalar(entries: Entries, chance: random.Random) -> None:
    facts = json.loads(str(entries[SCALARS]))
    if not isinstance(facts, dict):
        return
    owner = facts["scalars"] if chance.random() < 0.8 and isinstance(facts.get("scalars"), dict) else facts
    if not owner:
        return
    name = chance.choice(sorted(owner))
    if chance.random() < 0.2:
        del owner[name]
    else:
        owner[name] = chance.choice(VALUES)
    entries[SCALARS] = np.array(json.dumps(facts))


def _json(entries: Entries, chance: random.Random) -> None:
    entries[SCALARS] = np.array(chance.choice(["{", "[" * 10_000, "[1, 2]", "{}", "", "null"]))


def _array(entries: Entries, chance: random.Random) -> None:
    shape = entries.get("array.values", np.empty(32)).shape
    entries[chance.choice(["array.values", "array.values", "array.other"])] = chance.choice(
        [np.full(shape, np.nan), -np.ones(shape), np.zeros(shape), np.ones(3), np.ones((2, 2, 2)), np.array("text"),
         np.full(shape, 1e300), np.ones(shape, dtype=np.float32), np.ones(shape, dtype=np.int8), np.array(1.0),
         np.ones(shape, dtype=complex), np.ones(0)]
    )  # fmt: skip


CHANGES: tuple[Callable[[Entries, random.Random], None], ...] = (_scalar, _scalar, _scalar, _json, _array)
