"""Parts of a long diagnostic, between which it may be given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _go_on() -> None:
    """Nothing gives it up."""


_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=_go_on)


@contextmanager
def checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Within the block :func:`between_parts` calls ``check``; what that raises gives up what is computed there."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def between_parts() -> None:
    """Called by what takes long in many dimensions or of many tokens, at least once a second or so."""
    _check.get()()
