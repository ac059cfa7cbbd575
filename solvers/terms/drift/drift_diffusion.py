"""Drift and diffusion towards a given steady density on an interval."""

from __future__ import annotations

import numpy as np

from ...mesh.checks import check_array, check_finite, check_mesh, check_number
from ...mesh.mesh import Floats, Mesh
from ..diffusion import time_to_move
from ..term import Step


class IntervalDriftDiffusion:
    """Drift and diffusion ∂ₜp = κ ∂ₓ(∂ₓp − p ∂ₓ log p̄) between walls: a stiff term with p̄ bitwise steady and p ≥ 0.

    Fluxes of Scharfetter and Gummel (1969) are −κ (B(q) p_b − B(−q) p_a)/Δ between cells a and b at distance Δ, with q
    = log(p̄_b/p̄_a) and B(q) = q/(e^q − 1). These fluxes vanish for p = p̄ on any cells, and an implicit Euler step
    E(dt) of any size keeps p ≥ 0. The extrapolation 2 E(½dt)² − E(dt) is of second order and damps stiff modes. Where
    the extrapolation undershoots zero, the fluxes added to E(½dt)² are limited to the mass of each cell (Zalesak 1979).
    Where p is flat and p̄ steep, diffusion is too strong by the factor 1 + q²/12.

    mesh          an interval
    coefficient   κ ≥ 0
    log_steady    (cells) log p̄, finite, of any mass, on the host: p̄ itself may underflow where it is small
    nonnegative   whether p is a density ≥ 0, which steps keep; else a field of any sign, which is not limited
    """

    def __init__(self, mesh: Mesh, coefficient: float, log_steady: Floats, *, nonnegative: bool = False) -> None:
        check_mesh(mesh)
        if mesh.dimension != 1 or mesh.faces != mesh.cells + 1:
            raise ValueError(f"mesh of a {mesh.manifold}: expected an interval")
        check_number("diffusion coefficient", coefficient)
        check_array("log_steady", log_steady, (mesh.cells,))
        check_finite("log_steady", log_steady)
        self.mesh, self.coefficient, self._seen, self.nonnegative = mesh, coefficient, False, nonnegative
        step, steady = np.diff(log_steady), np.exp(log_steady)
        conductance = coefficient * mesh.face_conductances()[1:-1]
        from_right, from_left = conductance * bernoulli(step), conductance * bernoulli(-step)
        leaving, to_device = np.append(from_left, 0.0) + np.append(0.0, from_right), mesh.backend.to_device
        self._from_right, self._from_left, self._leaving = map(to_device, (from_right, from_left, leaving))
        self._steady = to_device(np.where(steady > _TINY, steady, 1.0))
        self._within = to_device((steady[:-1] > _TINY) & (steady[1:] > _TINY))

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """Return the longest step for splitting, ½ ∫|p| / ∫|∂ₜp|: drift and diffusion move at most half of the mass."""
        amount = self.mesh.backend.dot(self.mesh.volumes, values if self.nonnegative else np.abs(values))
        return time_to_move(amount, np.abs(self._gain(values)).sum())

    def prepare(self, time: float, values: Floats) -> Step:
        """Store ∂ₜp of a density p = ``values`` (cells,) for ``rate``; return ∞, no bound of the step."""
        self._rate = self._gain(values) / self.mesh.volumes
        return np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        rate += self._rate

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` (cells,) by dt in place; return the least value before negative ones are removed.

        The result is ∞ for fields of any sign, which are not limited. ``limited`` = False keeps negative values.
        """
        check_array("values", values, (self.mesh.cells,))
        if not self._seen:
            check_finite("values", values)
            self._seen = True
        halves = self._euler(dt / 2, self._euler(dt / 2, values))
        correction = halves - self._euler(dt, values)
        values[:] = halves + correction
        if not self.nonnegative:
            return np.inf  # nothing is limited
        lowest: Step = values.min()
        if limited and lowest < 0:
            np.maximum(halves, 0.0, out=values)  # negative by rounding only
            self._add_limited(correction, values)
        return lowest

    def _gain(self, values: Floats) -> Floats:
        """Return the mass that each cell gains per time (cells,), exactly 0 for the steady density p = p̄.

        Fluxes are formed from differences of p/p̄ where p̄ does not underflow.
        """
        xp = self.mesh.backend.xp
        ratio = values / self._steady
        flux = xp.where(
            self._within,
            self._from_right * self._steady[1:] * xp.diff(ratio),
            self._from_right * values[1:] - self._from_left * values[:-1],
        )
        outflow: Floats = xp.append(flux, 0.0) - xp.append(0.0, flux)
        return outflow

    def _euler(self, dt: float, values: Floats) -> Floats:
        """Return the implicit Euler step (1 − dt L)⁻¹ p of p = ``values`` (cells,), with ∂ₜp = L p.

        The formula p + (1 − dt L)⁻¹ dt L p keeps steady states exactly.
        """
        diagonal = self.mesh.volumes + dt * self._leaving
        change: Floats = self.mesh.backend.solve_tridiagonal(
            -dt * self._from_left, diagonal, -dt * self._from_right, dt * self._gain(values)
        )
        return values + change

    def _add_limited(self, correction: Floats, values: Floats) -> None:
        """Add a correction (cells,) of total mass 0 to a density ``values`` in place, as fluxes between neighbors.

        Each flux is limited such that no cell sends more than its mass.
        """
        xp = self.mesh.backend.xp
        flux = -_running_sums(correction * self.mesh.volumes)[:-1]  # to the right, through inner faces
        right, left = np.maximum(flux, 0.0), np.maximum(-flux, 0.0)
        sent = xp.append(right, 0.0) + xp.append(0.0, left)
        cell_masses = values * self.mesh.volumes
        short = sent > cell_masses
        share = xp.where(short, cell_masses, 1.0) / xp.where(short, sent, 1.0)
        flux = right * share[:-1] - left * share[1:]
        change = xp.append(0.0, flux) - xp.append(flux, 0.0)
        values[:] = np.maximum(values + change / self.mesh.volumes, 0.0)


def _running_sums(values: Floats) -> Floats:
    """Return the running sums Σ_{j ≤ i} values[j] (n,), added in an order that is the same on all devices."""
    sums, step = values.copy(), 1
    while step < len(sums):
        sums[step:] = sums[step:] + sums[:-step]
        step *= 2
    return sums


_TINY = 1e-250  # smaller p̄ might overflow the ratio p/p̄


def bernoulli(q: Floats) -> Floats:
    """Return the Bernoulli function B(q) = q/(e^q − 1), with B(0) = 1, without overflow."""
    size = np.abs(q)
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        small = np.where(size > 0, size * np.exp(-size) / -np.expm1(-size), 1.0)
    return np.asarray(np.where(q > 0, small, small + size))
