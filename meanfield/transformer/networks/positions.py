"""Positions of tokens: sinusoidal ones, and rotations of queries and keys."""

from __future__ import annotations

import torch
from torch import Tensor

BASE = 10000.0  # of the geometric series of wavelengths, in both papers


def sinusoidal(n: int, d: int) -> Tensor:
    """(n, d) p_{i,2k} = sin(i ω_k), p_{i,2k+1} = cos(i ω_k), ω_k = BASE^{−2k/d}, float64.

    Vaswani and others, "Attention is all you need" (1706.03762), section 3.5.
    """
    angles = _angles(n, d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(n, d)


def rotated(x: Tensor) -> Tensor:
    """R_i x_i of vectors (..., n, d), d even: the plane of coordinates k and k + d/2 turned by i ω_k.

    ⟨R_i x, R_j y⟩ depends on j − i alone. Su and others, "RoFormer" (2104.09864); the halves as in Llama.
    """
    n, d = x.shape[-2:]
    angles = _angles(n, d).to(x)
    first, second = x[..., : d // 2], x[..., d // 2 :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _angles(n: int, d: int) -> Tensor:
    """(n, d/2) i ω_k."""
    frequencies = BASE ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.arange(n, dtype=torch.float64)[:, None] * frequencies
