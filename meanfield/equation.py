"""The mean-field equation of a Transformer, term by term.

    ∂ₜρ + div(ρ X[ρ]) = κ Δρ

on the circle or the sphere: X[ρ] is self-attention kept on the sphere by layer norm, κ is noise.
"""

from __future__ import annotations

from meanfield.attention import Attention
from solvers.evolution import Equation, limit_positivity
from solvers.mesh import Mesh
from solvers.terms import Advection, Diffusion


def mean_field_equation(mesh: Mesh, attention: Attention, noise: float = 0.0) -> Equation:
    """∂ₜρ = −div(ρ X[ρ]) + κ Δρ for a density (cells) with mass 1.

    attention   the velocity X[ρ]
    noise       κ ≥ 0
    """
    degree = attention.rate_degree
    linear_rate = attention.rate + noise * degree * (degree + mesh.centers.shape[1] - 2)
    return Equation(
        terms=[Advection(mesh, attention.velocity, linear_rate=linear_rate)],
        stiff=Diffusion(mesh, noise) if noise > 0 else None,
        limit=limit_positivity,
    )
