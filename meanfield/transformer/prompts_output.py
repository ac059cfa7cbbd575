"""File, tables and figure of prompts through a model: HDF5 with named dimensions, which xarray opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.analysis.text import table
from meanfield.figures.run_data import BLACK, BLUE, VERMILION
from meanfield.transformer.ablation import STILL, WHOLE
from meanfield.transformer.labelled import Labelled, write_labelled
from meanfield.transformer.next_token import NextToken
from meanfield.transformer.prompts import Compression, line_through
from meanfield.transformer.stacking import LAW
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = {WHOLE: (BLACK, "-"), LAW: (BLUE, "-"), "random": (VERMILION, "--"), STILL: ("0.6", "--")}
BY_PROMPT, WORDS = ("layer", "prompt"), {
    "entropy": "entropy of the distribution of the next token", "divergence": "KL of the last layer's from it",
    "likelihood": "largest probability", "top": "number of the likeliest token",
}  # fmt: skip


def write_prompts(
    path: str | Path,
    found: Compression,
    texts: Sequence[str],
    after: NextToken | None,
    attributes: dict[str, str],
    decode: Callable[[int], str] = str,
) -> None:
    """Write a new file, or replace one; ``after`` is the next token where a model has a head, as text by ``decode``."""
    dims = ("variant", "layer", "prompt")
    arrays = {
        "variant": Labelled(("variant",), list(found.variants)),
        "prompt": Labelled(("prompt",), list(texts)),
        "distance": Labelled((*dims, "other"), found.distances, "W1 distance of the tokens of two prompts", "rad"),
        "entropy": Labelled(dims, found.entropy, "von Neumann entropy of the directions of a prompt's tokens", "nat"),
        "clusters": Labelled(dims, found.clusters, "clusters of a prompt's tokens"),
        "states": Labelled(dims[:2], found.states, "groups of prompts"),
    }
    if after is not None:
        arrays |= {f"next_{name}": Labelled(BY_PROMPT, getattr(after, name), text) for name, text in WORDS.items()}
        words = [[decode(int(token)) for token in layer] for layer in after.top]
        arrays["next_text"] = Labelled(BY_PROMPT, words, "likeliest token, UTF-8")
        arrays["next_apart"] = Labelled(("layer",), after.apart, "total variation between two prompts' distributions")
    write_labelled(path, arrays, attributes)


def table_of(found: Compression) -> str:
    """Markdown table: the prompts of each variant before and after the layers."""
    head = ("variant", "distance", "entropy", "entropy a layer, R²", "clusters of a prompt", "groups of prompts")
    rows = []
    for k, name in enumerate(found.variants):
        entropy = found.entropy[k].mean(axis=1)
        slope, share = line_through(entropy)
        cells = [
            _ends(found.mean_distance[k], ".3f"), _ends(entropy, ".3f"), f"{slope:+.3f}, {share:.2f}",
            _ends(found.clusters[k].mean(axis=1), ".1f"), _ends(found.states[k], ".0f"),
        ]  # fmt: skip
        rows.append([name, *cells])
    return table(head, rows)


def table_of_next(after: NextToken) -> str:
    """The next token by layer, means over prompts, as Markdown."""
    head = ("layers passed", "entropy", "KL of the last from it", "total variation of two prompts")
    rows = []
    for k, apart in enumerate(after.apart):
        values = (after.entropy[k].mean(), after.divergence[k].mean(), apart)
        rows.append([str(k), *(f"{value:.3f}" for value in values)])
    return table(head, rows)


def draw_prompts(figure: Figure, found: Compression, after: NextToken | None, title: str) -> None:
    """Distance, entropy, clusters and groups by layer, and the next token where there is one."""
    figure.set_size_inches(10.0, 7.0 if after is None else 10.0)
    axes = figure.subplots(2 if after is None else 3, 2).ravel()
    panels: list[tuple[str, Floats]] = [
        ("mean $W_1$ of two prompts (rad)", found.mean_distance),
        ("entropy of a prompt (nats)", found.entropy.mean(axis=2)),
        ("clusters of a prompt", found.clusters.mean(axis=2)),
        ("groups of prompts", found.states),
    ]
    for ax, (label, values) in zip(axes, panels, strict=False):
        for name, rows in zip(found.variants, values, strict=True):
            color, style = STYLES[name]
            ax.plot(rows, color=color, ls=style, lw=1.5, label=name)
        ax.set(xlabel="layers passed", ylabel=label, ylim=(0, None))
    axes[0].legend(fontsize=8, frameon=False)
    if after is not None:
        _draw_next(axes[4], axes[5], after)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()


def _draw_next(left: Any, right: Any, after: NextToken) -> None:
    left.plot(after.entropy.mean(axis=1), color=BLACK, label="entropy")
    left.plot(after.divergence.mean(axis=1), color=BLUE, label="KL of the last layer's from it")
    left.set(xlabel="layers passed", ylabel="next token (nats)", ylim=(0, None))
    left.legend(fontsize=8, frameon=False)
    right.plot(after.apart, color=BLACK)
    right.set(xlabel="layers passed", ylabel="total variation of two prompts", ylim=(0, 1))


def _ends(values: Floats, form: str) -> str:
    return f"{np.asarray(values)[0]:{form}} → {np.asarray(values)[-1]:{form}}"
