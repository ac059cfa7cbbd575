"""Markers, and what several test files share."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than about ten seconds; -m 'not slow' leaves it out")


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.name.startswith("test_gpu_"):
        item.add_marker("gpu")
