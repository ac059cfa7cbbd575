"""Kernels that take seconds to compile, compiled by another process while this one does what does not need them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..launching import WORKERS

_PROCESSES: list[subprocess.Popen[bytes]] = []  # nobody waits for them, nor warns that they still run


def compile_ahead(kernel: Any, call: Callable[[], object]) -> None:
    """Have ``call()``, a function of a module, compile ``kernel`` in another process, unless its code is on disk.

    Who needs the kernel meanwhile waits for that process and loads its code. Where no process can be started, or with
    one core, the kernel is compiled when it is first called, as every other.
    """
    if WORKERS < 2 or not sys.executable or not kernel._cache.is_missing():
        return
    command = f"from {call.__module__} import {call.__qualname__} as call; call()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    with suppress(OSError):
        _PROCESSES.append(
            subprocess.Popen(
                [sys.executable, "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )
        )  # fmt: skip
