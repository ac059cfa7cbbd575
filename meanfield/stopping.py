"""Stopping a run from outside: Ctrl-C and SIGTERM once for a good end, twice for an end at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STDERR = 2


@contextmanager
def stop_on_signal() -> Iterator[list[int]]:
    """A list that Ctrl-C or SIGTERM puts itself in, for the loop to stop after its step; a second one interrupts.

    The second raises KeyboardInterrupt, wherever the run is. Signals reach the main thread only; a run in another
    one is not stopped by them.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number: int, frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        _tell("stopping after this step; once more to stop at once")

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _tell(text: str) -> None:
    """Straight to the terminal or log: ``print`` fails where the signal has interrupted another print."""
    line = f"\n{text}\n" if os.isatty(STDERR) else f"{text}\n"  # the bar, or ^C, stands on the line
    with suppress(OSError):  # nobody reads it any more, which is no reason to lose the run
        os.write(STDERR, line.encode())
