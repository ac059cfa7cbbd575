"""What the page of `meanfield view` holds: a run as plain JSON, and its densities as levels of the colour scale.

Levels count from 0 at the scale's low end, 256 of them on the sphere and 65536 in one dimension, where the density
is also drawn as a line; a level's leading 8 bits are its colour in the map. Snapshots stand one after the other, each
as its difference to the one before, modulo the number of levels (little-endian), deflated (zlib) and in base64.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.analysis.text import format_time
from meanfield.figures.color_scale import COLOR_MAP, Scale, scale_of
from meanfield.figures.profiles import merged
from meanfield.figures.run_data import Floats, Integers, Story
from meanfield.figures.sphere_map import cell_angles
from meanfield.view.panels import panels, rounded
from meanfield.view.stages import stage_of
from solvers.mesh.rings import sphere_cells

SNAPSHOTS, SAMPLES = 300, 1500  # in a page at most: moments to step through, and points of a panel's curve
RINGS, ARCS = 256, 2048  # at most so many rings of the sphere, or cells in one dimension: what a screen shows
Levels = NDArray[np.unsignedinteger]


def thinned(story: Story) -> tuple[Story, list[str]]:
    """The story with no more snapshots, samples and cells than a page takes, and a line about each that was thinned."""
    keep, samples = _spread(len(story.times), SNAPSHOTS), _spread(len(story.diagnostics.get("time", ())), SAMPLES)
    coarse, left = (_coarse_rings if story.coordinate is None else _coarse_line)(story)
    cells, notes = len(story.density(0)), []
    if len(keep) < len(story.times):
        notes.append(f"{len(keep)} of {len(story.times)} snapshots are shown, evenly chosen")
    if left < cells:
        notes.append(f"densities are shown averaged over {left} of {cells} cells")
    thin = replace(
        coarse,
        times=story.times[keep],
        density=lambda k: coarse.density(int(keep[k])),
        diagnostics={name: values[samples] for name, values in story.diagnostics.items()},
    )
    return thin, notes


def _spread(count: int, most: int) -> Integers:
    """Indices of at most ``most`` of ``count`` things, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(int))


def _coarse_line(story: Story) -> tuple[Story, int]:
    """In one dimension: the story on no more cells than a screen shows, and how many these are."""
    assert story.coordinate is not None
    edges = story.coordinate.edges if story.edges is None else story.edges
    left = len(merged(np.zeros(len(edges) - 1), ARCS))
    coarse = replace(
        story,
        ring_cells=np.array([left]),
        edges=None if story.edges is None else edges[:: (len(edges) - 1) // left],
        density=lambda k: merged(story.density(k), ARCS, np.diff(edges)),
        uniform=None if story.uniform is None else merged(story.uniform, ARCS, np.diff(edges)),
    )
    return coarse, left


def _coarse_rings(story: Story) -> tuple[Story, int]:
    """The same on the sphere."""
    ring_cells = story.ring_cells
    if len(ring_cells) <= RINGS:
        return story, int(ring_cells.sum())
    rings = len(ring_cells) // -(-len(ring_cells) // RINGS)  # at least two rings to one, so that none is missed
    coarse = np.maximum(2 * rings * np.sin(np.pi * (np.arange(rings) + 0.5) / rings), 3).round().astype(int)
    theta, phi, area = cell_angles(ring_cells)
    place = sphere_cells(coarse, theta, phi)
    areas = np.bincount(place, area, minlength=int(coarse.sum()))

    def density(k: int) -> Floats:
        return np.bincount(place, area * story.density(k), minlength=len(areas)) / areas

    return replace(story, ring_cells=coarse, density=density), len(areas)


def encode(story: Story, scale: Scale) -> str:
    """All densities as levels of ``scale``, in the encoding that the head of this file describes."""
    dtype = stage_of(story).dtype
    before, packer, packed = np.zeros(len(story.density(0)), dtype), zlib.compressobj(9), []
    for k in range(len(story.times)):
        now = levels(story.ratio(k), scale, dtype)
        packed.append(packer.compress((now - before).astype(now.dtype.newbyteorder("<")).tobytes()))
        before = now
    return base64.b64encode(b"".join([*packed, packer.flush()])).decode("ascii")


def levels(ratio: Floats, scale: Scale, dtype: type[np.uint8] | type[np.uint16]) -> Levels:
    """(cells,) ρ/ρ̄ as levels, rounded down as matplotlib does to find a colour."""
    most = np.iinfo(dtype).max
    part = np.asarray(scale.norm(scale.values(ratio)), dtype=float)
    return (part * (most + 1)).clip(0, most).astype(dtype)


def describe(story: Story) -> tuple[dict[str, Any], str]:
    """The run for the page's script, ready for JSON, and its encoded densities."""
    stage, scale = stage_of(story), scale_of(story, range(len(story.times)))
    count = range(len(story.times))
    description = {
        "stage": stage.kind,
        "cells": len(story.density(0)),
        "rings": story.ring_cells.tolist(),
        "axis": stage.axis(story) if stage.axis else None,
        "bytes": np.dtype(stage.dtype).itemsize,
        "scale": _scale(scale),
        "uniform": _uniform(story, scale),
        "colors": _colors(),
        "times": rounded(story.times),
        "timeLabels": [format_time(t) for t in story.times],
        "logTime": story.log_time,
        "timeRange": _time_range(story),
        "clusters": [story.clusters_at(t) for t in story.times],
        "marks": [stage.marks(story, story.ratio(k)) for k in count],
        "sampleTimes": rounded(story.diagnostics.get("time", np.empty(0))),
        "panels": panels(story),
    }
    return description, encode(story, scale)


def _scale(scale: Scale) -> dict[str, Any]:
    symbol = scale.law or ("ρ/ρ̄ − 1" if scale.deviation else "ρ/ρ̄")
    return {
        "low": scale.low,
        "high": scale.high,
        "deviation": scale.deviation,
        "cut": scale.is_cut,
        "symbol": symbol,
        "label": scale.law or f"density {symbol}, in units of the uniform density ρ̄",
    }


def _uniform(story: Story, scale: Scale) -> list[float | None] | None:
    """What a uniform density looks like in a profile: its value in each cell, or the one; None where there is none."""
    if story.uniform is not None:
        return rounded(story.uniform.clip(scale.low / 10))
    return None if scale.law else [0.0 if scale.deviation else 1.0]


def _colors() -> str:
    """The colour map's 256 colours, six hexadecimal digits each."""
    from matplotlib import colormaps

    table: NDArray[np.uint8] = colormaps[COLOR_MAP](np.arange(256), bytes=True)[:, :3]
    return table.tobytes().hex()


def _time_range(story: Story) -> list[float]:
    """Ends of the time axis: from the first snapshot, or on a log axis the first after time zero, to the last."""
    times = story.times[story.times > 0] if story.log_time else story.times
    first, last = float(times[0]), float(times[-1])
    return [first, last if last > first else first + 1]
