"""Branches of stationary densities of a case over noise, β or V = vI: folds and stability, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from meanfield.analysis.branches.continuation import Branch, follow
from meanfield.analysis.branches.equilibria import MOMENTS, Equilibria, Equilibrium
from meanfield.analysis.branches.special_points import UnlocatedPoint
from meanfield.analysis.branches.varied import BetaParameter, ContinuationParameter, NoiseParameter, ValueParameter
from meanfield.analysis.drawn import Drawn
from meanfield.analysis.stability_report import refusal_of_theory
from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.model.linear_stability import growth_rates
from meanfield.model.normalization import normalization_of

if TYPE_CHECKING:
    from xarray import Dataset

NOISE, BETA, VALUE = "stabilizers.noise", "attention.beta", "attention.value"
_NAMES = {NOISE: "noise", BETA: "beta", VALUE: "value"}
_ROWS = 12  # rows of the table
_BEYOND = 1e-6  # relative to the critical parameter: nearer states differ from it only by rounding
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_RATES = 8  # rates of each order in JSON


@dataclass(frozen=True, repr=False)
class BranchOfCase(Drawn):
    """Branch of stationary densities of a case, as returned by :func:`~meanfield.branch`.

    ``repr`` is the text that ``meanfield branch`` prints; a notebook shows the figure.

    Attributes
    ----------
    case : Case
        The case.
    branch : Branch
        States along the branch, folds and bifurcations, for directions on the unit sphere.
    over : str
        Key that varies: "stabilizers.noise", "attention.beta" or "attention.value".
    unit : float
        Noise of the case over the noise of ``branch``.
    beta_unit : float
        β of the case over the β of ``branch``, which includes the scales of Q and K and the radius of the sphere.

    Examples
    --------
    >>> import meanfield as mf
    >>> found = mf.branch("noise_below", over="attention.value")
    >>> found.name, round(found.critical, 6)  # noise over critical noise
    ('value', 0.949877)
    >>> found.grows_above, found.uniform_is_stable(below=True)
    (True, True)
    """

    case: Case
    branch: Branch
    over: str
    unit: float
    beta_unit: float

    drawing: ClassVar = "meanfield.figures.branch:draw_branch"
    drawing_size: ClassVar = (6.4, 4.2)

    def __repr__(self) -> str:
        """Return the text that ``meanfield branch`` prints."""
        return report(self)

    def to_xarray(self) -> Dataset:
        """Return the states along the branch as a Dataset.

        Returns
        -------
        xarray.Dataset
            Variables over ``state``: the parameters noise, beta and value, the moments, the growth rate of the fastest
            mode, and the numbers of unstable modes.
        """
        from xarray import Dataset

        rows = [_numbers(self, point) for point in self.branch.equilibria]
        names = [name for name in rows[0] if name != "rates"]
        columns = {name: ("state", [row[name] for row in rows]) for name in names}
        return Dataset(columns, {"state": range(len(rows))}, {"over": self.over, "critical": self.critical})

    @property
    def name(self) -> str:
        """Return the name of the varied parameter: "noise", "beta" or "value"."""
        return _NAMES[self.over]

    @property
    def critical(self) -> float:
        """Return the value of the varied key at which the branch leaves the uniform density."""
        return self.branch.critical * {NOISE: self.unit, BETA: self.beta_unit, VALUE: 1.0}[self.over]

    def uniform_is_stable(self, below: bool) -> bool:
        """Return whether harmonics of the branch's degree decay about the uniform density on one side of ``critical``.

        Parameters
        ----------
        below : bool
            Whether the side is below the critical value of the varied key, or above.

        Returns
        -------
        bool
            True if the degree of the branch decays there.
        """
        return below == self.grows_above

    @property
    def grows_above(self) -> bool:
        """Return whether the mode in which the branch leaves the uniform density grows above the critical value.

        The mode is a harmonic of the degree of the branch. If the branch varies the noise, the result is False. If
        the branch varies v of V = vI, the result is True. If the branch varies β, the result is True where the growth
        rate of the mode increases with β.
        """
        if self.over != BETA:
            return self.over == VALUE
        attention, degree, p = self.case.attention, self.branch.degree, self.branch.critical
        d, value = self.case.domain.d, attention.value_scale
        rates = [growth_rates(d, beta, [degree], attention.normalization, 0.0, value)[0] for beta in (p, 1.01 * p)]
        return bool(rates[1] > rates[0])

    @property
    def measure(self) -> str:
        """Return the name of the number that ``moment`` returns: "mean token" for degree 1, else ⟨P_l⟩ of degree l."""
        subscript = str(self.branch.degree).translate(_SUBSCRIPTS)
        return "mean token" if self.branch.degree == 1 else f"⟨P{subscript}⟩"

    def moment(self, point: Equilibrium) -> float:
        """Return ``∫P_l(⟨x, e⟩)ρ``, the departure of a state from the uniform density, for the degree l of the branch.

        Parameters
        ----------
        point : Equilibrium
            State of the branch.

        Returns
        -------
        float
            The moment, between −1 and 1; its absolute value for l = 1.
        """
        value = float(point.moments[self.branch.degree - 1])
        return abs(value) if self.branch.degree == 1 else value

    def parameter(self, point: Equilibrium) -> float:
        """Return the value of the key that varies along the branch, in units of the case, at a state.

        Parameters
        ----------
        point : Equilibrium
            State of the branch.

        Returns
        -------
        float
            Noise κ, β or v.
        """
        return {NOISE: self.unit * point.noise, BETA: self.beta_unit * point.beta, VALUE: point.value}[self.over]


def branch_of(case: Case, degree: int = 1, over: str = NOISE, negative: bool = False) -> BranchOfCase:
    """Return the branch of axisymmetric stationary densities that leaves the uniform one in a harmonic of ``degree``.

    ``over`` is the key of the case that varies along the branch, or the last part of this key: stabilizers.noise,
    attention.beta, or attention.value, v of V = vI. With ``negative`` the branch has less of the harmonic at the axis;
    it is a different branch only for even degrees and d ≥ 3.

    Raises CaseError for a degree that is no integer from 1 to MOMENTS, where linear theory does not apply, and where
    the uniform density is neutral to this degree for no value of the key.
    """
    over = next((key for key in (NOISE, BETA, VALUE) if over == key.rpartition(".")[2]), over)
    if over not in (NOISE, BETA, VALUE):
        raise CaseError(f"over = {over!r}: expected one of {', '.join((NOISE, BETA, VALUE))}")
    if not (isinstance(degree, Integral) and 1 <= degree <= MOMENTS):
        raise CaseError(f"degree = {degree!r}: expected an integer from 1 to {MOMENTS}")
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention, beta = case.attention, case.beta_on_unit_sphere
    if normalization_of(attention.normalization).is_two_sided:
        raise refusal("attention.normalization", attention.normalization, '"softmax" or "unnormalized", for branches')
    if beta == 0:
        raise CaseError("attention.beta = 0: expected a nonzero number, for branches of stationary densities")
    unit = case.stabilizers.scale**2 * case.rescaling
    try:
        branch = follow(_continuation_parameter(case, over, unit), degree, negative=negative)
    except ValueError as error:
        raise CaseError(str(error)) from None
    return BranchOfCase(case, branch, over, unit, attention.beta / beta)


def _continuation_parameter(case: Case, over: str, unit: float) -> ContinuationParameter:
    """Return the continuation parameter of a branch over the key ``over``: noise, β, or v of V = vI.

    ``unit`` is the noise of the case divided by the noise in the equations on the unit sphere. Raises CaseError where β
    or V cannot vary.
    """
    attention, beta = case.attention, case.beta_on_unit_sphere
    if over == NOISE:
        return NoiseParameter(Equilibria(case.domain.d, beta, attention.normalization, attention.value_scale))
    if case.stabilizers.noise == 0:
        raise refusal(NOISE, 0.0, f"a number > 0, for a branch over {over}")
    if over == VALUE:
        return ValueParameter(Equilibria(case.domain.d, beta, attention.normalization), case.stabilizers.noise / unit)
    if attention.rescaled:
        raise refusal("attention.rescaled", True, f"false, for a branch over {BETA}: its clock depends on it")
    if beta < 0:
        raise refusal(BETA, beta, "a kernel that grows with <x, y>, for a branch over it")
    return BetaParameter(case.domain.d, case.noise_on_unit_sphere, beta, attention.normalization, attention.value_scale)


def as_dict(found: BranchOfCase) -> dict[str, object]:
    """Return the critical parameter, folds, bifurcations and states of a branch as plain values for JSON."""
    branch = found.branch
    return {
        "over": found.over,
        "degree": branch.degree,
        f"critical_{found.name}": found.critical,
        "end": branch.end,
        "folds": [_numbers(found, point) for point in branch.folds],
        "bifurcations": [{"order": one.order} | _numbers(found, one.state) for one in branch.bifurcations],
        "not_located": [_describe_unlocated(found, one) for one in branch.unlocated],
        "equilibria": [_numbers(found, point) for point in branch.equilibria],
    }


def _transition(found: BranchOfCase) -> str:
    """Return a sentence on whether the transition from the uniform density along a branch without folds is continuous.

    It is not continuous if a state of the branch lies where the uniform density is stable.
    """
    over_critical = [found.parameter(state) / found.critical - 1 for state in found.branch.equilibria]
    if any(abs(off) > _BEYOND and found.uniform_is_stable(below=off < 0) for off in over_critical):
        return "the branch has states where the uniform density is stable, so the transition is not continuous"
    return "the transition is continuous along this branch"


def report(found: BranchOfCase) -> str:
    """Return a text on a branch of stationary densities: critical parameter, folds, bifurcations, and some states."""
    branch, critical, name = found.branch, found.critical, found.name
    lines = [f"axisymmetric stationary densities that leave the uniform one with degree {branch.degree}", ""]
    lines.append(f"{'critical ' + name:<17}{critical:.8g}")
    length = " length" if branch.degree == 1 else ""
    for fold in branch.folds:
        at = found.parameter(fold)
        lines.append(
            f"{'fold':<17}{at:.8g} = {at / critical:.7f} times critical, "
            f"{found.measure}{length} {found.moment(fold):.7f}"
        )
    if not branch.folds:
        lines.append(f"no fold: {_transition(found)}")
    for one in branch.bifurcations:
        at, what = (
            found.parameter(one.state),
            "with the same axis" if one.order == 0 else f"of order {one.order} about the axis",
        )
        lines.append(f"{'bifurcation':<17}{at:.8g} = {at / critical:.7f} times critical, to states {what}")
    lines += [f"{'not located':<17}{_describe_unlocated(found, one)}" for one in branch.unlocated]
    lines += ["", f"{name:>12}   {found.measure:>10}   fastest rate   unstable   other axes   unstable"]
    for k in np.unique(np.linspace(0, len(branch.equilibria) - 1, _ROWS).astype(int)):
        point = branch.equilibria[k]
        lines.append(
            f"{found.parameter(point):12.6g}   {found.moment(point):10.6f}   {point.fastest:+12.4e}"
            f"   {_count(point.unstable, point.unknown):>8}   {point.fastest_across:+10.3e}"
            f"   {_count(point.unstable_across, point.unknown_across):>8}"
        )
    lines += [
        "",
        f"followed to {name} {found.parameter(branch.equilibria[-1]):.8g}: {branch.end}",
        "fastest rates of perturbations about the same axis, and of those that break the axial symmetry (rotations",
        "excluded), with the number of positive rates, per unit of time without rescaling",
    ]
    if any(point.unknown + point.unknown_across for point in branch.equilibria):
        lines.append("1 to 2: one rate is positive, the sign of another is below rounding, as at the uniform density")
    return "\n".join(lines)


def _count(positive: int, unknown: int) -> str:
    """Return the number of positive growth rates as text, such as "1", or "1 to 2" if one more has an unknown sign."""
    return f"{positive} to {positive + unknown}" if unknown else str(positive)


def _describe_unlocated(found: BranchOfCase, one: UnlocatedPoint) -> str:
    """Return a line on a fold or bifurcation that was detected between two states and not located."""
    first, last = (found.parameter(state) for state in one.between)
    where = f"{found.name} between {first:.8g} and {last:.8g}"
    return f"a fold or bifurcation of order {one.order}, degree {found.branch.degree}, {where}: {one.reason}"


def _numbers(found: BranchOfCase, point: Equilibrium) -> dict[str, object]:
    """Return the numbers of a state of the branch for JSON, with the parameters in units of the case."""
    return {
        "noise": found.unit * point.noise,
        "beta": found.beta_unit * point.beta,
        "value": point.value,
        "mean_token": point.order,
        "moment": found.moment(point),
        "fastest_rate": point.fastest,
        "unstable": point.unstable,
        "unstable_across": point.unstable_across,
        "unknown_sign": point.unknown,
        "unknown_sign_across": point.unknown_across,
        "rates": [[float(rate) for rate in rates[:_RATES]] for rates in point.rates],
    }
