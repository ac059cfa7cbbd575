"""Branches of stationary densities of a case over its noise or β: folds and stability, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.analysis.branches.continuation import Branch, follow
from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.branches.varied import OverBeta, OverNoise, Varied
from meanfield.analysis.stability_report import refusal_of_theory
from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.model.linear_stability import growth_rates
from meanfield.model.normalization import normalization_of

NOISE, BETA = "stabilizers.noise", "attention.beta"
_ROWS = 12  # of the table
_RATES = 8  # of each order, in JSON


@dataclass(frozen=True)
class BranchOfCase:
    """The branch, the key it is over, and what noise and β are multiplied by to be those of the case itself."""

    case: Case
    branch: Branch
    over: str
    unit: float
    beta_unit: float

    @property
    def name(self) -> str:
        """Of what varies: noise or beta."""
        return "noise" if self.over == NOISE else "beta"

    @property
    def critical(self) -> float:
        """Where the branch leaves the uniform density."""
        return self.branch.critical * (self.unit if self.over == NOISE else self.beta_unit)

    def uniform_is_stable(self, below: bool) -> bool:
        """To the degree that the branch begins with: below or above the critical noise or β."""
        return below == self.grows_above

    @property
    def grows_above(self) -> bool:
        """Whether that degree grows above the critical value: never of the noise, of β where attention rises."""
        if self.over == NOISE:
            return False
        attention, degree, p = self.case.attention, self.branch.degree, self.branch.critical
        d, value = self.case.domain.d, attention.value_scale
        rates = [growth_rates(d, beta, [degree], attention.normalization, 0.0, value)[0] for beta in (p, 1.01 * p)]
        return bool(rates[1] > rates[0])

    def parameter(self, point: Equilibrium) -> float:
        """What varies, at a point of the branch."""
        return self.unit * point.noise if self.over == NOISE else self.beta_unit * point.beta


def branch_of(case: Case, degree: int = 1, over: str = NOISE) -> BranchOfCase:
    """Stationary densities, symmetric about an axis, that leave the uniform one with the harmonic of ``degree``.

    Raises CaseError where linear theory does not apply, and where the uniform density is neutral to this degree for no
    value of the key ``over``, stabilizers.noise or attention.beta.
    """
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention, beta = case.attention, case.beta_on_unit_sphere
    if normalization_of(attention.normalization).is_two_sided:
        raise refusal("attention.normalization", attention.normalization, '"softmax" or "unnormalized", for branches')
    if beta == 0:
        raise CaseError("attention.beta = 0: expected another number, for branches of stationary densities")
    square = case.stabilizers.scale**2
    unit = square * (float(np.exp(-abs(beta))) if attention.rescaled else 1.0)
    try:
        return BranchOfCase(case, follow(_varied(case, over), degree), over, unit, 1 / square)
    except ValueError as error:
        raise CaseError(str(error)) from None


def _varied(case: Case, over: str) -> Varied:
    """What varies. Raises CaseError where β cannot."""
    attention, beta = case.attention, case.beta_on_unit_sphere
    if over == NOISE:
        return OverNoise(Equilibria(case.domain.d, beta, attention.normalization, attention.value_scale))
    if case.stabilizers.noise == 0:
        raise refusal(NOISE, 0.0, f"a number > 0, for a branch over {BETA}")
    if attention.rescaled:
        raise refusal("attention.rescaled", True, f"false, for a branch over {BETA}: its clock depends on it")
    if beta < 0:
        raise refusal(BETA, beta, "a kernel that grows with <x, y>, for a branch over it")
    return OverBeta(case.domain.d, case.noise_on_unit_sphere, beta, attention.normalization, attention.value_scale)


def as_dict(found: BranchOfCase) -> dict[str, Any]:
    """All numbers of a branch, for JSON."""
    branch = found.branch
    return {
        "over": found.over,
        "degree": branch.degree,
        f"critical_{found.name}": found.critical,
        "end": branch.end,
        "folds": [_numbers(found, point) for point in branch.folds],
        "equilibria": [_numbers(found, point) for point in branch.equilibria],
    }


def report(found: BranchOfCase) -> str:
    """A branch as text: where it begins, its folds, and some of its states."""
    branch, critical, name = found.branch, found.critical, found.name
    lines = [f"stationary densities about an axis, from degree {branch.degree} of the uniform one", ""]
    lines.append(f"{'critical ' + name:<17}{critical:.8g}")
    for fold in branch.folds:
        at = found.parameter(fold)
        lines.append(f"{'fold':<17}{at:.8g} = {at / critical:.7f} of it, mean token {abs(fold.order):.7f} long")
    if not branch.folds:
        lines.append("no fold: the transition is continuous along this branch")
    lines += ["", f"{name:>12}   mean token   fastest rate   unstable   other axes   unstable"]
    for k in np.unique(np.linspace(0, len(branch.equilibria) - 1, _ROWS).astype(int)):
        point = branch.equilibria[k]
        lines.append(
            f"{found.parameter(point):12.6g}   {abs(point.order):10.6f}   {point.fastest:+12.4e}   {point.unstable:8d}"
            f"   {point.fastest_across:+10.3e}   {point.unstable_across:8d}"
        )
    lines += [
        "",
        f"followed to here: {branch.end}",
        "fastest rates of perturbations about the same axis, and of those that are not symmetric about it (rotations",
        "left out), with the number of positive ones, per unit of time without rescaling",
    ]
    return "\n".join(lines)


def _numbers(found: BranchOfCase, point: Equilibrium) -> dict[str, Any]:
    return {
        "noise": found.unit * point.noise,
        "beta": found.beta_unit * point.beta,
        "mean_token": point.order,
        "fastest_rate": point.fastest,
        "unstable": point.unstable,
        "unstable_across": point.unstable_across,
        "rates": [[float(rate) for rate in rates[:_RATES]] for rates in point.rates],
    }
