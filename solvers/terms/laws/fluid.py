"""Riemann solvers and wall states that the Euler and shallow-water equations share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ...backends import backend_for
from ...mesh.mesh import Floats

TINY = 1e-30  # added to denominators that vanish in a vacuum


class Fluid(ABC):
    """Conservation law ∂ₜu + div(ρv, ρv⊗v + p, (E + p)v) = 0 of u = (ρ, ρv, E), or of (ρ, ρv) without energy.

    Fields are u (fields, n): the density ρ, the d components of the momentum ρv, and the energy E if the law has one.
    A subclass defines the pressure p and the speed of sound.
    """

    @abstractmethod
    def primitive(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the density (n,), the velocity (d, n) and the pressure (n,) of a state u (fields, n)."""

    @abstractmethod
    def _sound_speed(self, density: Floats, pressure: Floats) -> Floats:
        """Return the speed of sound (n,)."""

    @abstractmethod
    def _mean_sound_speed(self, specific: Floats, density_l: Floats, density_r: Floats) -> Floats:
        """Return Roe's mean speed of sound (n,) from Roe's mean (1, v, H) (fields, n) and the densities (n,)."""

    def flux(self, u: Floats, x: Floats) -> Floats:
        """Return the flux (ρv, ρv⊗v + p, (E + p)v), without the last row if the law has no energy.

        Parameters
        ----------
        u : (fields, n) array
            Conserved fields.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        (fields, n, d) array
            Flux of each field.
        """
        density, velocity, pressure = self.primitive(u)
        flux: Floats = (density * self._specific(u))[:, :, None] * velocity.T
        for k in range(len(velocity)):
            flux[1 + k, :, k] += pressure
        return flux

    def speed(self, u: Floats, x: Floats) -> Floats:
        """Return the largest wave speed: the speed of the fluid plus the speed of sound.

        Parameters
        ----------
        u : (fields, n) array
            Conserved fields.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        (n,) array
            Speed.
        """
        density, velocity, pressure = self.primitive(u)
        speed: Floats = np.sqrt((velocity**2).sum(axis=0)) + self._sound_speed(density, pressure)
        return speed

    def mirror(self, u: Floats, n: Floats) -> Floats:
        """Return the mirror image of a state at a wall, with the momentum ρv − 2(ρv·n)n.

        Parameters
        ----------
        u : (fields, n) array
            Conserved fields inside.
        n : (n, d) array
            Unit normals of the wall.

        Returns
        -------
        (fields, n) array
            Conserved fields outside.
        """
        mirrored: Floats = u.copy()
        momentum = mirrored[1 : 1 + n.shape[1]]
        momentum -= 2 * _dot(momentum, n) * n.T
        return mirrored

    def hll(self, left: Floats, right: Floats, n: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the flux of Harten, Lax and van Leer with the wave speeds of Einfeldt, and the largest speed.

        Parameters
        ----------
        left, right : (fields, n) array
            Conserved fields on both sides of each face.
        n : (n, d) array
            Unit normals, from left to right.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        flux : (fields, n) array
            Flux along the normals.
        speed : (n,) array
            Largest absolute wave speed.

        References
        ----------
        Harten, Lax and van Leer (1983); Einfeldt (1988).
        """
        slow, fast = self._waves(left, right, n)
        a, b = np.minimum(slow, 0.0), np.maximum(fast, 0.0)
        flux_l, flux_r = self._normal_flux(left, n), self._normal_flux(right, n)
        through = (b * flux_l - a * flux_r + a * b * (right - left)) / (b - a + TINY)
        return through, np.maximum(-a, b)

    def roe(self, left: Floats, right: Floats, n: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return Roe's flux with the entropy fix of Harten and Hyman, and the largest speed.

        Contacts and shear layers at rest stay sharp. Densities can become negative near a vacuum.

        Parameters
        ----------
        left, right : (fields, n) array
            Conserved fields on both sides of each face.
        n : (n, d) array
            Unit normals, from left to right.
        x : (n, d) array
            Points, not used.

        Returns
        -------
        flux : (fields, n) array
            Flux along the normals.
        speed : (n,) array
            Largest absolute wave speed.

        References
        ----------
        Roe (1981); Harten and Hyman (1983).
        """
        (density_l, along_l, pressure_l, sound_l), (density_r, along_r, pressure_r, sound_r) = (
            self._along(u, n) for u in (left, right)
        )
        specific, sound = self._roe_mean(left, right)
        middle = _dot(specific[1 : 1 + n.shape[1]], n)
        back = _fix_entropy(middle - sound, along_l - sound_l, along_r - sound_r)
        ahead = _fix_entropy(middle + sound, along_l + sound_l, along_r + sound_r)
        contact = np.abs(middle)
        even, odd = 0.5 * (ahead + back) - contact, 0.5 * (ahead - back)  # of the two sound waves
        jump_p = (pressure_r - pressure_l) / (sound + TINY)
        jump_v = np.sqrt(density_l * density_r) * (along_r - along_l)
        through = self._normal_flux(left, n) + self._normal_flux(right, n) - contact * (right - left)
        through -= specific * (even * jump_p + odd * jump_v) / (sound + TINY)
        _add_pressure(through, -even * jump_v - odd * jump_p, middle, n)
        return 0.5 * through, np.maximum(back, ahead)

    def _along(self, u: Floats, n: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return density, velocity along n, pressure and speed of sound, each (n,), of the state u (fields, n)."""
        density, velocity, pressure = self.primitive(u)
        return density, _dot(velocity, n), pressure, self._sound_speed(density, pressure)

    def _specific(self, u: Floats) -> Floats:
        """Return 1, v and the enthalpy H = (E + p)/ρ (fields, n): the flux of each field per flux of mass."""
        density, velocity, pressure = self.primitive(u)
        one = backend_for(u).xp.ones_like(density[None])
        specific: Floats = backend_for(u).xp.concatenate([one, velocity, (u[1 + len(velocity) :] + pressure) / density])
        return specific

    def _normal_flux(self, u: Floats, n: Floats) -> Floats:
        """Return the flux ρ v·n (1, v, H) + p (0, n, 0) (fields, n) of the state u along n."""
        density, along, pressure, _ = self._along(u, n)
        flux = density * along * self._specific(u)
        _add_pressure(flux, pressure, 0.0, n)
        return flux

    def _roe_mean(self, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Return Roe's means of (1, v, H) (fields, n) and of the speed of sound (n,): those weighted by √ρ."""
        root_l, root_r = np.sqrt(left[0]), np.sqrt(right[0])
        specific_l, specific_r = self._specific(left), self._specific(right)
        specific = (root_l * specific_l + root_r * specific_r) / (root_l + root_r + TINY)
        return specific, self._mean_sound_speed(specific, left[0], right[0])

    def _waves(self, left: Floats, right: Floats, n: Floats) -> tuple[Floats, Floats]:
        """Return bounds (n,) of the least and the largest signal speed along n between two states (Einfeldt 1988)."""
        (_, along_l, _, sound_l), (_, along_r, _, sound_r) = (self._along(u, n) for u in (left, right))
        specific, sound = self._roe_mean(left, right)
        middle = _dot(specific[1 : 1 + n.shape[1]], n)
        return np.minimum(along_l - sound_l, middle - sound), np.maximum(along_r + sound_r, middle + sound)


def _dot(vectors: Floats, n: Floats) -> Floats:
    """Return the component (n,) of vectors (d, n) along n (n, d)."""
    component: Floats = (vectors * n.T).sum(axis=0)
    return component


def _add_pressure(flux: Floats, pressure: Floats, speed: Floats | float, n: Floats) -> None:
    """Add the flux (0, p n, p s) of a pressure p at a wall of speed s to ``flux`` (fields, n)."""
    d = n.shape[1]
    flux[1 : 1 + d] += pressure * n.T
    flux[1 + d :] += pressure * speed


def _fix_entropy(wave: Floats, wave_l: Floats, wave_r: Floats) -> Floats:
    """Return the absolute speed (n,) of a wave, enlarged where the wave is a rarefaction through speed 0.

    ``wave_l`` and ``wave_r`` are the speeds on both sides (Harten and Hyman 1983).
    """
    size, spread = np.abs(wave), np.maximum(np.maximum(wave - wave_l, wave_r - wave), 0.0)
    enlarged = 0.5 * (wave**2 / (spread + TINY) + spread)
    fixed: Floats = backend_for(wave).xp.where(size < spread, enlarged, size)
    return fixed
