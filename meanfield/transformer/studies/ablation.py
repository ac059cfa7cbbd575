"""Ablation of a trained Transformer: parts that prevent collapse, compared with random and rotated matrices.

Numbers of each head, and the collapse that they predict:

steepness    β‖W_QᵀW_K‖: the range of logits of unit vectors
radius       |λ|, sign Re λ of the eigenvalue λ of V = W_O W_V that is largest in modulus
overlap      mean cos² of the principal angles between the column spaces of W_O of two heads of a layer; d_head/d for
             random spaces
predicted    log(|h̄ + A(h̄)|/|h̄|) of a layer: where all tokens are near their mean h̄, attention moves them
             alike; their common part grows by this factor while their differences are unchanged
seen         −½ log((1 − c_k)/(1 − c_{k−1})), c the mean cosine
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import table
from meanfield.domains.trained.diagnostics import mean_cosine
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, SKY
from meanfield.model.matrices import norm_of_product
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.arguments import names_of, require_drops, require_integers
from meanfield.transformer.families import arrays_of, family_of, form_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.model import HiddenStates, read_with, short_name
from meanfield.transformer.sources import Texts, read_texts
from meanfield.transformer.studies.measures import (
    MEASURES,
    STYLES,
    group_by_variant,
    legend_label,
    measure_variants,
    variants_of,
)
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def head_figures(texts: Sequence[HiddenStates], drop: Sequence[str] = ()) -> dict[str, Labelled]:
    """Return measures of the attention heads of a model, and the rates at which its layers make tokens collapse.

    The arrays by head (block, head) describe the matrices W_QᵀW_K and W_O W_V, a block being a layer. The arrays by
    text (text, block) are the rates predicted from attention alone and those seen, both without tokens in ``drop``.
    """
    model = texts[0]
    family = family_of(model.name, model.config)
    form = form_of(family, model.network)
    layers = [arrays_of(family, model.network, k) for k in range(model.layers)]
    slopes = np.array([[form.beta * norm_of_product(q, k) for q, k, _, _ in heads_of(a)] for a in layers])
    values = np.array([[leading_eigenvalue(v, out) for _, _, v, out in heads_of(a)] for a in layers])
    overlaps = np.array([head_overlap(a["out"]) for a in layers])
    measured = [states.hidden[:, states.mask_of_remaining(drop)] for states in texts]
    predicted = [
        [predicted_rate(TrainedLayer(form, a), h) for a, h in zip(layers, hidden, strict=False)] for hidden in measured
    ]
    cosines = np.array([[mean_cosine(unit_vectors(h)) for h in hidden] for hidden in measured])
    _, d, d_head = layers[0]["out"].shape
    by_head, by_text = ("block", "head"), ("text", "block")
    return {
        "head_steepness": Labelled(by_head, slopes, "beta times the norm of W_Q^T W_K"),
        "head_radius": Labelled(by_head, np.abs(values), "modulus of the leading eigenvalue of W_O W_V"),
        "head_sign": Labelled(by_head, np.sign(values.real), "sign of the real part of that eigenvalue"),
        "head_overlap": Labelled(("block",), overlaps, "mean squared cosine of principal angles between two heads"),
        "head_overlap_random": Labelled((), np.array(d_head / d), "head_overlap of random heads: d_head / d"),
        "rate_predicted": Labelled(
            by_text, np.array(predicted), "collapse rate of a layer: log of |mean + A(mean)|/|mean|"
        ),
        "rate_seen": Labelled(
            by_text,
            -0.5 * np.diff(np.log(1 - cosines)),
            "collapse rate of a layer: half the decrease of log(1 - cosine)",
        ),
        **coordinates(block=np.arange(len(layers)) + 1, head=np.arange(slopes.shape[1]) + 1),
    }


def table_by_layer(found: Outcome) -> str:
    """Return a Markdown table with a row for each layer: matrices of its attention heads, and collapse rates.

    The matrices have median and range over heads, and the number of heads with Re λ > 0, λ the leading eigenvalue of
    W_O W_V. The overlap of heads is relative to that of random heads. The rates have mean ± standard deviation over
    texts.
    """
    head = (
        *("layer", "β‖W_QᵀW_K‖", "abs λ of W_O W_V", "Re λ > 0", "overlap of heads / random"),
        *("predicted collapse rate", "observed rate"),
    )
    rows, overlap = [], found["head_overlap"] / found["head_overlap_random"]
    for k, signs in enumerate(found["head_sign"]):
        numbers = [found[name][k] for name in ("head_steepness", "head_radius")]
        ranges = [f"{np.median(v):.3g} ({v.min():.3g} to {v.max():.3g})" for v in numbers]
        rates = [f"{v.mean():.2g} ± {v.std():.1g}" for v in (found[f"rate_{n}"][:, k] for n in ("predicted", "seen"))]
        rows.append([str(k + 1), *ranges, f"{(signs > 0).sum()} of {len(signs)}", f"{overlap[k]:.3g}", *rates])
    return table(head, rows)


def heads_of(arrays: dict[str, Floats]) -> Iterator[tuple[Floats, ...]]:
    """Return an iterator over the attention heads of a layer: matrices query, key, value and out of each.

    The first three are (d_head, d), out is (d, d_head). Several heads may share a key and a value.
    """
    shared = (np.repeat(arrays[name], len(arrays["query"]) // len(arrays[name]), axis=0) for name in ("key", "value"))
    return zip(arrays["query"], *shared, arrays["out"], strict=True)


def head_overlap(out: Floats) -> float:
    """Return the mean of cos² of the principal angles between the column spaces of W_O of two different heads.

    ``out`` (heads, d, d_head) are the matrices W_O. The result is 0 for orthogonal spaces and 1 for equal ones. For
    independent random spaces its expected value is d_head/d, since E[P] = (d_head/d) I for the projection P onto such a
    space. A single head has NaN.
    """
    bases = np.linalg.qr(out)[0]
    cosines = np.einsum("idr,jds->ijrs", bases, bases)
    i, j = np.triu_indices(len(bases), k=1)
    return float((cosines[i, j] ** 2).sum(axis=(1, 2)).mean() / out.shape[2]) if len(i) else np.nan


def leading_eigenvalue(value: Floats, out: Floats) -> complex:
    """Return the eigenvalue of largest modulus of W_O W_V, the matrix V of an attention head.

    W_V is ``value`` (d_head, d), W_O is ``out`` (d, d_head). The small matrix W_V W_O has the same nonzero eigenvalues.
    """
    found = np.linalg.eigvals(value @ out)
    return complex(found[np.abs(found).argmax()])


def predicted_rate(layer: TrainedLayer, states: Floats) -> float:
    """Return the predicted collapse rate log(|h̄ + A(h̄)|/|h̄|) of a layer: h̄ mean of the states (n, d), A attention.

    Where all tokens are near h̄, attention moves them alike: their common part grows by this factor while their
    differences are unchanged.
    """
    mean = states.mean(axis=0, keepdims=True)
    return float(np.log(np.linalg.norm(mean + layer.output(mean, "attention")) / np.linalg.norm(mean)))


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
    r"""Measure which parts of a trained Transformer prevent collapse, against random and rotated matrices.

    Parameters
    ----------
    model : str or Path
        Folder of a model, or name on the hub of Hugging Face.
    texts : str, Path or mapping, optional
        Folder with files ``*.txt``, or texts by name. None: ten texts of the package.
    without : sequence of str or sequences of str
        Sets of parts that are left out together, such as "network,biases", of the parts of
        :func:`~meanfield.transformer.case`.
    seeds : int
        Number of models with random and with rotated matrices.
    drop : str or sequence of str
        Tokens that are moved but not measured: "special", "first". A str has commas between names.

    Returns
    -------
    Outcome
        Arrays cosine, clusters, energy, rank and agreement (variant, text, layer); head_steepness, head_radius and
        head_sign (block, head); head_overlap (block,), and head_overlap_random of random heads; rate_predicted and
        rate_seen (text, block). The variants are the whole model, the
        model without each set of parts, tokens at rest, and random and rotated matrices of each seed.

    Raises
    ------
    CaseError
        If the model or a text cannot be read, if fewer than two tokens of a text remain, or if an argument is not
        valid.

    Warns
    -----
    TextWarning
        If a text is cut because it is longer than the context of the model, or has tokens that are not in the
        vocabulary of the model.

    References
    ----------
    Dong et al., arXiv:2103.03404, for parts that prevent collapse.

    Examples
    --------
    Mean inner product of two tokens after the last layer: of the whole model, and without its feed-forward network.

    >>> import meanfield as mf
    >>> model = "sentence-transformers/all-MiniLM-L6-v2"
    >>> found = mf.transformer.ablate(model, without=["network"])  # doctest: +SKIP
    >>> found["cosine"][:2, :, -1].mean(axis=1).round(3)  # doctest: +SKIP
    array([0.319, 0.269])
    """
    require_integers(1, seeds=seeds)
    variants, dropped = variants_of([names_of(parts) for parts in without], seeds), require_drops(drop)
    states = read_with(model, read_texts(texts), family_of)
    arrays = measure_variants(states, variants, dropped) | head_figures(states, dropped)
    title = f"{short_name(model)}, {len(states)} texts: mean ± standard deviation"
    return Outcome(arrays, _summary, _draw, title, {"model": str(model), "drop": ",".join(dropped)})


def _summary(found: Outcome) -> str:
    """Return the tables of an ablation: measures after the last layer, and numbers of each layer."""
    return f"{last_layer_table(found)}\n\n{table_by_layer(found)}"


def last_layer_table(found: Outcome) -> str:
    """Return a Markdown table of cosine, clusters and other measures of tokens after the last layer.

    Rows are variants of a model, such as without layer norm; numbers are mean ± standard deviation over texts.
    """
    columns = {quantity: group_by_variant(found, quantity) for quantity in MEASURES}
    rows = []
    for name in next(iter(columns.values())):
        cells = [f"{mean[-1]:.3g} ± {spread[-1]:.2g}" for mean, spread in (column[name] for column in columns.values())]
        rows.append([name, *cells])
    return table(["variant", *columns], rows)


def _draw(figure: Figure, found: Outcome) -> None:
    """Draw cosine, clusters, energy and rank of each variant by layer, as mean ± standard deviation over texts."""
    figure.set_size_inches(9.6, 7.2)
    axes = figure.subplots(2, 2)
    others = iter(COLORS)
    colors: dict[str, tuple[str, str]] = {}
    for ax, (quantity, label) in zip(axes.flat, PANELS.items(), strict=True):
        for name, (mean, spread) in group_by_variant(found, quantity).items():
            if name not in colors:
                colors[name] = STYLES[name] if name in STYLES else (next(others, "0.4"), "-")
            _band(ax, mean, spread, *colors[name], legend_label(name))
        ax.set(xlabel="layers passed", ylabel=label)
    figure.suptitle(found.title, fontsize=11)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.02 + 0.025 * -(-len(colors) // 3), 1, 1))


def _band(ax: Axes, mean: Floats, spread: Floats, color: str, style: str, name: str) -> None:
    """Draw means (layers + 1,) by layer, with a band of the standard deviations ``spread``."""
    layers = np.arange(len(mean))
    ax.plot(layers, mean, color=color, ls=style, lw=1.5, label=name)
    ax.fill_between(layers, np.maximum(mean - spread, 0.0), mean + spread, color=color, alpha=0.12, lw=0)
