"""Measures of variants of a trained Transformer, by layer, over several texts.

A variant is the model without some parts, or with random or rotated attention matrices, or tokens at rest, on the same
tokens:

    cosine      mean of ⟨x_i, x_j⟩ over i ≠ j, x = h/|h|
    clusters    of the directions, by persistence
    energy      ½ mean of e^{⟨x_i, x_j⟩} over all i, j
    rank        effective rank of the directions: e^H of the shares of their singular values
    agreement   mean of ⟨x_i, x_i of the whole model⟩
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.clusters.near import SCALE
from meanfield.domains.trained.diagnostics import effective_rank, mean_cosine
from meanfield.figures.run_data import BLACK, BLUE, VERMILION
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.mean_field import LAW
from meanfield.transformer.model import Booleans, HiddenStates
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

STYLES = {
    WHOLE: (BLACK, "-"), LAW: (BLUE, "-"), STILL: ("0.6", "--"),
    "random": (VERMILION, "--"), "rotated": (VERMILION, ":"),
}  # fmt: skip
NULLS = "random", "rotated"  # attention matrices of null models
Variants = dict[str, Variant | None]  # None: tokens do not move


def legend_label(variant: str) -> str:
    """Return the label of a variant of a model in the legend of a figure: "random matrices" for "random"."""
    return f"{variant} matrices" if variant in NULLS else variant


def variants_of(parts: Sequence[tuple[str, ...]], seeds: int) -> Variants:
    """Return the variants of a model that a study compares, by name.

    The variants are the whole model, the model without each set of parts, tokens at rest, and the model with random and
    with rotated attention matrices, one for each of ``seeds`` seeds.
    """
    variants: Variants = {WHOLE: Variant()}
    variants |= {f"without {', '.join(without)}": Variant(without) for without in parts}
    variants[STILL] = None
    for kind in NULLS:
        variants |= {f"{kind} {seed}": Variant(weights=kind, seed=seed) for seed in range(seeds)}
    return variants


def measure_variants(
    texts: Sequence[HiddenStates], variants: Variants, drop: Sequence[str] = ()
) -> dict[str, Labelled]:
    """Return measures (variant, text, layer) of tokens in variants of a model, such as the mean cosine.

    Tokens in ``drop`` ("special", "first") are moved but not measured. Raises CaseError if fewer than two tokens of a
    text remain.
    """
    masks = [states.mask_of_remaining(drop) for states in texts]
    whole = [unit_vectors(states.hidden[:, keep]) for states, keep in zip(texts, masks, strict=True)]
    rows = [
        [_measures(*one) for one in zip(states_of_variant(texts, variant), masks, whole, strict=True)]
        for variant in variants.values()
    ]
    stacked = np.array(rows)  # dimensions: variants, texts, measures, layers + 1
    return {
        **coordinates(variant=list(variants), text=[states.source for states in texts]),
        **{
            name: Labelled(("variant", "text", "layer"), stacked[:, :, k], long_name)
            for k, (name, long_name) in enumerate(MEASURES.items())
        },
    }


def _measures(hidden: Floats, keep: Booleans, whole: Floats) -> list[list[float]]:
    """Return a row for each of MEASURES, with a number after each layer, of the tokens that the mask ``keep`` selects.

    hidden   (layers + 1, n, d) states
    whole    (layers + 1, k, d) directions of the k selected tokens in the whole model, for the agreement
    """
    directions = unit_vectors(hidden[:, keep])
    rows = [[quantity(points) for points in directions] for quantity in QUANTITIES.values()]
    return [*rows, list((directions * whole).sum(axis=2).mean(axis=1))]


def _energy(directions: Floats) -> float:
    """Return the energy ½ mean e^{⟨x,y⟩} over all pairs of directions (n, d)."""
    return float(0.5 * np.exp(directions @ directions.T).mean())


def clusters(directions: Floats) -> float:
    """Return the number of clusters among tokens of equal mass at unit vectors (n, d), by persistence."""
    masses = np.full(len(directions), 1 / len(directions))
    return float(find_clusters_of_tokens(directions, masses, SCALE).count)


QUANTITIES: dict[str, Callable[[Floats], float]] = {
    "cosine": mean_cosine, "clusters": clusters, "energy": _energy, "rank": effective_rank
}  # fmt: skip


MEASURES = {
    "cosine": "mean inner product of two different tokens",
    "clusters": "number of clusters of directions by persistence",
    "energy": "half the mean of e^<x,y> over all pairs of directions",
    "rank": "effective rank of the directions",
    "agreement": "mean inner product of a token with the same one of the whole model",
}


def group_by_variant(found: Outcome, quantity: str) -> dict[str, tuple[Floats, Floats]]:
    """Return the mean and standard deviation (layers + 1,) of a quantity over texts, by variant of a model.

    Random matrices of all seeds count as one variant, and so do rotated matrices.
    """
    groups: dict[str, list[Floats]] = {}
    for name, values in zip(found["variant"], found[quantity], strict=True):
        first = name.split(" ")[0]
        groups.setdefault(first if first in NULLS else name, []).append(values)
    return {name: (np.concatenate(v).mean(axis=0), np.concatenate(v).std(axis=0)) for name, v in groups.items()}
