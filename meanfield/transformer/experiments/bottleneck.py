"""Information bottleneck: I(X; T) and I(T; Y) of each layer through training.

T is the mean over tokens of a layer's states, in units of the standard deviation over examples and coordinates, plus
noise of σ = NOISE: without noise I(X; T) of a deterministic network is infinite (Saxe and others 2018; Goldfeld and
others, 1810.05728). So T = t(X) + σZ with Z standard normal, and p(T|x) is known.

Over m examples (Poole and others, 1905.06922, equations 10 and 13):

    lower   E log p(t_i|x_i) / ((1/m) Σ_j p(t_i|x_j))               at most log m
    upper   E log p(t_i|x_i) / ((1/(m−1)) Σ_{j≠i} p(t_i|x_j))

In expectation over examples the mutual information I(X; T), in nats, lies between them. With labels,

    I(T; Y) ≥ H(Y) − E log 1/q(y_i|t_i) ,     q(y|t_i) = Σ_{j≠i, y_j=y} p(t_i|x_j) / Σ_{j≠i} p(t_i|x_j)

for any distribution q that is independent of example i (Barber and Agakov 2003). Controls: networks without attention,
and labels in random order, of which T has no information.
"""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import logsumexp

from meanfield.analysis.text import table
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import NAMES
from meanfield.transformer.experiments.statistics import describe, describe_difference
from meanfield.transformer.experiments.subjects import KINDS, train_subjects
from meanfield.transformer.labelled import Labelled, Outcome
from meanfield.transformer.networks.network import traced
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import Fit
from solvers.mesh.mesh import Floats, Integers

EXAMPLES = 600  # training examples: time and memory are quadratic in their number
UNIFORM_SHARE = 1e-3  # uniform share of q, so that a label of vanishing density costs at most log(1000·classes)


def information_of_input(means: Floats, noise: float, seed: int = 0) -> tuple[float, float]:
    """Return a lower and an upper bound, in nats, of the mutual information I(X; T) of examples X and a noisy layer T.

    T = t(x) + σZ, for given t(x) (m, d) of m examples, σ = ``noise``, and Z standard normal.
    """
    logs = _log_densities(means, noise, seed)
    m = len(logs)
    diagonal = np.diag(logs).copy()
    lower = diagonal - (logsumexp(logs, axis=1) - np.log(m))
    np.fill_diagonal(logs, -np.inf)
    return float(lower.mean()), float((diagonal - (logsumexp(logs, axis=1) - np.log(m - 1))).mean())


def information_of_labels(means: Floats, labels: NDArray[np.integer], noise: float, seed: int = 0) -> float:
    """Return a lower bound, in nats, of the mutual information I(T; Y) of a noisy layer T and labels Y (m,).

    T = t(x) + σZ, for given t(x) (m, d) of m examples, σ = ``noise``, and Z standard normal.
    """
    logs = _log_densities(means, noise, seed)
    np.fill_diagonal(logs, -np.inf)
    total = logsumexp(logs, axis=1)
    same = logsumexp(np.where(labels[:, None] == labels, logs, -np.inf), axis=1)
    classes, counts = np.unique(labels, return_counts=True)
    share = counts / len(labels)
    q = (1 - UNIFORM_SHARE) * np.exp(same - total) + UNIFORM_SHARE / len(classes)
    return float(-(share * np.log(share)).sum() + np.log(q).mean())


def _log_densities(means: Floats, noise: float, seed: int) -> Floats:
    """Return log p(t_i|x_j) (m, m) up to a constant: t_i is ``means``[i] with noise, and t(x_j) is ``means``[j]."""
    drawn = means + noise * np.random.default_rng(seed).standard_normal(means.shape)
    squares = (drawn**2).sum(axis=1)[:, None] - 2 * drawn @ means.T + (means**2).sum(axis=1)
    return np.asarray(-squares / (2 * noise**2))


NOISE = 1.0
MEASURES = ("input, lower", "input, upper", "labels", "shuffled labels")


def bottleneck(case: TrainingCase, seeds: tuple[int, ...], show: Printer) -> Outcome:
    """Train networks, and return bounds of mutual information of each layer T with inputs X and with labels Y.

    The bounds of I(X; T) and I(T; Y) are arrays (network, seed, epoch, layer), of the training examples.
    """
    found: dict[tuple[str, int], list[Floats]] = {}

    def measure(name: str, fit: Fit) -> None:
        found.setdefault((name, fit.case.training.seed), []).append(informations(fit))

    subjects = train_subjects(case, seeds, show, measure)
    epochs = max(map(len, found.values()))
    first = found[subjects.names[0], seeds[0]][0]
    values = np.full((len(subjects.names), len(seeds), epochs, *first.shape), np.nan)
    for i, name in enumerate(subjects.names):
        for j, seed in enumerate(seeds):
            rows = found[name, seed]
            values[i, j, : len(rows)] = rows
    dims = ("network", "seed", "epoch", "layer")
    most = np.log(min(len(subjects.task.train), EXAMPLES))
    arrays = {
        **subjects.coordinates(),
        "input_lower": Labelled(dims, values[..., 0], "lower bound of I(X; T), at most log of the examples", "nat"),
        "input_upper": Labelled(dims, values[..., 1], "upper bound of I(X; T)", "nat"),
        "labels": Labelled(dims, values[..., 2], "lower bound of I(T; Y)", "nat"),
        "shuffled": Labelled(dims, values[..., 3], "lower bound of I(T; Y) for labels Y in random order", "nat"),
        "noise": Labelled((), NOISE, "noise in units of the standard deviation of T"),
        "max_information": Labelled((), most, "log of the number of examples, the largest lower bound", "nat"),
    }
    return Outcome(arrays, summary, draw)


def informations(fit: Fit) -> Floats:
    """Return bounds of mutual information for each layer T of a network in training, (layers + 1, 4).

    The bounds are the lower and the upper bound of I(X; T) with inputs X, and the lower bounds of I(T; Y) with labels
    Y and with labels in random order.
    """
    examples = fit.task.train
    _, trace = traced(fit.network, examples.inputs[:EXAMPLES])
    labels = examples.labels[:EXAMPLES].numpy()
    mixed = np.random.default_rng(0).permutation(labels)
    return np.array([_layer_information(u.mean(dim=1).double().numpy(), labels, mixed) for u in trace.states])


def _layer_information(means: Floats, labels: Integers, mixed: Integers) -> tuple[float, ...]:
    """Return the four bounds of mutual information of one layer from its token means (examples, d)."""
    centered = means - means.mean(axis=0)
    deviation = centered.std()
    scaled = centered / (deviation if deviation > 0 else 1.0)
    return *information_of_input(scaled, NOISE), *(information_of_labels(scaled, y, NOISE) for y in (labels, mixed))


def _values(found: Outcome) -> Floats:
    """Return the bounds of mutual information as one array (network, seed, epoch, layer, bound)."""
    return np.stack([found[name] for name in ("input_lower", "input_upper", "labels", "shuffled")], axis=-1)


def summary(found: Outcome) -> str:
    """Return a table of the bounds of mutual information by layer, before and after training."""
    values = _values(found)
    first, last = values[:, :, 0], [_last_epoch(of_name) for of_name in values]
    rows = [
        [name, f"{layer}", *(describe(ends[:, layer, k]) for k in range(len(MEASURES)) for ends in (first[i], last[i]))]
        for i, name in enumerate(found["network"]) for layer in range(values.shape[3])
    ]  # fmt: skip
    head = ["network", "layer", *(f"I {name}, {when}" for name in MEASURES for when in ("untrained", "trained"))]
    middle, half = values[..., -1, :2].mean(axis=-1), (values.shape[2] - 1) // 2  # (network, seed, epoch) of last layer
    changes = ", ".join(
        f"{name} {describe_difference(one[:, -1], one[:, half])}"
        for name, one in zip(found["network"], middle, strict=True)
    )
    return (
        f"{table(head, rows)}\nLower bounds of I(X; T) are at most log m = {found['max_information']:.3g} nats. "
        f"I(X; T) of the last layer, midpoint of the bounds, last epoch less epoch {half}, paired by seed: {changes}."
    )


def _last_epoch(values: Floats) -> Floats:
    """Return the values (seeds, layers, bounds) of each seed's last epoch, from (seeds, epochs, layers, bounds)."""
    return np.stack([rows[np.flatnonzero(np.isfinite(rows[:, 0, 0]))[-1]] for rows in values])


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the information plane: each layer's path through training, mean over seeds.

    Larger markers are later epochs.
    """
    values = _values(found)
    figure.set_size_inches(9.6, 4.2)
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    middle = values[..., :2].mean(axis=-1)
    for i, kind in enumerate(KINDS):
        layers = values.shape[3]
        for layer, color in enumerate(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, layers))):
            x, y = (np.nanmean(v[i, :, :, layer], axis=0) for v in (middle, values[..., 2]))
            axes[i].plot(x, y, color=color, lw=1, label=f"layer {layer}")
            axes[i].scatter(x, y, color=color, s=np.linspace(4, 36, len(x)), lw=0)
        axes[i].axvline(found["max_information"], color="0.6", ls=":", lw=1)
        axes[i].set(xlabel="I(X; T), midpoint of the bounds (nats)", title=NAMES[kind])
    axes[0].set_ylabel("I(T; Y), lower bound (nats)")
    axes[0].legend(fontsize=8, frameon=False)
    figure.suptitle("larger markers are later epochs; dotted: log of the number of examples", fontsize=9)
    figure.tight_layout()
