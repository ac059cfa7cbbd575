"""Data of the page of `meanfield view` for a recorded solution of a PDE: an image of each snapshot."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import format_time
from meanfield.figures.color_scale import COLOR_MAP
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from meanfield.view.bands import hex_colors
from meanfield.view.data import SAMPLES, Described, evenly, first_visible
from meanfield.view.panels import curve_of, linear, round_values

if TYPE_CHECKING:
    from solvers.io.run_file import Run

PICTURES, COLORS = 80, 256  # largest number in a page, and colors of each
CURVES = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)


def describe_solution(run: Run) -> tuple[Described, list[str]]:
    """Return a recorded solution of a PDE as plain values for the script of its page, and notes.

    There is a note if some snapshots are left out.
    """
    shown = evenly(run.snapshots, PICTURES)
    times = run.times[shown]
    fewer = len(shown) < run.snapshots
    description = {
        "stage": "pictures",
        "pictures": list(_pictures(run, shown.tolist())),
        "cells": 0,
        "bytes": 1,
        "opens": first_visible(_spans(run, shown.tolist())),
        "colors": hex_colors(COLOR_MAP),
        "times": round_values(times),
        "timeLabels": [f"t = {format_time(t)}" for t in times],
        "timeName": "time t",
        "logTime": False,
        "timeRange": [float(times[0]), float(times[-1]) if times[-1] > times[0] else float(times[0]) + 1],
        "clusters": [""] * len(times),
        "marks": [[]] * len(times),
        "sampleTimes": round_values(run.sample_times[evenly(len(run.sample_times), SAMPLES)]),
        "panels": _panels(run),
    }
    return description, [f"{len(shown)} of {run.snapshots} snapshots are shown, evenly chosen"] * fewer


def _pictures(run: Run, shown: list[int]) -> Iterator[str]:
    """Yield the movie frames of the snapshots ``shown`` as data URLs."""
    from PIL import Image

    from meanfield.movie.animate import drawn_frames

    for pixels in drawn_frames(run, shown):
        file = io.BytesIO()
        Image.fromarray(pixels).quantize(COLORS).save(file, "PNG", optimize=True)
        yield "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _spans(run: Run, shown: list[int]) -> list[float]:
    """Return the variation of each snapshot in ``shown``, as a fraction of the variation over all these snapshots.

    The variation of a field is the maximum minus the minimum over the cells. The largest fraction of all fields is
    returned. Values that are not finite are left out.
    """
    spans = np.zeros(len(shown))
    for name in run.real_fields:
        values = np.array([run.field(name, k) for k in shown], dtype=float)
        values = np.ma.masked_invalid(values.reshape(len(shown), -1))
        whole = float(np.ma.ptp(values)) if values.count() else 0.0
        if whole > 0:
            spans = np.maximum(spans, np.ma.filled(np.ma.ptp(values, axis=1), 0.0) / whole)
    return [float(span) for span in spans]


def _panels(run: Run) -> list[Described]:
    """Return a panel of the HTML page for each diagnostic over time, with a curve for each of the first components."""
    samples = evenly(len(run.sample_times), SAMPLES)
    panels = []
    for name, values in run.diagnostics.items() if len(samples) > 1 else ():
        components = np.asarray(values, dtype=float)[samples].reshape(len(samples), -1).T
        labels = [""] if len(components) == 1 else [str(i) for i in range(len(components))]
        curves = [curve_of(*one) for one in zip(components, CURVES, labels, strict=False)]
        panels.append(linear(name, curves))
    return panels
