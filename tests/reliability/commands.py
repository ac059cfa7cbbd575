"""A command run in this process, and what holds whatever its input: no traceback, one line, nothing written."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from meanfield.cli.parser import main

STATUSES = (0, 2, 3)


def failure_of(command: Sequence[str]) -> str | None:
    """What is wrong with how a command ended: a traceback, another status, more than one line. None if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            status = main(list(command))
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]} ({Path(place.filename).name}:{place.lineno})"
    lines = err.getvalue().strip().splitlines()
    if status not in STATUSES or (status == 2 and len(lines) != 1):
        return f"status {status}, {len(lines)} lines: {lines[:2]}"
    return None


def contents(folder: Path) -> dict[str, bytes]:
    """Names and bytes of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
