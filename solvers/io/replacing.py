"""Atomic replacement of files; other files beside them are left alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PART_OF_NAME = 40  # characters of a name, at most four bytes each: with the rest less than the 255 that systems allow
MAX_SUFFIX = len(".checkpoint-0")  # bytes of the longest suffix of a file beside a run's


def is_special(path: str | Path) -> bool:
    """Whether ``path`` is a device, a pipe or a socket, or a link to one: it is neither replaced nor read as a file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def replacement(path: Path, *, overwrite: bool = True, suffix: str = ".new") -> Iterator[Path]:
    """The name of an empty new file to write, which takes the place of ``path`` if all goes well, and else vanishes.

    A link by the name ``path`` is replaced itself, not what it leads to. Raises FileExistsError where something has
    this name and ``overwrite`` is false, be it since a moment ago, and for a device or a pipe, which stays.
    """
    if is_special(path):
        raise FileExistsError(errno.EEXIST, "a device or a pipe has this name, and stays")
    new = new_file(path, suffix)
    try:
        yield new
        if overwrite:
            os.replace(new, path)
        else:
            _rename_to_free_name(new, path)
    finally:
        new.unlink(missing_ok=True)


def new_file(path: Path, suffix: str = ".new") -> Path:
    """An empty file beside ``path``, by a name that nobody has: no other file is replaced, and no link followed."""
    while True:
        new = path.with_name(f"{path.name[:_PART_OF_NAME]}.{secrets.token_hex(4)}{suffix}")
        with suppress(FileExistsError):
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return new


def _rename_to_free_name(new: Path, path: Path) -> None:
    """Rename without replacing; FileExistsError where the name is taken."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: then a moment remains between looking and renaming
        if os.path.lexists(path):
            raise FileExistsError(f"{path}") from None
        os.replace(new, path)
