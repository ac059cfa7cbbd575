"""File of the layers of a trained Transformer: their form as attributes, arrays (layers, ...) as datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.model.trained_layer import ARRAYS, REQUIRED, LayerForm, TrainedLayer
from solvers.io.opening import open_to_read
from solvers.io.repair import FileError
from solvers.io.schema import DAMAGE, dataset_of, group_of, require_size
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

LAYERS = "layers"  # group of the arrays, each with one row for each layer, or one row for all
START = "start"
FREQUENCIES = "frequencies"
_FORM = ("placement", "norm", "epsilon", "activation", "rotary_scale")
_LATER = ("cap", "experts")  # absent in files of earlier versions


class TrainedLayers:
    """Layers of a trained Transformer in a file, built one by one to save memory: each is a map of states.

    path      of the file
    beta      β of the attention weights
    causal    whether token i attends to tokens j ≤ i only
    without   parts that are left out
    total     layers of a run: the layers of the file repeated, and a final norm after the last

    Raises ValueError for a file that holds no layers.
    """

    duration = 1.0

    def __init__(
        self, path: str | Path, beta: float, causal: bool, without: tuple[str, ...] = (), total: int | None = None
    ) -> None:
        if not Path(path).is_file():
            raise ValueError(f"domain.file = {path}: no such file")
        try:
            with open_to_read(path) as file:
                size = Path(path).stat().st_size
                self._stored = _arrays_of(file, size)
                self.form = _form_of(file, size, beta, causal)
                start_lacks = not file.attrs["start_has_positions"]
                learned = str(file.attrs["positions"]) == "learned"
        except (*DAMAGE, FileError) as error:
            raise ValueError(f"domain.file = {path}: cannot be read as layers of a Transformer: {error}") from None
        absent = [name for name in REQUIRED if name not in self._stored]
        if absent:
            raise ValueError(f"domain.file = {path}: has no array {LAYERS}/{absent[0]}")
        if learned and start_lacks != ("positions" in without):
            raise ValueError(
                f"domain.without = {list(without)}: the initial states contain the positions: write the case again "
                "with `meanfield transformer case --without`"
            )
        self.count = len(self._stored["query"])
        self._path, self._without, self.total = path, without, total or self.count
        self.layer(0)  # raises here for arrays that no layer can have

    @property
    def dimension(self) -> int:
        """Return the dimension d of the hidden states."""
        return int(self._stored["query"].shape[-1])

    def layer(self, index: int) -> TrainedLayer:
        """Return layer number ``index`` of a run, from 0 on; the layers of the file are repeated."""
        k = index % self.count
        arrays = {name: np.asarray(array[min(k, len(array) - 1)], float) for name, array in self._stored.items()}
        try:
            return TrainedLayer(self.form, arrays, self._without, is_last=index == self.total - 1)
        except ValueError as error:
            raise ValueError(f"domain.file = {self._path}: {error}") from None

    def __call__(self, time: float, positions: Floats) -> Floats:
        return self.layer(round(time))(positions)


def _arrays_of(file: h5py.File, size: int) -> dict[str, Floats]:
    """Return the arrays of the layers in a file of a trained Transformer, by name.

    The group may hold other arrays. Raises as ``_numbers``.
    """
    group = group_of(file, LAYERS)
    return {name: _numbers(group, name, size) for name in ARRAYS if name in group}


def _numbers(group: h5py.Group, name: str, size: int) -> Floats:
    """Return the dataset ``name`` of an HDF5 group as an array.

    Raises ValueError for data outside the file, larger than the file, or not numeric.
    """
    dataset = dataset_of(group, name)
    require_size(dataset, size)
    if dataset.dtype.kind not in "fiu" or not dataset.shape or not dataset.shape[0]:
        raise ValueError(f"{name} has shape {dataset.shape} of {dataset.dtype}, expected real numbers in rows")
    return np.asarray(dataset[()])


def _form_of(file: h5py.File, size: int, beta: float, causal: bool) -> LayerForm:
    """Return the form of a trained layer from the attributes of a file of weights."""
    form: dict[str, Any] = {name: file.attrs[name] for name in (*_FORM, *(n for n in _LATER if n in file.attrs))}
    for name in ("epsilon", "rotary_scale", *_LATER):
        if name in form and not isinstance(form[name], int | float | np.integer):
            raise ValueError(f"attribute {name} is {form[name]!r:.40}, expected a number")
    frequencies = _numbers(file, FREQUENCIES, size) if FREQUENCIES in file else None
    return LayerForm(beta=beta, causal=causal, frequencies=frequencies, **form)


def form_attributes(form: LayerForm) -> dict[str, str | float]:
    """Return the properties shared by all layers as attributes of a file, without β and the mask.

    β and the mask belong to the case.
    """
    return {name: getattr(form, name) for name in (*_FORM, *_LATER)}
