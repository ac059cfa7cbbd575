"""Networks of an experiment: of either kind, untrained and trained, for several seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from meanfield.running import Printer
from meanfield.transformer.labelled import Labelled, coordinates
from meanfield.transformer.networks.data import Task, task_of
from meanfield.transformer.networks.network import BODIES, TokenNetwork
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import Fit, begin, train
from solvers.mesh.mesh import Floats

KINDS = tuple(BODIES)
STATES = ("untrained", "trained")
AXES = ("network", "state", "seed")


@dataclass(frozen=True)
class Subject:
    """Network of an experiment, of one kind and seed: untrained, and in training."""

    kind: str
    seed: int
    untrained: TokenNetwork
    fit: Fit

    @property
    def states(self) -> tuple[TokenNetwork, TokenNetwork]:
        """Return the network of the experiment before and after training."""
        return self.untrained, self.fit.network


@dataclass(frozen=True)
class Subjects:
    """Networks of an experiment, by kind and seed, and the task on which they are trained."""

    case: TrainingCase
    task: Task
    seeds: tuple[int, ...]
    all: tuple[Subject, ...]

    def measure(self, function: Callable[[TokenNetwork], Any]) -> Floats:
        """Return the values of ``function`` for each network, as an array (network, state, seed, ...).

        The axis network is Transformer or PDE network, the axis state untrained or trained.
        """
        found = np.array([[function(network) for network in subject.states] for subject in self.all], dtype=float)
        by_kind = found.reshape(len(KINDS), len(self.seeds), *found.shape[1:])
        return np.ascontiguousarray(np.swapaxes(by_kind, 1, 2))

    def of(self, kind: str) -> list[Subject]:
        """Return the networks of one kind, "transformer" or "pde", in the order of their seeds."""
        return [subject for subject in self.all if subject.kind == kind]

    def inputs(self, count: int) -> Tensor:
        """Return the inputs of the first ``count`` test examples."""
        return self.task.test.inputs[:count]

    def coordinates(self) -> dict[str, Labelled]:
        """Return the names along the axes ``network``, ``state`` and ``seed``, and each network's test accuracy."""
        accuracy = [[subject.fit.history.test_accuracy[k] for k in (0, -1)] for subject in self.all]
        by_kind = np.array(accuracy).reshape(len(KINDS), len(self.seeds), 2).swapaxes(1, 2)
        return {
            **coordinates(network=KINDS, state=STATES, seed=self.seeds),
            "accuracy": Labelled(AXES, by_kind, "fraction of correct answers on the test examples"),
        }


def case_of(case: TrainingCase, kind: str, seed: int) -> TrainingCase:
    """Return a training case with another kind of network ("transformer" or "pde") and another seed.

    Raises CaseError if the options of the case do not allow that kind.
    """
    return case.replace([f'network.kind="{kind}"', f"training.seed={seed}"])


def train_subjects(
    case: TrainingCase,
    seeds: Sequence[int],
    show: Printer,
    after_epoch: Callable[[Fit], None] = lambda fit: None,
) -> Subjects:
    """Train a network of each kind for each seed, and return all networks, untrained and trained.

    ``after_epoch`` is called before training too.
    """
    cases = [case_of(case, kind, seed) for kind in KINDS for seed in seeds]
    task, found = task_of(case), []
    for one in cases:
        fit = begin(one, task)
        untrained = copy.deepcopy(fit.network)
        after_epoch(fit)
        train(fit, after_epoch=after_epoch)
        show(f"{one.network.kind}, seed {one.training.seed}: accuracy {fit.history.test_accuracy[-1]:.4f}{_end(fit)}")
        found.append(Subject(one.network.kind, one.training.seed, untrained, fit))
    return Subjects(case, task, tuple(seeds), tuple(found))


def _end(fit: Fit) -> str:
    return f", {fit.stopped}" if fit.stopped else ""
