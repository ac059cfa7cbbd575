"""Regular polygons of equal tokens on the circle, an equilibrium: formulas used by several entries."""

from __future__ import annotations

import numpy as np


def rate(count: int, beta: float, mode: int) -> float:
    """Return the growth rate of a mode, for f(φ) = e^{β cos φ} sin φ.

    The rate is −Σ_j f′(2πj/k)(1 − cos(2πmj/k))/Σ_j e^{β cos(2πj/k)}.
    """
    angles = 2 * np.pi * np.arange(count) / count
    slope = np.exp(beta * np.cos(angles)) * (np.cos(angles) - beta * np.sin(angles) ** 2)
    return float(-(slope @ (1 - np.cos(mode * angles))) / np.exp(beta * np.cos(angles)).sum())


def self_attention(count: int, beta: float) -> float:
    """Return a = Σ_j e^{β cos φ_j} cos φ_j/Σ_j e^{β cos φ_j}: the attention of a token is a times the token."""
    angles = 2 * np.pi * np.arange(count) / count
    weights = np.exp(beta * np.cos(angles))
    return float(weights @ np.cos(angles) / weights.sum())
