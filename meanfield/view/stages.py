"""Pictures of each manifold on the page of `meanfield view`: kind, coordinate, and the peaks marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.domains.domain import load
from meanfield.figures.axes import Floats
from meanfield.figures.peaks import PEAK, peaks_of
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import peaks
from meanfield.view.panels import rounded

Marks = list[list[float]]
CLUSTERS = "Rings and arrows mark clusters, numbers their mass."
PEAKS = f"Rings and arrows mark peaks above {PEAK} ρ̄, numbers their mass."


@dataclass(frozen=True)
class Stage:
    """How a manifold is shown.

    kind    of picture, a key of STAGES in web/main.js
    dtype   of the levels
    axis    one dimension: edges of the cells, label and ticks of the coordinate; None on the sphere
    marks   (run data, ρ/ρ̄) to the peaks, heaviest first: [polar angle, azimuth, mass], or [coordinate, mass]
    help    sentences about how to use the picture
    """

    kind: str
    dtype: type[np.uint8] | type[np.uint16]
    axis: Callable[[RunData], dict[str, Any]] | None
    marks: Callable[[RunData, Floats], Marks]
    help: tuple[str, ...] = ()


def _axis(run_data: RunData) -> dict[str, Any]:
    assert run_data.coordinate is not None
    shown = run_data.coordinate
    return {"edges": rounded(shown.edges), "label": shown.label, "ticks": [list(tick) for tick in shown.ticks]}


def _sphere_marks(run_data: RunData, ratio: Floats) -> Marks:
    rows: Marks = np.stack(peaks(run_data, ratio), axis=1).round(5).tolist()
    return rows


def _circle_marks(run_data: RunData, ratio: Floats) -> Marks:
    """Peaks as on the sphere, see :func:`meanfield.figures.peaks.peaks_of`."""
    count = len(ratio)
    angle = 2 * np.pi * (np.arange(count) + 0.5) / count
    centers = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    cells, masses = peaks_of(centers, ratio, ratio / count, run_data.beta, 4 * np.pi / count)
    rows: Marks = np.stack([angle[cells], masses], axis=1).round(5).tolist()
    return rows


def _no_marks(run_data: RunData, ratio: Floats) -> Marks:
    """Where there is no uniform density there is nothing that a peak has to rise above."""
    return []


RING = Stage("ring", np.uint16, _axis, _circle_marks, (PEAKS,))
PROFILE = Stage("profile", np.uint16, _axis, _no_marks)
TURNING = (
    "Drag the globe or turn it with the arrow keys; a double click turns it back.",
    "A click on the map turns the globe there.",
)
GLOBE = Stage("globe", np.uint8, None, _sphere_marks, (*TURNING, PEAKS))


def stage_of(run_data: RunData) -> Stage:
    """The stage of the domain. One with a radius is shown by its directions, tokens by their density."""
    assert run_data.kind.stage is not None
    stage: Stage = load(run_data.kind.stage)
    return stage
