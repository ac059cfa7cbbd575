"""Verification of a run file by the checksum of its growing parts and by reading all values.

Densities, positions and the mesh carry HDF5's checksums (Fletcher-32), since each chunk is written once. Times and
diagnostics are rewritten in place as they grow, so that a killed writer could leave a wrong checksum. A digest of the
times, diagnostics and texts is written when the file is closed.
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
    """Return the SHA-256 checksum of a run's texts, times of snapshots and samples, diagnostics and events.

    texts   attributes by name, of which only texts (str) count
    """
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
    """Result of reading every value of a run file.

    checked    whether the file has the checksum of a closed file, with which its contents were compared
    snapshots  number of valid snapshots
    damaged    descriptions of the damaged parts
    """

    checked: bool
    snapshots: int
    damaged: tuple[str, ...]


def verify(run: Run) -> Verification:
    """Read every snapshot of a run and every array of its mesh or points, and return which of them are damaged.

    All other contents were checked when the run was read.
    """
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
    """Return whether all fields of snapshot ``k`` are readable, and finite unless they solve a user's equation."""
    try:
        run.snapshot(k)
        for name in run.fields if run.is_solution else ():
            run.field(name, k)
    except FileError:
        return False
    return True
