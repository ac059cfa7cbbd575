"""Basins of peaks, compared with superlevel sets found cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from solvers.backends.cpu.basins import persistent_basins, sort_highest_first
from solvers.backends.cpu.launching import kernel
from solvers.mesh.mesh import Floats, circle, sphere

Integers = NDArray[np.integer]
random = np.random.default_rng(3)
LEVELS = {
    "any": random.random(5000),
    "of few values": random.integers(1, 5, 5000).astype(float),
    "all equal": np.ones(2000),
    "increasing": np.arange(1.0, 3001.0),
    "decreasing": np.arange(3000.0, 0.0, -1.0),
    "two": np.array([1.0, 2.0]),
    "one": np.ones(1),
}


@kernel
def sort(order: Integers, count: int, level: Floats) -> None:
    sort_highest_first(order, count, level)


@pytest.mark.parametrize("name", LEVELS)
def test_highest_first_and_equal_ones_by_their_numbers(name: str) -> None:
    level = LEVELS[name]
    order = random.permutation(len(level)).astype(np.int32)
    count = len(order) // 2 + 1
    rest = order[count:].copy()
    expected = sorted(order[:count], key=lambda i: (-level[i], i))
    sort(order, count, level)
    assert order[:count].tolist() == expected
    assert np.array_equal(order[count:], rest)


def grid(rows: int, columns: int) -> tuple[Integers, Integers]:
    """Return the four neighbors of each point of a rectangle: the start of the neighbors of point i, and all
    neighbors."""
    number = np.arange(rows * columns).reshape(rows, columns)
    pairs = np.concatenate([np.stack([number[1:], number[:-1]], -1).reshape(-1, 2), _along(number)])
    ends, others = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.argsort(ends, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=number.size))])
    return start.astype(np.int32), others[order].astype(np.int32)


def _along(number: Integers) -> Integers:
    return np.stack([number[:, 1:], number[:, :-1]], -1).reshape(-1, 2)


def _of(build: object) -> tuple[Integers, Integers]:
    return build.cell_start, build.side_neighbors  # type: ignore[attr-defined]


GRAPHS = {"circle": _of(circle(60)), "sphere": _of(sphere(10)), "grid": grid(15, 20)}


def peaks_by_levels(level: Floats, contrast: float, start: Integers, neighbors: Integers) -> set[int]:
    """Return the remaining peaks, from islands that grow by one cell at a time, from the highest to the lowest."""
    peak_of: dict[int, int] = {}

    def root(i: int) -> int:
        while peak_of[i] != i:
            i = peak_of[i]
        return i

    for i in sorted(range(len(level)), key=lambda i: (-level[i], i)):
        around = {root(j) for j in neighbors[start[i] : start[i + 1]].tolist() if j in peak_of}
        if not around:
            peak_of[i] = i
            continue
        best = min(around, key=lambda peak: (-level[peak], peak))
        peak_of[i] = best
        for peak in around - {best}:
            if level[peak] < contrast * level[i]:
                peak_of[peak] = best
    return {root(i) for i in peak_of}


def uphill(i: int, level: Floats, start: Integers, neighbors: Integers) -> int:
    """Return the peak reached from a cell through its highest neighbors."""
    while True:
        around = [i, *neighbors[start[i] : start[i + 1]].tolist()]
        highest = min(around, key=lambda j: (-level[j], j))
        if highest == i:
            return i
        i = highest


@pytest.mark.parametrize("contrast", [1.0, 1.3, 3.0, 100.0])
@pytest.mark.parametrize("values", ["any", "of few values", "smooth"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_peaks_are_those_of_superlevel_sets(graph: str, values: str, contrast: float) -> None:
    start, neighbors = GRAPHS[graph]
    cells = len(start) - 1
    for seed in range(10):
        drawn = np.random.default_rng(seed)
        level = drawn.integers(1, 6, cells).astype(float) if values == "of few values" else drawn.random(cells) + 1e-3
        if values == "smooth":
            level = np.array([level[neighbors[start[i] : start[i + 1]]].mean() for i in range(cells)]) ** 4
        basin, order = np.empty(cells, np.int32), np.empty(cells, np.int32)
        persistent_basins(level, contrast, start, neighbors, order, basin)
        expected = peaks_by_levels(level, contrast, start, neighbors)
        assert set(basin.tolist()) == expected
        for i in range(cells):
            if (peak := uphill(i, level, start, neighbors)) in expected:
                assert basin[i] == peak
