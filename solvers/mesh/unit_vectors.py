"""Directions of vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .mesh import Floats


def unit_vectors(vectors: ArrayLike) -> Floats:
    """x/|x| of vectors x (..., d), in double precision; a vector 0 has no direction, and stays 0."""
    x = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.where(lengths > 0, lengths, 1.0))
