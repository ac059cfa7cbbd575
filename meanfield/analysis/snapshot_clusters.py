"""Clusters of the snapshots of a run, by the same functions as the diagnostic ``clusters``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvers.io.repair import FileError
from solvers.mesh.mesh import Floats, Mesh

if TYPE_CHECKING:
    from meanfield.clusters.on_cells import Clusters
    from solvers.io.run_file import Run

TIME_RTOL = 1e-9  # relative difference of times below which a sample and a snapshot coincide
MIN_SCALE = 1e-6  # radians, for beta = 1e12
RECORDED = ("cluster_mass", "cluster_center")
MAX_SIZE = 1e150  # largest value, whose square does not overflow
MAX_COUNT = 10**9  # number of clusters, above any number of cells or tokens


class SnapshotClusters(NamedTuple):
    """Clusters of a snapshot: their number, and masses (k,) and positions (k, d) of the heaviest, heaviest first."""

    number: int
    masses: Floats
    places: Floats


def counter(run: Run) -> Callable[[int], SnapshotClusters] | None:
    """Return a function that counts the clusters of snapshot k, or None where the domain has no clusters.

    The position of a cluster is its peak for a density, and its center for tokens. Clusters of tokens are the ones
    recorded at the time of the snapshot, or else found by :func:`cluster_finder`. From the handover on, when atoms
    (point masses) replace the clusters, clusters are the atoms of the preceding sample. Raises FileError for recorded
    clusters that no run can have.
    """
    _require_counts(run)
    try:
        find = cluster_finder(run)
    except ValueError:
        return None
    handover = run.number("hand_over_time", np.inf)
    recorded, of_cells = recorded_clusters(run) is not None, None if run.kind == "position" else _cells_of(run)

    def count(k: int) -> SnapshotClusters:
        """Return the clusters of snapshot k, as recorded at its time or found in its state."""
        time = float(run.times[k])
        sample = int(np.searchsorted(run.sample_times, time * (1 + TIME_RTOL), side="right")) - 1
        same = of_cells is None and sample >= 0 and time - run.sample_times[sample] <= TIME_RTOL * abs(time)
        if recorded and sample >= 0 and (same or time >= handover):
            return _recorded_clusters(run, sample)
        found = find(k)
        places = found.centers if of_cells is None else peaks(of_cells[0], of_cells[1](k), found)
        return SnapshotClusters(found.count, found.masses, places)

    return count


def _require_counts(run: Run) -> None:
    """Raise FileError if a recorded number of clusters is negative or too large."""
    counts = run.diagnostics.get("clusters", np.zeros(0))
    if not ((counts >= 0) & (counts <= MAX_COUNT)).all():
        raise FileError(f"{run.path}: damaged: numbers of clusters are from {np.min(counts)} to {np.max(counts)}")


def recorded_clusters(run: Run) -> tuple[Floats, Floats] | None:
    """Return the recorded masses (samples, K) and centers (samples, K, d) of clusters, NaN for absent ones.

    The result is None if the run has no such record. Raises FileError for values that only a damaged file has.
    """
    if not run.diagnostics.keys() >= set(RECORDED):
        return None
    masses, centers = (run.diagnostics[name] for name in RECORDED)
    if ((masses <= 0) | (masses > MAX_SIZE)).any():
        raise FileError(f"{run.path}: damaged: masses of clusters are from {np.nanmin(masses)} to {np.nanmax(masses)}")
    if (np.abs(centers) > MAX_SIZE).any():
        raise FileError(f"{run.path}: damaged: centers of clusters are up to {np.nanmax(np.abs(centers))}")
    if not (np.linalg.norm(centers[np.isfinite(masses)], axis=-1) > 0).all():
        raise FileError(f"{run.path}: damaged: centers of clusters are missing or zero")
    return masses, centers


def _recorded_clusters(run: Run, sample: int) -> SnapshotClusters:
    """Return the clusters that the diagnostics of a run have recorded in a sample."""
    masses, centers = (run.diagnostics[name][sample] for name in RECORDED)
    present = np.isfinite(masses)
    number = run.diagnostics["clusters"][sample] if "clusters" in run.diagnostics else present.sum()
    return SnapshotClusters(int(number), masses[present], centers[present])


def cluster_finder(run: Run) -> Callable[[int], Clusters]:
    """Return a function that finds the clusters of snapshot k as the diagnostics do.

    With a radius the clusters are those of the directions. Raises ValueError for a domain without clusters: the line,
    densities with an axis, tokens in one dimension.
    """
    from meanfield.clusters.among_tokens import find_clusters_of_tokens
    from meanfield.clusters.on_cells import find_clusters

    if run.kind == "density":
        mesh, density = _cells_of(run)
        reach = _recorded_scale(run) or 0.0
        return lambda k: find_clusters(mesh, density(k), reach=reach)
    if run.snapshot_shape[1] < 2:
        raise ValueError(f"manifold {run.manifold}: expected at least two dimensions, for the number of clusters")
    scale = _scale_of_tokens(run)
    return lambda k: find_clusters_of_tokens(run.positions(k), run.weights, scale)


def _cells_of(run: Run) -> tuple[Mesh, Callable[[int], Floats]]:
    """Return the mesh of directions of a run, and a function that returns the density of snapshot k on this mesh.

    For a density over direction and radius r it is the marginal ∫ρ d log r. Raises ValueError for a domain without such
    a mesh.
    """
    from meanfield.domains.common.from_run import mesh_of_run
    from meanfield.domains.domain import load
    from meanfield.domains.table import kind_of
    from meanfield.runtime.segments import case_of

    kind = kind_of(run.manifold)
    if kind.mesh is not None:
        return mesh_of_run(run), run.density
    if kind.directions is None or kind.directions.mesh is None or kind.edges is None:
        raise ValueError(f"manifold {run.manifold}: expected circle, sphere or particles, for the number of clusters")
    widths, resolution = np.diff(np.log(run.variable(kind.edges))), case_of(run).domain.resolution or 0
    mesh = load(kind.directions.mesh)(min(resolution, run.cells))
    if mesh.cells * len(widths) != run.cells:
        raise FileError(f"{run.path}: damaged: its cells are not those of resolution {resolution}")
    return mesh, lambda k: widths @ run.density(k).reshape(len(widths), -1)


def peaks(mesh: Mesh, density: Floats, found: Clusters) -> Floats:
    """Return the center (clusters, d) of the densest cell of each cluster found in a density (cells,)."""
    rising = np.argsort(density, kind="stable")
    densest = np.zeros(found.count, dtype=np.intp)
    if found.count:
        densest[found.basin[rising]] = rising  # the last assignment to each cluster is that of its densest cell
    return mesh.centers[densest]


def _scale_of_tokens(run: Run) -> float:
    """Return the angle (radians) within which tokens of a run join a cluster, from the file of the run.

    For older files, which lack the angle, it follows from the velocity at the run's start.
    """
    from meanfield.domains.common.model_of_case import heads_by_layer
    from meanfield.domains.particles.diagnostics import cluster_scale
    from meanfield.domains.particles.setup import particle_velocity
    from meanfield.runtime.segments import case_of

    if (scale := _recorded_scale(run)) is not None:
        return scale
    case = case_of(run)
    return cluster_scale(particle_velocity(case, heads_by_layer(case)[0]))


def _recorded_scale(run: Run) -> float | None:
    """Return the angle (radians) below which clusters of a run are one, from its file; None for older files."""
    if "scale" not in run.attributes_of("clusters"):
        return None
    scale = run.number("scale", np.nan, "clusters")
    if not MIN_SCALE <= scale <= np.pi:
        raise FileError(f"{run.path}: damaged: attribute scale of clusters is {scale:g}, expected an angle")
    return scale
