"""The initial state of a case from a snapshot of another run."""

from __future__ import annotations

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.case.load import parse
from meanfield.domains.domain import load
from meanfield.domains.sphere.initial import initial_points
from meanfield.domains.table import DOMAINS
from meanfield.sections.initial import Snapshot
from solvers.io.run_file import FileError, Run, read
from solvers.mesh.dual import Dual
from solvers.mesh.mesh import Floats, Mesh


def density_of_run(case: Case, cells: Mesh) -> Floats:
    """Density (cells) of the snapshot that a case begins with.

    On the circle and the sphere the run may have other cells: on finer ones its density is interpolated, second order,
    on coarser ones its cells are deposited as points, keeping mass and first moment, and so are particles. Elsewhere
    its cells are the case's. Raises CaseError for a run of another domain, and for no such snapshot.
    """
    run, k = _snapshot(case)
    if not case.domain.is_closed:
        if parse(str(run.attributes.get("case", ""))).domain != case.domain:
            raise refusal("initial.file", str(run.path), "a run with the same section [domain] as this case")
        return run.snapshot(k)
    if DOMAINS[run.manifold].has_tokens and run.positions(k).shape[1] == case.domain.d:
        return initial_points(cells, run.positions(k), run.weights)
    if run.manifold != case.domain.manifold:
        raise refusal("initial.file", str(run.path), f"a run {case.domain.where}; it holds one of {run.manifold}")
    return run.snapshot(k) if run.cells == cells.cells else _on_other_cells(run, run.snapshot(k), cells)


def _on_other_cells(run: Run, density: Floats, cells: Mesh) -> Floats:
    """The same mass, which a reaction may have changed, on finer or coarser cells."""
    masses = density * run.cell_areas
    if run.cells > cells.cells:
        return masses.sum() * initial_points(cells, run.cell_centers, masses)
    mesh = DOMAINS[run.manifold].mesh
    assert mesh is not None
    values = Dual(load(mesh)(run.resolution)).interpolate(density[:, None], cells.centers)[:, 0]
    scaled: Floats = values * (masses.sum() / (values @ cells.volumes))
    return scaled


def tokens_of_run(case: Case) -> tuple[Floats, Floats]:
    """Positions (n, d) and masses (n,) of the snapshot that a case of particles begins with. CaseError as above."""
    run, k = _snapshot(case)
    if not DOMAINS[run.manifold].has_tokens or run.positions(k).shape[1] != case.domain.d:
        raise refusal("initial.file", str(run.path), f"a run of particles with domain.dimension = {case.domain.d}")
    if case.sequence is not None and np.ptp(run.weights) > 0:
        raise refusal("initial.file", str(run.path), "tokens of equal masses with a section [sequence]")
    return run.positions(k), run.weights


def _snapshot(case: Case) -> tuple[Run, int]:
    """The run that ``initial.file`` names, and the number of its last snapshot up to ``initial.time``."""
    initial = case.initial
    assert isinstance(initial, Snapshot)
    try:
        run = read(initial.file)
    except FileError as error:
        raise refusal("initial.file", initial.file, f"a file that `meanfield run` has written ({error})") from None
    if run.snapshots == 0:
        raise refusal("initial.file", initial.file, "a run that has a snapshot")
    k = run.snapshots if initial.time is None else int(np.searchsorted(run.times, initial.time, side="right"))
    if k == 0:
        raise refusal("initial.time", initial.time, f"a time from which on {initial.file} has snapshots")
    return run, k - 1
