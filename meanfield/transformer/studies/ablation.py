"""Ablation of a trained Transformer: which parts keep tokens apart, beside random and rotated matrices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.analysis.text import table
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, SKY
from meanfield.transformer.arguments import names_of, require_drops, require_integers
from meanfield.transformer.families import family_of
from meanfield.transformer.labelled import Outcome
from meanfield.transformer.model import read_with, short_name
from meanfield.transformer.sources import Texts, read_texts
from meanfield.transformer.studies.head_figures import head_figures, table_by_layer
from meanfield.transformer.studies.measures import MEASURES, STYLES, grouped, measured, variants_of
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EACH_PART = ("network", "biases", "gains", "attention", "network,biases,gains")
PANELS = {"cosine": "mean inner product", "clusters": "clusters", "energy": "energy", "rank": "effective rank"}
COLORS = (BLUE, GREEN, ORANGE, PURPLE, SKY)


def ablate(
    model: str | Path,
    texts: Texts = None,
    *,
    without: Sequence[str | Sequence[str]] = EACH_PART,
    seeds: int = 3,
    drop: str | Sequence[str] = (),
) -> Outcome:
    r"""Measure which parts of a trained Transformer keep tokens apart, beside random and rotated matrices.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    texts : str, Path or mapping, optional
        Folder with files `*.txt`, or texts by name; None: ten texts of the package.
    without : sequence of str or sequences of str
        Sets of parts that are left out together, such as "network,biases".
    seeds : int
        Number of models with random and with rotated matrices.
    drop : sequence of str, or str with commas
        Tokens that are moved but not measured: "special", "first".

    Returns
    -------
    Outcome
        Arrays cosine, clusters, energy, rank and agreement (variant, text, layer); head_steepness, head_radius and
        head_sign (block, head); rate_predicted and rate_seen (text, block).

    Raises
    ------
    CaseError
        If the model or a text cannot be read, or an argument cannot be.

    References
    ----------
    Dong et al., arXiv:2103.03404, for parts that keep tokens apart.

    Examples
    --------
    >>> found = mf.transformer.ablate("minilm", without=["network"])  # doctest: +SKIP
    >>> found["cosine"][0].mean(axis=0)  # of the whole model by layer  # doctest: +SKIP
    """
    require_integers(1, seeds=seeds)
    variants, dropped = variants_of([names_of(parts) for parts in without], seeds), require_drops(drop)
    states = read_with(model, read_texts(texts), family_of)
    arrays = measured(states, variants, dropped) | head_figures(states)
    title = f"{short_name(model)}, {len(states)} texts"
    return Outcome(arrays, _summary, _draw, title, {"model": str(model), "drop": ",".join(dropped)})


def _summary(found: Outcome) -> str:
    return f"{last_layer_table(found)}\n\n{table_by_layer(found)}"


def last_layer_table(found: Outcome) -> str:
    """Return a Markdown table: the measures of each variant after the last layer, mean ± spread."""
    columns = {quantity: grouped(found, quantity) for quantity in MEASURES}
    rows = []
    for name in next(iter(columns.values())):
        cells = [f"{mean[-1]:.3g} ± {spread[-1]:.2g}" for mean, spread in (column[name] for column in columns.values())]
        rows.append([name, *cells])
    return table(["variant", *columns], rows)


def _draw(figure: Figure, found: Outcome) -> None:
    """Four panels: mean over texts by layer, with a band of one standard deviation."""
    figure.set_size_inches(9.6, 7.2)
    axes = figure.subplots(2, 2)
    others = iter(COLORS)
    colors: dict[str, tuple[str, str]] = {}
    for ax, (quantity, label) in zip(axes.flat, PANELS.items(), strict=True):
        for name, (mean, spread) in grouped(found, quantity).items():
            if name not in colors:
                colors[name] = STYLES[name] if name in STYLES else (next(others, "0.4"), "-")
            _band(ax, mean, spread, *colors[name], name)
        ax.set(xlabel="layers passed", ylabel=label)
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.suptitle(found.title, fontsize=11)
    figure.tight_layout()


def _band(ax: Any, mean: Floats, spread: Floats, color: str, style: str, name: str) -> None:
    layers = np.arange(len(mean))
    ax.plot(layers, mean, color=color, ls=style, lw=1.5, label=name)
    ax.fill_between(layers, mean - spread, mean + spread, color=color, alpha=0.12, lw=0)
