"""Angle at which the axis of a circle begins: one of several, with little mass nearby."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.run_data import Integers, RunData

CUT_ANGLES = np.pi * np.array([0, -1, -1.5, -0.5, -1.75, -0.25, -1.25, -0.75])  # in order of preference
CUT_MASS = 0.01  # largest accepted excess of the share of the mass near the cut over that at the emptiest angle


def with_cut(run_data: RunData, shown: Sequence[int]) -> RunData:
    """Return the data of a density on the circle with its cells in order from the cut on; other densities unchanged.

    The cut is the angle at which the axis of a figure begins, see :func:`emptiest`, for the snapshots ``shown``.
    """
    if run_data.kind.space != "S1" or run_data.edges is not None or len(run_data.ring_cells) != 1:
        return run_data
    cells = int(run_data.ring_cells[0])
    shift = round(emptiest(map(run_data.ratio, shown)) * cells / (2 * np.pi))

    def density(k: int) -> Floats:
        """Return the density (cells,) of snapshot k, with its cells in order from the cut on."""
        return np.roll(run_data.density(k), -shift)

    return replace(run_data, cut=shift * (2 * np.pi / cells), density=density)


def emptiest(ratios: Iterable[Floats]) -> float:
    """Return the first of CUT_ANGLES near which no density (cells,) has much mass.

    The share of the mass within π/8 of the angle, the largest of all densities, exceeds its minimum over the angles by
    at most CUT_MASS. ``ratios`` are the densities relative to the uniform one.
    """
    max_shares = np.zeros(len(CUT_ANGLES))
    for ratio in ratios:
        shifts = np.round(CUT_ANGLES * len(ratio) / (2 * np.pi)).astype(int)
        max_shares = np.maximum(max_shares, masses_near(ratio, shifts))
    return float(CUT_ANGLES[np.argmax(max_shares <= max_shares.min() + CUT_MASS)])


def masses_near(ratio: Floats, shifts: Integers) -> Floats:
    """Return the share of the mass on the circle within an angle of π/8 of each of some cell edges, (edges,).

    ratio    (cells,) density relative to the uniform one
    shifts   (edges,) numbers of the cell edges; edge k lies before cell k
    """
    half = max(len(ratio) // 16, 1)
    sums = [np.roll(ratio, half - shift)[: 2 * half].sum() for shift in shifts]
    return np.asarray(np.array(sums) / ratio.sum())
