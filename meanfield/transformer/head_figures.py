"""Figures of each head, and the collapse that they predict.

steepness    β‖W_QᵀW_K‖: how far logits of unit vectors range
radius       |λ|, sign Re λ of the eigenvalue λ of V = W_O W_V that is largest in modulus
predicted    log(|h̄ + A(h̄)|/|h̄|) of a layer: where all tokens are at their mean h̄, attention moves them alike, and
             what they differ by stays while their common part grows by this factor
seen         −½ log((1 − c_k)/(1 − c_{k−1})), c the mean cosine
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.text import table
from meanfield.domains.trained.diagnostics import mean_cosine
from meanfield.model.matrices import norm_of_product
from meanfield.model.trained_layer import TrainedLayer
from meanfield.transformer.families import arrays_of, family_of, form_of
from meanfield.transformer.model import States
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class HeadFigures:
    """steepness, radius and sign (layers, heads); predicted and seen rates (layers,)."""

    steepness: Floats
    radius: Floats
    sign: Floats
    predicted: Floats
    seen: Floats


def head_figures(states: States) -> HeadFigures:
    """Numbers of all heads of a model, and the rates on a text."""
    family = family_of(states.name, states.config)
    form = form_of(family, states.network)
    layers = [arrays_of(family, states.network, k) for k in range(states.layers)]
    values = np.array([[leading_eigenvalue(arrays, h) for h in range(len(arrays["query"]))] for arrays in layers])
    cosines = np.array([mean_cosine(unit_vectors(h)) for h in states.hidden])
    return HeadFigures(
        steepness=np.array(
            [[form.beta * steepness(arrays, h) for h in range(len(arrays["query"]))] for arrays in layers]
        ),
        radius=np.abs(values),
        sign=np.sign(values.real),
        predicted=np.array(
            [predicted_rate(TrainedLayer(form, a), h) for a, h in zip(layers, states.hidden, strict=False)]
        ),
        seen=-0.5 * np.diff(np.log(1 - cosines)),
    )


def table_by_layer(texts: Sequence[HeadFigures]) -> str:
    """Markdown, by layer: median and range over heads, heads whose λ has a positive real part, rates mean ± spread."""
    heads = texts[0]
    head = ("layer", "β‖W_QᵀW_K‖", "abs λ of W_O W_V", "Re λ > 0", "collapse rate predicted", "seen")
    rows = []
    predicted, seen = (np.array([getattr(one, name) for one in texts]) for name in ("predicted", "seen"))
    for k, (slopes, radii, signs) in enumerate(zip(heads.steepness, heads.radius, heads.sign, strict=True)):
        ranges = [f"{np.median(v):.3g} ({v.min():.3g} to {v.max():.3g})" for v in (slopes, radii)]
        rates = [f"{rate[:, k].mean():.2g} ± {rate[:, k].std():.1g}" for rate in (predicted, seen)]
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
