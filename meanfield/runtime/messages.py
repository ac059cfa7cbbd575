"""Messages to people, on standard error: none that cannot be written stops a run."""

from __future__ import annotations

import sys
from contextlib import suppress


def print_message(text: str) -> None:
    """A line on standard error, where there is one; what cannot be written there is lost without harm."""
    if sys.stderr is not None:  # ``print`` would go to standard output
        with suppress(OSError, ValueError):  # full, closed by its reader, or by this process
            print(text, file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
