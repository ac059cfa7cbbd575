"""Gradient flow: size of the gradient of the loss at each layer, by step of training and by depth.

    state_gradient(l) = |∂ loss/∂u_l| |u_l|     of one example, u_l its states after l of L layers: the change of its
                                                loss by a relative change of these states
    growth            = log(state_gradient(0)/state_gradient(L))/L , a rate in 1/layer
    gradient_norm     = |∂ loss/∂w| of the weights w of a part, at each step

The factor |u_l| makes layers with states of different lengths comparable. Depth is the number of layers in both
networks. The gradient vanishes towards the first layer if the growth is negative, and explodes if it is positive.
"""

from __future__ import annotations

import copy

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.transformer.experiments.drawing import NAMES, curves
from meanfield.transformer.experiments.statistics import describe, describe_ratio
from meanfield.transformer.experiments.subjects import AXES, KINDS, STATES, Subjects, lengths_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.network import TokenNetwork, Trace
from meanfield.transformer.networks.training import loss_of, parts_of
from solvers.mesh.mesh import Floats

EXAMPLES = 128


def gradient_flow(subjects: Subjects) -> Outcome:
    """Return gradient norms of the loss: by the states after each layer, and by the weights of each part at each step.

    The gradient by states is that of ``state_gradients``, before and after training, as a geometric mean over examples.
    """
    inputs, labels = subjects.inputs(EXAMPLES), subjects.task.test.labels[:EXAMPLES]
    by_layer = subjects.measure(lambda network: np.exp(np.log(state_gradients(network, inputs, labels)).mean(axis=0)))
    steps = max(len(subject.fit.history.loss) for subject in subjects.all)
    parts = list(parts_of(subjects.all[0].fit.network))
    by_step = np.full((len(subjects.names), len(subjects.seeds), steps, len(parts)), np.nan)  # NaN after an explosion
    for i, name in enumerate(subjects.names):
        for j, subject in enumerate(subjects.of(name)):
            rows = np.array(subject.fit.history.gradient_norm)
            by_step[i, j, : len(rows)] = rows
    arrays = {
        **subjects.coordinates(),
        **coordinates(part=parts),
        "state_gradient": Labelled((*AXES, "layer"), by_layer, "gradient by states after a layer, times their norm"),
        "gradient_norm": Labelled(("network", "seed", "step", "part"), by_step, "gradient norm of a part's weights"),
    }
    return Outcome(arrays, summary, draw)


def state_gradients(network: TokenNetwork, inputs: torch.Tensor, labels: torch.Tensor) -> Floats:
    """Return |∂ loss/∂u_l| |u_l| (examples, layers + 1) of the states u_l of each example after l layers, from l = 0.

    The loss is that of the example. Arithmetic is in float64, because gradients of nearly certain answers are small.
    """
    wide = copy.deepcopy(network).double()
    trace = Trace([], [])
    loss = loss_of(wide(inputs.double() if inputs.is_floating_point() else inputs, trace), labels) * len(labels)
    gradients = torch.autograd.grad(loss, trace.states)
    sizes = [lengths_of(g) * lengths_of(u.detach()) for g, u in zip(gradients, trace.states, strict=True)]
    return np.stack([size.numpy() for size in sizes], axis=-1)


def summary(found: Outcome) -> str:
    """Return a table of the ratios of gradients between first and last layer."""
    by_layer, by_step = found["state_gradient"], found["gradient_norm"]
    layers = by_layer.shape[-1] - 1
    rows = []
    for i, name in enumerate(found["network"]):
        ratio = by_layer[i, :, :, 0] / by_layer[i, :, :, -1]
        trained = by_step[i, :, :, 1] / by_step[i, :, :, -2]  # first and last layer
        ratios = [describe_ratio(one) for one in ratio]
        rates = [describe(np.log(one) / layers) for one in ratio]
        rows.append([name, *ratios, *rates, describe_ratio(np.nanmedian(trained, axis=1))])
    return table(
        [
            "network",
            *(f"{measure}, {state}" for measure in ("states, first/last", "growth per layer") for state in STATES),
            "weights, first/last layer, median of steps",
        ],
        rows,
    )


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the relative gradient by layer, and the gradient norms of the weights by step."""
    by_layer, by_step, parts = (found[name] for name in ("state_gradient", "gradient_norm", "part"))
    figure.set_size_inches(11.0, 3.8)
    axes = figure.subplots(1, 3)
    axes[2].sharey(axes[1])
    curves(axes[0], np.arange(by_layer.shape[-1]), by_layer / by_layer[..., -1:], geometric=True)
    for i, kind in enumerate(KINDS):
        colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(parts)))
        for part, name in enumerate(parts):
            axes[i + 1].plot(np.median(by_step[i, :, :, part], axis=0), color=colors[part], lw=0.7, label=name)
        axes[i + 1].set(xlabel="step", yscale="log", title=NAMES[kind])
    axes[0].set(xlabel="layers passed", ylabel="|∂ loss/∂u| |u|, by that of the last states", yscale="log")
    axes[0].xaxis.get_major_locator().set_params(integer=True)
    axes[1].set_ylabel("gradient norm of the weights")
    axes[0].legend(fontsize=7, frameon=False)
    axes[0].set_ylim(top=3 * axes[0].get_ylim()[1])  # space for the legend
    axes[2].legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
