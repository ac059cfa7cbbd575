"""Training, new or continued, in memory or with a file that is written after each epoch.

A file has the history by step and epoch, and a checkpoint from which training continues bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
import torch

from meanfield import __version__
from meanfield.case.errors import CaseError
from meanfield.running import Printer
from meanfield.transformer.labelled import Labelled, coordinates, write_labelled
from meanfield.transformer.networks.data import Task, task_of
from meanfield.transformer.networks.network import build
from meanfield.transformer.networks.section import TrainingCase, load_training, parse_training, to_toml
from meanfield.transformer.networks.training import Fit, History, begin, parts_of, train
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError, reason
from solvers.io.schema import DAMAGE, dataset_of, group_of, require_size
from solvers.mesh.mesh import Floats
from solvers.timestepping.state import NonFinite

DIGEST = "digest"
MOMENTS = ("exp_avg", "exp_avg_sq")
SETS = {  # arrays of the history: dimensions, long name, unit
    "loss": (("step",), "cross entropy of a batch", "nat"),
    "gradient_norm": (("step", "part"), "norm of the gradient of the loss by the weights of a part", "nat"),
    "state_norm": (("step", "layer"), "root mean square of the states after a layer", "1"),
    "train_loss": (("epoch",), "cross entropy of the training examples", "nat"),
    "test_loss": (("epoch",), "cross entropy of the test examples", "nat"),
    "train_accuracy": (("epoch",), "fraction of correct answers on the training examples", "1"),
    "test_accuracy": (("epoch",), "fraction of correct answers on the test examples", "1"),
}


def write_training(path: str | Path, fit: Fit, command: str = "", *, continues: bool = False) -> None:
    """Write a training into an HDF5 file: its history, and a checkpoint from which it continues.

    An existing file is replaced. ``continues``: whether that file has an earlier state of the same training: then
    additions of a user are kept. Raises FileError if the file cannot be written.
    """
    arrays = coordinates(part=list(parts_of(fit.network)))
    for name, (dims, long_name, unit) in SETS.items():
        arrays[name] = Labelled(dims, _padded_measure(name, fit), long_name, unit)
    attributes = {
        "title": fit.case.title,
        "training_case": to_toml(fit.case),
        "command": command,
        "stop_reason": fit.stopped or ("finished" if fit.epochs == fit.case.training.epochs else ""),
        "versions": f"meanfield {__version__}, torch {torch.__version__}",
    }
    groups = {"weights": _weights(fit), "moments": dict(_moments(fit))}
    datasets = {name: array.values for name, array in arrays.items() if name in SETS}
    datasets |= {f"{group}/{name}": values for group, content in groups.items() for name, values in content.items()}
    attributes[DIGEST] = _digest(attributes, datasets)
    write_labelled(path, arrays, attributes, groups, continues=continues)


def read_training(path: str | Path) -> Fit:
    """Return the training stored in a file. Raises FileError for a file of another kind or a damaged one."""
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    try:
        with open_to_read(path) as file:
            if "training_case" not in file.attrs:
                raise FileError(f"{path}: not a file of training")
            case = parse_training(file.attrs["training_case"])
            _require_layers(file, case)
            task = task_of(case)
            names = _require_shapes(file, case, task, Path(path).stat().st_size)
            datasets = {name: dataset_of(file, name)[()] for name in names}
            attributes = {name: str(file.attrs[name]) for name in ("training_case", "stop_reason")}
            if DIGEST not in file.attrs:
                raise ValueError(f"it has no attribute {DIGEST!r}")
            if file.attrs[DIGEST] != _digest(attributes, datasets):
                raise FileError(f"{path}: damaged: its history or weights differ from the written ones")
            fit = begin(case, task)
            _read_into(fit, datasets, attributes["stop_reason"])
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error}") from None
    except CaseError:  # an error of the data, which are not stored in the file
        raise
    except (*DAMAGE, RecursionError) as error:
        raise FileError(f"{path}: damaged: {reason(error)}") from error
    return fit


def _require_layers(file: h5py.File, case: TrainingCase) -> None:
    """Raise ValueError if a file has fewer arrays of weights than layers, before data are read or layers are built."""
    stored, layers = len(group_of(file, "weights")), case.network.layers
    if stored < layers:
        raise ValueError(f"{stored} arrays of weights, the network of its case has {layers} layers")


def _require_shapes(file: h5py.File, case: TrainingCase, task: Task, size: int) -> list[str]:
    """Return the names of the datasets in a file of training: history, weights, and moments of gradients of Adam.

    Raises ValueError for shapes that do not fit the case, before reading any values. The size of the file bounds the
    size of the arrays, and a step uses one example or more. The network of the case is built without allocating memory.
    """
    measured, layers = dataset_of(file, "state_norm").shape, case.network.layers
    if measured[1:] != (layers + 1,):
        raise ValueError(f"state_norm has shape {measured}, the network of its case {layers} layers")
    with torch.device("meta"):
        network = build(case, task.shape)
    most = {"epoch": case.training.epochs + 1, "step": case.training.epochs * len(task.train.labels) + 1}
    stored: set[str] = set()
    if file.get("moments", getlink=True) is not None:  # none before the first step
        group_of(file, "moments").visit(stored.add)  # follows no link
    shapes: dict[str, tuple[int, ...]] = {}
    for name, parameter in network.named_parameters():
        moments = [f"{moment}/{name}" for moment in MOMENTS]
        shapes[f"weights/{name}"] = tuple(parameter.shape)
        shapes |= {f"moments/{moment}": tuple(parameter.shape) for moment in moments if stored.issuperset(moments)}
    for name in (*SETS, *shapes):
        dataset = dataset_of(file, name)
        require_size(dataset, size)
        if dataset.dtype.kind != "f" or dataset.ndim != len(shapes.get(name, SETS.get(name, ((), "", ""))[0])):
            raise ValueError(f"{name} has shape {dataset.shape} of {dataset.dtype}")
        if name in shapes and dataset.shape != shapes[name]:
            raise ValueError(f"{name} has shape {dataset.shape}, the network of its case {shapes[name]}")
        if name in SETS and len(dataset) > most[SETS[name][0][0]]:
            raise ValueError(f"{name} has {len(dataset)} rows, its case at most {most[SETS[name][0][0]]}")
    return [*SETS, *shapes]


def _digest(attributes: Mapping[str, str], datasets: Mapping[str, Floats]) -> str:
    """Return the SHA-256 digest of a training: of its case, the reason why it stopped, and all datasets."""
    found = hashlib.sha256()
    for name in ("training_case", "stop_reason"):
        found.update(f"{name}\0{attributes[name]}\0".encode())
    for name, values in sorted(datasets.items()):
        array = np.ascontiguousarray(values)
        found.update(f"{name}\0{array.dtype.str}\0{np.shape(values)}\0".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _read_into(fit: Fit, datasets: Mapping[str, Floats], stopped: str) -> None:
    """Read weights, moments of the optimizer and the history of training from datasets of a file into a fit."""
    fit.history = History(**{name: datasets[name].tolist() for name in SETS})
    fit.stopped = "" if stopped == "finished" else stopped
    step = torch.tensor(float(len(fit.history.loss) - bool(fit.stopped)))
    with torch.no_grad():
        for name, parameter in fit.network.named_parameters():
            parameter.copy_(torch.from_numpy(np.asarray(datasets[f"weights/{name}"])))
            if f"moments/{MOMENTS[0]}/{name}" in datasets:
                moments = {
                    kind: torch.from_numpy(np.asarray(datasets[f"moments/{kind}/{name}"])).to(parameter.device)
                    for kind in MOMENTS
                }
                fit.optimizer.state[parameter] = {"step": step.clone(), **moments}


def _padded_measure(name: str, fit: Fit) -> Floats:
    """Return a measure of the history, by name, as an array; no rows if nothing has been measured."""
    values, dims = getattr(fit.history, name), SETS[name][0]
    widths = {"part": len(parts_of(fit.network)), "layer": len(fit.network.body.layers) + 1}
    return np.array(values, dtype=float).reshape(len(values), *(widths[dim] for dim in dims[1:]))


def _weights(fit: Fit) -> dict[str, Floats]:
    """Return the weights of a network on the host, by name."""
    return {name: parameter.detach().cpu().numpy() for name, parameter in fit.network.named_parameters()}


def _moments(fit: Fit) -> Iterator[tuple[str, Floats]]:
    """Yield the moments of the optimizer for each parameter: name and array."""
    for name, parameter in fit.network.named_parameters():
        state = fit.optimizer.state.get(parameter, {})
        for moment in MOMENTS:
            if moment in state:
                yield f"{moment}/{name}", state[moment].cpu().numpy()


def prepare_training(training: str | Path | TrainingCase, overrides: Sequence[str], continues: bool) -> Fit:
    """Return a new training before its first step, or, if ``continues``, the training stored in the file.

    Raises CaseError for a training file that is not valid, FileError for a stored training that cannot be read.
    """
    saved = read_training(str(training)) if continues else None
    case = load_training(training, overrides) if saved is None else saved.case
    torch.set_num_threads(case.training.threads)
    return begin(case, task_of(case)) if saved is None else saved


def train_into(
    fit: Fit, path: str | Path | None, until: int | None, command: str, show: Printer, *, continues: bool = False
) -> Fit:
    """Train a network, and write the file at ``path`` (None: no file) before training and after each epoch.

    until      epoch after which training pauses; None: the last one
    continues  whether ``fit`` comes from the file

    Raises NonFinite if training explodes, after writing the file. The attribute ``result`` of any error is ``fit``.
    """

    def write(continues: bool) -> None:
        if path is not None:
            write_training(path, fit, command, continues=continues)

    def after_epoch(fit: Fit) -> None:
        """Write the file, and show the losses of the epoch."""
        write(continues=True)
        history, last = fit.history, fit.case.training.epochs
        if not fit.stopped:
            show(
                f"epoch {fit.epochs} of {last}: loss {history.train_loss[-1]:.4g}, "
                f"test loss {history.test_loss[-1]:.4g}, accuracy {history.test_accuracy[-1]:.4f}"
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
