"""Attention of queries to keys: to all, to earlier ones under a causal mask, or to those of a sparse pattern."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from meanfield.model.pattern import TokenPattern
from meanfield.transformer.networks.section import Network

# Fewer tokens, or tokens by attended ones, are faster with dense attention under a mask. Measured forward and backward
# on one core for 64 to 2048 tokens, 3 to 65 attended ones, d_h = 8 and 32.
MIN_SPARSE = 384
MIN_SPARSE_RATIO = 32


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: float,
    causal: bool,
    pattern: TokenPattern | None = None,
    maps: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the attention output Σ_j p_ij v_j (..., n, d_h) of n tokens, and with ``maps`` the weights p (..., n, n).

    p_ij = softmax_j(β⟨q_i, k_j⟩) of queries q, keys k and values v (..., n, d_h), over j ≤ i under a causal mask.
    Without ``maps`` no weights are stored: PyTorch computes them again for gradients.

    A sparse ``pattern`` includes the mask; the weights are then None. For many tokens the sums contain its attending
    pairs only, so that cost and memory are linear in n.
    """
    if pattern is not None:
        return _with_pattern(query, key, value, beta, pattern), None
    if not maps:
        return scaled_dot_product_attention(query, key, value, is_causal=causal, scale=beta), None
    weights = attention_weights(query, key, beta, causal)
    return weights @ value, weights


def attention_weights(query: Tensor, key: Tensor, beta: float, causal: bool) -> Tensor:
    """Return softmax_j(β⟨q_i, k_j⟩) of queries and keys (..., n, d_h), over j ≤ i under a causal mask: (..., n, n)."""
    logits = beta * query @ key.mT
    if causal:
        later = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(1)
        logits = logits.masked_fill(later, -torch.inf)
    return logits.softmax(dim=-1)


def pattern_of(network: Network, causal: bool, periodic: bool = False) -> TokenPattern | None:
    """Return the sparse pattern of a network's attention, None for full attention or a causal mask alone."""
    section = network.pattern
    if section is None:
        return None
    return TokenPattern(section.local, section.global_tokens, section.random_tokens, section.seed, periodic, causal)


def _with_pattern(query: Tensor, key: Tensor, value: Tensor, beta: float, pattern: TokenPattern) -> Tensor:
    """Return the attention output under a sparse pattern, by a mask or by lists of keys, whichever is faster."""
    n = query.shape[-2]
    if n < max(MIN_SPARSE, MIN_SPARSE_RATIO * _lists(pattern, n).shape[-1]):
        return scaled_dot_product_attention(query, key, value, attn_mask=_mask(pattern, n).to(query.device), scale=beta)
    return _sparse(query, key, value, beta, pattern)


def _sparse(query: Tensor, key: Tensor, value: Tensor, beta: float, pattern: TokenPattern) -> Tensor:
    """Return the attention output under a sparse pattern by sums over the listed keys of each query."""
    n = query.shape[-2]
    lists = _lists(pattern, n).to(query.device)
    first = n - len(lists)
    logits = beta * torch.einsum("...ie,...ike->...ik", query[..., first:, :], key[..., lists, :])
    weights = logits.masked_fill(lists < 0, -torch.inf).softmax(dim=-1)
    output = torch.einsum("...ik,...ike->...ie", weights, value[..., lists, :])
    seen = first if pattern.causal else n  # keys of the first tokens, which attend to all
    whole = attention_weights(query[..., :first, :], key[..., :seen, :], beta, pattern.causal)
    return torch.cat([whole @ value[..., :seen, :], output], dim=-2)


@lru_cache(maxsize=8)
def _mask(pattern: TokenPattern, n: int) -> Tensor:
    """Return the mask (n, n) of a pattern: whether a query attends to a key."""
    return torch.from_numpy(pattern.mask(n))


@lru_cache(maxsize=8)
def _lists(pattern: TokenPattern, n: int) -> Tensor:
    """Return the numbers of the keys that each query of a pattern attends to, −1 for none."""
    return torch.from_numpy(pattern.lists(n).astype("int64"))
