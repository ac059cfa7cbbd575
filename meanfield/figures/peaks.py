"""Peaks of a density, as pictures mark them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
PEAK = 10  # times the uniform density


def peaks_of(centers: Floats, ratio: Floats, masses: Floats, beta: float, width: float) -> tuple[Indices, Floats]:
    """Local maxima above 10ρ̄, heaviest first: their cells (peaks,) and masses (peaks,), which no two share.

    A peak is the highest cell within the attention's length 1/√β (at most ½, at least ``width``); its mass is what lies
    within that distance, and no nearer to another peak.

    centers   (cells, d) unit vectors
    ratio     (cells,) ρ/ρ̄
    masses    (cells,)
    """
    reach = np.cos(max(1 / np.sqrt(max(beta, 4.0)), width))
    found: list[int] = []
    left = np.flatnonzero(ratio > PEAK)
    while len(left):
        top = left[np.argmax(ratio[left])]
        if ratio[top] >= ratio[centers @ centers[top] >= reach].max():
            found.append(int(top))
        left = left[centers[left] @ centers[top] < reach]
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0)
    towards = centers @ centers[found].T
    nearest, near = towards.argmax(axis=1), towards.max(axis=1) >= reach
    held = np.bincount(nearest[near], masses[near], len(found)).astype(float)
    order = np.argsort(-held, kind="stable")
    return np.array(found)[order], held[order]
