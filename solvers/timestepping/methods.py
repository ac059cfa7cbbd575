"""Time integration methods by name, each with an integrator of an equation to a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial

from ..mesh.checks import check_call
from ..terms.stiff_sum import has_rate
from .adaptive import AdaptiveIntegrator
from .equation import Equation
from .evolution import SplitIntegrator
from .integrate import Integrator
from .runge_kutta.error_controlled import RungeKutta
from .runge_kutta.etd import ExponentialRungeKutta
from .runge_kutta.exponential import ExponentialRosenbrock
from .runge_kutta.semi_discrete import SemiDiscrete
from .runge_kutta.super_time_stepping import SuperTimeStepping
from .runge_kutta.symplectic import Symplectic
from .runge_kutta.tableaux import TABLEAUX

Make = Callable[[Equation, float, float, float | None], Integrator]  # of (equation, rtol, atol, cfl)
LINEAR_CFL = 0.9  # fraction of the stable step of an oscillator
SSP_CFL = 0.5  # fraction of the stable step of fluxes for which limiters are monotone; the method is stable up to twice


def method_of(equation: Equation, method: str | Make) -> str | Make:
    """Return ``method``, a name or a function; for "auto" return the name of the method that suits the equation.

    Raises ValueError for an unknown name.
    """
    if method == "auto":
        return choose(equation)
    if callable(method):
        check_call("method", method, "equation, rtol, atol, cfl")
        return method
    if not isinstance(method, str) or method not in METHODS:
        close = get_close_matches(str(method), METHODS, 1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"method = {method!r}: expected 'auto', {', '.join(map(repr, METHODS))}{meant}")
    return method


def choose(equation: Equation) -> str:
    """Return the name of the time integration method that suits the terms of an equation.

    Densities get a method with splitting, which keeps u ≥ 0. Explicit terms with ``is_stiff`` get an implicit method,
    stiff terms an additive one. Without a stiff term the method is explicit: strong-stability-preserving for
    fluxes through faces, of order 5 for smooth rates, symplectic for separable ones.
    """
    stiff = equation.stiff
    every = (*equation.terms, stiff)
    if any(getattr(term, "nonnegative", False) for term in every) or equation.limit is not None:
        return "ssprk3"
    if any(getattr(term, "is_stiff", False) for term in equation.terms):
        return "implicit"
    if stiff is None and len(equation.terms) == 1 and getattr(equation.terms[0], "is_separable", False):
        return "symplectic"
    if stiff is not None:
        return "ark4" if has_rate(stiff) else "ssprk3"
    return "ssp3" if any(hasattr(term, "mesh") for term in equation.terms) else "dopri5"


def name_of(method: str | Make) -> str:
    """Return ``method`` itself if it is a name, else the name of the function or class."""
    return method if isinstance(method, str) else getattr(method, "__name__", type(method).__name__)


def integrator_of(equation: Equation, method: str | Make, rtol: float, atol: float, cfl: float | None) -> Integrator:
    """Return a new integrator of an equation by a function, or by the method of a name in METHODS, not "auto".

    For ``rtol`` = ∞ the cfl alone limits the steps. Raises ValueError for that with a method that needs a tolerance,
    and for a ``cfl`` that the method ignores, and TypeError if a function returns no integrator.
    """
    if callable(method):
        found = method(equation, rtol, atol, cfl)
        if not (hasattr(found, "begin") and hasattr(found, "step")):
            raise TypeError(
                f"method {name_of(method)} returns {type(found).__name__}: expected an Integrator with begin and step"
            )
        return found
    if math.isinf(rtol) and method not in WITHOUT_TOLERANCE:
        expected = f"expected a number > 0; None only with {', '.join(map(repr, WITHOUT_TOLERANCE))}"
        raise ValueError(f"rtol = None with method = {method!r}: {expected}")
    if cfl is not None and method in WITHOUT_CFL:
        raise ValueError(f"cfl = {cfl:g}: expected None with method = {method!r}, which chooses the step by its error")
    return METHODS[method](equation, rtol, atol, cfl)


def _split(name: str, equation: Equation, rtol: float, atol: float, cfl: float | None) -> Integrator:
    """Return the integrator by Strang splitting for densities, with the explicit method ``name``."""
    return SplitIntegrator(equation, name, cfl or 0.5, None if math.isinf(rtol) else rtol, atol)


def _tableau(name: str, equation: Equation, rtol: float, atol: float, cfl: float | None) -> Integrator:
    """Return the Runge–Kutta integrator of a named tableau."""
    return RungeKutta(equation, TABLEAUX[name](), rtol, atol, cfl or SSP_CFL)


def make_implicit(equation: Equation, rtol: float, atol: float, cfl: float | None = None) -> RungeKutta:
    """Return a new integrator whose steps take all terms of an equation as implicit; ``cfl`` is ignored."""
    return RungeKutta(equation, TABLEAUX["ark4"](), rtol, atol, SSP_CFL, fully_implicit=True)


def _stable(
    kind: Callable[..., Integrator], default: float, equation: Equation, rtol: float, atol: float, cfl: float | None
) -> Integrator:
    """Return an integrator of the class ``kind``, whose steps are bounded by error and stability.

    ``default`` replaces a cfl of None.
    """
    return kind(equation, rtol, atol, cfl or default)


def _eighth(equation: Equation, rtol: float, atol: float, cfl: float | None) -> Integrator:
    """Return the adaptive integrator of order 8 by Dormand and Prince."""
    return AdaptiveIntegrator(SemiDiscrete(equation).full, min(rtol, 1e-3), equation.limit, absolute=atol)


METHODS: dict[str, Make] = {
    "euler": partial(_split, "euler"),
    "ssprk2": partial(_split, "ssprk2"),
    "ssprk3": partial(_split, "ssprk3"),
    "ssp3": partial(_tableau, "ssp3"),
    "dopri5": partial(_tableau, "dopri5"),
    "dop853": _eighth,
    "ars2": partial(_tableau, "ars2"),
    "ark3": partial(_tableau, "ark3"),
    "ark4": partial(_tableau, "ark4"),
    "rkl2": partial(_stable, SuperTimeStepping, SSP_CFL),
    "implicit": make_implicit,
    "exponential": partial(_stable, ExponentialRosenbrock, SSP_CFL),
    "etd4": partial(_stable, ExponentialRungeKutta, SSP_CFL),
    "symplectic": partial(_stable, Symplectic, LINEAR_CFL),
}
"""Time integration methods by name, for the argument ``method`` of :func:`~solvers.solve`.

- ``"euler"``, ``"ssprk2"``, ``"ssprk3"``: orders 1 to 3, explicit and strong-stability-preserving, for densities ≥ 0.
  Strang splitting, with half steps of the stiff term around a step of the other terms, limits the order to 2. Where
  the stiff term and a source are in balance, additive methods need far fewer steps.
- ``"ssp3"``: order 3, explicit and strong-stability-preserving, for fluxes with limiters.
- ``"dopri5"``, ``"dop853"``: orders 5 and 8, explicit, for smooth terms.
- ``"ars2"``, ``"ark3"``, ``"ark4"``: orders 2 to 4, additive, with an implicit stiff term beside explicit ones, without
  the error of splitting at steady states.
- ``"rkl2"``: order 2, super-time-stepping, for diffusion without linear solves.
- ``"implicit"``: order 4, for stiff terms alone or nonlinear ones, by Newton's iteration with factors of the terms'
  matrices, by GMRES where these do not suffice.
- ``"exponential"``: exact in time for linear equations, to the tolerance of their Krylov spaces; else order 2.
- ``"etd4"``: order 4, exponential time differencing: exact in time for a stiff term with constant coefficients on
  equal cells, periodic or with walls, by fast transforms, and explicit in other terms. Their rounding, that of the
  largest value, grows ahead of a front that moves into an unstable state, for which "ark4" is the method.
- ``"symplectic"``: order 4, explicit, for ∂ₜq = g(t, p) and ∂ₜp = f(t, q) such as wave equations, where u has
  the rows q and then p. The energy does not drift.

``METHODS[name](equation, rtol, atol, cfl)`` returns the integrator of an equation.
"""
WITHOUT_TOLERANCE = ("ssp3", "euler", "ssprk2", "ssprk3")  # methods whose steps the cfl alone may limit
WITHOUT_CFL = {"dop853", "implicit"}  # methods with steps independent of the stable step
MAY_BECOME_IMPLICIT = {"dopri5", "ssp3", "ark4"}  # choices of "auto" that "implicit" replaces in a stiff run
