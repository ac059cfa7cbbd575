"""What it costs to keep a run: time that writing and diagnostics take of it, and bytes of its file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import Figure, Spread, both_timed
from meanfield.case.case import Case
from meanfield.case.load import load
from meanfield.running import run, run_in_memory
from solvers.io.checkpoint import Checkpoints
from solvers.io.run_file import RunFile

RINGS, SNAPSHOTS, END = 128, 100, 50.0  # a third of the shipped case: clusters condense, and two mergers
Parts = list[tuple[type, tuple[str, ...]]]
WRITING: Parts = [
    (RunFile, ("write_snapshot", "write_sample", "write_samples", "flush", "sync", "update", "close")),
    (Checkpoints, ("write",)),
]
BARE = ("output.samples=1", "output.snapshots=1")  # a run that is hardly looked at


def writing(
    rings: int = RINGS, snapshots: int = SNAPSHOTS, end: float = END, changes_of_main: Sequence[str] = ()
) -> list[Figure]:
    """Share of a whole run, by the wall, that is spent in writing; bytes of its file; what writing and diagnostics add.

    What writing and diagnostics add is the time of a step in a run with them less that in one without, taken in turn.
    Steps that are there for snapshots to be met count as steps.
    """
    changes = [f"domain.resolution={rings}", f"time.end={end}", f"output.snapshots={snapshots}"]
    case = load("metastable_sphere", changes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.h5")
        shares = [_share(case, path, WRITING) for _ in range(measure.REPEATS)]
        size = os.path.getsize(path)
        looked_at, bare = (load("metastable_sphere", [*changes_of_main, *more]) for more in ((), BARE))
        whole, alone = both_timed(lambda: run(looked_at, path, overwrite=True), lambda: run(bare, path, overwrite=True))
        steps, of_bare = (run_in_memory(each).checkpoint[1]["steps"] for each in (looked_at, bare))
    name = f"{snapshots} snapshots, {rings} rings, t = {end:g}"
    return [
        Figure.of(f"writing, {name}: of the run's time", 100 * Spread.of(shares), "%", most=10.0),
        Figure(f"writing, {name}: file for 1000 such", 1000 * size / (snapshots + 1) / 1e6, "MB", most=250.0),
        Figure.of(
            "writing and diagnostics, README's main job: of the run's time",
            100 * (1 - alone / of_bare / (whole / steps)),
            "%",
            most=10.0,
        ),
    ]


def _share(case: Case, path: Path, parts: Parts) -> float:
    """Share of the seconds of a run of ``case`` into ``path`` that is spent in ``parts``."""
    spent = [0.0]
    with _timing(spent, parts):
        began = time.perf_counter()
        run(case, path, overwrite=True)
        return spent[0] / (time.perf_counter() - began)


@contextmanager
def _timing(spent: list[float], parts: Parts) -> Iterator[None]:
    """Add to ``spent`` what calls of ``parts`` take, of calls within calls the outermost alone."""
    originals = [(owner, name, getattr(owner, name)) for owner, names in parts for name in names]
    depth = [0]

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            depth[0] += 1
            try:
                return original(*arguments, **options)
            finally:
                depth[0] -= 1
                if depth[0] == 0:
                    spent[0] += time.perf_counter() - began

        return call

    for owner, name, original in originals:
        setattr(owner, name, timed(original))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
