"""Exponential Runge–Kutta steps (exponential time differencing) for a stiff term that is diagonalized."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...mesh.mesh import Floats
from ...terms.linear_solver import MAX_AXIS, Axes, Waves, modes_of
from ...terms.operators import links_matrix
from ..equation import Equation
from ..state import State
from .error_controlled import ErrorControlled

LAST = 16  # power of the series of φ₃: the remainder is 1/20! for |z| < 1


class ExponentialRungeKutta(ErrorControlled):
    """Exponential Runge–Kutta integrator of order 4 with error control for ∂ₜu = Lu + N(t, u), with diagonalized L.

    With c = (0, ½, ¼, 1, ½) and z = dt L, whose functions multiply the amplitudes of the eigenvectors of L, the stages
    are ::

        Uᵢ = u + cᵢ φ₁(cᵢz) dt (Lu + N₁) + Σⱼ aᵢⱼ(z) dt (Nⱼ − N₁) ,      Nⱼ = N(t + cⱼ dt, Uⱼ)

    Steps are exact for ∂ₜu = Lu + b and keep steady states. The weights satisfy the conditions of order 4 for stiff L,
    as those of equation (5.19) of Hochbruck and Ostermann, SIAM J. Numer. Anal. 43 (2005) 1069. The third stage is at ¼
    instead of ½, so that the weights of order 3 of the error estimate have other nodes in time: N(t) alone has an
    estimate, too.
    """

    order = 4
    _modes: Waves | Axes
    _weights: _Weights
    _dt = math.nan  # step of the weights

    def begin(self, state: State) -> None:
        """Compute the eigenvectors of the stiff term; raise ValueError where there are none."""
        modes = self.problem.modes(state.values)
        if modes is None:
            raise ValueError(f'method = "etd4" {_refusal(self.problem.equation, state.values)}')
        self._modes = modes
        super().begin(state)

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        problem, modes, time, start = self.problem, self._modes, state.time, state.values
        first = problem.explicit(time, start, dt)
        rate = modes.transform(dt * (first + problem.stiff(time, start)))

        def values_after(change: Floats) -> Floats:
            """Return u + change for the amplitudes of a change."""
            return start + modes.inverse(change).reshape(start.shape)

        def difference(part: float, change: Floats) -> Floats:
            """Return the amplitudes of dt (N − N₁) after a part of the step, for those of the change of u."""
            later = time + part * dt
            rest = problem.explicit(later, values_after(change), dt) - first
            return modes.transform(dt * (rest + problem.change_of_data(time, later, start)))

        if problem.is_linear:
            z = dt * modes.values
            whole = np.divide(np.expm1(z), z, where=z != 0, out=np.ones_like(z))
            return values_after(whole * rate), np.zeros_like(start)
        if self._dt != dt:
            self._dt, self._weights = dt, _weights(dt * modes.values)
        w = self._weights
        half = w.half * rate
        second = difference(0.5, half)
        third = difference(0.25, w.quarter * rate + w.third * second)
        fourth = difference(1.0, w.whole * rate + w.fourth * third)
        fifth = difference(0.5, half + w.fifth * third + w.fifth_by_fourth * fourth)
        error = w.of_fifth * (fifth - 4 / 3 * third - 1 / 6 * fourth)
        end = w.whole * rate + w.of_fourth * fourth + w.of_fifth * fifth
        return values_after(end), modes.inverse(error).reshape(start.shape)


def _refusal(equation: Equation, values: Floats) -> str:
    """Return the part of an equation that has no modes for fields u = ``values``, and the method to take instead."""
    stiff: Any = equation.stiff
    if stiff is None:
        return 'without a stiff term: expected a term such as Diffusion; take "auto"'
    for term in getattr(stiff, "terms", (stiff,)):
        name, mesh = getattr(term, "name", type(term).__name__), getattr(term, "mesh", None)
        if mesh is None or not hasattr(term, "jacobian"):
            return f'with {name}: expected a stiff term with the attributes mesh and jacobian; take "ark4"'
        if modes_of(mesh, [links_matrix(mesh, mesh.face_conductances())], float) is None:
            return f'on a mesh of kind {mesh.manifold!r}: expected equal cells of a box or a circle; take "ark4"'
        matrices = term.jacobian(values.size // mesh.cells)
        for matrix in matrices:
            if modes_of(mesh, [matrix], values.dtype) is None:
                return f'with {name}, whose {_misfit(mesh, matrix)}; take "ark4"'
    return 'with stiff terms or fields of different matrices: expected walls or Flux on the boundary; take "ark4"'


def _misfit(mesh: Any, matrix: Any) -> str:
    """Return the reason why a matrix (cells, cells) has no modes, and the expected property.

    The reason is the boundary if the matrix changes a constant field, and only in cells next to those at the boundary.
    """
    sums, is_at_wall = matrix @ np.ones(mesh.cells), mesh.face_cells[:, 0] == mesh.face_cells[:, 1]
    walled = np.isin(np.arange(mesh.cells), mesh.face_cells[is_at_wall, 0])
    differs = np.abs(sums - np.median(sums.real)) > 1e-10 * np.abs(matrix.data).max()
    if differs.any() and not differs[abs(matrix) @ walled == 0].any():
        return (
            "conditions on the boundary depend on u (Value, Robin): expected walls or Flux, or a box of two or three"
            f" axes of at most {MAX_AXIS} cells"
        )
    return "coefficients vary in space or couple the axes: expected constant numbers"


class _Weights(NamedTuple):
    """Functions of z at the eigenvalues, by which rates enter the stages and the end of a step."""

    quarter: Floats
    half: Floats
    whole: Floats
    third: Floats
    fourth: Floats
    fifth: Floats
    fifth_by_fourth: Floats
    of_fourth: Floats
    of_fifth: Floats


def _weights(z: Floats) -> _Weights:
    """Return the weights of a step at z = dt λ for the eigenvalues λ."""
    quarter = phi(z / 4)
    half = doubled(z / 4, *quarter)
    one, two, three = doubled(z / 2, *half)
    fifth = (4 * half[1] - 4 * half[2] - 8 * three + two) / 3
    return _Weights(
        quarter=quarter[0] / 4,
        half=half[0] / 2,
        whole=one,
        third=quarter[1] / 8,
        fourth=4 * two,
        fifth=fifth,
        fifth_by_fourth=(half[1] - fifth) / 4,
        of_fourth=4 * three - two,
        of_fifth=4 * two - 8 * three,
    )


def phi(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return φ₁, φ₂ and φ₃ at z, where φₖ(z) = Σⱼ zʲ/(j + k)!.

    The power series is used in the unit circle, elsewhere zφₖ₊₁ = φₖ − 1/k!.
    """
    is_small = np.abs(z) < 1
    small, large = np.where(is_small, z, 0.0), np.where(is_small, 1.0, z)
    series = np.zeros_like(small)
    for power in range(LAST, -1, -1):
        series = series * small + 1 / math.factorial(power + 3)
    one = np.expm1(large) / large
    two = (one - 1) / large
    three = np.where(is_small, series, (two - 0.5) / large)
    two = np.where(is_small, 0.5 + small * series, two)
    return np.where(is_small, 1 + small * two, one), two, three


def doubled(z: Floats, one: Floats, two: Floats, three: Floats) -> tuple[Floats, Floats, Floats]:
    """Return φ₁, φ₂ and φ₃ at 2z from those at z."""
    return one + z * one**2 / 2, one**2 / 4 + two / 2, (one * two + two) / 8 + three / 4
