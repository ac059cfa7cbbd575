"""Files beside the index of a sweep: results of single points in NAME.points, run files of points in NAME.runs.

A point's file carries the identity of its sweep, in its name and as an attribute: no other file is read or removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from solvers.io.lock import holder
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError
from solvers.io.schema import DAMAGE

_LENGTH = 16  # digits of the identity in a name
_NAME = re.compile(rf"(\d{{4,}})-([0-9a-f]{{{_LENGTH}}})\.h5(?:\.[0-9a-f]+\.new)?")


def points_folder(path: Path) -> Path:
    """Return the folder beside the index ``path`` that holds the results of single runs until the sweep ends."""
    return path.with_name(f"{path.stem}.points")


def runs_folder(path: Path) -> Path:
    """Return the folder beside the index ``path`` that holds the run files of the points."""
    return path.with_name(f"{path.stem}.runs")


def point_file(path: Path, identity: str, number: int) -> Path:
    """Return the path of the file with the result of run ``number``; ``path`` is the index, ``identity`` its hash."""
    return points_folder(path) / f"{number:04}-{identity[:_LENGTH]}.h5"


def run_file(path: Path, number: int) -> Path:
    """Return the path of the run file of point ``number`` of the sweep whose index is ``path``."""
    return runs_folder(path) / f"{number:04}.h5"


def lock_path_of_part(path: Path, part: int, parts: int) -> Path:
    """Return the path that a process locks while it solves part ``part`` = 1 … ``parts`` of a sweep."""
    return path.with_name(f"{path.stem}.{part}-of-{parts}")


def part_writers(path: Path) -> list[str]:
    """Return the processes that currently solve parts of the sweep with the index ``path``, as texts for messages."""
    name = re.compile(rf"{re.escape(path.stem)}\.\d+-of-\d+\.lock")
    locks = [file for file in sorted(path.absolute().parent.iterdir()) if name.fullmatch(file.name)]
    return [writer for lock in locks if (writer := holder(lock.with_suffix(""))) is not None]


def own_points(path: Path, identity: str) -> dict[Path, int]:
    """Return the files of single points (runs) of the sweep with this identity (hash), with the numbers of the points.

    Unfinished files are included.
    """
    matches = {file: _NAME.fullmatch(file.name) for file in sorted(points_folder(path).glob("*"))}
    return {file: int(match[1]) for file, match in matches.items() if match and match[2] == identity[:_LENGTH]}


def remove_points(path: Path, *identities: str) -> None:
    """Remove the files of single runs of the sweeps with these identities (hashes), and their folder if empty."""
    for identity in identities:
        for file in own_points(path, identity):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # a missing folder, or one with other files
        points_folder(path).rmdir()


def require_folders(path: Path) -> None:
    """Raise FileError where a file that is no folder has the name of a folder of the sweep with the index ``path``."""
    for folder in (points_folder(path), runs_folder(path)):
        if os.path.lexists(folder) and not folder.is_dir():
            raise FileError(f"{folder}: is not a folder; the sweep needs a folder of this name; -o writes elsewhere")


def require_free(path: Path, cases: Iterable[tuple[int, str]], *, started: bool, overwrite: bool) -> None:
    """Raise FileError if the run file of a point, beside the index ``path``, would replace a file of another origin.

    cases     number and case, in TOML, of each point
    started   whether the sweep continues with its index: then a run file of the same case belongs to the sweep
    """
    for number, case in cases:
        file = run_file(path, number)
        if not os.path.lexists(file):
            continue
        recorded = _attributes(file).get("case")
        if recorded is None:
            raise FileError(f"{file}: exists already and is not a run file; -o writes the sweep elsewhere")
        if not (overwrite or (started and recorded == case)):
            raise FileError(f"{file}: exists already; --overwrite replaces it, -o writes the sweep elsewhere")


def _attributes(file: Path) -> dict[str, object]:
    """Return the attributes of an HDF5 file; empty for a damaged file or a file of another kind."""
    try:
        with open_to_read(file) as opened:
            return dict(opened.attrs)
    except (*DAMAGE, FileError):
        return {}
