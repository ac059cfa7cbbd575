"""File, table and figure of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import table
from meanfield.transformer.fitting.fit import SETS, Found
from meanfield.transformer.labelled import Labelled, write_labelled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_fit(path: str | Path, found: Found, attributes: dict[str, str]) -> None:
    """Errors (law, set, layer), beta and value (law, layer), in a new file or in place of one."""
    layers = np.arange(found.errors.shape[2]) + 1
    write_labelled(
        path,
        {
            "law": Labelled(("law",), list(found.laws)),
            "set": Labelled(("set",), list(SETS)),
            "layer": Labelled(("layer",), layers),
            "error": Labelled(("law", "set", "layer"), found.errors, "squared error by that of standing still"),
            "beta": Labelled(("law", "layer"), found.beta, "inverse temperature of the law"),
            "value": Labelled(("law", "layer"), found.value, "v of V = vI"),
        },
        attributes,
    )


def fit_table(found: Found) -> str:
    """Markdown table: the mean error of each law over layers."""
    rows = [
        [law, *(f"{part.mean():.3g}" for part in errors)] for law, errors in zip(found.laws, found.errors, strict=True)
    ]
    return table(["law", *SETS], rows)


def draw_fit(figure: Figure, found: Found, title: str) -> None:
    """Errors by layer of texts held back, and β and v of the law with numbers by layer."""
    import matplotlib

    figure.set_size_inches(11.0, 4.2)
    axes = figure.subplots(1, 2, width_ratios=(2, 1))
    layers = np.arange(found.errors.shape[2]) + 1
    shown = len(found.laws) - 1  # the whole model's error is rounding
    for k, color in enumerate(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, shown))):
        axes[0].plot(layers, found.errors[k, 1], "o-", ms=3, color=color, label=found.laws[k])
        axes[0].plot(layers, found.errors[k, 0], ":", lw=1, color=color)
    axes[0].set(xlabel="layer", ylabel="error by that of standing still", ylim=(0, None))
    axes[0].set_title(f"{title}: texts held back (dotted: fitted to)", fontsize=9)
    axes[0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].plot(layers, found.beta[2], "o-", ms=3, label="β")
    axes[1].plot(layers, found.value[2], "s-", ms=3, label="v")
    axes[1].set(xlabel="layer", title=found.laws[2])
    axes[1].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.set_xticks(layers)
    figure.tight_layout()
