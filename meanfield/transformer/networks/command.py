"""The command `meanfield transformer train`: a training file, or a file of training that continues."""

from __future__ import annotations

from pathlib import Path

import torch

from meanfield.case.errors import CaseError
from meanfield.running import Printer
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.record import read_training, write_training
from meanfield.transformer.networks.section import load_training
from meanfield.transformer.networks.training import Fit, begin, train
from solvers.timestepping.state import NonFinite


def prepared(source: str, overrides: list[str]) -> Fit:
    """Training at its beginning, or as a file has it. Raises CaseError and FileError."""
    if Path(source).suffix not in (".h5", ".hdf5"):
        case = load_training(source, overrides)
        torch.set_num_threads(case.training.threads)
        return begin(case, task_of(case))
    if overrides:
        raise CaseError(f"--set {overrides[0]}: not allowed with a file, whose training continues as it began")
    fit = read_training(source)
    torch.set_num_threads(fit.case.training.threads)
    return fit


def train_into(fit: Fit, path: str, until: int | None, command: str, show: Printer, *, continues: bool = False) -> Fit:
    """Train, writing the file after each epoch. Raises NonFinite at an explosion, which the file has by then.

    ``continues``: whether ``fit`` is what the file held.
    """
    write_training(path, fit, command, continues=continues)

    def after_epoch(fit: Fit) -> None:
        write_training(path, fit, command, continues=True)
        history, last = fit.history, fit.case.training.epochs
        if not fit.stopped:
            show(
                f"epoch {fit.epochs} of {last}: loss {history.train_loss[-1]:.4g}, "
                f"held back {history.test_loss[-1]:.4g}, accuracy {history.test_accuracy[-1]:.4f}"
            )

    train(fit, until, after_epoch)
    if fit.stopped:
        raise NonFinite(f"{path}: training {fit.stopped}; the weights before that step are in the file")
    return fit
