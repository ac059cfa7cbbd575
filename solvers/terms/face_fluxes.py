"""Velocities given by fluxes through faces, among them the divergence-free ones of a stream function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..mesh.checks import check_array, check_call
from ..mesh.mesh import Floats, Mesh


class FaceFluxes:
    """Velocity X given by ∫X·n over each face, which `Advection` accepts in place of a velocity at cell centers.

    flux   (time, u) → (faces,), from the first cell of a face to the second; fluxes through walls are not used

    Where the fluxes out of each cell add up to 0, constants stay constant to rounding.
    """

    def __init__(self, flux: Callable[[float, Floats], Floats]) -> None:
        check_call("flux", flux, "t, u")
        self._flux = flux

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return (time, u) → (faces,), the fluxes on a mesh for a field (cells,) or fields (fields, cells)."""
        return self._flux


class StreamFunction:
    """Velocity X = k × ∇ψ, k the unit normal: (−∂ψ/∂y, ∂ψ/∂x) in the plane; eastward −∂ψ/∂θ on the unit sphere,
    northward ∂ψ/∂λ/cos θ, with latitude θ and longitude λ.

    The flux through a face from x₀ to x₁, counterclockwise around its first cell, is ψ(x₀) − ψ(x₁). These fluxes are
    exact and sum to 0 around each cell: constants stay constant to rounding. A limited step makes no new extremum at
    cfl ≤ 0.4 on spheres and ½ on equal cells, for a flow that changes little within a step.

    psi    ψ(time, points (n, d)) → (n,)

    Meshes are `sphere`, `icosphere`, and `box` and `torus` of two dimensions; ValueError for others.
    """

    def __init__(self, psi: Callable[[float, Floats], Floats]) -> None:
        check_call("psi", psi, "t, x")
        self._psi = psi

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return (time, u) → (faces,), ψ(x₀) − ψ(x₁) on a mesh, independent of the field."""
        return partial(_differences, self._psi, mesh.backend.to_device(_ends(mesh).astype(mesh.volumes.dtype)))


def _differences(psi: Callable[[float, Floats], Floats], ends: Floats, time: float, values: Floats) -> Floats:
    """Return (faces,) differences of ψ between the ends (2 faces, d) of each face."""
    found = psi(time, ends)
    check_array("psi", found, (len(ends),), "ends of faces")
    flux: Floats = found[0::2] - found[1::2]
    return flux


def _ends(mesh: Mesh) -> Floats:
    """Return (2 faces, d) the two ends of each face in turn."""
    if mesh.face_ends is None:
        raise ValueError(
            f"StreamFunction on a {mesh.manifold}: expected a sphere, icosphere, torus or box of dimension 2"
        )
    ends = mesh.face_ends()
    return ends.reshape(-1, ends.shape[-1])
