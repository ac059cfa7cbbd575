"""What every benchmark returns, and how a time is taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.backends import cpu

REPEATS = 7  # other programs only ever add time, so the least of a few repeats is what the machine can do


@dataclass(frozen=True)
class Figure:
    """One measured number.

    name   what was measured
    value  the number, in ``unit``; None where it could not be measured, with the reason as ``note``
    most, least   what it was asked not to exceed, or to reach, if anything was asked
    """

    name: str
    value: float | None
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def asked(self) -> str:
        """What was asked of the value, and whether it was missed; empty where nothing was."""
        limits = [f"≤ {self.most:g}"] if self.most is not None else []
        limits += [f"≥ {self.least:g}"] if self.least is not None else []
        return ", ".join([*limits, *(["missed"] if self.missed else [])])

    @property
    def missed(self) -> bool:
        """Whether the value is on the wrong side of what was asked."""
        if self.value is None:
            return False
        too_much = self.most is not None and not self.value <= self.most
        return too_much or (self.least is not None and not self.value >= self.least)


def shortest(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Least wall time of ``call`` in seconds over ``repeats``, after one call that does not count."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def core_seconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Least processor time of ``call`` in seconds, of all its threads, which other programs hardly change."""
    call()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def copy_bandwidth(megabytes: int = 256) -> float:
    """Bytes a second, read and written together, of a plain copy between two arrays on all cores."""
    source = np.ones(megabytes * 2**20 // 8)
    target = np.zeros_like(source)

    def share(worker: int, workers: int) -> None:
        here = slice(len(source) * worker // workers, len(source) * (worker + 1) // workers)
        np.copyto(target[here], source[here])

    return 2 * source.nbytes / shortest(lambda: cpu.launch(share, len(source)))
