"""Cells in the order of their levels, which basins of peaks are found in."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.backends.cpu.basins import sort_cells

random = np.random.default_rng(3)
KEYS = {
    "any": random.integers(0, 2**64, 5000, dtype=np.uint64),
    "below a digit": random.integers(0, 2**11, 5000, dtype=np.uint64),
    "of two digits": random.integers(0, 2**12, 5000, dtype=np.uint64),
    "of an odd number of digits": random.integers(0, 2**30, 5000, dtype=np.uint64),
    "a plateau": np.where(np.arange(5000) % 7 == 0, np.arange(5000) ** 3, 5).astype(np.uint64),
    "all 0": np.zeros(5000, np.uint64),
    "one": np.array([2**64 - 1], np.uint64),
}


@pytest.mark.parametrize("name", KEYS)
def test_largest_first_and_equal_ones_by_their_numbers(name: str) -> None:
    keys = KEYS[name]
    work = np.empty(len(keys), np.int32), np.empty(len(keys), np.uint64), np.empty(len(keys), np.int32)
    order = sort_cells(keys.copy(), *work)
    assert np.array_equal(order, np.argsort(~keys, kind="stable"))
