"""Tokens at several numbers n beside their density: distances, fluctuations, exponents and final clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from meanfield.analysis.drawn import Drawn
from meanfield.analysis.token_numbers.cases import density_case, token_case
from meanfield.analysis.token_numbers.density import DensityRun
from meanfield.analysis.token_numbers.predicted import observable_values, predicted_variance, refusal_of_prediction
from meanfield.analysis.token_numbers.runs import run_tokens
from meanfield.analysis.token_numbers.statistics import (
    Estimate,
    exponent_of_deviations,
    exponent_of_means,
    first_above,
    mean_half_width,
    mean_ratio,
    variance_interval,
)
from meanfield.case.errors import CaseError
from meanfield.case.load import parse, to_toml
from meanfield.clusters.near import merging_angle
from meanfield.results.limit_text import report_of
from meanfield.results.runs import CaseSource, load_case
from meanfield.runtime.progress import has_bar
from meanfield.sections.formula import formula_problem
from meanfield.simulation import validate_setup
from solvers.mesh.coordinates import unit_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame
    from xarray import Dataset

    from meanfield.case.case import Case
    from solvers.mesh.mesh import Floats

NUMBERS, SEEDS, INTERVALS = (100, 300, 1000), 8, 10
MIN_SEEDS = 3  # for the variance without one seed
SOME_POINTS = 1000  # at which the values of observables are checked


@dataclass(frozen=True, eq=False, repr=False)
class Limit(Drawn):
    """Tokens at several numbers n beside their density: ``found.limit`` of the Dataset of :func:`~meanfield.limit`.

    ``repr`` is ``report``. Intervals have a confidence of 95 %.

    Attributes
    ----------
    case : Case
        Case of the density.
    n : (sizes,) array of int
        Numbers of tokens.
    time : (times,) array
        Output times.
    observables : tuple of str
        Formulas of the observables φ.
    order : int
        Order p of the Wasserstein distance W_p.
    distance : (sizes, seeds, times) array
        W_p from the tokens to the density in radians; on the sphere S² the mean over slices.
    moments : (sizes, seeds, times, observables) array
        Means Σ φ(x_i)/n over the tokens.
    density_moments : (times, observables) array
        Means ∫φρ of the density.
    predicted : (times, observables) array
        Limit of n Var(Σ φ(x_i)/n) for n → ∞; NaN where it is not computed, as after a collapse that no cells resolve.
    not_predicted : str
        Reason why ``predicted`` is NaN, or empty.
    clusters : (sizes, seeds) array of int
        Final numbers of clusters of the tokens.
    density_clusters : int
        Final number of clusters of the density; −1 for an axisymmetric density.
    tolerance : float
        Distance in radians up to which the tokens follow the density.
    rate : float
        Fastest growth rate λ of fluctuations about the uniform density; NaN for other densities.

    Examples
    --------
    Noise spreads tokens of an angle φ on the circle without attraction, so that n Var cos φ tends to 1/2:

    >>> import meanfield as mf
    >>> changes = {"attention.value": [[0, 0], [0, 0]], "stabilizers.noise": 1, "time.end": 4}
    >>> case = mf.load_case("growth_circle", changes)
    >>> data = mf.limit(case, n=[16, 64], seeds=4, observables=["cos(phi)"], intervals=2, progress=False)
    >>> found = data.limit
    >>> round(float(found.predicted[-1, 0]), 2)
    0.5
    >>> found.distance.shape, found.following.tolist()
    ((2, 4, 3), [True, True, True])
    """

    case: Case
    n: NDArray[np.intp]
    time: Floats
    observables: tuple[str, ...]
    order: int
    distance: Floats
    moments: Floats
    density_moments: Floats
    predicted: Floats
    not_predicted: str
    clusters: NDArray[np.intp]
    density_clusters: int
    tolerance: float
    rate: float

    drawing: ClassVar = "meanfield.figures.comparison.token_numbers:compose"
    drawing_size: ClassVar = (10.0, 6.4)

    def __repr__(self) -> str:
        return self.report

    @cached_property
    def report(self) -> str:
        """Return the text that ``meanfield limit`` prints."""
        return report_of(self)

    @property
    def seeds(self) -> int:
        """Return the number of seeds, for each n."""
        return int(self.distance.shape[1])

    @property
    def mean_distance(self) -> Floats:
        """Return the means (sizes, times) of the distance over the seeds."""
        return np.asarray(self.distance.mean(axis=1))

    @property
    def distance_half_width(self) -> Floats:
        """Return the half widths (sizes, times) of the t-intervals of ``mean_distance``."""
        return mean_half_width(self.distance, axis=1)

    @property
    def fluctuations(self) -> Floats:
        """Return n Var (sizes, times, observables) of the means over the tokens."""
        return np.asarray(self.n[:, None, None] * self.moments.var(axis=1, ddof=1))

    @property
    def fluctuations_interval(self) -> Floats:
        """Return the lower and upper ends (2, sizes, times, observables) of the 95 % intervals of ``fluctuations``."""
        return variance_interval(self.fluctuations, self.seeds)

    @property
    def following(self) -> NDArray[np.bool_]:
        """Return whether tokens of all n have followed the density up to each time (times,); always true at time 0.

        The exponents and the ratio of variances are averaged over these times.
        """
        return np.asarray((self.time <= self.followed.min()) | (self.time == 0))

    @property
    def all_follow_until(self) -> float:
        """Return the last output time up to which tokens of all n have followed the density."""
        return float(self.time[self.following][-1])

    @cached_property
    def exponent(self) -> Estimate:
        """Return the exponent p of the distance ∝ nᵖ, the mean until tokens leave the density, with its half width."""
        return exponent_of_means(self.n, self.distance[..., self.following].mean(axis=2))

    @cached_property
    def deviation_exponents(self) -> tuple[Estimate, ...]:
        """Return the exponents of the standard deviations of the observables."""
        moments = self.moments[:, :, self.following]
        return tuple(exponent_of_deviations(self.n, moments[..., k]) for k in range(len(self.observables)))

    @cached_property
    def measured_over_predicted(self) -> tuple[Estimate, ...]:
        """Return the ratio of n Var and its prediction for each observable, averaged over n and time."""
        times = self.following & np.isfinite(self.predicted).all(axis=1)
        scaled = (self.moments * np.sqrt(self.n)[:, None, None, None] / np.sqrt(self.predicted))[:, :, times]
        return tuple(mean_ratio(scaled[..., k]) for k in range(len(self.observables)))

    @property
    def followed(self) -> Floats:
        """Return the time (sizes,) at which the mean distance exceeds ``tolerance``; ∞ if it never does."""
        return np.array([first_above(self.time, row, self.tolerance) for row in self.mean_distance])

    @property
    def predicted_followed(self) -> Floats:
        """Return log(n)/2λ (sizes,), the time at which fluctuations n^{−1/2} e^{λt} are of order 1; NaN without λ."""
        return np.asarray(np.log(self.n) / (2 * self.rate))

    @property
    def configurations(self) -> Floats:
        """Return the fraction of the seeds whose tokens end in 0, 1, … clusters, (sizes, numbers of clusters).

        The first axis is the number n of tokens.
        """
        counts = np.arange(max(self.clusters.max(), self.density_clusters) + 1)
        return np.asarray((self.clusters[..., None] == counts).mean(axis=1))

    def to_xarray(self) -> Dataset:
        """Return the results as a Dataset with the dimensions n, seed, time, observable and clusters.

        Returns
        -------
        xarray.Dataset
            ``distance``, ``fluctuations`` with ``fluctuations_low`` and ``fluctuations_high``, ``predicted``,
            ``exponent``, ``configurations``, ``followed``, ``predicted_followed``, and the data behind these;
            ``exponent``, ``exponent_half_width`` and more in ``attrs``.
        """
        from xarray import Dataset

        low, high = self.fluctuations_interval
        of_each = ("n", "time", "observable")
        variables: dict[str, Any] = {
            "distance": (("n", "seed", "time"), self.distance, {"units": "rad", "long_name": f"W{self.order}"}),
            "fluctuations": (of_each, self.fluctuations, {"long_name": "n Var"}),
            "fluctuations_low": (of_each, low),
            "fluctuations_high": (of_each, high),
            "predicted": (of_each[1:], self.predicted, {"long_name": "limit of n Var"}),
            "exponent": ((), self.exponent.value),
            "moments": (("n", "seed", "time", "observable"), self.moments),
            "density_moments": (("time", "observable"), self.density_moments),
            "configurations": (("n", "clusters"), self.configurations, {"long_name": "share of the seeds"}),
            "final_clusters": (("n", "seed"), self.clusters),
            "followed": ("n", self.followed),
            "predicted_followed": ("n", self.predicted_followed),
        }
        coordinates = {
            "n": self.n,
            "seed": np.arange(self.seeds),
            "time": self.time,
            "observable": list(self.observables),
            "clusters": np.arange(self.configurations.shape[1]),
        }
        attributes = {
            "title": self.case.title,
            "exponent": self.exponent.value,
            "exponent_half_width": self.exponent.half_width,
            "order": self.order,
            "case": to_toml(self.case),
            "tolerance": self.tolerance,
            "rate": self.rate,
            "density_clusters": self.density_clusters,
            "not_predicted": self.not_predicted,
        }
        return Dataset(variables, coordinates, attributes)

    def to_dataframe(self) -> DataFrame:
        """Return the distances and fluctuations as a table with a row for each n, time and observable.

        Returns
        -------
        pandas.DataFrame
            Columns ``distance``, the mean over the seeds, ``fluctuations`` with its interval, and ``predicted``.
        """
        found = self.to_xarray()
        columns = ["distance", "fluctuations", "fluctuations_low", "fluctuations_high", "predicted"]
        return found.assign(distance=found.distance.mean("seed"))[columns].to_dataframe()


def limit_of_dataset(data: Dataset) -> Limit:
    """Return the `Limit` of a Dataset that :meth:`Limit.to_xarray` has made."""
    attributes = data.attrs
    return Limit(
        case=parse(attributes["case"]),
        n=data.n.values,
        time=data.time.values,
        observables=tuple(data.observable.values.tolist()),
        order=int(attributes["order"]),
        distance=data.distance.values,
        moments=data.moments.values,
        density_moments=data.density_moments.values,
        predicted=data.predicted.values,
        not_predicted=attributes["not_predicted"],
        clusters=data.final_clusters.values,
        density_clusters=int(attributes["density_clusters"]),
        tolerance=float(attributes["tolerance"]),
        rate=float(attributes["rate"]),
    )


def limit(
    case: CaseSource,
    n: Sequence[int] = NUMBERS,
    *,
    seeds: int | Sequence[int] = SEEDS,
    jobs: int = 1,
    observables: Sequence[str] | None = None,
    intervals: int = INTERVALS,
    order: int = 1,
    tolerance: float | None = None,
    progress: bool | None = None,
) -> Dataset:
    """Run tokens at several numbers n beside their density, and return how well the density describes n tokens.

    The tokens are drawn independently from the initial density of the case, on the circle, the sphere, or about an
    axis. Physics that particles do not have, such as a reaction, is refused.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case of the density, or of particles on the circle or the sphere, or a source of :func:`~meanfield.load_case`.
    n : sequence of int
        Numbers of tokens, at least two, increasing. The time of a run of tokens is proportional to n².
    seeds : int or sequence of int
        Number of seeds for each n, or the seeds; at least 3. Good values: 8 for distances, 100 for variances.
    jobs : int
        Number of processes on this machine.
    observables : sequence of str, optional
        Formulas of observables in coordinates, as in ``initial.density``: x, y and the angle phi on the circle; x, y,
        z, phi and theta on the sphere; z and theta about an axis. None: the components of the mean token.
    intervals : int
        Number of intervals between the output times.
    order : {1, 2}
        Order p of the Wasserstein distance W_p.
    tolerance : float, optional
        Distance in radians up to which tokens follow the density. None: the angle 1/√β that the kernel resolves, at
        most 1/4.
    progress : bool, optional
        Whether progress is shown, as in :func:`~meanfield.sweep`.

    Returns
    -------
    xarray.Dataset
        ``distance`` (n, seed, time), ``fluctuations`` n Var of the observables (n, time, observable) with the ends of
        their intervals and the ``predicted`` central limit, ``exponent`` of the distance in n, ``configurations``, the
        share of the seeds by final number of clusters, and the time until which n tokens ``followed`` the density.
        ``found.limit`` is a `Limit`, with ``report`` and ``plot()``.

    Raises
    ------
    CaseError
        If the case or an argument is not valid, checked before any run starts, or if a run fails.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM.

    References
    ----------
    Central limit theorem: Sznitman, Topics in propagation of chaos, 1991; Fernandez and Méléard, Stochastic Processes
    and their Applications 71, 1997.

    Examples
    --------
    Distances of independent tokens decrease as n^{−1/2}:

    >>> import meanfield as mf
    >>> case = mf.load_case("growth_circle", {"time.end": 0.5})
    >>> found = mf.limit(case, n=[16, 64, 256], seeds=8, intervals=2, progress=False)
    >>> bool(abs(found.attrs["exponent"] + 0.5) < found.attrs["exponent_half_width"] + 0.1)
    True
    """
    from xarray import Dataset, register_dataset_accessor

    if not hasattr(Dataset, "limit"):
        register_dataset_accessor("limit")(limit_of_dataset)  # type: ignore[no-untyped-call]
    return tokens_beside_density(
        load_case(case), n, seeds, jobs, observables, intervals, order, tolerance, progress
    ).to_xarray()


def tokens_beside_density(
    case: Case,
    n: Sequence[int],
    seeds: int | Sequence[int],
    jobs: int,
    observables: Sequence[str] | None,
    intervals: int,
    order: int,
    tolerance: float | None,
    progress: bool | None,
) -> Limit:
    """Run tokens at several numbers n beside their density, as :func:`limit` does with the same arguments."""
    chosen = list(seeds) if isinstance(seeds, Sequence | np.ndarray) else list(range(seeds))
    _check_arguments(n, chosen, jobs, intervals, order, tolerance)
    density = density_case(case, int(intervals))
    observables = tuple(_default_observables(density) if observables is None else observables)
    _check_observables(density, observables)
    cases = [token_case(density, int(count), int(intervals)) for count in n]
    validate_setup(density)
    run = DensityRun(density, order)
    reason = refusal_of_prediction(density)
    shape = int(intervals) + 1, len(observables)
    predicted = np.full(shape, np.nan) if reason else predicted_variance(density, int(intervals), observables)
    observe = partial(observable_values, observables, names=density.domain.formula)
    quiet = not (has_bar() if progress is None else progress)
    tokens = run_tokens(cases, [int(seed) for seed in chosen], run.distances, observe, int(jobs), quiet)
    return Limit(
        case=density,
        n=np.array(n, dtype=np.intp),
        time=run.times,
        observables=observables,
        order=order,
        distance=tokens.distance,
        moments=tokens.moments,
        density_moments=run.moments(observables),
        predicted=predicted,
        not_predicted=reason,
        clusters=tokens.clusters,
        density_clusters=run.clusters,
        tolerance=merging_angle(density.beta_on_unit_sphere) if tolerance is None else float(tolerance),
        rate=run.rate,
    )


def _check_arguments(n: Any, seeds: list[Any], jobs: Any, intervals: Any, order: Any, tolerance: Any) -> None:
    """Raise CaseError for an argument of :func:`limit` that is not valid."""
    counts = list(n) if isinstance(n, Sequence | np.ndarray) and not isinstance(n, str) else []
    if not _are_whole(counts, 2) or len(counts) < 2 or counts != sorted(set(counts)):
        shown = ",".join(map(str, counts)) or repr(n)
        raise CaseError(f"n = {shown}: expected at least two increasing whole numbers >= 2, such as 100,1000")
    if len(set(seeds)) < max(MIN_SEEDS, len(seeds)) or not _are_whole(seeds, 0):
        raise CaseError(f"seeds = {len(seeds)}: expected at least {MIN_SEEDS} different seeds")
    for name, value in (("jobs", jobs), ("intervals", intervals)):
        if not _are_whole([value], 1):
            raise CaseError(f"{name} = {value!r}: expected a whole number >= 1")
    if order not in (1, 2):
        raise CaseError(f"order = {order!r}: expected 1 or 2")
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 < float(tolerance) < np.inf):
        raise CaseError(f"tolerance = {tolerance!r}: expected an angle > 0 in radians")


def _are_whole(values: Sequence[Any], least: int) -> bool:
    """Return whether all values are whole numbers of at least ``least``."""
    return all(isinstance(value, Integral) and int(value) >= least for value in values)


def _default_observables(case: Case) -> list[str]:
    """Return the components of the mean token that a case has."""
    return [name for name in ("x", "y", "z") if name in case.domain.formula]


def _check_observables(case: Case, observables: Sequence[str]) -> None:
    """Raise CaseError without formulas, and for a formula that fails, is not finite or is constant on the sphere."""
    if not observables:
        raise CaseError("observables = (): expected at least one formula, such as x")
    somewhere = unit_vectors(np.random.default_rng(0).standard_normal((SOME_POINTS, case.domain.d)))
    for formula in observables:
        expected = formula_problem(formula, case.domain.formula)
        if expected is None:
            with np.errstate(all="ignore"):
                values = observable_values([formula], somewhere, case.domain.formula)
            if not (np.isfinite(values).all() and np.ptp(values) > 0):
                expected = "a formula that is finite at all points and not constant"
        if expected is not None:
            raise CaseError(f"observables = {formula}: expected {expected}")
