"""Embeddings of tokens in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from meanfield.sections import initial as sections
from solvers.io.arrays import read_array
from solvers.mesh.mesh import Floats


def embeddings_of(kind: sections.Tokens, d: int) -> Floats:
    """Return the embeddings (n, d) of tokens in the file that a section [initial] names.

    Raises ValueError or OSError for a file without embeddings of dimension d.
    """
    try:
        embeddings = read_array(Path(kind.file), kind.dataset)
    except FileNotFoundError:
        raise ValueError(f"initial.file = {kind.file}: no such file") from None
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"initial.file = {kind.file}: cannot be read as an array of numbers: {error}") from None
    if embeddings.ndim != 2 or embeddings.shape[1] != d or not len(embeddings):
        raise ValueError(f"initial.file = {kind.file}: expected an array (n, {d}), got {embeddings.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(embeddings, axis=1)
    if not (np.isfinite(lengths).all() and lengths.min() > 0):
        raise ValueError(f"initial.file = {kind.file}: expected finite vectors that are not zero")
    return embeddings
