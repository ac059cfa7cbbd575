"""A layer as a law of motion of directions x = h/|h| on the unit sphere.

    x ← N(x + v A(x) + κ Lx + W σ(Ux + b)) ,    A(x)_i = (I + CB) Σ_j softmax_j(β⟨x_i, x_j⟩ + ⟨Q x_i, K x_j⟩) x_j

N y = y/|y|; L is the three-point Laplacian along the text, nothing passing its ends; Q, K, B (rank, d) and C (d, rank).
With W = C = Q = 0 and κ = 0 it is the mean-field law of one β and V = vI.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class LayerLaw(nn.Module):
    """``law(x, present)`` of directions (texts, n, d) and which tokens there are (texts, n); absent ones stay 0.

    rank     of Q, K, B and C; 0 without them
    diffusion    whether κ is fitted
    width    of the network; 0 without it
    """

    def __init__(self, d: int, rank: int = 0, diffusion: bool = False, width: int = 0, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.beta, self.value = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.0))
        self.diffusion = nn.Parameter(torch.tensor(0.0), requires_grad=diffusion)
        small = d**-0.5
        self.query, self.key = _drawn(rank, d, small), _drawn(rank, d, small)
        self.inward, self.outward = _drawn(rank, d, small), nn.Parameter(torch.zeros(d, rank))
        self.inner, self.bias = _drawn(width, d, 1.0), nn.Parameter(torch.zeros(width))
        self.outer = nn.Parameter(torch.zeros(d, width))

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        logits = self.beta * x @ x.mT + (x @ self.query.T) @ (x @ self.key.T).mT
        mask = present[:, None, :]
        if self.causal:
            mask = mask & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        mean = logits.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ x
        moved = x + self.value * mean + (mean @ self.inward.T) @ self.outward.T
        moved = moved + self.diffusion * laplacian(x, present)
        moved = moved + nn.functional.gelu(x @ self.inner.T + self.bias) @ self.outer.T
        return normalize(moved, dim=-1) * present[..., None]


def laplacian(x: Tensor, present: Tensor) -> Tensor:
    """Σ of differences to the neighbors in a text (texts, n, d) that are there."""
    step = x.diff(dim=1) * (present[:, 1:] & present[:, :-1])[..., None]
    zero = torch.zeros_like(x[:, :1])
    return torch.cat([step, zero], dim=1) - torch.cat([zero, step], dim=1)


def _drawn(rows: int, d: int, deviation: float) -> nn.Parameter:
    return nn.Parameter(deviation * torch.randn(rows, d))
