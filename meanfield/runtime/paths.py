"""Validation of files that a command will read or write, before any computation."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from solvers.io.repair import require_regular
from solvers.io.replacing import MAX_SUFFIX, is_special
from solvers.io.run_file import FileError

if TYPE_CHECKING:
    from meanfield.case.case import Case

_SHOWN = 60  # characters of a name
_MAX_NAME = 255  # bytes, on common file systems


def output_for(name_or_path: str) -> str:
    """Return the default path of the run file of a case: the name of the case with .h5, in the current folder."""
    return Path(name_or_path).name.removesuffix(".toml") + ".h5"


def require_readable(path: str) -> None:
    """Raise OSError, which names the file, if a file cannot be opened; raise FileError if it is a device or a pipe."""
    require_regular(path)
    with open(path, "rb"):
        pass


def require_writable(path: str, case: str, overwrite: bool) -> None:
    """Raise FileError unless a run of the case file ``case`` may create ``path``, or replace it with ``overwrite``.

    No file is left behind.
    """
    target = Path(path)
    _require_short(target)
    require_free(target, overwrite)
    if target.exists() and Path(case).exists() and target.samefile(case):
        raise FileError(f"{path}: is the case itself; -o writes elsewhere")
    try:
        with tempfile.TemporaryFile(dir=target.parent):  # permissions alone do not decide (root)
            pass
    except OSError as error:
        raise FileError(f"{path}: the folder {target.parent} cannot be written: {error.strerror}") from None


def require_free(target: Path, overwrite: bool) -> None:
    """Raise FileError unless ``target`` may be created, or replaced with ``overwrite``.

    Permissions are not checked here: the later writing fails without them.
    """
    if target.is_dir():
        raise FileError(f"{target}: is a folder; expected a file to write")
    if is_special(target):
        raise FileError(f"{target}: is a device or a pipe; expected a file to write")
    if os.path.lexists(target) and not overwrite:
        raise FileError(f"{target}: exists already; --overwrite replaces it, -o writes elsewhere")
    if not target.parent.is_dir():
        raise FileError(f"{target}: the folder {target.parent} does not exist")


def _require_short(target: Path) -> None:
    """Raise FileError for a file name that is too long for file systems with the suffixes of accompanying files."""
    length, max_length = len(os.fsencode(target.name)), _MAX_NAME - MAX_SUFFIX
    if length > max_length:
        raise FileError(f"{shortened(target)}: its name has {length} bytes; expected at most {max_length}")


def shortened(path: Path) -> str:
    """Return a path as text, with a long file name cut so that a message fits one line."""
    name = path.name
    return str(path if len(name) <= _SHOWN else path.with_name(f"{name[:_SHOWN]}…"))


def require_files(case: Case, output: str | None = None) -> None:
    """Raise CaseError unless the files that a case names exist; raise FileError if ``output`` is one of these files."""
    from meanfield.case.errors import refusal

    parts = {f"initial.parts[{k}].file": part for k, part in enumerate(getattr(case.initial, "parts", ()))}
    kinds = {"initial.file": case.initial, **parts, "attention.file": case.attention}
    for key, kind in kinds.items():
        if (named := getattr(kind, "file", None)) is None:
            continue
        if not Path(named).is_file():
            raise refusal(key, named, "an existing file")
        if output is not None and Path(output).exists() and Path(output).samefile(named):
            raise FileError(f"{output}: is {key} of the case itself; -o writes elsewhere")


def require_target(target: Path, run: Path, overwrite: bool, kind: str, suffixes: Sequence[str]) -> None:
    """Raise FileError unless ``target`` has one of the suffixes and may be made from the run file ``run``.

    ``kind`` names the kind of file in messages, such as "movie". An existing file is replaced only with ``overwrite``.
    """
    if target.suffix.lower() not in suffixes:
        raise FileError(f"{target}: unknown kind of {kind} {target.suffix!r}; expected {', '.join(suffixes)}")
    if target.exists() and run.exists() and target.samefile(run):
        raise FileError(f"{target}: is the run itself; -o writes elsewhere")
    require_writable(str(target), str(run), overwrite)
