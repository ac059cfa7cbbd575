"""Reader of the index of a sweep, also while the index grows, and a summary."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from meanfield.runtime.messages import command_of
from meanfield.sweeping.case import FigureChoice
from meanfield.sweeping.columns import Texts, names_in, values_of
from meanfield.sweeping.files import part_writers
from meanfield.sweeping.grid import RANDOM_DESIGNS
from meanfield.sweeping.index import require_version, result_files_beside
from meanfield.sweeping.point import DONE, FAILED, OVER_TIME
from meanfield.sweeping.sources import WAITING, MergedResults, ResultFile
from solvers.io.lock import holder
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError, reason
from solvers.io.schema import DAMAGE, dataset_of, is_text
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

_REASONS = 3  # number of reported reasons of failed points
_MAX_READ = 1 << 26  # bytes of scalars that are read, and thereby verified, at once
_TEXTS = ("title", "state", "sweep", "base", "identity", "case", "versions")
STATES = ("running", "finished", "interrupted")


@dataclass(frozen=True, eq=False)
class SweepResults:
    """Content of the index of a sweep at the time of reading, with the results in files beside it.

    attributes   of the file; text is str
    parameters   for each varied key (points,) numbers, or texts
    spacings     of each varied key "log", "linear", "seeds" or "list"
    results      of the points
    scalars      for each name (points, ...), NaN where there is none; for many points read on access
    """

    path: Path
    attributes: Mapping[str, Any]
    parameters: Mapping[str, NDArray[Any]]
    spacings: Mapping[str, str]
    results: MergedResults
    scalars: Mapping[str, Floats]

    @property
    def status(self) -> Texts:
        """Return the status (points,) of each run of the sweep: "waiting", "done", "failed" or "over time"."""
        return self.results.outcomes.status

    @property
    def reasons(self) -> Texts:
        """Return the reasons (points,) why runs of the sweep failed or stopped early; empty for all others."""
        return self.results.outcomes.reasons

    @property
    def wall_times(self) -> Floats:
        """Return the wall time (points,) of each run of the sweep in seconds."""
        return self.results.outcomes.wall_times

    @property
    def figure(self) -> FigureChoice:
        """Return the choices for the figure of the sweep: the section [figure] of its sweep file."""
        return msgspec.convert(self._file.get("figure", {}), FigureChoice)

    @property
    def is_random(self) -> bool:
        """Return whether the values of the varied keys are random or space-filling, rather than on a grid."""
        return self._file.get("design") in RANDOM_DESIGNS

    @property
    def done(self) -> NDArray[np.intp]:
        """Return the numbers of the runs of the sweep that have finished with results."""
        return np.flatnonzero(self.status == DONE)

    def time_series(self, number: int, column: str) -> tuple[Floats, Floats]:
        """Return the times (samples,) and the values (samples, ...) of a diagnostic in one run of the sweep.

        Raises FileError for a missing column.
        """
        try:
            found = self.results.time_series(number, column)
        except DAMAGE as error:
            raise FileError(f"{self.path}: damaged: point {number}: {reason(error)}") from error
        if isinstance(found, list):
            known = ", ".join(name for name in found if name != "time")
            raise FileError(f"{self.path}: point {number} has no column {column}; expected one of {known}")
        return found

    @property
    def _file(self) -> dict[str, Any]:
        """Return the content of the sweep file, from the text in the index, as a table."""
        return tomllib.loads(self.attributes["sweep"])


class Scalars(Mapping[str, Floats]):
    """Scalars (points, ...) of all points of a sweep by name, each read from the files once, on first access."""

    def __init__(self, results: MergedResults) -> None:
        self._results, self._names, self._held = results, names_in("result", results.shapes), dict[str, Floats]()

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._held:
            self._held[name] = self._results.scalar(name)
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def is_sweep(path: str | Path) -> bool:
    """Return whether a file is the index of a sweep; False for the file of a run, which may be open for writing."""
    try:
        with open_to_read(path) as file:
            kind = file.attrs.get("kind")
            return isinstance(kind, str) and kind == "sweep"
    except (*DAMAGE, FileError):  # a run's file that is being written, or another file: its reader reports the error
        return False


def read_sweep(path: str | Path) -> SweepResults:
    """Return the content of the index of a sweep, in any state.

    Raises FileError where it is no index, or cannot be read.
    """
    path = Path(path)
    try:
        with open_to_read(path) as file:
            if file.attrs.get("kind") != "sweep":
                raise FileError(f"{path}: not an index of a sweep")
            require_version(path, file.attrs)
            attributes = _attributes(file)
            names = [_text("keys", name) for name in attributes["keys"]]
            if not names:
                raise ValueError("attribute keys is empty")
            parameters = {key: values_of(file, f"parameters/{key}") for key in names}
            spacings = {key: _text("spacing", dataset_of(file, f"parameters/{key}").attrs["spacing"]) for key in names}
            count = len(values_of(file, "status"))
        results = MergedResults(count, [ResultFile(path), *result_files_beside(path, str(attributes["identity"]))])
        scalars = Scalars(results)
        _require_sound(count, parameters, results)
        if 8 * count * sum(math.prod(results.shapes[f"result/{name}"]) for name in scalars) <= _MAX_READ:
            dict(scalars)
        return SweepResults(path, attributes, parameters, spacings, results, scalars)
    except DAMAGE as error:
        raise FileError(f"{path}: damaged: {reason(error)}") from error


def tables_of(found: SweepResults) -> Iterator[tuple[int, Mapping[str, Floats]]]:
    """Yield the number of each solved point, and its times (samples,) and columns (samples, ...). Raises FileError."""
    shapes = found.results.shapes
    for number in found.done.tolist():
        try:
            block = found.results.block(number, number + 1, shapes)
        except DAMAGE as error:
            raise FileError(f"{found.path}: damaged: point {number}: {reason(error)}") from error
        count = int(block.outcomes.counts[0])
        yield number, {name: block.values[f"samples/{name}"][0, :count] for name in names_in("samples", shapes)}


def read_points(path: str | Path) -> int:
    """Read the diagnostics of each point (run) to find damage, and return the number of solved points.

    ``read_sweep`` does not read the diagnostics. Raises FileError for damaged diagnostics.
    """
    found = read_sweep(path).results
    bad: list[int] = []
    for number in np.flatnonzero(found.outcomes.status != WAITING).tolist():
        try:
            found.block(number, number + 1, found.shapes)
        except DAMAGE:
            bad.append(number)
    solved = int((found.outcomes.status != WAITING).sum())
    if bad:
        good = f"parameters and scalars of {found.count} points, diagnostics of {solved - len(bad)}"
        raise FileError(f"{path}: damaged: diagnostics of points {', '.join(map(str, bad[:10]))}; valid: {good}")
    return solved


def _attributes(file: h5py.File) -> dict[str, Any]:
    """Return the attributes of an index. Raises ValueError where a required text is missing or invalid."""
    found = dict(file.attrs)
    for name in _TEXTS:
        _text(name, found.get(name))
    if found["state"] not in STATES:
        raise ValueError(f"attribute state is {found['state']!r:.40}")
    tomllib.loads(found["sweep"])
    return found


def _text(name: str, value: object) -> str:
    """Return the value of the attribute ``name`` if it is a text. Raises ValueError for any other value."""
    if not is_text(value):
        raise ValueError(f"attribute {name} is {value!r:.40}")
    return str(value)


def _require_sound(count: int, parameters: Mapping[str, NDArray[Any]], results: MergedResults) -> None:
    """Raise ValueError unless all parameters and results of a sweep have one row for each of ``count`` runs."""
    for name, values in parameters.items():
        if np.ndim(values) < 1 or len(values) != count:
            raise ValueError(f"{name} has {np.shape(values)} values, expected {count} points")
    results.require_columns()


def describe_sweep(path: str | Path) -> str:
    """Return a description of a sweep's index in some lines of text. Raises FileError as ``read_sweep``."""
    found = read_sweep(path)
    lines = [
        ("file", str(path)),
        ("title", found.attributes["title"]),
        ("state", _state(found)),
        ("points", _points(found)),
        *(("key", _describe_key(found, name)) for name in found.parameters),
        ("results", ", ".join(found.scalars)),
        *(("failed", text) for text in _failures(found)),
        ("versions", found.attributes["versions"]),
        ("next", _describe_next_command(found)),
    ]
    return "\n".join(f"{name:9} {text}" for name, text in lines if text)


def sweep_facts(path: str | Path) -> dict[str, Any]:
    """Return the description of a sweep's index as plain values, like ``meanfield.analysis.info.describe`` for a run.

    ``state`` is running, killed, interrupted or finished; ``points`` counts them by status, ``parameters`` and
    ``results`` hold a value for each point. Raises FileError as ``read_sweep``.
    """
    found = read_sweep(path)
    state, writer = _state_and_writer(found)
    return {
        "path": str(path),
        "title": str(found.attributes["title"]),
        "state": state,
        "writer": writer,
        "next": _describe_next_command(found),
        "points": dict(Counter(found.status)),
        "parameters": {name: values.tolist() for name, values in found.parameters.items()},
        "status": found.status.tolist(),
        "reasons": found.reasons.tolist(),
        "wall_times": found.wall_times.tolist(),
        "results": {name: values.tolist() for name, values in found.scalars.items()},
        "versions": str(found.attributes["versions"]),
        "file_size": Path(path).stat().st_size,
    }


def _state_and_writer(found: SweepResults) -> tuple[str, str | None]:
    """Return the state of a sweep, and its writing process as text.

    The state is "running" with a writer; without one it is "killed", "interrupted" or "finished", and the writer is
    None.
    """
    state = str(found.attributes["state"])
    writer = (holder(found.path) if state == "running" else None) or ", ".join(part_writers(found.path)) or None
    if writer is not None:
        return "running", writer
    return ("killed" if state == "running" else state), None


def _state(found: SweepResults) -> str:
    """Return a line on the state of a sweep and its writing process."""
    state, writer = _state_and_writer(found)
    return f"running, by {writer}" if writer else {"killed": "killed: the writing process died"}.get(state, state)


def _points(found: SweepResults) -> str:
    """Return a line with the numbers of points (runs) of each status, and their total wall time."""
    counts = Counter(found.status)
    texts = [f"{len(found.status)}"] + [f"{count} {status}" for status, count in sorted(counts.items())]
    return ", ".join(texts) + f", {found.wall_times.sum():.1f} s of work"


def _describe_key(found: SweepResults, name: str) -> str:
    """Return a line of text with the values of a varied key of a sweep."""
    values = found.parameters[name]
    distinct = list(dict.fromkeys(values.tolist()))
    if values.dtype == object or len(distinct) <= 4:
        return f"{name}: {', '.join(map(str, distinct))}"
    return f"{name}: {len(distinct)} values, {min(distinct):g} to {max(distinct):g}, {found.spacings[name]}"


def _failures(found: SweepResults) -> list[str]:
    """Return the most frequent reasons why points (runs) failed, each as a text with its count."""
    reasons = Counter(r for r, status in zip(found.reasons, found.status, strict=True) if status == FAILED)
    return [f"{count} times: {text}" for text, count in reasons.most_common(_REASONS)]


def _describe_next_command(found: SweepResults) -> str:
    """Return a text on the next command for a sweep: continue or plot."""
    plot = command_of("plot", found.path)
    if _state_and_writer(found)[1] is None:
        waits = not {"waiting", OVER_TIME}.isdisjoint(found.status)
        return "continue with the same command" if waits else f"plot it: {plot}"
    return f"in progress; plot it with: {plot}"
