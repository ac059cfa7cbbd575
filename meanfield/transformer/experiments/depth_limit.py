"""Limit of infinite depth: the layers of one network as steps of an ordinary differential equation, refined.

    u ← u + (f_l(u) − u)/k ,   k times for each layer u ← f_l(u)

k = 1 is the network itself; for k → ∞ its layers become the flow du/dt = f_l(u) − u, l − 1 < t < l, whose right-hand
side is piecewise constant in depth.

    difference(k) = |u^{(2k)} − u^{(k)}| / |u^{(2k)}|      of the last states u^{(k)} of one example
    order         = log₂(difference(k)/difference(2k))     1 for the Euler method with small steps

A network is a discretized flow if difference(1) is small and the accuracy is the same for all k. Controls: networks
without attention, and untrained ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from meanfield.analysis.text import table
from meanfield.transformer.experiments.drawing import curves
from meanfield.transformer.experiments.statistics import describe, describe_ratio
from meanfield.transformer.experiments.subjects import AXES, STATES, Subjects
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.data import Examples
from meanfield.transformer.networks.network import TokenNetwork
from solvers.mesh.mesh import Floats

EXAMPLES = 256
SUBSTEPS = (1, 2, 4, 8, 16)
Layer = Callable[[Tensor], tuple[Tensor, object]]


def depth_limit(subjects: Subjects) -> Outcome:
    """Return the accuracy of networks whose layers are refined, and the relative differences of their last states.

    The accuracy is by number of substeps k of a layer, the difference that between k and 2k.
    """
    test = subjects.task.test
    examples = Examples(test.inputs[:EXAMPLES], test.labels[:EXAMPLES])
    found = subjects.measure(lambda network: measure_refined(network, examples))
    by_substeps = (*AXES, "substeps")
    arrays = {
        **subjects.coordinates(),
        **coordinates(substeps=SUBSTEPS),
        "accuracy_refined": Labelled(by_substeps, found[..., 0], "fraction of correct answers with refined layers"),
        "difference": Labelled(by_substeps, found[..., 1], "relative change of the last states by twice the substeps"),
    }
    return Outcome(arrays, summary, draw)


def measure_refined(network: TokenNetwork, examples: Examples) -> Floats:
    """Return accuracy and difference (substeps, 2) of a network with refined layers, in each number of substeps.

    The difference of the last states is a geometric mean over examples.
    """
    with torch.no_grad():
        states = network.embed(examples.inputs)
        ends = [pass_refined(network.body.layers, states, k) for k in (*SUBSTEPS, 2 * SUBSTEPS[-1])]
        right = [(network.read(u).argmax(dim=-1) == examples.labels).double().mean() for u in ends[:-1]]
    changes = [
        (torch.linalg.vector_norm(v - u, dim=(1, 2)) / torch.linalg.vector_norm(v, dim=(1, 2))).log().mean().exp()
        for u, v in pairwise(ends)
    ]
    return np.array([right, changes], dtype=float).T


def pass_refined(layers: Iterable[Layer], states: Tensor, substeps: int) -> Tensor:
    """Return the states after layers u ← f(u), each of which is replaced by steps u ← u + (f(u) − u)/substeps."""
    for layer in layers:
        for _ in range(substeps):
            states = states + (layer(states)[0] - states) / substeps
    return states


def summary(found: Outcome) -> str:
    """Return a table of accuracies and differences of networks with refined layers."""
    accuracy, difference = found["accuracy_refined"], found["difference"]
    rows = [
        [name, state, *(describe(accuracy[i, s, :, k]) for k in (0, 1, -1)),
         *(describe_ratio(difference[i, s, :, k]) for k in (0, -1)),
         describe(np.log2(difference[i, s, :, -2] / difference[i, s, :, -1]))]
        for i, name in enumerate(found["network"])
        for s, state in enumerate(STATES)
    ]  # fmt: skip
    head = [
        "network", "state", *(f"accuracy, k = {SUBSTEPS[k]}" for k in (0, 1, -1)),
        *(f"difference, k = {SUBSTEPS[k]}" for k in (0, -1)), "order",
    ]  # fmt: skip
    return f"{table(head, rows)}\nEach layer is divided into k steps; difference: relative, from k to 2k."


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the difference of the last states, and the accuracy, by number of steps of a layer."""
    figure.set_size_inches(9.6, 3.8)
    axes = figure.subplots(1, 2)
    substeps = found["substeps"]
    curves(axes[0], substeps, found["difference"], geometric=True)
    axes[0].set(ylabel="difference of the last states, k to 2k", yscale="log")
    curves(axes[1], substeps, found["accuracy_refined"])
    axes[1].set(ylabel="accuracy", ylim=(0, 1))
    for ax in axes:
        ax.set(xlabel="steps k of a layer", xscale="log")
        ax.set_xticks(substeps, [str(k) for k in substeps], minor=False)
    axes[1].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
