"""Reading of the index of a sweep, also while it grows, and a summary of it."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from meanfield.sweeping.case import FigureChoice
from meanfield.sweeping.layout import read_point
from meanfield.sweeping.point import DONE, FAILED, OVER_TIME
from solvers.io.heaps import require_sound_heaps
from solvers.io.lock import holder
from solvers.io.repair import FileError, reason
from solvers.io.schema import DAMAGE, dataset_of, require_size
from solvers.mesh.mesh import Floats

_REASONS = 3  # of failed points, reported
_TEXTS = ("title", "state", "sweep", "base", "identity", "case", "versions")
STATES = ("running", "finished", "interrupted")


@dataclass(frozen=True, eq=False)
class SweepResults:
    """What the index of a sweep held when it was read.

    attributes   of the file; text is str
    parameters   for each key (points,) numbers, or texts
    spacings     of each key "log", "linear", "seeds" or "list"
    status       (points,) "waiting", "done", "failed" or "over time"
    reasons      (points,) why a point failed, or stopped early
    wall_times   (points,) seconds
    scalars      for each name (points, ...), NaN where there is none
    """

    path: Path
    attributes: Mapping[str, Any]
    parameters: Mapping[str, NDArray[Any]]
    spacings: Mapping[str, str]
    status: tuple[str, ...]
    reasons: tuple[str, ...]
    wall_times: Floats
    scalars: Mapping[str, Floats]

    @property
    def figure(self) -> FigureChoice:
        """What the sweep file says about its figure."""
        return msgspec.convert(self._file.get("figure", {}), FigureChoice)

    @property
    def is_random(self) -> bool:
        """Whether points lie anywhere, and not on a grid."""
        return self._file.get("design") == "random"

    @property
    def done(self) -> NDArray[np.intp]:
        """Numbers of the points that have results."""
        return np.flatnonzero([status == DONE for status in self.status])

    def over_time(self, number: int, column: str) -> tuple[Floats, Floats]:
        """Times (samples,) and a column (samples, ...) of one point. Raises FileError where there is none."""
        import h5py

        require_sound_heaps(self.path)
        with h5py.File(self.path, "r", locking=False) as file:
            group = file.get(f"points/{number:04}", {})
            if column not in group:
                known = ", ".join(name for name in group if name != "time")
                raise FileError(f"{self.path}: point {number} has no column {column}; expected one of {known}")
            try:
                return _plain(group, "time"), _plain(group, column)
            except DAMAGE as error:
                raise FileError(f"{self.path}: damaged: point {number}: {reason(error)}") from error

    @property
    def _file(self) -> dict[str, Any]:
        return tomllib.loads(self.attributes["sweep"])


def is_sweep(path: str | Path) -> bool:
    """Whether a file is the index of a sweep, and not a run's, which may be open for writing."""
    import h5py

    try:
        require_sound_heaps(path)
        with h5py.File(path, "r", locking=False) as file:
            kind = file.attrs.get("kind")
            return isinstance(kind, str) and kind == "sweep"
    except (*DAMAGE, FileError):  # a run's file that is being written, or none at all: its reader says what is wrong
        return False


def read_sweep(path: str | Path) -> SweepResults:
    """Read an index in whatever state it is. Raises FileError where it is none, or cannot be read."""
    import h5py

    path = Path(path)
    try:
        require_sound_heaps(path)
        with h5py.File(path, "r", locking=False) as file:
            if file.attrs.get("kind") != "sweep":
                raise FileError(f"{path}: no index of a sweep")
            names = [str(name) for name in file.attrs["keys"]]
            found = SweepResults(
                path=path,
                attributes=_attributes(file),
                parameters={key: _plain(file, f"parameters/{key}") for key in names},
                spacings={key: str(file[f"parameters/{key}"].attrs["spacing"]) for key in names},
                status=tuple(_plain(file, "status")),
                reasons=tuple(_plain(file, "reason")),
                wall_times=np.asarray(_plain(file, "wall_time"), dtype=float),
                scalars={name: _plain(file, f"result/{name}") for name in _of_points(file["result"])},
            )
            _require_sound(found)
            return found
    except DAMAGE as error:
        raise FileError(f"{path}: damaged: {reason(error)}") from error


def _of_points(group: Any) -> list[str]:
    """Names of the datasets that are no dimension scales."""
    return [name for name, data in group.items() if data.attrs.get("CLASS") != b"DIMENSION_SCALE"]


def read_points(path: str | Path) -> int:
    """Read the diagnostics of each point, all that ``read_sweep`` leaves; returns how many points have some."""
    import h5py

    count, bad = len(read_sweep(path).status), []
    with h5py.File(path, "r", locking=False) as file:
        numbers = list(file.get("points", {}))
        for number in numbers:
            try:
                read_point(file[f"points/{number}"])
            except DAMAGE:
                bad.append(number)
    if bad:
        good = f"parameters and scalars of {count} points, diagnostics of {len(numbers) - len(bad)}"
        raise FileError(f"{path}: damaged: diagnostics of points {', '.join(bad[:10])}; still good: {good}")
    return len(numbers)


def _attributes(file: Any) -> dict[str, Any]:
    """The texts that every index has, and what else there is. ValueError where one is no text."""
    found = dict(file.attrs)
    for name in _TEXTS:
        if not isinstance(found.get(name), str):
            raise ValueError(f"attribute {name} is {found.get(name)!r:.40}")
    if found["state"] not in STATES:
        raise ValueError(f"attribute state is {found['state']!r:.40}")
    tomllib.loads(found["sweep"])
    return found


def _require_sound(found: SweepResults) -> None:
    count = len(found.status)
    columns: dict[str, Any] = {**found.parameters, **found.scalars, "reason": found.reasons}
    columns["wall_time"] = found.wall_times
    for name, values in columns.items():
        if np.ndim(values) < 1 or len(values) != count:
            raise ValueError(f"{name} has {np.shape(values)} values, expected {count} points")


def _plain(group: Any, name: str) -> NDArray[Any]:
    dataset = dataset_of(group, name)
    require_size(dataset, group.file.id.get_filesize())
    return np.asarray(dataset.asstr()[:] if dataset.dtype == object else dataset[:])


def describe_sweep(path: str | Path) -> str:
    """What there is to know of a sweep's index, in some lines for people. Raises FileError as ``read_sweep``."""
    found = read_sweep(path)
    lines = [
        ("file", str(path)),
        ("title", found.attributes["title"]),
        ("state", _state(found)),
        ("points", _points(found)),
        *(("key", _key(found, name)) for name in found.parameters),
        ("results", ", ".join(found.scalars)),
        *(("failed", text) for text in _failures(found)),
        ("versions", found.attributes["versions"]),
        ("next", _next(found)),
    ]
    return "\n".join(f"{name:9} {text}" for name, text in lines if text)


def sweep_facts(path: str | Path) -> dict[str, Any]:
    """The same as plain values for programs, like ``meanfield.analysis.info.describe`` of a run.

    Raises FileError likewise.

    ``state`` is running, killed, interrupted or finished; ``points`` counts them by status, ``parameters`` and
    ``results`` hold a value for each point.
    """
    found = read_sweep(path)
    state, writer = _state_and_writer(found)
    return {
        "path": str(path),
        "title": str(found.attributes["title"]),
        "state": state,
        "writer": writer,
        "next": _next(found),
        "points": dict(Counter(found.status)),
        "parameters": {name: values.tolist() for name, values in found.parameters.items()},
        "status": list(found.status),
        "reasons": list(found.reasons),
        "wall_times": found.wall_times.tolist(),
        "results": {name: values.tolist() for name, values in found.scalars.items()},
        "versions": str(found.attributes["versions"]),
        "file_size": Path(path).stat().st_size,
    }


def _state_and_writer(found: SweepResults) -> tuple[str, str | None]:
    state = str(found.attributes["state"])
    writer = holder(found.path) if state == "running" else None
    return ("killed" if state == "running" and writer is None else state), writer


def _state(found: SweepResults) -> str:
    state, writer = _state_and_writer(found)
    return f"running, by {writer}" if writer else {"killed": "killed: the writing process died"}.get(state, state)


def _points(found: SweepResults) -> str:
    counts = Counter(found.status)
    texts = [f"{len(found.status)}"] + [f"{count} {status}" for status, count in sorted(counts.items())]
    return ", ".join(texts) + f", {found.wall_times.sum():.1f} s of work"


def _key(found: SweepResults, name: str) -> str:
    values = found.parameters[name]
    distinct = list(dict.fromkeys(values.tolist()))
    if values.dtype == object or len(distinct) <= 4:
        return f"{name}: {', '.join(map(str, distinct))}"
    return f"{name}: {len(distinct)} values, {min(distinct):g} to {max(distinct):g}, {found.spacings[name]}"


def _failures(found: SweepResults) -> list[str]:
    """The most frequent reasons."""
    reasons = Counter(r for r, status in zip(found.reasons, found.status, strict=True) if status == FAILED)
    return [f"{count} times: {text}" for text, count in reasons.most_common(_REASONS)]


def _next(found: SweepResults) -> str:
    if _state(found) in ("finished", "interrupted") or not _state(found).startswith("running"):
        waits = not {"waiting", OVER_TIME}.isdisjoint(found.status)
        return "go on with the same command" if waits else f"plot it: meanfield plot {found.path}"
    return f"in progress; plot it with: meanfield plot {found.path}"
