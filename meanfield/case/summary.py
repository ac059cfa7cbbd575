"""Summary of a case's Transformer layer in words: attention, layer norm, feed-forward network, reaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meanfield.model.kernel import kernel_of
from meanfield.model.layer_norm import LAYER_NORMS

if TYPE_CHECKING:
    from meanfield.case.case import Case
    from meanfield.sections.attention import Pattern, Reaction


def describe_layer(case: Case) -> list[str]:
    """Return a list such as ["softmax attention, 2 heads", "pre layer norm"] that describes the layer of a case.

    Default settings are omitted.
    """
    return [describe_attention(case), *_stabilizers(case), *_depth(case), *_local(case)]


def describe_attention(case: Case) -> str:
    """Return a description of the attention such as "unnormalized attention, V = -1 I"."""
    attention, value = case.attention, case.attention.value_scale
    if not case.domain.has_softmax:
        return "attention of another kind"
    rescaled = " rescaled" if attention.rescaled else ""
    texts = [f"{attention.normalization}{rescaled} attention", _matrices(case)]
    texts += [f"V = {value:g} I"] if value != 1 else []
    if (kernel := kernel_of(attention.kernel, attention.window).text) is not None:
        texts.append(kernel)
    if attention.mask == "causal":
        texts.append("causal mask")
    if attention.pattern is not None:
        texts.append(describe_pattern(attention.pattern))
    return ", ".join(text for text in texts if text)


def describe_pattern(pattern: Pattern) -> str:
    """Return a description of a pattern such as "window of 3, 1 global and 2 random tokens"."""
    others = {"global": pattern.global_tokens, "random": pattern.random_tokens}
    words = " and ".join(f"{count} {name}" for name, count in others.items() if count)
    return f"window of {pattern.local}" + (f", {words} tokens" if words else "")


def _matrices(case: Case) -> str:
    """Return the number of heads as text, or the matrices of one head that are not multiples of the identity."""
    from meanfield.sections.attention import scale_of

    attention = case.attention
    if attention.file is not None:
        return "matrices from a file"
    if len(attention.all_heads) > 1:
        return f"{len(attention.all_heads)} heads"
    head = attention.all_heads[0]
    names = {"Q": head.query, "K": head.key, "V": head.value}
    given = [name for name, matrix in names.items() if scale_of(matrix) is None]
    return f"general {', '.join(given)}" if given else ""


def _stabilizers(case: Case) -> list[str]:
    """Return texts on the stabilizers of a case: layer norm, gate, diffusion, scale and residual."""
    stabilizers, norm = case.stabilizers, LAYER_NORMS[case.stabilizers.layer_norm].text
    switch = "" if stabilizers.switch is None else f", switch at t = {stabilizers.switch:g}"
    return [
        *([norm + switch] if norm is not None else []),
        *([f"gate γ = {stabilizers.gate:g}"] if stabilizers.gate else []),
        *([] if case.sequence is None else [_diffusion(case.sequence.diffusion)]),
        *([f"scale {stabilizers.scale:g}"] if stabilizers.scale != 1 else []),
        *(["no residual"] if not stabilizers.residual else []),
    ]


def _diffusion(kappa: float) -> str:
    """Return a text on the diffusion along a sequence with the coefficient κ."""
    return f"diffusion κ = {kappa:g} along the sequence" if kappa else "a sequence without diffusion"


def _depth(case: Case) -> list[str]:
    """Return the text on the number of layers of a case; an empty list in continuous time."""
    return [f"{case.time.layers} layer{'' if case.time.layers == 1 else 's'}"] if case.time.method == "layers" else []


def _local(case: Case) -> list[str]:
    """Return descriptions of the local terms: feed-forward network, terms of the domain, reaction."""
    network = [] if case.feed_forward is None else [f"{case.feed_forward.activation} feed-forward"]
    network += case.domain.describe_layer
    return network + ([] if case.reaction is None else [_reaction(case.reaction)])


def _reaction(reaction: Reaction) -> str:
    """Return a text with the kind of a reaction and, if the reaction has one, the rate."""
    rate = getattr(reaction, "rate", None)  # a user-defined reaction may lack a rate
    return f"{reaction.__struct_config__.tag} reaction" + ("" if rate is None else f", rate {rate:g}")
