"""Axis ranges of densities that fill a small part of their mesh: visible cells, and points of a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import lowest_shown
from meanfield.figures.run_data import RunData

MAX_REACH = 30.0  # largest ratio of extent to narrowest spread on a linear axis


def trim_cells(run_data: RunData) -> RunData:
    """Return the data of a run restricted to the cells in which any snapshot has visible density, with a margin.

    The axis of a line is transformed if the widest snapshot extends far beyond the spread of the narrowest.
    """
    assert run_data.edges is not None
    peaks, highest = np.empty(len(run_data.times)), np.zeros(len(run_data.edges) - 1)
    for k in range(len(peaks)):
        density = run_data.density(k)
        peaks[k], highest = density.max(), np.maximum(highest, density)
    shown = np.flatnonzero(highest >= lowest_shown(peaks))
    margin = (shown[-1] - shown[0]) // 20
    cells = slice(max(shown[0] - margin, 0), int(shown[-1]) + margin + 1)
    edges = run_data.edges[cells.start : cells.stop + 1]
    narrowest = min(_rms_distance(run_data.edges, run_data.density(k)) for k in range(len(peaks)))
    bent = run_data.kind.space == "R1" and np.abs(edges).max() > MAX_REACH * narrowest
    return replace(
        run_data,
        edges=edges,
        core=narrowest if bent else 0.0,
        density=lambda k: run_data.density(k)[cells],
        uniform=None if run_data.uniform is None else run_data.uniform[cells],
    )


def _rms_distance(edges: Floats, density: Floats) -> float:
    """Return the root mean square distance of a density from the origin, at least the width of a cell."""
    masses, centers = density * np.diff(edges), (edges[1:] + edges[:-1]) / 2
    return max(float(np.sqrt(masses @ centers**2 / masses.sum())), float(np.diff(edges).min()))
