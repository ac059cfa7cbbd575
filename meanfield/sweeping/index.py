"""The index of a sweep: one HDF5 file with the parameters, the state and the results of every point.

    /parameters/KEY (point)         numbers, or text
    /status, /reason, /exit_status, /wall_time (point)
    /result/NAME (point, ...)       each column at the end, and the scalars of meanfield.sweeping.scalars; NaN where
    none /points/0007/COLUMN (sample, ...)   the diagnostics of a point over time
    attributes: sweep (the file as it is), base (the case that is varied), case (that of point 0, resolved), keys, state
                "running", "finished" or "interrupted", and what made it

A point that is finished is a small file in the folder NAME.points at once; the index is written anew beside the old one
every now and then, and takes its place. Whenever its writer is killed both are whole.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.runtime.provenance import provenance
from meanfield.sweeping.case import Sweep
from meanfield.sweeping.files import own_points, point_file, remove_points, run_file
from meanfield.sweeping.layout import groups_of_points, image_of_point, lay_out_points, read_point, write_point
from meanfield.sweeping.point import FAILED, OVER_TIME, Result
from solvers.io.heaps import require_sound_heaps
from solvers.io.repair import FileError, reason
from solvers.io.replacing import replacement
from solvers.io.schema import DAMAGE
from solvers.io.writing import bytes_of_file, disk_errors

if TYPE_CHECKING:
    import h5py

KIND = "sweep"
_EVERY, _SHARE = 1.0, 0.1  # seconds between writings at least, and share of the time that they may take


class Index:
    """The index of ``sweep`` at ``path``; its caller holds the lock.

    results   of the points that are finished
    closed    whether all of them are in the file, and none waits
    replaced  identities of sweeps whose index this one replaces
    """

    def __init__(
        self,
        path: Path,
        sweep: Sweep,
        command: str,
        results: dict[int, Result],
        closed: bool,
        replaced: tuple[str, ...] = (),
    ) -> None:
        self.path, self.sweep, self.command, self.results, self.closed = path, sweep, command, results, closed
        self.replaced = replaced
        self._written, self._cost = clock.monotonic(), 0.0

    @property
    def waiting(self) -> list[int]:
        """Numbers of the points that are still to be solved."""
        return [number for number in range(len(self.sweep.points)) if number not in self.results]

    @property
    def failed(self) -> int:
        return sum(result.status == FAILED for result in self.results.values())

    @property
    def over_time(self) -> int:
        return sum(result.status == OVER_TIME for result in self.results.values())

    def put(self, number: int, result: Result) -> None:
        """Keep the result of a point. Raises FileError where the disk does not take it."""
        with disk_errors(self.path, "cannot write the results of a point"):
            if result.file is not None:
                _write(run_file(self.path, number), result.file)
            identity = self.sweep.identity
            _write(point_file(self.path, identity, number), image_of_point(result, identity))
        self.results[number] = result
        if clock.monotonic() - self._written > max(_EVERY, self._cost / _SHARE):
            self.write("running")

    def start(self) -> None:
        """Write the index with all that there is, so that the files of single points are not needed any more."""
        self.write("running")
        self._remove_points()

    def write(self, state: str) -> None:
        """Write the index anew. Raises FileError where the disk does not take it."""
        began = clock.monotonic()
        with disk_errors(self.path, "cannot write the index"):
            _write(self.path, self._image(state))
        self._written = clock.monotonic()
        self._cost = self._written - began

    def close(self, state: str) -> None:
        """Write the index for the last time, with all that there is."""
        self.write(state)
        self._remove_points()
        self.closed = True

    def _remove_points(self) -> None:
        with disk_errors(self.path, "cannot remove the files of single points"):
            remove_points(self.path, self.sweep.identity, *self.replaced)

    def _image(self, state: str) -> bytes:
        def fill(file: h5py.File) -> None:
            file.attrs.update(self._attributes(state))
            lay_out_points(file, self.sweep, self.results)
            for number, result in self.results.items():
                write_point(file.create_group(f"points/{number:04}"), result)

        return bytes_of_file(fill)

    def _attributes(self, state: str) -> dict[str, Any]:
        sweep = self.sweep
        origin = provenance(sweep.points[0].case, self.command)
        return {
            "kind": KIND,
            "schema_version": 1,
            "title": sweep.title,
            "state": state,
            "sweep": sweep.text,
            "base": sweep.base,
            "identity": sweep.identity,
            "keys": list(sweep.keys),
            **{name: origin[name] for name in ("case", "versions", "git_commit", "command")},
        }


def open_index(path: Path, sweep: Sweep, command: str, *, overwrite: bool, retry: bool) -> Index:
    """The index of a sweep, not written yet: a new one, or with what an earlier start has solved.

    Points that ran over their time wait again. retry   those that have failed, too.
    Raises FileError where ``path`` is something else and may not be replaced.
    """
    if overwrite or not path.exists():
        return Index(path, sweep, command, {}, closed=False, replaced=_replaced(path))
    text, results = _earlier(path, sweep)
    again = (FAILED, OVER_TIME) if retry else (OVER_TIME,)
    results = {number: result for number, result in results.items() if result.status not in again}
    return Index(path, sweep, command, results, text == sweep.text and len(results) == len(sweep.points))


def _replaced(path: Path) -> tuple[str, ...]:
    """The identity of the index that is about to be replaced, if there is one."""
    import h5py

    if not path.exists() or not h5py.is_hdf5(path):
        return ()
    with suppress(*DAMAGE, FileError):
        require_sound_heaps(path)
        with h5py.File(path, "r", locking=False) as file:
            return (str(file.attrs["identity"]),) if file.attrs.get("kind") == KIND else ()
    return ()


def _earlier(path: Path, sweep: Sweep) -> tuple[str, dict[int, Result]]:
    """The sweep file of a finished index, "" of another; results in it and in single points' files, maybe newer."""
    import h5py

    elsewhere = "--overwrite replaces it, -o writes elsewhere"
    if not h5py.is_hdf5(path):
        raise FileError(f"{path}: exists already and is no index of a sweep; {elsewhere}")
    require_sound_heaps(path)
    with _damage_refused(path), h5py.File(path, "r") as file:
        if file.attrs.get("kind") != KIND:
            raise FileError(f"{path}: exists already and is no index of a sweep; {elsewhere}")
        if file.attrs["identity"] != sweep.identity:
            held, title = len(list(groups_of_points(file))), file.attrs["title"] or "untitled"
            changed = "another sweep, or this one before its case, its keys or their values changed"
            advice = "-o starts this sweep in another file, --overwrite deletes those results"
            raise FileError(f"{path}: left as it is: {held} points of {changed} ({title}); {advice}")
        text = str(file.attrs["sweep"]) if file.attrs["state"] == "finished" else ""
        results = {int(name): read_point(group) for name, group in groups_of_points(file)}
    for name, number in own_points(path, sweep.identity).items():
        with suppress(*DAMAGE, FileError):  # cut short by a power cut: solved again
            require_sound_heaps(name)
            with h5py.File(name, "r") as file:
                if file.attrs["identity"] == sweep.identity:
                    results[number] = read_point(file)
    return text, results


@contextmanager
def _damage_refused(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        advice = "--overwrite starts anew, `meanfield info --verify` says what is still good"
        raise FileError(f"{path}: damaged: {reason(error)}; {advice}") from error


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing, and the old content until then."""
    path.parent.mkdir(exist_ok=True)
    with replacement(path) as new:
        new.write_bytes(content)
