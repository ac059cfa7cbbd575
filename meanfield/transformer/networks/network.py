"""A network for a task: embeddings of the input with positions, layers of either kind, and an output head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from meanfield.transformer.networks.field import FieldNetwork
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.standard import Transformer, sinusoidal


@dataclass(frozen=True)
class Shape:
    """What goes in and comes out.

    length    n tokens
    features  numbers of a token, of which an image has several; 0 where tokens are words of a vocabulary
    words     size of that vocabulary
    classes   to choose from, for each example or, with ``by_token``, for each token
    """

    length: int
    features: int
    words: int
    classes: int
    by_token: bool = False


@dataclass
class Trace:
    """What passed: states (batch, n, d) before the first layer and after each, and attention weights of each layer."""

    states: list[Tensor]
    weights: list[Tensor | None]


class TokenNetwork(nn.Module):
    """``network(inputs)``: (batch, n, features), or words (batch, n), → logits (batch, classes), by token if so shaped.

    ``trace`` of a call then holds what passed: states and attention weights by layer.
    """

    def __init__(self, case: TrainingCase, shape: Shape) -> None:
        super().__init__()
        d = case.network.dimension
        self.shape = shape
        self.embedding = nn.Linear(shape.features, d) if shape.features else nn.Embedding(shape.words, d)
        drawn, kind = (
            0.02 * torch.randn(shape.length, d),
            case.network.positions,
        )  # drawn in any case: one seed, one body
        known = sinusoidal(shape.length, d) if kind == "sinusoidal" else torch.zeros_like(drawn)
        self.positions = nn.Parameter(drawn if kind == "learned" else known, kind == "learned")
        self.body = BODIES[case.network.kind](case)
        self.head = nn.Linear(d, shape.classes)

    def forward(self, inputs: Tensor, trace: Trace | None = None) -> Tensor:
        return self.read(self.pass_layers(self.embed(inputs), trace))

    def embed(self, inputs: Tensor) -> Tensor:
        """The states (batch, n, d) before the first layer."""
        return self.body.begin(self.embedding(inputs) + self.positions[: inputs.shape[1]])

    def pass_layers(self, states: Tensor, trace: Trace | None = None) -> Tensor:
        """The states (batch, n, d) after the last layer."""
        if trace is not None:
            trace.states.append(states)
        for layer in self.body.layers:
            states, weights = layer(states)
            if trace is not None:
                trace.states.append(states)
                trace.weights.append(weights)
        return states

    def read(self, states: Tensor) -> Tensor:
        """Logits of the last states, of their mean over tokens for a class of the whole."""
        last = self.body.end(states)
        logits: Tensor = self.head(last if self.shape.by_token else last.mean(dim=1))
        return logits


def build(case: TrainingCase, shape: Shape, seed: int | None = None) -> TokenNetwork:
    """Return the network with weights drawn from a seed (the case's), in the precision of the case.

    Weights are drawn in float32 for either precision, and constants of the case made in float64: each is rounded at
    most once. Other random numbers of PyTorch are left as they are.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.training.seed if seed is None else seed)
        network = TokenNetwork(case, shape)
    return network.to(getattr(torch, case.training.precision))


def traced(network: TokenNetwork, inputs: Tensor) -> tuple[Tensor, Trace]:
    """Logits and what passed, without gradients."""
    trace = Trace([], [])
    with torch.no_grad():
        return network(inputs, trace), trace


BODIES: dict[str, Callable[[TrainingCase], Transformer | FieldNetwork]] = {
    "transformer": lambda case: Transformer(case.network, case.is_causal),
    "pde": lambda case: FieldNetwork(case.network, case.pde, case.is_causal),
}
