"""Regular polygons of equal tokens on the circle, an equilibrium: formulas used by several entries."""

from __future__ import annotations

import numpy as np


def rate(count: int, beta: float, mode: int) -> float:
    """Return the growth rate of perturbations ∝ cos(mφ_j) of a regular polygon of k tokens under softmax attention.

    The rate is −Σ_j f′(φ_j)(1 − cos mφ_j)/Σ_j e^{β cos φ_j} with f(φ) = e^{β cos φ} sin φ and φ_j = 2πj/k, for k =
    ``count`` and m = ``mode``.
    """
    angles = 2 * np.pi * np.arange(count) / count
    slope = np.exp(beta * np.cos(angles)) * (np.cos(angles) - beta * np.sin(angles) ** 2)
    return float(-(slope @ (1 - np.cos(mode * angles))) / np.exp(beta * np.cos(angles)).sum())


def self_attention(count: int, beta: float) -> float:
    """Return the factor a of the attention A(x) = a x of each token x of a regular polygon, with V = I.

    a = Σ_j e^{β cos φ_j} cos φ_j/Σ_j e^{β cos φ_j} with φ_j = 2πj/``count``.
    """
    angles = 2 * np.pi * np.arange(count) / count
    weights = np.exp(beta * np.cos(angles))
    return float(weights @ np.cos(angles) / weights.sum())
