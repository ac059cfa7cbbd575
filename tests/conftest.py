"""Markers, and what several test files share."""

import os
import signal
from functools import cache
from pathlib import Path

import pytest

# Before NumPy is imported: threads of BLAS wait in a loop, and take from the tests that run beside this one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


SLOW = Path(__file__).with_name("slow.txt")  # test functions, written by `python -m pytest --write-slow`
SECONDS = 0.7  # with which one is slow: those that take less take some four minutes in all, on two cores


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-slow", action="store_true", help=f"write {SLOW.name} by what this run measures")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-slow"):
        config.pluginmanager.register(_Measurement())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has jobs in its background ignore Ctrl-C
    config.addinivalue_line("markers", f"slow: takes more than {SECONDS} seconds; -m 'not slow' leaves it out")


def pytest_itemcollected(item: pytest.Item) -> None:
    if _function(item.nodeid) in _slow():
        item.add_marker("slow")
    if item.path.parent.name == "gpu":
        item.add_marker("gpu")


class _Measurement:
    """The longest time of each test function, and at the end the file of the slow ones."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _function(report.nodeid)
        self.seconds[name] = max(self.seconds.get(name, 0.0), report.duration)

    def pytest_sessionfinish(self) -> None:
        slow = sorted(name for name, seconds in self.seconds.items() if seconds > SECONDS)
        SLOW.write_text("".join(f"{name}\n" for name in slow), "ascii")


def _function(test: str) -> str:
    return test.partition("[")[0]


@cache
def _slow() -> frozenset[str]:
    return frozenset(SLOW.read_text("ascii").split())
