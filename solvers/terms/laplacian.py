"""Laplacian of a mesh with conditions on its boundary: matrix, Poisson's equation, eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..mesh.arguments import check_count
from ..mesh.boundaries import Boundaries, Value, boundary_parts
from ..mesh.checks import check_finite
from ..mesh.mesh import Floats, Mesh
from .diffusion import CONDITIONS, Diffusion
from .linear_solver import axes_of
from .operators import has_cubics, links_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_SUM = 1e-2  # integral over that of the absolute values: a larger one is no error of the mesh
ROUNDING = 1e-10  # relative eigenvalue that counts as zero
SOLVE_RTOL, MAX_ITERATIONS = 1e-11, 60  # of GMRES: relative residual, and dimension of the Krylov space


class Laplacian:
    """Laplacian Δ of fields on a mesh: Poisson's equation Δu = f, and its eigenvalues.

    Parameters
    ----------
    mesh : Mesh
        Mesh of a curve, a surface or a body, closed or with a boundary.
    boundaries : dict, optional
        Condition of each part of the boundary: :class:`~solvers.Wall` (the default), :class:`~solvers.Outflow`,
        :class:`~solvers.Value`, :class:`~solvers.Flux` or :class:`~solvers.Robin`. Data g(t, x) are those of t = 0.

    Attributes
    ----------
    mesh : Mesh
        The mesh.
    matrix : scipy.sparse.csr_matrix
        Matrix A (cells, cells) of Δu = A u + b, with the data b of the boundary.

    Raises
    ------
    TypeError
        If ``mesh`` is no mesh, or a boundary condition has another type or complex numbers.
    ValueError
        If a part of the boundary is unknown, or arrays of the mesh contradict each other.

    Notes
    -----
    Where no condition holds u itself, as on a closed mesh or between walls, constants are the nullspace of Δ. The
    equation Δu = f then has solutions only for ∫f = 0, up to the flux through the boundary, and :meth:`solve` returns
    the one of mean 0.

    Boxes are solved by diagonalization along their axes, rings of latitude by GMRES, other meshes by a sparse
    factorization. The factors are kept for further right-hand sides.

    Examples
    --------
    The stream function of a rotation of the sphere, Δψ = 2z, is ψ = −z:

    >>> from solvers import Laplacian, sphere
    >>> mesh = sphere(32)
    >>> z = mesh.centers[:, 2]
    >>> psi = Laplacian(mesh).solve(2 * z)
    >>> bool(abs(psi + z).max() < 1e-3)
    True

    Between ends that are held, Δu = −2 has the solution x(1 − x):

    >>> from solvers import Value, interval
    >>> line = interval(0.0, 1.0, 50)
    >>> x = line.centers[:, 0]
    >>> u = Laplacian(line, {"left": Value(0.0), "right": Value(0.0)}).solve(-2.0)
    >>> bool(abs(u - x * (1 - x)).max() < 2e-4)
    True
    """

    def __init__(self, mesh: Mesh, boundaries: Boundaries | None = None) -> None:
        self._term = Diffusion(mesh, 1.0, boundaries=boundaries)
        self.mesh = mesh
        self.matrix: csr_matrix = self._term.jacobian(1)[0].tocsr()
        holding = [part.cells for part in boundary_parts(mesh, boundaries, CONDITIONS) if _holds(part.condition)]
        self._held: NDArray[np.integer[Any]] = np.concatenate([np.zeros(0, dtype=np.int32), *holding])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_inverse", "_components")}

    def solve(self, f: npt.ArrayLike) -> Floats:
        """Return the solution u of Poisson's equation Δu = f, of second order.

        Parameters
        ----------
        f : float or (..., cells) array
            Right-hand side, or several.

        Returns
        -------
        (..., cells) array
            Solution; where Δ has a nullspace, the one of mean 0 for f less its mean.

        Raises
        ------
        TypeError
            If f is complex.
        ValueError
            If f has another shape or is not finite, or if Δ has a nullspace and the integral of f is more than a
            hundredth of that of its absolute value.
        """
        mesh = self.mesh
        given = np.asarray(f)
        if given.dtype.kind == "c":
            raise TypeError(f"f of {given.dtype}: expected real numbers, such as real and imaginary parts one by one")
        given = given.astype(np.float64)
        if given.ndim and given.shape[-1] != mesh.cells:
            raise ValueError(f"f of shape {given.shape}: expected a number or {mesh.cells} cells")
        right = np.broadcast_to(given, given.shape or (mesh.cells,)).reshape(-1, mesh.cells)
        check_finite("f", right)
        solution = self._inverse(self._without_means(right - self._source(), check=True))
        return self._without_means(solution).reshape(given.shape or (mesh.cells,))

    def eigs(self, k: int) -> tuple[Floats, Floats]:
        """Return the k eigenvalues of Δ of least absolute value, and their fields, with boundary data 0.

        Parameters
        ----------
        k : int
            Number of eigenvalues, at most cells − 2.

        Returns
        -------
        (k,) array
            Eigenvalues in decreasing order.
        (k, cells) array
            Fields of unit norm, ∫u² = 1. Those of equal eigenvalues span the same space but need not be orthogonal.

        Raises
        ------
        TypeError
            If k is no whole number.
        ValueError
            If k is not from 1 to cells − 2.
        """
        from scipy.sparse.linalg import eigs

        mesh = self.mesh
        check_count("k", k, 1, mesh.cells - 2)
        start = np.random.default_rng(0).standard_normal(mesh.cells)
        values, vectors = eigs(self.matrix, k, sigma=mesh.volume ** (-2 / mesh.dimension), v0=start)
        order = np.argsort(-values.real, kind="stable")
        fields = np.where(values.imag < 0, vectors.imag, vectors.real).T[order]  # of a pair of equal ones, by rounding
        return values.real[order], fields / np.sqrt(mesh.integrate(fields**2))[:, None]

    def _source(self) -> Floats:
        """Return the part b (cells,) of Δu = A u + b that is given by the data of the boundary."""
        term, source = copy(self._term), np.zeros(self.mesh.cells)
        term.prepare(0.0, np.zeros(self.mesh.cells))
        term.rate(0.0, source)
        return source

    @cached_property
    def _components(self) -> list[NDArray[np.intp]]:
        """Return the cells of each connected component of the mesh in which no condition holds u itself."""
        from scipy.sparse.csgraph import connected_components

        number, component = connected_components(self.matrix, directed=False)
        free = np.setdiff1d(np.arange(number), component[self._held])
        return [np.flatnonzero(component == each) for each in free]

    def _without_means(self, fields: Floats, check: bool = False) -> Floats:
        """Return fields (n, cells) less their means over each component with a nullspace.

        ``check``: raise ValueError if |∫f| > MAX_SUM ∫|f| over a component, for a field f.
        """
        fields = fields.copy()
        for cells in self._components:
            volumes = self.mesh.volumes[cells]
            integral, size = fields[:, cells] @ volumes, np.abs(fields[:, cells]) @ volumes
            if check and (np.abs(integral) > MAX_SUM * size).any():
                worst = float(integral[np.abs(integral).argmax()])
                raise ValueError(
                    f"f: integral of {worst:.3g}, with the flux through the boundary: expected 0, as constants are the"
                    " nullspace of the Laplacian here; subtract the mean of f, or hold u at a boundary by Value"
                )
            fields[:, cells] -= (integral / volumes.sum())[:, None]
        return fields

    @cached_property
    def _inverse(self) -> Callable[[Floats], Floats]:
        """Return the function that maps right-hand sides (n, cells) of mean 0 to solutions u (n, cells) of A u = f.

        One cell of each component with a nullspace has the value 0; its equation follows from the sum of the others.
        """
        axes = axes_of(self.mesh, self.matrix)
        if axes is not None:
            is_zero = np.abs(axes.values) <= ROUNDING * np.abs(axes.values).max()
            inverse = np.where(is_zero, 0.0, 1.0) / np.where(is_zero, 1.0, axes.values)
            return partial(axes.apply, inverse)
        rest = np.setdiff1d(np.arange(self.mesh.cells), [cells[0] for cells in self._components])
        solve = self._solver(rest)

        def solve_rest(fields: Floats) -> Floats:
            """Return solutions (n, cells), which are 0 in the cells that are left out."""
            solution = np.zeros_like(fields)
            solution[:, rest] = [solve(field[rest]) for field in fields]
            return solution

        return solve_rest

    def _solver(self, rest: NDArray[np.intp]) -> Callable[[Floats], Floats]:
        """Return the solver of the equations and unknowns of the cells ``rest``.

        On rings of latitude, GMRES with factors of two-point fluxes replaces factors of the fluxes by fitted cubics,
        whose stencil is four times as large.
        """
        from scipy.sparse.linalg import LinearOperator, gmres, splu

        matrix = self.matrix[rest][:, rest]
        if not has_cubics(self.mesh):
            found: Callable[[Floats], Floats] = splu(matrix.tocsc()).solve
            return found
        links = links_matrix(self.mesh, np.asarray(self.mesh.face_conductances()))
        nearby = LinearOperator(matrix.shape, splu(links[rest][:, rest].tocsc()).solve, dtype=float)

        def solve(right: Floats) -> Floats:
            """Return the solution (cells,) by GMRES. Raises ArithmeticError if the iteration does not converge."""
            solution, failed = gmres(matrix, right, M=nearby, rtol=SOLVE_RTOL, atol=0.0, restart=MAX_ITERATIONS)
            if failed:
                raise ArithmeticError("the linear solver does not converge")
            return np.asarray(solution)

        return solve


def _holds(condition: object) -> bool:
    """Return whether a condition a u + b ∂ₙu = g on the boundary has a > 0."""
    return isinstance(condition, Value) or getattr(condition, "a", 0.0) > 0
