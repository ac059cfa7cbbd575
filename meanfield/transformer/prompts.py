"""Many prompts through a model and through the mean-field law of its attention: what keeps them apart, what is lost.

A prompt is the measure μ of its tokens' directions x = h/|h|. Of each variant, by layer:

    distance   W₁(μ, ν) of two prompts, by arc lengths, mean over all pairs
    entropy    −tr(C log C) of C = (1/n) Σ x xᵀ, nats: log n of n orthogonal tokens, 0 where all tokens are one
    clusters   of a prompt's tokens, by persistence
    states     groups of prompts, linked where W₁ ≤ SCALE
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.wasserstein_patches import arc_lengths, transport_cost
from meanfield.case.errors import CaseError
from meanfield.clusters.among_tokens import SCALE, find_clusters_of_tokens
from meanfield.transformer.ablation import STILL, WHOLE, kept_tokens, states_of_variant
from meanfield.transformer.case import CaseOptions
from meanfield.transformer.mean_field import require_attention
from meanfield.transformer.model import Model, States, read_text, read_texts
from meanfield.transformer.stacking import LAW, mean_field_states
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

ROUNDING = 1e-12  # of an entropy
Measures = list[list[Floats]]  # of a variant: of each layer, of each prompt, directions (n, d)


@dataclass(frozen=True)
class Compression:
    """What remains of prompts.

    distances   (variants, layers + 1, prompts, prompts) W₁
    entropy     (variants, layers + 1, prompts)
    clusters    (variants, layers + 1, prompts)
    states      (variants, layers + 1) groups of prompts
    """

    variants: tuple[str, ...]
    prompts: tuple[str, ...]
    distances: Floats
    entropy: Floats
    clusters: Floats
    states: Floats

    @property
    def mean_distance(self) -> Floats:
        """(variants, layers + 1) over all pairs of two prompts."""
        n = len(self.prompts)
        return np.asarray(self.distances.sum(axis=(2, 3)) / (n * (n - 1)))


def prompts_of(path: str | None) -> list[str]:
    """The lines of a file, "-" for the standard input; None for the sentences of the package's ten texts.

    Raises CaseError for fewer than two.
    """
    if path is None:
        found = [part for text, _ in read_texts(None) for part in re.split(r"(?<=[.?!])\s+", text)]
    else:
        found = read_text(path)[0].splitlines()
    prompts = [line.strip() for line in found if line.strip()]
    if len(prompts) < 2:
        raise CaseError(f"--prompts {path}: {len(prompts)} line: expected at least two prompts, a line each")
    return prompts


def read_prompts(model: Model, prompts: Sequence[str]) -> list[States]:
    """The states of each prompt's tokens. Raises CaseError for one that the model cannot read."""
    return [model.read(prompt, f"prompt {k + 1}") for k, prompt in enumerate(prompts)]


def compress(states: Sequence[States], repeat: int = 1, seed: int = 0, drop: Sequence[str] = ()) -> Compression:
    """All measures of prompts: the model, the mean-field law where it has one, random matrices, and standing still."""
    keep = [kept_tokens(one, drop) for one in states]
    variants: dict[str, list[Floats]] = {}
    for name, moved in _moved(states, repeat, seed).items():
        compressed = [hidden[:, mask] for hidden, mask in zip(moved, keep, strict=True)]
        variants[name] = [unit_vectors(x) for x in compressed]
    layers = range(len(variants[WHOLE][0]))
    measures = {name: [[x[k] for x in prompts] for k in layers] for name, prompts in variants.items()}
    return _measured(measures, tuple(one.source for one in states))


def distances_of(prompts: Sequence[Floats]) -> Floats:
    """(prompts, prompts) W₁ of the uniform measures on tokens (n, d) of length 1."""
    found = np.zeros((len(prompts), len(prompts)))
    for i, a in enumerate(prompts):
        for j, b in enumerate(prompts[:i]):
            shares = np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b))
            found[i, j] = found[j, i] = transport_cost(*shares, arc_lengths(a, b))
    return found


def entropy_of(directions: Floats) -> float:
    """−tr(C log C), C = (1/n) Σ x xᵀ of unit vectors (n, d)."""
    shares = np.linalg.svd(directions, compute_uv=False) ** 2 / len(directions)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def groups_of(distances: Floats, scale: float = SCALE) -> int:
    """How many groups are linked by distances (n, n) of at most ``scale``."""
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(distances <= scale, directed=False)[0])


def line_through(values: Floats) -> tuple[float, float]:
    """Slope of the line through values by layer, and the share R² of their variance on it; 1 where all are equal."""
    layers = np.arange(len(values))
    slope, offset = np.polyfit(layers, values, 1)
    total = float(((values - values.mean()) ** 2).sum())
    left = float(((values - slope * layers - offset) ** 2).sum())
    return float(slope), 1.0 - left / total if total > len(values) * ROUNDING**2 else 1.0


def _moved(states: Sequence[States], repeat: int, seed: int) -> dict[str, Iterator[Floats]]:
    """(layers + 1, n, d) of each variant and prompt."""
    still = (np.broadcast_to(one.hidden[0], (one.layers * repeat + 1, *one.hidden[0].shape)) for one in states)
    nulls = {"random": states_of_variant(states, CaseOptions((), "random", seed, repeat)), STILL: still}
    found = {WHOLE: states_of_variant(states, CaseOptions(repeat=repeat))}
    if _has_law(states[0]):
        found[LAW] = (mean_field_states(one, repeat) for one in states)
    return found | nulls


def _has_law(states: States) -> bool:
    """Whether its attention is a mean-field law; it is none with RMS norm."""
    try:
        require_attention(states.name, states.config)
    except CaseError:
        return False
    return True


def _measured(measures: dict[str, Measures], prompts: tuple[str, ...]) -> Compression:
    by_layer = list(measures.values())
    distances = np.array([[distances_of(layer) for layer in layers] for layers in by_layer])
    return Compression(
        tuple(measures),
        prompts,
        distances,
        np.array([[[entropy_of(x) for x in layer] for layer in layers] for layers in by_layer]),
        np.array([[[_clusters(x) for x in layer] for layer in layers] for layers in by_layer]),
        np.array([[groups_of(layer) for layer in layers] for layers in distances]),
    )


def _clusters(directions: Floats) -> float:
    masses = np.full(len(directions), 1 / len(directions))
    return float(find_clusters_of_tokens(directions, masses, SCALE).count)
