"""A trained Transformer's attention as a case: the mean-field law with its matrices, from the same tokens.

A layer of the case is x ← N(x + Σ_h V_h Σ_j p_ij x_j), p_ij = softmax_j(β⟨Q_h x_i, K_h x_j⟩), β = 1/√d_head, with the
weights of meanfield/transformer/weights.py:

    post   x = h/|h| ,   Q = W_Q ,   K = W_K ,   V = C W_O W_V ,   on a sphere of radius R = √(mean |h|²)
    pre    x = Ch ,      Q = √d W_Q diag(gain) ,   K = √d W_K diag(gain) ,   V = √d C W_O W_V diag(gain)

This is the model's layer exactly if all states have length R (post; pre: at time 0), biases and network are zero, and
gains after attention are one. Left out otherwise: biases, the network, gains of layer norm (but those of pre before
attention), and lengths of single tokens. What the rest stands for is a reconstruction: the sources have Q, K and V as
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.transformer.model import States
from meanfield.transformer.weights import Family, LayerWeights, family_of, weights_of
from solvers.io.run_file import FileError
from solvers.io.writing import VERSION, discard, disk_errors, open_shared, replacement
from solvers.mesh.mesh import Floats

MATRICES, TOKENS, CASE = "attention.h5", "tokens.npy", "case.toml"
NAMES = ("query", "key", "value")  # of the matrices in their file


def require_new(folder: str | Path, overwrite: bool) -> None:
    """Raise FileError unless a case may be written into a folder."""
    for path in (Path(folder) / name for name in (CASE, MATRICES, TOKENS)):
        if path.exists() and not overwrite:
            raise FileError(f"{path}: exists already; --overwrite replaces it, -o writes elsewhere")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise FileError(f"{folder}: is a file; expected a folder")


def require_attention(name: str, config: Any, layer: int | None = None) -> Family:
    """The family of a model. Raises CaseError for one that is not known, and for a layer that is not there."""
    family, layers = family_of(name, config), config.num_hidden_layers
    if layer is not None and not 1 <= layer <= layers:
        raise CaseError(f"--layer {layer}: expected 1 to {layers}, the layers of {name}")
    return family


def write_case(states: States, folder: str | Path, layer: int | None = None) -> Path:
    """Write case.toml, attention.h5 and tokens.npy into a folder, made where there is none; returns the case's path.

    layer   the one whose attention all layers of the case have, from 1 on; None: each layer its own
    What is there by these names is replaced. Raises CaseError for a family that is not known, a layer that is not
    there; FileError for a folder that cannot be written.
    """
    folder = Path(folder)
    family = require_attention(states.name, states.config, layer)
    chosen = range(states.layers) if layer is None else [layer - 1]
    if states.config.model_type == "albert" and states.config.num_hidden_groups == 1:
        chosen = [0]  # all layers are one
    with disk_errors(folder, "cannot write"):
        folder.mkdir(parents=True, exist_ok=True)
        with (
            replacement(folder / MATRICES) as matrices,
            replacement(folder / TOKENS) as tokens,
            replacement(folder / CASE) as new,
        ):
            _write_matrices(matrices, states, family, chosen)
            with open(tokens, "wb") as file:
                np.save(file, start_of(states, family))
            text = case_text(states, family, folder.resolve(), layer)
            parse(text)
            new.write_text(text, encoding="utf-8")
    return folder / CASE


def start_of(states: States, family: Family) -> Floats:
    """(n, d) the states before the first layer, without their means where layer norm comes before attention."""
    hidden = states.hidden[0]
    return hidden - hidden.mean(axis=1, keepdims=True) if family.layer_norm == "pre" else hidden


def head_matrices(weights: LayerWeights, layer_norm: str) -> dict[str, Floats]:
    """query, key and value, (heads, d, d) each: Q and K with rows of zeros below, V for heads of weight 1/heads."""
    heads, size, d = weights.query.shape
    scale = np.sqrt(d) * weights.gain if layer_norm == "pre" else np.ones(d)
    rows = ((0, 0), (0, d - size), (0, 0))
    value = weights.out @ weights.value
    return {
        "query": np.pad(weights.query * scale, rows),
        "key": np.pad(weights.key * scale, rows),
        "value": heads * (value - value.mean(axis=1, keepdims=True)) * scale,  # C V: no mean is written
    }


def _write_matrices(path: Path, states: States, family: Family, chosen: Sequence[int]) -> None:
    """One set of matrices a layer, (layers, heads, d, d) each, written layer by layer: together they may be large."""
    path.write_bytes(_image(len(chosen), states.config.num_attention_heads, states.hidden.shape[2]))
    file = open_shared(path)
    sets = {name: file[name] for name in NAMES}  # kept open: a set that is closed writes, and cannot tell of failing
    try:
        for k, layer in enumerate(chosen):
            for name, matrix in head_matrices(weights_of(family, states.network, layer), family.layer_norm).items():
                sets[name][k] = matrix
        file.flush()
    except BaseException:
        discard(file)  # HDF5 would try again what failed, and crash
        raise
    file.close()


def _image(layers: int, heads: int, d: int) -> bytes:
    """The bytes of the file without its numbers, laid out in memory: no failing disk meets HDF5 meanwhile."""
    import h5py

    packed = {"chunks": (1, 1, d, d), "compression": "gzip", "compression_opts": 1, "shuffle": True}
    with h5py.File("image", "w", driver="core", backing_store=False, libver=VERSION) as file:
        for name in NAMES:
            file.create_dataset(name, (layers, heads, d, d), "f8", **packed)
        file.flush()
        return file.id.get_file_image()


def case_text(states: States, family: Family, folder: Path, layer: int | None) -> str:
    """The case in TOML, with comments that say what it leaves out."""
    entering = states.lengths[:-1] if family.layer_norm == "post" else np.linalg.norm(start_of(states, family), axis=1)
    which = "the attention of its layers" if layer is None else f"the attention of its layer {layer} in each layer"
    heads, d = states.config.num_attention_heads, states.hidden.shape[2]
    left_out, place = _LEFT_OUT[family.layer_norm]
    lines = {place: f"{place} = {float(np.sqrt((entering**2).mean()))!r}  # √(mean |h|²) of the states\n"}
    return _CASE.format(
        title=_quoted(f"{states.short_name}: {which}, from the tokens of {states.source}"),
        left_out=left_out.format(low=entering.min(), high=entering.max()),
        d=d,
        beta=float((heads / d) ** 0.5),
        mask="causal" if family.causal else "none",
        matrices=_quoted(str(folder / MATRICES)),
        tokens=_quoted(str(folder / TOKENS)),
        norm=family.layer_norm,
        scale=lines.get("scale", ""),
        radius=lines.get("radius", ""),
        layers=states.layers,
    )


def _quoted(text: str) -> str:
    """A text as TOML has it."""
    import json

    return json.dumps(text, ensure_ascii=False)


_LEFT_OUT = {  # and the key of the case that has their common length
    "post": ("biases, the network, gains of layer norm, lengths of single states ({low:.3g} to {high:.3g}).", "scale"),
    "pre": ("biases, the network, lengths of single states at the start ({low:.3g} to {high:.3g}).", "radius"),
}
_CASE = """\
# Written by `meanfield transformer case`: a trained Transformer's attention as a mean-field law, a reconstruction.
# Left out: {left_out}
# A layer is x ← N(x + Σ V Σ_j p_ij x_j). For continuous depth: --set 'time={{end = {layers}.0, step = 1.0}}'
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
diagnostics = ["speed", "centroid", "pairs", "pairs_close"]
"""
