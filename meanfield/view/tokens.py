"""Data of the page of `meanfield view` for tokens as points: directions along selectable axes, as levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.particles.tokens import (
    MAX_DOTS,
    MAX_LINES,
    directions,
    principal_axes,
    tokens_of,
)
from meanfield.figures.run_data import RunData
from meanfield.view.bands import field_bands, pair_band
from meanfield.view.data import Described, evenly, thin_in_time, timeline
from meanfield.view.packing import pack_frames, quantize_levels
from meanfield.view.panels import round_values
from meanfield.view.stages import Marks, cluster_marks
from solvers.mesh.mesh import sphere

MAX_TOKENS = 1000  # largest number in more than three dimensions, and along a sequence
AXES = 6  # number of principal axes, and of coordinates, in more than three dimensions
GROUND_RINGS = 8  # rings of the empty sphere behind the tokens


def are_points(run_data: RunData) -> bool:
    """Return whether a page shows tokens one by one; many on the circle or sphere become a density."""
    tokens = tokens_of(run_data)
    max_points = {2: MAX_LINES, 3: MAX_DOTS}.get(run_data.dimension or 0)
    return max_points is None or tokens.length is not None or len(tokens.weights) <= max_points


def thin_tokens(run_data: RunData) -> tuple[RunData, list[str]]:
    """Return the data of a run reduced to the tokens, snapshots and samples that a page can show, and notes.

    There is a note on each reduction.
    """
    shown, notes = thin_in_time(run_data)
    tokens, positions = tokens_of(shown), tokens_of(shown).positions
    count = len(tokens.weights)
    max_tokens = {2: MAX_LINES, 3: MAX_DOTS}.get(run_data.dimension or 0, MAX_TOKENS)
    chosen = evenly(count, max_tokens)
    if len(chosen) == count:
        return shown, notes
    fewer = replace(tokens, positions=lambda k: positions(k)[chosen], weights=tokens.weights[chosen])
    return replace(shown, particles=fewer), [*notes, f"{len(chosen)} of {count} tokens are shown, evenly chosen"]


def describe_tokens(run_data: RunData) -> tuple[Described, str]:
    """Return a run of tokens as plain values for the script of its page, and the directions encoded as text.

    The components of the directions are stored axis after axis.
    """
    matrix, names, note = _axes(run_data)
    tokens = tokens_of(run_data)
    description = timeline(run_data) | {
        "stage": {2: "tokenCircle", 3: "tokenGlobe"}.get(run_data.dimension or 0, "tokenPlane"),
        "cells": len(names) * len(tokens.weights),
        "bytes": 2,
        "opens": 0,
        "rings": sphere(GROUND_RINGS).ring_cells.tolist(),
        "tokens": {"weights": round_values(tokens.weights / tokens.weights.sum()), "axes": names, "note": note},
        "marks": [_marks(run_data, k, matrix) for k in range(len(run_data.times))],
        "bands": field_bands(run_data) if tokens.length is not None and len(run_data.times) > 1 else [],
        "pairs": pair_band(run_data) if len(tokens.weights) > 1 else None,
    }
    count = range(len(run_data.times))
    places = ((directions(run_data, k) @ matrix).T.ravel() for k in count)
    return description, pack_frames(quantize_levels((place + 1) / 2, np.uint16) for place in places)


def _axes(run_data: RunData) -> tuple[Floats, list[str], str]:
    """Return unit vectors (d, axes) on which a page projects tokens, their names, and a note about them.

    In more than three dimensions they are principal axes and coordinates.
    """
    d = run_data.dimension or 2
    if d <= 3:
        return np.eye(d), [f"x{'₁₂₃'[i]}" for i in range(d)], ""
    count = min(d, AXES)
    snapshot, principal, share = principal_axes(run_data, count)
    names = [f"principal axis {i + 1}" for i in range(principal.shape[1])] + [
        f"coordinate {i + 1}" for i in range(count)
    ]
    when = run_data.moment(run_data.times[snapshot])
    note = f"the {principal.shape[1]} principal axes are those of {when}, with {share:.0%} of the variance; area: mass"
    return np.hstack([principal, np.eye(d)[:, :count]]), names, note


def _marks(run_data: RunData, k: int, matrix: Floats) -> Marks:
    """Return the clusters of snapshot k for the HTML page, heaviest first: position in the picture, and mass.

    The position is an angle on the circle, polar angle and azimuth on the sphere, else coordinates along the axes
    ``matrix`` (d, axes).
    """
    if run_data.dimension in (2, 3):
        return cluster_marks(run_data, k)
    if run_data.clusters is None:
        return []
    _, masses, places = run_data.clusters(k)
    rows: Marks = np.column_stack([places @ matrix, masses]).round(5).tolist()
    return rows
