"""Evolution equation: a sum of explicit and stiff terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import Any, TypeGuard

import numpy as np

from ..backends import backend_for, formulas
from ..mesh.checks import check_call, is_same
from ..mesh.mesh import Floats, Mesh
from ..terms.mass import CachedSummary, mass_of
from ..terms.source import Source
from ..terms.stiff_sum import StiffSum
from ..terms.term import Step, StiffTerm, Term, TimeArgumentAdapter
from .checks import check_methods


class Equation:
    """Evolution equation ∂ₜu = Σ explicit terms + Σ stiff terms.

    ``Equation(mesh, [term, …])`` sorts the terms: those with a step of their own (methods ``longest_step`` and
    ``step``) are stiff. ``Equation(terms, stiff)`` has explicit terms and one stiff term.

    Parameters
    ----------
    terms : Mesh or sequence
        The mesh of all terms, followed by the list of terms. Or a list of terms, which are explicit if ``stiff`` is
        given; else :func:`~solvers.solve` sorts them. A term is an object of this package, a plain function f(t, u) →
        ∂ₜu, or an object of your own, a :class:`~solvers.Term`.
    stiff : sequence or term, optional
        After a mesh, the list of all terms. Else the stiff term, such as a :class:`~solvers.StiffTerm` of your own; by
        default no term is stiff. Several stiff terms after a mesh are implicit together; methods with splitting
        apply them in turn.
    limit : callable, optional
        Function that changes u in place, such as :func:`~solvers.limit_positivity`, after each stage of "euler",
        "ssprk2" and "ssprk3", after each step of other methods. With a limit, ``method="auto"`` is "ssprk3".

    Attributes
    ----------
    mesh : Mesh or None
        Mesh of all terms; None if no term has a mesh.
    terms : tuple
        Explicit terms; plain functions have become :class:`~solvers.Source`.
    stiff : term or None
        Stiff term, or the sum of several.
    limit : callable or None
        The parameter ``limit``.

    Raises
    ------
    TypeError
        If the list of terms is missing, or an object in it is no term, as a class in place of an instance is, or a
        function of other arguments than (t, u), or ``limit`` is no function of u.
    ValueError
        If terms are on different meshes.

    Notes
    -----
    Several threads may solve one equation at once, as each solve works on copies of its terms.

    Examples
    --------
    Diffusion and a reaction: ∂ₜu = 0.05 Δu + u − u³ has the stable steady state 1.

    >>> from solvers import Diffusion, Equation, circle, solve
    >>> mesh = circle(32)
    >>> equation = Equation(mesh, [Diffusion(mesh, 0.05), lambda t, u: u - u**3])
    >>> isinstance(equation.stiff, Diffusion), len(equation.terms)
    (True, 1)
    >>> u = solve(equation, 0.1 + 0.01 * mesh.centers[:, 0], (0, 20)).u[-1]
    >>> bool(abs(u - 1).max() < 1e-4)
    True
    """

    def __init__(
        self,
        terms: Mesh | Sequence[Term],
        stiff: StiffTerm | Sequence[Any] | None = None,
        limit: Callable[[Floats], None] | None = None,
    ) -> None:
        self.mesh = terms if isinstance(terms, Mesh) else None
        if isinstance(terms, Mesh):
            if not isinstance(stiff, Sequence):
                raise TypeError(f"terms = {type(stiff).__name__}: expected a list of terms after the mesh")
            terms, stiff = _split_terms(stiff)
        if not isinstance(terms, Sequence):
            raise TypeError(f"terms = {type(terms).__name__}: expected a list of terms")
        self.terms: Sequence[Term] = tuple(Source(term) if _is_function(term) else term for term in terms)
        for number, term in enumerate(self.terms):
            check_methods(f"terms[{number}]", term, ("prepare", "rate"))
        if stiff is not None:
            check_methods("stiff", stiff, ("longest_step", "step"))
        self.stiff: StiffTerm | None = stiff  # type: ignore[assignment]  # checked above
        self.mesh = _common_mesh(self.mesh, (*self.terms, *getattr(stiff, "terms", (stiff,))))
        if limit is not None:
            check_call("limit", limit, "u")
        self.limit = limit
        self._stepping = None if stiff is None else TimeArgumentAdapter(self.stiff)  # type: ignore[arg-type]  # checked above

    def begin(self) -> Equation:
        """Return a copy of the equation with copies of its terms, for one solve.

        Terms store the results of ``prepare``, so that several solves must not share them.
        """
        working = copy(self)
        working.terms, working.stiff = tuple(map(copy, self.terms)), copy(self.stiff)
        working._stepping = None if working.stiff is None else TimeArgumentAdapter(working.stiff)
        return working

    def with_stiff_found(self) -> Equation:
        """Return the equation with those explicit terms as stiff ones that have a step of their own.

        Returns
        -------
        Equation
            This equation if it has a stiff term or no explicit term has a step of its own, else a new one.
        """
        if self.stiff is not None:
            return self
        terms, stiff = _split_terms(self.terms)
        return self if stiff is None else Equation(terms, stiff, self.limit)

    def prepare(self, time: float, values: Floats, with_stiff: bool = False, at_most: Step = np.inf) -> Step:
        """Evaluate every explicit term; return the largest stable time step, NaN for a non-finite state.

        Parameters
        ----------
        time : float
            Time.
        values : (cells,) or (fields, cells) array
            State u.
        with_stiff : bool, default False
            Whether the stiff term limits the step too, since explicit terms miss its change within a step.
        at_most : float, default ∞
            Upper bound of the result.

        Returns
        -------
        float
            Largest stable time step; on a device, an array of one number.
        """
        with CachedSummary(values):
            steps = [term.prepare(time, values) for term in self.terms]
            if with_stiff and self._stepping is not None:
                steps.append(self._stepping.longest_step(time, values))
            longest, last = reduce(np.minimum, steps[:-1] or [np.inf]), steps[-1] if steps else np.inf
            if self._is_one_field(values):
                mass, evaluate = self._mass(values), backend_for(values).evaluate
                finite: Step = evaluate(formulas.finite_step, mass, longest, last, at_most)
                return finite
        longest = reduce(np.minimum, (longest, last, at_most))
        is_finite = np.isfinite(values).all()
        if isinstance(is_finite, np.bool_):  # where array code takes longer
            return longest if is_finite else np.nan
        return backend_for(values).xp.where(is_finite, longest, np.nan)

    def _is_one_field(self, values: Floats) -> bool:
        """Return whether ``values`` are one field on the mesh, whose mass tells whether all numbers are finite."""
        return self.mesh is not None and values.shape == (self.mesh.cells,)

    def _mass(self, values: Floats) -> Any:
        """Return the mass of one field, which terms have already computed; no finite number for a field with NaN."""
        assert self.mesh is not None
        with np.errstate(over="ignore", invalid="ignore"):
            return mass_of(self.mesh, values)

    def lost_in(self, time: float, values: Floats) -> str:
        """Return the description of the first non-finite quantity in a state whose stable step is NaN.

        Parameters
        ----------
        time : float
            Time.
        values : (cells,) or (fields, cells) array
            State u.

        Returns
        -------
        str
            Sentence without a period, for a message.
        """
        for term in self.terms if np.isfinite(values).all() else ():
            if np.isnan(term.prepare(time, values)):
                of = getattr(term, "velocity", None) or getattr(term, "f", None)
                name = f"{type(term).__name__} of {getattr(of, '__name__', 'the state')}"
                return f"the rate of change by {name} is not finite"
        if not np.isfinite(values).all() or not self._is_one_field(values) or np.isfinite(self._mass(values)):
            return "the rate of change is not finite"
        return "the sum over all cells is beyond the range of numbers"

    def step_stiff(self, time: float, dt: float, values: Floats, limited: bool = True) -> Step:
        """Advance values in place by the stiff term from ``time`` to time + dt.

        Parameters
        ----------
        time : float
            Time at the beginning of the step.
        dt : float
            Time step.
        values : (cells,) or (fields, cells) array
            State u.
        limited : bool, default True
            Whether negative values of a density are removed.

        Returns
        -------
        float
            Least value before negative values are removed, as the step of the term returns it.
        """
        assert self._stepping is not None
        return self._stepping.step(time, dt, values, limited)


def _split_terms(terms: Sequence[Any]) -> tuple[list[Term], Any]:
    """Return the explicit terms of a list, and the stiff one: the term with a step of its own, or the sum of several.

    The stiff term is None if no term has a step of its own.
    """
    stiff = [term for term in terms if hasattr(term, "longest_step") and hasattr(term, "step")]
    explicit = [term for term in terms if not any(term is one for one in stiff)]
    return explicit, StiffSum(stiff) if len(stiff) > 1 else stiff[0] if stiff else None


def _common_mesh(mesh: Mesh | None, terms: Sequence[Any]) -> Mesh | None:
    """Return the mesh of an equation: ``mesh``, or that of the first term that has one; None if no term has one.

    Raises ValueError for a term on another mesh.
    """
    for term in terms:
        term_mesh = getattr(term, "mesh", None)
        if not isinstance(term_mesh, Mesh):
            continue
        mesh = term_mesh if mesh is None else mesh
        if not is_same(mesh, term_mesh):
            expected = f"expected that of the equation ({mesh.manifold} of {mesh.cells} cells)"
            raise ValueError(
                f"{type(term).__name__} on another mesh ({term_mesh.manifold} of {term_mesh.cells} cells): {expected}"
            )
    return mesh


def _is_function(term: Any) -> TypeGuard[Callable[[float, Floats], Floats]]:
    """Return whether a term of an equation is a plain function f(t, u), and neither a term object nor a class."""
    return callable(term) and not hasattr(term, "prepare") and not isinstance(term, type)


def limit_positivity(values: Floats) -> None:
    """Set negative values to zero in place.

    Fluxes of this package keep a density ≥ 0 to rounding; this limit of an :class:`~solvers.Equation` removes the rest.

    Parameters
    ----------
    values : array
        State u.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import limit_positivity
    >>> density = np.array([-1e-17, 0.5, 1.0])
    >>> limit_positivity(density)
    >>> density.tolist()
    [0.0, 0.5, 1.0]
    """
    if isinstance(values, np.ndarray) and not values.min() < 0.0:
        return  # the usual case; reading a device array would block
    backend_for(values).xp.copyto(values, 0.0, where=values < 0.0)  # a third of the time of np.maximum
