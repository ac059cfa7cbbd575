"""Repeated layers of a trained Transformer, as P. Rigollet's talk does with ALBERT: distributions of pairwise cosines.

The comparison, from the same tokens, has the mean-field dynamics of the attention alone
(meanfield/transformer/mean_field.py), and null models: tokens at rest, and random or rotated attention matrices. W₁ of
two distributions of equally many cosines is the mean distance of the sorted cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.run_data import BLACK
from meanfield.transformer.arguments import require_drops
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.mean_field import LAW, mean_field_states, require_attention
from meanfield.transformer.model import HiddenStates, read_states
from meanfield.transformer.studies.measures import STYLES, legend_label
from meanfield.transformer.studies.turnpike import MAX_ATOMS, gromov_wasserstein, recover_atoms
from meanfield.transformer.variants import STILL, WHOLE, Variant, states_of_variant
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 80
EDGES = np.linspace(-1.0, 1.0, BINS + 1)
CENTERS = (EDGES[1:] + EDGES[:-1]) / 2
MIN_PROMINENCE = 0.1  # relative to the highest bin: lower maxima of a histogram are no peaks
PANELS = 6


def histogram(
    model: str | Path,
    text: str | Path | None = None,
    *,
    repeat: int = 4,
    seed: int = 0,
    drop: str | Sequence[str] = (),
) -> Outcome:
    """Find the distribution of the cosines of two tokens after each layer of a model with repeated layers.

    The variants are the model, the mean-field dynamics of its attention alone, random and rotated attention matrices,
    and tokens at rest.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    text : str or Path, optional
        File of the text, in UTF-8; "-" is the standard input. None: a text of the package.
    repeat : int
        Number of times that the layers follow one another.
    seed : int
        Seed of random and of rotated matrices.
    drop : str or sequence of str
        Tokens that are moved but not measured: "special", "first". A str has commas between names.

    Returns
    -------
    Outcome
        Arrays density (variant, layer, cosine) and mean (variant, layer) of the cosines, and distance (variant, layer),
        W₁ to the model. The clusters recovered from the cosines after the last layer, for the model and its mean-field
        dynamics, are recovered_mass (recovered, atom) and recovered_gram (recovered, atom, other), NaN beyond the
        atoms. recovered_fit (recovered) is W₁ of their cosines to those of the tokens, and recovered_gap (recovered) an
        upper bound of their Gromov–Wasserstein distance to the tokens.

    Raises
    ------
    CaseError
        If the model or the text cannot be read, if its attention has no mean-field dynamics (RMS norm, rotary
        positions), if fewer than two tokens remain, or if an argument is not valid.

    Warns
    -----
    TextWarning
        If the text is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794, figure 1.

    Examples
    --------
    >>> import meanfield as mf
    >>> found = mf.transformer.histogram("sentence-transformers/all-MiniLM-L6-v2", repeat=2)  # doctest: +SKIP
    >>> found["mean"][:2, -1].round(3)  # of the model, of its mean-field dynamics  # doctest: +SKIP
    array([0.453, 0.999])
    >>> curve = found.to_xarray().density.sel(variant="whole model")[-1].plot()  # doctest: +SKIP
    """
    Variant(repeat=repeat, seed=seed)  # raises CaseError for invalid numbers
    dropped = require_drops(drop)
    states = read_states(model, text, require_attention)
    title = f"{states.short_name}, layers repeated {repeat} times, {states.source}"
    facts = {"model": states.name, "text": states.source, "drop": ",".join(dropped)}
    return Outcome(stack(states, repeat, seed, dropped), _summary, partial(_draw, repeat=repeat), title, facts)


def stack(states: HiddenStates, repeat: int, seed: int = 0, drop: Sequence[str] = ()) -> dict[str, Labelled]:
    """Return the distributions of the cosines of two tokens after each layer, for a model with repeated layers.

    The other variants are as many layers of the model's mean-field dynamics, the model with random and with rotated
    attention matrices, and tokens at rest. Raises CaseError for a model whose attention has no mean-field velocity.
    """
    require_attention(states.name, states.config)
    keep = states.mask_of_remaining(drop)
    hidden = {
        WHOLE: next(states_of_variant([states], Variant(repeat=repeat))),
        LAW: mean_field_states(states, repeat),
        **{k: next(states_of_variant([states], Variant((), k, seed, repeat))) for k in ("random", "rotated")},
    }
    hidden[STILL] = np.broadcast_to(states.hidden[0], hidden[WHOLE].shape)
    cosines = np.array([[pair_cosines(h[keep]) for h in layers] for layers in hidden.values()])
    densities = np.array([[np.histogram(z, EDGES, density=True)[0] for z in layers] for layers in cosines])
    distances, dims = np.abs(cosines - cosines[0]).mean(axis=2), ("variant", "layer")
    return {
        **coordinates(variant=list(hidden), cosine=CENTERS),
        "density": Labelled((*dims, "cosine"), densities, "density of <x, y> of two tokens"),
        "distance": Labelled(dims, distances, "W1 distance to the model's distribution"),
        "mean": Labelled(dims, cosines.mean(axis=2), "mean inner product of two different tokens"),
        **_recover_atoms({name: hidden[name][-1, keep] for name in (WHOLE, LAW)}),
    }


def _recover_atoms(last: dict[str, Floats]) -> dict[str, Labelled]:
    """Return few atoms (point masses) whose pairwise cosines are distributed like those of tokens, by variant.

    ``last`` holds the states (n, d) after the last layer, by variant of a model. Masses and Gram matrices of the atoms
    are padded with NaN.
    """
    count, names = len(last), ("recovered",)
    masses, grams = np.full((count, MAX_ATOMS), np.nan), np.full((count, MAX_ATOMS, MAX_ATOMS), np.nan)
    fits, gaps = np.empty(count), np.empty(count)
    for k, states in enumerate(last.values()):
        found = recover_atoms(pair_cosines(states))
        n, fits[k], gaps[k] = len(found.masses), found.distance, gromov_wasserstein(found, unit_vectors(states))
        masses[k, :n], grams[k, :n, :n] = found.masses, found.gram
    about = "masses recovered from the cosines after the last layer"
    return {
        **coordinates(recovered=list(last)),
        "recovered_mass": Labelled((*names, "atom"), masses, about),
        "recovered_gram": Labelled((*names, "atom", "other"), grams, "inner products of the atoms recovered"),
        "recovered_fit": Labelled(names, fits, "W1 distance of their cosines to the tokens'"),
        "recovered_gap": Labelled(names, gaps, "bound of the Gromov-Wasserstein distance of the atoms to the tokens"),
    }


def pair_cosines(states: Floats) -> Floats:
    """Return the sorted cosines ⟨x_i, x_j⟩, i < j, of all pairs of states (n, d) with directions x_i."""
    x = unit_vectors(states)
    return np.sort((x @ x.T)[np.triu_indices(len(x), 1)]).clip(-1.0, 1.0)  # beyond by rounding


def peaks(density: Floats) -> Floats:
    """Return the positions of the peaks of a histogram of cosines (BINS,): maxima of sufficient prominence.

    The prominence is at least MIN_PROMINENCE of the highest value.
    """
    from scipy.signal import find_peaks

    padded = np.concatenate([[0.0], density, [0.0]])
    found, _ = find_peaks(padded, prominence=MIN_PROMINENCE * density.max())
    return np.asarray(CENTERS[found - 1])


def _summary(found: Outcome) -> str:
    """Return lines on means and distances of each variant, the peaks of the model, and the recovered clusters."""
    lines = [
        f"{name:16} mean {means[-1]:.3f} after the last layer, "
        f"W₁ to the model {distances[-1]:.3f}, at most {distances.max():.3f}"
        for name, distances, means in zip(found["variant"], found["distance"], found["mean"], strict=True)
    ]
    places = ", ".join(f"{place:.3f}" for place in peaks(found["density"][0, -1]))
    lines.append(f"peaks of the model's distribution: {places}")
    for k, name in enumerate(found["recovered"]):
        given = found["recovered_mass"][k]
        masses, gram = given[np.isfinite(given)], found["recovered_gram"][k]
        cosines = ", ".join(f"{gram[a, b]:.2f}" for a in range(len(masses)) for b in range(a))
        lines.append(
            f"recovered from the cosines of the {name}: masses {', '.join(f'{mass:.2f}' for mass in masses)}; "
            f"cosines {cosines or 'none'}; W₁ {found['recovered_fit'][k]:.3f}; "
            f"Gromov–Wasserstein distance to the tokens at most {found['recovered_gap'][k]:.3f}"
        )
    return "\n".join(lines)


def _draw(figure: Figure, found: Outcome, repeat: int) -> None:
    """Draw histograms of cosines after PANELS or fewer of the layers, and W₁ to the model by layer.

    The histograms are after whole repetitions if layers are repeated. The histograms of the model are filled, with ▲ at
    their peaks.
    """
    figure.set_size_inches(10.0, 7.6)
    count = found["mean"].shape[1] - 1
    each = count // repeat if repeat > 1 else 1
    layers = each * np.unique(np.linspace(0, count // each, PANELS).round().astype(int))
    grid = figure.add_gridspec(3, 3)
    for index, layer in enumerate(layers):
        _draw_layer(figure.add_subplot(grid[index // 3, index % 3]), found, int(layer), legend=index == 0)
    below = figure.add_subplot(grid[2, :])
    for name, distance in zip(found["variant"], found["distance"], strict=True):
        if name != WHOLE:
            color, style = STYLES[name]
            below.plot(distance, color=color, ls=style, lw=1.4, label=legend_label(name))
    below.set(xlabel="layers passed", ylabel="$W_1$ to the model", ylim=(0, None))
    below.legend(fontsize=8, frameon=False)
    figure.suptitle(found.title, fontsize=11)
    figure.tight_layout()


def _draw_layer(ax: Axes, found: Outcome, layer: int, legend: bool) -> None:
    """Draw the distributions of cosines after a layer, and the peaks of the distribution of the model."""
    for name, densities in zip(found["variant"], found["density"], strict=True):
        if name in (WHOLE, LAW, "rotated"):
            color, style = STYLES[name]
            filled = {"fill": True, "alpha": 0.25} if name == WHOLE else {"ls": style}
            ax.stairs(densities[layer], EDGES, color=color, label=legend_label(name), **filled)
    places = peaks(found["density"][0, layer])
    ax.plot(places, np.zeros_like(places), "^", color=BLACK, markersize=5, clip_on=False)
    highest = 1.6 * found["density"][0, layer].max()  # cuts off the bin of coincident tokens
    ax.set(title=f"after {layer} layers (▲ peaks)", xlim=(-1, 1), ylim=(0, highest))
    ax.set(xlabel="⟨x, y⟩ of two tokens", ylabel="density")
    if legend:
        ax.legend(fontsize=7, frameon=False)
