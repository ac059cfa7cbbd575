"""Diffusion div(D∇u) with constant, cellwise, fieldwise or tensor coefficients, and Δφ(u)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from ..backends import backend_for
from ..mesh.arguments import check_count
from ..mesh.boundaries import (
    COMPLEX,
    REAL,
    Boundaries,
    Flux,
    HasBoundaryData,
    Outflow,
    Part,
    Robin,
    Value,
    boundary_parts,
)
from ..mesh.checks import (
    check_array,
    check_call,
    check_field,
    check_finite,
    check_mesh,
    check_number,
    check_reals,
    shape_of,
)
from ..mesh.mesh import Floats, Mesh
from . import rkl2
from .consistency import has_linear_precision
from .operators import (
    FaceOperator,
    Operator,
    TensorOperator,
    add_at,
    diffusion_source,
    has_cubics,
    is_complex_number,
    links_matrix,
    share_of_data,
)
from .term import Step

Coefficient = complex | Floats | Callable[[Floats], Floats]
CONDITIONS = (Outflow, Value, Flux, Robin)
ON_BOUNDARY = 1e-6  # sine of the angle between a boundary face and the way from the cell center to its center
LEAST_PART = 1 / 8  # of the longest explicit step: diffusion without data moves half of the mass in a fourth or more


class Diffusion(HasBoundaryData):
    """Diffusion div(D∇u) of one field or several, as an explicit or a stiff term.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body, closed or with a boundary.
    D : float, complex, array, callable, list or tuple
        Coefficient: a number ≥ 0, or a complex number of a real part ≥ 0 for complex fields; an array (cells,) of
        numbers ≥ 0; a symmetric tensor without negative eigenvalues, (d, d) or (cells, d, d); or a function of the
        centers x (cells, d) that returns one of these. A list or tuple has one of these for each field. The fluxes of a
        tensor need a limiter for u ≥ 0.
    boundaries : dict, optional
        Condition of each part of the boundary: :class:`~solvers.Wall` (the default), :class:`~solvers.Outflow`,
        :class:`~solvers.Value`, :class:`~solvers.Flux` or :class:`~solvers.Robin`. ``step`` takes data g(t, x) as
        linear in t between both ends of the step.
    nonnegative : bool, default False
        Whether u is a density ≥ 0, which steps keep. Fields of any sign are not limited.
    limiter_rounds : int, default 50
        Maximum iterations of the flux limiter. Values that are still negative, also with a tensor, become zero, and
        the positive ones are scaled to keep the mass.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, D neither numbers nor a function that returns these, ``limiter_rounds`` no whole number,
        or a boundary condition of another type.
    ValueError
        If D is negative, not finite, of another shape, or complex for a density, a tensor not symmetric,
        ``limiter_rounds`` negative, a part of the boundary unknown, the product of D and the coefficient a of a
        :class:`~solvers.Robin` of negative real part, or if arrays of the mesh contradict each other. In a step, if u
        has another shape. In the first ``step``, if u has NaN.

    Notes
    -----
    Fields are u (cells,) or (fields, cells). The term is of second order in time and space. For a number D on curves
    and in boxes of equal cells between walls it is of fourth order in space. For a tensor a :class:`~solvers.Robin`
    condition with b > 0 is of first order in space. Walls conserve mass. On rings of latitude
    with a number D, densities have two-point fluxes: the coordinates x, y and z of the cell centers are eigenvectors
    with the eigenvalue of Δ. Fields of any sign have fluxes of fitted cubics there, whose rates are of fourth order.

    ``step`` is RKL2 super-time-stepping: s stages cover (s² + s − 2)/4 explicit steps, so the cost grows as √dt without
    a parabolic limit. The stages are polynomials of the operator L, so the step is u + L ψ. Where a density undershoots
    zero next to an unresolved cell, the fluxes of ψ are limited to the mass that each cell has and receives.

    References
    ----------
    Meyer, Balsara and Aslam (2014), section 2.3: RKL2.

    Examples
    --------
    On the unit sphere, the coordinate z is an eigenvector of Δ with the eigenvalue −2:

    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, solve, sphere
    >>> mesh = sphere(16)
    >>> z = mesh.centers[:, 2]
    >>> equation = Equation(mesh, [Diffusion(mesh, 0.1, nonnegative=True)])
    >>> u = solve(equation, 1 + z, (0, 1)).u[-1]
    >>> bool(np.abs(u - (1 + np.exp(-0.2) * z)).max() < 1e-5)
    True
    """

    def __init__(
        self,
        mesh: Mesh,
        D: Coefficient | list[Coefficient] | tuple[Coefficient, ...],
        *,
        boundaries: Boundaries | None = None,
        nonnegative: bool = False,
        limiter_rounds: int = 50,
    ) -> None:
        check_mesh(mesh)
        check_count("limiter_rounds", limiter_rounds, 0)
        self.limiter_rounds = limiter_rounds
        each = [_coefficient_at_centers(mesh, one) for one in (D if isinstance(D, (list, tuple)) else [D])]
        for coefficient in each:
            _check_coefficient(mesh, coefficient)
        if nonnegative and any(map(is_complex_number, each)):
            raise ValueError("nonnegative = True: expected a real diffusion coefficient")
        self.mesh, self.nonnegative, self._seen = mesh, nonnegative, False
        self._parts = diffusion_parts(mesh, boundaries)
        self.is_complex = any(map(is_complex_number, each)) or any(part.is_complex for part in self._parts)
        for part, one in product(self._parts, each):
            factor = getattr(part.condition, "a", 0.0) * (1.0 if shape_of(one) else one)
            if factor.real < 0:
                raise ValueError(f"boundaries[{part.tag!r}] with a D = {factor}: expected a real part >= 0, no growth")
        self.is_autonomous = all(part.is_constant for part in self._parts)
        self._by_field = len(each) if isinstance(D, (list, tuple)) else 0
        self._shares = [[share_of_data(mesh, one, part) for part in self._parts] for one in each]
        self._operators = [_operator(mesh, one, self._parts, nonnegative) for one in each]
        self._explicit_dt = min(operator.explicit_dt for operator in self._operators)
        self._rate: Any = None

    def prepare(self, time: float, values: Floats) -> Step:
        """Store div(D∇u) of a state for ``rate``, boundary data included; return the longest explicit Euler step."""
        self._check(values)
        self._rate = self._rates(time, values)
        return self._explicit_dt

    def rate(self, dt: float, rate: Floats) -> None:
        """Add div(D∇u), the rate of change of the state u last given to ``prepare``, to the array ``rate``."""
        check_field("rate", rate, self.mesh, self._by_field, "fc")
        rate += self._rate

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """Return ½ ∫ρ / ∫abs(div D∇ρ), about the age of a spot that began as a point mass.

        High modes lose at most half of their amplitude in such a step. No other term limits the step where all mass is
        in one cell, whose velocity is zero. For fields of any sign, ∫abs(u − ū) + 10⁻³ ∫abs(u) replaces ∫ρ.

        Parameters
        ----------
        values : (cells,) or (fields, cells) array
            Fields u.
        time : float, default 0.0
            Time, for the data of the boundary.

        Returns
        -------
        float
            Least step of all fields; ∞ for a steady state.
        """
        steps = self.longest_steps(values, time)
        return reduce(np.minimum, steps)

    def longest_steps(self, values: Floats, time: float = 0.0) -> list[Step]:
        """Return for each field the time in which its diffusion moves half of its mass, ½ ∫ρ / ∫abs(div D∇ρ).

        For fields of any sign, ∫abs(u − ū) + 10⁻³ ∫abs(u) replaces ∫ρ, where ū is the mean. With data on the boundary
        each time is at least an eighth of the longest explicit step, also for u = 0. The least of these times is
        :meth:`longest_step`.

        Parameters
        ----------
        values : (cells,) or (fields, cells) array
            Fields u.
        time : float, default 0.0
            Time, for the data of the boundary.

        Returns
        -------
        list of float
            Longest step of each field; ∞ for a steady one.
        """
        self._check(values)
        dot, volumes = self.mesh.backend.dot, self.mesh.volumes
        rows, changes = values.reshape(-1, self.mesh.cells), self._rates(time, values).reshape(-1, self.mesh.cells)
        operators = self._operators if self._by_field else self._operators * len(rows)
        return [
            np.maximum(
                time_to_move(
                    dot(volumes, row) if self.nonnegative else amplitude(self.mesh, row), dot(volumes, np.abs(change))
                ),
                LEAST_PART * operator.explicit_dt if self._parts else 0.0,
            )
            for row, change, operator in zip(rows, changes, operators, strict=True)
        ]

    def jacobian(self, fields: int) -> list[Any]:
        """Return one sparse matrix L (cells, cells) for each field u: the derivative of its rate of change L u + b.

        The sources b (cells,) are those of the boundary data.
        """
        found = [operator.coefficient * operator.matrix() for operator in self._operators]
        return found if self._by_field else found * fields

    def laplacian(self, values: Floats, out: Floats) -> None:
        """Write Δu to ``out`` if D is a number, else div(D∇u), without the data of the boundary.

        Parameters
        ----------
        values : (cells,) array
            Field u.
        out : (cells,) array
            Result.
        """
        check_array("values", values, (self.mesh.cells,))
        check_array("out", out, (self.mesh.cells,))
        self._operators[0].apply(values, out)

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` by dt in place; return the least value before negative values of a density are removed.

        The result is ∞ for fields of any sign, which are not limited. ``limited`` = False keeps negative values. The
        data of the boundary are taken from ``time`` to time + dt.
        """
        self._check(values)
        if not self._seen:
            check_finite("values", values)
            self._seen = True
        rows = values.reshape(-1, self.mesh.cells)
        fields = len(rows) if values.ndim == 2 else 0
        lowest = [self._step_field(k, time, dt, row, limited, fields) for k, row in enumerate(rows)]
        return reduce(np.minimum, lowest)

    def step_each(self, dt: Floats, values: Floats) -> None:
        """Advance densities between walls in place, each by a time step of its own.

        Parameters
        ----------
        dt : (fields,) array
            Time steps; fields with a step of 0 are unchanged.
        values : (fields, cells) array
            Densities.
        """
        for k, (row, length) in enumerate(zip(values, dt.tolist(), strict=True)):
            if length > 0:
                self._step_field(k, 0.0, length, row, True, len(values))

    def _step_field(self, field: int, time: float, dt: float, values: Floats, limited: bool, fields: int) -> Step:
        """Advance field number ``field`` of ``fields``, ``values`` (cells,), by dt in place, as in :meth:`step`."""
        operator = self._operators[field if self._by_field else 0]
        if operator.coefficient == 0.0 and not self._parts:
            return np.inf if not self.nonnegative else values.min()
        start = values.copy()
        if self._parts:
            values += self._change(field, time, dt, start, fields)
        else:
            potential = self._potential(operator, dt, start, values)
        if not self.nonnegative:
            return np.inf  # nothing is limited
        lowest: Step = values.min()
        if limited and lowest < 0:
            if isinstance(operator, FaceOperator) and not self._parts:
                self._limit(operator, start, potential, values)
            clip_to_zero(self.mesh, values)
        return lowest

    def _potential(self, operator: Operator, dt: float, start: Floats, values: Floats) -> Floats:
        """Return the potential ψ of one RKL2 step from ``start``, and write the end u = start + A ψ to ``values``.

        A is ``operator.apply``: div(D∇·), divided by D if D is a number. A limiter may then limit the fluxes of ψ
        between cells.
        """
        stages = self._stages(dt, operator.explicit_dt)
        step = rkl2.width(stages) * dt * operator.coefficient
        before = self.mesh.backend.xp.zeros_like(start)
        potential: Floats = start * (rkl2.FIRST * step)
        for j in range(2, stages + 2):
            operator.apply(potential, values)
            values += start
            if j <= stages:
                mu, nu, of_start = rkl2.stage_weights(j)
                values -= of_start * start
                values *= mu * step
                values += mu * potential
                before *= nu
                before += values
                potential, before = before, potential
        return potential

    def _change(self, field: int, time: float, dt: float, start: Floats, fields: int) -> Floats:
        """Return u(time + dt) − u(time) of one field with ∂ₜu = L u + b from u = ``start``, by one RKL2 step.

        The source b of the boundary data is taken as linear in time. The stages solve ∂ₜd = L d + (L start + b) for d =
        u − start, so that steady states are kept to rounding.
        """
        operator = self._operators[field if self._by_field else 0]
        first, source = self._rate_of(field, time, start, fields), self._source(field, time, fields)
        stages = self._stages(dt, operator.explicit_dt)
        step = rkl2.width(stages) * dt
        rise = 0.0 if source is None else self._source(field, time + dt, fields) - source
        before, change = self.mesh.backend.xp.zeros_like(start), rkl2.FIRST * step * first
        nodes = [0.0, rkl2.FIRST * rkl2.width(stages)]
        rate: Floats = self.mesh.backend.empty(start.shape, start.dtype)
        for j in range(2, stages + 1):
            mu, nu, of_start = rkl2.stage_weights(j)
            operator.apply(change, rate)
            rate *= operator.coefficient
            rate += nodes[-1] * rise + (1 - of_start) * first
            before = mu * change + nu * before + mu * step * rate
            before, change = change, before
            nodes.append(mu * nodes[-1] + nu * nodes[-2] + mu * rkl2.width(stages) * (1 - of_start))
        return change

    def _source(self, field: int, time: float, fields: int) -> Any:
        """Return the rate of change (cells,) of a field by the boundary data g; None if no boundary has data."""
        shares = self._shares[field if self._by_field else 0]
        source = diffusion_source(self.mesh, shares, self._parts, time, fields)
        return source if source is None or source.ndim == 1 else source[field]

    def _rates(self, time: float, values: Floats) -> Floats:
        """Return the rates of change L u + b of the fields u = ``values``, in the same shape.

        L u is div(D∇u) with boundary data 0, and b is the source of the boundary data.
        """
        rows = values.reshape(-1, self.mesh.cells)
        fields = len(rows) if values.ndim == 2 else 0
        of_rows = [self._rate_of(k, time, row, fields) for k, row in enumerate(rows)]
        rates: Floats = self.mesh.backend.xp.stack(of_rows).reshape(values.shape)
        return rates

    def _rate_of(self, field: int, time: float, values: Floats, fields: int) -> Floats:
        """Return the rate of change (cells,) of one field by diffusion and boundary data."""
        operator = self._operators[field if self._by_field else 0]
        rate: Floats = _apply(operator, values)
        if operator.coefficient != 1.0:
            rate *= operator.coefficient
        source = self._source(field, time, fields)
        if source is not None:
            if source.dtype.kind == "c" != values.dtype.kind:
                with_data = (part for part in self._parts if not isinstance(part.condition, Outflow))
                tag = next(part.tag for part in with_data if np.iscomplexobj(part.data(time, fields)))
                raise TypeError(f"boundaries[{tag!r}] returns complex numbers for a real field: expected a complex u0")
            rate += source
        return rate

    def _check(self, values: Floats) -> None:
        """Raise an error unless ``values`` are fields on the mesh, one for each coefficient."""
        check_field("values", values, self.mesh, self._by_field, "fc")

    def _limit(self, operator: FaceOperator, start: Floats, potential: Floats, values: Floats) -> None:
        """Write the end u = start + A ψ of a step of a density to ``values``, with fluxes limited such that u ≥ 0.

        A is ``operator``, ψ the potential of the step. No cell sends more than the mass that it had and receives.
        """
        mesh, backend = self.mesh, self.mesh.backend
        sent = operator.outward_flux(potential)
        keep, next_keep = backend.xp.ones_like(values), backend.empty(values.shape, values.dtype)
        neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
        for _ in range(self.limiter_rounds):
            backend.launch(
                backend.limit_outgoing_flux,
                mesh.cells,
                mesh.volumes,
                *neighborhood,
                start,
                sent,
                keep,
                next_keep,
                values,
            )
            keep, next_keep = next_keep, keep
            if values.min() >= 0:
                return

    @staticmethod
    def _stages(dt: float, explicit_dt: float) -> int:
        """Return the number of RKL2 stages of a step: the least odd s ≥ 3 with dt ≤ explicit_dt · (s² + s − 2)/4."""
        stages = int(np.ceil((np.sqrt(9 + 16 * dt / explicit_dt) - 1) / 2))
        return max(3, stages + 1 - stages % 2)


class NonlinearDiffusion:
    """Nonlinear diffusion Δφ(u) for an increasing φ, as u² in a porous medium or log u: an explicit term.

    Two-point fluxes of φ are of second order where u is smooth, and at least of first order at a front, where
    φ'(u) = 0. A step of the stable length makes no new extremum.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body, closed or with a boundary.
    phi : callable
        Function φ of an array u, (cells,) or (fields, cells), that returns an array of the same shape. φ acts on each
        number. Where φ(u) is above φ(0) or undefined for u < 0, as u² or √u, it is replaced by 2φ(0) − φ(−u).
    boundaries : dict, optional
        Condition of each part of the boundary: :class:`~solvers.Wall` (the default), :class:`~solvers.Outflow`,
        :class:`~solvers.Value` of u, or :class:`~solvers.Flux`.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, ``phi`` no function of u or its result no array of floating-point numbers, or a boundary
        condition of another type.
    ValueError
        If a part of the boundary is unknown, or arrays of the mesh contradict each other. In a step, if φ decreases, or
        returns another shape.

    References
    ----------
    Vázquez, The Porous Medium Equation (2007).

    Examples
    --------
    Barenblatt's solution of ∂ₜu = Δu² ends at x = t^(1/3), where its height is t^(−1/3)/12:

    >>> import numpy as np
    >>> from solvers import Equation, NonlinearDiffusion, interval, solve
    >>> mesh = interval(-2.5, 2.5, 50)
    >>> x = mesh.centers[:, 0]
    >>> equation = Equation(mesh, [NonlinearDiffusion(mesh, lambda u: u**2)])
    >>> u = solve(equation, np.maximum(0, 1 - x**2) / 12, (1, 8)).u[-1]
    >>> bool(np.abs(u - np.maximum(0, 1 - (x / 2) ** 2) / 24).max() < 2e-4)
    True
    """

    only_real = True

    def __init__(self, mesh: Mesh, phi: Callable[[Floats], Floats], *, boundaries: Boundaries | None = None) -> None:
        check_mesh(mesh)
        check_call("phi", phi, "u")
        self.mesh, self.phi = mesh, phi
        self._parts = diffusion_parts(mesh, boundaries, (Outflow, Value, Flux), REAL)
        self.is_autonomous = all(part.is_constant for part in self._parts)
        self._operator = FaceOperator(mesh, mesh.backend.xp.ones(mesh.cells), self._parts)
        self._rate: Any = None

    def prepare(self, time: float, values: Floats) -> Step:
        """Store Δφ(u) of a state for ``rate``; return the largest explicit Euler step that makes no new extremum."""
        check_field("values", values, self.mesh)
        level = self._level(values)
        rows = level.reshape(-1, self.mesh.cells)
        rates = self.mesh.backend.xp.stack([self._rate_of(row) for row in rows]).reshape(values.shape)
        fields = len(values) if values.ndim == 2 else 0
        for part in self._parts:
            if not isinstance(part.condition, Outflow):
                rates = add_at(self.mesh, rates, part.cells, self._boundary_rates(part, part.data(time, fields)))
        self._rate = rates
        return self._stable_step(values, level)

    def rate(self, dt: float, rate: Floats) -> None:
        """Add Δφ(u), the rate of change of the state u last given to ``prepare``, to the array ``rate``."""
        rate += self._rate

    def jacobian(self, fields: int) -> list[Any]:
        """Return one sparse matrix (cells, cells) for each field: the derivative of Δφ(u) by u at the prepared state.

        φ' is a difference quotient, and conditions on the boundary are left out.
        """
        from scipy.sparse import diags

        links = links_matrix(self.mesh.on_host, np.asarray(self.mesh.face_conductances()))
        return [links @ diags(slope) for slope in self._slopes.reshape(fields, -1)]

    def _level(self, values: Floats) -> Floats:
        """Return φ(u) for u = ``values``, and 2φ(0) − φ(−u) for u < 0 unless φ(u) ≤ φ(0): φ increases also there."""
        xp = self.mesh.backend.xp
        with np.errstate(invalid="ignore"):
            level: Floats = self.phi(values)
            check_array("phi", level, values.shape)
            if not (values < 0).any():
                return level
            zero = self.phi(xp.zeros_like(values))
            found: Floats = xp.where((values < 0) & ~(level <= zero), 2 * zero - self.phi(-values), level)
            return found

    def _rate_of(self, level: Floats) -> Floats:
        """Return the rate of change Δφ (cells,) for the values φ(u) = ``level``."""
        rate: Floats = self.mesh.backend.empty(level.shape, level.dtype)
        self._operator.apply(self.mesh.backend.xp.ascontiguousarray(level), rate)
        return rate

    def _boundary_rates(self, part: Part, g: Floats) -> Floats:
        """Return the rates of change (n,) or (fields, n) of u by boundary data g, in the n cells at ``part``."""
        coming = g if isinstance(part.condition, Flux) else self._level(g) / part.distances
        return coming * part.areas / self.mesh.volumes[part.cells]

    def _stable_step(self, values: Floats, level: Floats) -> Step:
        """Return 1/(max φ'(u) · max Σ c/V), a stable explicit Euler step; Σ c/V sums conductances c of a cell's faces.

        ``level`` is φ(values), and φ' a difference quotient. Raises ValueError where φ decreases by more than rounding.
        """
        small = 1e-6 * (np.abs(values).max() + 1e-30)
        slope = (self._level(values + small) - level) / small
        if slope.min() < -1e-6 * np.abs(slope).max():
            at = int(slope.reshape(-1).argmin())
            raise ValueError(
                f"phi decreases at u = {float(values.reshape(-1)[at]):.6g}: expected an increasing function"
            )
        self._slopes = slope
        with np.errstate(divide="ignore"):
            step: Step = np.divide(1.0, slope.max() * self._operator_rate)
            return step

    @property
    def _operator_rate(self) -> float:
        """Return 1 / the largest explicit Euler step of Δ without a new extremum."""
        return 1.0 / self._operator.explicit_dt


def _apply(operator: Operator, values: Floats) -> Any:
    """Return the operator, without its coefficient, applied to a real or complex field (cells,)."""
    if values.dtype.kind == "c":
        found = _apply(operator, values.real.copy()) + 1j * _apply(operator, values.imag.copy())
        return found if operator.decay is None else found - 1j * operator.decay.imag * values
    found = operator.mesh.backend.empty(values.shape, values.dtype)
    operator.apply(values, found)
    return found


def diffusion_parts(
    mesh: Mesh, boundaries: Boundaries | None, allowed: tuple[type, ...] = CONDITIONS, kinds: str = COMPLEX
) -> tuple[Part, ...]:
    """Return the parts of the boundary with conditions, as :func:`~solvers.mesh.boundaries.boundary_parts` does.

    A condition u = g takes g at the cell centers that lie on the boundary, as on triangles: the distance from the cell
    center to the face center would be an error of first order.
    """
    parts, host = [], mesh.on_host
    for part in boundary_parts(mesh, boundaries, allowed, kinds):
        if isinstance(part.condition, Value):
            centers = host.centers[mesh.backend.to_host(part.cells)]
            ways = host.shortest(part.points - centers)
            across = np.abs((ways * mesh.backend.to_host(part.normals)).sum(axis=1))
            is_on = across <= ON_BOUNDARY * np.linalg.norm(ways, axis=1)
            part = replace(part, points=np.where(is_on[:, None], centers, part.points))
        parts.append(part)
    return tuple(parts)


def _operator(mesh: Mesh, D: Any, parts: Any, monotone: bool) -> Operator:
    """Return the operator div(D∇u) on a mesh, with one coefficient D and conditions on the boundary ``parts``.

    Fluxes between cells are two-point fluxes, monotone, or use gradients, as :func:`_gradients` decides. If
    ``monotone``, gradients are used for a tensor D only.
    """
    return TensorOperator(mesh, D, parts) if _gradients(mesh.on_host, D, monotone) else FaceOperator(mesh, D, parts)


def _gradients(host: Mesh, D: Any, monotone: bool) -> bool:
    """Return whether the diffusive fluxes between cells need gradients instead of two cells alone.

    A tensor D needs gradients. Unless ``monotone``, so does a number D on rings of latitude, where cubics are fitted,
    and on meshes whose two-point fluxes are inconsistent.
    """
    if len(shape_of(D)) > 1 or monotone:
        return len(shape_of(D)) > 1
    return (not shape_of(D) and has_cubics(host)) or not has_linear_precision(host)


def _coefficient_at_centers(mesh: Mesh, D: Any) -> Any:
    """Return the diffusion coefficient D as numbers: if D is a function of x, its values at the cell centers."""
    if not callable(D):
        return D
    check_call("diffusion coefficient", D, "x")
    found = D(mesh.centers)
    check_reals("diffusion coefficient", found)
    return np.asarray(found, dtype=np.float64)


def _check_coefficient(mesh: Mesh, D: Any) -> None:
    """Raise an error for a diffusion coefficient of a wrong type, shape or sign."""
    check_reals("diffusion coefficient", D, kinds="fiubc" if is_complex_number(D) else "fiub")
    if is_complex_number(D):
        if not (D.real >= 0 and np.isfinite(D)):
            raise ValueError(f"diffusion coefficient = {D}: expected a finite number of a real part >= 0")
        return
    if not shape_of(D):
        check_number("diffusion coefficient", float(D))
        return
    d = mesh.centers.shape[1]
    if shape_of(D) not in ((mesh.cells,), (d, d), (mesh.cells, d, d)):
        raise ValueError(
            f"diffusion coefficient of shape {shape_of(D)}: expected a number, ({mesh.cells},), ({d}, {d}) or"
            f" ({mesh.cells}, {d}, {d}), an array; for several fields a list of these"
        )
    check_finite("diffusion coefficient", D)
    host = np.asarray(mesh.backend.to_host(D), dtype=np.float64)
    minimum = host.min() if host.ndim == 1 else np.linalg.eigvalsh(host).min()
    rounding = 1e-12 * np.abs(host).max()
    if minimum < -rounding * (host.ndim > 1) or (
        host.ndim > 1 and np.abs(host - host.swapaxes(-1, -2)).max() > rounding
    ):
        raise ValueError("diffusion coefficient: expected numbers >= 0, symmetric tensors without negative eigenvalues")


_PART = 0.5  # fraction of the mass that a step may move: with cfl ½ the age of a spot grows by a third to a half a step


def time_to_move(mass: Step, rate: Step) -> Step:
    """Return the time in which diffusion that moves mass at ``rate`` = ∫|∂ₜu| moves half of ``mass``; ∞ for rate 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step: Step = backend_for(rate).xp.where(rate > 0, _PART * mass / rate, np.inf)
        return step


def amplitude(mesh: Mesh, values: Floats) -> Step:
    """Return the size ∫|u − ū| + 10⁻³ ∫|u| of a field u = ``values`` of any sign, with mean ū, for ``longest_step``.

    The second summand keeps smaller deviations and rounding from limiting the step.
    """
    dot, mean = mesh.backend.dot, mesh.backend.dot(mesh.volumes, values) / mesh.volume
    return dot(mesh.volumes, np.abs(values - mean)) + 1e-3 * dot(mesh.volumes, np.abs(values))


def clip_to_zero(mesh: Mesh, values: Floats) -> None:
    """Set negative ``values`` to zero in place and scale the positive ones to keep the mass Σ V u.

    All values become zero if the mass is negative.
    """
    if values.min() < 0:
        dot, mass = mesh.backend.dot, mesh.backend.dot(mesh.volumes, values)
        np.maximum(values, 0.0, out=values)
        positive = dot(mesh.volumes, values)
        values *= np.maximum(mass, 0.0) / np.maximum(positive, np.finfo(float).tiny)
