"""Positions of tokens compared at equal training: none, sinusoidal, learned and rotary, for both kinds of networks.

    accuracy    of the test examples after the last epoch
    difference  accuracy less that of the network of the same seed without positions, the null

Networks of one seed have the same initial weights, except for the positions, and the same order of examples. Rotary
positions rotate queries and keys, which the PDE network does not have: its attention is that of the states.
"""

from __future__ import annotations

from typing import get_args, get_type_hints

import numpy as np
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import COLORS, NAMES
from meanfield.transformer.experiments.statistics import describe, describe_difference, mean_and_half_width
from meanfield.transformer.experiments.subjects import KINDS, case_of
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.section import Network, TrainingCase
from meanfield.transformer.networks.training import begin, train

POSITIONS: tuple[str, ...] = get_args(get_type_hints(Network)["positions"])
NULL = POSITIONS.index("none")


def positions(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE) -> Outcome:
    """Train Transformers and PDE networks with each kind of positions, and return their test accuracy.

    The array is (network, positions, seed). The accuracy is NaN for rotary positions of the PDE network.
    """
    points = [
        (i, p, j, case_of(case.replace([f"network.positions={name}"]), kind, seed))
        for i, kind in enumerate(KINDS)
        for p, name in enumerate(POSITIONS)
        for j, seed in enumerate(seeds)
        if not (kind == "pde" and name == "rotary")
    ]
    values = np.full((len(KINDS), len(POSITIONS), len(seeds)), np.nan)
    for (i, p, j, one), accuracy in zip(points, workers.map(_accuracy, [point[3] for point in points]), strict=True):
        values[i, p, j] = accuracy
        show(f"{one.network.kind}, positions {POSITIONS[p]}, seed {seeds[j]}: accuracy {accuracy:.4f}")
    arrays = {
        **coordinates(network=KINDS, positions=POSITIONS, seed=seeds),
        "accuracy": Labelled(("network", "positions", "seed"), values, "fraction of correct answers on test examples"),
    }
    return Outcome(arrays, summary, draw)


def _accuracy(case: TrainingCase) -> float:
    """Train a network, and return its final accuracy on test examples."""
    return train(begin(case, task_of(case))).history.test_accuracy[-1]


def summary(found: Outcome) -> str:
    """Return a table of accuracies by kind of positions, and of gains over the network without positions."""
    accuracy = found["accuracy"]
    rows = []
    for p, name in enumerate(found["positions"]):
        known = [i for i in range(len(KINDS)) if np.all(np.isfinite(accuracy[i, p]))]
        cells = ["–"] * (2 * len(KINDS))
        for i in known:
            cells[i] = describe(accuracy[i, p])
            if p != NULL:
                cells[len(KINDS) + i] = describe_difference(accuracy[i, p], accuracy[i, NULL])
        rows.append([name, *cells])
    head = [
        "positions",
        *(f"{kind}, {words}" for words in ("accuracy", "less that without positions") for kind in KINDS),
    ]
    return table(head, rows)


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the accuracy of both kinds of networks by kind of positions."""
    figure.set_size_inches(6.4, 3.8)
    ax, places = figure.add_subplot(), np.arange(len(POSITIONS))
    for i, kind in enumerate(KINDS):
        mean, half_width = mean_and_half_width(found["accuracy"][i])
        ax.errorbar(places + 0.1 * (i - 0.5), mean, half_width, fmt="o", color=COLORS[kind], label=NAMES[kind])
    ax.set_xticks(places, found["positions"])
    ax.set(xlabel="positions", ylabel="accuracy", xlim=(places[0] - 0.4, places[-1] + 0.4))
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
