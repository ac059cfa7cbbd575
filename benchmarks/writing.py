"""Cost of recording a run: share of time spent on writing and diagnostics, and size of the file."""

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

RINGS, SNAPSHOTS, END = 128, 100, 50.0  # a third of the shipped case: clusters form, and two mergers occur
Parts = list[tuple[type, tuple[str, ...]]]
WRITING: Parts = [
    (RunFile, ("write_snapshot", "write_sample", "write_samples", "flush", "sync", "update", "close")),
    (Checkpoints, ("write",)),
]
BARE = ("output.samples=1", "output.snapshots=1")  # a run with almost no output


def writing(
    rings: int = RINGS, snapshots: int = SNAPSHOTS, end: float = END, changes_of_main: Sequence[str] = ()
) -> list[Figure]:
    """Measure the share of a run's wall time spent on writing, the file size, and the overhead of all output.

    The overhead is the time of a step in a run with output minus that in a run without, measured alternately. Steps
    shortened to end at a snapshot count as steps.
    """
    changes = [f"domain.resolution={rings}", f"time.end={end}", f"output.snapshots={snapshots}"]
    case = load("metastable_sphere", changes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.h5")
        shares = [_share(case, path, WRITING) for _ in range(measure.REPEATS)]
        size = os.path.getsize(path)
        recorded, bare = (load("metastable_sphere", [*changes_of_main, *more]) for more in ((), BARE))
        whole, alone = both_timed(lambda: run(recorded, path, overwrite=True), lambda: run(bare, path, overwrite=True))
        steps, of_bare = (run_in_memory(each).checkpoint[1]["steps"] for each in (recorded, bare))
    name = f"{snapshots} snapshots, {rings} rings, t = {end:g}"
    return [
        Figure.of(f"writing, {name}: share of the run's time", 100 * Spread.of(shares), "%", most=10.0),
        Figure(f"writing, {name}: file of 1000 snapshots", 1000 * size / (snapshots + 1) / 1e6, "MB", most=250.0),
        Figure.of(
            "writing and diagnostics, main example of the README: share of the run's time",
            100 * (1 - alone / of_bare / (whole / steps)),
            "%",
            most=10.0,
        ),
    ]


def _share(case: Case, path: Path, parts: Parts) -> float:
    """Return the fraction of the wall time of a run of ``case`` into the file ``path`` that is spent in some methods.

    ``parts`` are pairs of a class and the names of its methods.
    """
    spent = [0.0]
    with _timing(spent, parts):
        began = time.perf_counter()
        run(case, path, overwrite=True)
        return spent[0] / (time.perf_counter() - began)


@contextmanager
def _timing(spent: list[float], parts: Parts) -> Iterator[None]:
    """Add to ``spent[0]`` the seconds of calls of the methods ``parts`` within the ``with`` block.

    Of nested calls only the outermost counts.
    """
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
