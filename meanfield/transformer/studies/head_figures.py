"""Figures of each head, and the collapse that they predict.

steepness    β‖W_QᵀW_K‖: how far logits of unit vectors range
radius       |λ|, sign Re λ of the eigenvalue λ of V = W_O W_V that is largest in modulus
predicted    log(|h̄ + A(h̄)|/|h̄|) of a layer: where all tokens are at their mean h̄, attention moves them alike, and
             what they differ by stays while their common part grows by this factor
seen         −½ log((1 − c_k)/(1 − c_{k−1})), c the mean cosine
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.analysis.text import table
from meanfield.domains.trained.diagnostics import mean_cosine
from meanfield.model.matrices import norm_of_product
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.families import arrays_of, family_of, form_of
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.model import States
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats


def head_figures(texts: Sequence[States]) -> dict[str, Labelled]:
    """Return numbers (block, head) of the heads of a model, and the rates (text, block) on texts that it has read."""
    model = texts[0]
    family = family_of(model.name, model.config)
    form = form_of(family, model.network)
    layers = [arrays_of(family, model.network, k) for k in range(model.layers)]
    heads = range(len(layers[0]["query"]))
    values = np.array([[leading_eigenvalue(arrays, h) for h in heads] for arrays in layers])
    slopes = np.array([[form.beta * steepness(arrays, h) for h in heads] for arrays in layers])
    predicted = [
        [predicted_rate(TrainedLayer(form, a), h) for a, h in zip(layers, states.hidden, strict=False)]
        for states in texts
    ]
    cosines = np.array([[mean_cosine(unit_vectors(h)) for h in states.hidden] for states in texts])
    by_head, by_text = ("block", "head"), ("text", "block")
    return {
        "head_steepness": Labelled(by_head, slopes, "beta times the norm of W_Q^T W_K"),
        "head_radius": Labelled(by_head, np.abs(values), "modulus of the leading eigenvalue of W_O W_V"),
        "head_sign": Labelled(by_head, np.sign(values.real), "sign of the real part of that eigenvalue"),
        "rate_predicted": Labelled(
            by_text, np.array(predicted), "collapse rate of a layer: log of |mean + A(mean)|/|mean|"
        ),
        "rate_seen": Labelled(
            by_text,
            -0.5 * np.diff(np.log(1 - cosines)),
            "collapse rate of a layer: half the decrease of log(1 - cosine)",
        ),
        **coordinates(block=np.arange(len(layers)) + 1, head=np.arange(len(heads)) + 1),
    }


def table_by_layer(found: Outcome) -> str:
    """Markdown, by layer: median and range over heads, heads whose λ has a positive real part, rates mean ± spread."""
    head = ("layer", "β‖W_QᵀW_K‖", "abs λ of W_O W_V", "Re λ > 0", "collapse rate predicted", "seen")
    rows = []
    for k, signs in enumerate(found["head_sign"]):
        numbers = [found[name][k] for name in ("head_steepness", "head_radius")]
        ranges = [f"{np.median(v):.3g} ({v.min():.3g} to {v.max():.3g})" for v in numbers]
        rates = [f"{v.mean():.2g} ± {v.std():.1g}" for v in (found[f"rate_{n}"][:, k] for n in ("predicted", "seen"))]
        rows.append([str(k + 1), *ranges, f"{(signs > 0).sum()} of {len(signs)}", *rates])
    return table(head, rows)


def steepness(arrays: dict[str, Floats], head: int) -> float:
    """‖W_QᵀW_K‖ of a head."""
    return norm_of_product(arrays["query"][head], arrays["key"][_group(arrays, head)])


def leading_eigenvalue(arrays: dict[str, Floats], head: int) -> complex:
    """The eigenvalue of W_O W_V that is largest in modulus; those of W_V W_O are the same, of a small matrix."""
    found = np.linalg.eigvals(arrays["value"][_group(arrays, head)] @ arrays["out"][head])
    return complex(found[np.abs(found).argmax()])


def _group(arrays: dict[str, Floats], head: int) -> int:
    """The head of keys and values that a head shares."""
    return head // (len(arrays["query"]) // len(arrays["key"]))


def predicted_rate(layer: TrainedLayer, states: Floats) -> float:
    """log(|h̄ + A(h̄)|/|h̄|) of the mean state."""
    mean = states.mean(axis=0, keepdims=True)
    seen = layer.normalized(mean, "attention") if layer.form.placement == "pre" else mean
    return float(np.log(np.linalg.norm(mean + layer.attention(seen)) / np.linalg.norm(mean)))
