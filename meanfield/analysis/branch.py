"""Branches of stationary densities of a case over its noise: folds and stability, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.analysis.continuation import Branch, follow
from meanfield.analysis.equilibria import Equilibria, Equilibrium
from meanfield.analysis.stability_report import refusal_of_theory
from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.model.normalization import normalization_of

_ROWS = 12  # of the table


@dataclass(frozen=True)
class BranchOfCase:
    """The branch and what its noise is multiplied by to be that of the case's own clock and radius."""

    case: Case
    branch: Branch
    unit: float


def branch_of(case: Case, degree: int = 1) -> BranchOfCase:
    """Stationary densities, symmetric about an axis, that leave the uniform one with the harmonic of ``degree``.

    Raises CaseError where linear theory does not apply, and where modes of this degree decay without noise.
    """
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention, beta = case.attention, case.beta_on_unit_sphere
    if normalization_of(attention.normalization).is_two_sided:
        raise refusal("attention.normalization", attention.normalization, '"softmax" or "unnormalized", for branches')
    if beta == 0:
        raise CaseError("attention.beta = 0: expected another number, for branches of stationary densities")
    unit = case.stabilizers.scale**2 * (float(np.exp(-abs(beta))) if attention.rescaled else 1.0)
    equilibria = Equilibria(case.domain.d, beta, attention.normalization, attention.value_scale)
    try:
        return BranchOfCase(case, follow(equilibria, degree), unit)
    except ValueError as error:
        raise CaseError(str(error)) from None


def as_dict(found: BranchOfCase) -> dict[str, Any]:
    """All numbers of a branch, for JSON."""
    branch = found.branch
    return {
        "degree": branch.degree,
        "critical_noise": found.unit * branch.critical,
        "end": branch.end,
        "folds": [_numbers(found, point) for point in branch.folds],
        "equilibria": [_numbers(found, point) for point in branch.equilibria],
    }


def report(found: BranchOfCase) -> str:
    """A branch as text: where it begins, its folds, and some of its states."""
    branch, critical = found.branch, found.unit * found.branch.critical
    lines = [f"stationary densities about an axis, from degree {branch.degree} of the uniform one", ""]
    lines.append(f"critical noise   {critical:.8g}")
    for fold in branch.folds:
        noise = found.unit * fold.noise
        lines.append(
            f"fold             {noise:.8g} = {noise / critical:.7f} of it, mean token {abs(fold.order):.7f} long"
        )
    if not branch.folds:
        lines.append("no fold: the transition is continuous along this branch")
    lines += ["", "       noise   mean token   fastest rate   unstable rates"]
    for k in np.unique(np.linspace(0, len(branch.equilibria) - 1, _ROWS).astype(int)):
        point = branch.equilibria[k]
        noise, length = found.unit * point.noise, abs(point.order)
        lines.append(f"{noise:12.6g}   {length:10.6f}   {point.fastest:+12.4e}   {point.unstable:14d}")
    lines += [
        "",
        f"followed to here: {branch.end}",
        "rates are those of perturbations about the same axis, per unit of time without rescaling",
    ]
    return "\n".join(lines)


def _numbers(found: BranchOfCase, point: Equilibrium) -> dict[str, float]:
    return {
        "noise": found.unit * point.noise,
        "mean_token": point.order,
        "fastest_rate": point.fastest,
        "unstable": point.unstable,
    }
