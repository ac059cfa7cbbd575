"""Markers, and what several test files share."""

import os
import signal

import pytest

# Before NumPy is imported: threads of BLAS wait in a loop, and take from the tests that run beside this one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has jobs in its background ignore Ctrl-C
    config.addinivalue_line("markers", "slow: takes more than about ten seconds; -m 'not slow' leaves it out")


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.parent.name == "gpu":
        item.add_marker("gpu")
