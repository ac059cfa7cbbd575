"""Quantities along one coordinate over time, shown with the tokens of a page: angles between tokens, fields of
sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.clusters.pairs import STEP, pairs_of_points
from meanfield.figures.axes import Floats
from meanfield.figures.particles.projected import DECADES, TICKS, angle_shares
from meanfield.figures.particles.tokens import directions, tokens_of
from meanfield.figures.run_data import RunData
from meanfield.figures.sequence import COLORS, field_parts
from meanfield.view.packing import pack_frames, quantize_levels
from meanfield.view.panels import round_values

MAX_PAIRED, MAX_PLACES = 400, 720  # tokens for the angles of pairs, and positions of a sequence
Band = dict[str, Any]


def pair_band(run_data: RunData) -> Band:
    """Return the shares of pairs of tokens in bins of 3° of their angle over time, as data for a run's HTML page.

    The shares for uniform directions are included for comparison.
    """
    count = len(tokens_of(run_data).weights)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_PAIRED)).round().astype(int))
    masses = tokens_of(run_data).weights[chosen]

    def shares(k: int) -> Floats:
        """Return the shares (bins,) of the pairs of tokens of snapshot k."""
        return np.asarray(angle_shares(pairs_of_points(directions(run_data, k)[chosen], masses)[None])[0])

    found = np.stack([shares(k) for k in range(len(run_data.times))])
    high = float(found.max())
    low = min(max(DECADES * high, float(found[found > 0].min())), 0.1 * high)
    edges: Floats = STEP * np.arange(len(found[0]) + 1.0)
    ticks = [[float(place), text] for place, text in zip(*TICKS, strict=True)]
    label = "share of the pairs, per 3°"
    return {
        "id": "pairs",
        "title": "angles between tokens",
        "axis": {"edges": round_values(edges), "label": "angle arccos ⟨θ, θ′⟩ (rad)", "ticks": ticks},
        "uniform": round_values(_uniform_shares(edges, run_data.dimension or 2).clip(low / 10)),
        "scale": {"low": low, "high": high, "deviation": False, "cut": True, "symbol": label, "label": label},
    } | _levels(found, lambda values: np.log(values.clip(low) / low) / np.log(high / low))


def _uniform_shares(edges: Floats, d: int) -> Floats:
    """Return the probability (bins,) of each bin of the angle between two uniform directions in R^d, ∝ ∫sin^{d−2}."""
    fine = np.sin(edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(8) + 0.5) / 8) ** (d - 2)
    return np.asarray(fine.sum(axis=1) / fine.sum())


def field_bands(run_data: RunData) -> list[Band]:
    """Return the field of a token sequence over time, along two principal axes, as data for a run's HTML page."""
    length = tokens_of(run_data).length
    assert length is not None
    parts = field_parts(run_data, range(len(run_data.times)), MAX_PLACES)
    largest = float(np.abs(parts).max()) or 1.0
    bands = []
    for number, part in enumerate(parts, start=1):
        edges = np.linspace(0.0, length, part.shape[1] + 1)
        label = f"u/|u| along principal axis {number}, deviation from the mean"
        scale = {"low": -largest, "high": largest, "deviation": True, "cut": False, "symbol": label, "label": label}
        band = {
            "id": f"field{number}",
            "title": f"field u/|u| along principal axis {number}",
            "axis": {"edges": round_values(edges), "label": "token position x", "ticks": None},
            "uniform": [0.0],
            "scale": scale,
            "colors": hex_colors(COLORS),
        }
        bands.append(band | _levels(part, lambda values: (values / largest + 1) / 2))
    return bands


def _levels(values: Floats, part: Callable[[Floats], Floats]) -> Band:
    """Return values (snapshots, cells) as encoded levels of a scale for the HTML page of a run.

    ``part`` maps values to positions on the scale from 0 to 1.
    """
    frames = [quantize_levels(part(one), np.uint16) for one in values]
    return {"cells": values.shape[1], "bytes": 2, "levels": pack_frames(frames)}


def hex_colors(name: str) -> str:
    """Return the 256 colors of a Matplotlib color map as text, six hexadecimal digits each."""
    from matplotlib import colormaps

    colors: bytes = colormaps[name](np.arange(256), bytes=True)[:, :3].tobytes()
    return colors.hex()
