"""Linear theory of a case, and distances between results."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from meanfield.analysis import comparison, stability_report
from meanfield.analysis.branches.branch import BranchOfCase, branch_of
from meanfield.analysis.drawn import Drawn
from meanfield.case.errors import CaseError
from meanfield.results.result import Result
from meanfield.results.runs import CaseSource, load_case

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xarray import Dataset

    from solvers.io.reading import Run
    from solvers.mesh.mesh import Floats

DEGREES = 32


@dataclass(frozen=True, eq=False)
class Stability(Drawn):
    """Linear growth e^{λt} of small deviations from the uniform density, as returned by :func:`~meanfield.stability`.

    ``repr`` is ``report``; a notebook shows the growth rates.

    Attributes
    ----------
    degrees : (n,) array of int
        Degrees l = 0, 1, … of the modes.
    rates : (n,) array
        Growth rate λ of each degree, per unit of time, noise included. Degree 0 is the mass, with the rate 0.
    critical_noise : float
        Noise κ above which no degree grows; 0 if no degree grows without noise.
    report : str
        Text that ``meanfield stability`` prints.
    breaking_times : (draws,) array or None
        Sorted sample of the predicted times at which n independent uniform tokens leave the uniform density, if n is
        given: the growing modes then have a mean square of ρ/ρ̄ − 1 of 0.3².

    Examples
    --------
    >>> import meanfield as mf
    >>> found = mf.stability("growth_circle", degrees=8)
    >>> found.fastest, round(float(found.rates[found.fastest]), 6)
    (3, 0.682678)
    """

    degrees: NDArray[np.intp]
    rates: Floats
    critical_noise: float
    report: str
    breaking_times: Floats | None = None

    drawing: ClassVar = "meanfield.figures.rates:compose_rates"
    drawing_size: ClassVar = (6.4, 3.2)

    @property
    def fastest(self) -> int:
        """Return the degree of ``degrees`` that grows fastest: about as many clusters form on the circle."""
        return int(self.degrees[np.argmax(self.rates)])

    def __repr__(self) -> str:
        return self.report

    def to_xarray(self) -> Dataset:
        """Return the growth rates as a Dataset.

        Returns
        -------
        xarray.Dataset
            ``rate`` over ``degree``; the attribute critical_noise.
        """
        from xarray import Dataset

        rates = ("degree", self.rates, {"long_name": "growth rate", "units": "1/time"})
        return Dataset({"rate": rates}, {"degree": self.degrees}, {"critical_noise": self.critical_noise})


def stability(case: CaseSource, degrees: int = DEGREES, tokens: int | None = None) -> Stability:
    """Return the growth rates of small deviations from the uniform density, by degree.

    The theory applies to domains with a uniform density, in continuous depth, and to one head whose matrices are
    multiples of the identity, with the exponential kernel and layer norm post, without a mask, pattern, sequence,
    network or reaction.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, or a source of :func:`~meanfield.load_case`.
    degrees : int
        Number of degrees l = 0, 1, …, at least 1. Good values: from 2√(2β) on, since l ≈ √(2β) grows fastest.
    tokens : int, optional
        Number n of independent uniform tokens, whose predicted time of symmetry breaking is returned too.

    Returns
    -------
    Stability
        Degrees, rates and the critical noise as attributes, with ``fastest`` and ``report``.

    Raises
    ------
    CaseError
        If the theory does not apply to the case, if the case is not valid, if ``degrees`` or ``tokens`` is below 1,
        or with ``tokens`` if no mode grows.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794. With noise: Mun and Rosenzweig, arXiv:2606.05140.

    Examples
    --------
    On the circle with softmax, degree 1 grows at I₁(β)/(β I₀(β)), which is also the critical noise:

    >>> import meanfield as mf
    >>> found = mf.stability("growth_circle")  # β = 5
    >>> round(float(found.rates[1]), 6), round(found.critical_noise, 6), found.fastest
    (0.178677, 0.178677, 3)

    The median time at which 1000 tokens leave the uniform density:

    >>> times = mf.stability("growth_circle", tokens=1000).breaking_times
    >>> round(float(times[len(times) // 2]), 1)
    1.6
    """
    for name, number in (("degrees", degrees), ("tokens", 1 if tokens is None else tokens)):
        if not (isinstance(number, Integral) and number >= 1):
            raise CaseError(f"{name} = {number!r}: expected a whole number >= 1")
    case = load_case(case)
    text = stability_report.report(case)  # raises where the theory does not apply
    times = None
    if tokens is not None:
        times = stability_report.breaking_times_of(case, tokens)
        text += f"\n\n{stability_report.report_breaking(times, tokens)}"
    numbers = np.arange(degrees)
    rates = np.asarray(stability_report.rates_of(case, numbers))
    return Stability(numbers, rates, float(stability_report.critical_noise_of(case)), text, times)


def branch(
    case: CaseSource,
    over: str = "stabilizers.noise",
    degree: int = 1,
    negative: bool = False,
) -> BranchOfCase:
    """Return the axisymmetric stationary densities of a case as a key varies, stable and unstable, through their folds.

    The branch begins at the uniform density, where a harmonic of ``degree`` neither grows nor decays.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, or a source of :func:`~meanfield.load_case`.
    over : {"stabilizers.noise", "attention.beta", "attention.value"}
        Key that varies, or its short name: noise κ, inverse temperature β, or v of V = vI.
    degree : int
        Degree l of the harmonic, from 1 to 32.
    negative : bool
        Whether the harmonic is subtracted at the axis. For even degrees this is another branch, except on the circle.

    Returns
    -------
    BranchOfCase
        The branch, with its ``critical`` value, ``branch.equilibria``, ``branch.folds``, and the methods ``parameter``
        and ``moment`` of a state. ``str`` of it is the text that ``meanfield branch`` prints.

    Raises
    ------
    CaseError
        If the case is not valid, or linear theory does not apply to it (see :func:`~meanfield.stability`); for Sinkhorn
        normalization, β = 0, another key and another degree; without noise over β or v; with rescaled attention or
        β < 0 over β; and where the uniform density is nowhere neutral to this degree.

    References
    ----------
    Pseudo-arclength continuation: Keller 1977. Transitions: Mun and Rosenzweig, arXiv:2606.05140.

    Examples
    --------
    Below the noise I₁(β)/(β I₀(β)) the circle has densities with a mean token; here β = 2, without a fold:

    >>> import meanfield as mf
    >>> found = mf.branch("noise_below", over="stabilizers.noise")
    >>> round(found.critical, 6), len(found.branch.folds)
    (0.348887, 0)
    >>> last = found.branch.equilibria[-1]
    >>> bool(found.parameter(last) < found.critical and found.moment(last) > 0.9)
    True
    """
    return branch_of(load_case(case), degree, over, negative)


def compare(a: Result | str | Path, b: Result | str | Path | None = None) -> comparison.Comparison:
    """Return distances between two runs at common times, or between the snapshots of one run.

    Each snapshot of one run is compared with the snapshot before it and with the last snapshot.

    Parameters
    ----------
    a : Result, str or Path
        Run, or the path of its file.
    b : Result, str or Path, optional
        Other run, on the same kind of domain. A circle compares with particles in d = 2 too, a sphere with particles in
        d = 3.

    Returns
    -------
    Comparison
        Distances L¹, W₁, W₂ and of the means in ``columns``, for each of ``times``.

    Raises
    ------
    FileError
        If a file cannot be read, holds no snapshot, or if the runs cannot be compared.
    TypeError
        If a run is neither a Result nor a path.

    Examples
    --------
    Two tokens at rest, a quarter of the circle apart:

    >>> import meanfield as mf
    >>> few = {"output.snapshots": 2, "output.samples": 2, "output.diagnostics": ["mass"]}
    >>> cases = [mf.load_case("tokens_pair", few | {"initial.points": [point]}) for point in ([1, 0], [0, 1])]
    >>> runs = [mf.simulate(case, progress=False) for case in cases]
    >>> found = mf.compare(*runs)
    >>> round(float(found.columns["w1"][-1]), 6)  # π/2
    1.570796
    """
    return comparison.compare(_run(a), None if b is None else _run(b))


def _run(source: Result | str | Path) -> Run | str | Path:
    """Return the run of a Result, or a path unchanged; raise TypeError for another object."""
    if not isinstance(source, Result | str | Path):
        raise TypeError(f"{source!r}: expected a Result, or the path of a run's file")
    return source._run if isinstance(source, Result) else source
