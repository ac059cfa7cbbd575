"""Distribution of z = ⟨x, y⟩ for two tokens x and y drawn at random, a measure of collapsed pairs.

P(z in bin) for bins of 3° of the angle arccos z from 180° to 3°, then between 1 − z = 1 − cos 3°, 1e-3, 1e-4, 1e-5,
1e-6 and 0. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794) plot P(z ≥ 1 − 1e-3) in their phase diagrams.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from meanfield.clusters.parts import between_parts
from solvers.backends import host_backend
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.harmonics import Harmonics

STEP = np.pi / 60  # 3°
FINE_ANGLES = np.arccos(1 - np.array([1e-3, 1e-4, 1e-5, 1e-6]))
ANGLES = np.concatenate([STEP * np.arange(60, 0, -1), FINE_ANGLES, [0.0]])  # (bins + 1,) from π to 0
EDGES = np.cos(ANGLES)  # (bins + 1,) of z, increasing
BINS = len(EDGES) - 1
CLOSE = 4  # number of the last bins, where z ≥ 1 − 1e-3
MAX_POINTS = 4096  # maximum number of points whose pairs are summed directly
MAX_CELLS = 384  # maximum number of cells of a sphere whose pairs are summed directly
BLOCK = 1_000_000  # pairs at a time, about a millisecond
NEGLIGIBLE = 1e-9  # total mass of the cells that are left out
TRACE = 1e-12  # mass of one cell that is left out
CUT = 10.0  # smoothing leaves e^{−CUT} of the highest degree: ripples are negligible


def close_pairs(pairs: Floats) -> Floats:
    """Return the probabilities (...) of ⟨x, y⟩ ≥ 1 − 1e-3 from distributions (..., bins) of ⟨x, y⟩ for two tokens."""
    return np.asarray(pairs[..., -CLOSE:].sum(axis=-1))


def pairs_of_points(points: Floats, masses: Floats, *, different: bool = True) -> Floats:
    """Return the probabilities (bins,) of z = ⟨x, y⟩ for x and y drawn from unit vectors (n, d) with masses (n,).

    different   whether x and y are never the same point, P(i, j) ∝ m_i m_j for i ≠ j, as in the phase diagrams of
                2312.10794

    All pairs are counted for n ≤ 4096. For larger n only pairs of 4096 points are counted, at equal steps through the
    list. A single point counts as a collapsed pair.
    """
    if len(points) > MAX_POINTS:
        chosen = np.arange(MAX_POINTS) * len(points) // MAX_POINTS
        points, masses = points[chosen], masses[chosen]
    host = host_backend()
    count, lanes, group = len(points), host.PAIR_BYTES // 8, host.PAIR_SOURCES
    x = np.zeros((-(-count // group) * group, points.shape[1]))
    weights = np.zeros(len(x))
    x[:count], weights[:count] = points, masses
    tiles, sums = np.ascontiguousarray(x.reshape(-1, lanes, x.shape[1]).swapaxes(1, 2)), np.zeros((2, BINS))
    together, filled = max(BLOCK // (lanes * count), 1), -(-count // lanes)
    for first in range(0, filled, together):
        between_parts()
        host.bin_pairs(x, tiles, first, min(first + together, filled), weights, EDGES, TABLE, sums)
    found = sums[0] if different else sums.sum(axis=0)
    if found.sum() == 0:
        found[-1] = 1.0
    return np.asarray(found / found.sum())


def _slot(z: Floats) -> np.ndarray:
    """Return the numbers of the slots that contain z, among SLOTS equal parts of [−1, 1], nondecreasing in z."""
    return np.clip((z + 1.0) * (SLOTS / 2), 0, SLOTS - 1).astype(np.int32)


def spectra(mesh: Mesh, transform: Harmonics, masses: Floats) -> Floats:
    """Return the mean square (rows, degrees) of the degree-l part of ρ/ρ̄, for densities ρ of masses (rows, cells).

    ρ̄ is the uniform density. The result is (∫ρ)² for degree 0. For degrees l > 0 it is computed from the deviation
    ρ/ρ̄ − 1. A row is independent of the other rows, and accurate for the smallest deviation.
    """
    found = transform.power(masses - mesh.volumes / mesh.volume)
    found[:, 0] = masses.sum(axis=1) ** 2
    return found


def resolved_degree(mesh: Mesh) -> int:
    """Return the highest degree of spherical harmonics that the cells of a sphere resolve."""
    return 2 * len(mesh.ring_cells)


def pairs_on_sphere(mesh: Mesh, masses: Floats, degrees: Floats) -> Floats:
    """Return the probabilities (rows, bins) of z = ⟨x, y⟩ for two tokens of densities on a sphere.

    The densities are given by masses (rows, cells), and by ``degrees``, their :func:`spectra` up to the resolved
    degree. Pairs of cells are summed if few cells hold all but 1e-9 of the mass, as after a collapse. Otherwise the
    result is a sum over degrees,

        P(z in [a, b]) = ½ Σ_l p_l (P_{l+1} − P_{l−1})|_a^b / (2l + 1) ,   p_l = mean square of the degree-l part of
        ρ/ρ̄

    with each token smoothed over about half a cell.
    """
    return np.stack([_pairs_on_sphere(mesh, *row) for row in zip(_shares(masses), degrees, strict=True)])


def _shares(masses: Floats) -> Floats:
    """Return masses (rows, cells), with negative ones set to zero, divided by their sum in each row."""
    shares = np.maximum(masses, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _pairs_on_sphere(mesh: Mesh, masses: Floats, degrees: Floats) -> Floats:
    """Return the probabilities (bins,) of ⟨x, y⟩ for two tokens, from the heaviest cells or by a sum over degrees."""
    # else the other cells hold more than NEGLIGIBLE
    if np.count_nonzero(masses > TRACE) <= MAX_CELLS + NEGLIGIBLE / TRACE:
        heaviest = np.flatnonzero(masses > TRACE)
        if len(heaviest) > MAX_CELLS:
            heaviest = heaviest[np.argpartition(-masses[heaviest], MAX_CELLS)[:MAX_CELLS]]
        if masses[heaviest].sum() >= 1 - NEGLIGIBLE:
            return pairs_of_points(mesh.centers[heaviest], masses[heaviest], different=False)
    parts = _degree_contributions(resolved_degree(mesh))
    found = np.maximum((parts * degrees[: parts.shape[1]]).sum(axis=1), 0.0)  # avoids the threads of BLAS
    return np.asarray(found / found.sum())


def pairs_on_circle(masses: Floats) -> Floats:
    """Return the probabilities (rows, bins) of z = ⟨x, y⟩ for two tokens of densities on a circle.

    The densities are given by masses (rows, cells). The density of the angle between two tokens is linear between the
    multiples of the cell width. The values at these multiples are the autocorrelation of the masses: a uniform density
    within each of two cells makes a hat function.
    """
    masses, cells = _shares(masses), masses.shape[1]
    width = 2 * np.pi / cells
    lags, lag, part = _lags(cells)
    spectrum = np.fft.rfft(masses)
    value = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, cells)[:, lags] * (2 / width)
    up_to = np.zeros_like(value)
    np.cumsum((value[:, 1:] + value[:, :-1]) * (width / 2), axis=1, out=up_to[:, 1:])
    nearest = value[:, lag]
    below = up_to[:, lag] + part * (nearest + part * (value[:, lag + 1] - nearest) / (2 * width))
    return np.asarray(np.maximum(below[:, :-1] - below[:, 1:], 0.0))


@lru_cache(maxsize=4)
def _lags(cells: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return arrays that locate the bin edges ANGLES among the multiples of the cell width on a circle.

    The arrays are the cells at all multiples from 0 to beyond π, and for each edge the number of the next lower
    multiple and the angle between that multiple and the edge.
    """
    width, last = 2 * np.pi / cells, cells // 2 + 1
    lag = np.minimum(ANGLES / width, last - 1).astype(np.intp)
    return np.arange(last + 1, dtype=np.intp) % cells, lag, ANGLES - lag * width


@lru_cache(maxsize=2)
def _degree_contributions(degree: int) -> Floats:
    """Return the contributions (bins, degree + 1) of each degree of a density to the probability of a bin of ⟨x, y⟩.

    The caller multiplies the contributions by the mean square of the degree-l part of the density, relative to the
    uniform one.
    """
    l = np.arange(degree + 1)
    legendre = np.ones((degree + 2, BINS + 1))
    legendre[1] = EDGES
    for k in range(1, degree + 1):
        legendre[k + 1] = ((2 * k + 1) * EDGES * legendre[k] - k * legendre[k - 1]) / (k + 1)
    below = np.concatenate([np.full((1, BINS + 1), -1.0), legendre[:-2]])  # P_{−1} = −1 at z = −1: ∫P₀ = z + 1
    parts: Floats = np.diff(legendre[1:] - below, axis=1).T / (2 * (2 * l + 1))
    return parts * np.exp(-CUT * l * (l + 1) / (degree * (degree + 1)))


SLOTS = 1 << 14
TABLE = np.searchsorted(_slot(EDGES[1:-1]), np.arange(SLOTS), side="right").astype(np.int8)  # the last bin in each slot
