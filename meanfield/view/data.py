"""Data of the page of `meanfield view`: a run as plain JSON, its densities as levels of the color scale.

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
from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import COLOR_MAP, Scale, scale_of
from meanfield.figures.profiles import merged
from meanfield.figures.run_data import Integers, RunData
from meanfield.figures.sphere_map import cell_angles
from meanfield.view.panels import panels, rounded
from meanfield.view.stages import stage_of
from solvers.mesh.rings import sphere_cells

SNAPSHOTS, SAMPLES = 300, 1500  # in a page at most: moments to step through, and points of a panel's curve
RINGS, ARCS = 256, 2048  # at most so many rings of the sphere, or cells in one dimension: what a screen shows
Levels = NDArray[np.unsignedinteger]


def thinned(run_data: RunData) -> tuple[RunData, list[str]]:
    """No more snapshots, samples and cells than a page takes, and a line for each that was thinned."""
    keep, samples = _spread(len(run_data.times), SNAPSHOTS), _spread(len(run_data.diagnostics.get("time", ())), SAMPLES)
    coarse, left = (_coarse_rings if run_data.coordinate is None else _coarse_line)(run_data)
    cells, notes = len(run_data.density(0)), []
    if len(keep) < len(run_data.times):
        notes.append(f"{len(keep)} of {len(run_data.times)} snapshots are shown, evenly chosen")
    if left < cells:
        notes.append(f"densities are shown averaged over {left} of {cells} cells")
    thin = replace(
        coarse,
        times=run_data.times[keep],
        density=lambda k: coarse.density(int(keep[k])),
        diagnostics={name: values[samples] for name, values in run_data.diagnostics.items()},
    )
    return thin, notes


def _spread(count: int, most: int) -> Integers:
    """Indices of at most ``most`` of ``count`` things, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(int))


def _coarse_line(run_data: RunData) -> tuple[RunData, int]:
    """In one dimension: the run data on no more cells than a screen shows, and how many these are."""
    assert run_data.coordinate is not None
    edges = run_data.coordinate.edges if run_data.edges is None else run_data.edges
    left = len(merged(np.zeros(len(edges) - 1), ARCS))
    coarse = replace(
        run_data,
        ring_cells=np.array([left]),
        edges=None if run_data.edges is None else edges[:: (len(edges) - 1) // left],
        density=lambda k: merged(run_data.density(k), ARCS, np.diff(edges)),
        uniform=None if run_data.uniform is None else merged(run_data.uniform, ARCS, np.diff(edges)),
    )
    return coarse, left


def _coarse_rings(run_data: RunData) -> tuple[RunData, int]:
    """The same on the sphere."""
    ring_cells = run_data.ring_cells
    if len(ring_cells) <= RINGS:
        return run_data, int(ring_cells.sum())
    rings = len(ring_cells) // -(-len(ring_cells) // RINGS)  # at least two rings to one, so that none is missed
    coarse = np.maximum(2 * rings * np.sin(np.pi * (np.arange(rings) + 0.5) / rings), 3).round().astype(int)
    theta, phi, area = cell_angles(ring_cells)
    place = sphere_cells(coarse, theta, phi)
    areas = np.bincount(place, area, minlength=int(coarse.sum()))

    def density(k: int) -> Floats:
        return np.bincount(place, area * run_data.density(k), minlength=len(areas)) / areas

    return replace(run_data, ring_cells=coarse, density=density), len(areas)


def encode(run_data: RunData, scale: Scale) -> str:
    """All densities as levels of ``scale``, in the encoding that the head of this file describes."""
    dtype = stage_of(run_data).dtype
    before, packer, packed = np.zeros(len(run_data.density(0)), dtype), zlib.compressobj(9), []
    for k in range(len(run_data.times)):
        now = levels(run_data.ratio(k), scale, dtype)
        packed.append(packer.compress((now - before).astype(now.dtype.newbyteorder("<")).tobytes()))
        before = now
    return base64.b64encode(b"".join([*packed, packer.flush()])).decode("ascii")


def levels(ratio: Floats, scale: Scale, dtype: type[np.uint8] | type[np.uint16]) -> Levels:
    """(cells,) ρ/ρ̄ as levels, rounded down as matplotlib does to find a colour."""
    most = np.iinfo(dtype).max
    part = np.asarray(scale.norm(scale.values(ratio)), dtype=float)
    return (part * (most + 1)).clip(0, most).astype(dtype)


def describe(run_data: RunData) -> tuple[dict[str, Any], str]:
    """The run for the page's script, ready for JSON, and its encoded densities."""
    stage, scale = stage_of(run_data), scale_of(run_data, range(len(run_data.times)))
    count = range(len(run_data.times))
    description = {
        "stage": stage.kind,
        "cells": len(run_data.density(0)),
        "rings": run_data.ring_cells.tolist(),
        "axis": stage.axis(run_data) if stage.axis else None,
        "bytes": np.dtype(stage.dtype).itemsize,
        "scale": _scale(scale),
        "uniform": _uniform(run_data, scale),
        "colors": _colors(),
        "times": rounded(run_data.times),
        "timeLabels": [format_time(t) for t in run_data.times],
        "logTime": run_data.log_time,
        "timeRange": _time_range(run_data),
        "clusters": [run_data.clusters_at(t) for t in run_data.times],
        "marks": [stage.marks(run_data, run_data.ratio(k)) for k in count],
        "sampleTimes": rounded(run_data.diagnostics.get("time", np.empty(0))),
        "panels": panels(run_data),
    }
    return description, encode(run_data, scale)


def _scale(scale: Scale) -> dict[str, Any]:
    symbol = scale.density_name or ("ρ/ρ̄ − 1" if scale.deviation else "ρ/ρ̄")
    return {
        "low": scale.low,
        "high": scale.high,
        "deviation": scale.deviation,
        "cut": scale.is_cut,
        "symbol": symbol,
        "label": scale.density_name or f"density {symbol}, in units of the uniform density ρ̄",
    }


def _uniform(run_data: RunData, scale: Scale) -> list[float | None] | None:
    """What a uniform density looks like in a profile: its value in each cell, or the one; None where there is none."""
    if run_data.uniform is not None:
        return rounded(run_data.uniform.clip(scale.low / 10))
    return None if scale.density_name else [0.0 if scale.deviation else 1.0]


def _colors() -> str:
    """The colour map's 256 colours, six hexadecimal digits each."""
    from matplotlib import colormaps

    table: NDArray[np.uint8] = colormaps[COLOR_MAP](np.arange(256), bytes=True)[:, :3]
    return table.tobytes().hex()


def _time_range(run_data: RunData) -> list[float]:
    """Ends of the time axis: from the first snapshot, or on a log axis the first after time zero, to the last."""
    times = run_data.times[run_data.times > 0] if run_data.log_time else run_data.times
    first, last = float(times[0]), float(times[-1])
    return [first, last if last > first else first + 1]
