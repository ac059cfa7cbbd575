"""Overlay of two meshes of S² in rings of latitude: the intersections of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats

Integers = NDArray[np.integer]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Overlap:
    """Intersections of the cells of two meshes.

    first, second   (pieces) cell of each mesh that contains the piece
    shares          (pieces) area of each piece, divided by the area of its cell of the first mesh
    points          (pieces, 3) center of each piece
    """

    first: Places
    second: Places
    shares: Floats
    points: Floats


def overlay(first: Integers, second: Integers) -> Overlap:
    """Return the intersections of the cells of two meshes of S², given the number of cells (rings,) in each ring.

    The rings have equal height from pole to pole. Cells are bounded by circles of latitude and meridians, so that the
    areas of the pieces are exact.
    """
    return _overlay(tuple(int(n) for n in first), tuple(int(n) for n in second))


@lru_cache(maxsize=2)
def _overlay(first: tuple[int, ...], second: tuple[int, ...]) -> Overlap:
    """Return the intersections of the cells of two meshes as `overlay` does, cached for the next call."""
    starts = [np.concatenate([[0], np.cumsum(rings)]) for rings in (first, second)]
    thetas, heights, *rings = _cut(len(first), len(second), np.pi)
    found = []
    for theta, height, i, j in zip(thetas, heights, *rings, strict=True):
        azimuth, width, *places = _cut(first[i], second[j], 2 * np.pi)
        ring = np.pi / len(first)
        tall = np.sin(theta) * np.sin(height / 2) / (np.sin((i + 0.5) * ring) * np.sin(ring / 2))  # share of cos θ
        ray = np.sin(theta) * np.stack([np.cos(azimuth), np.sin(azimuth)], axis=1)
        points = np.column_stack([ray, np.full(len(ray), np.cos(theta))])
        cells = [start[r] + place for start, r, place in zip(starts, (i, j), places, strict=True)]
        found.append((*cells, tall * width * first[i] / (2 * np.pi), points))
    return Overlap(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _cut(n: int, m: int, length: float) -> tuple[Floats, Floats, Places, Places]:
    """Return the pieces of a length that is divided both into n and into m equal parts.

    The result has, for each piece, the midpoint, the width, and the part of each division that contains the piece.
    """
    common = int(np.lcm(n, m))
    ends = np.union1d(np.arange(n + 1) * (common // n), np.arange(m + 1) * (common // m))  # integers: exact
    unit = length / common
    return (
        (ends[:-1] + ends[1:]) * unit / 2,
        np.diff(ends) * unit,
        ends[:-1] // (common // n),
        ends[:-1] // (common // m),
    )
