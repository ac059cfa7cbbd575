"""States of a run with a handover: a density or tokens at first, then their clusters as atoms.

A density (cells,) becomes (atoms, 1 + d): mass and position of each. Tokens (n, d) become (n, d + 1): the position of
the atom of each token, and its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.clusters.on_cells import Clusters
from meanfield.domains.atoms.flow import MERGE_ANGLE, AtomMerger
from meanfield.domains.atoms.handover import atoms_of, collapsed_clusters
from meanfield.domains.atoms.velocity import Atoms
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.deposit import deposit_points

MAX_ATOMS, MAX_COORDINATES = 32, 128  # limits of Radau's Jacobian, by finite differences in each coordinate
FEW_ATOMS = 4  # in any dimension


def atom_limit(dimension: int) -> int:
    """Return the maximum number of clusters of tokens in R^d that are followed as atoms."""
    return min(MAX_ATOMS, max(FEW_ATOMS, MAX_COORDINATES // dimension))


@dataclass(frozen=True, eq=False)
class DensityStates:
    """States of a run with a density on a mesh, whose clusters atoms (point masses) replace after the collapse.

    The density has collapsed when no cluster is wider than ``spread`` cells.
    """

    mesh: Mesh
    spread: float
    diagnostics = (
        "mass", "entropy", "entropy_rate", "energy", "speed", "centroid", "clusters", "cluster_mass", "cluster_center",
        "pairs", "pairs_close", "power",
    )  # fmt: skip

    def are_atoms(self, values: Floats) -> bool:
        """Return whether values are rows of atoms (point masses), not a density."""
        return values.ndim == 2

    def have_collapsed(self, values: Floats) -> bool:
        """Return whether the density has collapsed to clusters that atoms can replace."""
        return collapsed_clusters(self.mesh, values, self.spread) is not None

    def atoms(self, values: Floats) -> Atoms:
        """Return the atoms of a state: those of its values, or of the clusters before the handover."""
        if self.are_atoms(values):
            return Atoms(np.ascontiguousarray(values[:, 1:]), values[:, 0].copy())
        clusters = collapsed_clusters(self.mesh, values, np.inf)
        assert clusters is not None  # there is at least one cluster
        return atoms_of(clusters)

    def values_after_handover(self, values: Floats) -> Floats:
        """Return the values after the handover, rows of atoms, from those of a density."""
        return _rows(self.atoms(values))

    def values_after_step(self, values: Floats, atoms: Atoms, mergers: Sequence[AtomMerger]) -> Floats:
        """Return the values of a state after a step that leaves ``atoms``; ``values`` are those before the step.

        ``mergers`` are the mergers at the end of the step.
        """
        return _rows(atoms)

    def snapshot(self, values: Floats) -> Floats:
        """Return the density (cells,) that a snapshot of the values contains."""
        return deposit_points(self.mesh, values[:, 1:], values[:, 0]) if self.are_atoms(values) else values


def _rows(atoms: Atoms) -> Floats:
    """Return the mass and the position of each atom as a row (atoms, 1 + d)."""
    return np.column_stack([atoms.masses, atoms.positions])


@dataclass(frozen=True, eq=False)
class TokenStates:
    """States of a run with tokens with ``masses`` (n,) in R^d, whose clusters atoms (point masses) replace.

    Tokens have collapsed when all are within ``spread`` · 1e-4 rad of the center of their cluster, by the density
    estimate with bandwidth ``scale``, and there are at most ``atom_limit`` clusters.
    """

    masses: Floats
    dimension: int
    spread: float
    scale: float
    diagnostics = ("speed", "clusters", "cluster_mass", "cluster_center")

    def are_atoms(self, values: Floats) -> bool:
        """Return whether values contain the number of the atom of each token."""
        return bool(values.shape[1] > self.dimension)

    def have_collapsed(self, values: Floats) -> bool:
        """Return whether the tokens have collapsed to clusters that atoms can replace."""
        clusters = self._clusters(values)
        if not 0 < clusters.count <= atom_limit(self.dimension):
            return False
        distances = np.linalg.norm(values - clusters.centers[clusters.basin], axis=1)
        return bool(distances.max() <= self.spread * MERGE_ANGLE)

    def _clusters(self, values: Floats) -> Clusters:
        """Return the clusters of tokens at the positions ``values`` (n, d)."""
        return find_clusters_of_tokens(values, self.masses, self.scale)

    def atoms(self, values: Floats) -> Atoms:
        """Return the atoms of a state: those of its values, or of the clusters before the handover."""
        if not self.are_atoms(values):
            return atoms_of(self._clusters(values))
        _, first, numbers = np.unique(values[:, -1], return_index=True, return_inverse=True)
        return Atoms(values[first, :-1], np.bincount(numbers, self.masses).astype(float))

    def values_after_handover(self, values: Floats) -> Floats:
        """Return the values after the handover, a number of an atom for each token, from those of tokens."""
        clusters = self._clusters(values)
        return np.column_stack([clusters.centers[clusters.basin], clusters.basin])

    def values_after_step(self, values: Floats, atoms: Atoms, mergers: Sequence[AtomMerger]) -> Floats:
        """Return the values of a state after a step, as for a density."""
        numbers = np.unique(values[:, -1], return_inverse=True)[1]
        for merger in mergers:
            survivor, absorbed = merger.atoms
            numbers[numbers == absorbed] = survivor
        numbers = np.unique(numbers, return_inverse=True)[1]
        return np.column_stack([atoms.positions[numbers], numbers])

    def snapshot(self, values: Floats) -> Floats:
        """Return the positions (n, d) of tokens that a snapshot of the values contains."""
        return values[:, : self.dimension]


HandoverStates = DensityStates | TokenStates
