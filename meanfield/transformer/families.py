"""Families of trained Transformers, and the arrays of their layers under the names of TrainedLayer.

BERT, RoBERTa, DistilBERT and ALBERT have layer norm after attention and network. GPT-2, OPT and ViT have layer norm
before, Gemma 2 and 3 before and after; in GPT-NeoX and Phi both parts act on the same states. Llama, Qwen, Mistral,
Mixtral and Gemma also have RMS norm, rotary positions, gated networks and heads that share keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
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
    placement  of layer norm, as in LayerForm
    norm       "layer", or "rms" for RMS norm
    causal     whether a token attends to itself and earlier tokens only
    final      function (network) → final_gain and final_shift of the norm after the last layer
    offset     added to each stored gain
    caps_logits  whether the configuration's ``attn_logit_softcapping`` caps the logits of attention
    adapt      function (configuration) → properties of the family that depend on the configuration, by name
    """

    layer: Callable[[Pretrained, int], Tensors]
    epsilon: str | float = "layer_norm_eps"
    activation: str = "hidden_act"
    placement: str = "post"
    norm: str = "layer"
    causal: bool = False
    final: Callable[[Pretrained], Tensors] = lambda network: {}
    offset: float = 0.0
    caps_logits: bool = False
    adapt: Callable[[Config], dict[str, Any]] = lambda config: {}


def family_of(name: str, config: Config) -> Family:
    """Return the family of a model, such as that of BERT or Llama, which describes the structure of its weights.

    Raises CaseError for an unknown family, and for layers with options that this package does not support.
    """
    if config.model_type not in FAMILIES:
        raise CaseError(f"{name}: attention of {config.model_type}: expected one of {', '.join(FAMILIES)}")
    family = FAMILIES[config.model_type]
    family = replace(family, **family.adapt(config))
    for key, usual in _USUAL.items():
        if getattr(config, key, None) not in (None, usual):
            raise CaseError(f"{name}: {key} = {getattr(config, key)}: expected {usual}")
    activation = getattr(config, family.activation)
    if activation not in _ACTIVATIONS:
        raise CaseError(f"{name}: {family.activation} = {activation}: expected one of {', '.join(_ACTIVATIONS)}")
    if (causal := getattr(config, "is_causal", family.causal)) != family.causal:
        raise CaseError(f"{name}: is_causal = {causal}: expected {family.causal}")
    rotary = getattr(config, "rope_parameters", None) or {}
    of_types = [part for part in rotary.values() if isinstance(part, dict)]  # one of each type of layer, or none
    for part in of_types or [rotary]:
        if (kind := part.get("rope_type", "default")) in ("dynamic", "longrope"):
            raise CaseError(f"{name}: rope_type = {kind}: expected frequencies that are the same for every text")
        if of_types and kind == "yarn":
            raise CaseError(f"{name}: rope_type = {kind}: expected the same factor of rotary positions in all layers")
    return family


def option_of(config: Config, key: str) -> Any:
    """Return the value of a configuration's key, None if its class does not define the key: layers ignore such keys."""
    return getattr(config, key, None) if hasattr(type(config)(), key) else None


def has_mean_field_law(family: Family, config: Config) -> bool:
    """Return whether the attention of a model is a mean-field velocity: with layer norm, and positions in the states.

    RMS norm, rotary positions, windows, and attention beside the network are excluded.
    """
    rotary = getattr(config, "rope_parameters", None) is not None
    return family.norm == "layer" and family.placement in ("pre", "post") and not rotary


def head_size(config: Config) -> int:
    """Return the dimension d_head of an attention head, which can differ from d divided by the number of heads."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def beta_of(config: Config) -> float | None:
    """Return the factor β of logits in softmax attention; None for a model of an unknown family.

    β = 1/√q, where q is ``query_pre_attn_scalar`` of the configuration if given (Gemma 2 and 3), else d_head.
    """
    try:
        family_of("", config)
    except CaseError:
        return None
    return float((option_of(config, "query_pre_attn_scalar") or head_size(config)) ** -0.5)


def form_of(family: Family, network: Pretrained) -> LayerForm:
    """Return the structure that all layers of a network share: β, layer norm, activation, mask and rotary positions."""
    config, beta = network.config, beta_of(network.config)
    assert beta is not None  # the family is known
    epsilon = family.epsilon if isinstance(family.epsilon, float) else float(getattr(config, family.epsilon))
    frequencies, scale = _rotary(network, 0)
    return LayerForm(
        beta=beta,
        placement=family.placement,
        norm=family.norm,
        epsilon=epsilon,
        activation=_ACTIVATIONS[getattr(config, family.activation)],
        causal=family.causal,
        frequencies=frequencies,
        rotary_scale=scale,
        cap=float((family.caps_logits and config.attn_logit_softcapping) or np.inf),
        experts=config.num_experts_per_tok if option_of(config, "num_local_experts") else 0,
    )


def _rotary(network: Pretrained, layer: int) -> tuple[Floats | None, float]:
    """Return the frequencies of the rotary positions of a layer, and the factor of rotated vectors.

    The result is (None, 1) for a model without rotary positions. Some models have other frequencies in layers of other
    types, such as those with a window.
    """
    rotary = getattr(network, "rotary_emb", None)
    if rotary is None:
        return None, 1.0
    prefix = "" if hasattr(rotary, "inv_freq") else f"{network.config.layer_types[layer]}_"
    return _array(getattr(rotary, f"{prefix}inv_freq")), float(getattr(rotary, f"{prefix}attention_scaling"))


def _properties_of_layer(family: Family, network: Pretrained, layer: int) -> dict[str, Floats]:
    """Return the properties that differ between the layers of a model, by name: "window" and "frequencies".

    The window is infinite for a layer without one. The frequencies are those of rotary positions.
    """
    config, found = network.config, {}
    types, size = option_of(config, "layer_types"), option_of(config, "sliding_window")
    if size is not None:
        is_local = types is None or types[layer] == "sliding_attention"
        found["window"] = np.array(float(size + (not family.causal)) if is_local else np.inf)
    rotary = getattr(network, "rotary_emb", None)
    if rotary is not None and not hasattr(rotary, "inv_freq"):
        found["frequencies"] = np.asarray(_rotary(network, layer)[0])
    return found


def arrays_of(family: Family, network: Pretrained, layer: int) -> dict[str, Floats]:
    """Return the weights of a layer, counted from 0, by name, with one matrix for each attention head.

    query, key and value have the shape (heads, d_head, d), out (heads, d, d_head). There are fewer heads of key and
    value where several heads share them.
    """
    config, size = network.config, head_size(network.config)
    tensors = family.layer(network, layer) | family.final(network)
    arrays = {name: _array(tensor) for name, tensor in tensors.items() if tensor is not None}
    arrays |= {name: gain + family.offset for name, gain in arrays.items() if name.endswith("_gain") and family.offset}
    d = arrays["out"].shape[0]
    for name in ("query", "key", "value"):
        arrays[name] = arrays[name].reshape(-1, size, d)
        if f"{name}_bias" in arrays:
            arrays[f"{name}_bias"] = arrays[f"{name}_bias"].reshape(-1, size)
    arrays["out"] = arrays["out"].reshape(d, config.num_attention_heads, size).transpose(1, 0, 2)
    for name in ("query", "key"):
        if f"{name}_gain" in arrays:
            arrays[f"{name}_normalized"] = np.ones(())
    return arrays | _properties_of_layer(family, network, layer)


def _array(tensor: Tensor | Floats) -> Floats:
    """Return a tensor as an array in float64."""
    return np.asarray(tensor if isinstance(tensor, np.ndarray) else tensor.detach().numpy(), dtype=float)


def _linear(**modules: Any) -> Tensors:
    """Return the weights and biases of linear maps y = xWᵀ + b, by the names of the arguments: NAME and NAME_bias."""
    weights = {name: module.weight for name, module in modules.items()}
    return weights | {f"{name}_bias": module.bias for name, module in modules.items()}


def _packed(module: Any, *names: str, heads: int = 1) -> Tensors:
    """Return the weights and biases of several linear maps y = xWᵀ + b: NAME and NAME_bias for each of ``names``.

    The module stores all maps in one matrix: for each of ``heads`` heads the rows of each map, in the order of
    ``names``.
    """
    tensors = {"": module.weight, "_bias": module.bias}
    return {
        f"{name}{end}": part.flatten(0, 1)
        for end, tensor in tensors.items()
        if tensor is not None
        for name, part in zip(names, tensor.unflatten(0, (heads, len(names), -1)).unbind(1), strict=True)
    }


def _norms(**modules: Any) -> Tensors:
    """Return the gains and shifts of layer norms, by the names of the arguments: NAME_gain and NAME_shift.

    The shift of RMS norm is None. The gain of a norm without weights is 1.
    """
    gains: Tensors = {
        f"{name}_gain": np.ones(module.normalized_shape) if module.weight is None else module.weight
        for name, module in modules.items()
    }
    return gains | {f"{name}_shift": getattr(module, "bias", None) for name, module in modules.items()}


def _bert(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of BERT by name."""
    block = network.encoder.layer[layer]
    heads, out = block.attention.self, block.attention.output
    return _linear(
        query=heads.query, key=heads.key, value=heads.value, out=out.dense,
        inner=block.intermediate.dense, outer=block.output.dense,
    ) | _norms(attention=out.LayerNorm, network=block.output.LayerNorm)  # fmt: skip


def _distilbert(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of DistilBERT by name."""
    block = network.transformer.layer[layer]
    heads = block.attention
    return _linear(
        query=heads.q_lin, key=heads.k_lin, value=heads.v_lin, out=heads.out_lin, inner=block.ffn.lin1,
        outer=block.ffn.lin2,
    ) | _norms(attention=block.sa_layer_norm, network=block.output_layer_norm)  # fmt: skip


def stored_layers(config: Config, layers: int) -> int:
    """Return the number of layers with weights of their own: 1 if all layers share one set, as in ALBERT, else all."""
    return 1 if option_of(config, "num_hidden_groups") == 1 else layers


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

    The matrices of GPT-2 act by y = xW.
    """
    block = network.h[layer]
    heads = block.attn
    packed = _packed(_transposed(heads.c_attn), "query", "key", "value")
    maps = {"out": heads.c_proj, "inner": block.mlp.c_fc, "outer": block.mlp.c_proj}
    return (
        packed
        | _linear(**{name: _transposed(module) for name, module in maps.items()})
        | _norms(attention=block.ln_1, network=block.ln_2)
    )


def _transposed(module: Any) -> Any:
    """Return the weight and bias of a linear map y = xW + b with the attributes of one with y = xWᵀ + b."""
    return SimpleNamespace(weight=module.weight.T, bias=module.bias)


def _opt(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of OPT by name."""
    block = network.decoder.layers[layer]
    heads = block.self_attn
    return _linear(
        query=heads.q_proj, key=heads.k_proj, value=heads.v_proj, out=heads.out_proj, inner=block.fc1, outer=block.fc2
    ) | _norms(attention=block.self_attn_layer_norm, network=block.final_layer_norm)


def _of_opt(config: Config) -> dict[str, Any]:
    """Return the properties of a model OPT: the norm after the last layer, or layer norm after each part."""
    return {"final": _final_of_opt} if config.do_layer_norm_before else {"placement": "post"}


def _final_of_opt(network: Pretrained) -> Tensors:
    """Return the gain and shift of the norm after the last layer of a model OPT; none for models without this norm."""
    norm = network.decoder.final_layer_norm  # None in some models
    return {} if norm is None else _norms(final=norm)


def _vit(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of ViT by name."""
    block = network.layers[layer]
    heads, mlp = block.attention, block.mlp
    return _linear(
        query=heads.q_proj, key=heads.k_proj, value=heads.v_proj, out=heads.o_proj, inner=mlp.fc1, outer=mlp.fc2
    ) | _norms(attention=block.layernorm_before, network=block.layernorm_after)


def _gpt_neox(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of GPT-NeoX by name."""
    block = network.layers[layer]
    packed = _packed(
        block.attention.query_key_value, "query", "key", "value", heads=network.config.num_attention_heads
    )  # fmt: skip
    maps = _linear(out=block.attention.dense, inner=block.mlp.dense_h_to_4h, outer=block.mlp.dense_4h_to_h)
    return packed | maps | _norms(attention=block.input_layernorm, network=block.post_attention_layernorm)


def _phi(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of Phi by name."""
    block = network.layers[layer]
    heads, norm = block.self_attn, block.input_layernorm
    return _linear(
        query=heads.q_proj, key=heads.k_proj, value=heads.v_proj, out=heads.dense, inner=block.mlp.fc1,
        outer=block.mlp.fc2,
    ) | _norms(attention=norm, network=norm)  # fmt: skip


def _modernbert(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of ModernBERT by name; the first layer has no norm before attention."""
    import torch

    block = network.layers[layer]
    packed = _packed(block.attn.Wqkv, "query", "key", "value") | _packed(block.mlp.Wi, "gate", "inner")
    plain = torch.tensor(float(isinstance(block.attn_norm, torch.nn.Identity)))
    norm = block.mlp_norm if plain else block.attn_norm  # stands for the absent one, and has no effect there
    maps = _linear(out=block.attn.Wo, outer=block.mlp.Wo)
    return packed | maps | _norms(attention=norm, network=block.mlp_norm) | {"attention_plain": plain}


def _llama(network: Pretrained, layer: int) -> Tensors:
    """Return the weights of a layer of Llama, or of a model of the same structure, by name."""
    block = network.layers[layer]
    heads, after = block.self_attn, block.post_attention_layernorm
    arrays = _linear(query=heads.q_proj, key=heads.k_proj, value=heads.v_proj, out=heads.o_proj) | _gated(block.mlp)
    if hasattr(block, "pre_feedforward_layernorm"):  # norms after attention and network too, in Gemma 2 and 3
        arrays |= _norms(
            attention=block.input_layernorm, attention_after=after, network=block.pre_feedforward_layernorm,
            network_after=block.post_feedforward_layernorm,
        )  # fmt: skip
    else:
        arrays |= _norms(attention=block.input_layernorm, network=after)
    for name in ("query", "key"):
        norm = getattr(heads, f"{name[0]}_norm", None)  # normalization of queries and keys, in Qwen3 and Gemma 3
        arrays |= {} if norm is None else {f"{name}_gain": norm.weight}
    return arrays


def _gated(mlp: Any) -> Tensors:
    """Return the weights of a gated network, or of the experts of Mixtral, by name."""
    if not hasattr(mlp, "experts"):
        return _linear(gate=mlp.gate_proj, inner=mlp.up_proj, outer=mlp.down_proj)
    gate, inner = mlp.experts.gate_up_proj.chunk(2, dim=1)
    return {"router": mlp.gate.weight, "gate": gate, "inner": inner, "outer": mlp.experts.down_proj}


_USUAL = {  # supported values by the configuration's keys
    "is_decoder": False,
    "inner_group_num": 1,
    "position_embedding_type": "absolute",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "qk_layernorm": False,
    "use_bidirectional_attention": False,
}
_ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "silu",
    "swish": "silu", "tanh": "tanh",
}  # fmt: skip
_BERT = Family(_bert)
_LLAMA = Family(
    _llama, "rms_norm_eps", placement="pre", norm="rms", causal=True, final=lambda network: _norms(final=network.norm)
)
_GEMMA = replace(_LLAMA, offset=1.0)
_GEMMA_2 = replace(_GEMMA, activation="hidden_activation", placement="sandwich")


FAMILIES = {
    "bert": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "distilbert": Family(_distilbert, 1e-12, "activation"),
    "albert": Family(_albert),
    "gpt2": Family(
        _gpt2, "layer_norm_epsilon", "activation_function", placement="pre", causal=True,
        final=lambda network: _norms(final=network.ln_f),
    ),
    "opt": Family(_opt, 1e-5, "activation_function", placement="pre", causal=True, adapt=_of_opt),
    "vit": Family(_vit, placement="pre"),
    "gpt_neox": Family(
        _gpt_neox, placement="parallel", causal=True, final=lambda network: _norms(final=network.final_layer_norm),
        adapt=lambda config: {} if config.use_parallel_residual else {"placement": "pre"},
    ),
    "phi": Family(
        _phi, placement="parallel", causal=True, final=lambda network: _norms(final=network.final_layernorm)
    ),
    "modernbert": Family(
        _modernbert, "norm_eps", "hidden_activation", placement="pre",
        final=lambda network: _norms(final=network.final_norm),
    ),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA_2, caps_logits=True),
    "gemma3_text": _GEMMA_2,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}  # fmt: skip
