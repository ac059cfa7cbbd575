"""Translation of error messages between arguments of Python and options of commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from meanfield.case.errors import CaseError
from solvers.io.run_file import FileError

_WORDS = {"--overwrite replaces it": "overwrite=True replaces it", "-o writes": "another path writes"}
_OPTIONS = {argument: option for option, argument in _WORDS.items()} | {
    "path = ": "-o ", "overrides = ": "--set ", "left by drop": "left by --drop",
    "with mean_field=False": "without --mean-field", "mean_field=True": "--mean-field",
}  # fmt: skip


@contextmanager
def with_python_names() -> Iterator[None]:
    """Raise a FileError of the block again, with options of commands in its message replaced by arguments of Python."""
    try:
        yield
    except FileError as error:
        text = str(error)
        for option, argument in _WORDS.items():
            text = text.replace(option, argument)
        if text == str(error):
            raise
        raise type(error)(text) from None


@contextmanager
def with_option_names(names: Collection[str]) -> Iterator[None]:
    """Raise an error of the block again, with arguments of Python in its message replaced by options of commands.

    ``names``: further arguments that are options of the same name.
    """
    try:
        yield
    except (CaseError, FileError) as error:
        text = str(error)
        for argument, option in _OPTIONS.items():
            text = text.replace(argument, option)
        text = re.sub(r"^(\w+) = (.*?): ", lambda m: f"--{m[1]} {m[2]}: " if m[1] in names else m[0], text)
        if text == str(error):
            raise
        raise type(error)(text) from None
