"""Information flow: similarity and rank of the representations layer by layer.

    cka(l, m)  = ‖X_lᵀX_m‖² / (‖X_lᵀX_l‖ ‖X_mᵀX_m‖)    of centered states X (all tokens, d), Frobenius norms
    cosine     mean of ⟨x_i, x_j⟩ over i ≠ j of an example, x = u/|u|
    rank       e^H of the shares of the singular values of X_l
    norm       root mean square of the states

Controls: networks without attention, and for cka the rows of X_m in random order.

Linear CKA: Kornblith and others (1905.00414), section 3; effective rank: Roy and Vetterli (2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.domains.trained.diagnostics import effective_rank, mean_cosine
from meanfield.transformer.experiments.drawing import NAMES, curves
from meanfield.transformer.experiments.statistics import describe
from meanfield.transformer.experiments.subjects import AXES, KINDS, STATES, Subjects
from meanfield.transformer.labelled import Labelled, Outcome
from meanfield.transformer.networks.network import TokenNetwork, traced
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

EXAMPLES = 128
CURVES = {
    "cosine": "mean inner product of two tokens",
    "rank": "effective rank of all states",
    "norm": "root mean square of the states",
}


def information_flow(subjects: Subjects) -> Outcome:
    """Return measures of the hidden states of each network by layer, and the states of one example.

    The measures are the similarity of two layers, the mean cosine of two tokens, the effective rank, and the norm.
    """
    inputs = subjects.inputs(EXAMPLES)
    layers = {id(network): _states(network, inputs) for subject in subjects.all for network in subject.states}
    found = {
        "cka": subjects.measure(lambda network: similarity(layers[id(network)])),
        "cka_shuffled": subjects.measure(lambda network: ends_shuffled(layers[id(network)])),
        "cosine": subjects.measure(lambda network: [mean_cosine_of(u) for u in layers[id(network)]]),
        "rank": subjects.measure(lambda network: [effective_rank(_rows(u)) for u in layers[id(network)]]),
        "norm": subjects.measure(lambda network: [np.sqrt((u**2).mean()) for u in layers[id(network)]]),
        "example": subjects.measure(lambda network: layers[id(network)][:, 0])[:, :, 0],
    }
    by_layer = (*AXES, "layer")
    arrays = {
        **subjects.coordinates(),
        "cka": Labelled((*by_layer, "other_layer"), found["cka"], "linear centered kernel alignment of two layers"),
        "cka_shuffled": Labelled(
            AXES, found["cka_shuffled"], "the same of input and output, tokens of the output shuffled"
        ),
        **{name: Labelled(by_layer, found[name], long_name) for name, long_name in CURVES.items()},
        "example": Labelled(
            ("network", "state", "layer", "token", "component"),
            found["example"],
            "states of an example, first seed",
        ),
    }
    return Outcome(arrays, summary, draw)


def similarity(states: Floats) -> Floats:
    """Return the linear centered kernel alignment (layers + 1, layers + 1) of states (layers + 1, examples, n, d)."""
    centered = [_rows(u) - _rows(u).mean(axis=0) for u in states]
    norms = [np.linalg.norm(x.T @ x) for x in centered]
    return np.array(
        [[(np.linalg.norm(x.T @ y) ** 2) / (a * b) for y, b in zip(centered, norms, strict=True)]
         for x, a in zip(centered, norms, strict=True)]
    )  # fmt: skip


def ends_shuffled(states: Floats) -> float:
    """Return the alignment of the first and the last states, with the tokens of the last ones in random order.

    The states are (layers + 1, examples, n, d).
    """
    order = np.random.default_rng(0).permutation(states.shape[1] * states.shape[2])
    last = _rows(states[-1])[order].reshape(states.shape[1:])
    return float(similarity(np.stack([states[0], last]))[0, 1])


def _states(network: TokenNetwork, inputs: object) -> Floats:
    """Return the states of the tokens before the first layer and after each layer of a network."""
    _, trace = traced(network, inputs)  # type: ignore[arg-type]
    return np.stack([u.double().numpy() for u in trace.states])


def _rows(u: Floats) -> Floats:
    """Return the states of all tokens of all examples as rows, (examples·n, d), from an array (examples, n, d)."""
    return u.reshape(-1, u.shape[-1])


def mean_cosine_of(u: Floats) -> float:
    """Return the mean cosine of two tokens of an example, averaged over the examples u (examples, n, d)."""
    return float(np.mean([mean_cosine(x) for x in unit_vectors(u)]))


def summary(found: Outcome) -> str:
    """Return a table of the measures of the states before the first layer (input) and after the last (output)."""
    rows = []
    for i, name in enumerate(found["network"]):
        for j, state in enumerate(STATES):
            cells = [describe(found[measure][i, j, :, k]) for measure in CURVES for k in (0, -1)]
            ends = found["cka"][i, j, :, 0, -1], found["cka_shuffled"][i, j]
            rows.append([name, state, *cells, *map(describe, ends)])
    head = ["network", "state", *(f"{name}, {end}" for name in CURVES for end in ("input", "output"))]
    return table([*head, "CKA of input and output", "CKA, shuffled"], rows)


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the similarity of layers above, the states of an example in the middle, and curves below."""
    figure.set_size_inches(11.0, 9.6)
    rows: Any = figure.subfigures(3, 1, height_ratios=(1.0, 1.1, 1.3))
    networks = [(i, j) for i in range(len(KINDS)) for j in range(len(STATES))]
    layers = found["cka"].shape[-1]
    for ax, (i, j) in zip(rows[0].subplots(1, 4), networks, strict=True):
        image = ax.imshow(found["cka"][i, j].mean(axis=0), vmin=0, vmax=1, cmap="viridis", origin="lower")
        ax.set_title(f"{NAMES[KINDS[i]]}, {STATES[j]}", fontsize=9)
        ax.set(xlabel="layer", xticks=range(layers), yticks=range(layers))
        ax.tick_params(labelsize=min(9, 72 / layers))
    rows[0].axes[0].set_ylabel("layer")
    rows[0].colorbar(image, ax=rows[0].axes, label="CKA, mean over seeds", shrink=0.8)
    for ax, (i, j) in zip(rows[1].subplots(1, 4), networks, strict=True):
        states = found["example"][i, j]
        limit = np.abs(states).max()
        ax.imshow(states.reshape(-1, states.shape[-1]), cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        tokens = states.shape[1]
        ax.set_yticks(tokens * (np.arange(layers) + 0.5) - 0.5, [str(k) for k in range(layers)])
        ax.tick_params(labelsize=min(9, 72 / layers))
        for edge in range(1, layers):
            ax.axhline(edge * tokens - 0.5, color="k", lw=0.6)
        ax.set_xlabel("component")
        ax.set_title(f"{NAMES[KINDS[i]]}, {STATES[j]}\n|u| ≤ {limit:.2g}", fontsize=8)
    rows[1].axes[0].set_ylabel("layer (rows: its tokens)")
    for ax, (name, label) in zip(rows[2].subplots(1, 3), CURVES.items(), strict=True):
        curves(ax, np.arange(found[name].shape[-1]), found[name])
        ax.set_xlabel("layers passed")
        ax.set_title(label, fontsize=9)
        ax.xaxis.get_major_locator().set_params(integer=True)
    rows[2].legend(*rows[2].axes[2].get_legend_handles_labels(), fontsize=8, frameon=False, loc="lower center", ncols=3)
    rows[1].subplots_adjust(bottom=0.18)
    rows[2].subplots_adjust(wspace=0.35, bottom=0.3)
