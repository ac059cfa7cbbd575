"""The attention of trained Transformers: W_Q, W_K, W_V and W_O of each layer and head, whatever a family calls them.

    post   h ← LN(h + Σ_h W_O,h Σ_j p_ij W_V,h h_j) ,          p_ij = softmax_j(⟨W_Q,h h_i, W_K,h h_j⟩/√d_head)
    pre    h ← h + Σ_h W_O,h Σ_j p_ij W_V,h LN(h_j) ,          and LN(h) in p_ij

with LN(h) = √d (gain ∘ Ch/|Ch|) + bias, C = I − 11ᵀ/d. Biases of the matrices are not read; nor is the network that
acts on each token after attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError
from solvers.mesh.mesh import Floats


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """Weights of one layer: query, key and value (heads, d_head, d), out (heads, d, d_head).

    gain   (d) of the layer norm before attention; ones where it comes after
    """

    query: Floats
    key: Floats
    value: Floats
    out: Floats
    gain: Floats


@dataclass(frozen=True)
class Family:
    """Where a family of models keeps its weights.

    matrices     (network, layer) → W_Q, W_K, W_V and W_O, (d, d) each, as y = Wx has them
    layer_norm   "post" or "pre" attention
    causal       whether tokens see only what is before them
    gain         (network, layer) → (d) of the layer norm before attention; None where there is none
    """

    matrices: Callable[[Any, int], list[Any]]
    layer_norm: str = "post"
    causal: bool = False
    gain: Callable[[Any, int], Any] | None = None


def family_of(name: str, config: Any) -> Family:
    """The family of a model. Raises CaseError for one that is not known, or attention unlike theirs."""
    if config.model_type not in FAMILIES:
        raise CaseError(f"{name}: attention of {config.model_type}: expected one of {', '.join(FAMILIES)}")
    for key, usual in _USUAL.items():
        if getattr(config, key, usual) != usual:
            raise CaseError(f"{name}: {key} = {getattr(config, key)}: expected {usual}")
    return FAMILIES[config.model_type]


def weights_of(family: Family, network: Any, layer: int) -> LayerWeights:
    """The weights of a layer, the first is 0."""
    query, key, value, out = (_array(matrix) for matrix in family.matrices(network, layer))
    heads, d = network.config.num_attention_heads, len(out)
    query, key, value = (matrix.reshape(heads, -1, d) for matrix in (query, key, value))
    gain = np.ones(d) if family.gain is None else _array(family.gain(network, layer))
    return LayerWeights(query, key, value, out.reshape(d, heads, -1).transpose(1, 0, 2), gain)


def _array(tensor: Any) -> Floats:
    return np.asarray(tensor.detach().numpy(), dtype=float)


def _bert(network: Any, layer: int) -> list[Any]:
    block = network.encoder.layer[layer].attention
    return [block.self.query.weight, block.self.key.weight, block.self.value.weight, block.output.dense.weight]


def _distilbert(network: Any, layer: int) -> list[Any]:
    block = network.transformer.layer[layer].attention
    return [block.q_lin.weight, block.k_lin.weight, block.v_lin.weight, block.out_lin.weight]


def _albert(network: Any, layer: int) -> list[Any]:
    """Layers share their weights, all of a group."""
    config = network.config
    group = int(layer * config.num_hidden_groups / config.num_hidden_layers)
    block = network.encoder.albert_layer_groups[group].albert_layers[0].attention
    return [block.query.weight, block.key.weight, block.value.weight, block.dense.weight]


def _gpt2(network: Any, layer: int) -> list[Any]:
    """Q, K and V are packed side by side, and matrices act from the right: y = xW."""
    block = network.h[layer].attn
    return [*block.c_attn.weight.T.chunk(3), block.c_proj.weight.T]


_USUAL = {  # by the configuration's keys: what attention has to be like
    "is_decoder": False,
    "inner_group_num": 1,
    "position_embedding_type": "absolute",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
}
FAMILIES = {
    "bert": Family(_bert),
    "roberta": Family(_bert),
    "xlm-roberta": Family(_bert),
    "distilbert": Family(_distilbert),
    "albert": Family(_albert),
    "gpt2": Family(_gpt2, "pre", causal=True, gain=lambda network, layer: network.h[layer].ln_1.weight),
}
