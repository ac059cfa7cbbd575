"""Convergence study: errors over resolutions, against an exact solution or estimated, and observed orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..mesh.checks import check_call, check_unmasked
from ..mesh.mesh import Floats, Mesh

Answer = float | tuple[Mesh, Floats]


@dataclass(frozen=True)
class ConvergenceStudy:
    """Errors and observed orders over resolutions, as a table when printed.

    Each parameter is an attribute of the same name. :func:`~solvers.convergence_study` returns such a study.

    Parameters
    ----------
    resolutions : tuple of int
        Resolutions from coarse to fine.
    errors : tuple of float
        Error of each resolution. Without an exact solution these are Richardson estimates, NaN for the first resolution
        and where differences do not decrease.
    orders : tuple of float
        Observed orders log(error ratio)/log(resolution ratio) of consecutive resolutions, NaN where undefined.
    exact : bool
        Whether the errors refer to an exact solution.

    Examples
    --------
    The trapezoidal rule for the integral of e^x from 0 to 1 has the error (e − 1)/(12 n²).

    >>> import numpy as np
    >>> from solvers import convergence_study
    >>> def integral(n):
    ...     x = np.linspace(0.0, 1.0, n + 1)
    ...     return np.trapezoid(np.exp(x), x)
    >>> print(convergence_study(integral, (8, 16, 32), exact=np.e - 1))
    resolution            error   order
             8        2.237e-03
            16        5.593e-04    2.00
            32        1.398e-04    2.00
    """

    resolutions: tuple[int, ...]
    errors: tuple[float, ...]
    orders: tuple[float, ...]
    exact: bool

    @property
    def estimate(self) -> float:
        """Return the error of the finest resolution, estimated if there is no exact solution."""
        return self.errors[-1]

    def __str__(self) -> str:
        kind = "error" if self.exact else "estimated error"
        rows = [f"{'resolution':>10}  {kind:>15}  {'order':>6}"]
        for size, error, order in zip(self.resolutions, self.errors, self.orders, strict=True):
            columns = ("" if np.isnan(error) else f"{error:.3e}", "" if np.isnan(order) else f"{order:.2f}")
            rows.append(f"{size:>10}  {columns[0]:>15}  {columns[1]:>6}")
        return "\n".join(rows)

    def plot(self, ax: Any = None) -> Any:
        """Plot errors over resolutions, both logarithmic, with a line of the last order.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default those of a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the drawing.
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        sizes, errors = np.array(self.resolutions, dtype=float), np.array(self.errors)
        ax.loglog(sizes, errors, "o-", label="error" if self.exact else "estimated error")
        ax.loglog(
            sizes, errors[-1] * (sizes[-1] / sizes) ** self.orders[-1], "k:", label=f"order {self.orders[-1]:.2f}"
        )
        ax.set_xlabel("resolution")
        ax.set_ylabel("error")
        ax.legend()
        return ax


def convergence_study(
    problem: Callable[[int], Answer],
    resolutions: Sequence[int],
    exact: float | Callable[[Floats], Floats] | None = None,
) -> ConvergenceStudy:
    """Solve a problem at several resolutions; return errors and observed orders.

    Parameters
    ----------
    problem : callable
        Function of a resolution that returns a number, or a mesh and u, (cells,) or (fields, cells).
    resolutions : sequence of int
        Increasing numbers, such as cells: at least two, or three without an exact solution.
    exact : float or callable, optional
        Exact number, or function of the centers (cells, d) that returns an array of the shape of u. By default errors
        are estimated from consecutive resolutions: of numbers, or of fields on boxes and curves if each resolution is a
        multiple of the previous one.

    Returns
    -------
    ConvergenceStudy
        Errors of numbers in absolute terms, of fields as relative L² errors √(Σ V e² / Σ V u²) with cell volumes V.

    Raises
    ------
    TypeError
        If ``problem`` is no function of a resolution or returns another kind of object, or ``resolutions`` is no list.
    ValueError
        If the resolutions are too few or do not increase, ``exact`` does not fit the result of ``problem``, or the
        meshes cannot be compared.

    Examples
    --------
    Diffusion with a coefficient for each cell is of second order: cos πx in [0, 1] decays as e^{−π²t}.

    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, convergence_study, interval, solve
    >>> def heat(cells):
    ...     mesh = interval(0.0, 1.0, cells)
    ...     equation = Equation(mesh, [Diffusion(mesh, np.ones(cells))])
    ...     return mesh, solve(equation, np.cos(np.pi * mesh.centers[:, 0]), (0.0, 0.1), rtol=1e-6).u[-1]
    >>> exact = lambda x: np.exp(-0.1 * np.pi**2) * np.cos(np.pi * x[:, 0])
    >>> round(convergence_study(heat, (8, 16, 32), exact).orders[-1], 1)
    2.0
    """
    check_call("problem", problem, "resolution")
    if not isinstance(resolutions, (Sequence, np.ndarray)):
        raise TypeError(f"resolutions = {resolutions!r}: expected a list of numbers, coarse to fine")
    sizes = tuple(int(size) for size in resolutions)
    if len(sizes) < (2 if exact is not None else 3) or not all(a < b for a, b in pairwise(sizes)):
        need = "at least 2" if exact is not None else "at least 3, as there is no exact answer"
        raise ValueError(f"resolutions = {list(resolutions)}: expected {need}, increasing")
    answers = [_validate_answer(problem(size)) for size in sizes]
    if exact is None:
        return _self_convergence(sizes, answers)
    errors = [_error(answer, exact) for answer in answers]
    return ConvergenceStudy(sizes, tuple(errors), _orders(sizes, errors), True)


def _validate_answer(answer: Any) -> Answer:
    """Return the result of a problem; raise TypeError unless it is a number or a pair of a mesh and a field."""
    is_field = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Mesh)
    if not is_field and np.ndim(answer) != 0:
        raise TypeError(f"problem returns {type(answer).__name__}: expected a number or (mesh, u)")
    return answer  # type: ignore[no-any-return]  # as checked


def _self_convergence(sizes: tuple[int, ...], answers: list[Answer]) -> ConvergenceStudy:
    """Return a convergence study without an exact solution, with errors estimated from consecutive resolutions.

    The error of a result is its difference from the coarser one over r^p − 1, with the ratio r of the resolutions and
    the observed order p. An estimate is NaN unless p is positive.
    """
    differences = [_difference(coarse, fine) for coarse, fine in pairwise(answers)]
    orders = _orders(sizes[1:], differences)
    errors = [np.nan]
    for k, difference in enumerate(differences):
        ratio = sizes[k + 1] / sizes[k]
        order = orders[max(k, 1)]
        with np.errstate(over="ignore"):  # answers equal to rounding have a very large order
            errors.append(difference / float(np.power(ratio, order) - 1) if order > 0 else np.nan)
    return ConvergenceStudy(sizes, tuple(errors), (np.nan, *orders), False)


def _orders(sizes: Sequence[int], errors: Sequence[float]) -> tuple[float, ...]:
    """Return the orders log(error ratio)/log(resolution ratio) of consecutive resolutions; NaN for the first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.diff(np.log(errors)) / -np.diff(np.log(sizes))
    return (np.nan, *(float(order) for order in found))


def _error(answer: Answer, exact: Any) -> float:
    """Return the error of a problem's result: absolute for a number, relative in the L² norm for a field.

    Raises ValueError if ``exact`` is of another kind or shape than the result.
    """
    if isinstance(answer, tuple) != callable(exact):
        kind = "a function of the centers, as problem returns a field" if isinstance(answer, tuple) else "a number"
        raise ValueError(f"exact = {exact!r}: expected {kind}")
    if not isinstance(answer, tuple):
        return abs(float(answer) - float(exact))
    mesh, u = answer
    expected = exact(mesh.centers)
    check_unmasked("exact", expected)
    expected = np.asarray(expected, dtype=np.float64)
    if expected.shape != u.shape:
        raise ValueError(f"exact of shape {expected.shape}: expected {u.shape}, as the solution has")
    return _norm(mesh, u - expected) / _norm(mesh, expected)


def _difference(coarse: Answer, fine: Answer) -> float:
    """Return the difference of results at two resolutions: absolute for numbers, relative in L² for fields."""
    if not (isinstance(coarse, tuple) and isinstance(fine, tuple)):
        return abs(float(fine) - float(coarse))  # type: ignore[arg-type]
    (mesh, u), (finer, v) = coarse, fine
    return _norm(mesh, u - _restrict_field(mesh, finer, v)) / _norm(mesh, u)


def _restrict_field(mesh: Mesh, finer: Mesh, u: Floats) -> Floats:
    """Return the averages of a field u on the mesh ``finer`` over the cells of a coarser box or curve ``mesh``.

    Raises ValueError for a sphere of rings, and unless the numbers of cells along each axis are multiples of the
    coarser ones.
    """
    shape, fine = mesh.shape or (mesh.cells,), finer.shape or (finer.cells,)
    if len(shape) != len(fine) or any(b % a for a, b in zip(shape, fine, strict=True)) or mesh.manifold == "sphere":
        raise ValueError(f"meshes of {fine} and {shape} cells: expected boxes or curves, one a multiple of the other")
    split = [part for a, b in zip(shape, fine, strict=True) for part in (a, b // a)]
    lead = u.shape[:-1]
    axes = tuple(len(lead) + 2 * k + 1 for k in range(len(shape)))
    masses = (u * finer.volumes).reshape(*lead, *split).sum(axis=axes)
    return np.asarray(masses.reshape(*lead, mesh.cells) / mesh.volumes)


def _norm(mesh: Mesh, u: Floats) -> float:
    """Return the L² norm √(Σ V u²) of a field u, with the cell volumes V."""
    return float(np.sqrt((mesh.volumes * u**2).sum()))
