"""Steady states of an equation by Newton's iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mesh.checks import check_reals
from ..mesh.mesh import Floats
from .checks import check_positive
from .control import root_mean_square
from .equation import Equation
from .state import NonFinite

MAX_UPDATES = 50  # of Newton's iteration
MIN_LENGTH = 2.0**-20  # of an update over Newton's
CONSERVED = 1e-9  # relative derivative of a sum that counts as 0
CHANGED = 1e-6  # rate of change of a sum over that of its parts, which is no rounding
ROUNDING = 1e-7  # error of a rate by rounding, 1e-13 of its parts, over CHANGED


def solve_steady(equation: Equation, guess: npt.ArrayLike, *, t: float = 0.0, rtol: float = 1e-8) -> Floats:
    """Return a steady state of an equation, ∂ₜu = 0, by Newton's iteration from a guess.

    The matrix of each update is that of :meth:`Equation.jacobian <solvers.Equation.jacobian>`, solved by sparse LU
    factorization. A linear equation takes one update. The stability of the state is not examined. If the guess is too
    far from a steady state, :func:`~solvers.solve` with a :class:`~solvers.SteadyState` computes a nearer guess.

    Parameters
    ----------
    equation : Equation
        Equation, which is not changed.
    guess : (cells,) or (fields, cells) array
        First state. If the equation conserves the integral of a field, as diffusion between walls does, or of a sum
        of multiples of fields, as reactions do, the steady state has the integral of the guess.
    t : float, optional
        Time at which the rate of change is taken.
    rtol : float, optional
        Tolerance: the iteration ends when the root mean square of the update is at most rtol times that of u.

    Returns
    -------
    array of the shape of the guess
        Steady state.

    Raises
    ------
    TypeError
        If ``equation`` is no Equation, or the guess holds no real numbers.
    ValueError
        If the guess has another number of cells than the mesh, if ``rtol`` is not finite and > 0, or if the
        rate of change of an integral is nonzero and independent of the state, so that there is no steady state.
    NonFinite
        If the iteration does not converge.

    Examples
    --------
    A front of ∂ₜu = Δu + u − u³ is tanh(x/√2):

    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, Value, interval, solve_steady
    >>> mesh = interval(-8.0, 8.0, 200)
    >>> x = mesh.centers[:, 0]
    >>> ends = {"left": Value(-1.0), "right": Value(1.0)}
    >>> equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=ends), lambda t, u: u - u**3])
    >>> u = solve_steady(equation, np.tanh(x))
    >>> bool(abs(u - np.tanh(x / np.sqrt(2))).max() < 1e-3)
    True
    """
    if not isinstance(equation, Equation):
        raise TypeError(f"equation = {type(equation).__name__}: expected an Equation")
    check_positive(rtol=rtol)
    check_reals("guess", guess)
    values: Floats = np.array(guess, dtype=np.float64)
    rate = equation.rate(t, values)
    for _ in range(MAX_UPDATES):
        newton = _newton(equation, t, values, rate)
        update = newton(rate)
        if root_mean_square(update) <= rtol * root_mean_square(values + update):
            return values + update
        values, rate = _search(equation, t, values, update, newton)
    raise NonFinite(f"Newton's iteration does not converge in {MAX_UPDATES} updates")


def _newton(equation: Equation, t: float, values: Floats, rate: Floats) -> Callable[[Floats], Floats]:
    """Return the function r → d with J d = −r, with the derivative J of the rate of change at u = ``values``.

    d does not change the integrals that the equation conserves. ``rate`` is the rate of change at u.
    """
    from scipy.sparse import bmat, csr_matrix
    from scipy.sparse.linalg import splu

    matrix: Any = equation.jacobian(t, values)
    sums = _conserved(equation, matrix, values, rate)
    system = bmat([[matrix, csr_matrix(sums.T)], [csr_matrix(sums), None]]) if len(sums) else matrix
    try:
        factors = splu(system.tocsc())
    except RuntimeError as error:
        raise NonFinite(f"Newton's iteration: {error}") from error

    def update(residual: Floats) -> Floats:
        """Return d of the shape of the state with J d = −r, for r = ``residual``."""
        found: Floats = -factors.solve(np.append(residual, np.zeros(len(sums))))[: values.size]
        return found.reshape(values.shape)

    return update


def _search(
    equation: Equation, t: float, values: Floats, update: Floats, newton: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Return a state along Newton's ``update``, and its rate of change.

    From there, ``newton`` gives a shorter update (natural monotonicity: Deuflhard, Newton Methods for Nonlinear
    Problems, section 3.3). Raises NonFinite if no state along the update has this property.
    """
    length = 1.0
    while length >= MIN_LENGTH:
        with np.errstate(all="ignore"):
            after = equation.rate(t, values + length * update)
            if root_mean_square(newton(after)) <= (1 - length / 4) * root_mean_square(update):
                return values + length * update, after
        length /= 2
    raise NonFinite("Newton's iteration does not converge: no state along an update is nearer to a steady one")


def _conserved(equation: Equation, matrix: Any, values: Floats, rate: Floats) -> Floats:
    """Return rows w (k, n) of the integrals w·u that are the same at all times, with w·J = 0 for J = ``matrix``.

    They are integrals of single fields or of linear combinations of fields; without a mesh, sums of numbers. Raises
    ValueError if such an integral has a rate of change. ``rate`` is that of u = ``values``.
    """
    volumes = np.ones(1) if equation.mesh is None else equation.mesh.volumes
    rows = np.kron(np.eye(rate.size // volumes.size), volumes)
    sizes = (rows @ np.abs(matrix)).max(axis=1)
    sizes[sizes == 0] = 1.0
    relative = (rows @ matrix) / sizes[:, None]
    relative[np.abs(relative) <= CONSERVED] = 0.0
    combinations, singular, _ = np.linalg.svd(relative, full_matrices=False)
    factors = combinations.T[singular <= CONSERVED * math.sqrt(rate.size)] / sizes
    largest = np.take_along_axis(factors, np.abs(factors).argmax(axis=1)[:, None], axis=1)
    sums = factors / largest @ rows
    sizes = np.abs(rate.ravel()) + ROUNDING * (np.abs(matrix) @ np.abs(values.ravel()))
    changes = sums @ rate.ravel()
    lost = np.abs(changes) > CHANGED * (np.abs(sums) @ sizes)
    if lost.any():
        change = float(changes[lost][0])
        raise ValueError(f"the integral of u changes at the rate {change:.3g} in all states: there is no steady state")
    return np.asarray(sums)
