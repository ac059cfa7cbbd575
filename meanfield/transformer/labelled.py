"""Outcome of a study, and HDF5 files of arrays with named dimensions in the layout of netCDF-4, which xarray opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.results.refusals import with_python_names
from meanfield.runtime.paths import require_free
from solvers.io.attributes import copy_additions
from solvers.io.opening import open_to_read
from solvers.io.replacing import replacement
from solvers.io.schema import DAMAGE
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    import h5py
    from matplotlib.figure import Figure
    from xarray import Dataset

WRITER = "written_by"  # attribute of the files written here
COMPRESSION: dict[str, Any] = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
MIN_COMPRESSED = 4096  # bytes; chunks of smaller arrays need more memory than compression saves
_TEXTS = ("title", "model", "stop_reason", "command", "summary")  # attributes that describe a file


@dataclass(frozen=True)
class Labelled:
    """Array, or list of words, with the name of each dimension, a description and a unit.

    Parameters
    ----------
    dims : tuple of str
        Name of each dimension.
    values : array_like
        Numbers or words.
    long_name : str
        Description, for labels of figures.
    units : str
        Unit; "1" for numbers without one.

    Examples
    --------
    >>> from meanfield.transformer import Labelled
    >>> cosine = Labelled(("layer",), [0.088, 0.145, 0.154], "mean inner product of two tokens")
    >>> cosine.dims, len(cosine.values), cosine.units
    (('layer',), 3, '1')
    """

    dims: tuple[str, ...]
    values: Any
    long_name: str = ""
    units: str = "1"


def coordinates(**values: Any) -> dict[str, Labelled]:
    """Return one coordinate array for each argument, along a dimension of the argument's name.

    ``coordinates(seed=range(3))`` is an array "seed" with the values 0, 1, 2 along the dimension "seed".
    """
    return {name: Labelled((name,), np.asarray(one)) for name, one in values.items()}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of a study of Transformers: arrays with named dimensions, tables and a figure.

    :func:`~meanfield.transformer.ablate`, :func:`~meanfield.transformer.experiment` and the other studies return
    outcomes. ``outcome["cosine"]`` is the NumPy array of that name, ``outcome.arrays["cosine"].dims`` names its
    dimensions. The ``repr`` is ``summary``, the tables.

    Parameters
    ----------
    arrays : mapping of str to Labelled
        Arrays by name.
    describing : function (outcome) -> str
        Function that returns the tables in Markdown.
    drawing : function (figure, outcome)
        Function that draws the outcome on an empty figure of Matplotlib.
    title : str
        Title of the figure.
    attributes : mapping of str to str
        Model, text and options of the study.

    Examples
    --------
    >>> from meanfield.transformer import Labelled, Outcome
    >>> cosine = Labelled(("layer",), [0.088, 0.145, 0.154], "mean inner product of two tokens")
    >>> outcome = Outcome(
    ...     {"cosine": cosine},
    ...     describing=lambda outcome: f"{len(outcome['cosine']) - 1} layers",
    ...     drawing=lambda figure, outcome: figure.add_subplot().plot(outcome["cosine"]),
    ... )
    >>> outcome
    2 layers
    >>> float(outcome.to_xarray().cosine.isel(layer=-1)), len(outcome.plot().axes)
    (0.154, 1)
    >>> outcome.save("outcome.h5", overwrite=True).name
    'outcome.h5'
    """

    arrays: Mapping[str, Labelled]
    describing: Callable[[Outcome], str]
    drawing: Callable[[Figure, Outcome], None]
    title: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def summary(self) -> str:
        """Return the tables of the study's results in Markdown."""
        return self.describing(self)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return np.asarray(self.arrays[name].values)

    def __repr__(self) -> str:
        return self.summary

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw the figure of the study's outcome.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Empty figure that is filled; a study may set its size. None: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        import matplotlib.figure

        figure = matplotlib.figure.Figure() if figure is None else figure
        self.drawing(figure, self)
        return figure

    def to_xarray(self) -> Dataset:
        """Return the arrays of the study as a Dataset with dimensions, descriptions and units.

        Returns
        -------
        xarray.Dataset
            Each array as a variable, or as a coordinate if it has the name of its only dimension; ``attrs`` are the
            attributes of the study.
        """
        from xarray import Dataset

        found = {
            name: (one.dims, np.asarray(one.values), {"long_name": one.long_name, "units": one.units})
            for name, one in self.arrays.items()
        }
        return Dataset(found, attrs=self.attributes)

    def save(self, path: str | Path, *, overwrite: bool = False, command: str = "") -> Path:
        """Write the arrays and attributes into an HDF5 file, which xarray opens with ``engine="h5netcdf"``.

        Parameters
        ----------
        path : str or Path
            File to be written.
        overwrite : bool
            Whether an existing file is replaced.
        command : str
            Attribute ``command`` of the file: how the file was made.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        FileError
            If the file exists and ``overwrite`` is false, or if it cannot be written.
        """
        with with_python_names():
            require_free(Path(path), overwrite)
        write_labelled(path, self.arrays, {**self.attributes, "command": command})
        return Path(path)


def write_labelled(
    path: str | Path,
    arrays: Mapping[str, Labelled],
    attributes: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    continues: bool = False,
    compressed: bool = False,
) -> None:
    """Write arrays with named dimensions into an HDF5 file, which replaces an existing one.

    A dimension without an array of its own name counts from 0.

    attributes  attributes of the file
    groups      further arrays without dimensions, by group and name
    continues   whether the replaced file is an earlier state of this one: then additions of a user are kept
    compressed  whether arrays of at least ``MIN_COMPRESSED`` bytes are compressed

    Raises FileError if the file cannot be written; an existing file is then unchanged.
    """
    import h5py

    with disk_errors(Path(path), "cannot write"), replacement(Path(path)) as new, h5py.File(new, "w") as file:
        file.attrs.update({WRITER: "meanfield transformer", **attributes})
        for name, array in arrays.items():
            values = _stored(array.values)
            filters = COMPRESSION if compressed and np.asarray(values).nbytes >= MIN_COMPRESSED else {}
            file.create_dataset(name, data=values, **filters)
            if array.long_name:
                file[name].attrs.update(long_name=array.long_name, units=array.units)
        _attach(file, arrays)
        for group, content in (groups or {}).items():
            for name, values in content.items():
                file.create_dataset(f"{group}/{name}", data=values)
        if continues:
            with open_to_read(Path(path)) as old:
                copy_additions(old, file)


def is_labelled(path: str | Path) -> bool:
    """Return whether ``write_labelled`` has written an HDF5 file; False also for a damaged file."""
    with Path(path).open("rb") as plain:
        if plain.read(9)[8:] != b"\0":  # superblock version: 0 in these files, 3 in runs and indexes
            return False
    try:
        with open_to_read(path) as file:
            return WRITER in file.attrs
    except DAMAGE:  # other readers report the damage
        return False


def described(path: str | Path) -> str | None:
    """Return a text that describes an HDF5 file of a study: its attributes, and the dimensions of its arrays.

    The result is None if ``write_labelled`` has not written the file, or if the file is damaged.
    """
    if not is_labelled(path):
        return None
    try:
        with open_to_read(path) as file:
            lines = [f"{name:12}{file.attrs[name]!s}" for name in _TEXTS[:-1] if file.attrs.get(name)]
            arrays = [_line(name, dataset) for name, dataset in datasets_of(file).items()]
            return "\n".join([*lines, "arrays", *arrays, str(file.attrs.get(_TEXTS[-1], ""))]).rstrip()
    except DAMAGE:
        return None


def datasets_of(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return the arrays at the root of an HDF5 file by name, without those whose values are in other files."""
    import h5py

    inside = [file[name] for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)]
    arrays = [each for each in inside if isinstance(each, h5py.Dataset) and not (each.is_virtual or each.external)]
    return {each.name.lstrip("/"): each for each in arrays}


def dims_of(name: str, dataset: h5py.Dataset) -> tuple[str, ...]:
    """Return the name of each dimension of an array in an HDF5 file.

    "?" is a dimension without a name, as an array of a user's own may have.
    """
    if dataset.is_scale:
        return (name,)
    return tuple(str((axis[0].name if len(axis) else None) or "?").lstrip("/") for axis in dataset.dims)


def _line(name: str, dataset: h5py.Dataset) -> str:
    """Return a line of text with the name, dimensions and description of an array in an HDF5 file."""
    return f"  {name} ({', '.join(dims_of(name, dataset))})  {dataset.attrs.get('long_name', '')}".rstrip()


def _stored(values: Any) -> Any:
    """Return an array as it is stored in HDF5, with texts encoded in UTF-8."""
    array = np.asarray(values)
    return (
        np.array([str(word).encode() for word in array.flat]).reshape(array.shape)
        if array.dtype.kind in "UO"
        else array
    )


def _attach(file: h5py.File, arrays: Mapping[str, Labelled]) -> None:
    """Attach dimension scales of HDF5 to the arrays of a file, from which other programs read the name of each axis."""
    for name, array in arrays.items():
        for dim, length in zip(array.dims, np.shape(array.values), strict=True):
            if dim not in file:
                file[dim] = np.arange(length)
            if dim != name and not file[dim].is_scale:
                file[dim].make_scale(dim)
    for name, array in arrays.items():
        if array.dims == (name,):
            if not file[name].is_scale:
                file[name].make_scale(name)
            continue
        for axis, dim in enumerate(array.dims):
            file[name].dims[axis].attach_scale(file[dim])
