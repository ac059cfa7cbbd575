"""Euler equations for ConservationLaw: fluxes, Riemann solvers and wall states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...backends import backend_for
from ...mesh.checks import check_number
from ...mesh.mesh import Floats
from .fluid import Fluid


@dataclass(frozen=True)
class Euler(Fluid):
    """Gas dynamics: ∂ₜ(ρ, ρv, E) + div(ρv, ρv⊗v + p, (E + p)v) = 0 with p = (γ − 1)(E − ½ρv²).

    The methods are arguments of :class:`~solvers.ConservationLaw`. Fields are u (d + 2, cells): the density ρ, the d
    components of the momentum ρv, and the energy E. d is the dimension of the space that holds the mesh.

    Parameters
    ----------
    gamma : float, default 1.4
        Ratio γ of specific heats, > 1: 1.4 for air.

    Raises
    ------
    TypeError
        If γ is no number.
    ValueError
        If γ is not finite and > 1.

    References
    ----------
    Toro (2009), section 4.3: the exact solution of the example.

    Examples
    --------
    The density behind the shock in Sod's tube is 0.26557:

    >>> import numpy as np
    >>> from solvers import ConservationLaw, Equation, Euler, interval, solve
    >>> gas, mesh = Euler(), interval(-0.5, 0.5, 40)
    >>> left = mesh.centers[:, 0] < 0
    >>> u = gas.conserved(np.where(left, 1.0, 0.125), np.zeros((1, 40)), np.where(left, 1.0, 0.1))
    >>> law = ConservationLaw(mesh, gas.flux, gas.speed, riemann=gas.hllc, mirror=gas.mirror)
    >>> density, velocity, pressure = gas.primitive(solve(Equation(mesh, [law]), u, (0.0, 0.2)).u[-1])
    >>> bool(abs(np.interp(0.25, mesh.centers[:, 0], density) - 0.26557) < 1e-2)
    True
    """

    gamma: float = 1.4

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, above=1)

    def conserved(self, density: Floats, velocity: Floats, pressure: Floats) -> Floats:
        """Return the conserved fields ρ, ρv and E of a gas from density, velocity and pressure.

        Parameters
        ----------
        density : (n,) array
            Density ρ > 0.
        velocity : (d, n) array
            Components of v.
        pressure : (n,) array
            Pressure p > 0.

        Returns
        -------
        (d + 2, n) array
            Rows ρ, ρv, E.
        """
        energy = pressure / (self.gamma - 1) + 0.5 * density * (velocity**2).sum(axis=0)
        u: Floats = backend_for(density).xp.concatenate([density[None], density * velocity, energy[None]])
        return u

    def primitive(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the density, the velocity and the pressure of a gas from its conserved fields.

        Parameters
        ----------
        u : (d + 2, n) array
            Rows ρ, ρv, E.

        Returns
        -------
        density : (n,) array
            Density ρ.
        velocity : (d, n) array
            Components of v.
        pressure : (n,) array
            Pressure p.
        """
        velocity = u[1:-1] / u[0]
        return u[0], velocity, (self.gamma - 1) * (u[-1] - 0.5 * u[0] * (velocity**2).sum(axis=0))

    def positive(self, u: Floats) -> Floats:
        """Return the quantities that stay ≥ 0: density and pressure.

        Parameters
        ----------
        u : (d + 2, n) array
            Rows ρ, ρv, E.

        Returns
        -------
        (2, n) array
            Rows ρ, p.
        """
        density, _, pressure = self.primitive(u)
        quantities: Floats = backend_for(u).xp.stack([density, pressure])
        return quantities

    def hllc(self, left: Floats, right: Floats, n: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the HLLC flux and the largest speed: contacts at rest stay sharp.

        Parameters
        ----------
        left, right : (d + 2, n) array
            Conserved fields on both sides of each face.
        n : (n, d) array
            Unit normals, from left to right.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        flux : (d + 2, n) array
            Flux along the normals.
        speed : (n,) array
            Largest absolute wave speed.

        References
        ----------
        Toro, Spruce and Speares (1994); wave speeds: Einfeldt (1988).
        """
        slow, fast = self._waves(left, right, n)
        (density_l, along_l, pressure_l, _), (density_r, along_r, pressure_r, _) = (
            self._along(u, n) for u in (left, right)
        )
        mass_l, mass_r = density_l * (slow - along_l), density_r * (fast - along_r)
        contact = (pressure_r - pressure_l + mass_l * along_l - mass_r * along_r) / (mass_l - mass_r)
        through = backend_for(contact).xp.where(
            contact >= 0,
            self._star(left, n, slow, contact, np.minimum(slow, 0.0)),
            self._star(right, n, fast, contact, np.maximum(fast, 0.0)),
        )
        return through, np.maximum(np.abs(slow), np.abs(fast))

    def _star(self, u: Floats, n: Floats, wave: Floats, contact: Floats, moved: Floats) -> Floats:
        """Return the HLLC flux F + S (u* − u) (d + 2, n) on one side of the contact; S = ``moved``, and F where S is 0.

        F and u are flux and state of this side, u* is the state between the outer ``wave`` and the ``contact``; both
        are speeds (n,).
        """
        density, along, pressure, _ = self._along(u, n)
        factor = (wave - along) / (wave - contact)
        star = u * factor
        star[1:-1] += factor * density * (contact - along) * n.T
        star[-1] += factor * (contact - along) * (density * contact + pressure / (wave - along))
        return self._normal_flux(u, n) + moved * (star - u)

    def _sound_speed(self, density: Floats, pressure: Floats) -> Floats:
        return np.sqrt(self.gamma * pressure / density)

    def _mean_sound_speed(self, specific: Floats, density_l: Floats, density_r: Floats) -> Floats:
        sound: Floats = np.sqrt((self.gamma - 1) * (specific[-1] - 0.5 * (specific[1:-1] ** 2).sum(axis=0)))
        return sound
