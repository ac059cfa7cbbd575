"""Advection div(ρ X) by a prescribed or density-dependent velocity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from functools import reduce
from types import FunctionType
from typing import Any

import numpy as np

from ..backends import formulas
from ..backends.sizes import MAX_SIDES
from ..mesh.boundaries import Boundaries, Outflow, Part, Value, boundary_parts
from ..mesh.checks import (
    check_array,
    check_call,
    check_field,
    check_finite,
    check_mesh,
    check_unchanged,
    ignores_time,
    warn_of_pointwise,
)
from ..mesh.mesh import Floats, Mesh
from .face_fluxes import FaceFluxes, StreamFunction
from .limiters import Reconstruction, check_tangent
from .mass import summary_of
from .ring_geometry import is_of_rings
from .ring_transport import RingTransport
from .term import Step

Velocity = Callable[[float, Floats], Floats]
DONOR_CELL_BLEND = "donor_cell_blend"


class Advection:
    """Advection −div(u X[u]) of a field u of any sign, or of a density u ≥ 0, by a velocity X.

    X may depend on u as a whole, as a convolution does. Where X at a point depends on u at that point, waves move at
    d(uX)/du instead of X: use :class:`~solvers.ConservationLaw`.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body, closed or with walls.
    velocity : callable, StreamFunction or FaceFluxes
        Function (time, u) → (cells, d) array of tangent vectors at the cell centers. For fields (fields, cells) the
        function may also return (fields, cells, d), one velocity per field. Or a :class:`~solvers.StreamFunction`,
        divergence-free to rounding, or :class:`~solvers.FaceFluxes`.
    resolved : tuple of float, default (0.05, 0.15)
        Relative smoothness indicators (low, high) of "donor_cell_blend", 0 ≤ low ≤ high < ∞. A cell below low is
        resolved, a cell above high is not. (0, 0) is the pure donor-cell scheme.
    limiter : {"koren", "mc", "vanleer", "none", "donor_cell_blend"}, optional
        Reconstruction of u at the faces, see Notes. The default is "donor_cell_blend" for a density on an interval, a
        circle or the closed unit sphere, if the velocity is given at cell centers and the boundary has only walls. Else
        the default is "koren".
    nonnegative : bool, default False
        Whether u is a density. Then no step removes more mass from a cell than the cell holds.
    boundaries : dict, optional
        Condition of each part of the boundary, such as ``{"left": Value(1.0), "right": Outflow()}``. Parts without a
        condition are walls. With :class:`~solvers.Outflow` mass leaves, and inflow has the value u of the cell. With
        :class:`~solvers.Value` g is the value of the inflow. "donor_cell_blend" has walls only.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, the velocity or a boundary condition has another type, or arrays that the velocity
        returns do not hold floating-point numbers.
    ValueError
        If the limiter is unknown or unavailable for the mesh, the field, the velocity or the boundaries, if a part of
        the boundary is unknown, if ``resolved`` is out of range, or if arrays of the mesh contradict each other. In a
        step, if the velocity has another shape. In the first step, if u has NaN, or if a velocity that is a plain
        function is not tangent or changes u.

    Warns
    -----
    RuntimeWarning
        In the first step, if the velocity is a plain function and in a cell depends mostly on u in that cell.
    DeprecationWarning
        If ``limiter="lump"``, the former name of "donor_cell_blend".

    Notes
    -----
    "koren", "mc", "vanleer" and "none" are second-order upwind fluxes through the faces of any mesh. With a limiter, a
    step makes no new extremum where div X = 0, and at cfl ≤ ½ keeps a density ≥ 0. "none" has no limiter and overshoots
    next to jumps.

    "donor_cell_blend" blends two fluxes in each cell. An unresolved cell (a cluster that the mesh does not resolve)
    moves with the velocity at its own center. Its mass is split over the neighbors such that the center of mass moves
    at exactly that velocity. Face velocities would all point inward and pin the cluster to its cell. Up to half of the
    mass sent ahead is replaced by mass from behind. This exchange keeps the first moment and removes most of the upwind
    diffusion (an addition of this package). A resolved density moves by second-order upwind fluxes. The weight of the
    blend is the distance of the neighbors from the linear reconstruction of the cell.

    With "donor_cell_blend" on :func:`~solvers.sphere`, a velocity that is an object may have a method
    ``along_rings(time, u)``, which returns its components along east and north, (2, cells), or None. These components
    avoid vectors in R³.

    References
    ----------
    Koren (1993); van Leer (1974, 1977): limiters.

    Carrillo, James, Lagoutière and Vauchelet (2016); Delarue, Lagoutière and Vauchelet (2017): donor-cell scheme.

    Examples
    --------
    One turn of a circle, at one radian per unit of time:

    >>> import numpy as np
    >>> from solvers import Advection, Equation, circle, solve
    >>> mesh = circle(64)
    >>> x, y = mesh.centers.T
    >>> equation = Equation(mesh, [Advection(mesh, lambda t, u: np.stack([-y, x], axis=1))])
    >>> turned = solve(equation, 2 + x, (0, 2 * np.pi), times=[2 * np.pi]).u[0]
    >>> bool(np.abs(turned - (2 + x)).max() < 0.02)
    True
    >>> round(float(turned @ mesh.volumes / np.pi), 10)  # the mass is 4π
    4.0
    """

    resolved = (0.05, 0.15)
    only_real = True

    def __init__(
        self,
        mesh: Mesh,
        velocity: Velocity | FaceFluxes | StreamFunction,
        resolved: tuple[float, float] = resolved,
        *,
        limiter: str | None = None,
        nonnegative: bool = False,
        boundaries: Boundaries | None = None,
    ) -> None:
        check_mesh(mesh)
        self._through_faces = velocity.on(mesh) if isinstance(velocity, (FaceFluxes, StreamFunction)) else None
        if self._through_faces is None:
            check_call("velocity", velocity, "t, u")
        self._parts = boundary_parts(mesh, boundaries, (Outflow, Value))
        self.is_autonomous = ignores_time(velocity) and all(part.is_constant for part in self._parts)
        excluded_by = (
            "fluxes through faces" if self._through_faces else "boundaries other than walls" if self._parts else ""
        )
        if limiter == "lump":
            warnings.warn('limiter = "lump" is called "donor_cell_blend" now', DeprecationWarning, stacklevel=2)
            limiter = DONOR_CELL_BLEND
        if limiter is None:
            uses_cells = nonnegative and _supports_unresolved_cells(mesh) and not excluded_by
            limiter = DONOR_CELL_BLEND if uses_cells else "koren"
        if limiter == DONOR_CELL_BLEND and excluded_by:
            raise ValueError(f'limiter = "{limiter}" with {excluded_by}: expected "koren", "mc", "vanleer" or "none"')
        _check_unresolved(mesh, limiter, nonnegative, resolved)
        self.mesh, self.velocity, self.low_high, self.nonnegative = mesh, velocity, resolved, nonnegative
        self._seen = False
        self._faces = None if limiter == DONOR_CELL_BLEND else Reconstruction(mesh, limiter)
        self._fields: list[Advection] = []
        by_rings = self._faces is None and mesh.dimension == 2 and is_of_rings(mesh)
        self._rings = RingTransport(mesh) if by_rings else None
        self._sent: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the configuration of the term for a copy, without work arrays: the copy allocates its own."""
        return {name: value for name, value in vars(self).items() if name not in _WORK} | {
            "_sent": None, "_fields": [], "_seen": False,
        }  # fmt: skip

    def prepare(self, time: float, values: Floats) -> Step:
        """Compute the fluxes of u = ``values`` out of each cell through its faces; return the largest stable step."""
        mesh = self.mesh
        check_field("values", values, mesh)
        before = values.copy() if isinstance(self.velocity, FunctionType) and not self._seen else values
        if self._through_faces is not None:
            velocity = self._through_faces(time, values)
            check_array("face fluxes", velocity, (mesh.faces,), "faces")
        else:
            velocity = self._velocity(time, values)
        if not self._seen:
            self._check_first(time, values, before, velocity)
        if values.ndim == 1:
            return self._prepare_field(time, values, velocity)
        steps = [
            field._prepare_field(time, row, velocity[k] if velocity.ndim == 3 else velocity, (k, len(values)))
            for k, (field, row) in enumerate(zip(self._copies_by_field(len(values)), values, strict=True))
        ]
        return reduce(np.minimum, steps)

    def prepare_with(self, velocity: Floats, values: Floats) -> Step:
        """Compute the fluxes of one field by a given velocity; return the largest stable time step.

        Parameters
        ----------
        velocity : (cells, d) array
            Tangent vectors at the cell centers.
        values : (cells,) array
            Field u.

        Returns
        -------
        float
            Largest stable time step.
        """
        self._check_velocity(velocity, values)
        return self._prepare_field(0.0, values, velocity)

    def _check_first(self, time: float, values: Floats, before: Floats, velocity: Floats) -> None:
        """Raise an error at the first call unless ``values`` are finite and the velocity is admissible.

        A velocity that is a plain function has to be tangent and to leave the values as they were ``before`` its call.
        A warning follows if it depends on u pointwise.
        """
        check_finite("values", before)
        check_unchanged("velocity", values, before)
        if isinstance(self.velocity, FunctionType):
            check_tangent(self.mesh, self.mesh.backend.to_host(velocity))
        if values.ndim == 1 and self._through_faces is None:
            warn_of_pointwise(self.velocity, time, values)
        self._seen = True

    def _velocity(self, time: float, values: Floats) -> Floats:
        """Return the velocity X(time, u) at the cell centers: (cells, d), or (fields, cells, d) for several fields.

        On rings of latitude, X is its components east and north (2, cells) if its method ``along_rings`` returns these.
        """
        velocity, along_rings = self.velocity, getattr(self.velocity, "along_rings", None)
        assert callable(velocity)
        if self._rings is not None and along_rings is not None and values.ndim == 1:
            components: Floats | None = along_rings(time, values)
            if components is not None:
                check_array("velocity", components, (2, self.mesh.cells))
                return components
        found: Floats = velocity(time, values)
        self._check_velocity(found, values)
        return found

    def _check_velocity(self, velocity: Floats, values: Floats) -> None:
        """Raise an error unless a velocity is an array (cells, d), or (fields, cells, d) for several fields."""
        shape = (self.mesh.cells, self.mesh.ambient_dimension)
        if values.ndim == 2 and getattr(velocity, "ndim", 0) == 3:
            check_array("velocity", velocity, (len(values), *shape), "fields")
        else:
            check_array("velocity", velocity, shape)

    def _copies_by_field(self, count: int) -> list[Advection]:
        """Return ``count`` copies of the term, one for each field, with work arrays of their own."""
        while len(self._fields) < count:
            self._fields.append(copy(self))
        return self._fields[:count]

    def _prepare_field(self, time: float, values: Floats, velocity: Floats, field: tuple[int, int] = (0, 0)) -> Step:
        """Compute the outgoing fluxes of one field for a given velocity; return the largest stable time step.

        ``field`` = (k, n) means field k of n, for the boundary data; (0, 0) is the only field.
        """
        mesh, backend, number = self.mesh, self.mesh.backend, self.mesh.volumes.dtype
        if self._sent is None:
            self._sent = backend.zeros(2 * mesh.faces if self._rings is None else (2, mesh.faces), number)
            self._outflow = backend.zeros(mesh.cells, number)  # smoothness indicators, then rates of outflow
        self._occupied = occupied = summary_of(mesh, values).occupied
        if self._faces is not None:
            fastest = self._outgoing_flux_through_faces(self._faces, values, velocity, time, field)
            step: Step = backend.evaluate(formulas.step_of_rate, fastest)
            return step
        if self._rings is not None:
            shares = self._rings.outgoing_flux(values, velocity, self.low_high, occupied, self._sent, self._outflow)
        else:
            _OUTGOING_FLUXES[mesh.dimension](self, values, velocity, occupied)
            shares = self._find_outflow_rates(values)
        step = backend.step_of_shares(shares)
        return step

    def _find_outflow_rates(self, values: Floats) -> list[Any]:
        """Compute the fraction of mass that each cell loses per time by outgoing fluxes.

        The result is a list of the largest fraction in the cells of each worker (thread). Cells that are not occupied
        do not count for it.
        """
        mesh, backend = self.mesh, self.mesh.backend
        return backend.launch(
            backend.outflow_rates, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, values,
            self._occupied, self._sent, self._outflow,
        )  # fmt: skip

    def _outgoing_flux_through_faces(
        self, faces: Reconstruction, values: Floats, velocity: Floats, time: float, field: tuple[int, int]
    ) -> Step:
        """Compute the upwind fluxes out of each cell by reconstruction at faces; return the largest outflow rate.

        The outflow rate of a cell is Σ (A X·n)⁺/V: A face area, X velocity, V cell volume. The rate does not depend on
        u. Boundary parts add their largest rates to the result, an upper bound.
        """
        mesh, backend = self.mesh, self.mesh.backend
        flux, at_side = (backend.empty(2 * mesh.faces, values.dtype) for _ in range(2))
        self._at_faces = flux, at_side
        if self._through_faces is not None:
            flux[0::2], flux[1::2] = velocity, -velocity
        else:
            faces.flux_at_faces(velocity, flux)
        faces.values_at_faces(values, at_side)
        shares = backend.launch(
            backend.outgoing_flux_through_faces, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides,
            mesh.side_cells, values, flux, at_side, self.nonnegative, self._sent,
        )  # fmt: skip
        fastest: Step = backend.largest_share(shares)
        for part in self._parts:
            fastest = fastest + self._pass_boundary(part, values, flux, at_side, time, field)
        if self.nonnegative:
            self._find_outflow_rates(values)
        return fastest

    def _pass_boundary(
        self, part: Part, values: Floats, flux: Floats, at_side: Floats, time: float, field: tuple[int, int]
    ) -> Step:
        """Set the fluxes through a boundary part; return the largest outflow rate of its faces.

        Outward, u has the reconstructed value at the face; inward, the boundary data, or the cell's value without data.
        The outflow rate of a face is (A X·n)⁺/V: A face area, X velocity, V cell volume.
        """
        outward, inward = np.maximum(flux[part.sides], 0.0), np.maximum(-flux[part.sides], 0.0)
        outside = values[part.cells]
        if isinstance(part.condition, Value):
            data = part.data(time, field[1])
            outside = data[field[0]] if data.ndim == 2 else data
        self._sent[part.sides] = outward * at_side[part.sides]
        self._sent[part.sides ^ 1] = inward * outside
        fastest: Step = (outward / self.mesh.volumes[part.cells]).max()
        return fastest

    def rate(self, dt: float, rate: Floats) -> None:
        """Add −div(u X), the rate of change of the state u last given to ``prepare``, to the array ``rate``.

        The fluxes of a density are limited such that the density stays ≥ 0 in an explicit Euler step of dt.
        """
        mesh, backend = self.mesh, self.mesh.backend
        check_field("rate", rate, mesh)
        if rate.ndim == 2:
            for field, row in zip(self._copies_by_field(len(rate)), rate, strict=True):
                field.rate(dt, row)
            return
        if self._rings is not None:
            self._rings.add_divergence(self._sent, self._outflow, dt, rate)
            return
        backend.launch(
            backend.divergence, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, mesh.side_cells, self._sent,
            self._outflow, dt, rate,
        )  # fmt: skip

    def numerical_diffusion(self) -> Floats:
        """Return the rate of change by numerical diffusion at the prepared state, an estimate of the spatial error.

        The flux along the normal of a face is ``½ |X·n| (u₋ − u₊)``, with the values u₋ and u₊ on both sides of it.
        Walls have none, and neither has "donor_cell_blend".

        Returns
        -------
        (cells,) or (fields, cells) array
            Rate of change.
        """
        mesh, backend = self.mesh, self.mesh.backend
        if self._fields:
            rates: Floats = backend.xp.stack([field.numerical_diffusion() for field in self._fields])
            return rates
        rate: Floats = backend.zeros(mesh.cells, mesh.volumes.dtype)
        if self._faces is not None:
            flux, at_side = self._at_faces
            through = 0.25 * np.abs(flux[0::2] - flux[1::2]) * (at_side[0::2] - at_side[1::2])
            through[mesh.face_cells[:, 0] == mesh.face_cells[:, 1]] = 0.0
            backend.launch(
                backend.divergence_of_sides, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, through, rate,
            )  # fmt: skip
        return rate

    def fastest_of_copies(self, values: Floats, copies: int) -> Floats:
        """Return the largest outflow rate of each copy in a stack of meshes at the prepared state.

        Parameters
        ----------
        values : (copies · cells,) array
            Prepared densities, one copy after the other.
        copies : int
            Number of copies.

        Returns
        -------
        (copies,) array
            1 / the largest stable time step.
        """
        where = self.mesh.backend.xp.where
        outflow = where(values <= self._occupied[0], 0.0, self._outflow).reshape(copies, -1)
        return np.asarray(outflow.max(axis=1))

    def scale_copies(self, factors: Floats) -> None:
        """Multiply the prepared fluxes of each copy in a stack of meshes by a number, as a scaled velocity would.

        Parameters
        ----------
        factors : (copies,) array
            Numbers ≥ 0.
        """
        for array in (self._sent, self._outflow):
            array.reshape(len(factors), -1)[...] *= factors[:, None]

    def _outgoing_flux_on_curve(self, density: Floats, velocity: Floats, occupied: Floats) -> None:
        """Store in ``_sent`` (2 faces,) the flux of "donor_cell_blend" of each cell of a curve through each side."""
        mesh, backend = self.mesh, self.mesh.backend
        neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        flow, smooth = backend.empty(mesh.cells, density.dtype), self._outflow
        backend.launch(
            backend.reconstruct_on_curve, mesh.cells, mesh.centers, mesh.volumes, *neighborhood, density, velocity,
            *self.low_high, occupied, flow, smooth,
        )  # fmt: skip
        backend.launch(
            backend.outgoing_flux_on_curve, mesh.cells, mesh.volumes, *neighborhood, density, flow, smooth, self._sent,
        )  # fmt: skip

    def _outgoing_flux_on_surface(self, density: Floats, velocity: Floats, occupied: Floats) -> None:
        """Store in ``_sent`` (2 faces,) the flux of "donor_cell_blend" of each cell of a surface through each side."""
        mesh, backend = self.mesh, self.mesh.backend
        neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        work = len(mesh.cell_sides)
        flow, smooth = backend.empty(2 * mesh.faces, density.dtype), self._outflow
        backend.launch(
            backend.reconstruct_on_surface, work, mesh.centers, mesh.face_centers, mesh.face_normals, mesh.face_areas,
            mesh.face_curvatures, *neighborhood, density, velocity, *self.low_high, occupied, flow, smooth,
            self._sent,
        )  # fmt: skip
        backend.launch(
            backend.outgoing_flux_on_surface, work, mesh.centers, mesh.volumes, mesh.face_centers, *neighborhood,
            density, velocity, flow, smooth, occupied, self._sent,
        )  # fmt: skip


def _supports_unresolved_cells(mesh: Mesh) -> bool:
    """Return whether kernels can move clusters within a cell of a mesh: on a curve or the unit sphere in R³."""
    if mesh.dimension == 1 or mesh.ambient_dimension != 3:
        return mesh.dimension == 1 and not mesh.periods and _has_lengths(mesh)
    if is_of_rings(mesh):
        return True
    first, second = mesh.backend.to_host(mesh.face_cells).T
    if np.diff(mesh.backend.to_host(mesh.cell_start)).max() > MAX_SIDES or (first == second).any():
        return False
    radii = np.linalg.norm(mesh.backend.to_host(mesh.centers), axis=1)
    rounding = 8 * np.finfo(radii.dtype).eps
    return mesh.dimension == 2 and bool(np.abs(radii - 1.0).max() < rounding)


def _has_lengths(mesh: Mesh) -> bool:
    """Return whether all face areas of a mesh of a curve are 1, so that the volumes of the cells are lengths."""
    return bool((mesh.backend.to_host(mesh.face_areas) == 1.0).all())


def _check_unresolved(mesh: Mesh, limiter: str, nonnegative: bool, resolved: tuple[float, float]) -> None:
    """Raise ValueError for invalid bounds ``resolved``, or where the blended limiter does not apply."""
    low, high = resolved
    if not 0 <= low <= high < np.inf:
        raise ValueError(f'resolved = {resolved}: expected 0 <= low <= high < inf; for fluxes only, limiter="none"')
    if limiter != DONOR_CELL_BLEND:
        return
    if not _supports_unresolved_cells(mesh):
        expected = f"expected a curve, or the closed unit sphere in cells of at most {MAX_SIDES} sides"
        raise ValueError(f'limiter = "{limiter}" on a {mesh.manifold}: {expected}; use "koren"')
    if not nonnegative:
        raise ValueError(
            f'limiter = "{limiter}": expected nonnegative=True, as only a density >= 0 has unresolved cells;'
            ' otherwise use "koren"'
        )


_WORK = {"_sent", "_outflow", "_occupied", "_at_faces"}
_OUTGOING_FLUXES = {1: Advection._outgoing_flux_on_curve, 2: Advection._outgoing_flux_on_surface}
