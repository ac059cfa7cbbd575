"""Velocities given by fluxes through faces, among them the divergence-free ones of a stream function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..mesh.checks import check_array, check_call
from ..mesh.mesh import Floats, Mesh


class FaceFluxes:
    """Velocity X given by the integrals of X·n over each face, for :class:`~solvers.Advection`.

    Where the fluxes out of each cell add up to 0, constants stay constant to rounding.

    Parameters
    ----------
    flux : callable
        Function (time, u) → (faces,) array of these integrals, from the first cell of a face to the second, as in
        ``mesh.face_cells``. Fluxes through walls are not used.

    Raises
    ------
    TypeError
        If ``flux`` is no function of (t, u).

    Examples
    --------
    A flux of 1 through each of the 32 faces of a circle turns a field by one radian per unit of time:

    >>> import numpy as np
    >>> from solvers import Advection, Equation, FaceFluxes, circle, solve
    >>> mesh = circle(32)
    >>> x, y = mesh.centers.T
    >>> term = Advection(mesh, FaceFluxes(lambda t, u: np.ones(32)))
    >>> turned = solve(Equation(mesh, [term]), 2 + x, (0, np.pi / 2)).u[-1]
    >>> bool(np.abs(turned - (2 + y)).max() < 0.03)
    True
    """

    def __init__(self, flux: Callable[[float, Floats], Floats]) -> None:
        check_call("flux", flux, "t, u")
        self._flux = flux

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return the function that gives the velocity's fluxes through the faces of a mesh.

        Parameters
        ----------
        mesh : Mesh
            Mesh of the term.

        Returns
        -------
        callable
            Function (time, u) → (faces,) array of the integrals of X·n over each face, for a field u (cells,) or
            fields (fields, cells).
        """
        return self._flux


class StreamFunction:
    """Velocity X = k × ∇ψ of a stream function ψ, with the unit normal k, for :class:`~solvers.Advection`.

    X is (−∂ψ/∂y, ∂ψ/∂x) in the plane. On the unit sphere with latitude θ and longitude λ, X is −∂ψ/∂θ eastward and
    ∂ψ/∂λ/cos θ northward.

    Parameters
    ----------
    psi : callable
        Function ψ(time, points (n, d)) → (n,) array.

    Raises
    ------
    TypeError
        If ``psi`` is no function of (t, x).
    ValueError
        In :class:`~solvers.Advection`, if the mesh has no ends of faces. Meshes with ends are :func:`~solvers.sphere`,
        :func:`~solvers.icosphere`, and :func:`~solvers.box`, :func:`~solvers.torus` and :func:`~solvers.product` of two
        curves.

    Notes
    -----
    The flux through a face from x₀ to x₁, counterclockwise around its first cell, is ψ(x₀) − ψ(x₁). These fluxes are
    exact and sum to 0 around each cell: constants stay constant to rounding. A limited step makes no new extremum at
    cfl ≤ 0.4 on spheres and ½ on equal cells, for a flow that changes little within a step.

    Examples
    --------
    On the unit sphere, ψ = −z is the rotation about the z-axis by one radian per unit of time:

    >>> import numpy as np
    >>> from solvers import Advection, Equation, StreamFunction, solve, sphere
    >>> mesh = sphere(16)
    >>> x, y, z = mesh.centers.T
    >>> term = Advection(mesh, StreamFunction(lambda t, points: -points[:, 2]))
    >>> constant, turned = solve(Equation(mesh, [term]), np.stack([0 * x + 3, x]), (0, np.pi / 2)).u[-1]
    >>> bool(np.abs(constant - 3).max() < 1e-13) and bool(np.abs(turned - y).max() < 0.05)
    True
    """

    def __init__(self, psi: Callable[[float, Floats], Floats]) -> None:
        check_call("psi", psi, "t, x")
        self._psi = psi

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return a function that gives the flux of the velocity k × ∇ψ through each face of a mesh.

        Parameters
        ----------
        mesh : Mesh
            Mesh of the term.

        Returns
        -------
        callable
            Function (time, u) → (faces,) array of ψ(x₀) − ψ(x₁) for faces from x₀ to x₁, independent of u.

        Raises
        ------
        ValueError
            If the mesh has no ends of faces.
        """
        return partial(_differences, self._psi, mesh.backend.to_device(_ends(mesh).astype(mesh.volumes.dtype)))


def _differences(psi: Callable[[float, Floats], Floats], ends: Floats, time: float, values: Floats) -> Floats:
    """Return the fluxes ψ(x₀) − ψ(x₁) (faces,) of a stream function ψ at a time, for faces from x₀ to x₁.

    ``ends`` (2 faces, d) holds x₀ and x₁ of each face in turn; ``values`` is not used.
    """
    found = psi(time, ends)
    check_array("psi", found, (len(ends),), "ends of faces")
    return found[0::2] - found[1::2]


def _ends(mesh: Mesh) -> Floats:
    """Return the end points (2 faces, d) of all faces of a mesh: x₀ of face f at row 2f, x₁ at row 2f + 1.

    Raises ValueError if the mesh has no ends of faces.
    """
    if mesh.face_ends is None:
        raise ValueError(
            f"StreamFunction on a {mesh.manifold}: expected a sphere, icosphere, box, torus or product of two curves"
        )
    ends = mesh.face_ends()
    return ends.reshape(-1, ends.shape[-1])
