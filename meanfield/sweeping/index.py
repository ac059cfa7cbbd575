"""Index of a sweep: one HDF5 file with the parameters, the state and the results of every point.

    /parameters/KEY (point)             numbers, or text
    /status, /reason, /exit_status, /wall_time (point)
    /result/NAME (point, ...)           each column at the end, and the scalars of meanfield.sweeping.scalars
    /samples/count (point)              samples of each point
    /samples/NAME (point, sample, ...)  "time" and the diagnostics of each point over time; NaN where there is none
    attributes: sweep (the file as it is), base (the case that is varied), case (that of point 0, resolved), keys, state
                "running", "finished" or "interrupted", and the provenance

Each group of points solved together is written at once to a small file in the folder NAME.points. From time to time a
new index with all results replaces the old one, and the small files are removed. If the writer is killed at any time,
all files are undamaged.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from meanfield.runtime.provenance import provenance
from meanfield.sweeping.case import Sweep
from meanfield.sweeping.columns import columns_of
from meanfield.sweeping.files import own_points, point_file, remove_points, run_file
from meanfield.sweeping.layout import Parameters, image_of_points, lay_out_index
from meanfield.sweeping.point import FAILED, OVER_TIME, PointResult
from meanfield.sweeping.sources import WAITING, MergedResults, ResultFile
from solvers.io.attributes import copy_additions
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError, reason
from solvers.io.replacing import replacement
from solvers.io.schema import DAMAGE, dataset_of
from solvers.io.writing import disk_errors, new_file_on_disk

KIND, VERSION = "sweep", 2
_EVERY, _SHARE = 1.0, 0.03  # seconds between writings at least, and the largest fraction of time that they may take


class Index:
    """Index of a sweep: the file ``path`` with all results, and its content in memory. The caller holds its lock.

    results   of the finished points
    closed    whether the file contains all results, and no point waits
    replaced  identities of sweeps whose index this one replaces
    """

    def __init__(
        self,
        path: Path,
        sweep: Sweep,
        command: str,
        results: MergedResults,
        closed: bool,
        replaced: tuple[str, ...] = (),
    ) -> None:
        self.path, self.sweep, self.command, self.results, self.closed = path, sweep, command, results, closed
        self.replaced = replaced
        self._written, self._cost = clock.monotonic(), 0.0

    @property
    def waiting(self) -> list[int]:
        """Return the numbers of the unsolved points (runs)."""
        return np.flatnonzero(self.results.outcomes.status == WAITING).tolist()

    @property
    def failed(self) -> list[int]:
        """Return the numbers of the failed points (runs)."""
        return np.flatnonzero(self.results.outcomes.status == FAILED).tolist()

    @property
    def timed_out(self) -> int:
        """Return the number of points (runs) that ran over the time limit."""
        return int((self.results.outcomes.status == OVER_TIME).sum())

    def put(self, results: Mapping[int, PointResult]) -> None:
        """Store the results of some points (runs) in a file beside the index, and from time to time in the index.

        Raises FileError for a disk error.
        """
        with disk_errors(self.path, "cannot write the results of a point"):
            for number, result in results.items():
                if result.file is not None:
                    _write(run_file(self.path, number), result.file)
            identity, columns = self.sweep.identity, columns_of(results)
            file = point_file(self.path, identity, min(results))
            _write(file, image_of_points(columns, identity))
        with _advise_on_damage(self.path):
            self.results.add(ResultFile(file, columns, identity))
        if clock.monotonic() - self._written > max(_EVERY, self._cost / _SHARE):
            self.write("running")

    def start(self) -> None:
        """Write the index file of the sweep with the results of earlier runs of the command, before any new result."""
        self.write("running")

    def write(self, state: str) -> None:
        """Rewrite the index with all results, and remove the files of single points (runs).

        ``state`` is "running", "finished" or "interrupted". Raises FileError for a disk error.
        """
        began = clock.monotonic()
        with disk_errors(self.path, "cannot write the index"):
            self._replace(state)
        # assigned before an interrupt can occur
        self.results = MergedResults(self.results.count, [ResultFile(self.path)])
        with disk_errors(self.path, "cannot remove the files of single points"):
            remove_points(self.path, self.sweep.identity, *self.replaced)
        self._written = clock.monotonic()
        self._cost = self._written - began

    def _replace(self, state: str, *, overwrite: bool = True) -> None:
        """Replace the index by a new file with all results, atomically."""
        with replacement(self.path, overwrite=overwrite) as new, new_file_on_disk(new) as file:
            file.attrs.update(self._attributes(state))
            lay_out_index(file, Parameters.of(self.sweep), self.results)
            if any(source.path == self.path for source in self.results.sources):
                with _advise_on_damage(self.path), open_to_read(self.path) as old:
                    copy_additions(old, file)

    def close(self, state: str) -> None:
        """Write the index for the last time, with all results and the state "finished" or "interrupted"."""
        self.write(state)
        self.closed = True

    def _attributes(self, state: str) -> dict[str, object]:
        """Return the attributes of the index: sweep file, case, state and provenance."""
        sweep = self.sweep
        origin = provenance(sweep.points[0].case, self.command)
        return {
            "kind": KIND,
            "schema_version": VERSION,
            "title": sweep.title,
            "state": state,
            "sweep": sweep.text,
            "base": sweep.base,
            "identity": sweep.identity,
            "keys": list(sweep.keys),
            **{name: origin[name] for name in ("case", "versions", "git_commit", "command")},
        }


class PartOfIndex(Index):
    """Part of a sweep for one of several processes that share no memory: points ``part``, ``part`` + ``parts``, …

    Results are stored in files beside the index, and a start without parts merges them. A part writes the index itself
    only if no index exists.
    """

    part, parts = 0, 1

    @property
    def waiting(self) -> list[int]:
        """Return the numbers of the unsolved points (runs) of this part."""
        return [number for number in super().waiting if number % self.parts == self.part]

    def start(self) -> None:
        """Write an index in the state "interrupted" if no index exists, so that a later start can merge the results."""
        if not self.path.exists():
            with suppress(FileExistsError), disk_errors(self.path, "cannot write the index"):
                self._replace("interrupted", overwrite=False)

    def write(self, state: str) -> None:
        """Write nothing: the files of single points (runs) stay for the merge."""


def open_part(path: Path, sweep: Sweep, command: str, part: int, parts: int) -> PartOfIndex:
    """Return part ``part`` = 0, 1, … of ``parts`` parts of a sweep, with earlier results. Raises as ``open_index``."""
    sources = _earlier(path, sweep)[1] if path.exists() else list(result_files_beside(path, sweep.identity))
    with _advise_on_damage(path):
        results = MergedResults(len(sweep.rows), sources, again=(OVER_TIME,))
    index = PartOfIndex(path, sweep, command, results, closed=False)
    index.part, index.parts = part, parts
    return index


def open_index(path: Path, sweep: Sweep, command: str, *, overwrite: bool, retry: bool) -> Index:
    """Return the index of a sweep, not written yet: a new one, or one with the results of an earlier start.

    Points that ran over their time limit are solved again; with ``retry`` failed points, too. Raises FileError where
    ``path`` is another file and may not be replaced.
    """
    count = len(sweep.rows)
    if overwrite or not path.exists():
        return Index(path, sweep, command, MergedResults(count, ()), closed=False, replaced=_replaced_identity(path))
    text, sources = _earlier(path, sweep)
    with _advise_on_damage(path):
        results = MergedResults(count, sources, again=(FAILED, OVER_TIME) if retry else (OVER_TIME,))
    closed = text == sweep.text and bool((results.outcomes.status != WAITING).all())
    return Index(path, sweep, command, results, closed and len(sources) == 1)


def require_version(path: Path, attributes: Mapping[str, object]) -> None:
    """Raise FileError if the attributes of a sweep's index show another version of its format."""
    if (version := attributes.get("schema_version")) != VERSION:
        raise FileError(f"{path}: index of a sweep of version {version!s:.40}, this program reads {VERSION}")


def _replaced_identity(path: Path) -> tuple[str, ...]:
    """Return the identity (hash of the cases) of the index at ``path`` that is to be replaced; empty without one."""
    import h5py

    if not path.exists() or not h5py.is_hdf5(path):
        return ()
    with suppress(*DAMAGE, FileError), open_to_read(path) as file:
        return (str(file.attrs["identity"]),) if file.attrs.get("kind") == KIND else ()
    return ()


def _earlier(path: Path, sweep: Sweep) -> tuple[str, list[ResultFile]]:
    """Return the text of the sweep file in an earlier index, and the files that hold its results.

    The text is "" unless the index is finished. The files are the index and the files of single runs beside it, which
    may be newer. Raises FileError for a file that is no index, or the index of another sweep.
    """
    import h5py

    elsewhere = "--overwrite replaces it, -o writes elsewhere"
    if not h5py.is_hdf5(path):
        raise FileError(f"{path}: exists already and is not an index of a sweep; {elsewhere}")
    with _advise_on_damage(path), open_to_read(path) as file:
        if file.attrs.get("kind") != KIND:
            raise FileError(f"{path}: exists already and is not an index of a sweep; {elsewhere}")
        require_version(path, file.attrs)
        if file.attrs["identity"] != sweep.identity:
            solved = int((dataset_of(file, "status").asstr()[:] != WAITING).sum())
            title = file.attrs["title"] or "untitled"
            changed = "another sweep, or of this sweep with another case, other keys or other values"
            advice = "-o starts this sweep in another file, --overwrite deletes these results"
            raise FileError(f"{path}: not changed: it has {solved} points of {changed} ({title}); {advice}")
        text = str(file.attrs["sweep"]) if file.attrs["state"] == "finished" else ""
    with _advise_on_damage(path):
        index = ResultFile(path)
        index.require_columns()  # before solving points, whose results could not be merged with damaged ones
        return text, [index, *result_files_beside(path, sweep.identity)]


def result_files_beside(path: Path, identity: str) -> Iterator[ResultFile]:
    """Yield the files with results of points (runs) in the folder beside the index ``path`` of a sweep.

    Only files of the sweep with the given identity (hash of its cases) count. Truncated files are skipped, and their
    points are solved again.
    """
    for name in own_points(path, identity):
        with suppress(*DAMAGE, FileError):
            if (source := ResultFile(name)).identity == identity:
                source.require_columns()
                yield source


@contextmanager
def _advise_on_damage(path: Path) -> Iterator[None]:
    """Raise FileError, with advice, where the block finds that the file ``path`` is damaged."""
    try:
        yield
    except DAMAGE as error:
        advice = "--overwrite starts anew, `meanfield info --verify` says what is still good"
        raise FileError(f"{path}: damaged: {reason(error)}; {advice}") from error


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically: after a failure the old content remains."""
    path.parent.mkdir(exist_ok=True)
    with replacement(path) as new:
        new.write_bytes(content)
