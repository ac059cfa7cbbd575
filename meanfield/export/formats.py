"""Export formats of a run file: diagnostics as CSV, densities on a regular grid as netCDF, cells for VTK.

The index of a sweep is exported as CSV, with a row for each point, or as netCDF. Runs in progress, killed or finished
are exported with the content committed at the start of the export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from meanfield.export.csv import write_csv
from meanfield.export.netcdf import write_netcdf
from meanfield.export.sweep import write_sweep_csv, write_sweep_netcdf
from meanfield.export.vtkhdf import write_vtkhdf
from meanfield.runtime.paths import require_free
from meanfield.sweeping.results import is_sweep, read_sweep
from solvers.io.reading import path_of
from solvers.io.replacing import replacement
from solvers.io.run_file import FileError, Run, read
from solvers.io.writing import disk_errors


def export(
    path: str | Path | Run,
    to: str,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    diagnostics: Sequence[str] | None = None,
) -> Path:
    """Export a run file, or the index of a sweep, in the format ``to``, a key of FORMATS, and return the path written.

    ``output`` defaults to ``path`` with the suffix of the format. ``diagnostics`` are the columns of a CSV file, None
    for all; an array can thus be written to a separate file. The file is written atomically. Raises FileError if the
    run cannot be read or has no data to export, if the output exists and ``overwrite`` is false, and if the output
    cannot be written; ValueError for an unknown format.
    """
    if to not in FORMATS:
        raise ValueError(f"to = {to!r}: expected one of {', '.join(FORMATS)}")
    suffix, write = FORMATS[to]
    source = path_of(path)
    of_sweep = not isinstance(path, Run) and source.is_file() and is_sweep(source)
    if diagnostics is not None and to != "csv":
        raise FileError(f"diagnostics = {', '.join(diagnostics)}: expected none for {to}, only csv has columns")
    if of_sweep and to not in SWEEP_FORMATS:
        raise FileError(f"{source}: is the index of a sweep; expected one of {', '.join(SWEEP_FORMATS)}, got {to}")
    columns = {} if diagnostics is None else {"diagnostics": diagnostics}
    target = source.with_suffix(suffix) if output is None else Path(output)
    if target.exists() and source.exists() and target.samefile(source):
        raise FileError(f"{target}: is the run file itself; -o writes elsewhere")
    require_free(target, overwrite)
    content = partial(SWEEP_FORMATS[to], read_sweep(source)) if of_sweep else partial(write, read(path))
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite) as new:
        content(new, **columns)
    return target


FORMATS: dict[str, tuple[str, Callable[..., None]]] = {  # functions of a run and a path
    "vtkhdf": (".vtkhdf", write_vtkhdf),
    "netcdf": (".nc", write_netcdf),
    "csv": (".csv", write_csv),
}
SWEEP_FORMATS: dict[str, Callable[..., None]] = {  # functions of an index and a path
    "csv": write_sweep_csv,
    "netcdf": write_sweep_netcdf,
}
