"""Tracks of clusters through time: clusters of successive samples matched, and mergers found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from solvers.io.run_file import Run

MAX_ANGLE = np.pi / 3  # largest motion of a cluster between samples; a cluster farther away is another one
MASS_SCALE = 1e5  # total mass in the transport plan, so that solver errors of 1e-7 do not affect light clusters
COST_ATOL = 1e-10  # of reduced costs of the plan, radians²: 2e-8 for atoms 1e-4 rad apart, just before they merge
MASS_SUM_RTOL = 1e-9  # clusters whose masses add up to a new one within this tolerance have merged, at any distance
MASS_RATIO = 1.5  # largest ratio of masses with which nearest clusters are linked without a transport plan


@dataclass(frozen=True, eq=False)
class Track:
    """Cluster followed through time, from the sample ``first`` to the sample ``last``, both included.

    masses (samples of the track,), centers (samples of the track, d); ``into`` is the number of the track into which
    this one merges right after ``last``, None where the cluster lasts to the end or vanishes.
    """

    first: int
    masses: Floats
    centers: Floats
    into: int | None = None

    @property
    def last(self) -> int:
        """Return the number of the last sample with this cluster."""
        return self.first + len(self.masses) - 1

    @property
    def samples(self) -> slice:
        """Return the range of the samples with this cluster, as a slice."""
        return slice(self.first, self.last + 1)


@dataclass(frozen=True)
class Merger:
    """Merger of two clusters.

    Attributes
    ----------
    since : float
        Time of the last sample with both clusters.
    time : float
        Time of the first sample after the merger. Equal to ``since`` if the time of the merger itself is known, as for
        atoms.
    into : int
        Number of the cluster that continues, in the order in which clusters appear.
    source : int
        Number of the cluster that ends.
    masses : tuple of two floats
        Masses of the two clusters, ``into`` first: medians over the samples since a cluster last appeared or merged,
        because the division of mass between two near clusters is less accurate.
    before : int
        Number of clusters before the merger.
    after : int
        Number of clusters after the merger. Several clusters may merge at once.
    energy_step : float
        Increase 2 m_i m_j of 2β e^{−β} E, for clusters of masses m_i and m_j that were far apart.

    References
    ----------
    Geshkovski et al., arXiv:2312.10794.

    Examples
    --------
    Two tokens of mass ½ merge: 2 m_i m_j = ½.

    >>> import meanfield as mf
    >>> case = mf.load_case("tokens_pair", {"attention.beta": 1, "time.end": 10, "output.samples": 100})
    >>> [merger] = mf.simulate(case).mergers()
    >>> merger.masses, merger.energy_step
    ((0.5, 0.5), 0.5)
    >>> merger.since < merger.time < 4
    True
    """

    since: float
    time: float
    into: int
    source: int
    masses: tuple[float, float]
    before: int
    after: int
    energy_step: float


@dataclass(frozen=True, eq=False)
class Tracks:
    """Clusters of a run followed through time at ``times`` (samples,), by their first appearance, heaviest first.

    mergers      recorded mergers of atoms, point masses that replace collapsed clusters
    atoms_from   time from which clusters are atoms, inf if they never are
    """

    times: Floats
    tracks: tuple[Track, ...]
    mergers: tuple[Merger, ...] = ()
    atoms_from: float = np.inf

    @property
    def counts(self) -> NDArray[np.intp]:
        """Return the number of clusters in each sample (samples,)."""
        counts = np.zeros(len(self.times), dtype=np.intp)
        for track in self.tracks:
            counts[track.samples] += 1
        return counts

    def start(self, number: int) -> float:
        """Return the time of the first sample with the cluster of this number."""
        return float(self.times[self.tracks[number].first])

    def stop(self, number: int) -> float:
        """Return the time of the last sample with the cluster of this number."""
        return float(self.times[self.tracks[number].last])


def track(times: Floats, masses: Floats, centers: Floats) -> Tracks:
    """Return the clusters of samples followed through time: clusters of successive samples are linked to tracks.

    times      (samples,) increasing
    masses     (samples, K), NaN where there are fewer clusters than K; any order; without mass there is no cluster
    centers    (samples, K, d) unit vectors

    Successive samples are matched by the optimal transport plan for the square of the angle. Each cluster is matched
    with the new one that receives most of its mass. Where several are matched with one, the cluster that contributes
    the most mass continues, and the rest have merged into it. Clusters are thus matched by position, and masses
    distinguish neighbors. Clusters farther away than ``MAX_ANGLE`` are never the same, unless their masses add up
    exactly.
    """
    return Tracks(times, tuple(one.as_track(masses, centers) for one in link_clusters(masses, centers)))


def link_clusters(masses: Floats, centers: Floats) -> list[OpenTrack]:
    """Return the clusters with masses (samples, K) and centers (samples, K, d) followed through time.

    Clusters of successive samples are linked as in ``track``.
    """
    is_cluster = np.isfinite(masses) & (masses > 0) & np.isfinite(centers).all(axis=2)
    found_tracks: list[OpenTrack] = []
    open_tracks: list[OpenTrack] = []  # tracks in the sample before
    for sample, row in enumerate(masses):
        columns, before = np.flatnonzero(is_cluster[sample]), [one.columns[-1] for one in open_tracks]
        old = masses[sample - 1, before], centers[sample - 1, before]
        successors, merged = _match(*old, row[columns], centers[sample, columns])
        now: list[OpenTrack] = []
        for column, source in zip(columns, successors, strict=True):
            if source < 0:
                found_tracks.append(OpenTrack(len(found_tracks), sample))
            now.append(found_tracks[-1] if source < 0 else open_tracks[source])
            now[-1].columns.append(int(column))
        for source, new in merged:
            open_tracks[source].into = now[new].number
        open_tracks = now
    return found_tracks


@dataclass
class OpenTrack:
    """Cluster followed through time up to the current sample.

    number    number of the track, in the order in which clusters appear
    first     number of the first sample with the cluster
    columns   column of the cluster in the masses (samples, K), one for each sample from ``first`` on
    into      number of the track with which the cluster has merged, or None
    """

    number: int
    first: int
    columns: list[int] = field(default_factory=list)
    into: int | None = None

    @property
    def stop(self) -> int:
        """Return the number of the first sample after the last one with this cluster."""
        return self.first + len(self.columns)

    def as_track(self, masses: Floats, centers: Floats) -> Track:
        """Return this followed cluster with its masses and centers, taken from the arrays of all samples."""
        samples = np.arange(self.first, self.stop)
        return Track(self.first, masses[samples, self.columns], centers[samples, self.columns], self.into)


def tracks_of(run: Run) -> Tracks:
    """Return the clusters of a run through time: by the diagnostics cluster_mass and cluster_center, else by snapshots.

    From the handover on, when atoms (point masses) replace the clusters, clusters are the recorded atoms. Raises
    ValueError for a domain without clusters, FileError for values of a damaged file.
    """
    from meanfield.analysis.atoms import tracks_of_atoms
    from meanfield.analysis.snapshot_clusters import recorded_clusters

    recorded = recorded_clusters(run)
    times, masses, centers = _clusters_of_snapshots(run) if recorded is None else (run.sample_times, *recorded)
    return tracks_of_atoms(run, times, masses, centers) or track(times, masses, centers)


def _clusters_of_snapshots(run: Run) -> tuple[Floats, Floats, Floats]:
    """Return times, masses (snapshots, K) and centers (snapshots, K, d) of the clusters found in the snapshots.

    Absent clusters are NaN, and so are all clusters of snapshots after they have become atoms.
    """
    from meanfield.analysis.snapshot_clusters import cluster_finder

    find, atoms_from = cluster_finder(run), min(run.events.get("time", ()), default=np.inf)
    found = [find(k) for k in range(np.searchsorted(run.times, atoms_from, side="right"))]
    max_count = max((one.count for one in found), default=0)
    dimension = found[0].centers.shape[1] if found else 0
    masses = np.full((len(run.times), max_count), np.nan)
    centers = np.full((len(run.times), max_count, dimension), np.nan)
    for k, one in enumerate(found):
        masses[k, : one.count], centers[k, : one.count] = one.masses, one.centers
    return run.times, masses, centers


def _match(
    masses: Floats, centers: Floats, new_masses: Floats, new_centers: Floats
) -> tuple[NDArray[np.intp], list[tuple[int, int]]]:
    """Return the old cluster that continues as each new one, −1 for none, and pairs (old, new) of those that merged.

    Old and new clusters are those of two successive samples.
    """
    successor = np.full(len(new_masses), -1, dtype=np.intp)
    if not len(masses) or not len(new_masses):
        return successor, []
    angle = _angles(centers, new_centers)
    plan = _plan(angle, masses, new_masses)
    target = plan.argmax(axis=1)
    arriving, count = (np.bincount(target, weights, len(new_masses)) for weights in (masses, None))
    sums_up = (np.abs(arriving - new_masses) <= MASS_SUM_RTOL * masses.sum()) & (count > 1)  # exact for atoms
    continues = (angle[np.arange(len(masses)), target] <= MAX_ANGLE) | sums_up[target]
    merged = []
    for new in range(len(new_masses)):
        sources = np.flatnonzero(continues & (target == new))
        if len(sources):
            successor[new] = sources[plan[sources, new].argmax()]
            merged += [(int(source), new) for source in sources if source != successor[new]]
    return successor, merged


def _angles(one: Floats, other: Floats) -> Floats:
    """Return the angles (a, b) between unit vectors (a, d) and (b, d), accurate for small angles too."""
    chord = np.linalg.norm(one[:, None] - other[None], axis=2)
    return np.asarray(2 * np.arcsin(np.clip(chord / 2, 0.0, 1.0)))


def _plan(angle: Floats, masses: Floats, new_masses: Floats) -> Floats:
    """Return the optimal transport plan (a, b) from old to new clusters for the cost angle².

    Both sides are scaled to the total mass of the old clusters.
    """
    nearest = angle.argmin(axis=1)
    if sorted(nearest) == list(range(len(new_masses))):
        matched = new_masses[nearest]
        if (matched < MASS_RATIO * masses).all() and (masses < MASS_RATIO * matched).all():
            plan = np.zeros_like(angle)
            plan[np.arange(len(masses)), nearest] = masses
            return plan
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    a, b = angle.shape
    sums = vstack([kron(eye_array(a), np.ones((1, b))), kron(np.ones((1, a)), eye_array(b))], format="csr")
    marginals = MASS_SCALE * np.concatenate([masses / masses.sum(), new_masses / new_masses.sum()])
    found = linprog(
        angle.ravel() ** 2,
        A_eq=sums[:-1],  # the last sum follows from the preceding ones
        b_eq=marginals[:-1],
        method="highs",
        options={"dual_feasibility_tolerance": COST_ATOL},
    )
    return np.asarray(found.x.reshape(a, b) * (masses.sum() / MASS_SCALE))
