"""Equation of tokens with a radius: the density of (r, ω) for tokens x = rω off the sphere.

    ∂ₜρ + div_ω(ρ θ̇) + ∂_s(ρ ṡ) = 0 ,   θ̇ = P_ω A / (speed scale) ,   ṡ = g/r − γ − c ,   r = e^{s + ct}

θ̇ and ṙ = g are those of a layer norm that carries the radius (pre, peri, mix), or of none: ẋ = A(x). γ is the gate of
−γx. ρ(s, ω) is the density with respect to ds dω, s the logarithm of the radius: not to r^{d−1} dr dω, the volume of
R^d, so that radius and direction are two independent coordinates, and growth at a given rate is a translation of ρ.

c is the expansion: radii of cells grow as e^{ct}, so that growth over any number of decades stays on the mesh. Without
expansion, the outermost mass spreads outwards by one cell a stage; where βr² is large, attention depends on the
outermost mass alone, and would follow this numerical tail. With c = ‖V‖ − γ nothing can move outwards on the mesh: R(t)
≤ R₀ e^{(‖V‖ − γ)t}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meanfield.model.layer_norm import LayerNorm
from solvers.backends import Backend
from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import Floats, Mesh
from solvers.mesh.stack import stack
from solvers.terms.product import ProductAdvection, Velocities
from solvers.timestepping.equation import Equation, limit_positivity

Output = Callable[[float, Floats], Floats]


@dataclass(frozen=True)
class FreeRadius:
    """Cells of radius × direction for tokens x = rω; a density is an array (radii, directions), or flattened.

    directions   a circle or a sphere
    radial       an interval in s = log r, see :func:`radial_mesh`
    expansion    c: the radius of a cell is e^{s + ct}
    """

    directions: Mesh
    radial: Mesh
    expansion: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape (radii, directions) of a density."""
        return self.radial.cells, self.directions.cells

    @cached_property
    def around(self) -> Mesh:
        """Return the mesh of directions repeated for each radius: the order of the cells of a flattened density."""
        return stack(self.directions, self.radial.cells)

    @cached_property
    def outward(self) -> Mesh:
        """Return the mesh of radii repeated for each direction."""
        return stack(self.radial, self.directions.cells)

    @cached_property
    def volumes(self) -> Floats:
        """Return the volumes Δs·Δω (radii, directions) of the cells, s = log r: mass = density × volume."""
        return self.radial.volumes[:, None] * self.directions.volumes

    def on(self, backend: Backend) -> FreeRadius:
        """Return the same cells of radius and direction, with arrays on a backend's device except :meth:`radii`."""
        return replace(self, directions=self.directions.on(backend), radial=self.radial.on(backend))

    def radii(self, time: float = 0.0) -> Floats:
        """Return the radii of the cell centers (radii,), on the host: few numbers, which control loops."""
        return np.exp(self._log_radii + self.expansion * time)

    @cached_property
    def _log_radii(self) -> Floats:
        """Return the logarithms (shells,) of the radii of the shells, on the host."""
        return self.radial.on_host.centers[:, 0]

    def centers(self, time: float = 0.0) -> Floats:
        """Return the positions x = rω (radii, directions, d) of the cell centers at a time."""
        radii = self.directions.backend.to_device(self.radii(time))
        return radii[:, None, None] * self.directions.centers

    def on_directions(self, density: Floats) -> Floats:
        """Return the density of directions ∫ρ ds (directions,), the marginal of a density over radii."""
        return self.radial.volumes @ density.reshape(self.shape)

    def on_radii(self, density: Floats) -> Floats:
        """Return the density of s = log r, ∫ρ dω (radii,), the marginal of a density over directions."""
        return density.reshape(self.shape) @ self.directions.volumes

    def escaped(self, density: Floats) -> tuple[float, float]:
        """Return the masses in the cells of the smallest and the largest radius, which cannot leave the mesh."""
        masses = self.on_radii(density) * self.radial.volumes
        return float(masses[0]), float(masses[-1])


def radial_mesh(innermost: float, outermost: float, cells: int, core: float) -> Mesh:
    """Return a mesh of ``cells`` cells of s = log r between two radii: equal in r within ``core``, logarithmic beyond.

    The edges are r = core·sinh ξ in equal steps of ξ. Good values: a core of twice the width of the initial density, an
    innermost of a hundredth of that, an outermost of twice the expected radius.
    """
    steps = np.linspace(np.arcsinh(innermost / core), np.arcsinh(outermost / core), cells + 1)
    return from_edges(np.log(core * np.sinh(steps)), "log radius")


def free_radius_equation(space: FreeRadius, norm: LayerNorm, output: Output, gate: float = 0.0) -> Equation:
    """Return ∂ₜρ = −div_ω(ρ θ̇) − ∂_s(ρ ṡ) for the density ρ of tokens with direction ω and log radius s.

    The density has mass 1, and the shape (radii, directions) or flat.

    norm     a layer norm that carries the radius, or none
    output   (time, density (radii, directions)) → A (radii, directions, d), or (1, directions, d) where A does not
             depend on the radius, as for pre, peri and mix: see :mod:`meanfield.domains.free_radius.attention`
    gate     γ of the decay −γx
    """
    flow = _flow(space, norm, output, gate)
    return Equation(None, [ProductAdvection(space.around, space.outward, space.shape, flow)], limit=limit_positivity)


def _flow(space: FreeRadius, norm: LayerNorm, output: Output, gate: float) -> Velocities:
    """Return a function of time and density with angular velocities and rates of s of tokens at the cells.

    s = log r − ct with c = ``space.expansion``, the rate at which the radii of the cells grow. The shapes of velocities
    and rates are (radii, directions, d) and (radii, directions, 1). Both are zero in the cells of the smallest and the
    largest radius.
    """
    xp, to_device = space.directions.backend.xp, space.directions.backend.to_device
    direction = xp.tile(space.directions.centers, (space.radial.cells, 1))

    def velocities(time: float, density: Floats) -> tuple[Floats, Floats]:
        """Return angular velocities (radii, directions, d) and rates of s (radii, directions, 1) at the cells."""
        cells = (*space.shape, direction.shape[1])
        result = xp.broadcast_to(output(time, density), cells).reshape(direction.shape)
        radius = to_device(np.repeat(space.radii(time), space.directions.cells))
        angular_velocity, radial_velocity = norm.rates(time, radius, direction, result, gate)
        angular_velocity = angular_velocity.reshape(cells)
        drift = (radial_velocity / radius - space.expansion).reshape(*space.shape, 1)
        for velocity in (angular_velocity, drift):
            velocity[[0, -1]] = 0.0
        return angular_velocity, drift

    return velocities
