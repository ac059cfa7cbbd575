"""Layers of a trained Transformer repeated, as P. Rigollet's talk does with ALBERT: distributions of pairwise cosines.

Beside the model, from the same tokens: the mean-field law of its attention alone (meanfield/transformer/mean_field.py),
and two nulls, tokens that stand still and models with random or rotated attention matrices. W₁ of two distributions of
as many cosines is the mean distance of the sorted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.figures.run_data import BLACK, BLUE, VERMILION
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm
from meanfield.transformer.ablation import STILL, WHOLE, kept_tokens, states_of_variant
from meanfield.transformer.case import CaseOptions
from meanfield.transformer.families import arrays_of, family_of, form_of
from meanfield.transformer.labelled import Labelled, write_labelled
from meanfield.transformer.mean_field import common_length, head_matrices, require_attention, start_of
from meanfield.transformer.model import States
from meanfield.transformer.turnpike import MAX_ATOMS, Configuration, gromov_wasserstein, recovered
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAW = "mean-field law"
BINS = 80
EDGES = np.linspace(-1.0, 1.0, BINS + 1)
MIN_PROMINENCE = 0.1  # of the highest bin: lower maxima of a histogram are not called peaks
PANELS = 6
STYLES = {WHOLE: (BLACK, "-"), LAW: (BLUE, "-"), "random": (VERMILION, "--"), "rotated": (VERMILION, ":")}


@dataclass(frozen=True)
class Stacking:
    """Densities (variants, layers + 1, BINS) of ⟨x, y⟩ of two tokens, W₁ to the model (variants, layers + 1).

    recovered   for the model and the law, the configuration that the cosines after the last layer have, and its
                Gromov–Wasserstein distance to the tokens
    """

    variants: tuple[str, ...]
    densities: Floats
    distances: Floats
    means: Floats
    recovered: dict[str, tuple[Configuration, float]]


def stack(states: States, repeat: int, seed: int = 0, drop: Sequence[str] = ()) -> Stacking:
    """The layers of a model ``repeat`` times, the mean-field law of as many, and the nulls.

    Raises CaseError for a model whose attention is no mean-field law.
    """
    require_attention(states.name, states.config)
    keep = kept_tokens(states, drop)
    hidden = {
        WHOLE: next(states_of_variant([states], CaseOptions(repeat=repeat))),
        LAW: mean_field_states(states, repeat),
        **{k: next(states_of_variant([states], CaseOptions((), k, seed, repeat))) for k in ("random", "rotated")},
    }
    hidden[STILL] = np.broadcast_to(states.hidden[0], hidden[WHOLE].shape)
    cosines = np.array([[pair_cosines(h[keep]) for h in layers] for layers in hidden.values()])
    densities = np.array([[np.histogram(z, EDGES, density=True)[0] for z in layers] for layers in cosines])
    distances = np.abs(cosines - cosines[0]).mean(axis=2)
    ends = {name: _recovered(hidden[name][-1, keep]) for name in (WHOLE, LAW)}
    return Stacking(tuple(hidden), densities, distances, cosines.mean(axis=2), ends)


def _recovered(states: Floats) -> tuple[Configuration, float]:
    found = recovered(pair_cosines(states))
    return found, gromov_wasserstein(found, unit_vectors(states))


def pair_cosines(states: Floats) -> Floats:
    """⟨x_i, x_j⟩ for i < j of directions of states (n, d), sorted."""
    x = unit_vectors(states)
    return np.sort((x @ x.T)[np.triu_indices(len(x), 1)])


def mean_field_states(states: States, repeat: int) -> Floats:
    """(layers + 1, n, d) tokens moved by the model's attention alone, as `meanfield transformer case --mean-field`."""
    family = family_of(states.name, states.config)
    form, post = form_of(family, states.network), family.placement == "post"
    length, start = common_length(states, family), start_of(states, family)
    x = unit_vectors(start) * (1.0 if post else length)
    laws, found = [], [x]
    for k in range(states.layers):
        matrices = head_matrices(arrays_of(family, states.network, k), family.placement)
        heads = [dict(zip(matrices, one, strict=True)) for one in zip(*matrices.values(), strict=True)]
        all_heads = tuple(Head(**head) for head in heads)
        beta = form.beta * (length**2 if post else 1.0)
        laws.append(ParticleVelocity(beta, heads=all_heads, norm=LayerNorm(family.placement), causal=form.causal))
    for k in range(repeat * states.layers):
        x = layer_map(laws[k % states.layers], x, 1.0, time=float(k))
        found.append(x)
    return np.stack(found)


def peaks(density: Floats) -> Floats:
    """Places of the maxima of a density (BINS) that rise by MIN_PROMINENCE of the highest above what parts them."""
    from scipy.signal import find_peaks

    padded = np.concatenate([[0.0], density, [0.0]])
    found, _ = find_peaks(padded, prominence=MIN_PROMINENCE * density.max())
    return np.asarray(((EDGES[1:] + EDGES[:-1]) / 2)[found - 1])


def write_stacking(path: str | Path, stacking: Stacking, attributes: dict[str, str]) -> None:
    """Write a new file, or replace one: density (variant, layer, cosine), distance and mean (variant, layer).

    Of the last layer, for the model and the law, the configuration recovered: recovered_mass (recovered, atom) and
    recovered_gram (recovered, atom, other), NaN beyond its atoms; recovered_fit and recovered_gap (recovered).
    """
    dims = ("variant", "layer")
    names, found = list(stacking.recovered), list(stacking.recovered.values())
    masses, grams = np.full((len(found), MAX_ATOMS), np.nan), np.full((len(found), MAX_ATOMS, MAX_ATOMS), np.nan)
    for k, (one, _) in enumerate(found):
        masses[k, : len(one.masses)] = one.masses
        grams[k, : len(one.masses), : len(one.masses)] = one.gram
    fits, gaps = [one.distance for one, _ in found], [gap for _, gap in found]
    arrays = {
        "variant": Labelled(("variant",), list(stacking.variants)),
        "cosine": Labelled(("cosine",), (EDGES[1:] + EDGES[:-1]) / 2),
        "density": Labelled((*dims, "cosine"), stacking.densities, "density of <x, y> of two tokens"),
        "distance": Labelled(dims, stacking.distances, "W1 distance to the model's distribution"),
        "mean": Labelled(dims, stacking.means, "mean inner product of two different tokens"),
        "recovered": Labelled(("recovered",), names),
        "recovered_mass": Labelled(
            ("recovered", "atom"), masses, "masses recovered from the cosines after the last layer"
        ),
        "recovered_gram": Labelled(("recovered", "atom", "other"), grams, "inner products of the atoms recovered"),
        "recovered_fit": Labelled(("recovered",), fits, "W1 distance of their cosines to the tokens'"),
        "recovered_gap": Labelled(("recovered",), gaps, "Gromov-Wasserstein distance of the atoms to the tokens"),
    }
    write_labelled(path, arrays, attributes)


def draw_stacking(figure: Figure, stacking: Stacking, title: str, repeat: int) -> None:
    """Histograms after at most PANELS whole repetitions, of PANELS layers where there is one; W₁ to the model by layer.

    The model's histograms are filled, ▲ are their peaks.
    """
    figure.set_size_inches(10.0, 7.6)
    each = (stacking.means.shape[1] - 1) // repeat if repeat > 1 else 1
    layers = each * np.unique(np.linspace(0, (stacking.means.shape[1] - 1) // each, PANELS).round().astype(int))
    grid = figure.add_gridspec(3, 3)
    for index, layer in enumerate(layers):
        _draw_layer(figure.add_subplot(grid[index // 3, index % 3]), stacking, int(layer), legend=index == 0)
    below = figure.add_subplot(grid[2, :])
    for name, distance in zip(stacking.variants, stacking.distances, strict=True):
        if name != WHOLE:
            color, style = STYLES.get(name, ("0.6", "--"))
            below.plot(distance, color=color, ls=style, lw=1.4, label=name)
    below.set(xlabel="layers passed", ylabel="$W_1$ to the model", ylim=(0, None))
    below.legend(fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()


def _draw_layer(ax: Any, stacking: Stacking, layer: int, legend: bool) -> None:
    for name, densities in zip(stacking.variants, stacking.densities, strict=True):
        if name in (WHOLE, LAW, "rotated"):
            color, style = STYLES[name]
            filled = {"fill": True, "alpha": 0.25} if name == WHOLE else {"ls": style}
            ax.stairs(densities[layer], EDGES, color=color, label=name, **filled)
    found = peaks(stacking.densities[0, layer])
    ax.plot(found, np.zeros_like(found), "^", color=BLACK, markersize=5, clip_on=False)
    highest = 1.6 * stacking.densities[0, layer].max()  # the bin of tokens at one point is beyond it
    ax.set(title=f"after {layer} layers (▲ peaks)", xlim=(-1, 1), ylim=(0, highest), xlabel="⟨x, y⟩ of two tokens")
    if legend:
        ax.legend(fontsize=7, frameon=False)
