"""Recorder of a solution in a run file that xarray opens, and restarts from such a file."""

from __future__ import annotations

import atexit
import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from weakref import finalize

import numpy as np

from ..backends import backend_for
from ..io.checkpoint import Checkpoints, Scalar, require_scalars
from ..io.layout import Column
from ..io.run_file import FileError, Run, RunFile, read
from ..mesh.checks import check_call, check_mesh, check_number
from ..mesh.mesh import Floats, Mesh
from ..timestepping.checks import check_positive
from ..timestepping.observers import Observer
from ..timestepping.schedules import Every
from ..timestepping.state import MethodState, State

Diagnostic = Callable[[Floats], float]
METHOD = "method."  # prefix of the names of a method's numbers and arrays in a checkpoint


class Recorder(Observer):
    """Observer that writes a solution to a run file; :func:`~solvers.record` returns it for ``callbacks`` of ``solve``.

    The file is closed by ``close()``, at the end of a ``with`` block, or when the recorder is garbage-collected, at the
    latest at the exit of Python.
    """

    def __init__(self, writer: _Writer, every: float) -> None:
        super().__init__(writer.write, Every(every))
        self._writer, self._last_step_end = writer, math.nan
        self.close = finalize(self, writer.close)

    def begin(self, state: State) -> bool:
        """Check the shape of the state, open an existing file to resume it, and record the state if a snapshot is due.

        Returns False: a recorder never ends a run.
        """
        self._writer.begin(state)
        return super().begin(state)

    def observe_if_due(self, state: State) -> bool:
        """Record the state if a snapshot is due, and write a checkpoint at the end of a step if the last one is old.

        Returns False: a recorder never ends a run.
        """
        ends = super().observe_if_due(state)
        if state.steps > 0 and self.follows(state):  # a restart within a step would not be bitwise equal
            self._last_step_end = state.time
            self._writer.checkpoint_if_due(state)
        return ends

    def end(self, state: State) -> None:
        """Write a checkpoint of the last state of a run, unless it lies within a step."""
        if self.follows(state) and self._last_step_end == state.time:
            self._writer.checkpoint_if_due(state, at_end=True)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError: a copy of a recorder would write to the same file."""
        raise TypeError(f"{self._writer.path}: a recorder holds its file open and cannot be copied or pickled")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file at the end of a ``with`` block, and record in its ``stop_reason`` how the block ended."""
        self._writer.end(kind, error, trace)
        self.close()


def record(
    path: str | Path,
    mesh: Mesh,
    *,
    every: float,
    fields: Sequence[str] = ("u",),
    diagnostics: Mapping[str, Diagnostic] | None = None,
    checkpoint: float = 60.0,
    overwrite: bool = False,
    resume: bool = False,
) -> Recorder:
    """Return a recorder of a solution into an HDF5 file that netCDF-4 programs such as xarray open.

    Pass the recorder to ``callbacks`` of :func:`~solvers.solve`, within a ``with`` block that closes the file. The
    attribute ``stop_reason`` of the file is then "finished", or "failed" or "interrupted" if the block raises. The file
    may be read meanwhile, by :func:`~solvers.read` or in another process. Complex fields are stored in the compound
    type by which xarray, h5netcdf and netCDF4 recognize complex numbers.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    mesh : Mesh
        Mesh of the solution.
    every : float
        Time between snapshots, which are at 0, ``every``, 2 ``every``, …. A run that ends between two of these times
        has no snapshot of its end.
    fields : str or sequence of str, optional
        Names of the fields: one for u (cells,), n for u (n, cells). The first is the dataset "density" of the file.
    diagnostics : mapping, optional
        Functions of u by name. Each returns a number, which is recorded with each snapshot.
    checkpoint : float, optional
        Seconds of wall time between checkpoints, from which :func:`~solvers.restart` continues; ∞ for none. The first
        one is written after the first step, and one at the end of a run.
    overwrite : bool, optional
        Whether an existing file is replaced.
    resume : bool, optional
        Whether an existing file is continued from the start time of the solution; its snapshots from that time on are
        replaced.

    Returns
    -------
    Recorder
        Observer with a method ``close()``, and a context manager. Without either the file is closed when the recorder
        is garbage-collected, at the latest at the exit of Python.

    Raises
    ------
    FileError
        If the file exists, except with ``overwrite`` or ``resume``, or cannot be written. With ``resume``
        :func:`~solvers.solve` raises it for a missing file, or one with other fields or diagnostics.
    ValueError
        If ``every`` is not finite and > 0, ``checkpoint`` is negative, or ``fields`` are not different names.
        :func:`~solvers.solve` raises it for a u of another shape than the fields.
    TypeError
        If ``mesh`` is no mesh, ``checkpoint`` no number, or a diagnostic no function of u.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, circle, read, record, solve
    >>> mesh = circle(32)
    >>> heat, u0 = Equation(mesh, [Diffusion(mesh, 1.0)]), 1 + mesh.centers[:, 0]
    >>> mean = {"mean": lambda u: u @ mesh.volumes / (2 * np.pi)}
    >>> with record("heat.h5", mesh, every=0.5, diagnostics=mean, overwrite=True) as recorder:
    ...     solution = solve(heat, u0, (0.0, 1.0), callbacks=recorder)
    >>> run = read("heat.h5")
    >>> run.times.tolist(), run.diagnostics["mean"].round(6).tolist()
    ([0.0, 0.5, 1.0], [1.0, 1.0, 1.0])
    """
    check_mesh(mesh)
    check_positive(every=every)
    if checkpoint != math.inf:
        check_number("checkpoint", checkpoint)
    for name, function in (diagnostics or {}).items():
        check_call(f"diagnostics[{name!r}]", function, "u")
    names = [fields] if isinstance(fields, str) else list(fields)
    if not names or not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        raise ValueError(f"fields = {fields!r}: expected names such as 'u', letters, digits and _, each once")
    writer = _Writer(Path(path), mesh, names, dict(diagnostics or {}), checkpoint)
    if not resume:
        writer.create(overwrite=overwrite)
    return Recorder(writer, every)


def restart(path: str | Path) -> State:
    """Return the latest state in a recorded file, to continue from.

    The state is that of the last checkpoint of :func:`~solvers.solve`. Snapshots after it are computed again if the
    file is continued. With the state in place of u0, and all other arguments as before, ``solve`` returns the bits of
    an uninterrupted run with the same recorder, with any method of :data:`~solvers.METHODS`, and writes the same
    snapshots. With another end t1, or without the recorder, the steps differ, and the solutions agree to the
    tolerance. The same holds if the run ended within a step, by an event or by an observer with "dop853".

    A file without such a checkpoint, as with ``checkpoint=math.inf``, is continued from its last snapshot. The first
    steps of the continued run are small.

    Parameters
    ----------
    path : str or Path
        File of :func:`~solvers.record`.

    Returns
    -------
    State
        State with ``time`` and ``values``; of a checkpoint with ``steps``, ``dt`` and ``method_state`` too.

    Raises
    ------
    FileError
        If the file is missing or damaged, is no run file, or holds no snapshot.

    Examples
    --------
    >>> from solvers import Diffusion, Equation, circle, read, record, restart, solve
    >>> mesh = circle(32)
    >>> heat, u0 = Equation(mesh, [Diffusion(mesh, 1.0)]), 1 + mesh.centers[:, 0]
    >>> whole = solve(heat, u0, (0.0, 2.0), times=[0.0, 0.5, 1.0, 1.5, 2.0])
    >>> with record("parts.h5", mesh, every=0.5, overwrite=True) as recorder:
    ...     part = solve(heat, u0, (0.0, 2.0), callbacks=[recorder, lambda state: state.time > 0.7])
    >>> state = restart("parts.h5")
    >>> with record("parts.h5", mesh, every=0.5, resume=True) as recorder:
    ...     rest = solve(heat, state, (0.0, 2.0), callbacks=recorder)
    >>> read("parts.h5").times.tolist(), bool((rest.u[-1] == whole.u[-1]).all())
    ([0.0, 0.5, 1.0, 1.5, 2.0], True)
    """
    run = read(path)
    if (found := Checkpoints(run.path, run.writers).read()) is not None:
        arrays, scalars = found
        _require_state(run, arrays, scalars)
        known = _method_state(run, arrays, scalars)
        if known or not run.snapshots or float(scalars["time"]) >= run.times[-1]:
            dt = float(scalars["dt"]) or math.nan
            return State(float(scalars["time"]), arrays["values"], int(scalars["steps"]), dt, known)
    if not run.snapshots:
        raise FileError(f"{path}: holds no snapshot: expected a state to continue from")
    rows = [run.field(name, -1) for name in run.fields]
    return State(float(run.times[-1]), rows[0] if len(rows) == 1 else np.stack(rows))


def _require_state(run: Run, arrays: Mapping[str, Floats], scalars: Mapping[str, Scalar]) -> None:
    """Raise FileError unless a checkpoint holds a state of the recorded fields: a time, a time step and values.

    arrays    arrays of the checkpoint by name
    scalars   scalars of the checkpoint by name
    """
    require_scalars(run.path, scalars, ("dt",), ("steps",), signed=("time",))
    expected = (len(run.fields), run.cells) if len(run.fields) > 1 else (run.cells,)
    shapes = {name: values.shape for name, values in arrays.items() if not name.startswith(METHOD)}
    if shapes != {"values": expected}:
        raise FileError(f"{run.path}: damaged: its checkpoint has {shapes}, expected values of shape {expected}")


def _method_state(run: Run, arrays: Mapping[str, Floats], scalars: Mapping[str, Scalar]) -> MethodState:
    """Return the state of the method that a checkpoint holds; {} for a file of another program or version.

    arrays    arrays of the checkpoint by name
    scalars   scalars of the checkpoint by name
    """
    found: dict[str, float | Floats] = {name: values for name, values in arrays.items() if name.startswith(METHOD)}
    try:
        found |= {name: float(value) for name, value in scalars.items() if name.startswith(METHOD)}
    except ValueError as error:
        raise FileError(f"{run.path}: damaged: its checkpoint has {error}") from None
    return {name.removeprefix(METHOD): value for name, value in found.items()}


class _Writer:
    """Writer of a recorder's run file, with its snapshots, samples of the diagnostics, and checkpoints."""

    def __init__(
        self, path: Path, mesh: Mesh, fields: list[str], diagnostics: dict[str, Diagnostic], checkpoint: float
    ) -> None:
        self.path, self._mesh, self._fields, self._diagnostics = path, mesh, fields, diagnostics
        self._every, self._last, self._was_opened = checkpoint, -math.inf, False
        self._file: RunFile | None = None
        self._is_complex = False

    def create(self, *, overwrite: bool, is_complex: bool = False) -> None:
        """Create the run file; raise FileError if it exists and ``overwrite`` is false."""
        columns, self._is_complex = [Column(name) for name in self._diagnostics], is_complex
        file = RunFile.create(
            self.path, self._mesh.on_host, columns, fields=self._fields, is_complex=is_complex, overwrite=overwrite
        )
        self._use(file)

    def _use(self, file: RunFile) -> None:
        """Use an open run file for all further writes, and register it to be closed at the exit of Python."""
        self._file, self._was_opened = file, True
        atexit.register(self.close)  # runs before h5py's exit function, which was registered earlier

    def begin(self, state: State) -> None:
        """Check the shape of the first state of a solution, and open the existing file if a run is resumed.

        Rows of an existing file from the time of the state on are dropped. A new file is created again where the first
        state is complex. Raises ValueError for another shape than that of the fields, and FileError for a file with
        other fields or diagnostics.
        """
        shape = (len(self._fields), self._mesh.cells) if len(self._fields) > 1 else (self._mesh.cells,)
        if state.values.shape != shape:
            names = ", ".join(self._fields)
            raise ValueError(f"record: a state of shape {state.values.shape}, expected {shape} for fields {names}")
        if not self._was_opened:
            run = read(self.path)
            if list(run.fields) != self._fields or set(run.diagnostics) != set(self._diagnostics):
                raise FileError(f"{self.path}: holds {', '.join(run.fields)} and {', '.join(run.diagnostics) or 'no'}"
                                " diagnostics: expected the recorded ones")  # fmt: skip
            if run.is_complex != (state.values.dtype.kind == "c"):
                raise FileError(f"{self.path}: expected {'complex' if run.is_complex else 'real'} fields, as it holds")
            snapshots, samples = (int(np.searchsorted(times, state.time)) for times in (run.times, run.sample_times))
            self._use(RunFile.append(self.path, snapshots=snapshots, samples=samples))
        elif (
            state.values.dtype.kind == "c" and self._file is not None and not (self._is_complex or self._file.snapshots)
        ):
            self._file.close()
            self.create(overwrite=True, is_complex=True)

    def write(self, state: State) -> None:
        """Write the state as a snapshot, and its diagnostics as a sample; raise FileError for a closed file."""
        if self._file is None:
            raise FileError(f"{self.path}: closed already: expected a new record(..., resume=True)")
        values = {name: function(state.values) for name, function in self._diagnostics.items()}
        if found := [name for name, value in values.items() if np.iscomplexobj(value)]:
            raise TypeError(f"diagnostics[{found[0]!r}] returns {values[found[0]]!r}: expected a real number")
        self._file.write_sample(state.time, {name: float(value) for name, value in values.items()})
        self._file.write_snapshot(state.time, state.values)

    def checkpoint_if_due(self, state: State, at_end: bool = False) -> None:
        """Write the state as a checkpoint if the last one is older than the chosen wall time between checkpoints.

        ``at_end`` writes a checkpoint at any age. No checkpoint is written if the wall time between checkpoints is
        infinite, or if the state is not finite.
        """
        is_due = at_end or clock.monotonic() - self._last >= self._every
        if self._file is not None and is_due and self._every < math.inf:
            dt = float(state.dt) if math.isfinite(state.dt) else 0.0
            snapshots, samples = self._file.rows_until(math.nextafter(float(state.time), -math.inf))
            scalars: dict[str, Scalar] = {"time": float(state.time), "steps": state.steps, "dt": dt}
            scalars |= {"snapshots": snapshots, "samples": samples}
            arrays = {"values": backend_for(state.values).to_host(state.values)}
            for name, value in state.method_state.items():
                if isinstance(value, np.ndarray):
                    arrays[METHOD + name] = value
                else:  # NaN and infinite numbers are stored as text
                    scalars[METHOD + name] = float(value) if math.isfinite(value) else str(float(value))
            if all(np.isfinite(array).all() for array in arrays.values()):
                self._file.checkpoints.write(arrays, scalars)
            self._last = clock.monotonic()

    def close(self) -> None:
        """Close the file, if it is open, with the ``stop_reason`` "finished"."""
        self.end(None, None, None)

    def end(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file, if it is open, and record in ``stop_reason`` how the ``with`` block ended.

        The arguments are those of ``__exit__``: None without an exception.
        """
        atexit.unregister(self.close)
        if self._file is not None:
            file, self._file = self._file, None
            file.__exit__(kind, error, trace)
