"""A command run in this process, and requirements for any input: no traceback, a line for each fault, no partial
output."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from meanfield.cli.parser import main

STATUSES = (0, 2, 3)
OWN = {"meanfield", "solvers"}  # packages whose innermost frame names the place of an error
MAX_FAULTS = 20  # maximum number of faults of a case reported at once


def outcome_of(command: Sequence[str]) -> tuple[str | None, str]:
    """Return the reason of a wrong end (traceback, other status, line without a fault) or None, and the printed
    text."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            status = main(list(command))
    except (Exception, SystemExit) as error:
        places = traceback.extract_tb(error.__traceback__)
        own = [place for place in places if OWN.intersection(Path(place.filename).parts)] or places
        return f"{type(error).__name__}: {str(error)[:80]} ({Path(own[-1].filename).name}:{own[-1].lineno})", ""
    lines = err.getvalue().strip().splitlines()
    # All faults of a case at once, a line each.
    of_a_case = len(lines) <= MAX_FAULTS and all(": " in line for line in lines)
    if status not in STATUSES or (status == 2 and not (lines and of_a_case)):
        return f"status {status}, {len(lines)} lines: {lines[:2]}", ""
    return None, f"{status}\n{out.getvalue()}\n{err.getvalue()}"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the names and bytes of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
