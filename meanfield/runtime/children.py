"""Child processes of Python: whether they can be started, and the environment of their imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SAFE_PATH = {"PYTHONSAFEPATH": "1"}  # modules are not imported from the working folder


def can_start_python() -> bool:
    """Return whether ``sys.executable`` is a Python interpreter, which can run child processes.

    In a frozen or embedding application, ``sys.executable`` is the application, which would start itself.
    """
    name = os.path.basename(sys.executable or "").lower()
    return not getattr(sys, "frozen", False) and name.startswith(("python", "pypy", "graalpy"))


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started in the block, and restore the old values at its end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
