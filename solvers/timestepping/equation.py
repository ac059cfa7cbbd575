"""Evolution equation: a sum of explicit and stiff terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from ..backends import backend_for, formulas
from ..mesh.checks import check_call, is_same
from ..mesh.mesh import Floats, Mesh
from ..terms.mass import CachedSummary, mass_of
from ..terms.source import Source
from ..terms.stiff_sum import StiffSum
from ..terms.term import Step, StiffTerm, Term, TimeArgumentAdapter
from .checks import as_state, check_complex, check_methods, check_real
from .control import root_mean_square

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import LinearOperator


class Equation:
    """Evolution equation ∂ₜu = Σ explicit terms + Σ stiff terms.

    Terms with a step of their own (methods ``longest_step`` and ``step``) are stiff. Several stiff terms are implicit
    together; methods with splitting apply them in turn.

    Parameters
    ----------
    mesh : Mesh or None
        Mesh of all terms. None for a system without a mesh, or for the mesh of the terms.
    terms : sequence
        Terms of the sum, in any order. A term is an object of this package, a plain function f(t, u) → ∂ₜu, or an
        object of your own, a :class:`~solvers.Term` or a :class:`~solvers.StiffTerm`.
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
        If ``mesh`` is neither a mesh nor None, ``terms`` is no list, ``limit`` is no function of u, or an element of
        ``terms`` is no term, for example a class instead of an instance, or a function of others than (t, u).
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
        mesh: Mesh | None,
        terms: Sequence[Term | StiffTerm | Callable[[float, Floats], Floats]],
        *,
        limit: Callable[[Floats], None] | None = None,
    ) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(f"mesh = {type(mesh).__name__}: expected a Mesh, or None, before the list of terms")
        if not isinstance(terms, Sequence):
            raise TypeError(f"terms = {type(terms).__name__}: expected a list of terms")
        each = [Source(term) if _is_function(term) else term for term in terms]
        for number, term in enumerate(each):
            if not _is_stiff(term):
                check_methods(f"terms[{number}]", term, ("prepare", "rate"))
        if limit is not None:
            check_call("limit", limit, "u")
        stiff: list[Any] = [term for term in each if _is_stiff(term)]
        self.mesh, self.limit = _common_mesh(mesh, each), limit
        self.terms: tuple[Term, ...] = tuple(term for term in each if not _is_stiff(term))  # type: ignore[misc]  # checked
        self.stiff: StiffTerm | None = StiffSum(stiff) if len(stiff) > 1 else stiff[0] if stiff else None
        self._stepping = None if self.stiff is None else TimeArgumentAdapter(self.stiff)

    def __call__(self, t: float, u: npt.ArrayLike) -> Floats:
        """Return the rate of change ∂ₜu, as :meth:`rate`.

        Parameters
        ----------
        t : float
            Time.
        u : (cells,), (fields, cells) or (fields·cells,) array
            State.

        Returns
        -------
        array of the shape of u
            Rate of change.
        """
        return self.rate(t, u)

    def rate(self, t: float, u: npt.ArrayLike) -> Floats:
        """Return the rate of change ∂ₜu of a state by all terms, with the data of the boundary.

        An equation is a function (t, u) → ∂ₜu for :func:`scipy.integrate.solve_ivp`.

        Parameters
        ----------
        t : float
            Time.
        u : (cells,), (fields, cells) or (fields·cells,) array
            State; a flat one of several fields holds one field after the other.

        Returns
        -------
        array of the shape of u
            Rate of change.

        Raises
        ------
        TypeError
            If u does not hold numbers, or is complex and a term needs real ones.
        ValueError
            If u has another number of cells than the mesh, or the stiff term has steps but no rate of change.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.integrate import solve_ivp
        >>> from solvers import Diffusion, Equation, circle
        >>> mesh = circle(64)
        >>> equation = Equation(mesh, [Diffusion(mesh, 1.0)])
        >>> found = solve_ivp(equation, (0, 1), mesh.centers[:, 0], method="BDF", jac=equation.jacobian, rtol=1e-8)
        >>> bool(abs(found.y[:, -1] - np.exp(-1) * mesh.centers[:, 0]).max() < 1e-5)
        True
        """
        from .runge_kutta.semi_discrete import SemiDiscrete

        return SemiDiscrete(self).full(t, self._state(u)).reshape(np.shape(u))

    def jacobian(self, t: float, u: npt.ArrayLike) -> csr_matrix:
        """Return the derivative of the rate of change by u as a sparse matrix.

        A stiff term gives its own matrix. Other terms are differentiated by central differences: by few evaluations
        where the rate in a cell depends on nearby cells alone, else by two evaluations for each number of u.

        Parameters
        ----------
        t : float
            Time.
        u : (cells,), (fields, cells) or (fields·cells,) array
            State of n numbers.

        Returns
        -------
        scipy.sparse.csr_matrix
            Matrix (n, n), with one field after the other.

        Examples
        --------
        The steady state of ∂ₜu = Δu + 1 between ends held at 0 is x(1 − x)/2:

        >>> from scipy.optimize import root
        >>> from solvers import Diffusion, Equation, Value, interval
        >>> mesh = interval(0.0, 1.0, 32)
        >>> ends = {"left": Value(0.0), "right": Value(0.0)}
        >>> equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=ends), lambda t, u: 1.0])
        >>> found = root(lambda u: equation(0, u), 0 * mesh.volumes, jac=lambda u: equation.jacobian(0, u).toarray())
        >>> x = mesh.centers[:, 0]
        >>> bool(abs(found.x - x * (1 - x) / 2).max() < 2e-4)
        True
        """
        from .derivatives import jacobian

        return jacobian(self, t, self._real_state(u))

    def linear_operator(self, t: float, u: npt.ArrayLike) -> LinearOperator:
        """Return the derivative of the rate of change by u as an operator, without a matrix.

        Parameters
        ----------
        t : float
            Time.
        u : (cells,), (fields, cells) or (fields·cells,) array
            State of n numbers.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
            Operator (n, n) on flat vectors: v → J v by a central difference quotient, exact for a stiff term.

        Examples
        --------
        The eigenvalues of Δ on the unit sphere are −l (l + 1), with 2l + 1 eigenvectors each:

        >>> import numpy as np
        >>> from scipy.sparse.linalg import eigs
        >>> from solvers import Diffusion, Equation, sphere
        >>> mesh = sphere(16)
        >>> operator = Equation(mesh, [Diffusion(mesh, 1.0)]).linear_operator(0, 0 * mesh.volumes)
        >>> found = eigs(operator, 4, which="LR", return_eigenvectors=False)
        >>> np.round(sorted(found.real), 3) + 0.0
        array([-2., -2., -2.,  0.])
        """
        from .derivatives import linear_operator

        return linear_operator(self, t, self._real_state(u))

    @property
    def is_complex(self) -> bool:
        """Return whether a term has complex coefficients, so that the fields are complex."""
        terms = (*self.terms, *getattr(self.stiff, "terms", (self.stiff,)))
        return any(getattr(term, "is_complex", False) for term in terms)

    def _real_state(self, u: npt.ArrayLike) -> Floats:
        """Return real u in double precision; raise TypeError for complex u, where rates may have no derivative."""
        if np.iscomplexobj(u) or self.is_complex:
            raise TypeError("u is complex: expected real fields, such as its real and imaginary parts")
        return self._state(u).astype(np.float64)

    def _state(self, u: npt.ArrayLike) -> Floats:
        """Return u as an array for the terms: (cells,) or (fields, cells); any shape without a mesh.

        Numbers stay in float32, and otherwise become complex128 or float64.
        """
        values = np.asarray(u)
        if values.dtype.kind not in "fiubc":
            raise TypeError(f"u of {values.dtype}: expected numbers")
        values = as_state(values, self.is_complex)
        check_complex("u", values, self)
        if self.mesh is not None and values.ndim == 1 and values.size != self.mesh.cells and values.size:
            if values.size % self.mesh.cells:
                raise ValueError(f"u of shape {values.shape}: expected a multiple of the {self.mesh.cells} cells")
            values = values.reshape(-1, self.mesh.cells)
        return values

    def begin(self) -> Equation:
        """Return a copy of the equation with copies of its terms, for one solve.

        Terms store the results of ``prepare``, so that several solves must not share them.
        """
        working = copy(self)
        working.terms, working.stiff = tuple(map(copy, self.terms)), copy(self.stiff)
        if working.stiff is not None and self._stepping is not None:
            working._stepping = self._stepping.of(working.stiff)
        return working

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
        """Return whether ``values`` are one real field (cells,), for which :meth:`_mass` is available."""
        return self.mesh is not None and values.shape == (self.mesh.cells,) and values.dtype.kind != "c"

    def _mass(self, values: Floats) -> Any:
        """Return the mass of one field, which terms have already computed; NaN or ∞ for a field that is not finite."""
        assert self.mesh is not None
        with np.errstate(over="ignore", invalid="ignore"):
            return mass_of(self.mesh, values)

    def numerical_diffusion(self) -> float:
        """Return the root mean square of the rate of change by numerical diffusion, an estimate of the spatial error.

        The terms are prepared at a state. Unless all terms have the method ``numerical_diffusion``, the result is 0:
        a source may have its largest error at a front, where numerical diffusion is large too.

        Returns
        -------
        float
            Rate of change.
        """
        if self.stiff is not None or not all(hasattr(term, "numerical_diffusion") for term in self.terms):
            return 0.0
        terms: tuple[Any, ...] = self.terms
        rates = [term.numerical_diffusion() for term in terms]
        return root_mean_square(reduce(np.add, rates)) if rates else 0.0

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


def _is_stiff(term: Any) -> bool:
    """Return whether a term is an instance with a step of its own."""
    return hasattr(term, "longest_step") and hasattr(term, "step") and not isinstance(term, type)


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
    check_real("u", values, "limit_positivity")
    if isinstance(values, np.ndarray) and not values.min() < 0.0:
        return  # the usual case; reading a device array would block
    backend_for(values).xp.copyto(values, 0.0, where=values < 0.0)  # a third of the time of np.maximum
