"""Mutual information of an input and a noisy representation, between two bounds.

T = t(X) + σZ with Z standard normal, so that p(T|x) is known. Over m examples (Poole and others, 1905.06922,
equations 10 and 13):

    lower   E log p(t_i|x_i) / ((1/m) Σ_j p(t_i|x_j))               at most log m
    upper   E log p(t_i|x_i) / ((1/(m−1)) Σ_{j≠i} p(t_i|x_j))

In expectation over examples the mutual information I(X; T), in nats, lies between them. With labels,

    I(T; Y) ≥ H(Y) − E log 1/q(y_i|t_i) ,     q(y|t_i) = Σ_{j≠i, y_j=y} p(t_i|x_j) / Σ_{j≠i} p(t_i|x_j)

for any distribution q that is independent of example i (Barber and Agakov 2003).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from solvers.mesh.mesh import Floats

UNIFORM_SHARE = 1e-3  # of q, so that a label of vanishing density costs at most log(1000·classes)


def information_of_input(means: Floats, noise: float, seed: int = 0) -> tuple[float, float]:
    """Lower and upper bound of I(X; T), nats, for t(x) (m, d) and σ = ``noise``."""
    logs = _log_densities(means, noise, seed)
    m = len(logs)
    diagonal = np.diag(logs).copy()
    lower = diagonal - (logsumexp(logs, axis=1) - np.log(m))
    np.fill_diagonal(logs, -np.inf)
    return float(lower.mean()), float((diagonal - (logsumexp(logs, axis=1) - np.log(m - 1))).mean())


def information_of_labels(means: Floats, labels: NDArray[np.integer], noise: float, seed: int = 0) -> float:
    """A lower bound of I(T; Y), nats, for t(x) (m, d), labels (m,) and σ = ``noise``."""
    logs = _log_densities(means, noise, seed)
    np.fill_diagonal(logs, -np.inf)
    total = logsumexp(logs, axis=1)
    same = logsumexp(np.where(labels[:, None] == labels, logs, -np.inf), axis=1)
    classes, counts = np.unique(labels, return_counts=True)
    share = counts / len(labels)
    q = (1 - UNIFORM_SHARE) * np.exp(same - total) + UNIFORM_SHARE / len(classes)
    return float(-(share * np.log(share)).sum() + np.log(q).mean())


def _log_densities(means: Floats, noise: float, seed: int) -> Floats:
    """(m, m) log p(t_i|x_j) up to a constant."""
    drawn = means + noise * np.random.default_rng(seed).standard_normal(means.shape)
    squares = (drawn**2).sum(axis=1)[:, None] - 2 * drawn @ means.T + (means**2).sum(axis=1)
    return np.asarray(-squares / (2 * noise**2))
