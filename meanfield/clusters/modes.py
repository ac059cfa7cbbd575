"""Modes of the kernel density of weighted tokens on S^{d−1}: peaks of the potential of attention with Q = K = I.

    f(x) = Σ_j m_j e^{β⟨x, x_j⟩}          bandwidth 1/√β

Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794) have Z = f. For many uniform random tokens on the circle the
expected number is :func:`meanfield.model.linear_stability.expected_clusters_from_tokens`, about √(3β/2).
"""

from __future__ import annotations

import numpy as np

from meanfield.clusters.parts import between_parts
from solvers.mesh.mesh import Floats
from solvers.transforms.exponential import exponential_degree, exponential_multipliers
from solvers.transforms.pairwise import exponential_sums

FLAT = 1e-12  # relative to the mean density: smaller variations are no modes
LOST = 1e-9  # relative to the maximum: below, a transform keeps no digits of f
NODES = 16  # grid points for each degree: nearer extrema are not resolved
MODE_DISTANCE = 0.1  # in bandwidths: limits of the ascent this near are one mode


def count_modes(directions: Floats, masses: Floats, beta: float, starts: int = 512, rounds: int = 1000) -> int:
    """Return the number of modes, local maxima of the kernel density f of tokens, for unit vectors (n, d), d ≥ 2.

    f(x) = Σ_j m_j e^{β⟨x, x_j⟩} with masses m (n,); the number is 0 where f is constant. On the circle modes are
    counted by sign changes of f' on a grid, where f is above LOST of its maximum. For d > 2 they are the limits of the
    ascent x ← Σ m x_j e^{β⟨x,x_j⟩}/|…| (mean shift) from ``starts`` tokens, evenly through the list, in at most
    ``rounds`` rounds: modes that no ascent reaches are missed.
    """
    if directions.shape[1] == 2:
        return _modes_on_circle(directions, masses / masses.sum(), beta)
    if beta == 0 and np.linalg.norm(masses @ directions) <= FLAT * masses.sum():
        return 0  # the limit β → 0 of f − ∫f is ∝ ⟨x, Σ m x_j⟩
    return _modes_by_ascent(directions, masses, beta, starts, rounds)


def _modes_on_circle(directions: Floats, masses: Floats, beta: float) -> int:
    """Return the number of modes of the kernel density e^{β⟨x,y⟩} of masses on the circle, by its Fourier series."""
    degree = max(exponential_degree(2, beta), 1)
    multipliers = exponential_multipliers(2, beta, degree + 1) / exponential_multipliers(2, beta, 1)[0]
    phase = directions[:, 0] - 1j * directions[:, 1]
    power, coefficients = masses.astype(complex), np.zeros(degree + 1, dtype=complex)
    for l in range(1, degree + 1):
        power = power * phase
        coefficients[l] = power.sum() * multipliers[l] if beta else (power.sum() if l == 1 else 0.0)
    if np.abs(coefficients).max() <= FLAT:
        return 0
    coefficients[0] = 1.0
    density = np.fft.irfft(coefficients, NODES * degree)
    rising = np.fft.irfft(1j * np.arange(degree + 1) * coefficients, NODES * degree) > 0
    return int((rising & ~np.roll(rising, -1) & (density > LOST * density.max())).sum())


def _modes_by_ascent(directions: Floats, masses: Floats, beta: float, starts: int, rounds: int) -> int:
    """Return the number of limits of mean-shift iterations from some of the points: a lower bound of the modes."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    some = np.unique(np.linspace(0, len(directions) - 1, min(starts, len(directions))).astype(int))
    places, same = directions[some], MODE_DISTANCE / np.sqrt(max(beta, 1.0))
    for _ in range(rounds):
        between_parts()
        _, _, means = exponential_sums(places * beta, directions, masses)
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        moved = np.divide(means, lengths, out=places.copy(), where=lengths > FLAT * masses.sum())
        step, places = np.abs(moved - places).max(), moved
        if step < FLAT:
            break
    return 1 if len(places) == 1 else int(fcluster(linkage(pdist(places), "single"), same, "distance").max())
