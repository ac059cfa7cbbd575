"""The slow motion of clusters: rates at which k equal ones, equally spaced, leave that state, and its lifetimes.

    d(δθ)/dt = J δθ ,   J the derivative of the atoms' velocity in tangent coordinates

J's eigenvalues are of the size of e^{−β(1 − cos δ)}, δ the angle between neighbors: metastable states live for the
inverse of the largest. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794) show such states, without rates.
"""

from __future__ import annotations

import numpy as np

from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats

NOISE = 1e-9  # of the largest rate: what is smaller may be zero, as for a rotation of all


def lifetimes(rates: Floats) -> Floats:
    """1/λ of the unstable ones among ``rates``, shortest first; none for a stable state."""
    unstable = rates.real[rates.real > NOISE * np.abs(rates).max(initial=0.0)]
    return np.asarray(np.sort(1 / unstable))


def equally_spaced_rates(count: int, beta: float, normalization: str = "softmax") -> tuple[Floats, Floats]:
    """Rates (k,) of k equal clusters 2π/k apart on a great circle, Q = K = V = I: along it, and across it (d ≥ 3).

        along    λ_p = Σ_j g'(δ_j)(cos pδ_j − 1)/Z ,   g' = (cos δ − β sin² δ) w
        across   λ_p = Σ_j w(δ_j)(cos pδ_j − cos δ_j)/Z

    for the Fourier modes p = 0 … k − 1, δ_j = 2πj/k, w = e^{β(cos δ − 1)}, Z = Σ_j w(δ_j); unnormalized Z = k e^{−β}.
    J is circulant: θ̇_i = Σ_j sin(θ_j − θ_i) w/Z is zero by symmetry, so that changes of Z do not count, and a height
    z_i over the circle moves by ż_i = Σ_j w (z_j − z_i cos δ_ij)/Z. The rates across are taken d − 2 times. Raises
    ArgumentError for a normalization that is neither of the two.
    """
    steps = np.arange(count)
    delta = 2 * np.pi * steps / count
    weights = np.exp(-2 * beta * np.sin(delta / 2) ** 2)
    is_relative = normalization_of(normalization, two_sided=False).is_relative
    size = weights.sum() if is_relative else count * np.exp(-beta)
    modes = 2 * np.pi * (np.outer(steps, steps) % count) / count  # pδ_j
    slopes = (np.cos(delta) - beta * np.sin(delta) ** 2) * weights
    along = -2 * np.sin(modes / 2) ** 2 @ slopes / size
    across = (np.cos(modes) - np.cos(delta)) @ weights / size
    return np.asarray(along), np.asarray(across)
