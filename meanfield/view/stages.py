"""Pictures of each manifold on the page of `meanfield view`: kind, coordinate, and marked clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.domains.domain import load
from meanfield.figures.particles.tokens import angles
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import polar_and_azimuth
from meanfield.view.panels import round_values

Marks = list[list[float]]
CLUSTERS = "Rings and arrows mark clusters, numbers their mass."


@dataclass(frozen=True)
class Stage:
    """Picture of a manifold on the page of a run.

    kind    key of STAGES in web/main.js
    dtype   integer type of the levels that encode densities
    axis    function (run data) → cell edges, label and ticks of the coordinate in one dimension; None on the sphere
    marks   function (run data, k) → clusters of snapshot k, heaviest first: [polar angle, azimuth, mass], or
            [coordinate, mass]
    help    instructions for the picture
    """

    kind: str
    dtype: type[np.uint8] | type[np.uint16]
    axis: Callable[[RunData], dict[str, Any]] | None
    marks: Callable[[RunData, int], Marks]
    help: tuple[str, ...] = ()


def _axis(run_data: RunData) -> dict[str, Any]:
    """Return the coordinate of a density in one dimension as plain values for the HTML page."""
    assert run_data.coordinate is not None
    shown = run_data.coordinate
    return {"edges": round_values(shown.edges), "label": shown.label, "ticks": [list(tick) for tick in shown.ticks]}


def cluster_marks(run_data: RunData, k: int) -> Marks:
    """Return the clusters of snapshot k for the HTML page, heaviest first: angle(s) and mass of each.

    On the sphere the angles are polar angle and azimuth. The list is empty if clusters are unknown.
    """
    if run_data.clusters is None:
        return []
    _, masses, places = run_data.clusters(k)
    where = [angles(places)] if places.shape[1] == 2 else list(polar_and_azimuth(places))
    rows: Marks = np.stack([*where, masses], axis=1).round(5).tolist()
    return rows


RING = Stage("ring", np.uint16, _axis, cluster_marks, (CLUSTERS,))
PROFILE = Stage("profile", np.uint16, _axis, lambda run_data, k: [])
TURNING = (
    "Drag the globe or turn it with the arrow keys; a double click resets it.",
    "A click on the map centers the globe there.",
)
GLOBE = Stage("globe", np.uint8, None, cluster_marks, (*TURNING, CLUSTERS))


def stage_of(run_data: RunData) -> Stage:
    """Return the description of the picture of a run's domain on its HTML page, a `Stage`."""
    assert run_data.kind.stage is not None
    stage: Stage = load(run_data.kind.stage)
    return stage
