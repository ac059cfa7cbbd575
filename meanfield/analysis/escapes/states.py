"""Metastable density and saddle of a case, from the branch of stationary densities over the noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meanfield.analysis.branches.continuation import Branch, follow
from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.branches.varied import NoiseParameter
from meanfield.analysis.stability_report import critical_noise_of, refusal_of_theory
from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from solvers.mesh.mesh import Floats

UNIFORM, ORDERED = "uniform", "ordered"
_NEWTON, _CONVERGED = 20, 1e-11  # iterations, and change of log f
_GRADIENT_FLOW = '"unnormalized": with noise, only its flow is the gradient flow of a free energy, for escapes'


@dataclass(frozen=True)
class BistableStates:
    """Uniform density, saddle and ordered density at the noise of a case, and their equations on the unit sphere."""

    equations: Equilibria
    uniform: Equilibrium
    saddle: Equilibrium
    ordered: Equilibrium


def bistable_states(case: Case) -> BistableStates:
    """Return the uniform density, the saddle and the ordered density at the noise of a case.

    Raises CaseError where linear theory does not apply, where the flow is no gradient flow of a free energy, and for a
    noise at which the uniform and the ordered density are not both stable.
    """
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention = case.attention
    if attention.normalization != "unnormalized":
        raise refusal("attention.normalization", attention.normalization, _GRADIENT_FLOW)
    beta = case.beta_on_unit_sphere
    if beta == 0:
        raise CaseError("attention.beta = 0: expected a nonzero number, for escapes")
    equations = Equilibria(case.domain.d, beta, attention.normalization, attention.value_scale)
    critical = critical_noise_of(case)
    noise = case.noise_on_unit_sphere / case.rescaling  # per unit of time without rescaling
    unit = case.stabilizers.scale**2 * case.rescaling
    try:
        branch = follow(NoiseParameter(equations), 1)
    except ValueError as error:
        raise CaseError(str(error)) from None
    found = [equations.equilibrium(u, noise) for u in _densities(equations, branch, noise)]
    saddles = [k for k, one in enumerate(found) if (one.unstable, one.unstable_across) == (1, 0)]
    if case.stabilizers.noise > critical and saddles and len(found) > saddles[0] + 1:
        ordered = found[saddles[0] + 1]
        if (ordered.unstable, ordered.unstable_across) == (0, 0):
            uniform = equations.equilibrium(np.zeros_like(equations.nodes), noise)
            return BistableStates(equations, uniform, found[saddles[0]], ordered)
    folds = [unit * fold.noise for fold in branch.folds if unit * fold.noise > critical]
    if not folds:
        raise CaseError(
            f"the transition at the critical noise {critical:.6g} is continuous: no density is metastable, for escapes"
        )
    expected = f"a number between {critical:.6g} and {max(folds):.6g}, where two densities are stable, for escapes"
    raise refusal("stabilizers.noise", case.stabilizers.noise, expected)


def _densities(equations: Equilibria, branch: Branch, noise: float) -> list[Floats]:
    """Return the logarithms (nodes,) of the densities at which a branch over the noise crosses ``noise``."""
    found = list[Floats]()
    for before, after in pairwise(branch.equilibria):
        if (before.noise - noise) * (after.noise - noise) < 0:
            part = (noise - before.noise) / (after.noise - before.noise)
            found.append(_solve(equations, (1 - part) * before.log_density + part * after.log_density, noise))
    return found


def _solve(equations: Equilibria, u: Floats, noise: float) -> Floats:
    """Return the logarithm of the stationary density near e^u at a noise, by Newton's iteration."""
    for _ in range(_NEWTON):
        residual, by_u, _ = equations.residual(u, noise)
        change = np.linalg.solve(by_u, residual)
        u = u - change
        if np.abs(change).max() < _CONVERGED:
            return u
    raise CaseError(f"stabilizers.noise: Newton's iteration does not converge at {noise:.6g}, too near a fold")
