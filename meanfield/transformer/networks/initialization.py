"""Initial weights of the layers, by the key ``initialization`` of [network].

    default     Transformer: PyTorch's, uniform in ±1/√(inputs); PDE network: normal, see Matrices
    small       matrices N(0, 0.02²), biases 0, as in GPT-2
    scaled      default, with the output matrices of each part divided by √(2 layers), as in GPT-2
    orthogonal  matrices with all singular values 1 (in the PDE network of each head), biases 0

Radford and others, "Language models are unsupervised multitask learners" (2019); Saxe and others (1312.6120).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

SMALL = 0.02  # standard deviation
OUTPUTS = {"output", "outer"}  # names of the output matrices of attention and of the feed-forward network


def initialize(layers: nn.ModuleList, name: str) -> None:
    """Draw the weights of new layers anew by the initialization of the given name; "default" keeps them."""
    with torch.no_grad():
        INITIALIZATIONS[name](layers)


def _keep(layers: nn.ModuleList) -> None:
    """Keep the weights that the layers were built with."""


def _draw_small(layers: nn.ModuleList) -> None:
    """Draw all matrices from a Gaussian distribution of deviation SMALL, and set biases to 0."""
    for matrix in _matrices(layers).values():
        matrix.normal_(std=SMALL)
    _clear_biases(layers)


def _scale_outputs(layers: nn.ModuleList) -> None:
    """Divide the output matrices of attention and network by √(2 layers)."""
    for name, matrix in _matrices(layers).items():
        if OUTPUTS & set(name.split(".")):
            matrix.div_(math.sqrt(2 * len(layers)))


def _draw_orthogonal(layers: nn.ModuleList) -> None:
    """Draw random orthogonal matrices, and set biases to 0."""
    for matrix in _matrices(layers).values():
        for one in matrix if matrix.ndim == 3 else [matrix]:
            nn.init.orthogonal_(one)
    _clear_biases(layers)


def _matrices(layers: nn.ModuleList) -> dict[str, Tensor]:
    """Return the parameters of layers with two or more dimensions, by name."""
    return {name: parameter for name, parameter in layers.named_parameters() if parameter.ndim > 1}


def _clear_biases(layers: nn.ModuleList) -> None:
    """Set the biases of layers to 0."""
    for name, parameter in layers.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()


INITIALIZATIONS: dict[str, Callable[[nn.ModuleList], None]] = {
    "default": _keep,
    "small": _draw_small,
    "scaled": _scale_outputs,
    "orthogonal": _draw_orthogonal,
}
