"""First-order transition of unnormalized attention beyond β*: formula, run and statement."""

from __future__ import annotations

from scipy.optimize import brentq
from scipy.special import ive

from meanfield.analysis.branches.continuation import follow
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.branches.varied import NoiseParameter
from meanfield.gallery.statement import Statement

Curve = tuple[list[float], list[float]]


def formula(d: int) -> float:
    """Return β* beyond which the transition of unnormalized attention with noise in R^d is discontinuous.

    β* satisfies I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d, I the modified Bessel function (Mun and Rosenzweig,
    arXiv:2606.05140v1, abstract).
    """
    return float(brentq(lambda beta: ive(d / 2 + 1, beta) / ive(d / 2, beta) - 1 / d, 0.5, 5.0))


def run(d: int, betas: tuple[float, float]) -> tuple[float, dict[str, Curve]]:
    """Return β* beyond which the transition is discontinuous, by continuation, and curves of order over noise κ/κ#.

    At β* the branch of ordered states leaves the uniform density at the critical noise κ# with dκ/d(order²) = 0. The
    slope (1 − κ#/κ)/order² at the first point of a branch is interpolated linearly to zero between the two ``betas``.
    """
    slopes, curves = [], {}
    for beta in betas:
        branch = follow(NoiseParameter(Equilibria(d, beta, "unnormalized", nodes=48)), steps=8)
        first = branch.equilibria[1]
        slopes.append((1 - branch.critical / first.noise) / first.order**2)
        noises = [point.noise / branch.critical for point in branch.equilibria]
        curves[f"β_=_{beta:g}"] = (noises, [point.order for point in branch.equilibria])
    return betas[0] - slopes[0] * (betas[1] - betas[0]) / (slopes[1] - slopes[0]), curves


def first_order(d: int, betas: tuple[float, float]) -> tuple[Statement, dict[str, Curve]]:
    """Return a statement that compares β* of :func:`formula` and of :func:`run` in dimension d, and curves to draw."""
    found, curves = run(d, betas)
    statement = Statement(
        text=f"β* beyond which the transition is discontinuous, d = {d}",
        source="Mun and Rosenzweig 2606.05140v1, abstract",
        read="abstract",
        expected=formula(d),
        found=found,
        tolerance=5e-3,
        reason="linear interpolation between two β",
    )
    return statement, curves
