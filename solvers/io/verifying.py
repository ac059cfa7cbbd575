"""Verification of a run file: the checksum of what changes as a run continues, and a reading of all that a file holds.

Densities, positions and the mesh carry HDF5's checksums (Fletcher-32), for each of their chunks is written once. Times
and diagnostics are rewritten where they are as they grow, so that a checksum of theirs would be wrong in the moment in
which a writer is killed: their digest, with that of the texts, is written when the file is closed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .repair import FileError

if TYPE_CHECKING:
    from .reading import Run

Floats = NDArray[np.float64]


def digest(
    texts: Mapping[str, Any],
    times: Floats,
    sample_times: Floats,
    diagnostics: Mapping[str, Floats],
    events: Mapping[str, Floats],
) -> str:
    """SHA-256 of a file's texts (those among ``texts`` that are str), its times, its diagnostics and its events."""
    found = hashlib.sha256()
    for name, text in sorted(texts.items()):
        if isinstance(text, str):
            found.update(f"{name}\0{text}\0".encode(errors="surrogatepass"))
    of_events = ((f"event {name}", events[name]) for name in sorted(events))
    for name, values in [("time", times), ("sample time", sample_times), *diagnostics.items(), *of_events]:
        found.update(f"{name}\0{values.shape}\0".encode())
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Verification:
    """What a reading of every value of a file has found.

    checked    whether the file has the digest of one that was closed
    snapshots  number of snapshots that are good
    damaged    what is damaged, each in some words
    """

    checked: bool
    snapshots: int
    damaged: tuple[str, ...]


def verify(run: Run) -> Verification:
    """Read every snapshot and all that is kept of the mesh or the points; ``read`` has read the rest."""
    damaged: list[str] = []
    names = ["weight"] if run.manifold == "particles" else ["cell_center", "cell_area"]
    for name in names:
        try:
            finite = bool(np.isfinite(run.variable(name)).all())
        except FileError:
            finite = False
        if not finite:
            damaged.append(name)
    bad = [k for k in range(run.snapshots) if not _is_good(run, k)]
    if bad:
        listed = ", ".join(map(str, bad[:10])) + (", ..." if len(bad) > 10 else "")
        damaged.append(f"snapshots {listed} (of 0 to {run.snapshots - 1})")
    return Verification(bool(run.attributes.get("digest")), run.snapshots - len(bad), tuple(damaged))


def _is_good(run: Run, k: int) -> bool:
    """Whether all fields of a snapshot can be read, and are finite where no user's equation made them."""
    try:
        run.snapshot(k)
        for name in run.fields if run.is_solution else ():
            run.field(name, k)
    except FileError:
        return False
    return True
