"""Environment of a command: its standard streams, settings files in the working folder, environment variables.

Streams may be closed, full, or of an encoding without Greek letters. No command follows settings of the folder.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import chdir
from importlib import import_module
from typing import Any


def ignore_settings_of_folder() -> None:
    """Keep Matplotlib and Numba from reading settings in the working folder, which may name programs and libraries.

    Settings of the user apply: those of ``MATPLOTLIBRC``, of Matplotlib's folder in the user's home, of ``NUMBA_...``.
    """
    if os.path.lexists("matplotlibrc"):
        with chdir(os.path.dirname(os.path.abspath(__file__))):
            import_module("matplotlib")
    if os.path.lexists(".numba_config.yaml"):
        os.environ.setdefault("NUMBA_CUDA_DRIVER", "")  # the remaining settings of Numba name no code


def limit_threads() -> None:
    """Limit products of matrices by OpenBLAS to one thread, unless the user has set a number, before NumPy is imported.

    Kernels have threads of their own. Several threads of OpenBLAS wait in loops for each other, so that eigenvalues of
    the matrices of `branch` take twice the time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def problem_of_variables() -> str | None:
    """Return a line on an environment variable that Numba cannot use; None without such a variable."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    try:
        is_valid = int(threads) >= 1
    except ValueError:
        is_valid = False
    return None if is_valid else f"NUMBA_NUM_THREADS={threads}: expected a whole number >= 1"


OUTPUT = "standard output"  # the name in errors of writing


def prepare() -> None:
    """Make the three standard streams usable, before any file is opened.

    A closed descriptor would be given to the next opened file, into which messages would then be written. Failed writes
    to standard error are ignored; failed writes to standard output raise OSError with the stream's name. Characters
    that an encoding lacks are written as \\uXXXX.
    """
    for descriptor, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):  # writing to a closed output fails
        if not _is_open(descriptor):
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number, which is this one
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Messages(2, "w", closefd=False), sys.stderr)


def discard_output() -> None:
    """Discard the buffered standard output, also at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Output(io.FileIO):
    """Standard output whose errors name the output."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from None


class _Messages(io.FileIO):
    """Standard error that ignores failures to write."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:  # a run must not fail because its messages have no reader
            return len(data)


def _text(raw: io.FileIO, like: Any) -> io.TextIOWrapper:
    """Return a text stream with the encoding of ``like``, which is None for a closed stream."""
    is_messages = isinstance(raw, _Messages)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(like, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=is_messages or raw.isatty(),
        write_through=is_messages,
    )


def _is_open(descriptor: int) -> bool:
    """Return whether a file descriptor is open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
