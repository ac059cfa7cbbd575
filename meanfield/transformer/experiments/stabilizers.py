"""Ablation of stabilizers: residual × layer norm × depth × learning rate, for both networks.

    accuracy    of the test examples, after training or at an explosion
    explosion   fraction of the steps at which training exploded; 1 without an explosion
    gradient    log10 of the largest gradient norm of any part at any step
    cosine      mean of ⟨x_i, x_j⟩ over i ≠ j after the last layer: 1 where all tokens have collapsed to one state

Each network is a point; points are trained in separate processes, or by the workers of Dask.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.running import Printer
from meanfield.transformer.experiments.drawing import NAMES
from meanfield.transformer.experiments.information_flow import mean_cosine_of
from meanfield.transformer.experiments.subjects import KINDS, case_of
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.network import traced
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import begin, train

DEPTHS = (2, 6, 12)
RATES = (1e-3, 1e-2, 1e-1)
RESIDUALS = (True, False)
LAYER_NORMS = ("pre", "none")
AXES = ("network", "residual", "layer_norm", "layers", "rate", "seed")
EXAMPLES = 64
MEASURES = {  # long name, limits of color, color map
    "accuracy": ("fraction of correct answers on the test examples", (0.0, 1.0), "viridis"),
    "explosion": ("fraction of training until an explosion, 1 without one", (0.0, 1.0), "magma"),
    "gradient": ("log10 of the largest gradient norm", (-1.0, 4.0), "cividis"),
    "cosine": ("mean inner product of two tokens after the last layer", (0.0, 1.0), "plasma"),
}


def stabilizers(
    case: TrainingCase,
    seeds: tuple[int, ...],
    show: Printer,
    workers: Workers = HERE,
    depths: Sequence[int] = DEPTHS,
    rates: Sequence[float] = RATES,
) -> Outcome:
    """Train networks with all combinations of residual, layer norm, depth and learning rate, and return their measures.

    Each measure is an array (network, residual, layer_norm, layers, rate, seed).
    """
    axes: tuple[Sequence[Any], ...] = (KINDS, RESIDUALS, LAYER_NORMS, depths, rates, seeds)
    cases, found = [_case(case, *point) for point in itertools.product(*axes)], []
    for one, values in zip(cases, workers.map(train_and_measure, cases), strict=True):
        found.append(values)
        show(f"{len(found)} of {len(cases)}: {_label(one)}: accuracy {values['accuracy']:.3f}")
    shape = [len(axis) for axis in axes]
    arrays = {
        **coordinates(network=KINDS, residual=["yes", "no"], layer_norm=LAYER_NORMS, layers=depths),
        "rate": Labelled(("rate",), np.array(rates), "largest learning rate"),
        **coordinates(seed=seeds),
        **{
            name: Labelled(AXES, np.reshape([values[name] for values in found], shape), long_name)
            for name, (long_name, _, _) in MEASURES.items()
        },
    }
    return Outcome(arrays, _summary, _draw)


def _case(
    case: TrainingCase, kind: str, residual: bool, norm: str, layers: int, rate: float, seed: int
) -> TrainingCase:
    """Return the training case of one network, with the given kind, options and seed.

    Raises CaseError for options that exclude each other.
    """
    overrides = [f"network.residual={str(residual).lower()}", f'network.layer_norm="{norm}"']
    return case_of(case.replace([*overrides, f"network.layers={layers}", f"training.rate={rate}"]), kind, seed)


def train_and_measure(case: TrainingCase) -> dict[str, float]:
    """Train one network, and return its accuracy, time of explosion, largest gradient and cosine of tokens by name.

    PyTorch has one thread, because the last digits of sums depend on the number of threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure(case)
    finally:
        torch.set_num_threads(threads)


def _measure(case: TrainingCase) -> dict[str, float]:
    fit = train(begin(case, task_of(case)))
    steps = case.training.epochs * -(-len(fit.task.train) // case.training.batch)
    gradients = np.array(fit.history.gradient_norm)
    largest = np.nanmax(np.where(np.isfinite(gradients), gradients, np.nan), initial=1e-300)
    _, trace = traced(fit.network, fit.task.test.inputs[:EXAMPLES])
    return {
        "accuracy": fit.history.test_accuracy[-1],
        "explosion": len(fit.history.loss) / steps if fit.stopped else 1.0,
        "gradient": float(np.log10(largest)),
        "cosine": mean_cosine_of(trace.states[-1].double().numpy()),
    }


def _label(case: TrainingCase) -> str:
    network = case.network
    residual = "residual" if network.residual else "no residual"
    described = f"{network.kind}, {residual}, layer norm {network.layer_norm}, {network.layers} layers"
    return f"{described}, rate {case.training.rate:g}"


def _summary(found: Outcome) -> str:
    rows, depths, rates = [], found["layers"], found["rate"]
    for k, residual, norm in np.ndindex(len(KINDS), len(RESIDUALS), len(LAYER_NORMS)):
        accuracy, cosine = (found[name][k, residual, norm].mean(axis=-1) for name in ("accuracy", "cosine"))
        best = np.unravel_index(np.argmax(accuracy), accuracy.shape)
        exploded = (found["explosion"][k, residual, norm] < 1).mean()
        rows.append([
            KINDS[k], "yes" if RESIDUALS[residual] else "no", LAYER_NORMS[norm],
            f"{accuracy[best]:.3f} ({depths[best[0]]} layers, rate {rates[best[1]]:g})",
            f"{accuracy[-1].max():.3f}", f"{100 * exploded:.0f} %", f"{cosine[-1].mean():.2f}",
        ])  # fmt: skip
    head = ["network", "residual", "layer norm", "best accuracy", f"best at {depths[-1]} layers", "exploded"]
    return table([*head, f"cosine at {depths[-1]} layers"], rows)


def _draw(figure: Figure, found: Outcome) -> None:
    """Draw each measure over learning rate and depth, in a panel for each kind of network, residual and layer norm."""
    figure.set_size_inches(12.0, 7.4)
    combinations = list(np.ndindex(len(KINDS), len(RESIDUALS), len(LAYER_NORMS)))
    axes = figure.subplots(len(MEASURES), len(combinations), sharex=True, sharey=True)
    figure.subplots_adjust(left=0.08, right=0.97, top=0.9, bottom=0.08, wspace=0.08, hspace=0.12)
    for row, (name, (long_name, limits, colors)) in zip(axes, MEASURES.items(), strict=True):
        for ax, place in zip(row, combinations, strict=True):
            values = found[name][place].mean(axis=-1)
            image = ax.imshow(values, vmin=limits[0], vmax=limits[1], cmap=colors, origin="lower", aspect="auto")
            for (y, x), value in np.ndenumerate(values):
                light = image.norm(value) < 0.6
                ax.text(x, y, f"{value:.2g}", ha="center", va="center", fontsize=7, color="w" if light else "k")
        row[0].set_ylabel(f"{textwrap.fill(long_name, 26)}\n\nlayers", fontsize=7)
        figure.colorbar(image, ax=list(row), pad=0.01, fraction=0.02).set_label(name, fontsize=8)
    for ax, (k, residual, norm) in zip(axes[0], combinations, strict=True):
        named = "no layer norm" if LAYER_NORMS[norm] == "none" else f"layer norm {LAYER_NORMS[norm]}"
        words = f"{'residual' if RESIDUALS[residual] else 'no residual'}\n{named}"
        ax.set_title(f"{NAMES[KINDS[k]]}\n{words}", fontsize=8)
    for ax in axes[-1]:
        ax.set_xticks(range(len(found["rate"])), [f"{rate:g}" for rate in found["rate"]], fontsize=7)
        ax.set_yticks(range(len(found["layers"])), [str(depth) for depth in found["layers"]], fontsize=7)
        ax.set_xlabel("learning rate", fontsize=8)
