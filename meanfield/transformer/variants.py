"""Variants of a trained Transformer's weights: as trained, random of the same size, or rotated at random.

    random    Gaussian entries, scaled to the Frobenius norm of each trained matrix
    rotated   UΣVᵀ with the trained singular values Σ, and random orthonormal U and V (uniform, by QR of Gaussians)

Either replaces W_Q, W_K, W_V and W_O of each head; biases, gains and network stay trained. What only such a model does
as well, training has not taught it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.mesh.mesh import Floats

MATRICES = ("query", "key", "value", "out")
Variant = Callable[[Floats, np.random.Generator], Floats]


def with_weights(arrays: dict[str, Floats], kind: str, seed: int, layer: int) -> dict[str, Floats]:
    """Arrays of a layer with the heads' matrices of a variant; the same for the same seed and layer.

    Raises KeyError for another kind than those of WEIGHTS.
    """
    if kind == "trained":
        return arrays
    random, variant = np.random.default_rng((seed, layer)), WEIGHTS[kind]
    return arrays | {name: np.stack([variant(matrix, random) for matrix in arrays[name]]) for name in MATRICES}


def _random(matrix: Floats, random: np.random.Generator) -> Floats:
    drawn = random.standard_normal(matrix.shape)
    return np.asarray(drawn * (np.linalg.norm(matrix) / np.linalg.norm(drawn)))


def _rotated(matrix: Floats, random: np.random.Generator) -> Floats:
    values = np.linalg.svd(matrix, compute_uv=False)
    left, right = (_frame(random, size, len(values)) for size in matrix.shape)
    return np.asarray((left * values) @ right.T)


def _frame(random: np.random.Generator, size: int, count: int) -> Floats:
    """(size, count) orthonormal columns, uniform."""
    q, r = np.linalg.qr(random.standard_normal((size, count)))
    return np.asarray(q * np.sign(np.diag(r)))


WEIGHTS: dict[str, Variant] = {"trained": lambda matrix, random: matrix, "random": _random, "rotated": _rotated}
