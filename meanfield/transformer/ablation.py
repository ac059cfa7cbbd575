"""Ablation of a trained Transformer: which of its parts keeps tokens apart, compared with random and rotated matrices.

A variant is the model without some parts, or with random or rotated attention matrices, or tokens that stand still, on
the same tokens. Of each, by layer, over several texts:

    cosine      mean of ⟨x_i, x_j⟩ over i ≠ j, x = h/|h|
    clusters    of the directions, by persistence
    energy      ½ mean of e^{⟨x_i, x_j⟩} over all i, j
    rank        effective rank of the directions: e^H of the shares of their singular values
    agreement   mean of ⟨x_i, x_i of the whole model⟩
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.text import table
from meanfield.case.errors import CaseError
from meanfield.clusters.among_tokens import SCALE, find_clusters_of_tokens
from meanfield.domains.trained.diagnostics import effective_rank, mean_cosine
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.case import CaseOptions, layer_arrays, start_of
from meanfield.transformer.families import family_of, form_of, stored_layers
from meanfield.transformer.model import Booleans, States
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

WHOLE, STILL = "whole model", "standing still"
DROPS = ("special", "first")
Variants = dict[str, CaseOptions | None]  # None: tokens stand still


@dataclass(frozen=True)
class Ablation:
    """Measures (variants, texts, layers + 1) of each quantity, and the texts' names."""

    variants: tuple[str, ...]
    texts: tuple[str, ...]
    measures: dict[str, Floats]


def variants_of(parts: Sequence[tuple[str, ...]], seeds: int) -> Variants:
    """The whole model, the model without each set of parts, and the nulls."""
    variants: Variants = {WHOLE: CaseOptions()}
    variants |= {f"without {', '.join(without)}": CaseOptions(without) for without in parts}
    variants[STILL] = None
    for kind in ("random", "rotated"):
        variants |= {f"{kind} {seed}": CaseOptions(weights=kind, seed=seed) for seed in range(seeds)}
    return variants


def ablate(texts: Sequence[States], variants: Variants, drop: Sequence[str] = ()) -> Ablation:
    """The measures of all variants on all texts; tokens in ``drop``, of DROPS, are moved but not measured.

    Raises CaseError where fewer than two tokens of a text are left.
    """
    masks = [kept_tokens(states, drop) for states in texts]
    whole = [unit_vectors(states.hidden[:, keep]) for states, keep in zip(texts, masks, strict=True)]
    rows = [
        [_measures(*one) for one in zip(states_of_variant(texts, options), masks, whole, strict=True)]
        for options in variants.values()
    ]
    stacked = np.array(rows)  # variants, texts, quantities, layers + 1
    measures = {quantity: stacked[:, :, k] for k, quantity in enumerate((*QUANTITIES, "agreement"))}
    return Ablation(tuple(variants), tuple(states.source for states in texts), measures)


def require_drops(drop: Sequence[str]) -> None:
    """Raise CaseError for a name that is not of DROPS."""
    for name in drop:
        if name not in DROPS:
            raise CaseError(f"--drop {name}: expected one of {', '.join(DROPS)}")


def kept_tokens(states: States, drop: Sequence[str]) -> Booleans:
    """(n,) which tokens are measured: not special ones, such as [CLS], or not the first, to which many attend."""
    keep = np.ones(len(states.tokens), bool)
    if "special" in drop:
        keep &= ~states.special
    if "first" in drop:
        keep[0] = False
    if keep.sum() < 2:
        raise CaseError(f"{states.source}: {keep.sum()} tokens are left by --drop: expected at least two")
    return keep


def states_of_variant(texts: Sequence[States], options: CaseOptions | None) -> Iterator[Floats]:
    """(layers + 1, n, d) the states of a variant of a model, on the tokens of each of the texts that it has read."""
    if options is None:
        yield from (np.broadcast_to(states.hidden[0], states.hidden.shape) for states in texts)
        return
    model = texts[0]
    family = family_of(model.name, model.config)
    form, total = form_of(family, model.network), model.layers * options.repeat
    arrays = [layer_arrays(model, family, k, options) for k in range(stored_layers(model.config, model.layers))]
    layers = [
        TrainedLayer(form, arrays[k % len(arrays)], options.without, is_last=k == total - 1) for k in range(total)
    ]
    for states in texts:
        found = [start_of(states, options)]
        for layer in layers:
            found.append(layer(found[-1]))
        yield np.stack(found)


def _measures(hidden: Floats, keep: Booleans, whole: Floats) -> list[list[float]]:
    directions = unit_vectors(hidden[:, keep])
    rows = [[quantity(points) for points in directions] for quantity in QUANTITIES.values()]
    return [*rows, list((directions * whole).sum(axis=2).mean(axis=1))]


def _energy(directions: Floats) -> float:
    return float(0.5 * np.exp(directions @ directions.T).mean())


def _clusters(directions: Floats) -> float:
    masses = np.full(len(directions), 1 / len(directions))
    return float(find_clusters_of_tokens(directions, masses, SCALE).count)


QUANTITIES: dict[str, Callable[[Floats], float]] = {
    "cosine": mean_cosine, "clusters": _clusters, "energy": _energy, "rank": effective_rank
}  # fmt: skip


def grouped(ablation: Ablation, quantity: str) -> dict[str, tuple[Floats, Floats]]:
    """Mean and standard deviation (layers + 1,) over texts, and over the seeds of a null."""
    groups: dict[str, list[Floats]] = {}
    for name, values in zip(ablation.variants, ablation.measures[quantity], strict=True):
        groups.setdefault(group_of(name), []).append(values)
    return {name: (np.concatenate(v).mean(axis=0), np.concatenate(v).std(axis=0)) for name, v in groups.items()}


def group_of(name: str) -> str:
    """The name of a variant without its seed."""
    return name.split(" ")[0] if name.split(" ")[0] in ("random", "rotated") else name


def last_layer_table(ablation: Ablation) -> str:
    """Markdown table: the measures of each variant after the last layer, mean ± spread."""
    columns = {quantity: grouped(ablation, quantity) for quantity in ablation.measures}
    rows = []
    for name in next(iter(columns.values())):
        cells = [f"{mean[-1]:.3g} ± {spread[-1]:.2g}" for mean, spread in (column[name] for column in columns.values())]
        rows.append([name, *cells])
    return table(["variant", *columns], rows)
