"""File and figure of an ablation: HDF5 with named dimensions, which xarray opens, and four panels by layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.figures.run_data import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from meanfield.transformer.ablation import STILL, WHOLE, Ablation, grouped
from meanfield.transformer.head_figures import HeadFigures
from meanfield.transformer.labelled import Labelled, write_labelled
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG_NAMES = {
    "cosine": "mean inner product of two different tokens",
    "clusters": "number of clusters of directions by persistence",
    "energy": "half the mean of e^<x,y> over all pairs of directions",
    "rank": "effective rank of the directions",
    "agreement": "mean inner product of a token with the same one of the whole model",
    "head_steepness": "beta times the norm of W_Q^T W_K",
    "head_radius": "modulus of the leading eigenvalue of W_O W_V",
    "head_sign": "sign of the real part of that eigenvalue",
    "rate_predicted": "collapse rate of a layer: log of |mean + A(mean)|/|mean|",
    "rate_seen": "collapse rate of a layer: half the decrease of log(1 - cosine)",
}
PANELS = {"cosine": "mean inner product", "clusters": "clusters", "energy": "energy", "rank": "effective rank"}
COLORS = (BLUE, GREEN, ORANGE, PURPLE, SKY)
STYLES = {WHOLE: (BLACK, "-"), STILL: ("0.6", "--"), "random": (VERMILION, "--"), "rotated": (VERMILION, ":")}


def write_ablation(
    path: str | Path, ablation: Ablation, heads: Sequence[HeadFigures], attributes: dict[str, str]
) -> None:
    """Write a new file, or replace one: measures (variant, text, layer), figures of heads (text, layer, head)."""
    names = ("variant", "text", "layer")
    arrays = {
        "variant": Labelled(("variant",), list(ablation.variants)),
        "text": Labelled(("text",), list(ablation.texts)),
        **{name: Labelled(names, values, LONG_NAMES[name]) for name, values in ablation.measures.items()},
    }
    of_heads = {
        "head_steepness": (("block", "head"), heads[0].steepness),
        "head_radius": (("block", "head"), heads[0].radius),
        "head_sign": (("block", "head"), heads[0].sign),
        "rate_predicted": (("text", "block"), np.array([one.predicted for one in heads])),
        "rate_seen": (("text", "block"), np.array([one.seen for one in heads])),
    }
    blocks, count = heads[0].steepness.shape
    arrays |= {name: Labelled(dims, values, LONG_NAMES[name]) for name, (dims, values) in of_heads.items()}
    arrays |= {"block": Labelled(("block",), np.arange(blocks) + 1), "head": Labelled(("head",), np.arange(count) + 1)}
    write_labelled(path, arrays, attributes)


def draw_ablation(figure: Figure, ablation: Ablation, title: str) -> None:
    """Four panels: mean over texts by layer, with a band of one standard deviation."""
    figure.set_size_inches(9.6, 7.2)
    axes = figure.subplots(2, 2)
    others = iter(COLORS)
    colors: dict[str, tuple[str, str]] = {}
    for ax, (quantity, label) in zip(axes.flat, PANELS.items(), strict=True):
        for name, (mean, spread) in grouped(ablation, quantity).items():
            if name not in colors:
                colors[name] = STYLES[name] if name in STYLES else (next(others, "0.4"), "-")
            _band(ax, mean, spread, *colors[name], name)
        ax.set(xlabel="layers passed", ylabel=label)
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()


def _band(ax: Any, mean: Floats, spread: Floats, color: str, style: str, name: str) -> None:
    layers = np.arange(len(mean))
    ax.plot(layers, mean, color=color, ls=style, lw=1.5, label=name)
    ax.fill_between(layers, mean - spread, mean + spread, color=color, alpha=0.12, lw=0)
