"""Signals that stop a run: one Ctrl-C or SIGTERM ends it gracefully, a second one immediately."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STDERR = 2
_RETRY = 0.01  # seconds until a lost interrupt is repeated: longer than most finalizers take


class Interrupted(KeyboardInterrupt):
    """Interruption of a run by Ctrl-C, a KeyboardInterrupt with a message of one line for the user."""


class Terminated(SystemExit):
    """Termination of a run by SIGTERM, a SystemExit with a message of one line for the user.

    Attributes
    ----------
    code : int
        Exit status 143, as in shells.
    message : str
        Time of the interruption, and the advice to resume if there is a file.
    """

    def __init__(self, message: str) -> None:
        super().__init__(128 + signal.SIGTERM)
        self.message = message

    def __str__(self) -> str:
        return self.message


class Stop:
    """Stop request: true after Ctrl-C or SIGTERM, so that the run stops after its step; a second signal interrupts.

    The second signal raises KeyboardInterrupt at any point of the run, until ``close`` is called.

    show   function that prints a line, called at the first signal
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._signals, self._closed, self._say, self._first = 0, False, show, 0

    def __bool__(self) -> bool:
        return self._signals > 0

    def close(self) -> None:
        """End the handling of signals: ignore further ones, so that the last writes to the file are not interrupted.

        The last writes take milliseconds.
        """
        self._closed = True

    def error(self, message: str) -> Interrupted | Terminated:
        """Return the exception to raise after the file is closed: Terminated if SIGTERM came first, or Interrupted."""
        return Terminated(message) if self._first == signal.SIGTERM else Interrupted(message)

    def note(self, number: int, frame: object) -> None:
        """Handle a signal: set the stop request at the first, raise KeyboardInterrupt at the second."""
        self._signals += 1
        self._first = self._first or number
        if self._closed:
            return
        if self._signals > 1:
            raise KeyboardInterrupt
        if self._say is not None:
            self._say("stopping after this step; press Ctrl-C again to abort")


@contextmanager
def stop_on_signal(show: Callable[[str], None] | None = None) -> Iterator[Stop]:
    """Yield a stop request that Ctrl-C and SIGTERM set; the time loop of the caller checks it after each step.

    ``show`` prints a line at the first signal. A second signal leaves the block with the exception of the first,
    Interrupted or Terminated. Signals reach the main thread only; a run in another thread is not stopped by them.
    """
    stop = Stop(show)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.signal(number, stop.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _no_interrupt_lost():
            yield stop
    except KeyboardInterrupt as error:
        raise error if str(error) else stop.error("interrupted at once") from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at SIGTERM, which batch systems send, as at Ctrl-C.

    The block must run in the main thread; in other threads SIGTERM is not changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _no_interrupt_lost():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM in the main thread to the end of the block, so that the block is never interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = list[int]()
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for signalled in came:
            signal.raise_signal(signalled)


def terminate_main_thread() -> None:
    """Raise SIGTERM in the main thread, also within a system call where the platform supports that."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGTERM)
    else:  # on Windows, where the main thread finishes its wait first
        signal.raise_signal(signal.SIGTERM)


@contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt again where a finalizer or the callback of a weak reference has raised it.

    Python drops such an exception and passes it to ``sys.unraisablehook`` alone, so the run would continue; the hook is
    replaced within the block. The repetition is a signal, since a signal also ends a wait, and SIGTERM, since
    background jobs of a shell ignore SIGINT.
    """
    before = sys.unraisablehook
    ended, senders = threading.Event(), list[threading.Thread]()

    def send(returned: threading.Event) -> None:
        """Wait until ``returned`` is set, then send SIGTERM to the main thread unless the block ends first."""
        returned.wait()
        if not ended.wait(_RETRY):
            terminate_main_thread()

    def resend(lost: sys.UnraisableHookArgs) -> None:
        """Handle an exception of a finalizer: start a thread that sends a lost interrupt again."""
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
            return
        returned = threading.Event()
        senders.append(threading.Thread(target=send, args=(returned,), daemon=True))
        senders[-1].start()
        returned.set()  # not before: an interrupt within this function would be lost too

    sys.unraisablehook = resend
    try:
        yield
    finally:
        sys.unraisablehook = before
        ended.set()
        for sender in senders:
            sender.join()  # a signal that is about to be sent is still handled


def write_to_stderr(text: str) -> None:
    """Write a line directly to standard error: ``print`` fails where a signal has interrupted another ``print``."""
    line = f"\n{text}\n" if os.isatty(STDERR) else f"{text}\n"  # the bar, or ^C, is on the line
    with suppress(OSError):  # a closed reader must not end the run
        os.write(STDERR, line.encode())
