"""Attention of a trained Transformer as a case: the mean-field velocity with the model's matrices and tokens.

A layer of the case is a map of the tokens x_i, with θ_i = x_i/|x_i|, N y = y/|y|, β = 1/√d_head and R = √(mean |h|²):

    post   x_i ← N(x_i + Σ_h V_h Σ_j p_ij x_j) ,   p_ij = softmax_j(βR²⟨Q_h x_i, K_h x_j⟩)
    pre    x_i ← x_i + Σ_h V_h Σ_j p_ij θ_j ,      p_ij = softmax_j(β⟨Q_h θ_i, K_h θ_j⟩)

Tokens and matrices follow from the states h and the arrays of meanfield/transformer/families.py:

    post   x = h/|h| ,   Q = W_Q ,   K = W_K ,   V = C W_O W_V
    pre    x = Ch ,      Q = √d W_Q diag(gain) ,   K = √d W_K diag(gain) ,   V = √d C W_O W_V diag(gain)

This is the model's layer exactly if all states have length R (post; pre: at time 0), biases and network are zero, and
gains after attention are one. Otherwise the case omits biases, the network, gains of layer norm (except those of pre
before attention), and lengths of single tokens. The remaining terms are a reconstruction: in the sources Q, K and V are
given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.overrides import inline
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm
from meanfield.transformer.families import (
    Family,
    arrays_of,
    family_of,
    form_of,
    has_mean_field_law,
    head_size,
    stored_layers,
)
from meanfield.transformer.model import HiddenStates
from meanfield.transformer.writing import Shapes, replacements, write_arrays
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

LAW = "mean-field law"
MATRICES, TOKENS, CASE = FILES = "attention.h5", "tokens.npy", "case.toml"


def require_attention(name: str, config: Any, layer: int | None = None) -> Family:
    """Return the family of a model whose attention can be written as a mean-field velocity.

    Raises CaseError for RMS norm or rotary positions, and for a layer, counted from 1, that the model does not have.
    """
    family, layers = family_of(name, config), config.num_hidden_layers
    if not has_mean_field_law(family, config):
        expected = "expected layer norm; with mean_field=False a case is the whole model"
        raise CaseError(f"{name}: {config.model_type} has RMS norm or rotary positions: {expected}")
    if layer is not None and not 1 <= layer <= layers:
        raise CaseError(f"layer = {layer}: expected 1 to {layers}, the layers of {name}")
    return family


def write_mean_field(states: HiddenStates, folder: str | Path, layer: int | None = None) -> Path:
    """Write the attention of a trained Transformer as a case: case.toml, attention.h5 and tokens.npy in ``folder``.

    layer   the layer whose attention all layers of the case use, from 1 on; None: each layer uses its own

    The folder is created if necessary, and existing files of these names are replaced. Returns the path of case.toml.
    Raises CaseError for an unknown family or a missing layer; FileError for a folder that cannot be written.
    """
    folder = Path(folder)
    family = require_attention(states.name, states.config, layer)
    stored = stored_layers(states.config, states.layers)
    chosen = range(stored) if layer is None or stored == 1 else [layer - 1]
    with replacements(folder, FILES) as (matrices, tokens, new):
        write_arrays(matrices, _shapes(states, family, len(chosen)), _rows(states, family, chosen))
        with open(tokens, "wb") as file:
            np.save(file, start_of(states, family))
        text = case_text(states, family, folder.resolve(), layer)
        parse(text)
        new.write_text(text, encoding="utf-8")
    return folder / CASE


def start_of(states: HiddenStates, family: Family) -> Floats:
    """Return the positions (n, d) of tokens before the first layer of the mean-field dynamics.

    The positions are the model's states; where layer norm precedes attention, the mean over coordinates is subtracted
    from each.
    """
    hidden = states.hidden[0]
    return np.asarray(hidden - hidden.mean(axis=1, keepdims=True) if family.placement == "pre" else hidden)


def head_matrices(arrays: dict[str, Floats], placement: str) -> dict[str, Floats]:
    """Return the matrices of the mean-field velocity of all heads, from the weights of a trained layer.

    The matrices are query and key (heads, d_head, d), and V = out·value in two factors, value (heads, d_head, d) and
    out (heads, d, d_head). Every head has weight 1. Where layer norm precedes attention ("pre"), its gain is a factor
    of the matrices.
    """
    d = arrays["query"].shape[2]
    scale = np.sqrt(d) * arrays.get("attention_gain", 1.0) if placement == "pre" else np.ones(d)
    out = arrays["out"]
    return {
        **{name: arrays[name] * scale for name in ("query", "key", "value")},
        "out": out - out.mean(axis=1, keepdims=True),  # C W_O: layer norm ignores the mean
    }


def mean_field_states(states: HiddenStates, repeat: int) -> Floats:
    """Return the positions (repeat·layers + 1, n, d) of a text's tokens, moved by the model's attention alone.

    The motion is that of a case written by `meanfield transformer case --mean-field`.
    """
    family = family_of(states.name, states.config)
    form, post = form_of(family, states.network), family.placement == "post"
    length, start = common_length(states, family), start_of(states, family)
    x = unit_vectors(start) * (1.0 if post else length)
    laws, found = [], [x]
    for k in range(states.layers):
        matrices = head_matrices(arrays_of(family, states.network, k), family.placement)
        heads = [dict(zip(matrices, one, strict=True)) for one in zip(*matrices.values(), strict=True)]
        all_heads = tuple(Head(**head) for head in heads)
        beta = form.beta * (length**2 if post else 1.0)
        laws.append(ParticleVelocity(beta, heads=all_heads, norm=LayerNorm(family.placement), causal=form.causal))
    for k in range(repeat * states.layers):
        x = layer_map(laws[k % states.layers], x, 1.0, time=float(k))
        found.append(x)
    return np.stack(found)


def _rows(states: HiddenStates, family: Family, chosen: Sequence[int]) -> Iterator[tuple[str, int | None, Floats]]:
    """Yield the matrices of the heads of each selected layer: name, index of the layer, array."""
    for k, layer in enumerate(chosen):
        arrays = arrays_of(family, states.network, layer)
        for name, matrix in head_matrices(arrays, family.placement).items():
            yield name, k, matrix
        yield "weight", k, np.ones(len(arrays["query"]))


def _shapes(states: HiddenStates, family: Family, count: int) -> Shapes:
    """Return the shapes and number formats of the matrices of ``count`` layers, by name."""
    arrays = head_matrices(arrays_of(family, states.network, 0), family.placement)
    weight = {"weight": ((count, len(arrays["query"])), "f8")}
    return {**{name: ((count, *matrix.shape), "f8") for name, matrix in arrays.items()}, **weight}


def common_length(states: HiddenStates, family: Family) -> float:
    """Return √(mean |h|²), the one length that replaces the lengths of all hidden states h in a mean-field case.

    The mean is over the states that enter layers (layer norm "post"), or those before the first layer ("pre").
    """
    return float(np.sqrt((_entering_lengths(states, family) ** 2).mean()))


def _entering_lengths(states: HiddenStates, family: Family) -> Floats:
    """Return the lengths of the hidden states that a mean-field case replaces by one common length.

    The lengths are (layers, n) of the states that enter layers (layer norm "post"), or (n,) at the start ("pre").
    """
    post = family.placement == "post"
    return states.lengths[:-1] if post else np.asarray(np.linalg.norm(start_of(states, family), axis=1))


def case_text(states: HiddenStates, family: Family, folder: Path, layer: int | None) -> str:
    """Return the text of case.toml for the attention of a trained Transformer, with comments on the omitted parts.

    layer   the layer whose attention all layers of the case use, from 1 on; None: each layer uses its own
    """
    entering = _entering_lengths(states, family)
    which = "the attention of its layers" if layer is None else f"the attention of its layer {layer} in each layer"
    d = states.hidden.shape[2]
    left_out, place, formula = _TEXTS[family.placement]
    lines = {place: f"{place} = {common_length(states, family)!r}  # √(mean |h|²) of the states\n"}
    return _CASE.format(
        title=inline(f"{states.short_name}: {which}, from the tokens of {states.source}"),
        left_out=left_out.format(low=entering.min(), high=entering.max()),
        formula=formula,
        d=d,
        beta=float(head_size(states.config) ** -0.5),
        mask="causal" if family.causal else "none",
        matrices=inline(str(folder / MATRICES)),
        tokens=inline(str(folder / TOKENS)),
        norm=family.placement,
        scale=lines.get("scale", ""),
        radius=lines.get("radius", ""),
        layers=states.layers,
    )


_TEXTS = {  # omitted parts, the key of the case for the common length, and the map of a layer
    "post": (
        "biases, the network, gains of layer norm, lengths of single states ({low:.3g} to {high:.3g}).",
        "scale",
        "N(x + Σ V Σ_j p_ij y_j)",
    ),
    "pre": (
        "biases, the network, lengths of single states at the start ({low:.3g} to {high:.3g}).",
        "radius",
        "x + Σ V Σ_j p_ij y_j",
    ),
}
_CASE = """\
# Written by `meanfield transformer case --mean-field`: attention as a mean-field law, a reconstruction.
# Left out: {left_out}
# A layer is x ← {formula} with y = x/|x|. For continuous depth: --set 'time={{end = {layers}.0, step = 1.0}}'
title = {title}

[domain]
manifold = "particles"
dimension = {d}

[attention]
beta = {beta!r}  # 1/√d_head
mask = "{mask}"
file = {matrices}

[stabilizers]
layer_norm = "{norm}"
{scale}
[initial]
kind = "tokens"
file = {tokens}
{radius}
[time]
method = "layers"
layers = {layers}
step = 1.0

[output]
snapshots = {layers}
samples = {layers}
diagnostics = ["speed", "centroid", "clusters", "pairs", "pairs_close"]
"""
