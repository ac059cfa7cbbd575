"""Handover from a collapsed density, or tokens, to atoms, and an estimate of its error.

A collapsed cluster is a point mass on its mesh: the scheme keeps its mass in one cell and the adjacent cells, and moves
the cluster as an atom. From then on the velocity of the atoms needs no mesh.

The width of a collapsed cluster in cells: on the circle ½ at most, a mass shared by two cells; on spheres of 32 to 128
rings 0.5 to 0.9 for clusters at rest, and up to 4 for clusters that move fast or merge. On metastable_circle a handover
at a spread of 10, 5, 2 and 1 moves the next merger by 1.2 %, 0.2 %, 0.01 % and 0.002 %; on metastable_sphere with 64
rings by 7 %, 1.1 %, 1.1 % and 0.7 %, of which 0.6 % is the error of the motion on the mesh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.clusters.near import Labels, groups_within, sums_of_groups
from meanfield.clusters.on_cells import Clusters, find_clusters
from meanfield.domains.atoms.flow import TOUCH_RTOL, advance, until_merger
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, Mesh

SPREAD = 1.0  # in cells: above the width at rest; a later handover gains less than the mesh loses


@dataclass(frozen=True)
class HandoverError:
    """Differences that a later time of the handover, which replaces collapsed clusters by atoms, would make.

    angle    largest angle between corresponding atoms, radians
    mass     largest difference of their masses
    merger   |T₁ − T₂|/(T₂ − t₁) of the times of the next merger, t₁ the time of the first handover; NaN without a
             merger
    """

    angle: float
    mass: float
    merger: float


def cluster_spreads(mesh: Mesh, density: Floats, clusters: Clusters) -> Floats:
    """Return the widths √(Σ m |x − center|²/Σ m) of the clusters of a density, (k,), in cell widths of the mesh.

    The sums are over the basin of each cluster, the cells that belong to it, with masses m.
    """
    in_cluster = clusters.basin >= 0
    basin, masses = clusters.basin[in_cluster], (density * mesh.volumes)[in_cluster]
    squares = ((mesh.centers[in_cluster] - clusters.centers[basin]) ** 2).sum(axis=1)
    sums = np.bincount(basin, masses * squares, clusters.count)
    return np.asarray(np.sqrt(sums / np.bincount(basin, masses, clusters.count)) / mesh.width)


def collapsed_clusters(mesh: Mesh, density: Floats, max_spread: float = SPREAD) -> Clusters | None:
    """Return the clusters of a density (cells); None if one is wider than ``max_spread`` cells, or there are none."""
    clusters = find_clusters(mesh, density)
    if clusters.count == 0 or cluster_spreads(mesh, density, clusters).max() > max_spread:
        return None
    return clusters


def atoms_of(clusters: Clusters) -> Atoms:
    """Return one atom (point mass) for each cluster: all mass of its basin, at its center of mass, on the sphere."""
    return Atoms(clusters.centers, clusters.masses)


def clusters_of(atoms: Atoms, scale: float) -> Atoms:
    """Return the clusters of atoms as point masses, in the order of their first atoms.

    Atoms nearer than ``scale`` (radians) are one cluster; so are atoms at this distance up to rounding.
    """
    return grouped(atoms, groups_within(atoms.positions, scale * (1 + TOUCH_RTOL)))


def grouped(atoms: Atoms, groups: Labels) -> Atoms:
    """Return one point mass for each group of atoms; ``groups`` (k,) are the numbers of the groups of the atoms."""
    masses, centers = sums_of_groups(groups, atoms.masses, atoms.positions)
    return Atoms(centers, masses)


def hand_over_error(
    velocity: AtomVelocity,
    atoms_at: Callable[[Floats], Atoms],
    values: Floats,
    time: float,
    later: float,
    end: float,
    carry_on: Callable[[Floats, float, float], Floats],
) -> HandoverError:
    """Return the differences between a handover of a density (cells), or tokens (n, d), at ``later`` and at ``time``.

    A handover replaces collapsed clusters by atoms.

    atoms_at   values → the atoms that replace their clusters
    end        time up to which the next merger is searched
    carry_on   (values, from, to) → values at the time "to", by the motion without a handover
    """
    early, _ = advance(velocity, atoms_at(values), time, later)
    late = atoms_at(carry_on(values, time, later))
    angle, mass = difference(early, late)
    # skips a merger that one of both has had by then, and the other is about to have
    fewest = min(early.count, late.count)
    times = [_time_below(fewest, velocity, atoms, later, end) for atoms in (early, late)]
    merger = abs(times[0] - times[1]) / (times[1] - time) if min(times) < end else np.nan
    return HandoverError(angle, mass, merger)


def _time_below(count: int, velocity: AtomVelocity, atoms: Atoms, time: float, end: float) -> float:
    """Return the time from which mergers leave fewer atoms than ``count``; ``end`` if that time is later."""
    while time < end:
        atoms, time, mergers = until_merger(velocity, atoms, time, end)
        if atoms.count < count:
            return mergers[-1].time
    return end


def difference(one: Atoms, other: Atoms) -> tuple[float, float]:
    """Return the largest angle and the largest difference of mass between the atoms of two states.

    Each atom of the larger set is assigned to the nearest of the smaller set, so that a pair about to merge compares
    well with the merged atom. The result is infinite where an atom of the smaller set has no assigned atom.
    """
    fewer, more = sorted((one, other), key=lambda atoms: atoms.count)
    nearest = (more.positions @ fewer.positions.T).argmax(axis=1)
    masses = np.bincount(nearest, more.masses, fewer.count)
    if not masses.all():
        return np.inf, np.inf
    sums = np.stack([np.bincount(nearest, more.masses * x, fewer.count) for x in more.positions.T], axis=1)
    chords = np.linalg.norm(unit_vectors(sums) - fewer.positions, axis=1)
    return float(2 * np.arcsin(chords.max() / 2)), float(np.abs(masses - fewer.masses).max())
