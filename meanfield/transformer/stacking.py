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
from meanfield.transformer.mean_field import common_length, head_matrices, require_attention, start_of
from meanfield.transformer.model import States
from solvers.io.replacing import replacement
from solvers.io.writing import disk_errors
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
    """Densities (variants, layers + 1, BINS) of ⟨x, y⟩ of two tokens, W₁ to the model (variants, layers + 1)."""

    variants: tuple[str, ...]
    densities: Floats
    distances: Floats
    means: Floats


def stack(states: States, repeat: int, seed: int = 0, drop: Sequence[str] = ()) -> Stacking:
    """The layers of a model ``repeat`` times, the mean-field law of as many, and the nulls.

    Raises CaseError for a model whose attention is no mean-field law.
    """
    require_attention(states.name, states.config)
    keep = kept_tokens(states, drop)
    hidden = {
        WHOLE: states_of_variant(states, CaseOptions(repeat=repeat)),
        LAW: mean_field_states(states, repeat),
        **{k: states_of_variant(states, CaseOptions((), k, seed, repeat)) for k in ("random", "rotated")},
    }
    hidden[STILL] = np.broadcast_to(states.hidden[0], hidden[WHOLE].shape)
    cosines = np.array([[pair_cosines(h[keep]) for h in layers] for layers in hidden.values()])
    densities = np.array([[np.histogram(z, EDGES, density=True)[0] for z in layers] for layers in cosines])
    return Stacking(tuple(hidden), densities, np.abs(cosines - cosines[0]).mean(axis=2), cosines.mean(axis=2))


def pair_cosines(states: Floats) -> Floats:
    """⟨x_i, x_j⟩ for i < j of directions of states (n, d), sorted."""
    x = states / np.linalg.norm(states, axis=1, keepdims=True)
    return np.sort((x @ x.T)[np.triu_indices(len(x), 1)])


def mean_field_states(states: States, repeat: int) -> Floats:
    """(layers + 1, n, d) tokens moved by the model's attention alone, as `meanfield transformer case --mean-field`."""
    family = family_of(states.name, states.config)
    form, post = form_of(family, states.network), family.placement == "post"
    length, start = common_length(states, family), start_of(states, family)
    x = start / np.linalg.norm(start, axis=1, keepdims=True) * (1.0 if post else length)
    laws, found = [], [x]
    for k in range(states.layers):
        matrices = head_matrices(arrays_of(family, states.network, k), family.placement)
        heads = [dict(zip(matrices, one, strict=True)) for one in zip(*matrices.values(), strict=True)]
        all_heads = tuple(Head(weight=1 / len(heads), **head) for head in heads)
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
    """Write a new file, or replace one: density (variant, layer, bin), distance and mean (variant, layer)."""
    import h5py

    with disk_errors(Path(path), "cannot write"), replacement(Path(path)) as new, h5py.File(new, "w") as file:
        file.attrs.update(attributes)
        file["variant"] = np.array([name.encode() for name in stacking.variants])
        file["layer"] = np.arange(stacking.means.shape[1])
        file["cosine"] = (EDGES[1:] + EDGES[:-1]) / 2
        for name, values, dims, text in (
            ("density", stacking.densities, ("variant", "layer", "cosine"), "density of <x, y> of two tokens"),
            ("distance", stacking.distances, ("variant", "layer"), "W1 distance to the model's distribution"),
            ("mean", stacking.means, ("variant", "layer"), "mean inner product of two different tokens"),
        ):
            file[name] = values
            file[name].attrs.update(long_name=text, units="1")
            for axis, dim in enumerate(dims):
                file[dim].make_scale(dim)
                file[name].dims[axis].attach_scale(file[dim])


def draw_stacking(figure: Figure, stacking: Stacking, title: str) -> None:
    """Histograms at PANELS layers, the model's filled, with its peaks; below, W₁ to the model by layer."""
    figure.set_size_inches(10.0, 7.6)
    layers = np.unique(np.linspace(0, stacking.means.shape[1] - 1, PANELS).round().astype(int))
    grid = figure.add_gridspec(3, 3)
    for place, layer in enumerate(layers):
        _draw_layer(figure.add_subplot(grid[place // 3, place % 3]), stacking, int(layer), legend=place == 0)
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
