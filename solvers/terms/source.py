"""Sources: rates of change that are functions of the state, with the stable time step."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..backends import backend_for
from ..mesh.checks import check_array, check_call, check_finite, check_number, check_unchanged, ignores_time, shape_of
from ..mesh.mesh import Floats
from .term import Step

ITERATIONS = 3  # of the power method; the same first vector each time makes a resumed run identical
DIFFERENCE = 1e-7  # relative to the state, for a directional derivative
REPEATED = 1e-6  # relative difference of two evaluations at the same state, above rounding also in float32
LOCAL = 1e-3  # relative difference of derivatives in two directions: larger where cells depend on each other
MARGIN = 1.3  # factor of the estimated rate, which iterations approach from below


class Source:
    """Source f(t, u), the rate of change of one field or several: reactions, births, a force.

    Parameters
    ----------
    f : callable
        Function (time, u) → an array of the shape of u, (cells,) or (fields, cells), or one number for all cells.
    fastest : float, optional
        Bound > 0 of the absolute values of the eigenvalues of ∂f/∂u, in 1/time. By default, three power iterations on
        differences of f estimate the largest one in each step, so that f is called four times.

    Raises
    ------
    TypeError
        If f is no function of (t, u), or returns something else than numbers, or ``fastest`` is no number.
    ValueError
        If ``fastest`` is not finite and > 0, or f returns another shape. In the first step, if f changes u, returns
        NaN, or returns other values at the same (t, u), as random numbers.

    Notes
    -----
    The longest explicit step is 1/``fastest``, which keeps u ≥ 0 under decay. Methods other than "euler", "ssprk2" and
    "ssprk3" ignore the estimate, since their error limits the step. A plain function f in the list of terms of an
    :class:`~solvers.Equation` becomes ``Source(f)``.

    Examples
    --------
    Logistic growth from ½, with the exact u(t) = 1/(1 + e^(−t)):

    >>> import numpy as np
    >>> from solvers import Equation, Source, solve
    >>> logistic = Source(lambda t, u: u * (1 - u), fastest=1.0)
    >>> solution = solve(Equation(None, [logistic]), [0.5], (0, 1), rtol=1e-8)
    >>> bool(abs(solution.u[-1, 0] - 1 / (1 + np.exp(-1))) < 1e-8)
    True
    """

    def __init__(self, f: Callable[[float, Floats], Floats], fastest: float | None = None) -> None:
        check_call("f", f, "t, u")
        if fastest is not None:
            check_number("fastest", fastest, above=0)
        self.f, self.fastest, self.is_autonomous = f, fastest, ignores_time(f)
        self._rate: Any = None

    def prepare(self, time: float, values: Floats) -> Step:
        """Store f(time, values) for ``rate``; return the stable step, 1/max ``|eigenvalue|`` of ∂f/∂u."""
        before = values.copy() if self._rate is None else None
        rate = self._evaluate(time, values)
        if before is not None:
            check_unchanged(self._name, values, before)
            check_finite(self._name, rate)
            self._check_repeated(rate, self._evaluate(time, values))
        self._rate, self._at = rate, (time, values)
        fastest = self._fastest(time, values) if self.fastest is None else self.fastest
        return 1.0 / fastest if fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        """Add f(t, u), with the time and the state u last given to ``prepare``, to the array ``rate``."""
        rate += self._rate

    def jacobian(self, fields: int) -> list[Any]:
        """Return one diagonal matrix (cells, cells) for each real field: the derivative of its rate by the field.

        The derivatives are difference quotients at the prepared state. The list is empty if the rate in a cell also
        depends on u in other cells.
        """
        from scipy.sparse import diags

        time, values = self._at
        rows, base = values.reshape(fields, -1), self._rate.reshape(fields, -1)
        signs, found = _signs(values.shape).reshape(fields, -1), []
        size = DIFFERENCE * (1.0 + float(np.abs(values).max()))
        for k in range(fields if values.dtype.kind == "f" else 0):
            slopes = []
            for direction in (signs[k], np.ones_like(rows[k])):
                moved = rows.copy()
                moved[k] += size * direction
                rate = self._evaluate(time, moved.reshape(values.shape)).reshape(rows.shape)
                slopes.append((rate[k] - base[k]) / (moved[k] - rows[k]))
            if not np.abs(slopes[0] - slopes[1]).max() <= LOCAL * np.abs(slopes[0]).max():
                return []
            found.append(diags(slopes[0]))
        return found

    def _check_repeated(self, rate: Floats, again: Floats) -> None:
        """Raise ValueError unless two evaluations of f at the same time and state are equal to rounding."""
        if float(np.abs(again - rate).max()) > REPEATED * float(np.abs(rate).max()):
            expected = "expected a function of (t, u), without random numbers"
            raise ValueError(f"{self._name} returns other values at the same time and u: {expected}")

    @property
    def _name(self) -> str:
        """Return the name of the function f, for messages."""
        return getattr(self.f, "__name__", "f")

    def _evaluate(self, time: float, values: Floats) -> Floats:
        """Return f(time, values) as an array of the shape of ``values``; raise an error for other shapes."""
        rate: Any = self.f(time, values)
        shape = shape_of(rate)
        if shape not in (values.shape, ()):
            raise ValueError(f"{self._name} gives an array of shape {shape}: expected {values.shape}")
        kind = (rate if hasattr(rate, "dtype") else np.asarray(rate)).dtype.kind
        is_complex = values.dtype.kind == "c"
        if kind == "c" and not is_complex:
            raise TypeError(f"{self._name} returns complex numbers for real u: expected a complex u0, such as u0 + 0j")
        if shape == () and kind in "fiuc":
            constant: Floats = backend_for(values).xp.full_like(values, complex(rate) if kind == "c" else float(rate))
            return constant
        rate = rate.astype(values.dtype) if kind in "iub" or is_complex else rate
        check_array(self._name, rate, values.shape, kinds="fc")
        return np.asarray(rate) if isinstance(values, np.ndarray) else rate

    def _fastest(self, time: float, values: Floats) -> float:
        """Estimate an upper bound of the |eigenvalues| of ∂f/∂u at a state by power iterations on differences of f.

        The bound is the growth in the last iteration times MARGIN, or 0 if an iteration has no growth.
        """
        vector: Any = _signs(values.shape)
        size = DIFFERENCE * (float(np.abs(values).max()) + DIFFERENCE)
        fastest = 0.0
        for _ in range(ITERATIONS):
            direction = vector / float(np.abs(vector).max())
            vector = (self._evaluate(time, values + size * direction) - self._rate) / size
            fastest = float(np.sqrt((np.abs(vector) ** 2).mean() / (np.abs(direction) ** 2).mean()))
            if not fastest > 0:
                return 0.0
        return MARGIN * fastest


@lru_cache(maxsize=8)
def _signs(shape: tuple[int, ...]) -> Floats:
    """Return random numbers ±1, the same in each call with the same shape."""
    return np.random.default_rng(0).choice([-1.0, 1.0], shape)
