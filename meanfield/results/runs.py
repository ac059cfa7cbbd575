"""Running cases from Python: in memory, into a file, from its checkpoint; and opening files of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meanfield import running
from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.given import split_initial
from meanfield.case.load import load, parse_sections
from meanfield.case.overrides import Overrides
from meanfield.case.short_names import overrides_of_case
from meanfield.results.result import Result
from meanfield.runtime.paths import require_files
from meanfield.runtime.progress import has_bar
from meanfield.runtime.watching import Callbacks, Condition
from solvers.backends import Backend, NoDevice, NotInstalled, backend_on
from solvers.io.run_file import FileError, read
from solvers.timestepping.state import NonFinite

CaseSource = Case | str | Path | Mapping[str, Any]  # a case, its file or name, or its sections


def load_case(source: CaseSource, overrides: Overrides = (), **changes: Any) -> Case:
    """Return a validated case with all defaults: from a file, a shipped case, tables or records.

    Parameters
    ----------
    source : str, Path, mapping or Case
        Path of a TOML file, or the name of a shipped case; ``meanfield cases`` lists them. A mapping has the sections
        as a file does: ``{"domain": {"manifold": "circle", "resolution": 64}, ...}``.
    overrides : mapping or sequence of str
        Values that replace those of the source, by keys or short names: ``{"attention.beta": 4}``, ``{"beta": 4}`` or
        ``["attention.beta=4"]``.
    **changes
        Values by short names, the last part of a key: ``beta=4`` for ``attention.beta``. The name of a section, such as
        ``initial``, has a mapping, or the name of a kind: ``initial="uniform"``.

        ``initial`` is also an array: a number for each cell, a row of these for each label of a causal mask, or tokens
        (n, d). Or it is a function of the cell centers x (cells, d), unit vectors on circle and sphere, that returns
        an unnormalized density (cells,). The case holds the numbers, as ``initial.density`` or ``initial.points``.

    Returns
    -------
    Case
        The case, frozen.

    Raises
    ------
    CaseError
        If the source does not exist or the case is not valid, or several keys have a short name. The message has a line
        with the key, the value and the expected values for each fault.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("metastable_circle", resolution=8, initial=lambda x: 1 + x[:, 0])
    >>> case.initial.density[0] > case.initial.density[4]  # the first cell is next to (1, 0)
    True
    >>> case = mf.load_case("metastable_circle", {"attention.beta": 4, "time.end": 2})
    >>> case.attention.beta, case.domain.resolution
    (4.0, 512)
    >>> mf.load_case("metastable_circle", beta=4, end=2) == case
    True
    """
    overrides, initial = split_initial(overrides)
    changes, short = split_initial(changes)
    overrides = [*overrides_of_case(overrides), *overrides_of_case(changes)]
    initial = initial if short is None else short
    if isinstance(source, Case):
        return source.replace(overrides, initial)
    if isinstance(source, Mapping):
        tables, of_source = split_initial(source)
        return parse_sections(tables, overrides, of_source if initial is None else initial)
    return load(str(source), overrides, initial)


def simulate(
    case: CaseSource,
    overrides: Overrides = (),
    *,
    progress: bool | None = None,
    device: str = "cpu",
    stop: Condition | None = None,
    callbacks: Callbacks = (),
    **changes: Any,
) -> Result:
    """Run a case in memory, with numbers bitwise equal to those that :func:`~meanfield.run` writes.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, its file, the name of a shipped case, or the sections of a case file, see :func:`~meanfield.load_case`.
    overrides : mapping or sequence of str
        Values that replace those of the case, by keys or short names: ``{"attention.beta": 4}``.
    progress : bool, optional
        Whether progress is shown: as a bar on a terminal and in a notebook, elsewhere as lines. None: a bar where one
        can be drawn, else nothing.
    device : {"cpu", "gpu"}
        Device that computes the run.
    stop : function (moment) -> bool, optional
        Condition that ends the run early, besides ``time.stop`` of the case. The function is called with each sample
        of the diagnostics: ``moment.time``, ``moment.values`` (density (cells,) or positions (n, d)),
        ``moment.diagnostics`` by name, and ``moment.space`` (the mesh, or the points with their weights).
    callbacks : function (moment), or sequence of these
        Functions that are called with each sample, such as :class:`~meanfield.LivePlot`. The method ``finish()`` of a
        callback, where there is one, is called at the end of the run.
    **changes
        Values by short names, such as ``beta=4``, see :func:`~meanfield.load_case`.

    Returns
    -------
    Result
        Snapshots and diagnostics of the run, in memory.

    Raises
    ------
    CaseError
        If the case is not valid, names a missing file, or cannot be run on the device.
    TypeError
        If ``stop`` or a callback is not a function of one argument.
    NonFinite
        If the state becomes non-finite or explodes.
    KeyboardInterrupt
        After Ctrl-C.
    SystemExit
        After SIGTERM.

    Notes
    -----
    The attribute ``result`` of NonFinite, KeyboardInterrupt and SystemExit is the :class:`~meanfield.Result` so far,
    if the run had begun.

    Examples
    --------
    At β = 0 the centroid has the length r with dr/dt = r (1 − r²)/2: from 0.3 to 0.4603034 at t = 1.

    >>> import numpy as np
    >>> import meanfield as mf
    >>> result = mf.simulate("flow_beta0_circle", resolution=64, end=1)
    >>> round(float(result.diagnostics["mass"][-1]), 9)
    1.0
    >>> bool(abs(np.linalg.norm(result.diagnostics["centroid"][-1]) - 0.4603034) < 2e-4)
    True
    """
    case = _ready(load_case(case, overrides, **changes))
    try:
        backend, quiet = _backend(device), _quiet(progress)
        return Result(running.run_in_memory(case, quiet=quiet, backend=backend, stop=stop, callbacks=callbacks))
    except (NonFinite, KeyboardInterrupt, SystemExit) as error:
        if hasattr(error, "run"):
            error.result = Result(error.run)  # type: ignore[union-attr]
        raise


def run(
    case: CaseSource,
    path: str | Path,
    overwrite: bool = False,
    *,
    progress: bool | None = None,
    device: str = "cpu",
    stop: Condition | None = None,
    callbacks: Callbacks = (),
    **changes: Any,
) -> Result:
    """Run a case into a file, and open the file.

    The file can be read while the run continues. After any exception it is closed, and valid up to its last snapshot.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, its file, the name of a shipped case, or the sections of a case file, see :func:`~meanfield.load_case`.
    path : str or Path
        HDF5 file to be written.
    overwrite : bool
        Whether an existing file is replaced.
    progress : bool, optional
        Whether progress is shown: as a bar on a terminal and in a notebook, elsewhere as lines. None: a bar where one
        can be drawn, else nothing.
    device : {"cpu", "gpu"}
        Device that computes the run.
    stop : function (moment) -> bool, optional
        Condition that ends the run early, see :func:`~meanfield.simulate`.
    callbacks : function (moment), or sequence of these
        Functions that are called with each sample, see :func:`~meanfield.simulate`.
    **changes
        Values by short names, such as ``beta=4``, see :func:`~meanfield.load_case`.

    Returns
    -------
    Result
        Run in the file; snapshots are read when they are indexed.

    Raises
    ------
    FileError
        If the file exists and ``overwrite`` is false, is being written, or cannot be written.
    CaseError
        If the case is not valid, names a missing file, or cannot be run on the device.
    TypeError
        If ``stop`` or a callback is not a function of one argument.
    NonFinite
        If the state becomes non-finite or explodes.
    KeyboardInterrupt
        After Ctrl-C. :func:`~meanfield.resume` continues the run.
    SystemExit
        After SIGTERM. :func:`~meanfield.resume` continues the run.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64, "time.end": 0.5})
    >>> result = mf.run(case, "flow.h5", overwrite=True)
    >>> result.stop_reason, float(result.time[-1])
    ('finished', 0.5)
    >>> bool((result.density[-1] == mf.simulate(case).density[-1]).all())
    True
    """
    path = Path(path)
    if path.is_dir() or (path.exists() and not overwrite):
        raise FileError(f"{path}: exists already; overwrite=True replaces it, if it is a file")
    case = _ready(load_case(case, **changes), path)
    quiet, backend = _quiet(progress), _backend(device)
    running.run(
        case, path, overwrite=overwrite, quiet=quiet, command="run", backend=backend, stop=stop, callbacks=callbacks
    )
    return open_run(path)


def resume(
    path: str | Path,
    until: float | None = None,
    *,
    changes: Overrides = (),
    progress: bool | None = None,
    device: str = "cpu",
    stop: Condition | None = None,
    callbacks: Callbacks = (),
) -> Result:
    """Resume a run from the last checkpoint of its file, and open the file.

    Without a checkpoint the run continues from the last snapshot, or starts again from the initial density. A run that
    has reached its end is opened unchanged.

    Parameters
    ----------
    path : str or Path
        File of an interrupted, failed or finished run.
    until : float, optional
        Time at which the run ends, also beyond the end of its case. None: the end of the case, or the later end that
        the last resumption has set.
    changes : mapping or sequence of str
        Settings from the checkpoint on, like {"beta": 1} or ["attention.beta=1"]; later resumptions keep
        them. ``domain``, ``initial`` and ``output.diagnostics`` cannot change.
    progress : bool, optional
        Whether progress is shown: as a bar on a terminal and in a notebook, elsewhere as lines. None: a bar where one
        can be drawn, else nothing.
    device : {"cpu", "gpu"}
        Device that computes from now on. Results of different devices differ by rounding.
    stop : function (moment) -> bool, optional
        Condition that ends the run early, see :func:`~meanfield.simulate`.
    callbacks : function (moment), or sequence of these
        Functions that are called with each sample, see :func:`~meanfield.simulate`.

    Returns
    -------
    Result
        Run in the file, from its first start on.

    Raises
    ------
    FileError
        If the file is missing, damaged, being written, without a case, or cannot be written.
    CaseError
        If ``until`` is no finite number or has been passed, if a change is not valid, or if a component of the case is
        not loaded.
    TypeError
        If ``stop`` or a callback is not a function of one argument.
    NonFinite
        If the state becomes non-finite or explodes.
    KeyboardInterrupt
        After Ctrl-C.
    SystemExit
        After SIGTERM.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64, "time.end": 0.5})
    >>> half = mf.run(case, "half.h5", overwrite=True)
    >>> result = mf.resume("half.h5", until=1)
    >>> float(half.time[-1]), float(result.time[-1])
    (0.5, 1.0)
    >>> bool(abs(np.linalg.norm(result.diagnostics["centroid"][-1]) - 0.4603034) < 2e-4)  # exact: 0.4603034
    True
    """
    settings, quiet, backend = overrides_of_case(changes), _quiet(progress), _backend(device)
    running.resume(
        path, until=until, changes=settings, quiet=quiet, command="resume", backend=backend, stop=stop,
        callbacks=callbacks,
    )  # fmt: skip
    return open_run(path)


def open_run(path: str | Path) -> Result:
    """Return the run in a file.

    The run may be in progress, killed or finished. The result contains what had been written when the file was
    opened; snapshots are read when they are indexed. A file of :func:`~solvers.record` is opened too; its fields have
    no case.

    Parameters
    ----------
    path : str or Path
        Run file.

    Returns
    -------
    Result
        Run in the file.

    Raises
    ------
    FileError
        If the file is missing, damaged, or no run file.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64, "time.end": 0.5, "output.snapshots": 5})
    >>> written = mf.run(case, "flow.h5", overwrite=True)
    >>> result = mf.open_run("flow.h5")
    >>> result.density.shape  # (time, cell)
    (6, 64)
    >>> round(float(result.density[-1] @ result.mesh.volumes), 9)  # mass
    1.0
    """
    return Result(read(path))


def _ready(case: CaseSource, path: Path | None = None) -> Case:
    """Return the validated case of a source, after a check of the files that the case names.

    Raises CaseError for a missing file, and FileError if ``path`` is one of these files.
    """
    case = load_case(case)
    require_files(case, None if path is None else str(path))
    return case


def _quiet(progress: bool | None) -> bool:
    """Return whether progress is hidden; None: whether no bar can be drawn."""
    return not (has_bar() if progress is None else progress)


def _backend(device: str) -> Backend | None:
    """Return the backend of a device by name. Raises CaseError for a device that is unknown or cannot be used."""
    if device not in ("cpu", "gpu"):
        raise CaseError(f"device = {device!r}: expected 'cpu' or 'gpu'")
    try:
        return backend_on(device)
    except (NotInstalled, NoDevice) as error:
        raise CaseError(f"device = {device!r}: {error}") from None
