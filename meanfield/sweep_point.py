"""One point of a sweep, solved: what comes back from a worker, wherever that is."""

from __future__ import annotations

import tempfile
import time as clock
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Result:
    """What came of a point.

    status       "done", also where the run stopped on an exploding state, or "failed"
    exit_status  of the run, −1 where there was none
    reason       why it failed, or why the run stopped early
    wall_time    seconds that the run took
    tables       "time" (samples) and each column of the diagnostics (samples, ...)
    file         the bytes of the run file, if it is to be kept
    """

    status: str
    exit_status: int = -1
    reason: str = ""
    wall_time: float = 0.0
    tables: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    file: bytes | None = None


def solve_point(case: str, keep: bool = False) -> Result:
    """Run a case, given as TOML, in a folder of its own; what goes wrong is told by the result, and never raised."""
    began = clock.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="meanfield-") as folder:
            return _run(case, Path(folder) / "run.h5", keep)
    except Exception as error:
        return Result(FAILED, reason=_in_words(error), wall_time=clock.monotonic() - began)


def _run(text: str, path: Path, keep: bool) -> Result:
    from meanfield.case import parse
    from meanfield.run import INTERRUPTED, run
    from solvers.output import read

    status = run(parse(text), path, quiet=True)
    if status == INTERRUPTED:
        raise KeyboardInterrupt  # somebody stops this worker, and another has to solve the point
    found = read(path)
    return Result(
        DONE,
        status,
        str(found.attributes["message"]),
        float(found.attributes["wall_time"]),
        {"time": found.sample_times, **found.diagnostics},
        path.read_bytes() if keep else None,
    )


def _in_words(error: Exception) -> str:
    """One line: what a user is told of bad input is one already; other errors have their name before it."""
    from meanfield.case_errors import CaseError
    from solvers.output import FileError

    text = " ".join(str(error).split())
    return text if isinstance(error, CaseError | FileError) else f"{type(error).__name__}: {text}"
