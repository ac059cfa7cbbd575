"""Refusals of files in the words of Python's arguments, where commands speak of their options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solvers.io.run_file import FileError

_WORDS = {"--overwrite replaces it": "overwrite=True replaces it", "-o writes": "another path writes"}


@contextmanager
def in_python() -> Iterator[None]:
    """Raise a FileError of the block with its options as arguments."""
    try:
        yield
    except FileError as error:
        text = str(error)
        for option, argument in _WORDS.items():
            text = text.replace(option, argument)
        if text == str(error):
            raise
        raise type(error)(text) from None
