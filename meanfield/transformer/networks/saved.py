"""Training at its beginning or continued, in memory or with a file that is written after each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from meanfield.running import Printer
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.record import read_training, write_training
from meanfield.transformer.networks.section import TrainingCase, load_training
from meanfield.transformer.networks.training import Fit, begin, train
from solvers.timestepping.state import NonFinite


def prepared(training: str | Path | TrainingCase, overrides: Sequence[str], continues: bool) -> Fit:
    """Return training at its beginning, or as the file that continues has it. Raises CaseError and FileError."""
    saved = read_training(str(training)) if continues else None
    case = load_training(training, overrides) if saved is None else saved.case
    torch.set_num_threads(case.training.threads)
    return begin(case, task_of(case)) if saved is None else saved


def train_into(
    fit: Fit, path: str | Path | None, until: int | None, command: str, show: Printer, *, continues: bool = False
) -> Fit:
    """Train, writing the file, if any, after each epoch. Raises NonFinite at an explosion, which the file has by then.

    ``continues``: whether ``fit`` comes from the file. The attribute ``result`` of any error is ``fit``.
    """

    def write(continues: bool) -> None:
        if path is not None:
            write_training(path, fit, command, continues=continues)

    def after_epoch(fit: Fit) -> None:
        write(continues=True)
        history, last = fit.history, fit.case.training.epochs
        if not fit.stopped:
            show(
                f"epoch {fit.epochs} of {last}: loss {history.train_loss[-1]:.4g}, "
                f"held back {history.test_loss[-1]:.4g}, accuracy {history.test_accuracy[-1]:.4f}"
            )

    try:
        write(continues)
        train(fit, until, after_epoch)
        if fit.stopped:
            kept = "" if path is None else "; the weights before that step are in the file"
            raise NonFinite(f"{'' if path is None else f'{path}: '}training {fit.stopped}{kept}")
    except BaseException as error:
        error.result = fit  # type: ignore[attr-defined]
        raise
    return fit
