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
from meanfield.clusters.near import SCALE
from meanfield.transformer.families import family_of, has_mean_field_law
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
    """Measure prompts in variants of a model, and return arrays of distance, entropy, clusters and states.

    The variants are the model, its mean-field dynamics if any, random attention matrices, and tokens at rest.

    distance   (variant, layer, prompt, other) W₁ of the tokens of two prompts
    entropy    (variant, layer, prompt) von Neumann entropy of the directions of a prompt's tokens
    clusters   (variant, layer, prompt) number of clusters of a prompt's tokens
    states     (variant, layer) number of groups of prompts
    """
    keep = [one.mask_of_remaining(drop) for one in states]
    variants = {}
    for name, moved in _states_of_variants(states, repeat, seed).items():
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
    """Return the mean W₁ distance of two prompts over all pairs, (variant, layer), for each variant of a model."""
    n = len(found["prompt"])
    return np.asarray(found["distance"].sum(axis=(2, 3)) / (n * (n - 1)))


def distances_of(prompts: Sequence[Floats]) -> Floats:
    """Return the Wasserstein distances W₁ (prompts, prompts) between prompts, by arc length.

    A prompt has equal masses at its tokens, unit vectors (n, d).
    """
    found = np.zeros((len(prompts), len(prompts)))
    for i, a in enumerate(prompts):
        for j, b in enumerate(prompts[:i]):
            shares = np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b))
            found[i, j] = found[j, i] = transport_cost(*shares, arc_lengths(a, b))
    return found


def entropy_of(directions: Floats) -> float:
    """Return the von Neumann entropy −tr(C log C) of unit vectors x (n, d), in nats, with C = (1/n) Σ x xᵀ."""
    shares = np.linalg.svd(directions, compute_uv=False) ** 2 / len(directions)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def groups_of(distances: Floats, scale: float = SCALE) -> int:
    """Return the number of groups of n prompts, where distances (n, n) of at most ``scale`` link two prompts."""
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(distances <= scale, directed=False)[0])


def line_through(values: Floats) -> tuple[float, float]:
    """Return the slope of the regression line through values by layer, and R² (1 if all values are equal)."""
    layers = np.arange(len(values))
    slope, offset = np.polyfit(layers, values, 1)
    total = float(((values - values.mean()) ** 2).sum())
    left = float(((values - slope * layers - offset) ** 2).sum())
    return float(slope), 1.0 - left / total if total > len(values) * ROUNDING**2 else 1.0


def _states_of_variants(states: Sequence[HiddenStates], repeat: int, seed: int) -> dict[str, Iterator[Floats]]:
    """Return the states (repeat·layers + 1, n, d) of each prompt's tokens in variants of a model, by variant.

    Variants are the model, its mean-field dynamics if any, random attention matrices, and tokens at rest. ``repeat`` is
    the number of passes through the layers.
    """
    still = (np.broadcast_to(one.hidden[0], (one.layers * repeat + 1, *one.hidden[0].shape)) for one in states)
    nulls = {"random": states_of_variant(states, Variant((), "random", seed, repeat)), STILL: still}
    found = {WHOLE: states_of_variant(states, Variant(repeat=repeat))}
    if has_mean_field_law(family_of(states[0].name, states[0].config), states[0].config):
        found[LAW] = (mean_field_states(one, repeat) for one in states)
    return found | nulls
