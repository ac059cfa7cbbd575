"""Handover from a collapsed density, or tokens, to atoms, and an estimate of its error.

A cluster that has collapsed is a point mass to its mesh: the scheme holds it in the cell around it and the next ones,
and carries it as an atom. From then on the velocity of the atoms is the same without a mesh.

Its width in cells: on the circle ½ at most, a mass that two cells share; on spheres of 32 to 128 rings 0.5
to 0.9 for clusters at rest, and up to 4 for those that move fast or merge. On metastable_circle a handover at a spread
of 10, 5, 2 and 1 moves the next merger by 1.2 %, 0.2 %, 0.01 % and 0.002 %; on metastable_sphere with 64 rings by 7 %,
1.1 %, 1.1 % and 0.7 %, of which 0.6 % is what the mesh itself does to the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.clusters.on_cells import Clusters, find_clusters
from meanfield.domains.atoms.flow import advance, until_merger
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, Mesh

SPREAD = 1.0  # cells: above what is held at rest, and where waiting longer gains less than the mesh loses


@dataclass(frozen=True)
class HandOverError:
    """Differences made by a handover at another time.

    angle    largest between an atom of one and of the other, radians
    mass     largest difference of their masses
    merger   |T₁ − T₂|/(T₂ − t₁) of the times of the next merger, t₁ the time of the first handover; NaN where there
             is none to compare
    """

    angle: float
    mass: float
    merger: float


def spread(mesh: Mesh, density: Floats) -> float:
    """How wide the widest cluster of a density (cells) is, by :func:`cluster_spreads`; infinite where there is none."""
    clusters = find_clusters(mesh, density)
    return float(cluster_spreads(mesh, density, clusters).max()) if clusters.count else np.inf


def cluster_spreads(mesh: Mesh, density: Floats, clusters: Clusters) -> Floats:
    """√(Σ m |x − center|²/Σ m) over the basin of each cluster, (k,), in units of the mesh's cell width."""
    in_cluster = clusters.basin >= 0
    basin, masses = clusters.basin[in_cluster], (density * mesh.volumes)[in_cluster]
    squares = ((mesh.centers[in_cluster] - clusters.centers[basin]) ** 2).sum(axis=1)
    sums = np.bincount(basin, masses * squares, clusters.count)
    return np.asarray(np.sqrt(sums / np.bincount(basin, masses, clusters.count)) / mesh.width)


def collapsed(mesh: Mesh, density: Floats, max_spread: float = SPREAD) -> Clusters | None:
    """The clusters of a density (cells) if none is wider than ``max_spread`` cells, else None."""
    clusters = find_clusters(mesh, density)
    if clusters.count == 0 or cluster_spreads(mesh, density, clusters).max() > max_spread:
        return None
    return clusters


def atoms_of(clusters: Clusters) -> Atoms:
    """One atom for each cluster: all mass of its basin, at its center of mass, on the sphere."""
    return Atoms(clusters.centers, clusters.masses)


def hand_over_error(
    velocity: AtomVelocity,
    atoms_at: Callable[[Floats], Atoms],
    values: Floats,
    time: float,
    later: float,
    end: float,
    carry_on: Callable[[Floats, float, float], Floats],
) -> HandOverError:
    """Differences between handing over a density (cells), or tokens (n, d), at ``later`` and at ``time``.

    atoms_at   values → the atoms that they become
    end        time up to which the next merger is computed; itself where there is none
    carry_on   values, from, to → values, as before a handover
    """
    early, _ = advance(velocity, atoms_at(values), time, later)
    late = atoms_at(carry_on(values, time, later))
    angle, mass = difference(early, late)
    fewest = min(early.count, late.count)  # a merger that one has had by then, and the other is about to have, is past
    times = [_falls_below(fewest, velocity, atoms, later, end) for atoms in (early, late)]
    merger = abs(times[0] - times[1]) / (times[1] - time) if min(times) < end else np.nan
    return HandOverError(angle, mass, merger)


def _falls_below(count: int, velocity: AtomVelocity, atoms: Atoms, time: float, end: float) -> float:
    """When there are fewer atoms than ``count``; ``end`` where that is later."""
    while time < end:
        atoms, time, mergers = until_merger(velocity, atoms, time, end)
        if atoms.count < count:
            return mergers[-1].time
    return end


def difference(one: Atoms, other: Atoms) -> tuple[float, float]:
    """Largest angle and largest difference of mass between the atoms of two states.

    Each atom of the more numerous counts to the nearest of the fewer, so that a pair about to merge and the one that
    it becomes compare well. Infinite where one of the fewer is nearest to none.
    """
    fewer, more = sorted((one, other), key=lambda atoms: atoms.count)
    nearest = (more.positions @ fewer.positions.T).argmax(axis=1)
    masses = np.bincount(nearest, more.masses, fewer.count)
    if not masses.all():
        return np.inf, np.inf
    sums = np.stack([np.bincount(nearest, more.masses * x, fewer.count) for x in more.positions.T], axis=1)
    chords = np.linalg.norm(unit_vectors(sums) - fewer.positions, axis=1)
    return float(2 * np.arcsin(chords.max() / 2)), float(np.abs(masses - fewer.masses).max())
