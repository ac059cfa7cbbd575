"""Shallow-water equations for ConservationLaw: fluxes, Riemann solvers and wall states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...backends import backend_for
from ...mesh.checks import check_array, check_finite, check_number
from ...mesh.mesh import Floats, Mesh
from .bottom import DRY, Bottom, speed_per_momentum
from .fluid import Fluid


@dataclass(frozen=True)
class ShallowWater(Fluid):
    """Shallow water: ∂ₜ(h, hv) + div(hv, hv⊗v + ½gh²) = 0.

    The methods are arguments of :class:`~solvers.ConservationLaw`. Fields are u (d + 1, cells): the depth h and the d
    components of hv. d is the dimension of the space that holds the mesh. On the unit sphere in R³ give
    :class:`~solvers.ConservationLaw` the argument ``tangent=(1, 4)``: the projection of the momentum replaces the
    curvature terms. The argument ``source`` adds the force of a bottom, see :meth:`over`.

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
    >>> law = ConservationLaw(mesh, water.flux, water.speed, riemann=water.hllc, mirror=water.mirror)
    >>> depth, momentum = solve(Equation(mesh, [law]), np.stack([1 + wave, 0 * wave]), (0, 1)).u[-1]
    >>> bool(np.abs(depth - (1 - wave)).max() < 1e-4)  # half a period later
    True
    """

    gravity: float = 9.80616

    def __post_init__(self) -> None:
        check_number("gravity", self.gravity)

    def primitive(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the depth h, the velocity v and the pressure ½gh² per density, integrated over the depth.

        The velocity is 2h hv/(h² + max(h, ε)²), where ε is 1e-8 of the largest depth. It is hv/h in water, and tends
        to 0 on dry ground (compare Kurganov and Petrova 2007).

        Parameters
        ----------
        u : (d + 1, n) array
            Rows h, hv.

        Returns
        -------
        depth : (n,) array
            Depth h.
        velocity : (d, n) array
            Components of v.
        pressure : (n,) array
            Pressure ½gh².
        """
        depth = u[0]
        velocity = speed_per_momentum(depth, DRY * depth.max()) * u[1:]
        return depth, velocity, 0.5 * self.gravity * depth**2

    def over(self, mesh: Mesh, bottom: Floats) -> Bottom:
        """Return the force −gh∇b of a bottom b, for the argument ``source`` of :class:`~solvers.ConservationLaw`.

        A lake at rest stays at rest to rounding, by the limiters "koren", "mc" and "vanleer" also with dry islands.

        Parameters
        ----------
        mesh : Mesh
            Mesh of the water.
        bottom : (cells,) array
            Height b of the bottom at the cell centers.

        Returns
        -------
        Bottom
            Source in balance with the fluxes.

        Raises
        ------
        TypeError
            If the bottom does not hold floating-point numbers.
        ValueError
            If the bottom has another shape or is not finite.

        References
        ----------
        Audusse, Bouchut, Bristeau, Klein and Perthame (2004).
        """
        check_array("bottom", bottom, (mesh.cells,))
        check_finite("bottom", bottom)
        return Bottom(self.gravity, mesh, mesh.backend.to_device(bottom))

    def positive(self, u: Floats) -> Floats:
        """Return the quantity that stays ≥ 0: the depth.

        Parameters
        ----------
        u : (d + 1, n) array
            Rows h, hv.

        Returns
        -------
        (1, n) array
            Row h.
        """
        return u[:1]

    def hllc(self, left: Floats, right: Floats, n: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the HLLC flux and the largest speed: shear layers at rest stay sharp.

        Depth and momentum along n have the HLL flux. The velocity across n is that of the side from which water comes.

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
        Toro, Spruce and Speares (1994); Toro (2001), section 10.5; wave speeds: Einfeldt (1988).
        """
        through, speed = self.hll(left, right, n, x)
        upwind = backend_for(through).xp.where(through[0] >= 0, self.primitive(left)[1], self.primitive(right)[1])
        across = through[0] * upwind - through[1:]
        through[1:] += across - (across * n.T).sum(axis=0) * n.T
        return through, speed

    def _sound_speed(self, density: Floats, pressure: Floats) -> Floats:
        return np.sqrt(self.gravity * density)

    def _mean_sound_speed(self, specific: Floats, density_l: Floats, density_r: Floats) -> Floats:
        return np.sqrt(0.5 * self.gravity * (density_l + density_r))

    def _waves(self, left: Floats, right: Floats, n: Floats) -> tuple[Floats, Floats]:
        """Return bounds (n,) of the signal speeds along n; a front on dry ground moves at v·n ± 2√(gh)."""
        slow, fast = super()._waves(left, right, n)
        (depth_l, along_l, _, wave_l), (depth_r, along_r, _, wave_r) = (self._along(u, n) for u in (left, right))
        where = backend_for(left).xp.where
        return where(depth_l > 0, slow, along_r - 2 * wave_r), where(depth_r > 0, fast, along_l + 2 * wave_l)
