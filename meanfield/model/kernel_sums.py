"""Sums ∫ k ρ and ∫ y k ρ of the kernel of a head over a density, by the transform that fits the matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.model.errors import ArgumentError
from meanfield.model.heads import MAX_LOG_RANGE, Head, log_bound, log_factors, matrix_of, multiple, steepness
from meanfield.model.kernel import Kernel
from meanfield.model.layer_norm import tangential_part
from meanfield.model.normalization import Sums
from meanfield.model.zonal_multipliers import check_zonal, zonal_multipliers_on
from solvers.backends.formulas import UNIT_RTOL
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.mass import mass_of
from solvers.transforms.anisotropic.bilinear import Bilinear
from solvers.transforms.cell_pairs import ExponentialPairs, SumsOverPairs, ZonalPairs
from solvers.transforms.exponential import exponential_degree, exponential_gradient_multipliers, exponential_multipliers
from solvers.transforms.lost_sums import Empty, set_lost_to_nan
from solvers.transforms.uniform import uniform_fraction, uniform_share
from solvers.transforms.zonal import CircleZonal, SphereZonal, gradient_multipliers, radial_multipliers, zonal_operator

STEEPEST_OPPOSITE = -4.0  # smallest t of e^{t⟨x,y⟩} by harmonics: where Z is least, the relative error is 1e-16·e^8


class ZonalSums:
    """Sums of a zonal kernel k(⟨x,y⟩) e^{−log_bound} over a density, by its multipliers on harmonics.

    Near the uniform density, one part is added in closed form. The sum of the cells over the uniform density has an
    error O(h²) for cells of width h, which would grow. Near uniform this error is subtracted, so that the uniform
    density is exactly stationary. The correction vanishes for clusters, since it would exceed the weak attraction
    between distant clusters: :func:`solvers.transforms.uniform.uniform_share` is its weight. A mass that is 1 to
    rounding counts as 1.

    log_bound   logarithm of the largest value of the kernel, |β|‖QᵀK‖ for e^{β⟨Qx,Ky⟩}
    uniform     mean ∫ k dy / |S| · e^{−log_bound} of the kernel over the circle or sphere S, where it is the same for
                all x; else of an equally steep zonal kernel
    gradient    (degrees,) multipliers of the function G with ∇G(⟨x,y⟩) = k Pₓ y, times e^{−log_bound}
    """

    # relative to the largest Z in float64 and float32: below, rounding exceeds 1e-11 and 1e-5 of Z
    min_normalizer = 1e-4, 1e-2
    min_share = 0.1  # relative to the part of Z in closed form: below, its correction does not apply

    def __init__(
        self,
        mesh: Mesh,
        kernel: Floats,
        gradient: Floats,
        log_bound: float,
        include_radial: bool,
        pairs: SumsOverPairs,
    ) -> None:
        self.mesh, self.gradient, self.log_bound, self._pairs = mesh, gradient, log_bound, pairs
        self._include_radial = include_radial
        radial = radial_multipliers(mesh.ambient_dimension, kernel) if include_radial else None
        self.operator = zonal_operator(mesh, kernel, gradient, radial)
        self.uniform = float(kernel[0]) * (1.0 / mesh.volume)

    def apply(self, density: Floats, active: Floats | None = None, empty: Empty = "bounded") -> Sums:
        """Return the kernel sums of a density ρ (cells,): s, Z e^{−s} (cells,) and N e^{−s} (cells, d).

        Z = ∫ k ρ dy and N = ∫ y k ρ dy, and s is a common logarithmic scale, a number or (cells,). The sums are valid
        where there is mass, or where ``active``, another density (cells,), is positive. In other cells ``empty`` sets
        the values, see :data:`solvers.transforms.lost_sums.Empty`.
        """
        uniform = self._uniform_part(density)
        normalizer, vectors = self.operator.of_density(density, uniform)
        if empty == "bounded":
            return self.log_bound, normalizer, vectors
        sums = self.mesh.backend.xp.full_like(normalizer, self.log_bound), normalizer, vectors
        lost = self._is_lost(normalizer, uniform)
        if empty == "nan":
            set_lost_to_nan(sums, lost)
        elif self.mesh.backend.may_have_true(lost):
            self._pairs.redo(lost, density * self.mesh.volumes, sums)
            if not self._include_radial:
                return sums[0], sums[1], tangential_part(self.mesh.centers, sums[2])
        return sums

    def _is_lost(self, normalizer: Floats, uniform: Floats) -> NDArray[np.bool_]:
        """Return booleans (cells,): whether Z e^{−log_bound}, the kernel sum of a cell, is too small to be accurate."""
        of_largest = self.min_normalizer[normalizer.dtype == np.float32]
        in_closed_form = self.min_share * self.uniform * self.mesh.volume * uniform
        lost: NDArray[np.bool_] = normalizer < np.maximum(of_largest * normalizer.max(), in_closed_form)
        return lost

    def apply_to_rows(self, densities: Floats) -> tuple[Floats | float, Floats, Floats]:
        """Return the kernel sums s, Z e^{−s} (rows, cells) and N e^{−s} (rows, cells, d) of densities ρ (rows, cells).

        Z = ∫ k ρ dy and N = ∫ y k ρ dy. On the sphere N is given by its components along east and north, so that d = 2.
        """
        if not isinstance(self.operator, SphereZonal):
            return self._rows.apply(densities)
        uniform = np.array([self._uniform_part(row) for row in densities])
        normalizer, components = self.operator.along_rings(densities, uniform)
        return self.log_bound, normalizer, components.transpose(1, 2, 0)

    @cached_property
    def _rows(self) -> ZonalRows:
        """Return the operator of the same sums for several densities, one in each row."""
        return ZonalRows([self])

    @property
    def has_components(self) -> bool:
        """Return whether the mesh has rings of latitude, along which vectors have components east and north."""
        return isinstance(self.operator, SphereZonal)

    def apply_along_rings(self, density: Floats) -> tuple[float, Floats, Floats]:
        """Return the kernel sums s, Z e^{−s} (cells,) and N e^{−s} (cells, 2) of a density ρ (cells,) on the sphere.

        Z = ∫ k ρ dy and N = ∫ y k ρ dy. N is given by its components along east and north, without the one along x.
        """
        assert isinstance(self.operator, SphereZonal)
        normalizer, components = self.operator.along_rings(density, self._uniform_part(density))
        return self.log_bound, normalizer, components.T

    def _uniform_part(self, density: Floats) -> Floats:
        """Return the uniform part () of a density (cells,), the part whose kernel sums are added in closed form."""
        mesh, mass = self.mesh, mass_of(self.mesh, density)
        uniform: Floats = mesh.backend.uniform_part(density, mesh.volumes, mass, mesh.volume)
        return uniform


class ZonalRows:
    """Kernel sums of densities (rows, cells) on one circle, with a zonal kernel for each row, or one for all rows."""

    def __init__(self, parts: Sequence[ZonalSums]) -> None:
        self.mesh = parts[0].mesh
        operators = [part.operator for part in parts if isinstance(part.operator, CircleZonal)]
        self._operator = CircleZonal.of_rows(operators)
        self._log_bound = np.array([part.log_bound for part in parts])[:, None]

    def apply(self, densities: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the kernel sums s, Z e^{−s} (rows, cells) and N e^{−s} (rows, cells, d) of densities ρ (rows, cells).

        Z = ∫ k ρ dy and N = ∫ y k ρ dy. The logarithmic scale s has the shape (rows, 1), or (1, 1) for one common
        kernel.
        """
        mesh, volumes = self.mesh, self.mesh.volumes
        mean = _round_to_uniform((densities * volumes).sum(axis=-1) * (1.0 / mesh.volume), mesh)
        distances = (np.abs(densities - mean[:, None]) * volumes).sum(axis=-1)
        uniform = mean * uniform_fraction(distances, mean * mesh.volume)
        return self._log_bound, *self._operator.of_density(densities, uniform)


def _round_to_uniform(mean: Any, mesh: Mesh) -> Any:
    """Return mean densities (...), set to that of unit mass on the mesh where they equal it to rounding."""
    one = 1.0 / mesh.volume
    return mesh.backend.xp.where(np.abs(mean - one) <= UNIT_RTOL * one, one, mean)


class OppositeSums:
    """Sums of the kernel k = e^{t⟨x,y⟩} with t < 0 over a density: tokens attend to their antipodes.

    The sum Z = ∫ k ρ dy at a cluster may be e^{−2|t|} of the largest. Harmonics would lose such a Z to rounding,
    :class:`Bilinear` does not. The errors of the sums over the uniform density are corrected as in :class:`ZonalSums`:
    Z, which varies over many decades, by a factor, and the quotient N/Z with N = ∫ y k ρ dy by a difference.
    """

    def __init__(self, mesh: Mesh, steepness: float, log_gaussian_factor: float, include_radial: bool) -> None:
        d, size = mesh.ambient_dimension, abs(steepness)
        self.mesh, self._include_radial = mesh, include_radial
        self._log_gaussian_factor, self.log_bound = log_gaussian_factor, size - log_gaussian_factor
        self.gradient = exponential_gradient_multipliers(d, steepness, exponential_degree(d, size) + 1)
        normalizer, along = exponential_multipliers(d, steepness, 2) / mesh.volume
        self.uniform = float(normalizer)
        self._operator = Bilinear(mesh, steepness * np.eye(d))
        log_scale, found, vectors = self._operator.apply(mesh.volumes / mesh.volume)
        self._normalizer_correction = normalizer * np.exp(size - log_scale) / found - 1.0
        self._output_correction = vectors / found[:, None] - along / normalizer * mesh.centers

    def apply(self, density: Floats, active: Floats | None = None, empty: Empty = "bounded") -> Sums:
        """Return the kernel sums of a density, as :meth:`ZonalSums.apply`."""
        mesh = self.mesh
        masses = density * mesh.volumes
        active_masses = masses if active is None else active * mesh.volumes
        log_scale, normalizer, vectors = self._operator.apply(masses, active_masses, empty)
        mass = masses.sum()
        share = uniform_share(masses - mass / mesh.volume * mesh.volumes, mass)
        vectors = vectors - (share * normalizer)[:, None] * self._output_correction
        if not self._include_radial:
            vectors = tangential_part(mesh.centers, vectors)
        factor = 1.0 + share * self._normalizer_correction
        return log_scale - self._log_gaussian_factor, normalizer * factor, vectors * factor[:, None]


class BilinearSums:
    """Sums of the kernel k = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky) over a density, for any matrices Q and K.

    f is a factor of the kernel, such as that of the gaussian one.
    """

    def __init__(self, mesh: Mesh, beta: float, query: Floats, key: Floats, kernel: Kernel) -> None:
        d = mesh.ambient_dimension
        matrix = beta * query.T @ key
        size = float(np.linalg.norm(matrix, 2))
        degrees = exponential_degree(d, size) + 1
        self.mesh, self.gradient = mesh, exponential_gradient_multipliers(d, size, degrees)
        self.uniform = float(exponential_multipliers(d, size, 1)[0]) / mesh.volume
        self._operator = Bilinear(mesh, matrix)
        self._source_factors = log_factors(kernel, mesh.centers, beta, key)
        self._largest_factor = 0.0 if self._source_factors is None else float(self._source_factors.max())
        target_factors = log_factors(kernel, mesh.centers, beta, query)
        self._target_factors: Floats | float = 0.0 if target_factors is None else target_factors
        self.log_bound = size if target_factors is None else 0.0

    def apply(self, density: Floats, active: Floats | None = None, empty: Empty = "bounded") -> Sums:
        """Return the kernel sums of a density, as :meth:`ZonalSums.apply`."""
        masses = density * self.mesh.volumes
        active_masses = masses if active is None else active * self.mesh.volumes
        if self._source_factors is None:
            return self._operator.apply(masses, active_masses, empty)
        weights = masses * np.exp(self._source_factors - self._largest_factor)
        log_scale, normalizer, vectors = self._operator.apply(weights, active_masses, empty)
        return log_scale + self._largest_factor + self._target_factors, normalizer, vectors


HeadSums = ZonalSums | OppositeSums | BilinearSums


def head_sums(mesh: Mesh, beta: float, head: Head, kernel: Kernel, include_radial: bool) -> HeadSums:
    """Return the operator that sums the kernel of a head over densities on a circle or sphere.

    ``include_radial`` selects whether the sums ∫ y k ρ dy include their component along x. Raises as
    :func:`check_sums`.
    """
    d = mesh.ambient_dimension
    check_sums(d, beta, head, kernel)
    query, key = multiple(head.query), multiple(head.key)
    if query is None or key is None:
        return BilinearSums(mesh, beta, matrix_of(head.query, d), matrix_of(head.key, d), kernel)
    exponent, bound = steepness(beta, head), log_bound(beta, head, kernel)
    if kernel.zonal is not None:
        multipliers = zonal_multipliers_on(mesh, kernel, exponent)
        gradient = gradient_multipliers(d, multipliers)
        zonal_pairs = ZonalPairs(mesh, partial(kernel.log_values, beta=exponent), abs(exponent))
        return ZonalSums(mesh, multipliers, gradient, bound, include_radial, zonal_pairs)
    if exponent < STEEPEST_OPPOSITE:
        return OppositeSums(mesh, exponent, abs(exponent) - bound, include_radial)
    degrees = exponential_degree(d, exponent) + 1
    multipliers = exponential_multipliers(d, exponent, degrees)
    gradient = exponential_gradient_multipliers(d, exponent, degrees)
    pairs = ExponentialPairs(mesh, exponent, abs(exponent) - bound)
    return ZonalSums(mesh, multipliers, gradient, bound, include_radial, pairs)


def check_sums(dimension: int, beta: float, head: Head, kernel: Kernel) -> None:
    """Raise ArgumentError for a head whose kernel sums over the cells of a circle or sphere would be inaccurate.

    ``dimension`` is 2 for the circle and 3 for the sphere. A zonal kernel is refused for a query or key that is no
    multiple of the identity, and where :func:`check_zonal` raises. A kernel with a factor f is refused where the range
    of log f(Ky) over the sphere exceeds MAX_LOG_RANGE; this range follows from the singular values of K, without a
    mesh.
    """
    query, key = multiple(head.query), multiple(head.key)
    if query is not None and key is not None:
        if kernel.zonal is not None:
            check_zonal(dimension, kernel, steepness(beta, head))
    elif kernel.zonal is not None:
        raise ArgumentError(
            "kernel", kernel.name, "another kernel, or query and key that are multiples of the identity"
        )
    elif kernel.log_factor is not None:
        lengths = np.linalg.svd(matrix_of(head.key, dimension), compute_uv=False)
        range_ = float(np.ptp([kernel.log_factor(beta, lengths[k] ** 2) for k in (0, -1)]))
        if range_ > MAX_LOG_RANGE:
            expected = f"a range of log f(Ky) up to {MAX_LOG_RANGE:g} for the {kernel.name} kernel, not {range_:.4g}"
            raise ArgumentError("beta", beta, expected)
