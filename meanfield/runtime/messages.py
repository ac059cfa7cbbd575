"""Messages to users on standard error; a message that cannot be written does not stop a run."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress


def print_message(text: str) -> None:
    """Print a line on standard error, where there is one; a line that cannot be written is dropped."""
    if sys.stderr is not None:  # ``print`` would go to standard output
        with suppress(OSError, ValueError):  # full, closed by its reader, or by this process
            print(text, file=sys.stderr, flush=True)


def counted(count: float, noun: str) -> str:
    """Return a number with its noun in the singular or plural as text: "1 step", "2 steps"."""
    return f"{count:.0f} {noun}{'' if count == 1 else 's'}"


def command_of(*words: object) -> str:
    """Return a command of this package as text, to be pasted into a shell: words with blanks are quoted."""
    return shlex.join(["meanfield", *map(str, words)])


def on_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
