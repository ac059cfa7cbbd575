"""Markers and fixtures that several test files share."""

import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest

# Set before NumPy and PyTorch are imported: waiting threads spin, which slows the tests that run in parallel.
for library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


SLOW = Path(__file__).with_name("slow.txt")  # names of slow test functions, written by `python -m pytest --write-slow`
SECONDS = 0.7  # a test that takes longer is slow; the faster tests take about four minutes in all on two cores


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-slow", action="store_true", help=f"write {SLOW.name} by what this run measures")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-slow"):
        config.pluginmanager.register(_Measurement())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with Ctrl-C ignored
    config.addinivalue_line("markers", f"slow: takes more than {SECONDS} seconds; -m 'not slow' leaves it out")


def pytest_collection_finish() -> None:
    """Let the garbage collector run less often, and pass over what imports have made: it takes a tenth of the time."""
    gc.set_threshold(20_000)
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    if _function(item.nodeid) in _slow():
        item.add_marker("slow")
    if item.path.parent.name == "gpu":
        item.add_marker("gpu")


class _Measurement:
    """Record of the longest time of each test function, which writes the file of slow tests at the end."""

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
