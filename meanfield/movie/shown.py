"""Snapshots that a movie shows: of logarithmic times those that differ visibly from the previous frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import scale_of
from meanfield.figures.particles.tokens import directions
from meanfield.figures.run_data import RunData
from solvers.io.run_file import Run

VISIBLE = 1 / 64  # of the color scale in a cell, or of the unit length for the direction of a token


def frame_numbers(run_data: RunData | Run) -> list[int]:
    """Return the snapshots that a movie shows, with the first and the last.

    Snapshots at logarithmic times are omitted while no cell changes its color and no token its direction by VISIBLE
    since the previous frame, and the number of clusters stays.
    """
    count = len(run_data.times)
    if isinstance(run_data, Run) or not run_data.log_spacing or run_data.has_radius:
        return list(range(count))
    if run_data.particles is not None and run_data.particles.has_radius:
        return list(range(count))
    return sorted({*_changing(run_data, _picture_of(run_data)), count - 1})


def _changing(run_data: RunData, picture: Callable[[int], Floats]) -> Iterator[int]:
    """Yield the first snapshot, and each one whose picture or number of clusters differs from the last one yielded."""
    last, counted = picture(0), run_data.counted_at(0)
    yield 0
    for k in range(1, len(run_data.times)):
        now, text = picture(k), run_data.counted_at(k)
        if text != counted or not np.abs(now - last).max() < VISIBLE:
            last, counted = now, text
            yield k


def _picture_of(run_data: RunData) -> Callable[[int], Floats]:
    """Return the function that returns the values of snapshot k that are seen: colors from 0 to 1, or directions."""
    if run_data.particles is not None:
        return lambda k: directions(run_data, k)
    scale = scale_of(run_data, range(len(run_data.times)))
    norm = scale.norm
    return lambda k: np.asarray(norm(scale.values(run_data.ratio(k))), dtype=float)
