"""Terms of an evolution equation: each adds its part of ∂ₜu, or advances it by itself where it is stiff."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Protocol

import numpy as np

from ..mesh.checks import check_array, check_call, check_finite, check_mesh, check_number, warn_of_pointwise
from ..mesh.mesh import Floats, Mesh
from .limiters import Reconstruction
from .ring_geometry import is_of_rings
from .ring_transport import RingTransport

Velocity = Callable[[float, Floats], Floats]
Step = float | Floats  # a number where the state is: looking at it may mean waiting
OCCUPIED = 1e-8  # of the mean density: what is thinner is less than that of the mass, and does not rule the time step


class Term(Protocol):
    """An explicit term. :meth:`prepare` looks at the state, :meth:`rate` uses what it saw."""

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate at (time, values); returns the largest stable time step (NaN for a non-finite state)."""
        ...

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change at the prepared state, such that a step of dt keeps it admissible."""
        ...


class StiffTerm(Protocol):
    """A term that advances the state by itself, stable for any time step."""

    def longest_step(self, values: Floats) -> Step:
        """The largest step that is accurate, beside terms that do not see this one meanwhile; ∞ for no limit."""
        ...

    def step(self, dt: float, values: Floats, limited: bool = True) -> Step:
        """Advance ``values`` in place by dt; returns the least of them before what is below zero was limited.

        It stays below zero where they are not to be ``limited``: then nothing has to wait for that number.
        """
        ...


class Advection:
    """−div(u X[u]) for a field u of any sign, or a density u ≥ 0, and a velocity X at cell centers.

    limiter "mc", "vanleer" or "none": second-order upwind fluxes through the faces of any mesh, limited at each face
    (see :class:`~solvers.terms.limiters.Reconstruction`): with "mc" and "vanleer" a step makes no new extremum where
    div X = 0, and at cfl ≤ ½ keeps a density ≥ 0; "none" has no limiter and overshoots next to jumps.

    limiter "lump", for a density on a curve or the unit sphere: each cell sends its mass on in one of two ways. An
    unresolved cell (a cluster that the mesh does not resolve) moves with the
    velocity at its own center, split over the neighbours such that its center of mass moves at exactly X_i: face
    velocities would all point inward and pin it to its cell (donor-cell scheme; Carrillo, James, Lagoutière and
    Vauchelet 2016; Delarue, Lagoutière and Vauchelet 2017). What it sends ahead it replaces, up to half, by mass from
    behind, which leaves that first moment as it is and takes away most of the upwind spreading (our addition).
    A resolved density moves by second-order upwind fluxes.
    The two are blended by how far the neighbours are from the cell's linear reconstruction.

    X may depend on u as a whole (a convolution). Where X at a point depends on u at that point, waves do not move at
    X but at d(uX)/du, which upwind fluxes by X cannot know: use `solvers.terms.conservation_law.ConservationLaw`.
    A plain function is tried for that once, with a warning; an object with ``__call__`` is not.

    mesh       any mesh of a curve, a surface or a body, closed or with walls
    velocity   X(time, u) → (cells, d), tangent
    resolved   of "lump": relative smoothness indicators (low, high), 0 ≤ low ≤ high < ∞: below low a cell counts as
               resolved, above high as not. (0, 0) moves everything by donor cells
    linear_rate  the fastest rate of a small departure from the uniform density, where known. Nothing flows there to
               limit the time step, so this does, while no cell has twice the mean density
    limiter    default: "lump" for a density on a curve or the unit sphere, else "mc"
    nonnegative  whether u is a density: then no step takes more from a cell than it has

    Raises TypeError and ValueError for input that does not fit: formats, shapes, NaN in the first state, a mesh whose
    arrays contradict each other.
    """

    resolved = (0.05, 0.15)

    def __init__(
        self,
        mesh: Mesh,
        velocity: Velocity,
        resolved: tuple[float, float] = resolved,
        linear_rate: float = 0.0,
        *,
        limiter: str | None = None,
        nonnegative: bool = False,
    ) -> None:
        check_mesh(mesh)
        check_call("velocity", velocity)
        if limiter is None:
            limiter = "lump" if nonnegative and _moves_lumps(mesh) else "mc"
        _check_lumps(mesh, limiter, nonnegative, resolved)
        self.mesh, self.velocity, self.low_high, self.nonnegative = mesh, velocity, resolved, nonnegative
        self._seen = False
        self._linear_rate = 5.0 * linear_rate  # at cfl = ½ Runge–Kutta 3 then errs by (0.1)³/24 of the rate
        backend, number = mesh.backend, mesh.volumes.dtype
        self._sent = backend.zeros(2 * mesh.faces, number)
        self._faces = None if limiter == "lump" else Reconstruction(mesh, limiter)
        by_cell = mesh.dimension == 1 and self._faces is None
        self._flow = backend.work_array(mesh.cells if by_cell else 2 * mesh.faces, number)
        self._outflow = backend.zeros(mesh.cells, number)  # until it is known, how resolved each cell is
        self._occupied = backend.zeros(1, number)
        self._send = _SENDERS.get(mesh.dimension)
        by_rings = self._faces is None and mesh.dimension == 2 and is_of_rings(mesh.on_host)
        self._rings = RingTransport(mesh) if by_rings else None
        if by_rings:
            self._sent, self._send = self._sent.reshape(2, -1), Advection._send_on_rings

    def prepare(self, time: float, values: Floats) -> Step:
        mesh, backend = self.mesh, self.mesh.backend
        check_array("values", values, (mesh.cells,))
        if not self._seen:
            check_finite("values", values)
            warn_of_pointwise(self.velocity, time, values)
            self._seen = True
        velocity = self.velocity(time, values)
        check_array("velocity", velocity, mesh.centers.shape)
        if self._faces is None:
            fastest = self._send_with_lumps(values, velocity)
        else:
            fastest = self._send_through_faces(self._faces, values, velocity)
        if self._linear_rate:
            mean = backend.dot(mesh.volumes, values) / mesh.volume
            fastest = np.maximum(fastest, self._linear_rate * (values.max() < 2.0 * mean))
        with np.errstate(divide="ignore"):
            step: Step = np.divide(1.0, fastest)
            return step

    def _send_with_lumps(self, values: Floats, velocity: Floats) -> Step:
        mesh, backend = self.mesh, self.mesh.backend
        mean = backend.dot(mesh.volumes, values) / mesh.volume
        occupied = self._occupied
        occupied[0] = OCCUPIED * mean
        assert self._send is not None  # of a curve or a surface
        self._send(self, values, velocity, occupied)
        return self._find_outflow(values)

    def _find_outflow(self, values: Floats) -> Step:
        """The part of its mass that each cell loses per time; returns the largest of the occupied ones."""
        mesh, backend = self.mesh, self.mesh.backend
        if self._rings is not None:
            shares = self._rings.outflows(values, self._occupied, self._sent, self._outflow)
        else:
            shares = backend.launch(
                backend.outflows, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, values, self._occupied,
                self._sent, self._outflow,
            )  # fmt: skip
        fastest: Step = np.max(reduce(np.maximum, shares))
        return fastest

    def _send_through_faces(self, faces: Reconstruction, values: Floats, velocity: Floats) -> Step:
        """Returns the largest Σ (A X·n)⁺/V of a cell: the same for any u, so that it may have either sign or be 0."""
        mesh, backend = self.mesh, self.mesh.backend
        flux, at_side = self._flow(), backend.empty(2 * mesh.faces, values.dtype)
        faces.flux_at_faces(velocity, flux)
        faces.values_at_faces(values, at_side)
        shares = backend.launch(
            backend.send_through_faces, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, mesh.side_cells,
            values, flux, at_side, self.nonnegative, self._sent,
        )  # fmt: skip
        if self.nonnegative:
            self._find_outflow(values)
        fastest: Step = np.max(reduce(np.maximum, shares))
        return fastest

    def rate(self, dt: float, rate: Floats) -> None:
        mesh, backend = self.mesh, self.mesh.backend
        check_array("rate", rate, (mesh.cells,))
        if self._rings is not None:
            self._rings.receive(self._sent, self._outflow, dt, rate)
            return
        backend.launch(
            backend.receive, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, mesh.side_cells, self._sent,
            self._outflow, dt, rate,
        )  # fmt: skip

    def _send_on_curve(self, density: Floats, velocity: Floats, occupied: Floats) -> None:
        mesh, backend = self.mesh, self.mesh.backend
        neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        flow, smooth = self._flow(), self._outflow
        backend.launch(
            backend.look_on_curve, mesh.cells, mesh.centers, mesh.volumes, *neighborhood, density, velocity,
            *self.low_high, occupied, flow, smooth,
        )  # fmt: skip
        backend.launch(
            backend.send_on_curve, mesh.cells, mesh.volumes, *neighborhood, density, flow, smooth, self._sent,
        )  # fmt: skip

    def _send_on_rings(self, density: Floats, velocity: Floats, occupied: Floats) -> None:
        assert self._rings is not None
        flux = self._flow().reshape(2, -1)
        self._rings.send(density, velocity, self.low_high, occupied, flux, self._outflow, self._sent)

    def _send_on_surface(self, density: Floats, velocity: Floats, occupied: Floats) -> None:
        mesh, backend = self.mesh, self.mesh.backend
        neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        work = len(mesh.cell_sides)
        flow, smooth = self._flow(), self._outflow
        backend.launch(
            backend.look_on_surface, work, mesh.centers, mesh.face_centers, mesh.face_normals, mesh.face_areas,
            mesh.face_curvatures, *neighborhood, density, velocity, *self.low_high, occupied, flow, smooth,
            self._sent,
        )  # fmt: skip
        backend.launch(
            backend.send_on_surface, work, mesh.centers, mesh.volumes, mesh.face_centers, *neighborhood, density,
            velocity, flow, smooth, occupied, self._sent,
        )  # fmt: skip


def _moves_lumps(mesh: Mesh) -> bool:
    """Whether the kernels of unresolved cells know the mesh: a curve, or the unit sphere in R³."""
    if mesh.dimension == 1 or mesh.centers.shape[1] != 3:
        return mesh.dimension == 1
    radii = np.linalg.norm(mesh.backend.to_host(mesh.centers), axis=1)
    rounding = 8 * np.finfo(radii.dtype).eps
    return mesh.dimension == 2 and bool(np.abs(radii - 1.0).max() < rounding)


def _check_lumps(mesh: Mesh, limiter: str, nonnegative: bool, resolved: tuple[float, float]) -> None:
    low, high = resolved
    if not 0 <= low <= high < np.inf:
        raise ValueError(f'resolved = {resolved}: expected 0 <= low <= high < inf; for fluxes only, limiter="none"')
    if limiter != "lump":
        return
    if not _moves_lumps(mesh):
        raise ValueError(f'limiter = "lump" on a {mesh.manifold}: expected a curve or the unit sphere; use "mc"')
    if not nonnegative:
        raise ValueError('limiter = "lump": expected nonnegative=True, as only a density >= 0 has lumps; else "mc"')


_SENDERS = {1: Advection._send_on_curve, 2: Advection._send_on_surface}


class Diffusion:
    """κ Δρ by two-point fluxes, advanced by RKL2 super-time-stepping (Meyer, Balsara and Aslam 2014, section 2.3).

    Second order in time and space (fourth in space on a curve of equal cells); s stages cover (s² + s − 2)/4 explicit
    steps, so the cost grows as √dt and there is no parabolic limit. The stages are polynomials of the Laplacian L,
    so the step is ρ + L ψ: where it undershoots zero next to an unresolved cell, the fluxes of ψ are limited to what
    each cell has and receives.

    coefficient  κ ≥ 0, a number
    nonnegative  whether ρ is a density ≥ 0, which steps keep; else a field of any sign, which is not limited
    Raises ValueError for a negative coefficient, TypeError for an array.
    """

    def __init__(self, mesh: Mesh, coefficient: float, *, nonnegative: bool = False) -> None:
        check_mesh(mesh)
        check_number("diffusion coefficient", coefficient)
        self.mesh, self.coefficient, self._seen, self.nonnegative = mesh, coefficient, False, nonnegative
        backend = mesh.backend
        faces, volumes = backend.to_host(mesh.face_cells), backend.to_host(mesh.volumes)
        conductances = mesh.face_conductances()
        self._conductances = backend.to_device(conductances.astype(volumes.dtype, copy=False))
        diagonal = np.zeros(mesh.cells)
        np.add.at(diagonal, faces, conductances[:, None])
        fastest = coefficient * (diagonal / volumes).max()
        equal = mesh.dimension == 1 and np.ptp(volumes) < 1e-9 * volumes.max()  # but for the rounding of their edges
        self._laplacian, self._send = _DIFFUSIONS[equal]
        if equal:
            fastest *= 4 / 3  # the highest mode of the fourth-order flux
        self._explicit_dt = 1.0 / fastest if coefficient > 0 else np.inf
        self._neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)

    def longest_step(self, values: Floats) -> Step:
        """½ ∫ρ / ∫|κ Δρ|, about the age of a spot that was a point: high modes lose but half of themselves in a step.

        Nothing else limits it where mass is in one cell, at which its own velocity is zero. Fields of any sign have
        their :func:`amplitude` for ∫ρ.
        """
        backend = self.mesh.backend
        change = backend.empty(values.shape, values.dtype)
        self.laplacian(values, change)
        moved = self.coefficient * backend.dot(self.mesh.volumes, np.abs(change, out=change))
        held = backend.dot(self.mesh.volumes, values) if self.nonnegative else amplitude(self.mesh, values)
        return time_to_move(held, moved)

    def laplacian(self, values: Floats, out: Floats) -> None:
        """Δ of values (cells) into ``out``."""
        check_array("values", values, (self.mesh.cells,))
        check_array("out", out, (self.mesh.cells,))
        mesh, backend = self.mesh, self.mesh.backend
        kernel = getattr(backend, self._laplacian)
        backend.launch(kernel, mesh.cells, mesh.volumes, self._conductances, *self._neighborhood, values, out)

    def step(self, dt: float, values: Floats, limited: bool = True) -> Step:
        check_array("values", values, (self.mesh.cells,))
        if not self._seen:
            check_finite("values", values)
            self._seen = True
        stages = self._stages(dt)
        step = 4.0 / (stages * stages + stages - 2) * dt * self.coefficient
        start, before = values.copy(), np.zeros_like(values)
        potential = start * (_weight(1) * step)
        for j in range(2, stages + 2):
            self.laplacian(potential, values)
            values += start
            if j <= stages:
                mu, nu = (2 * j - 1) / j * _weight(j) / _weight(j - 1), -(j - 1) / j * _weight(j) / _weight(j - 2)
                values -= (1 - _weight(j - 1)) * start
                values *= mu * step
                values += mu * potential
                before *= nu
                before += values
                potential, before = before, potential
        if not self.nonnegative:
            return np.inf  # nothing is limited
        lowest: Step = values.min()
        if limited and lowest < 0:
            self._limit(start, potential, values)
        return lowest

    def _limit(self, start: Floats, potential: Floats, values: Floats) -> None:
        """values = start + limited L ψ ≥ 0: no cell gives more than it had and receives."""
        mesh, backend = self.mesh, self.mesh.backend
        sent = backend.zeros(2 * mesh.faces, values.dtype)  # the outer sides of walls are nobody's, and send nothing
        keep, kept = np.ones_like(values), backend.empty(values.shape, values.dtype)
        kernel = getattr(backend, self._send)
        backend.launch(kernel, mesh.cells, self._conductances, *self._neighborhood, potential, sent)
        for _ in range(_LIMITER_ROUNDS):
            backend.launch(
                backend.limit_sent, mesh.cells, mesh.volumes, *self._neighborhood, start, sent, keep, kept, values
            )
            keep, kept = kept, keep
            if values.min() >= 0:
                return
        lift_to_zero(values, mesh.volumes)

    def _stages(self, dt: float) -> int:
        """Smallest odd s ≥ 3 with dt ≤ explicit dt · (s² + s − 2)/4."""
        stages = int(np.ceil((np.sqrt(9 + 16 * dt / self._explicit_dt) - 1) / 2))
        return max(3, stages + 1 - stages % 2)


_DIFFUSIONS = {
    True: ("diffuse_on_curve", "send_diffusion_on_curve"),
    False: ("diffuse_on_surface", "send_diffusion_on_surface"),
}
_PART = 0.5  # of the mass that diffusion may move in a step: with cfl ½ a spot's age grows by a third to a half in one
_LIMITER_ROUNDS = 50  # each mends what the last one took from its neighbours; what may be left is lifted to zero


def time_to_move(mass: Step, rate: Step) -> Step:
    """Time in which diffusion moves the part of the ``mass`` that it may in a step, at a ``rate`` of mass; or ∞."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step: Step = np.where(rate > 0, _PART * mass / rate, np.inf)
        return step


def amplitude(mesh: Mesh, values: Floats) -> Step:
    """∫|u − ū|, and a thousandth of ∫|u|: departures below that limit no step, nor does their rounding."""
    dot, mean = mesh.backend.dot, mesh.backend.dot(mesh.volumes, values) / mesh.volume
    size: Step = dot(mesh.volumes, np.abs(values - mean)) + 1e-3 * dot(mesh.volumes, np.abs(values))
    return size


def _weight(j: int) -> float:
    """The b_j of RKL2."""
    return 1 / 3 if j < 2 else (j * j + j - 2) / (2 * j * (j + 1))


def lift_to_zero(values: Floats, volumes: Floats) -> None:
    """Draw values with a negative minimum towards their mean, in place, until the minimum is zero; keeps the mass."""
    lowest = values.min()
    if lowest < 0:
        mean = volumes @ values / volumes.sum()
        values += (mean - values) * (-lowest / (mean - lowest))
        np.maximum(values, 0.0, out=values)
