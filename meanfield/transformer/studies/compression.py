"""Prompts through a model and through the mean-field dynamics of its attention: distances, entropy and clusters.

A prompt is the measure μ of its tokens' directions x = h/|h|. Measures of each variant, by layer:

    distance   W₁(μ, ν) of two prompts, by arc lengths, mean over all pairs
    entropy    −tr(C log C) of C = (1/n) Σ x xᵀ, nats: log n of n orthogonal tokens, 0 where all tokens coincide
    clusters   of a prompt's tokens, by persistence
    states     groups of prompts, linked where W₁ ≤ SCALE
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from meanfield.analysis.wasserstein_patches import arc_lengths, transport_cost
from meanfield.clusters.among_tokens import SCALE
from meanfield.transformer.families import family_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.mean_field import LAW, mean_field_states
from meanfield.transformer.model import HiddenStates
from meanfield.transformer.studies.measures import clusters
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

ROUNDING = 1e-12  # rounding error of an entropy


def compress(
    states: Sequence[HiddenStates], texts: Sequence[str], repeat: int = 1, seed: int = 0, drop: Sequence[str] = ()
) -> dict[str, Labelled]:
    """Return measures of prompts: of the model, its mean-field dynamics if any, random matrices, and tokens at rest.

    distance (variant, layer, prompt, other), entropy and clusters (variant, layer, prompt), states (variant, layer).
    """
    keep = [one.kept(drop) for one in states]
    variants = {}
    for name, moved in _moved(states, repeat, seed).items():
        prompts = [unit_vectors(hidden[:, mask]) for hidden, mask in zip(moved, keep, strict=True)]
        variants[name] = list(zip(*prompts, strict=True))  # by layer the directions (n, d) of each prompt
    of_layers, dims = list(variants.values()), ("variant", "layer", "prompt")
    distances = np.array([[distances_of(layer) for layer in layers] for layers in of_layers])
    entropies = np.array([[[entropy_of(x) for x in layer] for layer in layers] for layers in of_layers])
    counts = np.array([[[clusters(x) for x in layer] for layer in layers] for layers in of_layers])
    groups = np.array([[groups_of(layer) for layer in layers] for layers in distances])
    return {
        **coordinates(variant=list(variants), prompt=texts),
        "distance": Labelled((*dims, "other"), distances, "W1 distance of the tokens of two prompts", "rad"),
        "entropy": Labelled(dims, entropies, "von Neumann entropy of the directions of a prompt's tokens", "nat"),
        "clusters": Labelled(dims, counts, "clusters of a prompt's tokens"),
        "states": Labelled(dims[:2], groups, "groups of prompts"),
    }


def mean_distance(found: Outcome) -> Floats:
    """Return the mean distance (variant, layer) of all pairs of two prompts."""
    n = len(found["prompt"])
    return np.asarray(found["distance"].sum(axis=(2, 3)) / (n * (n - 1)))


def distances_of(prompts: Sequence[Floats]) -> Floats:
    """Return W₁ (prompts, prompts) of the uniform measures on tokens (n, d) of length 1."""
    found = np.zeros((len(prompts), len(prompts)))
    for i, a in enumerate(prompts):
        for j, b in enumerate(prompts[:i]):
            shares = np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b))
            found[i, j] = found[j, i] = transport_cost(*shares, arc_lengths(a, b))
    return found


def entropy_of(directions: Floats) -> float:
    """Return −tr(C log C), C = (1/n) Σ x xᵀ of unit vectors (n, d)."""
    shares = np.linalg.svd(directions, compute_uv=False) ** 2 / len(directions)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def groups_of(distances: Floats, scale: float = SCALE) -> int:
    """Return the number of groups that are linked by distances (n, n) of at most ``scale``."""
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(distances <= scale, directed=False)[0])


def line_through(values: Floats) -> tuple[float, float]:
    """Return the slope of the regression line of values by layer, and R²; R² is 1 where all values are equal."""
    layers = np.arange(len(values))
    slope, offset = np.polyfit(layers, values, 1)
    total = float(((values - values.mean()) ** 2).sum())
    left = float(((values - slope * layers - offset) ** 2).sum())
    return float(slope), 1.0 - left / total if total > len(values) * ROUNDING**2 else 1.0


def _moved(states: Sequence[HiddenStates], repeat: int, seed: int) -> dict[str, Iterator[Floats]]:
    """Return the states (layers + 1, n, d) of each variant and prompt."""
    still = (np.broadcast_to(one.hidden[0], (one.layers * repeat + 1, *one.hidden[0].shape)) for one in states)
    nulls = {"random": states_of_variant(states, Variant((), "random", seed, repeat)), STILL: still}
    found = {WHOLE: states_of_variant(states, Variant(repeat=repeat))}
    if family_of(states[0].name, states[0].config).norm == "layer":  # otherwise attention has no mean-field velocity
        found[LAW] = (mean_field_states(one, repeat) for one in states)
    return found | nulls
