"""Runs of few tokens, used by several entries."""

from __future__ import annotations

from typing import Any

import numpy as np

import meanfield as mf
from solvers.mesh.mesh import Floats


def run(points: Any, end: float, *changes: str) -> tuple[Floats, Floats]:
    """Return the times and positions (times, n, d) of a run of tokens from ``points`` (n, d) to the time ``end``.

    ``changes`` are changes of the shipped case of two tokens, such as "attention.beta=4".
    """
    points = np.asarray(points, float)
    start = [f"initial.points={points.tolist()}", f"domain.dimension={points.shape[1]}", f"time.end={end}"]
    quiet = ["output.samples=1", 'output.diagnostics=["mass"]']
    result = mf.simulate(mf.load_case("tokens_pair", [*start, *quiet, *changes]))
    return np.asarray(result.time), np.asarray(result.position)


def uniform(count: int, dimension: int, seed: int) -> Floats:
    """Return uniform random unit vectors (count, dimension)."""
    points = np.random.default_rng(seed).standard_normal((count, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1)[:, None])


def on_circle(angles: Any) -> Floats:
    """Return the unit vectors (n, 2) at these angles."""
    angles = np.asarray(angles, float)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def continuous_angles(path: Floats) -> Floats:
    """Return the angles (times, n) of tokens ``path`` (times, n, 2) on the circle, continuous in time."""
    return np.asarray(np.unwrap(np.arctan2(path[..., 1], path[..., 0]), axis=0))
