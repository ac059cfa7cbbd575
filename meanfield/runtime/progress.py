"""Progress of a run: a bar on a terminal, occasional lines in a log."""

from __future__ import annotations

import html
import sys
import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

from meanfield.runtime.messages import on_terminal, print_message
from meanfield.runtime.remaining import RemainingTime
from solvers.timestepping.state import State

if TYPE_CHECKING:
    from tqdm import tqdm

LOG_EVERY = 10.0  # seconds between lines where there is no terminal
BAR_EVERY = 0.1
COMPILING = 1.0  # seconds after which the first evaluation is compiling kernels


def has_bar() -> bool:
    """Return whether a progress bar can be drawn: on a terminal or in a notebook."""
    return on_terminal() or in_notebook()


def in_notebook() -> bool:
    """Return whether the program runs in the kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None  # type: ignore[no-untyped-call, unused-ignore]


def bar_stream() -> SupportsWrite:
    """Return the stream of a progress bar: standard error on a terminal, an output of the cell in a notebook.

    Elsewhere the stream is standard output.
    """
    if on_terminal() or not in_notebook():
        return sys.stderr if on_terminal() else sys.stdout
    return CellOutput()


class SupportsWrite(Protocol):
    """Stream of text."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> object:
        """Show the text that is written."""


class CellOutput:
    """Stream whose text is one output of the cell of a notebook, which is replaced when the text changes.

    A carriage return discards the line before it, as on a terminal. A notebook that is stored or exported has no text
    after ``erase``; on standard output it would hold each state of a progress bar.
    """

    encoding = "utf-8"  # so that a bar is drawn by block elements

    def __init__(self) -> None:
        from IPython.display import display

        self._lines = [""]
        self._handle = display(_as_output(""), raw=True, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]

    def write(self, text: str) -> None:
        """Append a text, in which a carriage return discards the line before it."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._lines.append("")
            _, carriage_return, new = line.rpartition("\r")
            self._lines[-1] = new if carriage_return else self._lines[-1] + new

    def flush(self) -> None:
        """Show the text in the cell."""
        self._handle.update(_as_output("\n".join(self._lines).rstrip()), raw=True)

    def erase(self) -> None:
        """Remove the text from the cell."""
        self._lines = [""]
        self.flush()


def _as_output(text: str) -> dict[str, str]:
    """Return a text as an output of a notebook, by format; the site draws an empty text in HTML as nothing."""
    return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>" if text else ""}


def close_bar(bar: tqdm[NoReturn], stream: SupportsWrite) -> None:
    """Close a progress bar on a stream of :func:`bar_stream`, and erase it in a notebook."""
    bar.close()
    if isinstance(stream, CellOutput):
        stream.erase()


class CountedProgress:
    """Progress lines of a task of equal parts, on standard error, every LOG_EVERY seconds.

    ``parts`` is the plural noun for the parts.
    """

    def __init__(self, parts: str) -> None:
        self._parts = parts
        self._began = self._reported = clock.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Print that ``done`` parts of ``total`` are finished, if LOG_EVERY seconds have passed since the last line."""
        now = clock.monotonic()
        if done == total or now - self._reported < LOG_EVERY:
            return
        self._reported = now
        passed = now - self._began
        left = passed * (total - done) / done
        print_message(f"{done} of {total} {self._parts}, {passed:.0f} s, about {left:.0f} s remain")


class Progress:
    """Display of the progress of a run: model time, step size, number of clusters and remaining time; nothing if quiet.

    The display is a bar on a terminal or in a notebook, and lines on standard error elsewhere.
    """

    def __init__(self, title: str, start: float, end: float, quiet: bool, remaining: RemainingTime) -> None:
        self.quiet, self.end, self.clusters = quiet, end, ""
        self._terminal = has_bar() and not quiet
        self._began = self._reported = clock.monotonic()
        self._remaining = remaining
        self._time, self._dt = start, 0.0  # of the last step
        if self._terminal:
            from tqdm import tqdm

            self._stream, bar = bar_stream(), self._format(None)
            self._bar = tqdm(
                total=end, initial=start, desc=title, bar_format=bar, dynamic_ncols=True, file=self._stream
            )

    def update(self, state: State) -> None:
        """Show the state after a step, if enough time has passed since the last display."""
        if self.quiet:
            return
        now = clock.monotonic()
        self._time, self._dt = state.time, state.time - self._time
        self._remaining.update(state.time, now)
        if now - self._reported < (BAR_EVERY if self._terminal else LOG_EVERY):
            return
        self._reported = now
        if self._terminal:
            self._draw(state)
        else:
            left = self._remaining.seconds()
            remaining = "estimating what remains" if left is None else f"about {left:.0f} s remain"
            self.show(
                f"t = {state.time:.4g} of {self.end:g}, {self._detail(state)}, {now - self._began:.0f} s, {remaining}"
            )

    def show(self, text: str) -> None:
        """Print a line of text that the progress bar does not overwrite."""
        if self._terminal:
            self._bar.write(text, file=self._stream)
        elif not self.quiet:
            print_message(text)

    @contextmanager
    def show_if_slow(self, text: str) -> Iterator[None]:
        """Print a text if the block takes longer than COMPILING seconds, as it does only while kernels are compiled."""
        if self.quiet:
            yield
            return
        timer = threading.Timer(COMPILING, self.show, [text])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # finishes a line that is being printed

    def finish(self, state: State) -> None:
        """Draw the progress bar for the final state."""
        if self._terminal:
            self._draw(state)

    def _draw(self, state: State) -> None:
        """Draw the progress bar for a state."""
        self._bar.n = min(state.time, self.end)
        self._bar.bar_format = self._format(0.0 if state.time >= self.end else self._remaining.seconds())
        self._bar.set_postfix_str(self._detail(state))

    def _format(self, left: float | None) -> str:
        """Return the format string of the progress bar; ``left`` is the remaining time in seconds, None if unknown."""
        remaining = "estimating" if left is None else self._bar.format_interval(round(left))
        return (
            f"{{desc}}: {{percentage:3.0f}}%|{{bar}}| t = {{n:.4g}}/{{total:.4g}} [{{elapsed}}<{remaining}{{postfix}}]"
        )

    def _detail(self, state: State) -> str:
        """Return the text of the bar on the number of steps, the step length and the clusters."""
        return f"step {state.steps}, dt = {self._dt:.3g}{self.clusters}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._terminal:
            close_bar(self._bar, self._stream)
