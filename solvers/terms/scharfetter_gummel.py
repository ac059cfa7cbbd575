"""Drift and diffusion in a potential, on every mesh, with its Gibbs density steady to rounding."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_field, check_finite, check_mesh, check_number, takes
from ..mesh.mesh import Floats, Mesh
from .diffusion import amplitude, time_to_move
from .gibbs_fluxes import GibbsFluxes
from .term import Step

NEGLIGIBLE = 1e-8  # mass below zero, of all, that is cut off; with more a step of a density is of first order

Potential = Floats | Callable[[Floats], Floats] | Callable[[float, Floats], Floats]


class DriftDiffusion:
    """div(D∇u + u∇V), D > 0, with walls: explicit, or a stiff term, of second order.

    Fluxes of Scharfetter and Gummel (1969) through each face, D c (B(q) u_i − B(−q) u_j), q = (V_j − V_i)/D,
    B(q) = q/(e^q − 1), c the face's area over the distance of the centers: zero for u = e^{−V/D}, whatever the cells.
    ``step`` compares two implicit Euler half steps with a whole one, 2 E(½dt)² − E(dt), which damps what is stiff; a
    density that would undershoot takes the half steps themselves, which keep u ≥ 0. Mass is kept to rounding.

    D             a number > 0
    potential     V (cells,), or V(x) of centers x (cells, d); or (time, u) → V (cells,) of the state, as a
                  convolution: an equation then takes it for an explicit term, ``step`` takes V at the last ``prepare``
    nonnegative   whether u is a density ≥ 0, which steps keep

    u is (cells,) or (fields, cells). Raises ValueError and TypeError for input that does not fit.
    Good values: |q| up to 1 for second order, up to 0.1 where the density is for errors of 1e-4; larger ones are
    stable, with upwind fluxes.
    """

    def __init__(self, mesh: Mesh, D: float, potential: Potential, *, nonnegative: bool = False) -> None:
        check_mesh(mesh)
        check_number("D", D)
        if D == 0:
            raise ValueError("D = 0: expected a number > 0; without diffusion use Advection")
        if callable(potential) and not takes(potential, 2):
            check_call("potential", potential, "x")
            of_place: Any = potential
            potential = np.asarray(of_place(mesh.centers), dtype=np.float64)
        self.mesh, self.D, self.nonnegative = mesh, float(D), nonnegative
        self._potential: Any = potential
        is_of_state = callable(potential)
        self._two_point = GibbsFluxes(mesh, self.D, monotone=True)
        self._fluxes = self._two_point if nonnegative and is_of_state else GibbsFluxes(mesh, self.D, monotone=False)
        self._rate, self._is_set = np.zeros(0), False
        self.is_stiff = callable(potential)  # and nonlinear
        self._solver = lru_cache(maxsize=6)(self._factorized)
        if not callable(potential):
            self._set_potential(potential)
            self.longest_step = self._longest_step  # what an equation takes for a stiff, linear term

    def prepare(self, time: float, values: Floats) -> Step:
        """Rates of u = values; returns the longest explicit step that keeps u ≥ 0."""
        check_field("values", values, self.mesh)
        if callable(self._potential):
            self._set_potential(self._potential(time, values))
        self._rate = self._rates(values)
        fastest = self._fluxes.fastest
        return 1.0 / fastest if fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        check_field("rate", rate, self.mesh)
        rate += self._rate

    def jacobian(self, fields: int) -> list[Any]:
        """Of each field the sparse matrix of rates, V as at the last ``prepare``."""
        from scipy.sparse import diags

        return [diags(1 / self.mesh.volumes) @ self._fluxes.matrix()] * fields

    def _longest_step(self, values: Floats) -> Step:
        """½ ∫u/∫|∂ₜu|, as :class:`~solvers.terms.diffusion.Diffusion` has it."""
        dot, volumes = self.mesh.backend.dot, self.mesh.volumes
        rows, rates = values.reshape(-1, self.mesh.cells), self._rates(values).reshape(-1, self.mesh.cells)
        held = [dot(volumes, row) if self.nonnegative else amplitude(self.mesh, row) for row in rows]
        steps = [time_to_move(mass, dot(volumes, np.abs(rate))) for mass, rate in zip(held, rates, strict=True)]
        return min(float(step) for step in steps)

    def step(self, dt: float, values: Floats, limited: bool = True) -> Step:
        """Advance by dt in place; returns the least value before undershoots of a density were limited, else ∞."""
        check_field("values", values, self.mesh)
        if not self._is_set:
            self.prepare(0.0, values)
        rows = values.reshape(-1, self.mesh.cells)
        lowest = min(self._step_field(dt, row, limited) for row in rows)
        return lowest if self.nonnegative else np.inf

    def _step_field(self, dt: float, row: Floats, limited: bool) -> float:
        better = self._extrapolated(dt, row, self._fluxes)[1]
        lowest = float(better.min())
        if self.nonnegative and limited:
            negative = -float(self.mesh.volumes @ np.minimum(better, 0.0))
            if negative > NEGLIGIBLE * float(self.mesh.volumes @ np.abs(row)):
                better = self._extrapolated(dt, row, self._two_point)[0]
            better = np.maximum(better, 0.0)
            held = float(self.mesh.volumes @ better)
            better *= float(self.mesh.volumes @ row) / held if held > 0 else 1.0  # mass to rounding
        row[:] = better
        return lowest

    def _extrapolated(self, dt: float, row: Floats, fluxes: GibbsFluxes) -> tuple[Floats, Floats]:
        """Two implicit Euler steps of dt/2, and 2 E(½dt)² − E(dt)."""
        half = self._solver(dt / 2, fluxes)
        halves = _euler(fluxes, half, dt / 2, _euler(fluxes, half, dt / 2, row))
        return halves, 2 * halves - _euler(fluxes, self._solver(dt, fluxes), dt, row)

    def _set_potential(self, potential: Floats) -> None:
        check_array("potential", potential, (self.mesh.cells,))
        check_finite("potential", potential)
        for fluxes in {self._fluxes, self._two_point}:
            fluxes.set_potential(potential)
        self._is_set = True
        self._solver.cache_clear()

    def _rates(self, values: Floats) -> Floats:
        rates = np.empty_like(values)
        rows = zip(values.reshape(-1, self.mesh.cells), rates.reshape(-1, self.mesh.cells), strict=True)
        for row, rate in rows:
            rate[:] = self._fluxes.gain(row) / self.mesh.volumes
        return rates

    def _factorized(self, dt: float, fluxes: GibbsFluxes) -> Any:
        """Solver of (V − dt A) x = b, A the matrix of the fluxes."""
        from scipy.sparse import diags
        from scipy.sparse.linalg import splu

        return splu((diags(self.mesh.volumes) - dt * fluxes.matrix()).tocsc()).solve


def _euler(fluxes: GibbsFluxes, solve: Any, dt: float, values: Floats) -> Floats:
    """(1 − dt L)⁻¹ u = u + (1 − dt L)⁻¹ dt L u: what is steady stays so to rounding."""
    change: Floats = values + solve(dt * fluxes.gain(values))
    return change
