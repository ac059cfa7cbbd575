"""Velocities given by their fluxes through faces, among them those of a stream function, without divergence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..mesh.checks import check_array, check_call
from ..mesh.mesh import Floats, Mesh


class FaceFluxes:
    """A velocity X by ∫X·n over each face, as `Advection` takes it in place of a velocity at cell centers.

    flux   (time, u) → (faces,), from the first cell of a face to the second; those of walls are not used

    Where the fluxes out of each cell add up to 0, constants stay constant to rounding.
    """

    def __init__(self, flux: Callable[[float, Floats], Floats]) -> None:
        check_call("flux", flux, "t, u")
        self._flux = flux

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return (time, u) → (faces,), the fluxes on a mesh, of a field (cells,) or fields (fields, cells)."""
        return self._flux


class StreamFunction:
    """The velocity X = k × ∇ψ, k the unit normal: (−∂ψ/∂y, ∂ψ/∂x) in the plane; eastward −∂ψ/∂θ on the unit sphere,
    northward ∂ψ/∂λ/cos θ, with latitude θ and longitude λ.

    A face that leads from x₀ to x₁, counterclockwise around its first cell, is passed by ψ(x₀) − ψ(x₁): exact, and in
    sum 0 around each cell: constants stay constant, and a limited step makes no new extremum, to rounding, at
    cfl ≤ 0.4 on spheres, ½ on equal cells, for a flow that does not change much in a step.

    psi    ψ(time, points (n, d)) → (n,)

    On `sphere`, `icosphere`, and `box` and `torus` of two dimensions; ValueError elsewhere.
    """

    def __init__(self, psi: Callable[[float, Floats], Floats]) -> None:
        check_call("psi", psi, "t, x")
        self._psi = psi

    def on(self, mesh: Mesh) -> Callable[[float, Floats], Floats]:
        """Return (time, u) → (faces,), ψ(x₀) − ψ(x₁) on a mesh, whatever the field."""
        return partial(_differences, self._psi, mesh.backend.to_device(_ends(mesh).astype(mesh.volumes.dtype)))


def _differences(psi: Callable[[float, Floats], Floats], ends: Floats, time: float, values: Floats) -> Floats:
    """(faces,) differences of ψ between the ends (2 faces, d) of each face."""
    found = psi(time, ends)
    check_array("psi", found, (len(ends),), "ends of faces")
    flux: Floats = found[0::2] - found[1::2]
    return flux


def _ends(mesh: Mesh) -> Floats:
    """(2 faces, d) the ends of each face, one after the other."""
    if mesh.face_ends is None:
        raise ValueError(
            f"StreamFunction on a {mesh.manifold}: expected a sphere, icosphere, torus or box of dimension 2"
        )
    ends = mesh.face_ends()
    return ends.reshape(-1, ends.shape[-1])
