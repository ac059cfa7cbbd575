"""Initial density from a snapshot of another run, on the same cells or, on circle and sphere, on different cells."""

from __future__ import annotations

from meanfield.case.case import Case
from meanfield.case.errors import refusal
from meanfield.case.load import parse
from meanfield.domains.common.from_run import mesh_of_run, snapshot_of_run
from meanfield.domains.sphere.initial import initial_points
from meanfield.domains.table import DOMAINS
from solvers.io.run_file import Run
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.dual import Dual


def density_of_run(case: Case, cells: Mesh) -> Floats:
    """Return the density (cells) in the snapshot of another run with which a case begins.

    On the circle and the sphere the run may have different cells. From coarser cells the density is interpolated to
    second order. Finer cells and particles are deposited as points, keeping mass and first moment. On other domains the
    cells have to be those of the case. Raises CaseError for a run of another domain, and where there is no such
    snapshot.
    """
    run, k = snapshot_of_run(case)
    if not case.domain.is_closed:
        if parse(str(run.attributes.get("case", ""))).domain != case.domain:
            raise refusal("initial.file", str(run.path), "a run with the same section [domain] as this case")
        if run.cells != cells.cells:
            raise refusal(
                "initial.file", str(run.path), f"a run of {cells.cells} cells, got {run.cells}: it is damaged"
            )
        return run.snapshot(k)
    if DOMAINS[run.manifold].has_tokens and run.positions(k).shape[1] == case.domain.d:
        return initial_points(cells, run.positions(k), run.weights)
    if run.manifold != case.domain.manifold:
        raise refusal(
            "initial.file", str(run.path), f"a run {case.domain.location}, not one of manifold {run.manifold}"
        )
    return run.snapshot(k) if run.cells == cells.cells else _density_on_cells(run, run.snapshot(k), cells)


def _density_on_cells(run: Run, density: Floats, cells: Mesh) -> Floats:
    """Return the density of a run on finer or coarser cells, with the same mass, which a reaction may have changed."""
    masses = density * run.cell_areas
    if run.cells > cells.cells:
        return float(masses.sum()) * initial_points(cells, run.cell_centers, masses)
    values = Dual(mesh_of_run(run)).interpolate(density[:, None], cells.centers)[:, 0]
    scaled: Floats = values * (masses.sum() / (values @ cells.volumes))
    return scaled
