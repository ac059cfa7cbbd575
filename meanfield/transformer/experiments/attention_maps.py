"""Attention maps of the two networks, compared with each other and with controls.

    p    (n, n) mean over heads of the attention weights of a layer, for one example
    cosine(p, q) = Σ p_ij q_ij / (|p| |q|) ,     KL(p, q) = (1/n) Σ_ij p_ij log(p_ij/q_ij)

p is the map of the Transformer of one seed. q is the map of the PDE network, the same map with its columns shuffled row
by row, the uniform map, or the map of a Transformer of another seed. Intervals: 95 % of bootstrap resamples of
examples, of all seeds together.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.transformer.experiments.subjects import STATES, Subjects
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.network import TokenNetwork, traced
from solvers.mesh.mesh import Floats

EXAMPLES = 128
RESAMPLES = 1000
OTHERS = ("pde", "pde, shuffled", "uniform", "other seed")
SOURCE_COSINE, SOURCE_KL = 0.9870, 0.0144  # values that the sources print for their pair of networks
SCALES = np.array([0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])  # factors of the logits, in both untrained networks


def attention_maps(subjects: Subjects) -> Outcome:
    """Return the cosine and the divergence between attention maps of the Transformer and of other networks or controls.

    The other maps are those of the PDE network, shuffled or uniform ones, and those of another seed. Both measures are
    by state (untrained, trained), pair of maps and layer, with bootstrap intervals; for untrained networks also by a
    factor of the logits.
    """
    inputs = subjects.inputs(EXAMPLES)
    values = _compare_maps(subjects, inputs)  # measure, state, pair, seed, layer, example
    means, intervals = values.mean(axis=(3, 5)), bootstrap(values)
    scaled = _compare_scaled_maps(subjects, inputs)
    pairs = ("state", "pair", "layer")
    arrays = {
        **subjects.coordinates(),
        **coordinates(pair=OTHERS, bound=["2.5 %", "97.5 %"]),
        "scale": Labelled(("scale",), SCALES, "factor of the logits of untrained networks"),
    }
    for k, (name, long_name) in enumerate(MEASURES.items()):
        arrays[name] = Labelled(pairs, means[k], long_name)
        arrays[f"{name}_interval"] = Labelled((*pairs, "bound"), intervals[k], f"bootstrap interval of the {long_name}")
        arrays[f"{name}_scaled"] = Labelled(("scaled_pair", "scale"), scaled[k], f"{long_name}, untrained, over layers")
    arrays |= coordinates(scaled_pair=["pde", "uniform"])
    return Outcome(arrays, _summary, _draw)


MEASURES = {"cosine": "cosine of attention maps", "divergence": "Kullback-Leibler divergence of rows, nats"}


def compare_maps(p: Floats, q: Floats) -> Floats:
    """Return the cosine and the Kullback–Leibler divergence (2, ...) of attention maps p and q (..., n, n).

    The rows of the maps sum to 1; q is positive where p is.
    """
    product = (p * q).sum(axis=(-2, -1)) / np.sqrt((p**2).sum(axis=(-2, -1)) * (q**2).sum(axis=(-2, -1)))
    positive = p > 0
    ratio = np.log(np.where(positive, p, 1.0)) - np.log(np.where(positive, q, 1.0))
    return np.stack([product, (p * ratio).sum(axis=-1).mean(axis=-1)])


def bootstrap(values: Floats) -> Floats:
    """Return bootstrap intervals (2, state, pair, layer, bound) of the mean of two measures over seeds and examples.

    ``values`` (2, state, pair, seed, layer, example) are cosine and divergence of pairs of attention maps. The bounds
    are the 2.5 and 97.5 % quantiles.
    """
    gathered = np.moveaxis(values, 3, -2).reshape(*values.shape[:3], values.shape[4], -1)
    random = np.random.default_rng(0)
    chosen = random.integers(0, gathered.shape[-1], (RESAMPLES, gathered.shape[-1]))
    means = np.stack([gathered[..., one].mean(axis=-1) for one in chosen])
    return np.moveaxis(np.quantile(means, [0.025, 0.975], axis=0), 0, -1)


def uniform(p: Floats) -> Floats:
    """Return the map with equal weights for all tokens that a row of the attention map p (..., n, n) attends to."""
    allowed = p > 0
    return np.asarray(allowed / allowed.sum(axis=-1, keepdims=True))


def shuffled(p: Floats) -> Floats:
    """Return the attention map p (..., n, n) with the weights of each row in random order.

    The order changes only among the tokens that the row attends to.
    """
    keys = np.random.default_rng(0).random(p.shape) + 2 * (p <= 0)  # the excluded tokens stay last
    places, order = np.argsort(p <= 0, axis=-1, kind="stable"), np.argsort(keys, axis=-1)
    mixed = np.zeros_like(p)
    np.put_along_axis(mixed, places, np.take_along_axis(p, order, axis=-1), axis=-1)
    return mixed


def maps_of(network: TokenNetwork, inputs: torch.Tensor) -> Floats:
    """Return the attention weights of a network on inputs, averaged over heads: (layers, examples, n, n)."""
    _, trace = traced(network, inputs)
    return np.stack([w.mean(dim=1).double().numpy() for w in trace.weights if w is not None])


def _compare_maps(subjects: Subjects, inputs: torch.Tensor) -> Floats:
    """Return cosine and divergence of attention maps, (measure, state, pair, seed, layer, example).

    A pair is the Transformer and the PDE network, its shuffled maps, uniform maps, or another seed.
    """
    rows = []
    for state in range(len(STATES)):
        ours, theirs = (
            [maps_of(s.states[state], inputs) for s in subjects.of(kind)] for kind in ("transformer", "pde")
        )
        pairs = [
            [compare_maps(p, q) for p, q in zip(ours, others, strict=True)]
            for others in (theirs, map(shuffled, theirs), map(uniform, ours), [*ours[1:], ours[0]])
        ]
        rows.append(pairs)
    return np.moveaxis(np.array(rows), 3, 0)


def _compare_scaled_maps(subjects: Subjects, inputs: torch.Tensor) -> Floats:
    """Return cosine and divergence of attention maps of untrained networks with scaled logits: (measure, pair, scale).

    A pair is the Transformer and the PDE network, or uniform maps. The measures are means over seeds, layers and
    examples.
    """
    found = np.empty((2, 2, len(SCALES)))
    for k, scale in enumerate(SCALES):
        ours, theirs = (
            np.stack([maps_of(with_logits(s.untrained, scale), inputs) for s in subjects.of(kind)])
            for kind in ("transformer", "pde")
        )
        for pair, other in enumerate((theirs, uniform(ours))):
            found[:, pair, k] = compare_maps(ours, other).mean(axis=(1, 2, 3))
    return found


def with_logits(network: TokenNetwork, scale: float) -> TokenNetwork:
    """Return a copy of a network with its attention logits multiplied by ``scale``."""
    scaled = copy.deepcopy(network)
    with torch.no_grad():
        for name, parameter in scaled.named_parameters():
            if ".query" in name:
                parameter.mul_(scale)
    return scaled


def _describe_factors(scaled: Floats, pair: int) -> str:
    """Return a phrase with the factors of the logits up to which two attention maps are as similar as published.

    ``scaled`` (measure, pair, scale) are cosine and divergence of the maps.
    """
    alike = SCALES[(scaled[0, pair] >= SOURCE_COSINE) & (scaled[1, pair] <= SOURCE_KL)]
    return f"up to {alike.max():g} times their logits" if len(alike) else "at no scale of their logits"


def _numbers(found: Outcome) -> tuple[Floats, ...]:
    """Return the measures of attention maps in ``found`` as arrays: means, intervals, and means by factor of logits.

    The shapes are (measure, state, pair, layer), the same with bounds, and (measure, pair, scale).
    """
    return tuple(np.stack([found[f"{name}{kind}"] for name in MEASURES]) for kind in ("", "_interval", "_scaled"))


def _summary(found: Outcome) -> str:
    means, intervals, scaled = _numbers(found)
    rows = [
        [STATES[s], OTHERS[p], *(_cell(means[m, s, p], intervals[m, s, p]) for m in range(2))]
        for s in range(len(STATES))
        for p in range(len(OTHERS))
    ]
    return "\n".join([
        table(["state", "Transformer and", "cosine, over layers", "divergence"], rows),
        f"The sources' cosine {SOURCE_COSINE:g} and divergence {SOURCE_KL:g} are reached by untrained networks "
        f"{_describe_factors(scaled, 0)}, and by the uniform map instead of the PDE network's "
        f"{_describe_factors(scaled, 1)}.",
    ])  # fmt: skip


def _cell(mean: Floats, interval: Floats) -> str:
    low, high = interval.mean(axis=0)
    return f"{mean.mean():.4f} [{low:.4f}, {high:.4f}]"


def _draw(figure: Figure, found: Outcome) -> None:
    """Draw the measures by layer, untrained and trained, and by the scale of the logits."""
    means, intervals, scaled = _numbers(found)
    figure.set_size_inches(11.0, 6.6)
    axes = figure.subplots(2, 3, sharey="row")
    source = (SOURCE_COSINE, SOURCE_KL)
    for m, (name, long_name) in enumerate(MEASURES.items()):
        for s, state in enumerate(STATES):
            layers = np.arange(means.shape[3]) + 1
            for p, other in enumerate(OTHERS):
                shift = 0.06 * (p - 1.5)
                low, high = np.abs(intervals[m, s, p].T - means[m, s, p])
                axes[m, s].errorbar(layers + shift, means[m, s, p], (low, high), marker="o", ms=3, lw=1, label=other)
            axes[m, s].set(xlabel="layer", title=f"{name}, {state}")
            axes[m, s].set_xticks(layers)
        for p, other in enumerate(("pde", "uniform")):
            shown = np.where(scaled[m, p] > 0, scaled[m, p], np.nan)  # a divergence of 0 has no logarithm
            axes[m, 2].plot(SCALES, shown, marker="o", ms=3, lw=1, label=other)
        axes[m, 2].set(xlabel="factor of all logits", title=f"{name}, untrained, scaled logits")
        axes[m, 2].set_xscale("symlog", linthresh=0.1)
        axes[m, 0].set_ylabel(long_name, fontsize=8)
        if name == "divergence":
            axes[m, 0].set_yscale("log")
        for ax in axes[m]:
            ax.axhline(source[m], color="0.5", ls=":", lw=1, label="value of the sources")
    for ax in axes[0, ::2]:
        ax.legend(fontsize=7, frameon=False)
    figure.tight_layout()
