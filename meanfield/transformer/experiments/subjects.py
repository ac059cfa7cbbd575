"""Networks of an experiment: of either kind, untrained and trained, for several seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from meanfield.running import Printer
from meanfield.transformer.labelled import Labelled, coordinates
from meanfield.transformer.networks.data import Task, task_of
from meanfield.transformer.networks.network import BODIES, TokenNetwork
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import Fit, begin, train
from solvers.mesh.mesh import Floats

KINDS = tuple(BODIES)
NO_ATTENTION = ", no attention"  # end of the name of a network that has no attention, the null of each kind
STATES = ("untrained", "trained")
AXES = ("network", "state", "seed")


@dataclass(frozen=True)
class Subject:
    """Network of an experiment, of one name and seed: untrained, and in training.

    The name is "transformer" or "pde", with the end ", no attention" for a network without attention.
    """

    name: str
    seed: int
    untrained: TokenNetwork
    fit: Fit

    @property
    def states(self) -> tuple[TokenNetwork, TokenNetwork]:
        """Return the network of the experiment before and after training."""
        return self.untrained, self.fit.network


@dataclass(frozen=True)
class Subjects:
    """Networks of an experiment, by name and seed, and the task on which they are trained."""

    case: TrainingCase
    task: Task
    seeds: tuple[int, ...]
    all: tuple[Subject, ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the networks."""
        return list(dict.fromkeys(subject.name for subject in self.all))

    def measure(self, function: Callable[[TokenNetwork], Any]) -> Floats:
        """Return the values of ``function`` for each network, as an array (network, state, seed, ...).

        The axis network has the order of ``names``, the axis state is untrained or trained.
        """
        found = np.array([[function(network) for network in subject.states] for subject in self.all], dtype=float)
        by_name = found.reshape(len(self.names), len(self.seeds), *found.shape[1:])
        return np.ascontiguousarray(np.swapaxes(by_name, 1, 2))

    def of(self, name: str) -> list[Subject]:
        """Return the networks of one name in the order of their seeds."""
        return [subject for subject in self.all if subject.name == name]

    def inputs(self, count: int) -> Tensor:
        """Return the inputs of the first ``count`` test examples."""
        return self.task.test.inputs[:count]

    def coordinates(self) -> dict[str, Labelled]:
        """Return the names along the axes ``network``, ``state`` and ``seed``, and each network's test accuracy."""
        accuracy = [[subject.fit.history.test_accuracy[k] for k in (0, -1)] for subject in self.all]
        by_name = np.array(accuracy).reshape(len(self.names), len(self.seeds), 2).swapaxes(1, 2)
        return {
            **coordinates(network=self.names, state=STATES, seed=self.seeds),
            "accuracy": Labelled(AXES, by_name, "fraction of correct answers on the test examples"),
        }


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch to one thread during a block or a function: the last digits of sums depend on the threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def case_of(case: TrainingCase, kind: str, seed: int) -> TrainingCase:
    """Return a training case with another kind of network ("transformer" or "pde") and another seed.

    Raises CaseError if the options of the case do not allow that kind.
    """
    return case.replace([f'network.kind="{kind}"', f"training.seed={seed}"])


def networks_of(case: TrainingCase) -> dict[str, TrainingCase]:
    """Return the training case of each network of an experiment by name: both kinds, with attention and without.

    The networks without attention are omitted if the case has no attention, or no other part in its layers.
    """
    found = {kind: case_of(case, kind, case.training.seed) for kind in KINDS}
    if not (case.network.attention and case.network.feed_forward):
        return found
    return found | {f"{kind}{NO_ATTENTION}": without_attention(one) for kind, one in found.items()}


def without_attention(case: TrainingCase) -> TrainingCase:
    """Return a training case whose network has no attention, and no pattern of attention."""
    network = msgspec.structs.replace(case.network, attention=False, pattern=None)
    return msgspec.structs.replace(case, network=network)


def train_subjects(
    case: TrainingCase,
    seeds: Sequence[int],
    show: Printer,
    after_epoch: Callable[[str, Fit], None] = lambda name, fit: None,
    networks: Mapping[str, TrainingCase] | None = None,
) -> Subjects:
    """Train each network of an experiment for each seed, and return all networks, untrained and trained.

    ``after_epoch`` has the arguments name and training, and is called before training too. ``networks`` are the
    training cases by name, by default those of ``networks_of``.
    """
    task, found = task_of(case), []
    for name, of_name in (networks_of(case) if networks is None else networks).items():
        for seed in seeds:
            fit = begin(of_name.replace([f"training.seed={seed}"]), task)
            untrained = copy.deepcopy(fit.network)
            after_epoch(name, fit)
            train(fit, after_epoch=partial(after_epoch, name))
            show(f"{name}, seed {seed}: accuracy {fit.history.test_accuracy[-1]:.4f}{_end(fit)}")
            found.append(Subject(name, seed, untrained, fit))
    return Subjects(case, task, tuple(seeds), tuple(found))


def _end(fit: Fit) -> str:
    """Return a comma and the reason why training stopped early, or an empty text."""
    return f", {fit.stopped}" if fit.stopped else ""


def lengths_of(x: Tensor) -> Tensor:
    """Return the norms (examples,) of vectors at all tokens (examples, n, d) together."""
    lengths: Tensor = torch.linalg.vector_norm(x, dim=(1, 2))
    return lengths
