"""Attention maps of the two networks, compared with each other and with controls.

    p    (n, n) attention weights of a layer, for one example: of one head, or the mean over heads
    cosine(p, q) = Σ p_ij q_ij / (|p| |q|) ,     KL(p, q) = (1/n) Σ_ij p_ij log(p_ij/q_ij)

p is the map of the Transformer of one seed. q is the map of the PDE network, the same map with its columns shuffled row
by row, the uniform map, or the map of a Transformer of another seed. The other seeds are further ones, so that the
pairs have no network in common: an interval over seeds is that of independent pairs. Heads are compared one by one,
after the permutation of q's heads in each layer that maximizes the cosine, for the controls as well. Means over heads
are nearly uniform where heads are not, so that they resemble each other more than the maps of heads.

Whether a network needs attention is measured by its accuracy with uniform attention, and by that of a network trained
without attention.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import label_of
from meanfield.transformer.experiments.statistics import describe, describe_difference, mean_and_half_width
from meanfield.transformer.experiments.subjects import (
    AXES,
    KINDS,
    NO_ATTENTION,
    STATES,
    Subjects,
    case_of,
    train_subjects,
)
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.network import TokenNetwork, traced
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import loss_and_accuracy
from solvers.mesh.mesh import Floats

EXAMPLES = 128
MAPS = ("mean over heads", "by head")
OTHERS = ("pde", "pde, shuffled", "uniform", "other seed")
SOURCE_COSINE, SOURCE_KL = 0.9870, 0.0144  # values that the sources print for their pair of networks
SCALES = np.array([0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])  # factors of the logits, in both untrained networks


def attention_maps(case: TrainingCase, seeds: tuple[int, ...], show: Printer) -> Outcome:
    """Train networks, and return cosine and divergence between attention maps of the Transformer and other maps.

    The other maps are those of the PDE network, shuffled or uniform maps, and maps of a Transformer of another seed.
    The axes of both measures are kind of map (mean over heads, by head), state (untrained, trained), pair of maps, seed
    and layer. The outcome also has both measures of untrained networks by a factor of the logits, and the accuracy of
    all networks with uniform attention.
    """
    subjects, other_seeds = train_subjects(case, seeds, show), [max(seeds) + 1 + k for k in range(len(seeds))]
    others = train_subjects(case, other_seeds, show, networks={KINDS[0]: case_of(case, KINDS[0], seeds[0])})
    inputs = subjects.inputs(EXAMPLES)
    values, scaled = _compare_maps(subjects, others, inputs), _compare_scaled_maps(subjects, inputs)
    dims, examples = ("map", "state", "pair", "seed", "layer"), subjects.task.test
    uniform_accuracy = subjects.measure(lambda network: loss_and_accuracy(with_logits(network, 0.0), examples)[1])
    arrays = {
        **subjects.coordinates(),
        "accuracy_uniform": Labelled(AXES, uniform_accuracy, "fraction of correct answers with uniform attention"),
        **coordinates(map=MAPS, pair=OTHERS, scaled_pair=["pde", "uniform"], layer=np.arange(values.shape[-1]) + 1),
        "scale": Labelled(("scale",), SCALES, "factor of the logits of untrained networks"),
    }
    for k, (name, long_name) in enumerate(MEASURES.items()):
        arrays[name] = Labelled(dims, values[k], long_name)
        scaled_name = f"{long_name}, untrained, mean over heads and layers"
        arrays[f"{name}_scaled"] = Labelled(("scaled_pair", "scale", "seed"), scaled[k], scaled_name)
    return Outcome(arrays, summary, draw)


MEASURES = {"cosine": "cosine of attention maps", "divergence": "Kullback-Leibler divergence of rows, nats"}


def compare_maps(p: Floats, q: Floats) -> Floats:
    """Return the cosine and the Kullback–Leibler divergence (2, ...) of attention maps p and q (..., n, n).

    The rows of the maps sum to 1; q is positive where p is.
    """
    product = (p * q).sum(axis=(-2, -1)) / np.sqrt((p**2).sum(axis=(-2, -1)) * (q**2).sum(axis=(-2, -1)))
    positive = p > 0
    ratio = np.log(np.where(positive, p, 1.0)) - np.log(np.where(positive, q, 1.0))
    return np.stack([product, (p * ratio).sum(axis=-1).mean(axis=-1)])


def matched_heads(p: Floats, q: Floats) -> Floats:
    """Return attention maps q (layers, examples, heads, n, n) with their heads in the order most similar to those of p.

    The order, one for each layer, maximizes the sum over heads of the cosine, averaged over examples.
    """
    from scipy.optimize import linear_sum_assignment

    found = np.empty_like(q)
    for layer, (ours, theirs) in enumerate(zip(p, q, strict=True)):
        cosines = compare_maps(ours[:, :, None], theirs[:, None])[0].mean(axis=0)
        found[layer] = theirs[:, linear_sum_assignment(cosines, maximize=True)[1]]
    return found


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
    """Return the attention weights of a network on inputs: (layers, examples, heads, n, n)."""
    _, trace = traced(network, inputs, maps=True)
    return np.stack([w.double().numpy() for w in trace.weights if w is not None])


def _compare_maps(subjects: Subjects, others: Subjects, inputs: torch.Tensor) -> Floats:
    """Return cosine and divergence of attention maps, (measure, map, state, pair, seed, layer).

    A pair is the Transformer and one of four others: the PDE network, the PDE network with shuffled maps, uniform maps,
    or a Transformer of another seed, one of ``others``.
    """
    rows = []
    for state in range(len(STATES)):
        networks = subjects.of(KINDS[0]), subjects.of(KINDS[1]), others.all
        ours, theirs, of_others = ([maps_of(s.states[state], inputs) for s in found] for found in networks)
        pairs = [
            [_compare_layers(p, q) for p, q in zip(ours, maps, strict=True)]
            for maps in (theirs, map(shuffled, theirs), map(uniform, ours), of_others)
        ]
        rows.append(pairs)
    return np.moveaxis(np.array(rows), (3, 4), (0, 1))


def _compare_layers(p: Floats, q: Floats) -> Floats:
    """Return cosine and divergence (measure, map, layers) of attention maps p and q (layers, examples, heads, n, n).

    The measures are means over examples: of the means over heads, and by head.
    """
    means, by_head = compare_maps(p.mean(axis=2), q.mean(axis=2)), compare_maps(p, matched_heads(p, q))
    return np.stack([means.mean(axis=-1), by_head.mean(axis=(-2, -1))], axis=1)


def _compare_scaled_maps(subjects: Subjects, inputs: torch.Tensor) -> Floats:
    """Return cosine and divergence of attention maps of untrained networks with scaled logits.

    The array is (measure, pair, scale, seed). Pair 0 is the Transformer and the PDE network; pair 1 is the Transformer
    and uniform maps. The maps are means over heads, the measures means over layers and examples.
    """
    found = np.empty((2, 2, len(SCALES), len(subjects.seeds)))
    for k, scale in enumerate(SCALES):
        for j, pair in enumerate(zip(*(subjects.of(kind) for kind in KINDS), strict=True)):
            p, q = (maps_of(with_logits(one.untrained, scale), inputs).mean(axis=2) for one in pair)
            found[:, 0, k, j] = compare_maps(p, q).mean(axis=(1, 2))
            found[:, 1, k, j] = compare_maps(p, uniform(p)).mean(axis=(1, 2))
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
    """Return a phrase with the largest factor of the logits at which two attention maps are as similar as published.

    ``scaled`` (measure, pair, scale, seed) are cosine and divergence of the maps; their means over seeds are compared
    with the published values.
    """
    cosine, divergence = scaled[:, pair].mean(axis=-1)
    alike = SCALES[(cosine >= SOURCE_COSINE) & (divergence <= SOURCE_KL)]
    return f"up to {alike.max():g} times their logits" if len(alike) else "at no scale of their logits"


def _numbers(found: Outcome) -> tuple[Floats, Floats]:
    """Return the measures of attention maps as two arrays: by layer, and by factor of the logits.

    The shapes are (measure, map, state, pair, seed, layer) and (measure, pair, scale, seed).
    """
    by_layer, scaled = (np.stack([found[f"{name}{end}"] for name in MEASURES]) for end in ("", "_scaled"))
    return by_layer, scaled


def summary(found: Outcome) -> str:
    """Return tables of the measures of attention maps, their differences, and the accuracies."""
    by_layer, scaled = _numbers(found)
    by_seed = by_layer.mean(axis=-1)  # over layers
    columns = [f"{measure}, {kind}" for measure in MEASURES for kind in MAPS]
    rows = [
        [STATES[s], OTHERS[p], *(describe(by_seed[m, k, s, p]) for m in range(len(MEASURES)) for k in range(len(MAPS)))]
        for s in range(len(STATES))
        for p in range(len(OTHERS))
    ]
    differences = [
        [STATES[s], f"pde − {OTHERS[p]}",
         *(describe_difference(by_seed[m, k, s, 0], by_seed[m, k, s, p]) for m in range(len(MEASURES))
           for k in range(len(MAPS)))]
        for s in range(len(STATES)) for p in range(1, len(OTHERS))
    ]  # fmt: skip
    return "\n".join([
        table(["state", "Transformer and", *columns], rows),
        "",
        table(["state", "difference paired by seed", *columns], differences),
        f"The sources' cosine {SOURCE_COSINE:g} and divergence {SOURCE_KL:g} are reached by untrained networks "
        f"{_describe_factors(scaled, 0)}, and by the uniform map instead of the PDE network's "
        f"{_describe_factors(scaled, 1)}.",
        "",
        table(["network", "accuracy", "with uniform attention", "trained without attention", "loss without"],
              _accuracies(found)),
    ])  # fmt: skip


def _accuracies(found: Outcome) -> list[list[str]]:
    """Return the rows of the table of accuracies of trained networks with attention, and without in two ways."""
    names, trained = list(found["network"]), STATES.index("trained")
    accuracy, with_uniform = found["accuracy"][:, trained], found["accuracy_uniform"][:, trained]
    rows = []
    for i, kind in enumerate(KINDS):
        row = [kind, describe(accuracy[i]), describe(with_uniform[i])]
        if f"{kind}{NO_ATTENTION}" in names:
            without = accuracy[names.index(f"{kind}{NO_ATTENTION}")]
            rows.append([*row, describe(without), describe_difference(accuracy[i], without)])
        else:
            rows.append([*row, "–", "–"])
    return rows


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the measures by layer, untrained and trained, and by the scale of the logits."""
    by_layer, scaled = _numbers(found)
    figure.set_size_inches(14.0, 6.6)
    axes = figure.subplots(2, 4, sharey="row")
    source = (SOURCE_COSINE, SOURCE_KL)
    columns = (("untrained", 0, 0), ("trained", 0, 1), ("trained, by head", 1, 1))
    for m, (name, long_name) in enumerate(MEASURES.items()):
        for ax, (words, kind, state) in zip(axes[m], columns, strict=False):
            layers = np.arange(by_layer.shape[-1]) + 1
            for p, other in enumerate(OTHERS):
                mean, half_width = mean_and_half_width(by_layer[m, kind, state, p], axis=0)
                ax.errorbar(layers + 0.06 * (p - 1.5), mean, half_width, marker="o", ms=3, lw=1, label=_label(other))
            ax.set(xlabel="layer", title=f"{name}, {words}", xticks=layers)
        for p, other in enumerate(("pde", "uniform")):
            mean, half_width = mean_and_half_width(scaled[m, p])
            shown = np.where(mean > 0, mean, np.nan)  # a divergence of 0 has no logarithm
            axes[m, 3].errorbar(found["scale"], shown, half_width, marker="o", ms=3, lw=1, label=_label(other))
        axes[m, 3].set(xlabel="factor of all logits", title=f"{name}, untrained, scaled logits")
        axes[m, 3].set_xscale("symlog", linthresh=0.1)
        axes[m, 0].set_ylabel(long_name, fontsize=8)
        if name == "divergence":
            axes[m, 0].set_yscale("log")
        for ax in axes[m]:
            ax.axhline(source[m], color="0.5", ls=":", lw=1, label="value of the sources")
    for ax in axes[0, ::3]:
        ax.legend(fontsize=7, frameon=False)
    figure.tight_layout()


def _label(other: str) -> str:
    """Return the label of a map in figures, such as "PDE network, shuffled" for "pde, shuffled"."""
    return label_of(other) if other.startswith("pde") else other
