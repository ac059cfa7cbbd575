"""Figure of training: loss, accuracy, gradient norms by part and sizes of states by layer."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from meanfield.transformer.networks.training import Fit, parts_of


def draw_training(fit: Fit, figure: Figure | None = None) -> Figure:
    """Draw a training in four panels: loss and accuracy by epoch, gradient norms and sizes of states by step.

    Gradients and states have logarithmic axes, and colors from dark to light with depth.
    """
    figure = Figure() if figure is None else figure
    figure.set_size_inches(9.6, 7.2)
    axes, history = figure.subplots(2, 2), fit.history
    epochs, steps = np.arange(len(history.test_loss)), np.arange(len(history.loss))
    for name, style in (("train", "-"), ("test", "--")):
        axes[0, 0].plot(epochs, getattr(history, f"{name}_loss"), f"k{style}", label=name)
        axes[0, 1].plot(epochs, getattr(history, f"{name}_accuracy"), f"k{style}", label=name)
    axes[0, 0].set(xlabel="epoch", ylabel="cross entropy (nats)", yscale="log")
    axes[0, 1].set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1.02))
    axes[0, 0].legend(frameon=False)
    for ax in axes[0]:
        ax.xaxis.get_major_locator().set_params(integer=True)
    layers = ["embedding", *(f"layer {k + 1}" for k in range(len(fit.network.body.layers)))]
    for ax, rows, names, label in (
        (axes[1, 0], history.gradient_norm, list(parts_of(fit.network)), "gradient norm"),
        (axes[1, 1], history.state_norm, layers, "root mean square of states"),
    ):
        colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(names)))
        curves = np.array(rows).reshape(len(steps), len(names)).T
        for values, name, color in zip(curves, names, colors, strict=True):
            ax.plot(steps, values, color=color, lw=0.8, label=name)
        ax.set(xlabel="step", ylabel=label, yscale="log")
        ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle(" · ".join(text for text in (fit.case.title, fit.stopped) if text), fontsize=11)
    figure.tight_layout()
    return figure
