"""Transformers of a few random weights in a folder, with a tokenizer of a few words; no network access."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
from support.needs import need_module

torch = need_module("torch")
transformers = need_module("transformers")
transformers.utils.logging.disable_progress_bar()  # a progress bar would appear in a test's captured text
tokenizers = need_module("tokenizers")

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
TEXT = "a b c d e f g h i a c e"
D, HEADS, LAYERS, MOST = 16, 2, 3, 24
SHAPE = {"vocab_size": len(WORDS) + 1, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
DECODER = SHAPE | {"num_attention_heads": 2 * HEADS, "num_key_value_heads": HEADS, "hidden_size": D} | {
    "intermediate_size": 24, "max_position_embeddings": MOST, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
TOKENS = {"max_position_embeddings": MOST, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
HALF_ROTARY = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
KINDS = {
    "bert": lambda **more: transformers.BertConfig(
        **SHAPE, hidden_size=D, intermediate_size=32, max_position_embeddings=MOST, **more
    ),
    "albert": lambda **more: transformers.AlbertConfig(
        **SHAPE, hidden_size=D, embedding_size=D, intermediate_size=32, max_position_embeddings=MOST, **more
    ),
    "roberta": lambda **more: transformers.RobertaConfig(
        **SHAPE, hidden_size=D, intermediate_size=32, max_position_embeddings=MOST, **more
    ),
    "distilbert": lambda **more: transformers.DistilBertConfig(
        vocab_size=len(WORDS) + 1, n_layers=LAYERS, n_heads=HEADS, dim=D, hidden_dim=32, max_position_embeddings=MOST
    ),
    "gpt2": lambda **more: transformers.GPT2Config(
        vocab_size=len(WORDS) + 1, n_layer=LAYERS, n_head=HEADS, n_embd=D, n_positions=MOST, **more
    ),
    "llama": lambda **more: transformers.LlamaConfig(**DECODER, **more),
    "mistral": lambda **more: transformers.MistralConfig(**DECODER, **{"sliding_window": None} | more),
    "qwen2": lambda **more: transformers.Qwen2Config(**DECODER, **more),
    "qwen3": lambda **more: transformers.Qwen3Config(**DECODER, head_dim=6, **more),
    "gpt_neox": lambda **more: transformers.GPTNeoXConfig(
        **SHAPE, **TOKENS, hidden_size=D, intermediate_size=32, rope_parameters=HALF_ROTARY, **more
    ),
    "phi": lambda **more: transformers.PhiConfig(
        **SHAPE, **TOKENS, hidden_size=D, intermediate_size=32, rope_parameters=HALF_ROTARY, **more
    ),
    "opt": lambda **more: transformers.OPTConfig(
        **SHAPE, **TOKENS, **{"hidden_size": D, "word_embed_proj_dim": D, "ffn_dim": 32} | more
    ),
    "modernbert": lambda **more: transformers.ModernBertConfig(
        **SHAPE, **TOKENS, hidden_size=D, intermediate_size=24, local_attention=4, global_attn_every_n_layers=2, **more
    ),
    "gemma": lambda **more: transformers.GemmaConfig(**DECODER, head_dim=6, pad_token_id=0, **more),
    "gemma2": lambda **more: transformers.Gemma2Config(
        **DECODER,
        head_dim=6,
        pad_token_id=0,
        query_pre_attn_scalar=9,
        sliding_window=4,
        attn_logit_softcapping=2.0,
        **more,
    ),
    "gemma3_text": lambda **more: transformers.Gemma3TextConfig(
        **DECODER,
        head_dim=6,
        pad_token_id=0,
        query_pre_attn_scalar=9,
        sliding_window=4,
        **more,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "mixtral": lambda **more: transformers.MixtralConfig(
        **DECODER, num_local_experts=4, num_experts_per_tok=2, sliding_window=5, **more
    ),
    "vit": lambda **more: transformers.ViTConfig(
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        hidden_size=D,
        intermediate_size=32,
        image_size=12,
        patch_size=4,
        **more,
    ),
}
FOREIGN = {"sliding_window": 4, "attn_logit_softcapping": 0.5, "query_pre_attn_scalar": 3}
OTHERS = {  # families with the layers of others, and options of those above: kind and changes of its configuration
    "electra": ("electra", {}),
    "camembert": ("camembert", {}),
    "xlm-roberta": ("xlm-roberta", {}),
    "mistral, window": ("mistral", {"sliding_window": 4}),
    "qwen2, window": ("qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen3, window": ("qwen3", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "opt, post": ("opt", {"do_layer_norm_before": False}),
    "opt, no biases": ("opt", {"enable_bias": False, "layer_norm_elementwise_affine": False}),
    "gpt_neox, one after the other": ("gpt_neox", {"use_parallel_residual": False}),
    "bert, keys of other families": ("bert", {"num_hidden_groups": 1} | FOREIGN),
    "llama, keys of other families": ("llama", {"num_local_experts": 4} | FOREIGN),
    "gemma3_text, a cap that its layers do not have": ("gemma3_text", {"attn_logit_softcapping": 2.0}),
    "modernbert, biases": ("modernbert", {"norm_bias": True, "attention_bias": True, "mlp_bias": True}),
}  # fmt: skip
KINDS |= {
    name: lambda made=made, **more: made(
        **SHAPE, hidden_size=D, intermediate_size=32, max_position_embeddings=MOST, **more
    )
    for name, made in {
        "electra": transformers.ElectraConfig, "camembert": transformers.CamembertConfig,
        "xlm-roberta": transformers.XLMRobertaConfig,
    }.items()
}  # fmt: skip


def saved(folder: Path, kind: str, *, plain: bool = False, **more: object) -> Path:
    """Save a model of a kind, with weights that make attention uneven; ``plain``: attention and layer norm only."""
    torch.manual_seed(1)
    config = KINDS[kind](**more)
    network = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.5)
            elif not plain:
                weight += 0.3 * torch.randn(len(weight))
            if plain:
                _plain(name, weight)
    network.save_pretrained(folder)
    add_tokenizer(folder)
    return folder


def given(kind: str, folder: Path) -> str:
    """Write the text, or the image, that a model of a kind reads."""
    if kind != "vit":
        return text_file(folder)
    np.save(folder / "image.npy", np.random.default_rng(0).standard_normal((3, 12, 12)))
    return str(folder / "image.npy")


def _plain(name: str, weight: object) -> None:
    """Remove biases and the network, set gains to one, and center and normalize the states before the first layer."""
    if weight.ndim == 1:
        weight.fill_(float(name.endswith("weight") and "ln_1" not in name))
        if name.endswith("ln_1.weight"):
            weight.uniform_(0.5, 1.5)  # the case has the gains of the layer norm before attention
    network = ("output.dense.weight", "ffn_output.weight", "ffn.lin2", "mlp.c_proj")
    if "attention" not in name and any(part in name for part in network):
        weight.zero_()
    if "wpe" in name:
        weight.zero_()
    if "wte" in name:
        weight -= weight.mean(dim=1, keepdim=True)
        weight *= 3.0 / weight.norm(dim=1, keepdim=True)
    if "embedding_hidden_mapping_in.weight" in name:
        weight.copy_(torch.eye(D))


def add_tokenizer(folder: Path, words: list[str] = WORDS) -> None:
    """Write a tokenizer for which a word is a token."""
    model = tokenizers.models.WordLevel({word: k for k, word in enumerate([*words, "[UNK]"])}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", model_max_length=MOST
    ).save_pretrained(folder)


def hidden(folder: Path, text: str = TEXT) -> object:
    """Return the states (layers + 1, n, d) that the library itself computes, in float64."""
    experts = {"experts_implementation": "eager"} if folder.name == "mixtral" else {}
    network = transformers.AutoModel.from_pretrained(folder, **experts).double().eval()
    if network.main_input_name == "pixel_values":
        found = {"pixel_values": torch.from_numpy(np.random.default_rng(0).standard_normal((1, 3, 12, 12)))}
    else:
        found = {"input_ids": torch.tensor([[WORDS.index(word) for word in text.split()]])}
    with torch.no_grad():
        return torch.stack(network(**found, output_hidden_states=True).hidden_states)[:, 0].numpy()


def text_file(folder: Path, text: str = TEXT) -> str:
    path = folder / "text.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)
