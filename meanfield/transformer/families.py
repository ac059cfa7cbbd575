"""Families of trained Transformers, and the arrays of their layers under the names of TrainedLayer.

BERT, RoBERTa, DistilBERT and ALBERT have layer norm after attention and network, GPT-2 before, with a causal mask.
Llama, Qwen and Mistral also have RMS norm, rotary positions, gated networks and heads that share keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.model.trained_layer import LayerForm
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from torch import Tensor

Tensors = dict[str, Any]
Config = Any  # a PretrainedConfig of Hugging Face's library, whose attributes depend on the family
Pretrained = Any  # a PreTrainedModel, whose attributes depend on the family


@dataclass(frozen=True)
class Family:
    """Names and structure of the weights of a family of models.

    layer      function (network, layer from 0) → weights by their names in TrainedLayer; matrices of heads are stacked
               in rows, (d, d)
    epsilon    ε of layer norm, or the configuration's key for it
    activation the configuration's key for the activation of the feed-forward network
    placement  of layer norm: "pre" or "post" attention and feed-forward network
    norm       "layer", or "rms" for RMS norm
    causal     whether a token attends to itself and earlier tokens only
    final      function (network) → final_gain and final_shift of the norm after the last layer
    """

    layer: Callable[[Pretrained, int], Tensors]
    epsilon: str | float = "layer_norm_eps"
    activation: str = "hidden_act"
    placement: str = "post"
    norm: str = "layer"
    causal: bool = False
    final: Callable[[Pretrained], Tensors] = lambda network: {}


def family_of(name: str, config: Config) -> Family:
    """Return the family of a model, such as that of BERT or Llama, which describes the structure of its weights.

    Raises CaseError for an unknown family, and for layers with options that this package does not support.
    """
    if config.model_type not in FAMILIES:
        raise CaseError(f"{name}: attention of {config.model_type}: expected one of {', '.join(FAMILIES)}")
    family = FAMILIES[config.model_type]
    for key, usual in _USUAL.items():
        if getattr(config, key, usual) != usual:
            raise CaseError(f"{name}: {key} = {getattr(config, key)}: expected {usual}")
    activation = getattr(config, family.activation)
    if activation not in _ACTIVATIONS:
        raise CaseError(f"{name}: {family.activation} = {activation}: expected one of {', '.join(_ACTIVATIONS)}")
    rotary = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rotary in ("dynamic", "longrope"):
        raise CaseError(f"{name}: rope_type = {rotary}: expected frequencies that are the same for every text")
    return family


def head_size(config: Config) -> int:
    """Return the dimension d_head of an attention head, which can differ from d divided by the number of heads."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def beta_of(config: Config) -> float | None:
    """Return the factor β = 1/√d_head of logits in softmax attention; None for a model of an unknown family."""
    try:
        family_of("", config)
    except CaseError:
        return None
    return float(head_size(config) ** -0.5)


def form_of(family: Family, network: Pretrained) -> LayerForm:
    """Return the structure that all layers of a network share: β, layer norm, activation, mask and rotary positions."""
    config, rotary = network.config, getattr(network, "rotary_emb", None)
    epsilon = family.epsilon if isinstance(family.epsilon, float) else float(getattr(config, family.epsilon))
    return LayerForm(
        beta=head_size(config) ** -0.5,
        placement=family.placement,
        norm=family.norm,
        epsilon=epsilon,
        activation=_ACTIVATIONS[getattr(config, family.activation)],
        causal=family.causal,
        frequencies=None if rotary is None else _array(rotary.inv_freq),
        rotary_scale=1.0 if rotary is None else float(rotary.attention_scaling),
    )


def arrays_of(family: Family, network: Pretrained, layer: int) -> dict[str, Floats]:
    """Return the weights of a layer, counted from 0, by name, with one matrix for each attention head.

    query, key and value have the shape (heads, d_head, d), out (heads, d, d_head). There are fewer heads of key and
    value where several heads share them.
    """
    config, size = network.config, head_size(network.config)
    tensors = family.layer(network, layer) | family.final(network)
    arrays = {name: _array(tensor) for name, tensor in tensors.items() if tensor is not None}
    d = arrays["out"].shape[0]
    for name in ("query", "key", "value"):
        arrays[name] = arrays[name].reshape(-1, size, d)
        if f"{name}_bias" in arrays:
            arrays[f"{name}_bias"] = arrays[f"{name}_bias"].reshape(-1, size)
    arrays["out"] = arrays["out"].reshape(d, config.num_attention_heads, size).transpose(1, 0, 2)
    for name in ("query", "key"):
        if f"{name}_gain" in arrays:
            arrays[f"{name}_normalized"] = np.ones(())
    return arrays


def _array(tensor: Tensor) -> Floats:
    return np.asarray(tensor.detach().numpy(), dtype=float)


def _linear(**modules: Any) -> Tensors:
    """Return the weights and biases of linear maps y = xWᵀ + b, by the names of the arguments: NAME and NAME_bias."""
    weights = {name: module.weight for name, module in modules.items()}
    return weights | {f"{name}_bias": module.bias for name, module in modules.items()}


def _norms(**modules: Any) -> Tensors:
    """Return the gains and shifts of layer norms, by the names of the arguments: NAME_gain and NAME_shift.

    The shift of RMS norm is None.
    """
    gains = {f"{name}_gain": module.weight for name, module in modules.items()}
    return gains | {f"{name}_shift": getattr(module, "bias", None) for name, module in modules.items()}


def _bert(network: Pretrained, layer: int) -> Tensors:
    block = network.encoder.layer[layer]
    heads, out = block.attention.self, block.attention.output
    return _linear(
        query=heads.query, key=heads.key, value=heads.value, out=out.dense,
        inner=block.intermediate.dense, outer=block.output.dense,
    ) | _norms(attention=out.LayerNorm, network=block.output.LayerNorm)  # fmt: skip


def _distilbert(network: Pretrained, layer: int) -> Tensors:
    block = network.transformer.layer[layer]
    heads = block.attention
    return _linear(
        query=heads.q_lin, key=heads.k_lin, value=heads.v_lin, out=heads.out_lin, inner=block.ffn.lin1,
        outer=block.ffn.lin2,
    ) | _norms(attention=block.sa_layer_norm, network=block.output_layer_norm)  # fmt: skip


def stored_layers(config: Config, layers: int) -> int:
    """Return the number of layers with weights of their own: 1 if all layers share one set, as in ALBERT, else all."""
    return 1 if getattr(config, "num_hidden_groups", None) == 1 else layers


def _albert(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of ALBERT by name; layers of one group share their weights."""
    config = network.config
    group = int(layer / (config.num_hidden_layers / config.num_hidden_groups))
    block = network.encoder.albert_layer_groups[group].albert_layers[0]
    heads = block.attention
    return _linear(
        query=heads.query, key=heads.key, value=heads.value, out=heads.dense, inner=block.ffn, outer=block.ffn_output
    ) | _norms(attention=heads.LayerNorm, network=block.full_layer_layer_norm)


def _gpt2(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of GPT-2 by name, as matrices that act by y = xWᵀ.

    GPT-2 stacks Q, K and V in one matrix, and its matrices act by y = xW.
    """
    block = network.h[layer]
    heads, names = block.attn, ("query", "key", "value")
    packed = dict(zip(names, heads.c_attn.weight.T.chunk(3), strict=True))
    biases = dict(zip((f"{name}_bias" for name in names), heads.c_attn.bias.chunk(3), strict=True))
    maps = {"out": heads.c_proj, "inner": block.mlp.c_fc, "outer": block.mlp.c_proj}
    packed |= {name: module.weight.T for name, module in maps.items()}
    biases |= {f"{name}_bias": module.bias for name, module in maps.items()}
    return packed | biases | _norms(attention=block.ln_1, network=block.ln_2)


def _llama(network: Pretrained, layer: int) -> Tensors:
    block = network.layers[layer]
    heads, mlp = block.self_attn, block.mlp
    arrays = _linear(
        query=heads.q_proj, key=heads.k_proj, value=heads.v_proj, out=heads.o_proj, gate=mlp.gate_proj,
        inner=mlp.up_proj, outer=mlp.down_proj,
    ) | _norms(attention=block.input_layernorm, network=block.post_attention_layernorm)  # fmt: skip
    for name in ("query", "key"):
        norm = getattr(heads, f"{name[0]}_norm", None)  # normalization of queries and keys, in Qwen3
        arrays |= {} if norm is None else {f"{name}_gain": norm.weight}
    return arrays


_USUAL = {  # supported values by the configuration's keys
    "is_decoder": False,
    "inner_group_num": 1,
    "position_embedding_type": "absolute",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "sliding_window": None,
}
_ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "silu",
    "swish": "silu", "tanh": "tanh",
}  # fmt: skip
_BERT = Family(_bert)
_LLAMA = Family(
    _llama, "rms_norm_eps", placement="pre", norm="rms", causal=True, final=lambda network: _norms(final=network.norm)
)


FAMILIES = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "distilbert": Family(_distilbert, 1e-12, "activation"),
    "albert": Family(_albert),
    "gpt2": Family(
        _gpt2, "layer_norm_epsilon", "activation_function", placement="pre", causal=True,
        final=lambda network: _norms(final=network.ln_f),
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}  # fmt: skip
