"""Parts of a long diagnostic, between which the diagnostic may be canceled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _never_cancel() -> None:
    """Do nothing between the parts of a long computation: no function is set that could cancel it."""


_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=_never_cancel)


@contextmanager
def cancellable(check: Callable[[], None]) -> Iterator[None]:
    """Call ``check`` between the parts of long computations within the block, at each :func:`between_parts`.

    An exception of ``check`` cancels the computation.
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def between_parts() -> None:
    """Call the check that :func:`cancellable` has set, if any, between two parts of a long computation.

    Long computations call this function at least about once a second.
    """
    _check.get()()
