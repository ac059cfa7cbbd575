"""Progress of a sweep: a bar over its points on a terminal, occasional lines in a log."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Self

from meanfield.runtime.messages import print_message
from meanfield.runtime.progress import LOG_EVERY, bar_stream, close_bar, has_bar
from meanfield.runtime.signals import terminate_as_interrupt
from meanfield.sweeping.point import FAILED, PointResult
from meanfield.sweeping.tasks import Solver, Work


class SweepProgress:
    """Display of the progress of a sweep: solved points, failed points and remaining time; nothing if quiet."""

    def __init__(self, title: str, points: int, done: int, quiet: bool) -> None:
        self.quiet, self._points, self._first, self._done, self._failed = quiet, points, done, done, 0
        self._began = self._reported = clock.monotonic()
        self._terminal = has_bar() and not quiet
        if self._terminal:
            from tqdm import tqdm

            self._stream = bar_stream()
            options = {"unit": " points", "dynamic_ncols": True, "file": self._stream}
            self._bar = tqdm(total=points, initial=done, desc=title, **options)

    def update(self, results: Mapping[int, PointResult]) -> None:
        """Count the results of some points, and update the bar, or print a line at intervals."""
        self._done += len(results)
        self._failed += sum(result.status == FAILED for result in results.values())
        if self._terminal:
            self._bar.set_postfix_str(f"{self._failed} failed", refresh=False)
            self._bar.update(len(results))
        elif not self.quiet and clock.monotonic() - self._reported > LOG_EVERY:
            self._reported = clock.monotonic()
            print_message(self._line())

    def _line(self) -> str:
        """Return the line on solved and failed points, and on the elapsed and the remaining time."""
        elapsed = self._reported - self._began
        remaining = elapsed * (self._points - self._done) / (self._done - self._first)
        counts = f"{self._done} of {self._points} points, {self._failed} failed"
        return f"{counts}, {elapsed:.0f} s, about {remaining:.0f} s remain"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._terminal:
            close_bar(self._bar, self._stream)


def solve(
    work: Work, solver: Solver, progress: SweepProgress, collect: Callable[[Mapping[int, PointResult]], None]
) -> None:
    """Make the runs of ``work``, show the progress, and call ``collect`` with the results by number as they arrive.

    SIGTERM raises KeyboardInterrupt, as Ctrl-C does.
    """
    with progress, terminate_as_interrupt(), closing(solver(work)) as solved:
        for results in solved:
            collect(results)
            progress.update(results)
