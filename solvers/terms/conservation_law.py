"""Scalar conservation laws: waves that move at a speed of their own, with shocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..mesh.checks import check_array, check_call, check_finite, check_mesh
from ..mesh.mesh import Floats, Mesh
from .advection import Step
from .limiters import Reconstruction

Pointwise = Callable[[Floats, Floats], Floats]


class ConservationLaw:
    """−div f(u, x) for a field u of any sign.

    Fluxes of Rusanov (1961) between the values u₋, u₊ of a limited linear reconstruction at both sides of a face
    (MUSCL: van Leer 1979): ½ (f(u₋) + f(u₊))·n − ½ a (u₊ − u₋), a the larger speed of both. Shocks move at
    [f]/[u] (Rankine and Hugoniot), without overshoot on a curve at cfl ≤ ½; second order where u is smooth.

    mesh     any mesh of a curve, a surface or a body
    flux     f(u (n,), x (n, d)) → (n, d), tangent, at points x; (n,) on a curve: along it, towards higher cells
    speed    (u (n,), x (n, d)) → (n,): |∂f/∂u| at least, of any sign
    limiter  "mc", "vanleer", or "none", which overshoots
    walls    what an interval's ends are: "closed" lets nothing pass, "open" passes the flux of the cell's own value

    Example: Burgers' equation is f = u²/2, speed u; traffic f = u (1 − u), speed 1 − 2u.
    Raises ValueError and TypeError for input that does not fit.
    """

    def __init__(
        self, mesh: Mesh, flux: Pointwise, speed: Pointwise, limiter: str = "mc", walls: str = "closed"
    ) -> None:
        check_mesh(mesh)
        check_call("flux", flux)
        check_call("speed", speed)
        if walls not in ("closed", "open"):
            raise ValueError(f"walls = {walls!r}: expected 'closed' or 'open'")
        self.mesh, self.flux, self.speed, self.walls = mesh, flux, speed, walls
        self._reconstruction, self._seen = Reconstruction(mesh, limiter), False
        backend, number = mesh.backend, mesh.volumes.dtype
        self._at_side = backend.zeros(2 * mesh.faces, number)
        self._through = backend.zeros(mesh.faces, number)
        cells = backend.to_host(mesh.face_cells)
        walled = np.flatnonzero(cells[:, 0] == cells[:, 1])
        owned = np.zeros(2 * mesh.faces, bool)
        owned[backend.to_host(mesh.cell_sides)] = True
        self._walls = backend.to_device(walled)
        self._wall_sides = backend.to_device(np.where(owned[2 * walled], 2 * walled, 2 * walled + 1))

    def prepare(self, time: float, values: Floats) -> Step:
        """Fluxes of u = values (cells); returns the least V/(½ Σ A a): for two equal faces a width over the speed."""
        mesh, at_side = self.mesh, self._at_side
        check_array("values", values, (mesh.cells,))
        if not self._seen:
            check_finite("values", values)
            self._seen = True
        self._reconstruction.values_at_faces(values, at_side)
        at_side[self._wall_sides ^ 1] = at_side[self._wall_sides]
        left, right = at_side[0::2], at_side[1::2]
        normal = self._normal_flux(left) + self._normal_flux(right)
        fastest = np.maximum(np.abs(self._speed(left)), np.abs(self._speed(right)))
        self._through[:] = 0.5 * mesh.face_areas * (normal - fastest * (right - left))
        if self.walls == "closed":
            self._through[self._walls] = 0.0
        return self._stable_step(mesh.face_areas * fastest)

    def rate(self, dt: float, rate: Floats) -> None:
        mesh, backend = self.mesh, self.mesh.backend
        check_array("rate", rate, (mesh.cells,))
        backend.launch(
            backend.divergence_of_sides, mesh.cells, mesh.volumes, mesh.cell_start, mesh.cell_sides, self._through, rate
        )

    def _normal_flux(self, values: Floats) -> Floats:
        """f·n (faces,) of values at the faces."""
        mesh = self.mesh
        flux = self.flux(values, mesh.face_centers)
        if mesh.dimension == 1 and getattr(flux, "ndim", 0) == 1:
            check_array("flux", flux, (mesh.faces,), "faces")
            return flux
        check_array("flux", flux, mesh.face_centers.shape, "faces")
        normal: Floats = (flux * mesh.face_normals).sum(axis=1)
        return normal

    def _speed(self, values: Floats) -> Floats:
        speed = self.speed(values, self.mesh.face_centers)
        check_array("speed", speed, (self.mesh.faces,), "faces")
        return speed

    def _stable_step(self, waves: Floats) -> Step:
        """The least 2V/Σ A a, of waves A a (faces,); ∞ where nothing moves."""
        mesh, backend = self.mesh, self.mesh.backend
        total = backend.sums_at(mesh.side_cells, np.repeat(waves, 2), mesh.cells)
        with np.errstate(divide="ignore"):
            step: Step = np.divide(2.0, np.max(total / mesh.volumes))
            return step
