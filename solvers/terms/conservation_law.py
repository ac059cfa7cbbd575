"""Conservation laws of one field or several: waves with speeds that depend on the state, and shocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..mesh.boundaries import Boundaries, Flux, HasBoundaryData, Outflow, Part, Value, Wall, all_boundary_parts
from ..mesh.checks import check_array, check_call, check_field, check_finite, check_mesh, takes
from ..mesh.coordinates import unit_vectors
from ..mesh.mesh import Floats, Mesh
from .limiters import Constant, PositivityLimiter, Reconstruction, check_limiter
from .term import Step
from .weno import Weno

Pointwise = Callable[[Floats, Floats], Floats]
Riemann = Callable[[Floats, Floats, Floats, Floats], tuple[Floats, Floats]]
Mirror = Callable[[Floats, Floats], Floats]
Positive = Callable[[Floats], Floats]


class BalancedSource(Protocol):
    """Source of momentum that the pressures at the faces balance in a fluid at rest.

    An example is ``ShallowWater().over(mesh, bottom)``.
    """

    def level(self, values: Floats) -> Floats:
        """Return the field (cells,) that is reconstructed at the faces, beside the state ``values`` (fields, cells)."""

    def balance(self, values: Floats, at_side: Floats, level: Floats) -> tuple[Floats, Floats]:
        """Return the states (fields, 2 faces) for the Riemann solver, and the pressures (2 faces,) on the cells.

        ``at_side`` (fields, 2 faces) and ``level`` (2 faces,) are reconstructed from the cell averages ``values``.
        """


class ConservationLaw(HasBoundaryData):
    """Conservation law −div f(u, x) of one field u of any sign, or of several.

    Shocks move at [f]/[u] (Rankine and Hugoniot), without overshoot of a scalar on a curve at cfl ≤ ½. The fluxes are
    of second order where u is smooth.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body.
    flux : callable
        Function f(u, x) → (n, d) array of tangent vectors, for u (n,) at the points x (n, d). On a curve also (n,), the
        flux along the curve towards higher cells. Of several fields u (fields, n), one flux for each: (fields, n, d) or
        (fields, n). A function of u alone is accepted.
    speed : callable
        Function (u, x) → (n,) array, an upper bound of the absolute wave speed, given with any sign. A function of u
        alone is accepted.
    limiter : {"koren", "mc", "vanleer", "none"}, optional
        Limiter of "muscl", by default "koren". "none" overshoots.
    riemann : "rusanov" or callable, default "rusanov"
        Flux through a face between the values u₋ and u₊ reconstructed at both sides. "rusanov" is
        ½ (f(u₋) + f(u₊))·n − ½ a (u₊ − u₋) with the larger speed a of both. A function
        (u₋, u₊, n (n, d), x) → (flux along n, speed (n,)) replaces it, with unit normals n: the methods ``hll``,
        ``hllc`` and ``roe`` of :class:`~solvers.Euler` and :class:`~solvers.ShallowWater`, or your own.
    reconstruction : {"muscl", "weno5", "constant"}, default "muscl"
        "muscl" is of order 2. "weno5", on equal cells of a curve, a box or a torus, is of order 5 along one axis,
        without strict bounds. "constant" is of order 1 on any mesh and keeps Sod's tube within its initial states.
    mirror : callable, optional
        Function (u (fields, n), n (n, d)) → the state across a wall, as ``Euler().mirror``. Several fields with walls
        need it. Without it the flux of a single field through a wall is 0.
    positive : callable, optional
        Function u → (k, n) array of quantities that stay ≥ 0, as ``Euler().positive``: density and pressure. By default
        that of the object whose method ``flux`` is. The quantities are concave functions of u. At the faces they are at
        least half of those in the cell, and a step after which one is < 0 is repeated with a shorter length.
    source : optional
        Source in balance with the fluxes: ``ShallowWater().over(mesh, bottom)``, the force −gh∇b of a bottom b.
    tangent : tuple of int, optional
        Rows (first, last + 1) of u that are a vector on the unit sphere. The vector is projected on the tangent plane.
    boundaries : dict, optional
        Condition of each part of the boundary: :class:`~solvers.Wall` (the default), :class:`~solvers.Outflow`,
        :class:`~solvers.Value` or :class:`~solvers.Flux`.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, ``flux``, ``speed``, ``riemann`` or ``mirror`` no function of its arguments, a boundary
        condition has another type, or an array that a function returns does not hold floating-point numbers.
    ValueError
        If a limiter, Riemann solver, reconstruction or part of the boundary is unknown or unavailable for the mesh, if
        a limiter is given without "muscl", or if arrays of the mesh contradict each other. In a step, if a function
        returns another shape. In the first step, if u has NaN, or if several fields have a wall without ``mirror``,
        or if a positive quantity is < 0.

    References
    ----------
    van Leer (1979): muscl. Jiang and Shu (1996); Borges, Carmona, Costa and Don (2008): weno5. Godunov (1959):
    constant. Rusanov (1961). Perthame and Shu (1996), Zhang and Shu (2010): positive quantities.

    Examples
    --------
    Burgers' equation has the flux u²/2 and the speed u. A shock from 1 to 0 moves at ½:

    >>> from solvers import ConservationLaw, Equation, Outflow, Value, interval, solve
    >>> mesh = interval(0.0, 1.0, 40)
    >>> ends = {"left": Value(1.0), "right": Outflow()}
    >>> law = ConservationLaw(mesh, lambda u: u**2 / 2, lambda u: u, boundaries=ends)
    >>> u = solve(Equation(mesh, [law]), mesh.centers[:, 0] < 0.25, (0, 1)).u[-1]
    >>> round(float(u @ mesh.volumes), 10)  # from 0.25 to 0.25 + ½
    0.75
    >>> bool(u.min() >= 0) and bool(u.max() <= 1 + 1e-12)
    True
    """

    only_real = True

    def __init__(
        self,
        mesh: Mesh,
        flux: Pointwise | Callable[[Floats], Floats],
        speed: Pointwise | Callable[[Floats], Floats],
        limiter: str | None = None,
        *,
        riemann: str | Riemann = "rusanov",
        reconstruction: str = "muscl",
        mirror: Mirror | None = None,
        positive: Positive | None = None,
        source: BalancedSource | None = None,
        tangent: tuple[int, int] | None = None,
        boundaries: Boundaries | None = None,
    ) -> None:
        check_mesh(mesh)
        if callable(riemann):
            check_call("riemann", riemann, "left, right, n, x")
        elif riemann != "rusanov":
            raise ValueError(f'riemann = {riemann!r}: expected "rusanov" or a function, as Euler().hllc')
        if mirror is not None:
            check_call("mirror", mirror, "u, n")
        if reconstruction not in RECONSTRUCTIONS:
            expected = ", ".join(f'"{name}"' for name in RECONSTRUCTIONS)
            raise ValueError(f"reconstruction = {reconstruction!r}: expected one of {expected}")
        if limiter is not None:
            check_limiter(limiter)
            if reconstruction != "muscl":
                expected = 'expected None, as only "muscl" has limiters'
                raise ValueError(f"limiter = {limiter!r} with reconstruction = {reconstruction!r}: {expected}")
        if positive is None:
            positive = getattr(getattr(flux, "__self__", None), "positive", None)
        else:
            check_call("positive", positive, "u")
        self.mesh, self.mirror, self.source, self.positive = mesh, mirror, source, positive
        self.flux, self.speed = _with_place_argument("flux", flux), _with_place_argument("speed", speed)
        self._riemann: Riemann = riemann if callable(riemann) else self._rusanov
        self._positivity = None if positive is None else PositivityLimiter(mesh, positive)
        self._reconstruction = RECONSTRUCTIONS[reconstruction](mesh, limiter or "koren")
        self._parts, self._seen = all_boundary_parts(mesh, boundaries, (Outflow, Value, Flux)), False
        self.is_autonomous = all(part.is_constant for part in self._parts)
        self._tangent = None if tangent is None else slice(*tangent)
        cells = mesh.backend.to_host(mesh.face_cells)
        self._walls = mesh.backend.to_device(np.flatnonzero(cells[:, 0] == cells[:, 1]))
        length = np.sqrt((mesh.face_normals**2).sum(axis=1))  # < 1 for the mean normal of an arc
        self._normals, self._areas = mesh.face_normals / length[:, None], mesh.face_areas * length
        inner = np.zeros(2 * mesh.faces)
        inner[mesh.backend.to_host(mesh.cell_sides)] = 1.0
        self._inner_areas = self._areas.repeat(2) * mesh.backend.to_device(inner)  # 0 beyond the boundary
        self._outward = mesh.face_centers
        if tangent:
            self._outward = mesh.backend.to_device(unit_vectors(mesh.backend.to_host(mesh.face_centers)))
            self._along = mesh.backend.xp.cross(self._outward, self._normals)
        self._through: Any = None
        self._pressure: Any = None
        self._at_faces: Any = None  # wave speeds times areas, and the values on both sides

    def prepare(self, time: float, values: Floats) -> Step:
        """Compute the fluxes f(u)·n through the faces for u = ``values``; return the stable time step min 2V/(Σ A a).

        Σ A a sums over the faces of a cell of volume V: A is a face's area, a the wave speed there. For two equal
        faces, 2V/(Σ A a) is the width of the cell divided by the speed.
        """
        mesh = self.mesh
        check_field("values", values, mesh)
        if not self._seen:
            check_finite("values", values)
            self._check_walls(values)
            self._check_positive(values)
            self._seen = True
        at_side = self._values_at_sides(values)
        if self.source is not None:
            level = self._reconstruct(self.source.level(values)[None])[0]
            at_side, self._pressure = self.source.balance(values, at_side, level)
        for part in self._parts:
            at_side[..., part.sides ^ 1] = self._outside_state(part, at_side[..., part.sides], time, values)
        left, right = at_side[..., 0::2], at_side[..., 1::2]
        normal, fastest = self._solve_riemann(left, right)
        self._through = self._areas * normal
        self._close(values, time)
        waves = mesh.face_areas * fastest
        self._at_faces = waves, left, right
        return self._stable_step(waves)

    def rate(self, dt: float, rate: Floats) -> None:
        """Add −div f(u), the rate of change of the state u last given to ``prepare``, to the array ``rate``."""
        check_field("rate", rate, self.mesh)
        added = self._inflow(self._through)
        if self._pressure is not None:
            self._push(added)
        self._make_tangent(added, self.mesh.centers)
        rate += added

    def numerical_diffusion(self) -> Floats:
        """Return the rate of change by numerical diffusion at the prepared state, an estimate of the spatial error.

        The flux along the normal of a face is ½ a (u₋ − u₊), with the wave speed a and the reconstructed values u₋ and
        u₊ on both sides. Walls have none.

        Returns
        -------
        (cells,) or (fields, cells) array
            Rate of change.
        """
        waves, left, right = self._at_faces
        flux = 0.5 * waves * (left - right)
        flux[..., self._walls] = 0.0
        rate = self._inflow(flux)
        self._make_tangent(rate, self.mesh.centers)
        return rate

    def _inflow(self, through: Floats) -> Floats:
        """Return the rates of change (…, cells) by the fluxes ``through`` (…, faces) all faces."""
        mesh, backend = self.mesh, self.mesh.backend
        added: Floats = backend.xp.zeros((*through.shape[:-1], mesh.cells), through.dtype)
        rows, through = added.reshape(-1, mesh.cells), through.reshape(-1, mesh.faces)
        for row, fluxes in zip(rows, through, strict=True):
            backend.launch(
                backend.divergence_of_sides, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides,
                backend.xp.ascontiguousarray(fluxes), row,
            )  # fmt: skip
        return added

    def _push(self, rate: Floats) -> None:
        """Subtract (1/V) Σ A p n from the momentum in ``rate``, for the pressures p of the source at a cell's sides."""
        mesh = self.mesh
        force = self._pressure * self._inner_areas
        force[1::2] *= -1.0  # n is the normal of the face, out of its first cell
        for k, component in enumerate(self._normals.T):
            total = mesh.backend.sums_at(mesh.side_cells, force * component.repeat(2), mesh.cells)
            rate[1 + k] -= total / mesh.volumes

    def _solve_riemann(self, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Evaluate the Riemann solver between the states ``left`` and ``right`` of each face, and check the shapes.

        Returns the flux along the normals, (faces,) or (fields, faces), and the largest wave speed (faces,).
        """
        found: Any = self._riemann(left, right, self._normals, self.mesh.face_centers)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise TypeError(f"riemann returns {type(found).__name__}: expected (flux, speed)")
        normal, fastest = found
        check_array("flux of riemann", normal, left.shape, "faces" if left.ndim == 1 else "fields")
        check_array("speed of riemann", fastest, (self.mesh.faces,), "faces")
        return normal, fastest

    def _rusanov(self, left: Floats, right: Floats, normals: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Return Rusanov's flux ½ (f(u₋) + f(u₊))·n − ½ a (u₊ − u₋) of two states u₋ and u₊, and the speed a (faces,).

        a is the larger wave speed of both states.
        """
        fastest = np.maximum(np.abs(self._speed(left)), np.abs(self._speed(right)))
        through = self._normal_flux(left) + self._normal_flux(right) - fastest * (right - left)
        return 0.5 * through, fastest

    def _values_at_sides(self, values: Floats) -> Floats:
        """Return the values reconstructed at both sides of each face: (2 faces,), or (fields, 2 faces)."""
        rows = values.reshape(-1, self.mesh.cells)
        at_side = self._reconstruct(rows)
        if self._tangent is not None and isinstance(self._reconstruction, Reconstruction):
            vector = self._tangent
            self._reconstruction.vectors_at_faces(rows[vector], self._normals, self._along, at_side[vector])
        self._make_tangent(at_side, self._outward.repeat(2, axis=0) if self._tangent else self._outward)
        at_side = at_side.reshape(*values.shape[:-1], -1)
        if self._positivity is not None:
            self._positivity.limit(values, at_side)
        return at_side

    def _reconstruct(self, rows: Floats) -> Floats:
        """Return the fields ``rows`` (fields, cells) reconstructed at both sides of each face: (fields, 2 faces).

        Sides 2f and 2f + 1 are those of the first and second cell of face f. Both sides of a boundary face get the
        inner value.
        """
        at_side: Floats = self.mesh.backend.zeros((len(rows), 2 * self.mesh.faces), rows.dtype)
        for row, sides in zip(rows, at_side, strict=True):
            self._reconstruction.values_at_faces(row, sides)
        first, second = 2 * self._walls, 2 * self._walls + 1
        at_side[:, first] = at_side[:, second] = at_side[:, first] + at_side[:, second]  # one of them is 0
        return at_side

    def _make_tangent(self, values: Floats, points: Floats) -> None:
        """Project the rows ``tangent`` of ``values``, a vector field, on the tangent planes of the unit sphere.

        The values are changed in place. The n columns of the values are at the points (n, d) of the sphere. Without
        ``tangent`` nothing changes.
        """
        if self._tangent is not None:
            vector = values[self._tangent]
            vector -= (vector * points.T).sum(axis=0) * points.T

    def _outside_state(self, part: Part, inside: Floats, time: float, values: Floats) -> Floats:
        """Return the state beyond the faces of a boundary part, as second argument of the Riemann solver.

        The state beyond is the given data, the mirrored state of a wall, or the state ``inside`` at outflow.
        """
        if isinstance(part.condition, Value):
            return part.data(time, len(values) if values.ndim == 2 else 0)
        if isinstance(part.condition, Wall) and self.mirror is not None:
            mirrored = self.mirror(inside, part.normals)
            check_array("mirror", mirrored, inside.shape, "faces" if inside.ndim == 1 else "fields")
            return mirrored
        return inside

    def _close(self, values: Floats, time: float) -> None:
        """Overwrite the fluxes through those boundary faces where the conditions determine the flux.

        The flux is 0 through a wall without ``mirror``, and the given data for the condition `Flux`.
        """
        for part in self._parts:
            if isinstance(part.condition, Flux):
                inward = self.mesh.backend.xp.where(part.sides & 1, 1.0, -1.0)  # against the face's normal, or along it
                data = part.data(time, len(values) if values.ndim == 2 else 0)
                self._through[..., part.faces] = inward * data * part.areas
            elif isinstance(part.condition, Wall) and self.mirror is None:
                self._through[..., part.faces] = 0.0

    def _check_walls(self, values: Floats) -> None:
        """Raise ValueError for walls of a system whose mirror state is not given."""
        if values.ndim == 2 and self.mirror is None:
            for part in self._parts:
                if isinstance(part.condition, Wall):
                    raise ValueError(
                        f"boundaries[{part.tag!r}] is a wall of {len(values)} fields: expected the argument mirror"
                    )

    def _check_positive(self, values: Floats) -> None:
        """Raise an error unless ``positive`` returns an array (k, cells) of numbers ≥ 0 for the first state."""
        if self.positive is None:
            return
        found = self.positive(values)
        rows = len(found) if getattr(found, "ndim", 0) == 2 else 1
        check_array("positive", found, (rows, self.mesh.cells))
        low = self.mesh.backend.to_host(found).min(axis=1)
        if (low < 0).any():
            raise ValueError(f"u0: positive quantity {int(low.argmin())} of least value {low.min():.6g}: expected >= 0")

    def _normal_flux(self, values: Floats) -> Floats:
        """Return f·n of the law's flux f for ``values`` at the face centers, (faces,) or (fields, faces)."""
        mesh = self.mesh
        flux = self.flux(values, mesh.face_centers)
        if mesh.dimension == 1 and getattr(flux, "ndim", 0) == values.ndim:
            check_array("flux", flux, values.shape, "faces")
            return flux
        check_array("flux", flux, (*values.shape, mesh.centers.shape[1]), "faces")
        normal: Floats = (flux * self._normals).sum(axis=-1)
        return normal

    def _speed(self, values: Floats) -> Floats:
        """Return the bound (faces,) of the wave speed for ``values`` at the face centers."""
        speed = self.speed(values, self.mesh.face_centers)
        check_array("speed", speed, (self.mesh.faces,), "faces")
        return speed

    def _stable_step(self, waves: Floats) -> Step:
        """Return the stable time step min 2V/(Σ A a), over cells of volume V; ∞ where all speeds are 0.

        ``waves`` are A a (faces,), face area times wave speed; the sum is over the faces of a cell.
        """
        mesh, backend = self.mesh, self.mesh.backend
        total = backend.sums_at(mesh.side_cells, waves.repeat(2), mesh.cells)
        with np.errstate(divide="ignore"):
            step: Step = np.divide(2.0, (total / mesh.volumes).max())
            return step


RECONSTRUCTIONS: dict[str, Callable[[Mesh, str], Any]] = {
    "muscl": Reconstruction,
    "weno5": lambda mesh, limiter: Weno(mesh),
    "constant": lambda mesh, limiter: Constant(mesh),
}


@dataclass(frozen=True)
class _FieldFunction:
    """Adapter that calls a function of u alone with the two arguments u and x."""

    function: Callable[[Floats], Floats]

    def __call__(self, u: Floats, x: Floats) -> Floats:
        found = self.function(u)
        return found if hasattr(found, "shape") else np.asarray(found)


def _with_place_argument(name: str, function: Any) -> Pointwise:
    """Return a flux or speed as a function of (u, x): ``function`` itself, or an adapter if it takes u alone.

    ``name`` is for error messages.
    """
    if callable(function) and takes(function, 1) and not takes(function, 2):
        return _FieldFunction(function)
    check_call(name, function, "u, x")
    found: Pointwise = function
    return found
