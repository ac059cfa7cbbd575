"""Training of a network by Adam: history by step and epoch, and detection of explosions.

A step depends only on the weights, Adam's moments and the number of the step: the order of examples is drawn from the
seed and the number of the epoch, dropout from the seed and the number of the step. Training therefore continues from a
checkpoint bit for bit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from meanfield.transformer.networks.data import Examples, Task
from meanfield.transformer.networks.network import TokenNetwork, Trace, build
from meanfield.transformer.networks.section import Training, TrainingCase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WARM_UP = 0.05  # fraction of all steps
MEASURED = 256  # examples that pass through a network at once


@dataclass
class History:
    """Measurements of training.

    Attributes
    ----------
    loss : (steps,) list
        Cross entropy of each batch, in nats, with the labels smoothed by ``training.label_smoothing``.
    gradient_norm : (steps, parts) list
        Norm of the gradient, before clipping, by the weights of each part: embedding, each layer, head.
    state_norm : (steps, layers + 1) list
        Root mean square of the states before the first layer and after each layer.
    train_loss : (epochs + 1,) list
        Cross entropy of all training examples before training and after each epoch, in nats.
    test_loss : (epochs + 1,) list
        Cross entropy of all test examples, in nats.
    train_accuracy : (epochs + 1,) list
        Fraction of correct answers on the training examples before training and after each epoch.
    test_accuracy : (epochs + 1,) list
        Fraction of correct answers on the test examples.
    """

    loss: list[float] = field(default_factory=list)
    gradient_norm: list[list[float]] = field(default_factory=list)
    state_norm: list[list[float]] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)


@dataclass(repr=False)
class Fit:
    """Network in training, after some epochs.

    Attributes
    ----------
    case : TrainingCase
        Content of the training file.
    task : Task
        Training and test examples, and the shape of input and output.
    network : torch.nn.Module
        Network from inputs (examples, tokens, features), or words (examples, tokens), to logits (examples, classes), or
        (examples, tokens, classes) for the next character.
    optimizer : torch.optim.AdamW
        Optimizer of the network.
    history : History
        Measurements by step and by epoch.
    stopped : str
        Reason for an early stop; empty without one.
    """

    case: TrainingCase
    task: Task
    network: TokenNetwork
    optimizer: torch.optim.AdamW
    history: History = field(default_factory=History)
    stopped: str = ""

    @property
    def epochs(self) -> int:
        """Return the number of completed epochs."""
        return max(len(self.history.test_loss) - 1, 0)

    def __repr__(self) -> str:
        accuracy = f"accuracy {self.history.test_accuracy[-1]:.4g}" if self.history.test_accuracy else "no measurements"
        return f"<Fit {self.case.title}: {self.epochs} of {self.case.training.epochs} epochs, {accuracy}>"

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw loss, accuracy, gradient norms and sizes of states during the training.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Empty figure that is filled. None: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from meanfield.transformer.networks.figure import draw_training

        return draw_training(self, figure)


def begin(case: TrainingCase, task: Task, seed: int | None = None) -> Fit:
    """Return a new training: a network with random weights, its optimizer, and loss and accuracy before the first step.

    seed   of the initial weights; None: the seed of the case
    """
    training = case.training
    network = build(case, task.shape, seed).to(training.device)
    # update parameters one by one: sums over groups of parameters depend on the grouping
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=training.rate, weight_decay=training.weight_decay, foreach=False
    )
    fit = Fit(case, task, network, optimizer)
    _measure(fit)
    return fit


def train(fit: Fit, until: int | None = None, after_epoch: Callable[[Fit], None] = lambda fit: None) -> Fit:
    """Train a network to the last epoch of its case, or to epoch ``until``, and return the training.

    ``after_epoch`` is called after each epoch, and at an explosion: a loss, state or gradient that is not finite, or
    beyond ``training.explosion``. The weights are then those before the step.
    """
    last = fit.case.training.epochs if until is None else min(until, fit.case.training.epochs)
    while not fit.stopped and fit.epochs < last:
        for batch in _batches(fit):
            fit.stopped = _step(fit, batch)
            if fit.stopped:
                break
        else:
            _measure(fit)
        after_epoch(fit)
    return fit


def loss_of(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross entropy, in nats, of logits (..., classes) for labels (...).

    A part ``smoothing`` of the probability of each label is spread evenly over all classes.
    """
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), label_smoothing=smoothing)


def parts_of(network: TokenNetwork) -> dict[str, list[torch.nn.Parameter]]:
    """Return the parameters of a network by part: "embedding" with positions, "layer 1" and so on, and "head"."""
    return {
        "embedding": [*network.embedding.parameters(), network.positions],
        **{f"layer {k + 1}": list(layer.parameters()) for k, layer in enumerate(network.body.layers)},
        "head": [*network.body.last.parameters(), *network.head.parameters()],
    }


def rate_at(step: int, steps: int, training: Training) -> float:
    """Return the learning rate of step number ``step`` of ``steps``: linear warm-up, then half a cosine to 0."""
    warm = max(round(WARM_UP * steps), 1) if training.warm_up is None else training.warm_up
    if step < warm:
        return training.rate * (step + 1) / warm
    return training.rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


def _batches(fit: Fit) -> list[Tensor]:
    """Return the numbers of the training examples in each step of the next epoch, in random order."""
    training = fit.case.training
    order = np.random.default_rng([training.seed, fit.epochs]).permutation(len(fit.task.train))
    return [torch.from_numpy(order)[k : k + training.batch] for k in range(0, len(order), training.batch)]


def _step(fit: Fit, chosen: Tensor) -> str:
    """Train on one batch of examples, and return "", or the reason why training ends, with unchanged weights."""
    history, training = fit.history, fit.case.training
    step, steps = len(history.loss), training.epochs * math.ceil(len(fit.task.train) / training.batch)
    trace = Trace([], [])
    with dropout_of(fit.network, training.seed, step):
        logits = fit.network(fit.task.train.inputs[chosen], trace)
    loss = loss_of(logits, fit.task.train.labels[chosen], training.label_smoothing)
    fit.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norms = {name: _norm(parameters) for name, parameters in parts_of(fit.network).items()}
    history.loss.append(loss.item())
    history.gradient_norm.append(list(norms.values()))
    history.state_norm.append([_root_mean_square(states) for states in trace.states])
    found = _explosion(history, list(norms), training)
    if found:
        return f"exploded at step {step}: {found}"
    if training.clip is not None:
        torch.nn.utils.clip_grad_norm_(fit.network.parameters(), training.clip, foreach=False)
    for group in fit.optimizer.param_groups:
        group["lr"] = rate_at(step, steps, training)
    fit.optimizer.step()
    return ""


@contextmanager
def dropout_of(network: TokenNetwork, seed: int, step: int) -> Iterator[None]:
    """Apply dropout within the context, drawn from the seed and the number of the step.

    PyTorch's global random state is restored. Without dropout the network is the same in both of its modes, and
    switching them would take an eighth of the time of a small step.
    """
    if network.dropout.p == 0:
        yield
        return
    with torch.random.fork_rng([place.index for place in {network.positions.device} if place.type == "cuda"]):
        torch.manual_seed(int(np.random.default_rng([seed, step]).integers(2**63)))
        network.train()
        try:
            yield
        finally:
            network.eval()


def _explosion(history: History, parts: list[str], training: Training) -> str:
    """Return a phrase on the explosion in the last step, "" if all states, gradients and the loss are within limits.

    Gradients that training clips have no limit, but must be finite.
    The phrase names the first layer whose state exceeds the limit, else the loss that is not finite, else the part of
    the network with the largest gradient.
    """
    states, gradients = history.state_norm[-1], history.gradient_norm[-1]
    for layer, size in enumerate(states):
        if not size <= training.explosion:
            return f"layer {layer}, root mean square of the state {size:.3g}"
    if not math.isfinite(history.loss[-1]):
        return f"head, loss {history.loss[-1]:.3g}"
    limit = training.explosion if training.clip is None else sys.float_info.max
    large = [k for k, size in enumerate(gradients) if not size <= limit]
    if not large:
        return ""
    worst = max(large, key=lambda k: (not math.isfinite(gradients[k]), gradients[k]))
    return f"{parts[worst]}, gradient norm {gradients[worst]:.3g}"


def _norm(parameters: list[torch.nn.Parameter]) -> float:
    """Return the Euclidean norm of the gradient of all parameters; NaN if it is not finite."""
    squares = [float(p.grad.square().sum()) for p in parameters if p.grad is not None]
    return math.sqrt(math.fsum(squares)) if all(map(math.isfinite, squares)) else math.nan


def _root_mean_square(states: Tensor) -> float:
    """Return the root mean square of all elements of states."""
    return float(states.detach().square().mean().sqrt())


def _measure(fit: Fit) -> None:
    """Add loss and accuracy on all training examples and on all test examples to the history of a training."""
    for name, examples in (("train", fit.task.train), ("test", fit.task.test)):
        loss, accuracy = loss_and_accuracy(fit.network, examples)
        getattr(fit.history, f"{name}_loss").append(loss)
        getattr(fit.history, f"{name}_accuracy").append(accuracy)


def loss_and_accuracy(network: TokenNetwork, examples: Examples) -> tuple[float, float]:
    """Return the cross entropy (nats) and the fraction of right answers of a network on examples.

    Where each token has a label, both are means over all tokens. The examples pass through the network in batches.
    """
    loss, right = 0.0, 0
    with torch.no_grad():
        for k in range(0, len(examples), MEASURED):
            labels = examples.labels[k : k + MEASURED]
            logits = network(examples.inputs[k : k + MEASURED])
            loss += len(labels) * float(loss_of(logits, labels))
            right += int((logits.argmax(dim=-1) == labels).sum())
    return loss / len(examples), right / examples.labels.numel()
