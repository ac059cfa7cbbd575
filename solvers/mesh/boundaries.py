"""Conditions on the boundary of a mesh, part by part: ``boundaries={"left": Value(1.0), "right": Outflow()}``.

A part without a condition is a wall. Data g are a number, an array over the part's faces, or a function g(t, x) of
the time and the face centers (faces, d). For several fields, data may have one row per field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..backends import backend_for
from .checks import check_call, check_number, check_reals, ignores_time
from .mesh import Floats, Integers, Mesh

REAL, COMPLEX = "fiub", "fiubc"  # kinds of numbers in NumPy's letters
Data = complex | Floats | Callable[[float, Floats], Any]


@dataclass(frozen=True)
class Wall:
    """Impermeable part of the boundary: the flux is 0.

    Parts without a condition are walls. A system of conservation laws has the flux between a state and its mirror image
    instead, see ``mirror`` of :class:`~solvers.ConservationLaw`.

    Examples
    --------
    >>> from solvers import Diffusion, Equation, Wall, interval, solve
    >>> mesh = interval(0.0, 1.0, 8)
    >>> heat = Diffusion(mesh, 1.0, boundaries={"left": Wall(), "right": Wall()})
    >>> u0 = mesh.centers[:, 0]
    >>> u = solve(Equation(mesh, [heat]), u0, (0.0, 1.0), times=[1.0]).u[-1]
    >>> round(float(u @ mesh.volumes), 6)  # no mass leaves
    0.5
    """


@dataclass(frozen=True)
class Periodic:
    """Part of the boundary that is joined to the opposite part.

    The mesh must be made with ``periodic=True``. Parts of a periodic mesh accept no other condition, and need none.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, Periodic, interval, solve
    >>> mesh = interval(0.0, 2 * np.pi, 32, periodic=True)
    >>> heat = Diffusion(mesh, 1.0, boundaries={"left": Periodic(), "right": Periodic()})
    >>> wave = np.sin(mesh.centers[:, 0])
    >>> u = solve(Equation(mesh, [heat]), wave, (0.0, 1.0), times=[1.0]).u[-1]
    >>> bool(np.abs(u - np.exp(-1.0) * wave).max() < 1e-3)
    True
    """


@dataclass(frozen=True)
class Outflow:
    """Zero-gradient condition ∂ₙu = 0: the field is extended constantly outside.

    Advected mass leaves. Where the velocity points inward, mass enters with the value of u in the adjacent cell.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Advection, Equation, Outflow, interval, solve
    >>> mesh = interval(0.0, 1.0, 16)
    >>> wind = Advection(mesh, lambda t, u: np.ones((16, 1)), boundaries={"right": Outflow()})
    >>> u = solve(Equation(mesh, [wind]), np.ones(16), (0.0, 2.0), times=[2.0]).u[-1]
    >>> bool(np.abs(u).max() < 1e-3)  # all mass has left
    True
    """


@dataclass(frozen=True, eq=False)
class Value:
    """Dirichlet condition u = g.

    For advection and conservation laws u = g outside the mesh; g enters where the velocity points inward.

    Parameters
    ----------
    g : float, complex, array or function (t, x) -> float, complex or array
        Value of u: a number, an array (n,) over the faces of the part, or a function of the time and the face
        centers (n, d). Where cell centers lie on the boundary, as on triangles, diffusion evaluates g at these. For
        several fields an array may also be (fields,) or (fields, n). Complex numbers make the fields of a
        :class:`~solvers.Diffusion` complex; with a function of complex numbers u0 must be complex.

    Raises
    ------
    TypeError
        If g is neither a number, an array of numbers, nor a function of two arguments. Terms also raise it for
        functions that return no numbers, and for complex data where they need real numbers.
    ValueError
        If g holds masked numbers. Terms also raise it for data
        of another shape, and for data that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, Value, interval, solve
    >>> mesh = interval(0.0, 1.0, 8)
    >>> heat = Diffusion(mesh, 1.0, boundaries={"left": Value(0.0), "right": Value(lambda t, x: 2.0)})
    >>> u = solve(Equation(mesh, [heat]), np.zeros(8), (0.0, 10.0), times=[10.0]).u[-1]
    >>> bool(np.abs(u - 2.0 * mesh.centers[:, 0]).max() < 1e-3)  # the steady state is linear
    True
    """

    g: Data

    def __post_init__(self) -> None:
        _check_data(self)


@dataclass(frozen=True, eq=False)
class Flux:
    """Inward flux g of a term per area and time: D ∂ₙu = g for diffusion.

    Parameters
    ----------
    g : float, array or function (t, x) -> float or array
        Flux into the mesh, in a form that :class:`~solvers.Value` takes.

    Raises
    ------
    TypeError, ValueError
        If g has no form that :class:`~solvers.Value` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, Flux, interval, solve
    >>> mesh = interval(0.0, 1.0, 8)
    >>> heat = Diffusion(mesh, 1.0, boundaries={"left": Flux(3.0)})
    >>> u = solve(Equation(mesh, [heat]), np.zeros(8), (0.0, 2.0), times=[2.0]).u[-1]
    >>> round(float(u @ mesh.volumes), 6)  # 3 per unit of time
    6.0
    """

    g: Data

    def __post_init__(self) -> None:
        _check_data(self)


@dataclass(frozen=True, eq=False)
class Robin:
    """Robin condition a u + b ∂ₙu = g with the outward normal n, for :class:`~solvers.Diffusion`.

    Parameters
    ----------
    a : float or complex
        Finite coefficient ≥ 0, or a complex one of a real part ≥ 0 for complex fields. A product of a and the D of
        :class:`~solvers.Diffusion` must have a real part ≥ 0, so that fields do not grow.
    b : float
        Finite coefficient ≥ 0, not 0 if a is.
    g : float, array or function (t, x) -> float or array
        Right-hand side, in a form that :class:`~solvers.Value` takes.

    Raises
    ------
    TypeError
        If a or b is no number, or g neither a number, an array of numbers, nor a function of two arguments. Terms also
        raise it for functions that return no numbers.
    ValueError
        If g holds masked numbers, or unless a and b are finite, ≥ 0 and not both 0. Terms also raise it for data
        of another shape, and for data that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, Robin, Value, interval, solve
    >>> mesh = interval(0.0, 1.0, 8)
    >>> heat = Diffusion(mesh, 1.0, boundaries={"left": Value(1.0), "right": Robin(1.0, 1.0, 0.0)})
    >>> u = solve(Equation(mesh, [heat]), np.zeros(8), (0.0, 10.0), times=[10.0]).u[-1]
    >>> bool(np.abs(u - (1.0 - mesh.centers[:, 0] / 2)).max() < 1e-3)  # u + u' = 0 at x = 1
    True
    """

    a: complex
    b: float
    g: Data

    def __post_init__(self) -> None:
        is_complex = isinstance(self.a, complex | np.complexfloating) and np.isfinite(self.a)
        check_number("a of Robin", self.a.real if is_complex else self.a)
        check_number("b of Robin", self.b)
        if self.a == self.b == 0:
            raise ValueError(f"Robin a, b = {self.a}, {self.b}: expected finite numbers >= 0, not both 0")
        _check_data(self)


def _check_data(condition: Value | Flux | Robin) -> None:
    """Raise TypeError if the data g of a boundary condition are no number, no array, and no function of (t, x)."""
    g, name = condition.g, f"g of {type(condition).__name__}"
    if callable(g):
        check_call(name, g, "t, x")
    else:
        check_reals(name, g, "a number, or a function of (t, x)", COMPLEX)


Condition = Wall | Periodic | Outflow | Value | Flux | Robin
Boundaries = Mapping[str, Condition]


@dataclass(frozen=True, eq=False)
class Part:
    """Faces of a mesh's boundary that share one tag and one condition; arrays on the mesh's device.

    faces, cells   (n,) indices of the faces and of the adjacent cells
    sides          (n,) side of each face that belongs to the adjacent cell
    points         (n, d) face centers, on the host
    normals        (n, d) outward unit normals
    areas          (n,) areas of the faces
    distances      (n,) distance from the cell center to the face along the normal
    kinds          kinds of numbers that data may have, REAL or COMPLEX
    """

    tag: str
    condition: Condition
    faces: Integers
    cells: Integers
    sides: Integers
    points: Floats
    normals: Floats
    areas: Floats
    distances: Floats
    kinds: str = REAL

    @property
    def is_complex(self) -> bool:
        """Return whether the condition has complex numbers, as data or as a coefficient; False for functions."""
        return any(np.iscomplexobj(getattr(self.condition, name, 0.0)) for name in ("a", "g"))

    @cached_property
    def is_constant(self) -> bool:
        """Return whether the condition has no data that depend on the time."""
        g = getattr(self.condition, "g", None)
        return not callable(g) or ignores_time(g)

    def data(self, time: float, fields: int = 0) -> Floats:
        """Return the data g of the boundary condition on the n faces at a time: (n,), or (fields, n) for fields > 0.

        Raises TypeError for data of other ``kinds``, ValueError for another shape or data that are not finite.
        """
        g = self.condition.g  # type: ignore[union-attr]
        found = g(time, self.points) if callable(g) else g
        self.check_numbers(found)
        given = np.asarray(found, dtype=np.complex128 if np.iscomplexobj(found) else self.areas.dtype)
        faces = len(self.areas)
        if fields and given.shape == (fields,):
            given = given[:, None]  # one number per field
        shape = (fields, faces) if fields else (faces,)
        if given.shape not in ((), (faces,), shape, (fields, 1)):
            expected = f"a number, ({faces},)" + (f", ({fields},) or ({fields}, {faces})" if fields else "")
            raise ValueError(f"boundaries[{self.tag!r}] of shape {given.shape}: expected {expected}")
        if not np.isfinite(given).all():
            raise ValueError(f"boundaries[{self.tag!r}] at time {time:.6g}: expected finite numbers")
        return backend_for(self.areas).to_device(np.broadcast_to(given, shape).copy())

    def check_numbers(self, data: Any) -> None:
        """Raise TypeError for data that are no numbers of the accepted kinds."""
        check_reals(f"boundaries[{self.tag!r}]", data, "real numbers" if self.kinds == REAL else "numbers", self.kinds)


def all_boundary_parts(mesh: Mesh, boundaries: Boundaries | None, allowed: tuple[type, ...]) -> tuple[Part, ...]:
    """Return all parts of a mesh's boundary: those of :func:`boundary_parts`, then the walls.

    Parts without a condition are walls. Periodic parts have no faces and are omitted.
    """
    parts = boundary_parts(mesh, boundaries, allowed)
    open_ = {part.tag for part in parts}
    walls = [tag for tag, faces in mesh.boundary_faces.items() if len(faces) and tag not in open_]
    return parts + tuple(_part(mesh, tag, Wall(), mesh.boundary_faces[tag]) for tag in walls)


def boundary_parts(
    mesh: Mesh, boundaries: Boundaries | None, allowed: tuple[type, ...], kinds: str = REAL
) -> tuple[Part, ...]:
    """Return those parts of a mesh's boundary whose condition is neither a wall nor periodic.

    boundaries   tag of a part → its condition
    allowed      accepted types of conditions, besides walls and periodic ones
    kinds        accepted kinds of numbers as data, REAL or COMPLEX
    Raises ValueError for an unknown part, TypeError for a condition that is not allowed.
    """
    parts = []
    if boundaries is not None and not isinstance(boundaries, Mapping):
        raise TypeError(f"boundaries = {boundaries!r}: expected a dict, as {{'left': Value(0.0)}}")
    for tag, condition in (boundaries or {}).items():
        if tag not in mesh.boundary_faces:
            known = ", ".join(map(repr, mesh.boundary_faces)) or "none, the mesh is closed"
            raise ValueError(f"boundaries[{tag!r}]: expected a part of the boundary: {known}")
        if not isinstance(condition, (*allowed, Wall, Periodic)):
            names = ", ".join(each.__name__ for each in (Wall, Periodic, *allowed))
            raise TypeError(f"boundaries[{tag!r}] = {condition!r}: expected one of {names}")
        faces = mesh.boundary_faces[tag]
        if isinstance(condition, Periodic) != (len(faces) == 0):
            expected = (
                "Periodic(), as the mesh is periodic there"
                if len(faces) == 0
                else "another condition; make the mesh with periodic=True"
            )
            raise ValueError(f"boundaries[{tag!r}] = {condition!r}: expected {expected}")
        if not isinstance(condition, (Wall, Periodic)):
            parts.append(_part(mesh, tag, condition, faces, kinds))
            if isinstance(condition, (Value, Flux, Robin)) and not callable(condition.g):
                parts[-1].check_numbers(condition.g)
            parts[-1].check_numbers(getattr(condition, "a", 0.0))
    return tuple(parts)


def _part(mesh: Mesh, tag: str, condition: Condition, faces: Integers, kinds: str = REAL) -> Part:
    """Return the part ``tag`` of a mesh's boundary: its condition and the geometry of its faces."""
    host = mesh.on_host
    cells = host.face_cells[faces, 0]
    owned = np.zeros(2 * host.faces, dtype=bool)
    owned[host.cell_sides] = True
    sides = np.where(owned[2 * faces], 2 * faces, 2 * faces + 1)
    normals = host.face_normals[faces] * np.where(sides & 1, -1.0, 1.0)[:, None]
    areas, points = host.face_areas[faces], host.face_centers[faces]
    away = (mesh.shortest(points - host.centers[cells]) * normals).sum(axis=1)
    # A center may lie on the boundary: this lower bound of the distance, O(h²), preserves second order.
    of_cell = np.bincount(cells, areas, host.cells)[cells]
    min_distance = host.volumes[cells] / np.maximum(of_cell, np.finfo(float).tiny)
    min_distance *= np.minimum(0.1, min_distance / np.ptp(host.centers, axis=0).max())
    to_device, number = mesh.backend.to_device, mesh.volumes.dtype
    normals, areas, away = (to_device(each.astype(number)) for each in (normals, areas, np.maximum(away, min_distance)))
    faces, cells, sides = (to_device(each) for each in (faces, cells, sides))
    return Part(tag, condition, faces, cells, sides, points, normals, areas, away, kinds)


class HasBoundaryData:
    """Term whose rate of change depends on the time only by the data of the parts ``_parts`` of the boundary."""

    _parts: tuple[Part, ...]

    def boundary_data(self, time: float, fields: int = 0) -> list[Floats]:
        """Return those data of the boundary that depend on the time. No other part of the rate of change does.

        Parameters
        ----------
        time : float
            Time.
        fields : int, default 0
            Number of fields of u (fields, cells); 0 for u (cells,).

        Returns
        -------
        list of (n,) or (fields, n) array
            Data at the n faces of each part of the boundary.
        """
        return [part.data(time, fields) for part in self._parts if not part.is_constant]
