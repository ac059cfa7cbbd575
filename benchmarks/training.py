"""Training of a Transformer, relative to a loop in PyTorch alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.measure import CORES, Figure, both_timed

if TYPE_CHECKING:
    from meanfield.transformer.networks.training import Fit

CASES = {  # changes of the training file "digits"
    "8 tokens, batch 64": ["training.batch=64"],
    "64 tokens, batch 128": ['data.tokens="patches"', "data.patch=1", "training.batch=128"],
    "8 tokens, d = 256": ["network.dimension=256", "network.width=1024", "network.heads=8"],
}


def training(cases: Mapping[str, Sequence[str]] = CASES) -> Iterator[Figure]:
    """Measure epochs a second of the shipped Transformer for digits over those of a loop in PyTorch alone.

    An epoch has the same steps of AdamW on batches of the same sizes, and loss and accuracy on all examples. This
    package also measures the norms of states and gradients in each step.
    """
    import torch

    from meanfield.transformer.networks.data import task_of
    from meanfield.transformer.networks.section import load_training
    from meanfield.transformer.networks.training import begin, train

    for name, changes in cases.items():
        case = load_training("digits", ["training.epochs=1000", *changes])
        torch.set_num_threads(case.training.threads)
        fit = begin(case, task_of(case))
        here, alone = both_timed(lambda fit=fit: train(fit, fit.epochs + 1), _epoch_in_pytorch(fit), clock=CORES)
        yield Figure.of(f"training on digits, {name}: speed relative to PyTorch alone", alone / here, "×", least=0.95)


def _epoch_in_pytorch(fit: Fit) -> Callable[[], None]:
    """Return a function that trains a model of the layers of `torch.nn` for an epoch and measures loss and accuracy.

    The model has the same sizes and parts as that of ``fit``, and the same data.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    network, training, shape = fit.case.network, fit.case.training, fit.task.shape
    d = network.dimension

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Linear(shape.features, d), nn.Linear(d, shape.classes)
            self.positions = nn.Parameter(0.02 * torch.randn(shape.length, d))
            layer = nn.TransformerEncoderLayer(
                d, network.heads, network.width, 0.0, network.activation, batch_first=True, norm_first=True
            )
            self.body = nn.TransformerEncoder(layer, network.layers, nn.LayerNorm(d), enable_nested_tensor=False)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.head(self.body(self.embedding(inputs) + self.positions).mean(dim=1))
            return states

    model = Model()
    sizes = [sum(parameter.numel() for parameter in each.parameters()) for each in (model, fit.network)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"numbers of parameters {sizes}: expected two equal ones")
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=training.weight_decay)

    def epoch() -> None:
        model.train()
        for chosen in torch.randperm(len(fit.task.train)).split(training.batch):
            optimizer.zero_grad()
            cross_entropy(model(fit.task.train.inputs[chosen]), fit.task.train.labels[chosen]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for examples in (fit.task.train, fit.task.test):
                for inputs, labels in zip(examples.inputs.split(256), examples.labels.split(256), strict=True):
                    logits = model(inputs)
                    float(cross_entropy(logits, labels)), int((logits.argmax(dim=1) == labels).sum())

    return epoch
