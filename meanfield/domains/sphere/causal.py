"""Causal attention: tokens have a label s from 0 to 1 and attend to labels up to their own.

    ∂ₜρ(s,x) + div(ρ(s,x) X[ρ_{≤s}](x)) = κ Δρ(s,x) ,     ρ_{≤s}(x) = ∫₀ˢ ρ(r,x) dr

Karagodin, Polyanskiy and Rigollet (2411.04990) for tokens in a sequence, in which token k of n has the label k/n.
Labels are cells of equal mass; each label attends to the labels before it and to itself, so that n labels with one
token each are a sequence of n tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from meanfield.equation import Velocity
from meanfield.model.linear_stability import BelowTwiceTheMean, LinearRegime
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats, Mesh
from solvers.mesh.stack import stack
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation, limit_positivity


class CausalVelocity:
    """Velocity of tokens under a causal mask, for a density (labels, cells) whose labels have equal masses.

    A label s is the position of tokens in the sequence, from 0 to 1. The velocity of label s is X[ρ_{≤s}], where ρ_{≤s}
    is the density of all labels up to s.
    """

    def __init__(self, velocity: Velocity, labels: int) -> None:
        self.velocity, self.labels = velocity, labels
        self.dimension = velocity.centers.shape[1]

    def __call__(self, time: float, density: Floats) -> Floats:
        """Return the velocity X (labels·cells, d) of tokens at the cells, label by label.

        The density is (labels, cells) or (labels·cells,); a label is a position of tokens in the sequence.
        """
        by_label = density.reshape(self.labels, -1)
        result: Floats = backend_for(density).empty((*by_label.shape, self.dimension))
        for k, (share, seen) in enumerate(self._cumulative_densities(by_label)):
            result[k] = self._of_output(time, share, self.velocity.attention.output(seen, empty=self.velocity.empty))
        return result.reshape(-1, self.dimension)

    def normalizer_and_velocity(self, time: float, density: Floats) -> tuple[Floats, Floats]:
        """Return kernel sums (labels·cells) and the velocity X (labels·cells, d) of tokens, label by label.

        The kernel sums are Σ_h w_h ∫ k_h(x,y) ρ_{≤s}(y) dy · e^{−log_bound} over heads h with weights w, where ρ_{≤s}
        is the density of the labels (positions in the sequence) up to that of x.
        """
        by_label = density.reshape(self.labels, -1)
        backend = backend_for(density)
        normalizer, result = backend.xp.empty_like(by_label), backend.empty((*by_label.shape, self.dimension))
        for k, (share, seen) in enumerate(self._cumulative_densities(by_label)):
            of_label, output = self.velocity.attention.normalizer_and_output(seen, empty=self.velocity.empty)
            normalizer[k], result[k] = share * of_label, self._of_output(time, share, output)
        return normalizer.reshape(-1), result.reshape(-1, self.dimension)

    def _cumulative_densities(self, by_label: Floats) -> Iterator[tuple[float, Floats]]:
        """Yield for each label the mass of the density of all labels up to it, and this density scaled to mass 1."""
        seen = backend_for(by_label).xp.zeros_like(by_label[0])
        for k, of_label in enumerate(by_label):
            seen += of_label
            share = (k + 1) / self.labels
            yield share, seen / share

    def _of_output(self, time: float, share: float, output: Floats) -> Floats:
        """Return the velocity X (cells, d) of tokens of one label from the attention field ``output`` (cells, d).

        The field is that of ρ_{≤s}, the density of the labels up to s, divided by its mass ``share``. The field is
        overwritten.
        """
        if not self.velocity.attention.normalization.is_relative:
            output *= share
        return self.velocity.of_output(time, output)


def causal_equation(mesh: Mesh, velocity: Velocity, labels: int, noise: float = 0.0) -> Equation:
    """Return the equation of a density (labels·cells) under a causal mask, each label with the mass 1/labels.

    A label is a position of tokens in the sequence. ``noise`` is the coefficient κ of the diffusion κΔρ.
    """
    stacked = stack(mesh, labels)
    near_uniform = LinearRegime(velocity.attention, noise, mesh.centers.shape[1], BelowTwiceTheMean(stacked))
    flow = Advection(stacked, CausalVelocity(velocity.restricted_to_mass, labels), nonnegative=True)
    diffusion = [Diffusion(stacked, noise, nonnegative=True)] if noise > 0 else []
    return Equation(stacked, [flow, near_uniform, *diffusion], limit=limit_positivity)
