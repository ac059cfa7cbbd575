"""The slow motion of clusters: how fast k atoms leave a place where they rest, and how long they live there.

    d(δθ)/dt = J δθ ,   J the derivative of the atoms' law in tangent coordinates

J's eigenvalues are of the size of e^{−β(1 − cos δ)}, δ the angle between neighbours: metastable states live for the
inverse of the largest. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794) show such states, without rates.
"""

from __future__ import annotations

import numpy as np

from meanfield.atoms import AtomLaw, Atoms
from solvers.mesh import Floats

STEP = 2e-3  # of the angle 1/(1 + β) over which the kernel changes: errors of fourth order and of rounding near 1e-11
NOISE = 1e-9  # of the largest rate: what is smaller may be zero, as for a rotation of all


def clusters_equally_spaced(count: int, dimension: int) -> Atoms:
    """k equal atoms of mass 1/k, 2π/k apart on a great circle of S^{d−1}: they rest, by symmetry.

    Raises ValueError for fewer than one atom or dimension < 2.
    """
    if count < 1 or dimension < 2:
        raise ValueError(f"{count} clusters in R^{dimension}: expected at least 1, in at least 2 dimensions")
    angles = 2 * np.pi * np.arange(count) / count
    positions = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ np.eye(2, dimension)
    return Atoms(positions, np.full(count, 1.0 / count))


def slow_rates(law: AtomLaw, atoms: Atoms, time: float = 0.0) -> Floats:
    """Eigenvalues of J, (k(d−1),), per unit time, largest real part first; complex where they come in pairs.

    Differences of fourth order of velocities that are right relative to their own size, so that rates e^{−cβ} are
    right relative to the largest. The atoms should rest; where they move the rates are those of that moment.
    """
    rates = np.linalg.eigvals(_jacobian(law, atoms, time))
    return np.asarray(rates[np.lexsort((rates.imag, -rates.real))])


def lifetimes(rates: Floats) -> Floats:
    """1/λ of the unstable ones among ``rates``, shortest first; none for a stable state."""
    unstable = rates.real[rates.real > NOISE * np.abs(rates).max(initial=0.0)]
    return np.asarray(np.sort(1 / unstable))


def equally_spaced_rates(count: int, beta: float, normalization: str = "softmax") -> tuple[Floats, Floats]:
    """Rates (k,) of k equal clusters 2π/k apart on a great circle, Q = K = V = I: along it, and across it (d ≥ 3).

        along    λ_p = Σ_j g'(δ_j)(cos pδ_j − 1)/Z ,   g' = (cos δ − β sin² δ) w
        across   λ_p = Σ_j w(δ_j)(cos pδ_j − cos δ_j)/Z

    for the Fourier modes p = 0 … k − 1, δ_j = 2πj/k, w = e^{β(cos δ − 1)}, Z = Σ_j w(δ_j); unnormalized Z = k e^{−β}.
    J is circulant: θ̇_i = Σ_j sin(θ_j − θ_i) w/Z rests by symmetry, so that changes of Z do not count, and a height
    z_i over the circle moves by ż_i = Σ_j w (z_j − z_i cos δ_ij)/Z. The rates across are taken d − 2 times.
    """
    steps = np.arange(count)
    delta = 2 * np.pi * steps / count
    weights = np.exp(-2 * beta * np.sin(delta / 2) ** 2)
    size = weights.sum() if normalization == "softmax" else count * np.exp(-beta)
    modes = 2 * np.pi * (np.outer(steps, steps) % count) / count  # pδ_j
    slopes = (np.cos(delta) - beta * np.sin(delta) ** 2) * weights
    along = -2 * np.sin(modes / 2) ** 2 @ slopes / size
    across = (np.cos(modes) - np.cos(delta)) @ weights / size
    return np.asarray(along), np.asarray(across)


def _jacobian(law: AtomLaw, atoms: Atoms, time: float) -> Floats:
    """J (k(d−1), k(d−1)): column (j, b) is the change of all velocities where atom j moves along its tangent b."""
    k, d = atoms.positions.shape
    frames = _tangent_frames(atoms.positions)
    step = STEP / (1 + abs(law.particles.beta))
    moves = np.zeros((k, d - 1, k, d))
    for j in range(k):
        moves[j, :, j] = frames[j]
    moves = moves.reshape(-1, k, d)

    def moved(angle: float) -> Floats:
        positions = np.where(
            np.any(moves != 0, axis=2, keepdims=True),
            np.cos(angle) * atoms.positions + np.sin(angle) * moves,
            atoms.positions,
        )
        return law.velocities(time, positions, atoms.masses)

    near, far = (moved(step * m) - moved(-step * m) for m in (1, 2))
    slopes = (8 * near - far) / (12 * step)
    return np.asarray(np.einsum("cid,ibd->ibc", slopes, frames).reshape(len(moves), len(moves)))


def _tangent_frames(positions: Floats) -> Floats:
    """(k, d − 1, d) orthonormal tangent vectors at each position."""
    return np.stack([np.linalg.svd(x[None])[2][1:] for x in positions])
