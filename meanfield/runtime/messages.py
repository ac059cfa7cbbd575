"""Messages to people, on standard error: none that cannot be written stops a run."""

from __future__ import annotations

import sys
from contextlib import suppress


def print_message(text: str) -> None:
    """A line on standard error, where there is one; what cannot be written there is lost without harm."""
    if sys.stderr is not None:  # ``print`` would go to standard output
        with suppress(OSError, ValueError):  # full, closed by its reader, or by this process
            print(text, file=sys.stderr, flush=True)


def counted(count: float, noun: str) -> str:
    """A whole number of things: 1 step, 2 steps."""
    return f"{count:.0f} {noun}{'' if count == 1 else 's'}"


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
