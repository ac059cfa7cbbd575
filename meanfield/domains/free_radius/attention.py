"""Attention between tokens x = rω with a free radius, and between their directions.

    A(x) = V ∫ y e^{⟨Bx, y⟩} ρ(y) dy / Z(x) ,   Z(x) = ∫ e^{⟨Bx, y⟩} ρ(y) dy        B = β, or βKᵀQ

Shells of radius r and r' interact by the kernel e^{βrr'⟨ω,ω'⟩}: a dense matrix for each degree, and transforms of the
directions. The rounding error is relative to the largest value, e^{βr·r'} for the outermost relevant r', while at a
token Z ≥ m e^{βr²} for its own mass m. Where this accuracy is insufficient, and for a B that is no multiple of the
identity, sums are taken over pairs of cells, without the shells whose contribution is negligible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meanfield.domains.free_radius.equation import FreeRadius, Output
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.lost_sums import Empty
from solvers.transforms.pairwise import exponential_sums
from solvers.transforms.shells import shells

VISIBLE = 1e-12  # relative to the mass: lighter cells are numerical tails; they attend, but are not attended to
REACH = 1e-11  # error of A times mass that the transforms may leave, over the largest radius
NEGLIGIBLE = 40.0  # a part e^{−40} of a sum is below its rounding error


Indices = NDArray[np.intp]
Rows = Indices | slice
Lost = NDArray[np.bool_] | bool


class Sums(NamedTuple):
    """Kernel sums Z e^{−scale} (shells, directions) and N e^{−scale} (shells, directions, d), and their scale.

    Z = ∫ e^{⟨Bx,y⟩} ρ dy and N = ∫ y e^{⟨Bx,y⟩} ρ dy.
    """

    normalizer: Floats
    numerator: Floats
    scale: Floats


class ShellAttention:
    """Attention field A of masses on shells of radius r over the cells of a circle or a sphere.

    directions      the mesh of the directions
    beta            β
    value           V (d, d); the identity if absent
    key_query       KᵀQ (d, d), B = β KᵀQ; the identity if absent. Unless KᵀQ is a multiple of the identity, sums are
                    over pairs of cells
    normalization   "softmax", or "unnormalized": A = V N, where N is the sum of y e^{⟨Bx,y⟩} over the tokens y

    Cost for n shells of m directions: n²m on the circle; on the sphere 4n transforms of degree 101 each way and 101²n²
    for the matrices between shells. By pairs at most n²m², the square of the number of cells that hold mass. One
    evaluation on one core: 4 ms for 96 × 64 on the circle, 25 ms where β = 100 requires pairs; 0.17 s for 48 × 1368 on
    the sphere.
    """

    def __init__(
        self,
        directions: Mesh,
        beta: float,
        value: ArrayLike | None = None,
        key_query: ArrayLike | None = None,
        normalization: str = "softmax",
    ) -> None:
        one = np.eye(directions.centers.shape[1])
        self.directions, self.normalization = directions, normalization_of(normalization, two_sided=False)
        self.value = one if value is None else np.asarray(value, dtype=float)
        self.form = beta * (one if key_query is None else np.asarray(key_query, dtype=float))
        self.size = float(np.linalg.norm(self.form, 2))
        self.isotropic = np.array_equal(self.form, self.form[0, 0] * one)
        self._shells = shells(directions)

    def output(self, radii: Floats, masses: Floats, empty: Empty = "exact") -> Floats:
        """Return the attention field A (shells, directions, d) of masses (shells, directions) at ``radii`` (shells,).

        Radii are on the host, as are decisions that depend on radii and on the masses of whole shells; masses and A are
        on the device of the mesh. A is NaN for masses that are not finite. ``empty`` selects A in cells without mass
        whose kernel sums the transforms lose to rounding: "exact" recomputes A, "nan" sets NaN, and "bounded", the
        choice of runs, leaves an inaccurate A with |A| ≤ ‖V‖·(largest radius with mass) for softmax, and A = 0 on
        shells far from all mass.
        """
        backend, total = self.directions.backend, masses.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            nothing = (total - total) / total  # NaN where the total is not finite, or 0
            seen = backend.xp.where(masses > VISIBLE * total, masses / total, nothing)
        # avoids a synchronization for a single shell
        weight = backend.to_host(seen.sum(axis=1)) if len(seen) > 1 else np.ones(1)
        if np.isnan(weight).any():
            lost: Floats = backend.xp.full_like(seen[..., None] * self.directions.centers, np.nan)
            return lost
        sums = self._sums(radii, seen, weight, empty)
        largest = float(radii[weight > 0].max())
        with np.errstate(over="ignore", invalid="ignore"):  # the time loop reports a state that explodes
            mean = self.normalization((sums.scale, sums.normalizer, sums.numerator), reach=largest)
            mean = mean if self.normalization.is_relative else total * mean
        return mean @ backend.to_device(self.value.T)

    def _sums(self, radii: Floats, masses: Floats, weight: Floats, empty: Empty) -> Sums:
        """Return kernel sums of masses (shells, directions) of total 1, by transforms where accurate, else by pairs.

        ``weight`` (shells,) are the masses of whole shells.
        """
        cells, backend = masses.shape, self.directions.backend
        sources = np.flatnonzero(weight)
        # log of the largest contribution of r' at r
        reach = self.size * np.outer(radii, radii[sources]) + np.log(weight[sources])
        own_exponents = np.where(self.isotropic, self.form[0, 0] * radii**2, -np.inf)  # Z ≥ m e^own at a cell of mass m
        scale = reach.max(axis=1)
        everywhere = backend.to_device(np.repeat(scale[:, None], cells[1], axis=1))
        sums = Sums(backend.zeros(cells), backend.zeros((*cells, len(self.form))), everywhere)
        # The error of a transform is ε e^scale in N and Z, so over m e^own in A; summed over cells, weighted by mass:
        rounding = np.finfo(float).eps * cells[1]
        exact = rounding * np.exp(np.minimum(scale - own_exponents, NEGLIGIBLE)) < REACH
        fast = exact & (self.size * radii * radii[sources].max() <= self._shells.largest_exponent)
        if fast.any():
            self._add_by_shells(radii, masses, np.flatnonzero(fast), sources, scale, sums)
        needed = ~fast & ((empty == "exact") | _occupied_or_adjacent(weight > 0))
        for shell in np.flatnonzero(needed):
            visible = sources[reach[shell] >= own_exponents[shell] + np.log(VISIBLE) - NEGLIGIBLE]
            self._add_by_pairs(radii, masses, int(shell), sources if empty == "exact" else visible, sums)
        if empty != "bounded":
            for shell in np.flatnonzero(fast | (empty == "nan")):
                lost = backend.to_host(sums.normalizer[shell]) < rounding / REACH if fast[shell] else True
                self._replace_lost_sums(radii, masses, int(shell), lost, sources, sums, empty)
        return sums

    def _replace_lost_sums(
        self, radii: Floats, masses: Floats, shell: int, lost: Lost, sources: Indices, sums: Sums, empty: Empty
    ) -> None:
        """Set kernel sums of a shell at the ``lost`` directions, where rounding dominates, to the values by ``empty``.

        ``lost`` are booleans (directions,), or True for all directions.
        """
        backend = self.directions.backend
        if empty == "nan":
            cells = backend.to_device(np.flatnonzero(lost & (backend.to_host(masses[shell]) == 0)))
            sums.normalizer[shell, cells], sums.numerator[shell, cells] = np.nan, np.nan
        elif np.any(lost):
            self._add_by_pairs(radii, masses, shell, sources, sums, backend.to_device(np.flatnonzero(lost)))

    def _add_by_shells(
        self, radii: Floats, masses: Floats, targets: Indices, sources: Indices, scale: Floats, sums: Sums
    ) -> None:
        """Set the kernel sums at shells ``targets`` to sums over the shells ``sources``, by transforms."""
        to_device = self.directions.backend.to_device
        exponents = self.form[0, 0] * np.outer(radii, radii)
        rows = targets[:, None]
        weights = to_device(np.exp(np.abs(exponents[rows, sources]) - scale[rows]))
        target_shells, source_shells = to_device(targets), to_device(sources)
        kernel = self._shells.multipliers.of(exponents)[:, target_shells[:, None], source_shells] * weights
        found = self._shells.sums(kernel, masses[source_shells], to_device(radii[sources]))
        sums.normalizer[target_shells], sums.numerator[target_shells] = found

    def _add_by_pairs(
        self, radii: Floats, masses: Floats, shell: int, sources: Indices, sums: Sums, targets: Rows = slice(None)
    ) -> None:
        """Set the kernel sums at directions ``targets`` of a shell to sums over all cells of the shells ``sources``."""
        to_device, centers = self.directions.backend.to_device, self.directions.centers
        source_masses = masses[to_device(sources)].reshape(-1)
        places, _ = self.directions.backend.true_indices(source_masses != 0)
        shells, cells = np.divmod(places, len(centers))
        points = to_device(radii[sources])[shells][:, None] * centers[cells]
        found = exponential_sums(
            float(radii[shell]) * centers[targets] @ to_device(self.form.T), points, source_masses[places]
        )
        sums.scale[shell, targets], sums.normalizer[shell, targets], sums.numerator[shell, targets] = found


def output_at_positions(space: FreeRadius, attention: ShellAttention) -> Output:
    """Return the function (time, density) → attention field A (radii, directions, d) at positions x = rω.

    The function serves runs without layer norm, whose attention depends on positions.
    """
    return lambda time, density: attention.output(
        space.radii(time), density.reshape(space.shape) * space.volumes, "bounded"
    )


def output_at_directions(space: FreeRadius, attention: ShellAttention) -> Output:
    """Return the function (time, density) → attention field A (1, directions, d) at directions ω.

    The function serves the layer norms pre, peri and mix, whose attention depends on directions only.
    """
    areas = space.directions.volumes
    return lambda time, density: attention.output(np.ones(1), (space.on_directions(density) * areas)[None], "bounded")


def _occupied_or_adjacent(occupied: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return booleans (shells,): whether a shell is occupied or adjacent to an occupied one.

    Only there the velocity is needed.
    """
    adjacent: NDArray[np.bool_] = occupied | np.append(occupied[1:], False) | np.insert(occupied[:-1], 0, False)
    return adjacent
