"""Where tokens start as particles: unit vectors (n, d)."""

from __future__ import annotations

import numpy as np

from solvers.mesh import Floats


def tokens_equiangular(count: int, dimension: int, cosine: float = 0.0) -> Floats:
    """(count, dimension) unit vectors, any two of which have the same cosine g: x_i = √(1 − g) e_i + b Σ_j e_j.

    Raises ValueError unless count ≤ dimension and −1/(count − 1) ≤ g ≤ 1: else there are no such vectors of this form.
    """
    if count > dimension:
        raise ValueError(f"count = {count}: expected at most dimension = {dimension} equiangular tokens")
    if cosine * (count - 1) < -1.0 or cosine > 1.0:
        raise ValueError(f"cosine = {cosine}: expected −1/(count − 1) to 1 for {count} tokens")
    own = np.sqrt(1.0 - cosine)
    common = (np.sqrt(1.0 - cosine + count * cosine) - own) / count
    return np.asarray(own * np.eye(count, dimension) + common * (np.arange(dimension) < count))


def tokens_uniform(count: int, dimension: int, seed: int = 0) -> Floats:
    """(count, dimension) independent unit vectors, uniform on the sphere."""
    vectors = np.random.default_rng(seed).standard_normal((count, dimension))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1)[:, None])
