"""Drift and diffusion in a potential, on every mesh, with its Gibbs density steady to rounding."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_field, check_finite, check_mesh, check_number, takes
from ..mesh.mesh import Floats, Mesh
from .diffusion import amplitude, time_to_move
from .drift_diffusion import bernoulli
from .operators import links_matrix
from .term import Step

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
        host = mesh.on_host
        self._inner = np.flatnonzero(host.face_cells[:, 0] != host.face_cells[:, 1])
        self._first, self._second = host.face_cells[self._inner].T.astype(np.int64)
        self._conductances = self.D * np.asarray(mesh.face_conductances(), dtype=np.float64)[self._inner]
        self._ahead = self._back = np.zeros(0)
        self._fastest, self._rate = 0.0, np.zeros(0)
        self.is_stiff = callable(potential)  # and nonlinear
        self._solver = lru_cache(maxsize=4)(self._factorized)
        if not callable(potential):
            self._set_potential(potential)
            self.longest_step = self._longest_step  # what an equation takes for a stiff, linear term

    def prepare(self, time: float, values: Floats) -> Step:
        """Rates of u = values; returns the longest explicit step that keeps u ≥ 0."""
        check_field("values", values, self.mesh)
        if callable(self._potential):
            self._set_potential(self._potential(time, values))
        self._rate = self._rates(values)
        return 1.0 / self._fastest if self._fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        check_field("rate", rate, self.mesh)
        rate += self._rate

    def jacobian(self, fields: int) -> list[Any]:
        """Of each field the sparse matrix of rates, V as at the last ``prepare``."""
        ahead, back = np.zeros((2, self.mesh.faces))
        ahead[self._inner], back[self._inner] = self._ahead, self._back
        return [links_matrix(self.mesh.on_host, ahead, back)] * fields

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
        if not len(self._ahead):
            self.prepare(0.0, values)
        half, whole = self._solver(dt / 2), self._solver(dt)
        lowest = np.inf
        for row in values.reshape(-1, self.mesh.cells):
            halves = self._euler(half, dt / 2, self._euler(half, dt / 2, row))
            better = 2 * halves - self._euler(whole, dt, row)
            least = float(better.min())
            new = np.maximum(halves, 0.0) if self.nonnegative and limited and least < 0 else better
            if self.nonnegative and limited:
                held = float(self.mesh.volumes @ new)
                new *= float(self.mesh.volumes @ row) / held if held > 0 else 1.0  # mass to rounding
            row[:] = new
            lowest = min(lowest, least)
        return lowest if self.nonnegative else np.inf

    def _set_potential(self, potential: Floats) -> None:
        check_array("potential", potential, (self.mesh.cells,))
        check_finite("potential", potential)
        rise = (potential[self._second] - potential[self._first]) / self.D
        self._ahead, self._back = self._conductances * bernoulli(rise), self._conductances * bernoulli(-rise)
        leaving = np.bincount(self._first, self._ahead, self.mesh.cells)
        leaving += np.bincount(self._second, self._back, self.mesh.cells)
        self._fastest = float((leaving / self.mesh.volumes).max())
        self._leaving = leaving
        self._solver.cache_clear()

    def _rates(self, values: Floats) -> Floats:
        rates = np.empty_like(values)
        rows = zip(values.reshape(-1, self.mesh.cells), rates.reshape(-1, self.mesh.cells), strict=True)
        for row, rate in rows:
            rate[:] = self._gain(row) / self.mesh.volumes
        return rates

    def _gain(self, values: Floats) -> Floats:
        """(cells,) mass that each cell gains per time."""
        flux = self._ahead * values[self._first] - self._back * values[self._second]
        cells = self.mesh.cells
        return np.asarray(np.bincount(self._second, flux, cells) - np.bincount(self._first, flux, cells), np.float64)

    def _euler(self, solve: Any, dt: float, values: Floats) -> Floats:
        """(1 − dt L)⁻¹ u = u + (1 − dt L)⁻¹ dt L u: what is steady stays so to rounding."""
        change: Floats = values + solve(dt * self._gain(values))
        return change

    def _factorized(self, dt: float) -> Any:
        """Solver of (V − dt A) x = b, A the matrix of :meth:`_gain`."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.linalg import splu

        cells = np.arange(self.mesh.cells)
        rows = np.concatenate([cells, self._first, self._second])
        columns = np.concatenate([cells, self._second, self._first])
        entries = np.concatenate([self.mesh.volumes + dt * self._leaving, -dt * self._back, -dt * self._ahead])
        matrix = coo_matrix((entries, (rows, columns)), shape=(len(cells), len(cells)))
        return splu(matrix.tocsc()).solve
