"""Steady states of an equation by Newton's iteration."""

from __future__ import annotations

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
CONSERVED = 1e-9  # relative rate of change of a sum that counts as 0


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
        First state. If the equation conserves the integral of a field, as diffusion between walls does, the steady
        state has the integral of the guess.
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
    sums = _conserved(equation, matrix, rate)
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


def _conserved(equation: Equation, matrix: Any, rate: Floats) -> Floats:
    """Return the rows w (k, n) of the fields whose integral w·u is the same at all times, with w·J = 0.

    Raises ValueError if such an integral has a rate of change.
    """
    mesh = equation.mesh
    if mesh is None:
        return np.zeros((0, rate.size))
    rows = np.kron(np.eye(rate.size // mesh.cells), mesh.volumes)
    is_kept = np.abs(rows @ matrix).max(axis=1) <= CONSERVED * (rows @ np.abs(matrix)).max(axis=1)
    changes, sizes = rows @ rate.ravel(), rows @ np.abs(rate.ravel())
    lost = is_kept & (np.abs(changes) > 1e-6 * sizes)
    if lost.any():
        change = float(changes[lost][0])
        raise ValueError(f"the integral of u changes at the rate {change:.3g} in all states: there is no steady state")
    return np.asarray(rows[is_kept])
