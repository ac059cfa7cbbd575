"""Laws that fill a small part of their mesh: the cells worth showing, and where a line is worth bending."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.figures.color_scale import law_floor
from meanfield.figures.run_data import Floats, Story

FAR = 30.0  # times the narrowest spread: a line that reaches farther is shown by arcsinh


def trimmed(story: Story) -> Story:
    """The story on those cells, and a few around them, that any snapshot shows something of.

    On the line the axis is bent where the widest snapshot reaches far beyond the narrowest's spread.
    """
    assert story.edges is not None
    peaks, highest = np.empty(len(story.times)), np.zeros(len(story.edges) - 1)
    for k in range(len(peaks)):
        density = story.density(k)
        peaks[k], highest = density.max(), np.maximum(highest, density)
    shown = np.flatnonzero(highest >= law_floor(peaks))
    margin = (shown[-1] - shown[0]) // 20
    cells = slice(max(shown[0] - margin, 0), int(shown[-1]) + margin + 1)
    edges = story.edges[cells.start : cells.stop + 1]
    narrowest = min(_spread(story.edges, story.density(k)) for k in range(len(peaks)))
    bent = story.kind.space == "R1" and np.abs(edges).max() > FAR * narrowest
    return replace(
        story,
        edges=edges,
        core=narrowest if bent else 0.0,
        density=lambda k: story.density(k)[cells],
        uniform=None if story.uniform is None else story.uniform[cells],
    )


def _spread(edges: Floats, density: Floats) -> float:
    """Root mean square distance from the origin, at least a cell's width."""
    masses, centers = density * np.diff(edges), (edges[1:] + edges[:-1]) / 2
    return max(float(np.sqrt(masses @ centers**2 / masses.sum())), float(np.diff(edges).min()))
