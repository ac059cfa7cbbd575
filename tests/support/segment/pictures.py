"""Axis of a segment in figures and on pages."""

from __future__ import annotations

from meanfield.figures.coordinate import Coordinate
from meanfield.figures.run_data import RunData
from meanfield.view.stages import PROFILE

STAGE = PROFILE


def place(run_data: RunData) -> Coordinate:
    """Return the coordinate x, between two walls."""
    edges = run_data.edges
    assert edges is not None
    walls = [(float(edges[0]), "left wall"), (float(edges[-1]), "right wall")]
    return Coordinate(edges, "place x", walls, "ρ(x)")
