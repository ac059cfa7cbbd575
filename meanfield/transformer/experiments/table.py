"""Table of experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch

from meanfield.case.errors import CaseError
from meanfield.running import Printer
from meanfield.transformer.experiments.attention_maps import attention_maps
from meanfield.transformer.experiments.bottleneck import bottleneck
from meanfield.transformer.experiments.depth_limit import depth_limit
from meanfield.transformer.experiments.gradient_flow import gradient_flow
from meanfield.transformer.experiments.information_flow import information_flow
from meanfield.transformer.experiments.positions import positions
from meanfield.transformer.experiments.robustness import robustness
from meanfield.transformer.experiments.scaling import scaling
from meanfield.transformer.experiments.sensitivity import sensitivity
from meanfield.transformer.experiments.stabilizers import stabilizers
from meanfield.transformer.experiments.subjects import Subjects, train_subjects
from meanfield.transformer.experiments.untrained import untrained
from meanfield.transformer.experiments.workers import Workers
from meanfield.transformer.labelled import Outcome
from meanfield.transformer.networks.section import TrainingCase, to_toml

Experiment = Callable[[TrainingCase, tuple[int, ...], Printer, Workers], Outcome]


def _of_trained(measure: Callable[[Subjects], Outcome]) -> Experiment:
    """Return an experiment that trains standard Transformers and PDE networks, and applies ``measure`` to them."""

    def experiment(case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers) -> Outcome:
        return measure(train_subjects(case, seeds, show))

    return experiment


EXPERIMENTS: dict[str, Experiment] = {
    "information": _of_trained(information_flow),
    "attention": lambda case, seeds, show, workers: attention_maps(case, seeds, show),
    "bottleneck": lambda case, seeds, show, workers: bottleneck(case, seeds, show),
    "gradients": _of_trained(gradient_flow),
    "sensitivity": _of_trained(sensitivity),
    "depth": _of_trained(depth_limit),
    "positions": positions,
    "robustness": robustness,
    "stabilizers": stabilizers,
    "scaling": scaling,
    "untrained": untrained,
}
PARALLEL = ("positions", "robustness", "stabilizers")  # experiments whose networks can be trained by several workers


def run_experiment(
    name: str, case: TrainingCase, seeds: int, workers: Workers, show: Printer, vary: Sequence[str] = ()
) -> Outcome:
    """Run an experiment, given by name, with networks of ``seeds`` seeds, and return its outcome.

    Raises CaseError for options that the experiment does not allow.
    """
    if name not in EXPERIMENTS:
        raise CaseError(f"name = {name}: expected one of {', '.join(EXPERIMENTS)}")
    for key, value, default in (("dask", workers.dask, None), ("jobs", workers.jobs, 1)):
        if value != default and name not in PARALLEL:
            raise CaseError(f"{key} = {value}: only allowed with the experiments {', '.join(PARALLEL)}")
    if vary and name != "stabilizers":
        raise CaseError(f"vary = {vary[0]}: only allowed with the experiment stabilizers")
    if workers.jobs != 1 and workers.dask is not None:
        raise CaseError(f"jobs = {workers.jobs}: not allowed with dask, whose workers train the networks")
    if case.training.device != "cpu" and name != "stabilizers":
        raise CaseError(f'training.device = "{case.training.device}": only allowed with the experiment stabilizers')
    if name == "attention" and not case.network.attention:
        raise CaseError("network.attention = false: expected true, for an experiment on attention maps")
    if name == "attention" and case.network.pattern is not None:
        raise CaseError("network.pattern: expected none, for an experiment on attention maps")
    torch.set_num_threads(case.training.threads)
    experiment = partial(stabilizers, vary=vary) if vary else EXPERIMENTS[name]
    outcome = experiment(case, tuple(range(seeds)), show, workers)
    facts = {"title": f"{name}: {case.data.kind}", "experiment": name, "training_case": to_toml(case)}
    return replace(outcome, attributes={**facts, "summary": outcome.summary})
