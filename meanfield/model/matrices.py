"""Matrices of attention: random ensembles, and trained matrices from a file.

Entries are scaled such that the norm stays bounded for large d. Ensembles as in 2312.10794, version 4, section 9:

    ginibre      independent normal entries of variance 1/d
    wigner       symmetric, independent ±1/√d above the diagonal and on it
    goe          Gaussian orthogonal: (G + Gᵀ)/√2 of a Ginibre G
    orthogonal   uniform (Haar) among the rotations and reflections
    positive     GGᵀ of a Ginibre G, positive semidefinite (Wishart)
    negative     −GGᵀ
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from solvers.io.arrays import read_arrays
from solvers.mesh.mesh import Floats

_PARTNERS = {"query": "key", "key": "query", "value": "out", "out": "value"}  # the other factor of its product


def random_matrix(ensemble: str, dimension: int, seed: int) -> Floats:
    """Return a random (d, d) matrix of an ensemble such as "ginibre" or "orthogonal", drawn by ``seed``.

    Raises KeyError for another name.
    """
    return ENSEMBLES[ensemble](np.random.default_rng(seed), dimension)


def matrices_of_layers(path: str | Path, dimension: int) -> dict[str, Floats]:
    """Return the attention matrices of all layers in a .npz or .h5 file, by name: query, key, value, out, weight.

    query, key and value are (layers, heads, d, d), the weights of the heads (layers, heads). Matrices that the file
    lacks are left out. Heads are summed with their weights, which a file of several heads must have, (heads,) or
    (layers, heads); a single head has the weight 1. Factors need less memory: query and key (layers, heads, d_head, d),
    and with ``out`` (layers, heads, d, d_head) also value (layers, heads, d_head, d), where V = out·value. Raises
    ValueError for a file without any matrix, for several heads without weights, or for shapes that do not fit one
    another or the dimension.
    """
    found, arrays = {}, _arrays(Path(path))
    weight = arrays.pop("weight", None)
    for name, array in arrays.items():
        matrices = array[:, None] if array.ndim == 3 else array
        if matrices.ndim != 4 or not matrices.size or matrices.shape[2 if name == "out" else 3] != dimension:
            raise _of_shape(path, name, array.shape, dimension)
        if not np.isfinite(matrices).all():
            raise ValueError(f"{path}: {name} is not finite")
        found[name] = matrices
    for name, matrices in found.items():
        rows = matrices.shape[3 if name == "out" else 2]
        partner = found.get(_PARTNERS[name])
        if rows != dimension and (partner is None or partner.shape[3 if name == "value" else 2] != rows):
            raise _of_shape(path, name, matrices.shape, dimension)
    if not found:
        raise ValueError(f"{path}: expected arrays query, key or value, found none of them")
    if len({matrices.shape[:2] for matrices in found.values()}) > 1:
        shapes = ", ".join(f"{name} {matrices.shape[:2]}" for name, matrices in found.items())
        raise ValueError(f"{path}: expected the same number of layers and heads in each array, got {shapes}")
    layers, heads = next(iter(found.values())).shape[:2]
    return {**found, "weight": _weights(path, weight, layers, heads)}


def _weights(path: str | Path, weight: Floats | None, layers: int, heads: int) -> Floats:
    """Return the weights (layers, heads) with which the heads of a file of matrices are summed.

    A single head without the array ``weight`` has the weight 1. Raises ValueError for several heads without this array:
    earlier versions gave each the weight 1/heads.
    """
    if weight is None:
        if heads > 1:
            means = f"1 for the sum of heads, {1 / heads:.6g} for their mean, which earlier versions took"
            raise ValueError(f"{path}: {heads} heads without weights: expected an array weight ({heads},), {means}")
        return np.ones((layers, 1))
    if weight.shape not in ((heads,), (layers, heads)):
        raise ValueError(f"{path}: weight has shape {weight.shape}: expected ({heads},) or ({layers}, {heads})")
    if not np.isfinite(weight).all():
        raise ValueError(f"{path}: weight is not finite")
    return np.broadcast_to(weight, (layers, heads))


def _arrays(path: Path) -> dict[str, Floats]:
    """Return the arrays of a file of matrices; raise ValueError for a file that cannot be read."""
    names = (*_PARTNERS, "weight")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if path.suffix not in (".npz", ".h5", ".hdf5"):
        raise ValueError(f"{path}: expected a file that ends in .npz or .h5")
    try:
        return read_arrays(path, names)
    except ValueError as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None


def _of_shape(path: str | Path, name: str, shape: tuple[int, ...], d: int) -> ValueError:
    """Return the ValueError for an array of matrices of a wrong shape."""
    return ValueError(f"{path}: {name} has shape {shape}: expected (layers, {d}, {d}) or (layers, heads, {d}, {d})")


def norm_of_product(query: float | Floats, key: float | Floats) -> float:
    """Return the spectral norm ‖QᵀK‖ of two matrices (rows, d), or of numbers that multiply the identity.

    The norm is that of R_Q R_Kᵀ, with the factors R of QR decompositions of Qᵀ and Kᵀ. Rows that are zero in either
    matrix are left out, since a trained head has only d_head nonzero rows.
    """
    d = max(np.atleast_2d(matrix).shape[1] for matrix in (query, key))
    query, key = (matrix * np.eye(d) if np.ndim(matrix) == 0 else np.asarray(matrix) for matrix in (query, key))
    used = query.any(axis=1) & key.any(axis=1)
    query, key = (np.linalg.qr(matrix[used].T)[1] for matrix in (query, key))
    return float(np.linalg.norm(query @ key.T, 2)) if used.any() else 0.0


def _ginibre(random: np.random.Generator, d: int) -> Floats:
    """Return a matrix (d, d) of independent Gaussian entries of variance 1/d."""
    return np.asarray(random.standard_normal((d, d)) / np.sqrt(d))


def _wigner(random: np.random.Generator, d: int) -> Floats:
    """Return a symmetric matrix (d, d) of random entries ±1/√d."""
    upper = np.triu(random.choice([-1.0, 1.0], (d, d))) / np.sqrt(d)
    return np.asarray(upper + np.triu(upper, 1).T)


def _goe(random: np.random.Generator, d: int) -> Floats:
    """Return a symmetric Gaussian matrix (d, d) of the Gaussian orthogonal ensemble."""
    matrix = _ginibre(random, d)
    return np.asarray((matrix + matrix.T) / np.sqrt(2))


def _orthogonal(random: np.random.Generator, d: int) -> Floats:
    """Return a uniformly distributed orthogonal matrix (d, d)."""
    q, r = np.linalg.qr(random.standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)))  # the signs make the distribution uniform


def _positive(random: np.random.Generator, d: int) -> Floats:
    """Return a random positive semidefinite matrix GGᵀ (d, d), where G has Gaussian entries of variance 1/d."""
    matrix = _ginibre(random, d)
    return np.asarray(matrix @ matrix.T)


ENSEMBLES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "ginibre": _ginibre,
    "wigner": _wigner,
    "goe": _goe,
    "orthogonal": _orthogonal,
    "positive": _positive,
    "negative": lambda random, d: -_positive(random, d),
}
