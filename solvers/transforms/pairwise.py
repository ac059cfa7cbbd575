"""Sums over all pairs of points with the kernel e^{⟨b,y⟩}, exact to rounding for any points in any dimension.

The cost is targets · sources · (d + components), the memory targets + sources. On a mesh,
:mod:`solvers.transforms.zonal` computes these sums by a transform.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..backends import backend_for
from ..mesh.checks import as_floats

Number = TypeVar("Number", np.float32, np.float64)
_FEW = 64  # pairs below which padding to a tile would dominate the cost


def exponential_sums(
    targets: NDArray[Number],
    sources: NDArray[Number],
    weights: NDArray[Number],
    *,
    log_weights: NDArray[Number] | None = None,
    vectors: NDArray[Number] | None = None,
    log_scale: NDArray[Number] | None = None,
    causal: bool = False,
) -> tuple[NDArray[Number], NDArray[Number], NDArray[Number]]:
    """Return the sums of e^{⟨b, y⟩} over all pairs of points, scaled against overflow.

    The sums are Z_i = Σ_j w_j e^{a_j + ⟨b_i, y_j⟩ − s_i} and N_i = Σ_j w_j v_j e^{a_j + ⟨b_i, y_j⟩ − s_i}; N_i/Z_i is a
    softmax average. They are exact to rounding in any dimension. The cost is n·m·(d + c). The result is bitwise equal
    for any number of cores.

    Parameters
    ----------
    targets : (n, d) array
        Vectors b. The sums are computed in this format, float32 or float64; integers become float64 in all arrays.
    sources : (m, d) array
        Points y.
    weights : (m,) array
        Weights w of any sign. Sources of weight 0 are ignored.
    log_weights : (m,) array, optional
        Logarithms a, for weights w_j e^{a_j} beyond the floating-point range; 0 if absent.
    vectors : (m, c) array, optional
        Vectors v; y if absent.
    log_scale : (n,) array, optional
        Exponents s. If absent, s_i is the largest exponent a_j + ⟨b_i, y_j⟩ of target i, and −∞ without sources.
        A given s far below the exponents makes infinite sums.
    causal : bool, optional
        Whether target i includes the sources j ≤ i only; requires n = m.

    Returns
    -------
    log_scale : (n,) array
        The exponents s.
    normalizers : (n,) array
        The sums Z.
    sums : (n, c) array
        The sums N.

    Raises
    ------
    TypeError
        For arrays of other numbers.
    ValueError
        For inconsistent shapes and for masked arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import exponential_sums
    >>> x = np.random.default_rng(0).normal(size=(20, 3))
    >>> log_scale, Z, N = exponential_sums(400.0 * x, x, np.ones(20))  # e^{400⟨x, y⟩} alone would overflow
    >>> bool(np.isfinite(Z).all())
    True
    >>> bool(np.allclose(N / Z[:, None], x[(x @ x.T).argmax(axis=1)]))  # softmax selects the largest ⟨x, y⟩
    True
    """
    targets, sources, weights = (
        as_floats(name, array) for name, array in (("targets", targets), ("sources", sources), ("weights", weights))
    )
    log_weights, vectors, log_scale = (
        None if array is None else as_floats(name, array)
        for name, array in (("log_weights", log_weights), ("vectors", vectors), ("log_scale", log_scale))
    )
    _check(targets, sources, weights, log_weights, vectors, log_scale, causal)
    backend = backend_for(targets)
    number = targets.dtype
    values = sources if vectors is None else vectors
    if 0 < len(targets) * len(sources) <= _FEW:
        return _sums_over_few_pairs(targets, sources, weights, log_weights, values, log_scale, causal)
    lanes = backend.PAIR_BYTES // number.itemsize

    tiles = _pack_tiles(targets, lanes, number)
    padded = _append_log_weights(sources, weights, log_weights, backend.PAIR_SOURCES, number)
    groups = _pack_groups(values, weights, backend.PAIR_SOURCES, number)
    scale = backend.empty((len(tiles), lanes), number)
    scale[...] = np.finfo(number).min if log_scale is None else 0.0
    if log_scale is not None:
        scale.reshape(-1)[: len(targets)] = log_scale
    sums = backend.empty((len(tiles), groups.shape[1], lanes), number)
    work = len(targets) * len(sources) // 8  # eight pairs cost about as much as a cell
    backend.launch(backend.exponential_sums, work, tiles, padded, groups, log_scale is None, causal, scale, sums)

    rows = sums.transpose(0, 2, 1).reshape(-1, groups.shape[1])[: len(targets)]
    scale = scale.reshape(-1)[: len(targets)]
    scale = backend.xp.where(scale == np.finfo(number).min, -np.inf, scale)
    return scale, rows[:, 0], rows[:, 1:]


def _sums_over_few_pairs(
    targets: NDArray[Number],
    sources: NDArray[Number],
    weights: NDArray[Number],
    log_weights: NDArray[Number] | None,
    values: NDArray[Number],
    log_scale: NDArray[Number] | None,
    causal: bool,
) -> tuple[NDArray[Number], NDArray[Number], NDArray[Number]]:
    """Return s (n,), Z (n,) and N (n, c), sums of exponentials over few pairs, from the matrix of all exponents.

    With targets b, sources y, weights w, log-weights a and values v, the sums are Z_i = Σ_j w_j e^{a_j + ⟨b_i,
    y_j⟩ − s_i} and N_i = Σ_j w_j v_j e^{a_j + ⟨b_i, y_j⟩ − s_i}. If ``log_scale`` is None, s_i is the largest exponent.
    If ``causal``, target i includes the sources j ≤ i only. The order of summation is independent of the number of
    cores.
    """
    xp = backend_for(targets).xp
    offsets = xp.where(weights != 0, 0.0 if log_weights is None else log_weights, -np.inf).astype(targets.dtype)
    exponents = xp.einsum("id,jd->ij", targets, sources) + offsets
    if causal:
        order = xp.arange(len(targets))
        exponents = xp.where(order[:, None] < order, -np.inf, exponents)
    if log_scale is None:
        log_scale = exponents.max(axis=1)
    with np.errstate(over="ignore"):  # a log_scale far below the exponents makes infinite sums, as in the tiles
        kernel = np.exp(exponents - xp.where(log_scale == -np.inf, 0.0, log_scale)[:, None]) * weights
    return log_scale, kernel.sum(axis=1), xp.einsum("ij,jc->ic", kernel, values)


def _pack_tiles(targets: NDArray[Number], lanes: int, number: np.dtype[Number]) -> NDArray[Number]:
    """Pack targets b (n, d) into tiles (tiles, d + 1, lanes) of ``lanes`` targets side by side, padded with zeros.

    Row d of each tile is 1, the factor of a source's log-weight in the exponent of a pair, see
    :func:`_append_log_weights`.
    """
    n, d = targets.shape
    padded = backend_for(targets).zeros((-(-n // lanes) * lanes, d + 1), number)
    padded[:n, :d], padded[:, d] = targets, 1.0
    return padded.reshape(-1, lanes, d + 1).transpose(0, 2, 1).copy()


def _append_log_weights(
    sources: NDArray[Number],
    weights: NDArray[Number],
    log_weights: NDArray[Number] | None,
    group: int,
    number: np.dtype[Number],
) -> NDArray[Number]:
    """Append its log-weight to each source: return (groups · group, d + 1), padded to groups of ``group`` sources.

    The log-weight is −∞ for sources of weight 0 and for padding, whose exponentials are then 0. The log-weight is 0 for
    other sources if ``log_weights`` is None.
    """
    m, d = sources.shape
    backend = backend_for(sources)
    padded: NDArray[Number] = backend.zeros((-(-m // group) * group, d + 1), number)
    padded[:m, :d], padded[:, d] = sources, -np.inf
    padded[:m, d] = backend.xp.where(weights != 0, 0.0 if log_weights is None else log_weights, -np.inf)
    return padded


def _pack_groups(
    values: NDArray[Number], weights: NDArray[Number], group: int, number: np.dtype[Number]
) -> NDArray[Number]:
    """Pack the weights w (m,) and the products w v with values v (m, c) by groups of ``group`` sources.

    Returns (groups, 1 + c, group), padded with zeros.
    """
    m, components = values.shape
    padded = backend_for(values).zeros((-(-m // group) * group, 1 + components), number)
    padded[:m, 0] = weights
    np.multiply(values, weights[:, None], out=padded[:m, 1:], casting="same_kind")
    return padded.reshape(-1, group, padded.shape[1]).transpose(0, 2, 1).copy()


def _check(
    targets: NDArray[Number],
    sources: NDArray[Number],
    weights: NDArray[Number],
    log_weights: NDArray[Number] | None,
    vectors: NDArray[Number] | None,
    log_scale: NDArray[Number] | None,
    causal: bool,
) -> None:
    """Raise ValueError for arrays whose shapes do not fit each other."""
    if targets.ndim != 2 or sources.ndim != 2 or targets.shape[1] != sources.shape[1]:
        raise ValueError(f"targets {targets.shape} and sources {sources.shape}: expected (n, d) and (m, d)")
    n, m = len(targets), len(sources)
    if vectors is not None and (vectors.ndim != 2 or len(vectors) != m):
        raise ValueError(f"vectors {vectors.shape}: expected ({m}, components), one row for each source")
    for name, array, count in (
        ("weights", weights, m), ("log_weights", log_weights, m), ("log_scale", log_scale, n),
    ):  # fmt: skip
        if array is not None and array.shape != (count,):
            raise ValueError(f"{name} {array.shape}: expected ({count},)")
    if causal and n != m:
        raise ValueError(f"causal sums: expected as many sources as targets, got {m} and {n}")
