"""Markers and fixtures that several test files share."""

import gc
import os
import signal
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from support.sampling import hold_each_value, spread_evenly

# Set before NumPy and PyTorch are imported: waiting threads spin, which slows the tests that run in parallel.
for library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


SLOW = Path(__file__).with_name("slow.txt")  # names of slow test functions, written by `python -m pytest --write-slow`
SECONDS = 0.7  # a test that takes longer is slow; the faster tests take about four minutes in all on two cores


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run every instance of the tests marked as sampled")
    parser.addoption("--write-slow", action="store_true", help=f"write {SLOW.name} by what this run measures")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-slow"):
        config.pluginmanager.register(_Measurement())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with Ctrl-C ignored
    config.addinivalue_line("markers", f"slow: takes more than {SECONDS} seconds; -m 'not slow' leaves it out")
    config.addinivalue_line(
        "markers",
        "sampled(count): without --exhaustive a run selects count evenly spread instances of the test; without count"
        " those that hold each value of each parameter once",
    )


def pytest_collection_finish() -> None:
    """Let the garbage collector run less often, and pass over what imports have made: it takes a tenth of the time."""
    gc.set_threshold(20_000)
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    if _function(item.nodeid) in _slow():
        item.add_marker("slow")
    if item.path.parent.name == "gpu":
        item.add_marker("gpu")


@pytest.hookimpl(trylast=True)  # after -k and -m: what these leave of a test keeps at least one instance
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    instances = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sampled"):
            instances[_function(item.nodeid)].append(item)
    omitted = {item for group in instances.values() for item in _omitted(group)}
    items[:] = [item for item in items if item not in omitted]
    config.hook.pytest_deselected(items=omitted)


def _omitted(instances: list[pytest.Item]) -> list[pytest.Item]:
    """Return the instances of a test that a run without --exhaustive omits."""
    counts = instances[0].get_closest_marker("sampled").args
    selected = (
        spread_evenly(len(instances), *counts)
        if counts
        else hold_each_value([each.callspec.params for each in instances])
    )
    return [instance for k, instance in enumerate(instances) if k not in selected]


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
