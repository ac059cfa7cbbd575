"""Outcomes of experiments that are read from their files, so that a figure is drawn again without the experiment."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.transformer.labelled import Labelled, Outcome, datasets_of, dims_of
from meanfield.transformer.loading import require_torch
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError
from solvers.io.schema import DAMAGE, require_size

if TYPE_CHECKING:
    import h5py
    from matplotlib.figure import Figure

MODULES = {  # modules with the functions summary and draw, by experiment
    "information": "experiments.information_flow",
    "attention": "experiments.attention_maps",
    "bottleneck": "experiments.bottleneck",
    "gradients": "experiments.gradient_flow",
    "sensitivity": "experiments.sensitivity",
    "depth": "experiments.depth_limit",
    "positions": "experiments.positions",
    "robustness": "experiments.robustness",
    "stabilizers": "experiments.verdicts",
    "scaling": "experiments.scaling",
    "untrained": "experiments.untrained",
    "fit": "fitting",
}


def load_outcome(path: str | Path) -> Outcome:
    """Return the outcome of an experiment, or of ``fit``, from the file that its command has written.

    Raises FileError for the file of another study or a damaged one, and CaseError if PyTorch is missing.
    """
    try:
        with open_to_read(path) as file:
            attributes = {name: str(text) for name, text in file.attrs.items()}
            name = attributes.get("experiment", "")
            if name not in MODULES:
                raise FileError(f"{path}: expected a run, the index of a sweep, or an experiment")
            datasets = datasets_of(file)
            for dataset in datasets.values():
                require_size(dataset, Path(path).stat().st_size)
            arrays = {name: _read_array(name, dataset) for name, dataset in datasets.items()}
    except DAMAGE as error:
        raise FileError(f"{path}: is damaged ({error})") from None
    require_torch()
    module = import_module(f"meanfield.transformer.{MODULES[name]}")
    return Outcome(arrays, module.summary, module.draw, attributes.get("title", ""), attributes)


def draw_stored(path: str | Path) -> Figure:
    """Return the figure of an experiment, or of ``fit``, from the file that its command has written.

    Raises the errors of ``load_outcome``, and FileError for a file without an array that the figure needs.
    """
    outcome = load_outcome(path)
    try:
        return outcome.plot()
    except DAMAGE as error:
        raise FileError(f"{path}: is damaged ({error})") from None


def _read_array(name: str, dataset: h5py.Dataset) -> Labelled:
    """Return an array of an HDF5 file with its dimensions and description; words are decoded."""
    values: Any = dataset[()]
    if dataset.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    attributes = dataset.attrs
    return Labelled(dims_of(name, dataset), values, str(attributes.get("long_name", "")), attributes.get("units", "1"))
