"""Standard Transformer, layer by layer, and positions of tokens: sinusoidal ones, rotations of queries and keys.

    post   x ← N₁(x + A(x)) ,      x ← N₂(x + F(x))
    pre    x ← x + A(N₁x) ,        x ← x + F(N₂x)              and N after the last layer
    peri   x ← x + N₁'A(N₁x) ,     x ← x + N₂'F(N₂x)           and N after the last layer
    none   x ← x + A(x) ,          x ← x + F(x)

A = W_O concat_h softmax(Q_h K_hᵀ/√d_h) V_h with biases, F(x) = W σ(Ux + b) + c; without the residual "x +" is omitted.
Training applies dropout to A and F (peri: to N'A and N'F).
Vaswani and others (1706.03762), also for dropout; pre: Xiong and others (2002.04745);
peri: Kim and others (2502.02732).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from meanfield.transformer.networks.attending import attend, pattern_of
from meanfield.transformer.networks.section import Network

BASE = 10000.0  # base of the geometric series of wavelengths, in both papers


def sinusoidal(n: int, d: int) -> Tensor:
    """Return the sinusoidal positions p (n, d) of n tokens: p_{i,2k} = sin(i ω_k), p_{i,2k+1} = cos(i ω_k), in float64.

    ω_k = BASE^{−2k/d}. Vaswani and others, "Attention is all you need" (1706.03762), section 3.5.
    """
    angles = _angles(n, d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(n, d)


def rotated(x: Tensor) -> Tensor:
    """Return the vectors x (..., n, d) of n tokens after the rotations R_i of rotary positions, R_i x_i.

    R_i rotates the plane of coordinates k and k + d/2 by i ω_k, ω_k = BASE^{−2k/d}, d even. ⟨R_i x, R_j y⟩ depends on j
    − i alone. Su and others, "RoFormer" (2104.09864); coordinates are paired as in Llama.
    """
    n, d = x.shape[-2:]
    angles = _angles(n, d).to(x)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _angles(n: int, d: int) -> Tensor:
    """Return the angles i ω_k (n, d/2) of tokens i = 0 … n − 1 and frequencies ω_k = BASE^{−2k/d}, in float64."""
    frequencies = BASE ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.arange(n, dtype=torch.float64)[:, None] * frequencies


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    "tanh": torch.tanh,
}


class SelfAttention(nn.Module):
    """Self-attention of states (batch, n, d): output (batch, n, d) and, with ``maps``, weights (batch, heads, n, n)."""

    def __init__(self, network: Network, causal: bool) -> None:
        super().__init__()
        d = network.dimension
        self.query, self.key, self.value, self.output = (nn.Linear(d, d) for _ in range(4))
        self.heads, self.causal, self.is_rotary = network.heads, causal, network.positions == "rotary"
        self.pattern = pattern_of(network, causal)

    def forward(self, x: Tensor, maps: bool = False) -> tuple[Tensor, Tensor | None]:
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        if self.is_rotary:
            query, key = rotated(query), rotated(key)
        output, weights = attend(query, key, value, query.shape[-1] ** -0.5, self.causal, self.pattern, maps)
        return self.output(output.transpose(1, 2).flatten(2)), weights

    def _split(self, x: Tensor) -> Tensor:
        """Split states (batch, n, d) into attention heads: (batch, heads, n, d/heads)."""
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


class FeedForwardNetwork(nn.Module):
    """Feed-forward network F(x) = W σ(Ux + b) + c of states (..., d)."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.inner = nn.Linear(network.dimension, network.width)
        self.outer = nn.Linear(network.width, network.dimension)
        self.activation = ACTIVATIONS[network.activation]

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.activation(self.inner(x))
        return self.outer(hidden)  # type: ignore[no-any-return]


class TransformerLayer(nn.Module):
    """Layer of the standard Transformer: maps states (batch, n, d) to new states and weights (batch, heads, n, n).

    The attention weights are None without ``maps``, without attention, or if its pattern is sparse.
    """

    def __init__(self, network: Network, causal: bool) -> None:
        super().__init__()
        self.scheme, self.residual = network.layer_norm, network.residual
        self.dropout = nn.Dropout(network.dropout)
        self.attention = SelfAttention(network, causal) if network.attention else None
        self.feed_forward = FeedForwardNetwork(network) if network.feed_forward else None
        self.norms = nn.ModuleList(_norm(network, network.layer_norm != "none") for _ in range(2))
        self.outer_norms = nn.ModuleList(_norm(network, network.layer_norm == "peri") for _ in range(2))

    def forward(self, x: Tensor, maps: bool = False) -> tuple[Tensor, Tensor | None]:
        weights = None
        if self.attention is not None:
            output, weights = self.attention(self._before(x, 0), maps)
            x = self._after(x, output, 0)
        if self.feed_forward is not None:
            x = self._after(x, self.feed_forward(self._before(x, 1)), 1)
        return x, weights

    def _before(self, x: Tensor, part: int) -> Tensor:
        """Return states after the layer norm before a part of the layer, unchanged for post-norm."""
        return x if self.scheme == "post" else self.norms[part](x)

    def _after(self, x: Tensor, output: Tensor, part: int) -> Tensor:
        """Return states after a part of the layer: dropout, the residual connection and post-norm."""
        output = self.dropout(self.outer_norms[part](output))
        moved = x + output if self.residual else output
        return self.norms[part](moved) if self.scheme == "post" else moved


class Transformer(nn.Module):
    """Standard Transformer: its layers, and the norm of states (batch, n, d) after the last."""

    def __init__(self, network: Network, causal: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TransformerLayer(network, causal) for _ in range(network.layers))
        self.last = _norm(network, network.layer_norm in ("pre", "peri"))

    def begin(self, embeddings: Tensor) -> Tensor:
        """Return the states before the first layer, which are the embeddings (batch, n, d) unchanged."""
        return embeddings

    def end(self, states: Tensor) -> Tensor:
        """Return the input of the output head: states (batch, n, d) after the last layer.

        The states are normalized for the layer norms pre and peri.
        """
        return self.last(states)  # type: ignore[no-any-return]


def _norm(network: Network, present: bool) -> nn.Module:
    """Return a layer norm of states, or the identity if it is not ``present``."""
    return nn.LayerNorm(network.dimension) if present else nn.Identity()
