"""Sums Σ m e^{⟨b,y⟩} accurate to rounding at every target, also where the sums are tiny.

The error of transforms is rounding relative to the largest sum. Much smaller sums are computed here over pairs of a
target and a source. Many pairs are grouped by targets and by sources. Each group of targets omits the groups of sources
that together contribute less than e^{−NEGLIGIBLE} of any sum. Masses at interpolation nodes replace a group with more
sources than nodes, as in `patches`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats
from .pairwise import exponential_sums
from .patches import NODES, fine_patches, masses_at_nodes, nodes_of, project_to_cube, sorted_by_patch

NEGLIGIBLE = 37.0  # e^{−37} = 1e-16
FEW_PAIRS = 1 << 24  # up to this number all pairs are summed: grouping takes as long
_TARGETS, _SOURCES = 256, 64  # average size of a group

Indices = NDArray[np.int64]
Sums = tuple[Floats, Floats, Floats]  # log_scale, Z and N

Empty = Literal["exact", "nan", "bounded"]
"""Treatment of lost sums in cells without mass.

exact    recomputed, as in all other cells
nan      NaN
bounded  the inaccurate result of the transform: |N| and Z are at most the rounding error of the largest sum
"""


def set_lost_to_nan(sums: tuple[Floats, Floats, Floats], places: NDArray[np.bool_]) -> None:
    """Set Z and N to NaN where ``places`` (n,) is true, for ``sums`` = (log_scale (n,), Z (n,), N (n, d))."""
    sums[1][places], sums[2][places] = np.nan, np.nan


def lost_sums(targets: Floats, sources: Floats, masses: Floats) -> Sums:
    """Return s (n,), Z e^{−s} (n,) and N e^{−s} (n, d) of Z = Σ_j m_j e^{⟨b,y_j⟩}, N = Σ_j m_j y_j e^{⟨b,y_j⟩}.

    The sums replace those that a transform has lost to rounding. Z and N have errors below 1e-11 of Z for Z and masses
    of any size. s is about log Z. The results are float64.

    targets  (n, d) vectors b, d = 2 or 3
    sources  (m, d) points y, unit vectors
    masses   (m,) masses m ≥ 0; sources without mass are ignored
    """
    held = np.flatnonzero(masses)
    targets, sources, masses = (np.asarray(each, dtype=np.float64) for each in (targets, sources[held], masses[held]))
    logs = np.log(np.abs(masses))
    if len(targets) * len(masses) <= FEW_PAIRS:
        return exponential_sums(targets, sources, np.sign(masses), log_weights=logs)
    steepness = float(np.sqrt((targets**2).sum(axis=1).max()))
    grouped = _Sources(sources, masses, steepness)
    scale, normalizer, vectors = np.empty(len(targets)), np.empty(len(targets)), np.empty_like(targets)
    for group in _groups(targets, steepness):
        some = targets[group]
        scale[group], normalizer[group], vectors[group] = grouped.sums_at(some)
    return scale, normalizer, vectors


def _groups(targets: Floats, steepness: float) -> Iterator[Indices]:
    """Yield the indices of neighboring targets (n, d), those in each cube of a partition of R^d into equal cubes.

    A cube would have 256 targets on average if they covered the sphere of radius ``steepness`` evenly.
    """
    n, d = targets.shape
    side = 2 * np.pi * _TARGETS / n if d == 2 else np.sqrt(4 * np.pi * _TARGETS / n)
    cubes = np.floor(targets / max(steepness * side, 1.0)).astype(np.int64)
    numbers = np.unique(cubes, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(numbers, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


class _Sources:
    """Point masses at unit vectors y (m, d), grouped by position, for sums of e^{⟨b,y⟩} with |b| ≤ ``steepness``."""

    def __init__(self, points: Floats, masses: Floats, steepness: float) -> None:
        m, d = points.shape
        fine = fine_patches(steepness)
        count = min(fine, max(m // (4 * _SOURCES) if d == 2 else int(np.sqrt(m / (6 * _SOURCES))), 1))
        places, local, order, starts = sorted_by_patch(*project_to_cube(points), count)
        groups = np.split(order, starts[1:])
        self._log_masses = np.log(np.add.reduceat(np.abs(masses)[order], starts))
        self._middles = np.stack([points[group].mean(axis=0) for group in groups])
        self._radii = np.array([
            np.sqrt(((points[group] - middle) ** 2).sum(axis=1).max())
            for group, middle in zip(groups, self._middles, strict=True)
        ])  # fmt: skip
        nodes = nodes_of(places, count, d) if count == fine else None
        parts = []
        for k, group in enumerate(groups):
            if nodes is not None and len(group) > NODES ** (d - 1):
                largest = np.abs(masses[group]).max()
                weights = masses_at_nodes(local[group], masses[group] / largest)
                parts.append((nodes[k], weights, np.full(len(weights), np.log(largest))))
            else:
                parts.append((points[group], np.sign(masses[group]), np.log(np.abs(masses[group]))))
        self._sizes = np.array([len(weights) for _, weights, _ in parts])
        self._points, self._weights, self._logs = (np.concatenate(part) for part in zip(*parts, strict=True))

    def sums_at(self, targets: Floats) -> Sums:
        """Return s (n,), Z e^{−s} (n,) and N e^{−s} (n, d) at neighboring targets b (n, d).

        The sums over the sources y_j with masses m_j are Z = Σ_j m_j e^{⟨b,y_j⟩} and N = Σ_j m_j y_j e^{⟨b,y_j⟩}. The
        sums omit groups of sources that contribute less than e^{−37} of any Z together. s is the largest exponent of a
        target.
        """
        middle = targets.mean(axis=0)
        reach = float(np.sqrt(((targets - middle) ** 2).sum(axis=1).max()))  # ⟨b − middle, y − y'⟩ ≤ 2 reach
        exponents, slack = self._log_masses + self._middles @ middle, float(np.linalg.norm(middle)) * self._radii
        least = (exponents - slack).max() - 2 * reach - NEGLIGIBLE - np.log(len(exponents))
        relevant = np.repeat(exponents + slack >= least, self._sizes)
        return exponential_sums(
            targets, self._points[relevant], self._weights[relevant], log_weights=self._logs[relevant]
        )
