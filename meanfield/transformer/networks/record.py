"""Files of training: history by step and epoch, and a checkpoint from which training continues bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from meanfield import __version__
from meanfield.case.errors import CaseError
from meanfield.transformer.labelled import Labelled, write_labelled
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.section import parse_training, to_toml
from meanfield.transformer.networks.training import Fit, History, begin, parts_of
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError, reason
from solvers.io.schema import DAMAGE

MOMENTS = ("exp_avg", "exp_avg_sq")
SETS = {  # of the history: dimensions, long name, unit
    "loss": (("step",), "cross entropy of a batch", "nat"),
    "gradient_norm": (("step", "part"), "norm of the gradient of the loss by the weights of a part", "nat"),
    "state_norm": (("step", "layer"), "root mean square of the states after a layer", "1"),
    "train_loss": (("epoch",), "cross entropy of the examples learned from", "nat"),
    "test_loss": (("epoch",), "cross entropy of the examples held back", "nat"),
    "train_accuracy": (("epoch",), "share of right answers of the examples learned from", "1"),
    "test_accuracy": (("epoch",), "share of right answers of the examples held back", "1"),
}


def write_training(path: str | Path, fit: Fit, command: str = "") -> None:
    """Write a new file, or replace one, with the history and a checkpoint. Raises FileError where it cannot."""
    arrays = {"part": Labelled(("part",), list(parts_of(fit.network)))}
    for name, (dims, long_name, unit) in SETS.items():
        arrays[name] = Labelled(dims, _padded(name, fit), long_name, unit)
    attributes = {
        "title": fit.case.title,
        "training_case": to_toml(fit.case),
        "command": command,
        "stop_reason": fit.stopped or ("finished" if fit.epochs == fit.case.training.epochs else ""),
        "versions": f"meanfield {__version__}, torch {torch.__version__}",
    }
    write_labelled(path, arrays, attributes, {"weights": _weights(fit), "moments": dict(_moments(fit))})


def read_training(path: str | Path) -> Fit:
    """Training as it was when the file was written. Raises FileError for a file of something else or a damaged one."""
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    try:
        with open_to_read(path) as file:
            if "training_case" not in file.attrs:
                raise FileError(f"{path}: not a file of training")
            case = parse_training(file.attrs["training_case"])
            fit = begin(case, task_of(case))
            _read_into(fit, file)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error}") from None
    except CaseError:  # of its data, which are no part of the file
        raise
    except DAMAGE as error:
        raise FileError(f"{path}: damaged: {reason(error)}") from error
    return fit


def _read_into(fit: Fit, file: Any) -> None:
    fit.history = History(**{name: file[name][()].tolist() for name in SETS})
    stopped = str(file.attrs["stop_reason"])
    fit.stopped = "" if stopped == "finished" else stopped
    step = torch.tensor(float(len(fit.history.loss) - bool(fit.stopped)))
    with torch.no_grad():
        for name, parameter in fit.network.named_parameters():
            parameter.copy_(torch.from_numpy(np.asarray(file["weights"][name])))
            if name in file.get("moments/exp_avg", {}):
                moments = {moment: torch.from_numpy(np.asarray(file["moments"][moment][name])) for moment in MOMENTS}
                fit.optimizer.state[parameter] = {"step": step.clone(), **moments}


def _padded(name: str, fit: Fit) -> Any:
    """Measures as an array, of no rows where nothing has been measured."""
    values, dims = getattr(fit.history, name), SETS[name][0]
    widths = {"part": len(parts_of(fit.network)), "layer": len(fit.network.body.layers) + 1}
    return np.array(values, dtype=float).reshape(len(values), *(widths[dim] for dim in dims[1:]))


def _weights(fit: Fit) -> dict[str, Any]:
    return {name: parameter.detach().numpy() for name, parameter in fit.network.named_parameters()}


def _moments(fit: Fit) -> Iterator[tuple[str, Any]]:
    for name, parameter in fit.network.named_parameters():
        state = fit.optimizer.state.get(parameter, {})
        for moment in MOMENTS:
            if moment in state:
                yield f"{moment}/{name}", state[moment].numpy()
