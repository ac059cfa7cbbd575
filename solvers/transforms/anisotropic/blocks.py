"""Block-diagonal matrices with blocks of any sizes, applied in parallel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...backends import Backend, backend_for
from ...mesh.mesh import Floats
from ..ring_transforms import PRODUCTS


class BlockMatrix:
    """Block-diagonal matrix with rectangular ``blocks`` (rows, columns) of any sizes."""

    def __init__(self, blocks: Sequence[Floats], backend: Backend) -> None:
        rows, columns = (np.array([block.shape[axis] for block in blocks]) for axis in (0, 1))
        begins = np.concatenate([[0], np.cumsum(rows * columns)])[:-1]
        starts = [begin + width * np.arange(n) for begin, width, n in zip(begins, columns, rows, strict=True)]
        firsts = np.concatenate([[0], np.cumsum(columns)])[:-1]
        place = np.stack([np.concatenate(starts), np.repeat(firsts, rows), np.repeat(columns, rows)])
        self._blocks = backend.to_device(np.concatenate([np.ravel(block) for block in blocks]))
        self._place = backend.to_device(place.astype(np.int64))

    def apply(self, vectors: Floats) -> Floats:
        """Return the products (n, rows) of the block-diagonal matrix with each of ``vectors`` (n, columns)."""
        backend = backend_for(vectors)
        result: Floats = backend.empty((len(vectors), self._place.shape[1]))
        vectors = vectors.copy()  # contiguous rows, unlike the result of fancy indexing
        work = self._blocks.size * len(vectors) // PRODUCTS
        backend.launch(backend.apply_blocks, work, self._blocks, *self._place, vectors, result)
        return result
