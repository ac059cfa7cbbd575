"""Shallow-water equations for ConservationLaw: fluxes, Riemann solvers and wall states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mesh.checks import check_number
from ...mesh.mesh import Floats
from .riemann import hll_flux, mirror_rows


@dataclass(frozen=True)
class ShallowWater:
    """Shallow water: ∂ₜ(h, hv) + div(hv, hv⊗v + ½gh²) = 0.

    The methods are arguments of :class:`~solvers.ConservationLaw`. Fields are u (d + 1, cells): the depth h and the d
    components of hv. d is the dimension of the space that holds the mesh. On the unit sphere in R³ give
    :class:`~solvers.ConservationLaw` the argument ``tangent=(1, 4)``: the projection of the momentum replaces the
    curvature terms.

    Parameters
    ----------
    gravity : float, default 9.80616
        Gravity g ≥ 0. The default is that of the Earth in m/s².

    Raises
    ------
    TypeError
        If g is no number.
    ValueError
        If g is not finite and ≥ 0.

    Examples
    --------
    A low standing wave between two walls at distance 1 has the period 2/√(gh):

    >>> import numpy as np
    >>> from solvers import ConservationLaw, Equation, ShallowWater, interval, solve
    >>> water, mesh = ShallowWater(gravity=1.0), interval(0.0, 1.0, 16)
    >>> wave = 1e-3 * np.cos(np.pi * mesh.centers[:, 0])
    >>> law = ConservationLaw(mesh, water.flux, water.speed, riemann=water.hll, mirror=water.mirror)
    >>> depth, momentum = solve(Equation(mesh, [law]), np.stack([1 + wave, 0 * wave]), (0, 1)).u[-1]
    >>> bool(np.abs(depth - (1 - wave)).max() < 1e-4)  # half a period later
    True
    """

    gravity: float = 9.80616

    def __post_init__(self) -> None:
        check_number("gravity", self.gravity)

    def flux(self, u: Floats, x: Floats) -> Floats:
        """Return the flux (hv, hv⊗v + ½gh²) of the shallow-water equations.

        Parameters
        ----------
        u : (d + 1, n) array
            Fields h, hv.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        (d + 1, n, d) array
            Flux of each field.
        """
        flux: Floats = u[:, :, None] * (u[1:] / u[0]).T
        for k in range(len(u) - 1):
            flux[1 + k, :, k] += 0.5 * self.gravity * u[0] ** 2
        return flux

    def speed(self, u: Floats, x: Floats) -> Floats:
        """Return the largest wave speed: the speed of the water plus √(gh).

        Parameters
        ----------
        u : (d + 1, n) array
            Fields h, hv.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        (n,) array
            Speed.
        """
        speed: Floats = np.sqrt((u[1:] ** 2).sum(axis=0)) / u[0] + np.sqrt(self.gravity * u[0])
        return speed

    def mirror(self, u: Floats, n: Floats) -> Floats:
        """Return the mirror image of a state at a wall, with the momentum hv − 2(hv·n)n.

        Parameters
        ----------
        u : (d + 1, n) array
            Fields inside.
        n : (n, d) array
            Unit normals of the wall.

        Returns
        -------
        (d + 1, n) array
            Fields outside.
        """
        return mirror_rows(u, n, slice(1, None))

    def hll(self, left: Floats, right: Floats, n: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the flux of Harten, Lax and van Leer with the wave speeds of Davis, and the largest speed.

        Parameters
        ----------
        left, right : (d + 1, n) array
            Fields on both sides of each face.
        n : (n, d) array
            Unit normals, from left to right.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        flux : (d + 1, n) array
            Flux along the normals.
        speed : (n,) array
            Largest absolute wave speed.

        References
        ----------
        Harten, Lax and van Leer (1983); Davis (1988).
        """
        along_l, along_r = ((u[1:] * n.T).sum(axis=0) / u[0] for u in (left, right))
        c_l, c_r = (np.sqrt(self.gravity * u[0]) for u in (left, right))
        slow, fast = np.minimum(along_l - c_l, along_r - c_r), np.maximum(along_l + c_l, along_r + c_r)
        return hll_flux(
            self._normal_flux(left, along_l, n), self._normal_flux(right, along_r, n), left, right, slow, fast
        )

    def _normal_flux(self, u: Floats, along: Floats, n: Floats) -> Floats:
        flux = u * along
        flux[1:] += 0.5 * self.gravity * u[0] ** 2 * n.T
        return flux
