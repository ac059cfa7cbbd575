"""Export formats of a run file: diagnostics as CSV, densities on a regular grid as netCDF, cells for VTK.

The run may be running, killed or finished: what is committed when the export begins is what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from meanfield.export.csv import write_csv
from meanfield.export.netcdf import write_netcdf
from meanfield.export.vtkhdf import write_vtkhdf
from meanfield.runtime.paths import require_free
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
    """Export the run file ``path`` in the format ``to``, a key of FORMATS; returns the file written.

    ``output`` defaults to ``path`` with the format's suffix. ``diagnostics`` are those of a CSV, all for None: one that
    is an array may have a file of its own. The file appears whole or not at all. Raises
    FileError where the run cannot be read or has nothing to export, where the output exists and ``overwrite``
    is false, and where it cannot be written; KeyError for an unknown format.
    """
    suffix, write = FORMATS[to]
    if diagnostics is not None:
        if to != "csv":
            raise FileError(f"diagnostics = {', '.join(diagnostics)}: expected none for {to}, only csv has columns")
        write = partial(write_csv, diagnostics=diagnostics)
    source = path_of(path)
    target = source.with_suffix(suffix) if output is None else Path(output)
    if target.exists() and source.exists() and target.samefile(source):
        raise FileError(f"{target}: is the run file itself; -o writes elsewhere")
    require_free(target, overwrite)
    run = read(path)
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite) as new:
        write(run, new)
    return target


FORMATS: dict[str, tuple[str, Callable[[Run, Path], None]]] = {
    "vtkhdf": (".vtkhdf", write_vtkhdf),
    "netcdf": (".nc", write_netcdf),
    "csv": (".csv", write_csv),
}
