"""Linear theory of a case, and distances between results."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis import comparison, stability_report
from meanfield.analysis.branches.branch import BranchOfCase, branch_of
from meanfield.case.errors import CaseError
from meanfield.results.result import Result
from meanfield.results.runs import CaseSource, load_case

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from solvers.io.reading import Run
    from solvers.mesh.mesh import Floats

DEGREES = 32


@dataclass(frozen=True, eq=False)
class Stability:
    """Linear growth e^{λt} of small deviations from the uniform density.

    degrees, rates    (n,) degrees l = 0, 1, … and their λ
    critical_noise    κ above which no degree grows
    report            the output of `meanfield stability`
    """

    degrees: NDArray[np.intp]
    rates: Floats
    critical_noise: float
    report: str

    @property
    def fastest(self) -> int:
        """Return the degree that grows fastest: about as many clusters form on the circle."""
        return int(self.degrees[np.argmax(self.rates)])

    def __repr__(self) -> str:
        return self.report


def stability(case: CaseSource, degrees: int = DEGREES) -> Stability:
    """Return the linear theory of a case about uniform, of degrees 0 … ``degrees`` − 1.

    Raises CaseError where the theory does not apply.
    """
    if not (isinstance(degrees, Integral) and degrees >= 1):
        raise CaseError(f"degrees = {degrees!r}: expected a whole number >= 1")
    case = load_case(case)
    text = stability_report.report(case)  # raises where the theory does not apply
    numbers = np.arange(degrees)
    rates = np.asarray(stability_report.rates_of(case, numbers))
    return Stability(numbers, rates, float(stability_report.critical_noise_of(case)), text)


def branch(
    case: CaseSource,
    over: str = "stabilizers.noise",
    degree: int = 1,
    negative: bool = False,
) -> BranchOfCase:
    """Return stationary densities about an axis as a key varies, stable and unstable, through their folds.

        found = mf.branch("noise_below", over="stabilizers.noise")
        [(found.parameter(state), state.order, state.fastest) for state in found.branch.equilibria]

    over      stabilizers.noise, attention.beta, or attention.value: v of V = vI
    degree    of the harmonic with which the branch leaves the uniform density
    negative  whether the harmonic is subtracted: another branch for even degrees, except on the circle

    ``str`` of the result is the text of `meanfield branch`. Raises CaseError where linear theory does not apply, and
    where the uniform density is never neutral to this degree.
    """
    return branch_of(load_case(case), degree, over, negative)


def compare(a: Result | str | Path, b: Result | str | Path | None = None) -> comparison.Comparison:
    """Return distances (L¹, Wasserstein) of two runs at common times, or between snapshots of one run. Raises
    FileError.
    """
    return comparison.compare(_run(a), None if b is None else _run(b))


def _run(source: Result | str | Path) -> Run | str | Path:
    if not isinstance(source, Result | str | Path):
        raise TypeError(f"{source!r}: expected a Result, or the path of a run's file")
    return source._run if isinstance(source, Result) else source
