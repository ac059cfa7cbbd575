"""Mean-field equation of a Transformer, term by term.

    ∂ₜρ + div(ρ X[ρ]) = κ Δρ + R[ρ]

on the circle or the sphere:

    X[ρ](x) = Pₓ (A[ρ](x) + F(x)) / s         attention and feed-forward network, kept on the sphere by layer norm, with
                                              the speed scale s: s = 1 for post, see meanfield/model/layer_norm.py
    κ Δρ                                      noise
    R[ρ]                                      growth and decay of tokens
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property

from meanfield.model.attention import Attention
from meanfield.model.layer_norm import LayerNorm, by_row, tangential_part
from meanfield.model.linear_stability import BelowTwiceTheMean, LinearRegime
from meanfield.model.reactions import Reaction
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.terms.term import Term
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.transforms.lost_sums import Empty

Local = Callable[[Floats], Floats]


class Velocity:
    """Velocity field X[ρ](x) = Pₓ (A[ρ](x) + F(x)) / s of tokens at the cell centers.

    attention      A[ρ]
    norm           the layer norm, which gives the speed scale s; None for post
    feed_forward   F: points (n, d) → (n, d), None without a network
    empty          value of A in cells far from all mass, see :class:`meanfield.model.attention.Attention`
    """

    def __init__(
        self,
        attention: Attention,
        norm: LayerNorm | None = None,
        feed_forward: Local | None = None,
        empty: Empty = "exact",
    ) -> None:
        self.attention, self.norm, self.empty = attention, LayerNorm() if norm is None else norm, empty
        backend = attention.mesh.backend
        self._local = None if feed_forward is None else backend.to_device(feed_forward(backend.to_host(self.centers)))
        if self._local is not None and attention.tangent:
            self._local = tangential_part(self.centers, self._local)

    @cached_property
    def restricted_to_mass(self) -> Velocity:
        """Return the velocity field that is exact only where the density has mass, and cheaper.

        Equations use this velocity.
        """
        velocity = copy(self)
        velocity.empty = "bounded"
        return velocity

    @property
    def centers(self) -> Floats:
        """Return the cell centers (cells, d) of the mesh."""
        return self.attention.mesh.centers

    def __call__(self, time: float, density: Floats) -> Floats:
        """Return the velocities X (cells, d) of tokens at the cell centers, tangent, for a density (cells)."""
        return self.of_output(time, self.attention.output(density, empty=self.empty))

    def along_rings(self, time: float, density: Floats, normalizer: Floats | None = None) -> Floats | None:
        """Return the components (2, cells) of the velocity along east and north on a sphere.

        The result is None where the velocity requires vectors in R³. The sum of the kernels over the density is added
        to ``normalizer`` (cells,), as by `Attention.along_rings`.
        """
        if self._local is not None:
            return None
        output = self.attention.along_rings(density, normalizer, empty=self.empty)
        if output is None:
            return None
        scale = self.norm.speed_scale(time, 1.0, output.T)
        return output if isinstance(scale, float) and scale == 1.0 else output / scale

    def normalizer_and_velocity(self, time: float, density: Floats) -> tuple[Floats, Floats]:
        """Return the sum of the kernels over a density (cells), and the velocities of tokens at the cell centers.

        The sum is Σ_h w_h Z_h e^{−log_bound} (cells) over heads h with weights w. The velocities are (cells, d), or
        components along east and north (cells, 2).
        """
        normalizer = self.attention.mesh.backend.xp.zeros_like(density)
        velocity = self.along_rings(time, density, normalizer)
        if velocity is not None:
            return normalizer, velocity.T
        normalizer, output = self.attention.normalizer_and_output(density, empty=self.empty)
        return normalizer, self.of_output(time, output)

    @property
    def takes_rows(self) -> bool:
        """Return whether many densities at once, by :meth:`of_rows`, are less work than one density after the other."""
        return self.attention.takes_rows or (self.attention.has_components and self._local is None)

    def of_rows(self, times: Sequence[float], densities: Floats) -> tuple[Floats, Floats]:
        """Return kernel sums (rows, cells) and velocities (rows, cells, d) for several densities (rows, cells).

        Each density has its own time. On the sphere d = 2, for components along east and north. Requires
        ``takes_rows``.
        """
        normalizer, output = self.attention.of_rows(densities, empty=self.empty)
        for row, time in zip(output, times, strict=True):
            velocity = self.of_output(time, row)
            if velocity is not row:
                row[...] = velocity
        return normalizer, output

    def output(self, density: Floats) -> Floats:
        """Return the output A + F (cells, d) of one layer, attention plus feed-forward network, for a density (cells).

        Where attention is tangent, the output is projected to the tangent space.
        """
        return self._with_local(self.attention.output(density, empty=self.empty))

    def of_output(self, time: float, output: Floats) -> Floats:
        """Return the velocities X (cells, d) of tokens from the attention field A = ``output`` (cells, d).

        ``output`` may be overwritten.
        """
        output = self._with_local(output)
        scale = self.norm.speed_scale(time, 1.0, output)
        velocity = output if self.attention.tangent else tangential_part(self.centers, output)
        return velocity if isinstance(scale, float) and scale == 1.0 else velocity / by_row(scale)

    def _with_local(self, output: Floats) -> Floats:
        """Add the feed-forward network F to the attention field A in place, and return the sum."""
        if self._local is not None:
            output += self._local
        return output


def mean_field_equation(
    mesh: Mesh, velocity: Velocity, noise: float = 0.0, reaction: Reaction | None = None
) -> Equation:
    """Return the equation ∂ₜρ = −div(ρ X[ρ]) + κ Δρ + R[ρ] of a density (cells) with mass 1.

    velocity   velocity X[ρ] of tokens, used through ``restricted_to_mass``
    noise      κ ≥ 0
    reaction   R[ρ], None without a reaction
    """
    near_uniform = LinearRegime(velocity.attention, noise, mesh.ambient_dimension, BelowTwiceTheMean(mesh))
    terms: list[Term] = [Advection(mesh, velocity.restricted_to_mass, nonnegative=True), near_uniform]
    if reaction is not None:
        terms.append(reaction)
    diffusion = [Diffusion(mesh, noise, nonnegative=True)] if noise > 0 else []
    return Equation(mesh, [*terms, *diffusion], limit=limit_positivity)
