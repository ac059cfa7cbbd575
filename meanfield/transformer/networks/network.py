"""Network for a task: embeddings of the input with positions, layers of either kind, and an output head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from meanfield.transformer.networks.field import FieldNetwork
from meanfield.transformer.networks.initialization import initialize
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.standard import Transformer, sinusoidal


@dataclass(frozen=True)
class Shape:
    """Shape of the inputs and outputs of a learning task.

    length    n tokens
    features  numbers of a token, such as the pixels of an image row; 0 where tokens are words of a vocabulary
    words     size of that vocabulary
    classes   number of classes, for each example or, with ``by_token``, for each token
    """

    length: int
    features: int
    words: int
    classes: int
    by_token: bool = False


@dataclass
class Trace:
    """Record of a pass through a network: states (batch, n, d) before and after each layer.

    With ``maps``, the record has the attention weights (batch, heads, n, n) of each layer too: None for a layer
    without them.
    """

    states: list[Tensor]
    weights: list[Tensor | None]
    maps: bool = False


class TokenNetwork(nn.Module):
    """Network from inputs (batch, n, features), or words (batch, n), to logits (batch, classes).

    The logits are (batch, n, classes) for a class of each token. A call records states by layer in
    ``trace``, and attention weights if it has ``maps``.
    """

    def __init__(self, case: TrainingCase, shape: Shape) -> None:
        super().__init__()
        d = case.network.dimension
        self.shape = shape
        self.embedding = nn.Linear(shape.features, d) if shape.features else nn.Embedding(shape.words, d)
        drawn, kind = (
            0.02 * torch.randn(shape.length, d),
            case.network.positions,
        )  # drawn for any kind of positions, so that one seed gives one body
        known = sinusoidal(shape.length, d) if kind == "sinusoidal" else torch.zeros_like(drawn)
        self.positions = nn.Parameter(drawn if kind == "learned" else known, kind == "learned")
        self.dropout = nn.Dropout(case.network.dropout)
        self.body = BODIES[case.network.kind](case)
        self.head = nn.Linear(d, shape.classes)
        initialize(self.body.layers, case.network.initialization)

    def forward(self, inputs: Tensor, trace: Trace | None = None) -> Tensor:
        return self.read(self.pass_layers(self.embed(inputs), trace))

    def embed(self, inputs: Tensor) -> Tensor:
        """Return the states (batch, n, d) before the first layer: embeddings of the inputs plus positions."""
        return self.body.begin(self.dropout(self.embedding(inputs) + self.positions[: inputs.shape[1]]))

    def pass_layers(self, states: Tensor, trace: Trace | None = None) -> Tensor:
        """Return the states (batch, n, d) after the last layer; record states in ``trace``."""
        if trace is not None:
            trace.states.append(states)
        for layer in self.body.layers:
            states, weights = layer(states, trace is not None and trace.maps)
            if trace is not None:
                trace.states.append(states)
                if trace.maps:
                    trace.weights.append(weights)
        return states

    def read(self, states: Tensor) -> Tensor:
        """Return the logits of the output head for the states (batch, n, d) after the last layer.

        The logits are (batch, n, classes) for a class of each token. For a class of the whole input the logits are
        (batch, classes), of the mean state over tokens.
        """
        last = self.body.end(states)
        logits: Tensor = self.head(last if self.shape.by_token else last.mean(dim=1))
        return logits


def build(case: TrainingCase, shape: Shape, seed: int | None = None) -> TokenNetwork:
    """Return a new network with random weights, drawn from ``seed`` (None: the seed of the case), without dropout.

    Weights are drawn in float32 for either precision, and constants of the case are computed in float64, so that each
    number is rounded at most once. PyTorch's global random state is unchanged. The mode of the network is that of
    evaluation; a step of training turns dropout on.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.training.seed if seed is None else seed)
        network = TokenNetwork(case, shape)
    return network.to(getattr(torch, case.training.precision)).eval()


def traced(network: TokenNetwork, inputs: Tensor, maps: bool = False) -> tuple[Tensor, Trace]:
    """Run a network without gradients, and return its logits and a record of its states by layer.

    With ``maps`` the record has the attention weights too.
    """
    trace = Trace([], [], maps)
    with torch.no_grad():
        return network(inputs, trace), trace


BODIES: dict[str, Callable[[TrainingCase], Transformer | FieldNetwork]] = {
    "transformer": lambda case: Transformer(case.network, case.is_causal),
    "pde": lambda case: FieldNetwork(case.network, case.pde, case.is_causal),
}
