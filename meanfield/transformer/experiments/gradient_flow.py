"""Gradient flow: size of the gradient of the loss at each layer, by step of training and by depth.

    state_gradient(l) = |∂ loss/∂u_l| / |∂ loss/∂u_L|     of the states after l of L layers, loss summed over examples
    gradient_norm     = |∂ loss/∂w| of the weights w of a part, at each step

The gradient vanishes if the ratio falls towards the first layer, and explodes if the ratio grows.
"""

from __future__ import annotations

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.transformer.experiments.drawing import NAMES, curves, mean_and_spread
from meanfield.transformer.experiments.subjects import AXES, KINDS, STATES, Subjects
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.network import TokenNetwork, Trace
from meanfield.transformer.networks.training import loss_of, parts_of
from solvers.mesh.mesh import Floats

EXAMPLES = 128


def gradient_flow(subjects: Subjects) -> Outcome:
    """Return gradient norms of the loss: by the states after each layer, and by the weights of each part at each step.

    The norms by states are of networks before and after training.
    """
    inputs, labels = subjects.inputs(EXAMPLES), subjects.task.test.labels[:EXAMPLES]
    by_layer = subjects.measure(lambda network: state_gradients(network, inputs, labels))
    steps = max(len(subject.fit.history.loss) for subject in subjects.all)
    parts = list(parts_of(subjects.all[0].fit.network))
    by_step = np.full((len(KINDS), len(subjects.seeds), steps, len(parts)), np.nan)  # NaN after an explosion
    for i, kind in enumerate(KINDS):
        for j, subject in enumerate(subjects.of(kind)):
            rows = np.array(subject.fit.history.gradient_norm)
            by_step[i, j, : len(rows)] = rows
    arrays = {
        **subjects.coordinates(),
        **coordinates(part=parts),
        "state_gradient": Labelled((*AXES, "layer"), by_layer, "norm of the gradient by the states after a layer"),
        "gradient_norm": Labelled(("network", "seed", "step", "part"), by_step, "gradient norm of a part's weights"),
    }
    return Outcome(arrays, _summary, _draw)


def state_gradients(network: TokenNetwork, inputs: torch.Tensor, labels: torch.Tensor) -> Floats:
    """Return the norms |∂ loss/∂u_l| (layers + 1,) of the gradients by the states u_l after l layers, from l = 0.

    The loss is the mean cross entropy multiplied by the number of examples.
    """
    trace = Trace([], [])
    loss = loss_of(network(inputs, trace), labels) * len(labels)
    return np.array([float(g.double().norm()) for g in torch.autograd.grad(loss, trace.states)])


def _summary(found: Outcome) -> str:
    by_layer, by_step = found["state_gradient"], found["gradient_norm"]
    rows = []
    for i, kind in enumerate(KINDS):
        ratio = by_layer[i, :, :, 0] / by_layer[i, :, :, -1]
        trained = by_step[i, :, :, 1] / by_step[i, :, :, -2]  # first and last layer
        ratios = [mean_and_spread(np.nanmedian(trained, axis=1))]
        rows.append([kind, *(mean_and_spread(ratio[j]) for j in range(len(STATES))), *ratios])
    return table(
        [
            "network",
            *(f"states, first/last, {state}" for state in STATES),
            "weights, first/last layer, median of steps",
        ],
        rows,
    )


def _draw(figure: Figure, found: Outcome) -> None:
    by_layer, by_step, parts = (found[name] for name in ("state_gradient", "gradient_norm", "part"))
    figure.set_size_inches(11.0, 3.8)
    axes = figure.subplots(1, 3)
    axes[2].sharey(axes[1])
    curves(axes[0], np.arange(by_layer.shape[-1]), by_layer / by_layer[..., -1:])
    for i, kind in enumerate(KINDS):
        colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(parts)))
        for part, name in enumerate(parts):
            axes[i + 1].plot(np.median(by_step[i, :, :, part], axis=0), color=colors[part], lw=0.7, label=name)
        axes[i + 1].set(xlabel="step", yscale="log", title=NAMES[kind])
    axes[0].set(xlabel="layers passed", ylabel="gradient norm of states, relative to the last", yscale="log")
    axes[0].xaxis.get_major_locator().set_params(integer=True)
    axes[1].set_ylabel("gradient norm of the weights")
    axes[0].legend(fontsize=8, frameon=False)
    axes[2].legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
