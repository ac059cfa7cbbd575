"""Solution of points in a separate process with a time limit: for threads, which cannot be stopped."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import meanfield
from meanfield.components.loaded import Source
from meanfield.runtime.children import can_start_python
from meanfield.sweeping.point import PointResult

_START = "import sys; sys.path.append(sys.argv[1]); from meanfield.sweeping.separate_process import main; main()"
_LENGTH = 8  # bytes of the length before each message
_own = threading.local()  # the process of each thread


def solve_in_separate_process(
    cases: Mapping[int, str], keep: bool, limit: float | None, components: tuple[Source, ...] = ()
) -> dict[int, PointResult]:
    """Return the results of the points (runs) of a task by number, computed in a separate process of this thread.

    The arguments are those of `meanfield.sweeping.together.solve_task`. The process is started once, and ends with the
    process that started it. Raises RuntimeError where the process dies or cannot start.
    """
    process = getattr(_own, "process", None)
    if process is None or process.poll() is not None:
        if not can_start_python():
            raise RuntimeError(f"a time limit requires a Python interpreter, and {sys.executable!r} is none")
        command = [sys.executable, "-P", "-c", _START, str(Path(meanfield.__file__).parents[1])]
        process = _own.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _send(process.stdin, (dict(cases), keep, limit, components))
        results: dict[int, PointResult] = _receive(process.stdout)
    except (EOFError, OSError):
        raise RuntimeError(f"its process died: exit status {process.wait()}") from None
    return results


def _send(pipe: IO[bytes], message: object) -> None:
    """Write a message, pickled and preceded by its length, into a pipe."""
    data = pickle.dumps(message)
    pipe.write(len(data).to_bytes(_LENGTH, "little") + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """Return the next message from a pipe. Raises EOFError where the other process has ended."""
    head = pipe.read(_LENGTH)
    data = pipe.read(int.from_bytes(head, "little"))
    if len(head) < _LENGTH or not data:
        raise EOFError
    return pickle.loads(data)


def main() -> None:
    """Solve the tasks from standard input and write their results to standard output, until the input is closed.

    Runs print to standard error.
    """
    from meanfield.sweeping.together import merge_groups, solve_task

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            arguments = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _send(answers, merge_groups(solve_task(*arguments)))
