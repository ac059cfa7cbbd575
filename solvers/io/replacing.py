"""Atomic replacement of files, without changes to other files in the folder."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PART_OF_NAME = 40  # characters of a name, at most four bytes each: below the limit of 255 bytes with the suffix
MAX_SUFFIX = len(".checkpoint-0")  # bytes of the longest suffix of a file beside a run file


def is_special(path: str | Path) -> bool:
    """Return whether ``path`` is, or links to, a device, a pipe or a socket, which are neither replaced nor read."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def replacement(path: Path, *, overwrite: bool = True, suffix: str = ".new") -> Iterator[Path]:
    """Yield the name of an empty new file, which replaces ``path`` if the ``with`` block succeeds, and else is removed.

    If ``path`` is a link, the link is replaced, not its target. Raises FileExistsError for a device or a pipe, which is
    never replaced. Without ``overwrite`` an existing file, even one created during the block, raises FileExistsError
    too.
    """
    if is_special(path):
        raise FileExistsError(errno.EEXIST, "a device or a pipe has this name")
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
    """Create an empty file with an unused name beside ``path``, and return the name.

    No file is replaced, and no link is followed.
    """
    while True:
        new = path.with_name(f"{path.name[:_PART_OF_NAME]}.{secrets.token_hex(4)}{suffix}")
        with suppress(FileExistsError):
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return new


def _rename_to_free_name(new: Path, path: Path) -> None:
    """Rename the file ``new`` to ``path`` without replacement; raise FileExistsError if that name is taken."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the check and the rename are not atomic
        if os.path.lexists(path):
            raise FileExistsError(f"{path}") from None
        os.replace(new, path)
