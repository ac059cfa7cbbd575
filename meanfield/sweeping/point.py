"""Solution of one point of a sweep, and its result."""

from __future__ import annotations

import _thread
import signal
import tempfile
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from meanfield.case.case import Case
    from solvers.io.reading import Run

DONE, FAILED, OVER_TIME = "done", "failed", "over time"
FINISHED, NON_FINITE, INTERRUPTED = 0, 3, 130  # exit statuses of a run
_POLL_INTERVAL = 0.1  # seconds between checks whether a run has begun
_MAX_MEMORY = 1 << 24  # bytes of snapshots that a point keeps in memory
_RETRY = 30.0  # seconds after which a point that has not finished its step is stopped within it


@dataclass(frozen=True)
class PointResult:
    """Result of a point of a sweep, which is one run.

    status       "done", also where the run stopped on an exploding state, "failed" or "over time"
    exit_status  of the run, −1 without a run
    reason       why the point failed, or why the run stopped early
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


def solve_point(
    case: Case | str, keep: bool = False, limit: float | None = None, components: tuple[tuple[str, str], ...] = ()
) -> PointResult:
    """Run a case, or the TOML of a case, in memory or a temporary folder; errors are in the result, and never raised.

    keep         whether the result has the bytes of the run file
    limit        seconds after which the run is stopped, as by Ctrl-C; None for no limit
    components   sources of user-defined components, loaded first: the result of
                 `meanfield.components.loaded.loaded_sources` in the process of the sweep

    The function must run in the main thread of a process.
    """
    began = clock.monotonic()
    with _interrupted_after(limit) as over:
        try:
            if components:
                from meanfield.components.loading import load_sources

                load_sources(components)
            return _run(case, keep, over)
        except Exception as error:
            return PointResult(FAILED, reason=describe_error(error), wall_time=clock.monotonic() - began)
        except KeyboardInterrupt:
            if not over.is_set():
                raise  # this worker is being stopped, and another one has to solve the point
            return PointResult(OVER_TIME, reason="interrupted at its end", wall_time=clock.monotonic() - began)


def _run(case: Case | str, keep: bool, over: threading.Event) -> PointResult:
    """Return the result of a run of a case, in memory if snapshots are small; ``over`` is set once its time is over."""
    from meanfield.case.load import parse
    from meanfield.running import run, run_in_memory
    from solvers.io.run_file import read

    case = parse(case) if isinstance(case, str) else case
    if not keep and _fits_memory(case):
        status, found = _run_to_end(lambda: run_in_memory(case), over)
        return _result(status, found)
    with tempfile.TemporaryDirectory(prefix="meanfield-") as folder:
        path = Path(folder) / "run.h5"
        status, _ = _run_to_end(lambda: run(case, path), over)
        return _result(status, read(path), path.read_bytes() if keep else None)


def _fits_memory(case: Case) -> bool:
    """Return whether the snapshots of a run take so little memory that the run needs no file.

    Writing a file would take as long as a small run.
    """
    from meanfield.runtime.cost import file_bytes

    return 0 < file_bytes(case) <= _MAX_MEMORY  # 0: unknown before the initial file is read


def _run_to_end(solve: Callable[[], Any], over: threading.Event) -> tuple[int, Any]:
    """Call ``solve``, which runs a case, and return the exit status and the run; the run is None if only a file has it.

    An interrupt is raised again, unless ``over`` is set: then the time limit has caused the interrupt.
    """
    from solvers.timestepping.state import NonFinite

    try:
        return FINISHED, solve()
    except NonFinite as error:
        return NON_FINITE, getattr(error, "run", None)
    except (KeyboardInterrupt, SystemExit) as error:
        if not over.is_set():
            raise KeyboardInterrupt from None
        return INTERRUPTED, getattr(error, "run", None)


def _result(status: int, found: Run, file: bytes | None = None) -> PointResult:
    """Return the result of a point from the exit status and the data of its run; ``file`` has bytes to be kept."""
    return PointResult(
        OVER_TIME if status == INTERRUPTED else DONE,
        status,
        str(found.attributes["message"]),
        float(found.attributes["wall_time"]),
        {"time": found.sample_times, **found.diagnostics},
        file,
    )


@contextmanager
def _interrupted_after(seconds: float | None) -> Iterator[threading.Event]:
    """Yield an event; after ``seconds`` in the block, set it and interrupt the run in the main thread.

    The interrupt waits until the run handles it: imports and compilations before must not be interrupted. None is no
    limit.
    """
    over, ended, before = threading.Event(), threading.Event(), signal.getsignal(signal.SIGINT)

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            pause = _POLL_INTERVAL
            if signal.getsignal(signal.SIGINT) is not before:
                over.set()
                _thread.interrupt_main()
                pause = _RETRY

    if seconds is not None:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield over
    finally:
        ended.set()


def describe_error(error: Exception) -> str:
    """Return an error as one line: for bad input its message, for any other error with the name of its class."""
    from meanfield.case.errors import CaseError
    from solvers.io.run_file import FileError

    text = " ".join(str(error).split())
    return text if isinstance(error, CaseError | FileError) else f"{type(error).__name__}: {text}"
