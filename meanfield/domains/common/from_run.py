"""Snapshot of another run as the initial state of a case, and the mesh of the densities of a run."""

from __future__ import annotations

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.domains.domain import load
from meanfield.domains.table import DOMAINS, kind_of
from meanfield.sections.initial import Snapshot
from solvers.io.run_file import FileError, Run, read
from solvers.mesh.mesh import Mesh


def snapshot_of_run(case: Case) -> tuple[Run, int]:
    """Return the run with which a case begins, and the number of its last snapshot up to the time ``initial.time``.

    The case names the file of the run as ``initial.file``. Raises CaseError for a file that is no such run, a run
    without snapshots, and a time before the first one.
    """
    initial = case.initial
    assert isinstance(initial, Snapshot)
    try:
        run = read(initial.file)
    except FileError as error:
        raise refusal("initial.file", initial.file, f"a file that `meanfield run` has written ({error})") from None
    if run.manifold not in DOMAINS:
        raise refusal("initial.file", initial.file, f"a file that `meanfield run` has written, not of {run.manifold}")
    if run.snapshots == 0:
        raise refusal("initial.file", initial.file, "a run that has a snapshot")
    k = run.snapshots if initial.time is None else int(np.searchsorted(run.times, initial.time, side="right"))
    if k == 0:
        raise refusal("initial.time", initial.time, f"a time not before the first snapshot of {initial.file}")
    return run, k - 1


def mesh_of_run(run: Run) -> Mesh:
    """Return the mesh of the densities of a run on the circle or the sphere.

    Raises FileError for a file whose cells do not match its resolution.
    """
    mesh_by_resolution = kind_of(run.manifold).mesh
    assert mesh_by_resolution is not None
    mesh: Mesh = load(mesh_by_resolution)(run.resolution)
    if not np.array_equal(mesh.ring_cells, run.ring_cells):
        raise FileError(f"{run.path}: damaged: its cells are not those of resolution {run.resolution}")
    return mesh
