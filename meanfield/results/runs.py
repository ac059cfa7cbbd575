"""Running cases from Python: in memory, into a file, from its checkpoint; and opening files of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meanfield import running
from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.load import load, parse
from meanfield.case.overrides import Overrides, overrides_of
from meanfield.results.result import Result
from meanfield.runtime.paths import require_files
from meanfield.runtime.progress import has_bar
from meanfield.runtime.watching import Callback, Condition
from solvers.backends import Backend, NoDevice, NotInstalled, backend_on
from solvers.io.run_file import FileError, read
from solvers.timestepping.state import NonFinite

CaseSource = Case | str | Path | Mapping[str, Any]  # a case, its file or name, or its sections


def load_case(source: CaseSource, overrides: Overrides = ()) -> Case:
    """Return the case in a file, or the shipped case of that name, with ``overrides`` like ["attention.beta=4"].

    source   may also be the sections themselves: a mapping {"domain": {"manifold": "circle", ...}, ...} with the
             contents of a case file, or a Case built from the records in ``meanfield.case``; both are validated as a
             file

    Raises CaseError, whose message is one line with the key, the value and the expected values.
    """
    if isinstance(source, Case):
        return source.replace(overrides)
    if isinstance(source, Mapping):
        return parse("", [*overrides_of(source), *overrides_of(overrides)])
    return load(str(source), overrides_of(overrides))


def simulate(
    case: CaseSource,
    *,
    progress: bool | None = None,
    device: str = "cpu",
    stop: Condition | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Run a case, or the case of that name, in memory, with the numbers that ``run`` writes, bitwise equal.

    progress   True: a bar on a terminal and in a notebook, else lines; by default a bar or nothing
    device     "cpu" or "gpu"
    stop       condition that ends the run early, beside ``time.stop`` of the case: called with the Moment of each
               sample (time, values, diagnostics, space); ``callbacks`` are called with the Moment too

    Raises CaseError for a case that cannot be run, NonFinite for a state that becomes non-finite, KeyboardInterrupt
    after Ctrl-C and SystemExit after SIGTERM. The attribute ``result`` of these errors holds the results so far.
    """
    case = _ready(case)
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
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Run a case, or the case of that name, into a file, and open the file.

    Raises as ``simulate``, and FileError for a file that exists, unless ``overwrite``, or cannot be written. After any
    exception the file is closed and valid up to its last snapshot.
    """
    path = Path(path)
    if path.is_dir() or (path.exists() and not overwrite):
        raise FileError(f"{path}: exists already; overwrite=True replaces it, if it is a file")
    case = _ready(case, path)
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
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Resume a run file from its last checkpoint, to the end of its case or ``until``, and open the file.

    changes   settings from the checkpoint on, like {"attention.beta": 1}

    Raises as ``run``.
    """
    settings, quiet, backend = overrides_of(changes), _quiet(progress), _backend(device)
    running.resume(
        path, until=until, changes=settings, quiet=quiet, command="resume", backend=backend, stop=stop,
        callbacks=callbacks,
    )  # fmt: skip
    return open_run(path)


def open_run(path: str | Path) -> Result:
    """Return the run in a file: running, killed or finished. Snapshots are read when indexed. Raises FileError."""
    return Result(read(path))


def _ready(case: CaseSource, path: Path | None = None) -> Case:
    """Return a validated case whose files exist."""
    case = load_case(case)
    require_files(case, None if path is None else str(path))
    return case


def _quiet(progress: bool | None) -> bool:
    return not (has_bar() if progress is None else progress)


def _backend(device: str) -> Backend | None:
    """Return the backend of a device by name. Raises CaseError for a device that is unknown or cannot be used."""
    if device not in ("cpu", "gpu"):
        raise CaseError(f"device = {device!r}: expected 'cpu' or 'gpu'")
    try:
        return backend_on(device)
    except (NotInstalled, NoDevice) as error:
        raise CaseError(f"device = {device!r}: {error}") from None
