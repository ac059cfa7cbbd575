"""Arrays of a result: snapshots that are read when indexed, and the table of diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from solvers.io.run_file import Run

if TYPE_CHECKING:
    from xarray import Dataset

    from solvers.io.reading import Floats


class Snapshots(NDArrayOperatorsMixin):
    """Array (time, ...) in a file, read when it is indexed.

    Indexing returns a NumPy array of the indexed rows. NumPy functions and operators read the whole array.

    Attributes
    ----------
    shape : tuple of int
        Numbers of snapshots and cells, or of snapshots, tokens and coordinates.
    ndim : int
        Number of dimensions.
    dtype : numpy.dtype
        Number format: float64, or complex128 for complex fields.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64, "time.end": 0.5, "output.snapshots": 5})
    >>> density = mf.run(case, "flow.h5", overwrite=True).density
    >>> density.shape, density[-1].shape
    ((6, 64), (64,))
    >>> np.round((density * (2 * np.pi / 64)).sum(axis=1), 9)  # mass
    array([1., 1., 1., 1., 1., 1.])
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.shape: tuple[int, ...] = (run.snapshots, *run.snapshot_shape)
        self.dtype, self.ndim = np.dtype(complex if run.is_complex else float), len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Floats:
        first, *rest = key if isinstance(key, tuple) else (key,)
        if first is Ellipsis or first is None:
            selected: Floats = np.asarray(self)[key]
            return selected
        rows = self._run.rows(first)
        return rows[(*(slice(None),) * np.ndim(np.arange(len(self))[first]), *rest)] if rest else rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.asarray(self._run.rows(slice(None)), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(value) if isinstance(value, Snapshots) else value for value in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __repr__(self) -> str:
        return f"<{self._run.kind} {self.shape} of {self._run.path}, read when indexed>"


class DiagnosticsTable(Mapping[str, "Floats"]):
    """Diagnostics over time: a mapping of names to arrays (samples, ...).

    Raises
    ------
    KeyError
        If a diagnostic was not recorded; the message has the nearest name.

    Examples
    --------
    The energy of self-attention does not decrease.

    >>> import numpy as np
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64, "time.end": 0.5})
    >>> diagnostics = mf.simulate(case).diagnostics
    >>> bool((np.diff(diagnostics["energy"]) > 0).all())
    True
    >>> float(diagnostics.time[-1])
    0.5
    >>> round(float(diagnostics.to_xarray().mass.sel(time=0.25, method="nearest")), 9)
    1.0
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def time(self) -> Floats:
        """Return the times (samples,) at which the diagnostics were recorded."""
        return self._run.sample_times

    def to_xarray(self) -> Dataset:
        """Return the diagnostics as a Dataset with dimensions, units and names.

        Returns
        -------
        xarray.Dataset
            Variables over the dimension ``time``, whose coordinate has the times of the samples:
            ``.energy.plot()``, ``.energy.sel(time=3, method="nearest")``. Other dimensions, such as ``degree``, have
            the numbers 0, 1, … as coordinates.
        """
        from meanfield.results.labelled import diagnostics_of

        return diagnostics_of(self._run)

    def __getitem__(self, name: str) -> Floats:
        if name not in self._run.diagnostics:
            matches = get_close_matches(name, self._run.diagnostics, n=1)
            hint = f"; did you mean {matches[0]!r}?" if matches else f"; expected one of {', '.join(self)}"
            raise KeyError(f"diagnostic {name!r} was not recorded{hint}")
        return self._run.diagnostics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.diagnostics)

    def __len__(self) -> int:
        return len(self._run.diagnostics)

    def __repr__(self) -> str:
        return f"<diagnostics of {len(self.time)} samples: {', '.join(self)}>"
