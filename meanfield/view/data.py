"""Data of the page of `meanfield view`: a run as plain JSON, with densities as levels of the color scale.

Levels count from 0 at the low end of the scale: 256 on the sphere and 65536 in one dimension, where the density is also
drawn as a line. The leading 8 bits of a level are its color in the map. Snapshots are stored in order, each as the
difference from the previous one modulo the number of levels (little-endian), deflated (zlib) and in base64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import COLOR_MAP, Scale, scale_of
from meanfield.figures.profiles import average_rows, row_edges
from meanfield.figures.run_data import Integers, RunData
from meanfield.figures.sphere_map import cell_angles
from meanfield.view.bands import hex_colors
from meanfield.view.packing import Levels, pack_frames, quantize_levels
from meanfield.view.panels import panels, round_values
from meanfield.view.stages import stage_of
from solvers.mesh.rings import sphere_cells

Described = dict[str, Any]  # ready for JSON
SNAPSHOTS, SAMPLES = 300, 1500  # largest numbers of snapshots and of points of a curve in a page
VISIBLE = 0.1  # part of the color scale that a snapshot spans when there is something to see
RINGS, ARCS = 256, 2048  # largest numbers of rings, and of cells in one dimension, on a page


def thin_data(run_data: RunData) -> tuple[RunData, list[str]]:
    """Return the data of a run reduced to the numbers of snapshots, samples and cells that a page can show, and notes.

    There is a note on each reduction.
    """
    coarse, left = (_coarse_rings if run_data.coordinate is None else _coarse_line)(run_data)
    thin, notes = thin_in_time(coarse)
    if left < (cells := len(run_data.density(0))):
        notes.append(f"densities are shown averaged over {left} of {cells} cells")
    return thin, notes


def thin_in_time(run_data: RunData) -> tuple[RunData, list[str]]:
    """Return the data of a run with at most SNAPSHOTS snapshots and SAMPLES samples, for a page, and notes.

    There is a note if snapshots are left out.
    """
    keep, samples = evenly(len(run_data.times), SNAPSHOTS), evenly(len(run_data.diagnostics.get("time", ())), SAMPLES)
    fewer, notes = len(keep) < len(run_data.times), []
    if fewer:
        notes.append(f"{len(keep)} of {len(run_data.times)} snapshots are shown, evenly chosen")
    particles, clusters = run_data.particles, run_data.clusters
    thin = replace(
        run_data,
        times=run_data.times[keep],
        density=lambda k: run_data.density(int(keep[k])),
        diagnostics={name: values[samples] for name, values in run_data.diagnostics.items()},
        particles=particles and replace(particles, positions=lambda k: particles.positions(int(keep[k]))),
        clusters=clusters and (lambda k: clusters(int(keep[k]))),
    )
    return thin, notes


def evenly(count: int, max_count: int) -> Integers:
    """Return indices of at most ``max_count`` of ``count`` items, evenly spaced from the first to the last."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, max_count)).round().astype(int))


def _coarse_line(run_data: RunData) -> tuple[RunData, int]:
    """Return the data of a run in one dimension averaged to at most ARCS cells, and the number of these cells."""
    assert run_data.coordinate is not None
    edges = run_data.coordinate.edges if run_data.edges is None else run_data.edges
    coarse_edges = row_edges(edges, ARCS)
    left = len(coarse_edges) - 1
    coarse = replace(
        run_data,
        ring_cells=np.array([left]),
        edges=None if run_data.edges is None else coarse_edges,
        density=lambda k: average_rows(run_data.density(k), ARCS, np.diff(edges)),
        uniform=None if run_data.uniform is None else average_rows(run_data.uniform, ARCS, np.diff(edges)),
    )
    return coarse, left


def _coarse_rings(run_data: RunData) -> tuple[RunData, int]:
    """Return the data of a run on the sphere averaged to at most RINGS rings, and the number of coarse cells."""
    ring_cells = run_data.ring_cells
    if len(ring_cells) <= RINGS:
        return run_data, int(ring_cells.sum())
    rings = len(ring_cells) // -(-len(ring_cells) // RINGS)  # ≥ 2 for each new one, so that none is empty
    coarse = np.maximum(2 * rings * np.sin(np.pi * (np.arange(rings) + 0.5) / rings), 3).round().astype(int)
    theta, phi, area = cell_angles(ring_cells)
    coarse_cell = sphere_cells(coarse, theta, phi)
    areas = np.bincount(coarse_cell, area, minlength=int(coarse.sum()))

    def density(k: int) -> Floats:
        """Return the density (coarse cells,) of snapshot k, averaged over the fine cells of each coarse cell."""
        return np.bincount(coarse_cell, area * run_data.density(k), minlength=len(areas)) / areas

    return replace(run_data, ring_cells=coarse, density=density), len(areas)


def encode(run_data: RunData, scale: Scale) -> str:
    """Return the densities of all snapshots as levels of the color ``scale``, encoded as text for the HTML page."""
    dtype = stage_of(run_data).dtype
    return pack_frames(levels(run_data.ratio(k), scale, dtype) for k in range(len(run_data.times)))


def levels(ratio: Floats, scale: Scale, dtype: type[np.uint8] | type[np.uint16]) -> Levels:
    """Return densities ρ/ρ̄ (cells,) as integer levels of the color ``scale``."""
    return quantize_levels(_normed(ratio, scale), dtype)


def _normed(ratio: Floats, scale: Scale) -> Floats:
    """Return the positions (cells,) of densities ρ/ρ̄ on the color ``scale``, from 0 to 1."""
    return np.asarray(scale.norm(scale.values(ratio)), dtype=float)


def first_visible(spans: Iterable[float]) -> int:
    """Return the first snapshot whose colors span VISIBLE of the scale, at which the page opens; 0 if there is none.

    ``spans`` are the parts of the color scale between the least and the largest value of each snapshot.
    """
    return next((k for k, span in enumerate(spans) if span >= VISIBLE), 0)


def timeline(run_data: RunData) -> Described:
    """Return the data for the HTML page that all runs share: times, numbers of clusters, and panels of diagnostics."""
    return {
        "colors": hex_colors(COLOR_MAP),
        "times": round_values(run_data.times),
        "timeLabels": [run_data.moment(t) for t in run_data.times],
        "timeName": run_data.time_label,
        "logTime": run_data.log_time,
        "timeRange": _time_range(run_data),
        "clusters": [run_data.counted_at(k) for k in range(len(run_data.times))],
        "sampleTimes": round_values(run_data.diagnostics.get("time", np.empty(0))),
        "panels": panels(run_data),
    }


def describe(run_data: RunData) -> tuple[Described, str]:
    """Return a run as plain values for the script of its page, and its densities encoded as text."""
    stage, scale = stage_of(run_data), scale_of(run_data, range(len(run_data.times)))
    count = range(len(run_data.times))
    description = timeline(run_data) | {
        "stage": stage.kind,
        "cells": len(run_data.density(0)),
        "rings": run_data.ring_cells.tolist(),
        "axis": stage.axis(run_data) if stage.axis else None,
        "bytes": np.dtype(stage.dtype).itemsize,
        "scale": _scale(scale),
        "uniform": _uniform(run_data, scale),
        "marks": [stage.marks(run_data, k) for k in count],
        "opens": first_visible(float(np.ptp(_normed(run_data.ratio(k), scale))) for k in count),
    }
    return description, encode(run_data, scale)


def _scale(scale: Scale) -> Described:
    """Return the color scale of densities as plain values for the HTML page."""
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
    """Return the uniform density that is drawn in a profile on the HTML page: a value for each cell, or a single value.

    The result is None if the domain has no uniform density.
    """
    if run_data.uniform is not None:
        return round_values(run_data.uniform.clip(scale.low / 10))
    return None if scale.density_name else [0.0 if scale.deviation else 1.0]


def _time_range(run_data: RunData) -> list[float]:
    """Return the ends of the time axis: the first snapshot, on a log axis the first after time 0, and the last."""
    times = run_data.times[run_data.times > 0] if run_data.log_time else run_data.times
    first, last = float(times[0]), float(times[-1])
    return [first, last if last > first else first + 1]
