"""Drift and diffusion in a potential on every mesh, with the Gibbs density steady to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...mesh.checks import (
    check_array,
    check_call,
    check_field,
    check_finite,
    check_mesh,
    check_number,
    check_on_host,
    check_reals,
    ignores_time,
    takes,
)
from ...mesh.mesh import Floats, Mesh
from ..diffusion import amplitude, time_to_move
from ..term import Step
from .gibbs_fluxes import FluxesInPotential, GibbsFluxes

MAX_SOLVERS = 6  # in the cache, one for each step length
NEGLIGIBLE = 1e-8  # fraction of negative mass that is clipped; above, the step of a density is of first order

Potential = Floats | Callable[[Floats], Floats] | Callable[[float, Floats], Floats]


class DriftDiffusion:
    """Drift and diffusion div(D∇u + u∇V) in a potential V, with walls, as an explicit or a stiff term.

    The fluxes are zero for the Gibbs density u = e^(−V/D) on any cells. Mass is kept to rounding.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body, closed or with walls.
    D : float
        Diffusion coefficient > 0; without diffusion use :class:`~solvers.Advection`. Good values: cells so small that V
        differs by at most D/2 between neighbors where the density is large. Where V differs by several D, fluxes are
        of second order and tend to upwind fluxes.
    potential : (cells,) array or callable
        V in the cells, or a function V(x) of the centers x (cells, d). Or a function (time, u) → V (cells,) of the
        state, such as a convolution: an equation then treats the term as explicit, and ``step`` evaluates V for the
        state at its beginning and the time at its middle.
    nonnegative : bool, default False
        Whether u is a density ≥ 0, which steps keep. With V a function of u, the fluxes are then of order 2 in space.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, D no number, or V neither a function nor an array of real numbers.
    ValueError
        If D is not positive and finite, V has another shape or is not finite, the mesh is not on the CPU, or arrays of
        the mesh contradict each other. In a step, if u has another shape. In the first step, if u has NaN.

    Notes
    -----
    Fields are u (cells,) or (fields, cells), on the CPU. Fluxes are of fourth order in space on curves, tori and boxes
    of equal cells, else of second order. ``step`` extrapolates implicit Euler steps E, 2 E(½dt)² − E(dt), which is of
    second order and damps stiff modes. Where a density would undershoot, ``step`` takes E(½dt)² with two-point fluxes,
    which keep u ≥ 0.

    References
    ----------
    Scharfetter and Gummel (1969): two-point fluxes.

    Examples
    --------
    From a uniform density to the Gibbs density of the Ornstein–Uhlenbeck process, V = x²/2:

    >>> import numpy as np
    >>> from solvers import DriftDiffusion, Equation, interval, solve
    >>> mesh = interval(-5.0, 5.0, 40)
    >>> x = mesh.centers[:, 0]
    >>> gibbs = np.exp(-(x**2) / 2)
    >>> term = DriftDiffusion(mesh, 1.0, x**2 / 2, nonnegative=True)
    >>> u = solve(Equation(mesh, [term]), np.full(40, 0.1), (0, 20)).u[-1]
    >>> bool(np.abs(u - gibbs / (gibbs @ mesh.volumes)).max() < 1e-8)
    True
    """

    only_real = True

    def __init__(self, mesh: Mesh, D: float, potential: Potential, *, nonnegative: bool = False) -> None:
        check_mesh(mesh)
        check_on_host("DriftDiffusion", mesh)
        check_number("D", D, above=0)
        if callable(potential) and not takes(potential, 1):
            check_call("potential", potential, "t, u")
        elif callable(potential):
            of_place: Any = potential
            potential = of_place(mesh.centers)
        self.mesh, self.D, self.nonnegative = mesh, float(D), nonnegative
        self._potential: Any = potential
        self._fluxes = GibbsFluxes(mesh, self.D, monotone=nonnegative and callable(potential))
        self._rate, self._seen = np.zeros(0), False
        self.is_stiff = callable(potential)  # and nonlinear
        self.is_autonomous = not callable(potential) or ignores_time(potential)
        self._solvers: dict[tuple[float, bool], Any] = {}  # by step length, the most recently used last
        self._at: Any = None if callable(potential) else self._fluxes_in_potential(potential)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_solvers": {}}  # factorized matrices cannot be pickled

    @property
    def longest_step(self) -> Callable[..., Step]:
        """Return the function (values, time) → ½ ∫u / ∫abs(∂ₜu), the longest step for splitting.

        Returns
        -------
        callable
            Method of a stiff term.

        Raises
        ------
        AttributeError
            If the potential is a function of the state, since the term is explicit then.
        """
        if callable(self._potential):
            raise AttributeError("longest_step")
        return self._longest_step

    def prepare(self, time: float, values: Floats) -> Step:
        """Store the rate of change of u = ``values`` for ``rate``; return the longest explicit step with u ≥ 0."""
        self._check(values)
        self._update_potential(time, values)
        self._rate = self._rates(values)
        fastest = self._at.fastest
        return 1.0 / fastest if fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        """Add div(D∇u + u∇V), the rate of change of the state u last given to ``prepare``, to the array ``rate``."""
        check_field("rate", rate, self.mesh)
        rate += self._rate

    def jacobian(self, fields: int) -> list[Any]:
        """Return one sparse matrix (cells, cells) for each field: the derivative of its rate of change by its values.

        The potential V is the one set by ``prepare``, also where V depends on the fields.
        """
        from scipy.sparse import diags

        return [diags(1 / self.mesh.volumes) @ self._at.matrix()] * fields

    def _longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """Return the longest step for splitting, ½ ∫u / ∫|∂ₜu|, in which at most half of the mass moves.

        The result is the least of all fields. For fields of any sign, :func:`~solvers.terms.diffusion.amplitude`
        replaces ∫u.
        """
        dot, volumes = self.mesh.backend.dot, self.mesh.volumes
        rows, rates = values.reshape(-1, self.mesh.cells), self._rates(values).reshape(-1, self.mesh.cells)
        amounts = [dot(volumes, row) if self.nonnegative else amplitude(self.mesh, row) for row in rows]
        steps = [time_to_move(mass, dot(volumes, np.abs(rate))) for mass, rate in zip(amounts, rates, strict=True)]
        return min(float(step) for step in steps)

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` by dt in place; return the least value before negative values of a density are removed.

        The result is ∞ for fields of any sign, which are not limited. ``limited`` = False keeps negative values. The
        potential is evaluated at time + dt/2, for the state at the beginning.
        """
        self._check(values)
        self._update_potential(time + 0.5 * dt, values)
        rows = values.reshape(-1, self.mesh.cells)
        lowest = min(self._step_field(dt, row, limited) for row in rows)
        return lowest if self.nonnegative else np.inf

    def _check(self, values: Floats) -> None:
        """Raise an error unless ``values`` are fields on the mesh, finite at the first call."""
        check_field("values", values, self.mesh)
        if not self._seen:
            check_finite("values", values)
            self._seen = True

    def _step_field(self, dt: float, row: Floats, limited: bool) -> float:
        """Advance one field ``row`` (cells,) by dt in place; return the least value before limiting."""
        better = self._extrapolated_step(dt, row)[1]
        lowest = float(better.min())
        if self.nonnegative and limited:
            negative = -float(self.mesh.volumes @ np.minimum(better, 0.0))
            if negative > NEGLIGIBLE * float(self.mesh.volumes @ np.abs(row)):
                better = self._extrapolated_step(dt, row, monotone=True)[0]
            better = np.maximum(better, 0.0)
            total = float(self.mesh.volumes @ better)
            better *= float(self.mesh.volumes @ row) / total if total > 0 else 1.0  # mass to rounding
        row[:] = better
        return lowest

    def _extrapolated_step(self, dt: float, row: Floats, monotone: bool = False) -> tuple[Floats, Floats]:
        """Return the results of two implicit Euler steps ½dt from ``row``, and of their extrapolation to second order.

        With a step E, these are E(½dt)² u and 2 E(½dt)² u − E(dt) u. ``monotone``: with two-point fluxes alone.
        """
        halves = self._euler(dt / 2, self._euler(dt / 2, row, monotone), monotone)
        return halves, 2 * halves - self._euler(dt, row, monotone)

    def _euler(self, dt: float, values: Floats, monotone: bool) -> Floats:
        """Return the implicit Euler step (1 − dt L)⁻¹ u of u = ``values`` (cells,), with ∂ₜu = L u.

        The formula u + (1 − dt L)⁻¹ dt L u keeps steady states to rounding. ``monotone``: with two-point fluxes alone.
        """
        change: Floats = values + self._solver(dt, monotone)(dt * self._at.gain(values, monotone))
        return change

    def _update_potential(self, time: float, values: Floats) -> None:
        """Update the fluxes for the potential at a time and a state, if the potential is a function of these."""
        if callable(self._potential):
            self._at = self._fluxes_in_potential(self._potential(time, values))
            self._solvers.clear()

    def _fluxes_in_potential(self, potential: Floats) -> FluxesInPotential:
        """Return the fluxes in a potential; raise an error unless it is (cells,), real and finite."""
        check_reals("potential", potential)
        V = np.asarray(potential, dtype=np.float64)
        check_array("potential", V, (self.mesh.cells,))
        check_finite("potential", V)
        return self._fluxes.at(V)

    def _rates(self, values: Floats) -> Floats:
        """Return the rates of change of fields ``values``, in the same shape."""
        rates = np.empty_like(values)
        rows = zip(values.reshape(-1, self.mesh.cells), rates.reshape(-1, self.mesh.cells), strict=True)
        for row, rate in rows:
            rate[:] = self._at.gain(row) / self.mesh.volumes
        return rates

    def _solver(self, dt: float, monotone: bool) -> Any:
        """Return the function b → x with (W − dt A) x = b, cached for the last step lengths dt.

        W is the diagonal matrix of the cell volumes, and A u the mass that each cell gains per time. ``monotone``: A
        has two-point fluxes alone.
        """
        key = dt, monotone
        self._solvers[key] = self._solvers.pop(key, None) or self._factorize(dt, monotone)
        if len(self._solvers) > MAX_SOLVERS:
            del self._solvers[next(iter(self._solvers))]
        return self._solvers[key]

    def _factorize(self, dt: float, monotone: bool) -> Any:
        """Return the function b → x with (W − dt A) x = b, from a new sparse factorization.

        W is the diagonal matrix of the cell volumes, and A u the mass that each cell gains per time. ``monotone``: A
        has two-point fluxes alone.
        """
        from scipy.sparse import diags
        from scipy.sparse.linalg import splu

        return splu((diags(self.mesh.volumes) - dt * self._at.matrix(monotone)).tocsc()).solve
