"""Scaling of logits: entropy of attention and gradient of the softmax by dimension, with 1/√d and without.

    p = softmax(z) ,   z_j = ⟨q, k_j⟩ or ⟨q, k_j⟩/√d ,   q, k_j standard normal in R^d, n keys
    entropy H = −Σ p log p ,     gradient = ‖∂p/∂z‖ = ‖diag p − ppᵀ‖ (Frobenius)

With 1/√d the logits are nearly standard normal, and H → log n − ½ for many keys. Without it their variance is d, and
beyond d = 2 log n a few keys have all the weight (Derrida 1981): H stays bounded and the gradient vanishes.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import curve
from meanfield.transformer.experiments.statistics import describe
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.section import TrainingCase

DIMENSIONS = tuple(2**k for k in range(1, 11))
KEYS, QUERIES = 256, 256
SCALINGS = ("1/√d", "none")
MEASURES = {"entropy": "entropy of attention, nats", "gradient": "Frobenius norm of the softmax's Jacobian"}


def scaling(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE) -> Outcome:
    """Return entropy and gradient of softmax attention (scaling, dimension, seed), for logits with and without 1/√d.

    No network is trained, and ``case`` is not used.
    """
    found = np.array(
        [[[measure_softmax(d, scaled, seed) for seed in seeds] for d in DIMENSIONS] for scaled in (True, False)]
    )
    dims = ("scaling", "dimension", "seed")
    arrays = {
        **coordinates(scaling=SCALINGS),
        "dimension": Labelled(("dimension",), np.array(DIMENSIONS), "d of queries and keys"),
        **coordinates(seed=seeds),
        **{name: Labelled(dims, found[..., k], long_name) for k, (name, long_name) in enumerate(MEASURES.items())},
    }
    return Outcome(arrays, summary, draw)


def measure_softmax(d: int, scaled: bool, seed: int, keys: int = KEYS) -> tuple[float, float]:
    """Return the entropy (nats) and the norm of the Jacobian of softmax attention for random queries and keys in R^d.

    Both are means over queries. ``scaled``: whether logits have the factor 1/√d.
    """
    random = np.random.default_rng([seed, d])
    logits = random.standard_normal((QUERIES, d)) @ random.standard_normal((keys, d)).T
    if scaled:
        logits /= np.sqrt(d)
    logits -= logits.max(axis=1, keepdims=True)
    weights = np.exp(logits)
    total = weights.sum(axis=1)
    p = weights / total[:, None]
    entropy = np.log(total) - (p * logits).sum(axis=1)
    square, cube = (p**2).sum(axis=1), (p**3).sum(axis=1)
    gradient = np.sqrt(np.maximum(square - 2 * cube + square**2, 0.0))  # ‖diag p − ppᵀ‖²; rounding may be negative
    return float(entropy.mean()), float(gradient.mean())


def summary(found: Outcome) -> str:
    """Return a table of entropy and gradient by dimension, for logits with and without 1/√d."""
    rows = [
        [f"{d}", *(describe(found[m][s, k]) for m in MEASURES for s in range(len(SCALINGS)))]
        for k, d in enumerate(DIMENSIONS)
        if k % 3 == 0
    ]
    head = ["d", *(f"{name}, {scaling}" for name in MEASURES for scaling in SCALINGS)]
    return f"{table(head, rows)}\n{KEYS} keys: at most log n = {np.log(KEYS):.3f}, with 1/√d about log n − ½."


def draw(figure: Figure, found: Outcome) -> None:
    """Draw entropy and gradient by dimension, for logits with and without 1/√d."""
    figure.set_size_inches(9.6, 3.8)
    axes = figure.subplots(1, len(MEASURES))
    for ax, (name, long_name) in zip(axes, MEASURES.items(), strict=True):
        for values, label in zip(found[name], ("logits times 1/√d", "logits without a factor"), strict=True):
            curve(ax, found["dimension"], values.T, marker="o", ms=3, label=label)
        ax.set(xlabel="dimension d", ylabel=long_name, xscale="log")
    axes[0].axhline(np.log(KEYS) - 0.5, color="0.5", ls=":", lw=1, label="log n − ½")
    axes[0].legend(fontsize=8, frameon=False)
    axes[1].set_yscale("log")
    figure.tight_layout()
