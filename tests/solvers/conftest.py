"""Test mode of memory for the tests of solvers: each new array holds NaN until it is written."""

import pytest


@pytest.fixture(autouse=True)
def nan_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill new and scratch arrays of the CPU with NaN, or −1 for integers, so that a read of them is seen."""
    monkeypatch.setattr("solvers.backends.cpu.arrays.NAN_MEMORY", True)
