"""Escape of n tokens with noise from a metastable density: barrier, predicted and simulated mean times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from meanfield.analysis.drawn import Drawn
from meanfield.analysis.escapes.barrier import Barrier, barrier_between
from meanfield.analysis.escapes.reduction import Reduction, reduction_of
from meanfield.analysis.escapes.replicas import STEP, TokenSystem
from meanfield.analysis.escapes.simulated import batches_of, simulate_escapes
from meanfield.analysis.escapes.states import ORDERED, UNIFORM, BistableStates, bistable_states
from meanfield.analysis.escapes.waiting_times import Slope, WaitingTime, slope_of
from meanfield.case.errors import CaseError
from meanfield.results.runs import CaseSource, load_case
from meanfield.runtime.messages import print_message
from meanfield.runtime.progress import CountedProgress, has_bar
from meanfield.runtime.signals import stop_on_signal
from meanfield.sweeping.local_pool import cores

if TYPE_CHECKING:
    from xarray import Dataset

    from meanfield.case.case import Case

SEEDS = 64
_BARRIERS = (0.9, 1.6, 2.3, 3.0)  # nΔF/κ of the default n: few escapes above take minutes
_UNTIL = 4.0  # simulated time of a system over the predicted mean time; 2 % have not escaped then
_FEWEST = 10  # tokens
_COLUMNS = ("systems", "escaped", "mean_time", "lower", "upper", "predicted", "asymptotic")


@dataclass(frozen=True, eq=False, repr=False)
class Escape(Drawn):
    """Escape of n tokens from a metastable density, as returned by :func:`~meanfield.escape`.

    ``repr`` is ``report``. Intervals have a confidence of 95 %. An escape is the first passage of the length of the
    mean token through ``threshold``.

    Attributes
    ----------
    case : Case
        Case, whose noise and units of time apply.
    start : str
        Metastable density from which tokens escape: "uniform" or "ordered".
    forward : Barrier
        Metastable density, saddle, and the asymptotic mean time.
    reverse : Barrier
        Barrier from the other stable density over the same saddle.
    reduction : Reduction
        Reduction to one dimension, which predicts mean times also for low barriers.
    threshold : float
        Length of the mean token halfway between those of the saddle and of the other stable density.
    times : tuple of WaitingTime
        Simulated mean times for each n, empty without simulations.
    interrupted : bool
        Whether Ctrl-C ended the simulations; ``times`` are those of the simulated systems.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("noise_below", ["attention.beta=7", "attention.normalization=unnormalized"])
    >>> found = mf.escape(case.replace({"stabilizers.noise": 24.5}), n=())
    >>> round(found.barrier, 5)  # ΔF/κ
    0.00435
    """

    case: Case
    start: str
    forward: Barrier
    reverse: Barrier
    reduction: Reduction
    threshold: float
    times: tuple[WaitingTime, ...]
    interrupted: bool

    drawing: ClassVar = "meanfield.figures.escape_times:draw_escape"
    drawing_size: ClassVar = (6.4, 4.2)

    @property
    def barrier(self) -> float:
        """Return ΔF/κ, the barrier of the free energy for each token in units of the noise."""
        return self.forward.height

    def predicted(self, n: float) -> float:
        """Return the mean time of escape of ``n`` tokens, by the reduction to one dimension.

        Parameters
        ----------
        n : float
            Number of tokens.

        Returns
        -------
        float
            Mean time in units of the case.
        """
        return float(np.exp(self.reduction.log_time(n))) / self.case.rescaling

    def asymptotic(self, n: float) -> float:
        """Return the mean time of escape of ``n`` tokens in the limit of high barriers, by Eyring and Kramers.

        Parameters
        ----------
        n : float
            Number of tokens.

        Returns
        -------
        float
            Mean time in units of the case.
        """
        return float(np.exp(self.forward.log_time(n))) / self.case.rescaling

    @cached_property
    def slope(self) -> Slope | None:
        """Return the slope of the logarithm of the simulated mean time against n; None with fewer than two n."""
        return slope_of(self.times)

    @cached_property
    def corrected_slope(self) -> Slope | None:
        """Return the slope after division by the predicted prefactor T e^{−nΔF/κ}; None with fewer than two n."""
        logs = [np.log(self.predicted(one.n)) - one.n * self.barrier for one in self.times]
        return slope_of(self.times, np.array(logs))

    @property
    def report(self) -> str:
        """Return the text that ``meanfield escape`` prints."""
        return report_of(self)

    def to_xarray(self) -> Dataset:
        """Return the systems, escapes, mean times with intervals, and predicted times over ``n`` as a Dataset.

        Returns
        -------
        xarray.Dataset
            Variables over ``n``; the attributes barrier, threshold and start.
        """
        from xarray import Dataset

        rows = _rows(self)
        columns = {name: ("n", [row[name] for row in rows]) for name in _COLUMNS}
        attributes = {"barrier": self.barrier, "threshold": self.threshold, "start": self.start}
        return Dataset(columns, {"n": [one.n for one in self.times]}, attributes)

    def __repr__(self) -> str:
        return self.report


def escape(
    case: CaseSource,
    n: Sequence[int] | None = None,
    seeds: int = SEEDS,
    jobs: int | None = None,
    start: str = UNIFORM,
    progress: bool | None = None,
) -> Escape:
    """Return the barrier and the mean times of escape of n tokens with noise from a metastable density.

    The metastable density is the uniform one, or the ordered one on the branch of :func:`~meanfield.branch` with degree
    1. The mean time grows as e^{nΔF/κ}, with the barrier ΔF of the free energy F = κ∫ρ log ρ − E at the saddle on the
    unstable part of the branch. The case must have unnormalized attention: softmax attention with noise has no such
    free energy. The shape of the initial density, the resolution and the final time of the case are not used.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, or a source of :func:`~meanfield.load_case`.
    n : sequence of int, optional
        Numbers of tokens to simulate; empty for predictions only. None: four numbers whose free-energy barrier nΔF/κ is
        0.9 to 3.
    seeds : int
        Number of independent simulations for each n.
    jobs : int, optional
        Number of threads; None for one per core.
    start : {"uniform", "ordered"}
        Metastable density from which tokens escape.
    progress : bool, optional
        Whether progress is shown. None: on a terminal and in a notebook.

    Returns
    -------
    Escape
        Barrier, predicted and simulated mean times. A first Ctrl-C ends the simulations and returns what is done.

    Raises
    ------
    CaseError
        If the case is not valid, if linear theory does not apply to it (see :func:`~meanfield.stability`), for another
        normalization than "unnormalized", for a noise without two stable densities, and for a wrong argument.

    References
    ----------
    Dawson and Gärtner, Stochastics 20 (1987) 247. The prefactor is derived in :mod:`meanfield.analysis.escapes.barrier`
    after Langer, Annals of Physics 54 (1969) 258.

    Examples
    --------
    The mean time of 400 tokens near the transition at β = 7, without simulations:

    >>> import meanfield as mf
    >>> case = mf.load_case("noise_below", ["attention.beta=7", "attention.normalization=unnormalized"])
    >>> found = mf.escape(case.replace({"stabilizers.noise": 24.5}), n=())
    >>> round(found.predicted(400), 2)
    2.98
    """
    case = load_case(case)
    _check_arguments(n, seeds, jobs, start)
    states = bistable_states(case)
    found = _predict(case, states, start, n)
    counts = _default_counts(found.barrier) if n is None else sorted(set(n))
    if not counts:
        return found
    shown = has_bar() if progress is None else progress
    batches = [
        batch
        for count in counts
        for batch in batches_of(
            _system(states, found.forward, count), seeds, _UNTIL * float(np.exp(found.reduction.log_time(count)))
        )
    ]
    with stop_on_signal(print_message if shown else None) as stop:
        times = simulate_escapes(
            states.equations,
            found.forward.well,
            found.threshold,
            batches,
            jobs or cores(),
            CountedProgress("systems") if shown else None,
            lambda: bool(stop),
        )
        interrupted = bool(stop)
    scaled = tuple(replace(one, exposure=one.exposure / case.rescaling) for one in times if one.exposure)
    return replace(found, times=scaled, interrupted=interrupted)


def _check_arguments(n: Sequence[int] | None, seeds: int, jobs: int | None, start: str) -> None:
    """Raise CaseError for a wrong argument of :func:`escape`."""
    for count in n or ():
        if not (isinstance(count, Integral) and count >= _FEWEST):
            raise CaseError(f"n = {count!r}: expected whole numbers >= {_FEWEST}")
    for name, number in (("seeds", seeds), ("jobs", 1 if jobs is None else jobs)):
        if not (isinstance(number, Integral) and number >= 1):
            raise CaseError(f"{name} = {number!r}: expected a whole number >= 1")
    if start not in (UNIFORM, ORDERED):
        raise CaseError(f"start = {start!r}: expected one of {UNIFORM}, {ORDERED}")


def _predict(case: Case, states: BistableStates, start: str, n: Sequence[int] | None) -> Escape:
    """Return the barriers of a case and the predicted times, without simulations."""
    uniform, ordered = (
        barrier_between(states.equations, well, states.saddle) for well in (states.uniform, states.ordered)
    )
    barrier, reverse = (uniform, ordered) if start == UNIFORM else (ordered, uniform)
    threshold = (states.saddle.order + reverse.well.order) / 2
    fewest = min(n) if n else _default_counts(barrier.height)[0]
    reduction = reduction_of(states.equations, barrier, threshold, fewest)
    return Escape(case, start, barrier, reverse, reduction, threshold, (), interrupted=False)


def _default_counts(height: float) -> list[int]:
    """Return numbers n of tokens whose barriers nΔF/κ are about _BARRIERS, for ΔF/κ = ``height``, in two digits."""
    counts = [barrier / height for barrier in _BARRIERS]
    return sorted({max(_FEWEST, int(float(f"{count:.1e}"))) for count in counts})


def _system(states: BistableStates, barrier: Barrier, count: int) -> TokenSystem:
    """Return the equations of ``count`` tokens, with a step of STEP over the fastest rate of noise.

    The rate is κ times the largest of d − 1, the rate of the mean token, and of the mean of |∇ log ρ|² over the
    metastable density and over the saddle, which measures how narrow these densities are.
    """
    equations, noise = states.equations, barrier.well.noise
    fastest = noise * max(barrier.well_slope, barrier.saddle_slope, equations.dimension - 1)
    return TokenSystem(
        equations.dimension, equations.beta, equations.gain * equations.beta, noise, count, STEP / fastest
    )


def as_dict(found: Escape) -> dict[str, Any]:
    """Return the numbers of an escape as plain values for JSON."""
    slopes = {"slope": found.slope, "corrected_slope": found.corrected_slope}
    return {
        "from": found.start,
        "barrier": found.barrier,
        "reverse_barrier": found.reverse.height,
        "mean_token_of_saddle": found.forward.saddle.order,
        "mean_token_of_ordered": max(found.forward.well.order, found.reverse.well.order),
        "rate_of_saddle": found.forward.rate * found.case.rescaling,
        "prefactor": float(np.exp(found.forward.log_prefactor)) / found.case.rescaling,
        "power_of_n": found.forward.power,
        "threshold": found.threshold,
        "interrupted": found.interrupted,
        "times": _rows(found),
    } | {name: None if one is None else [one.value, one.half_width] for name, one in slopes.items()}


def _rows(found: Escape) -> list[dict[str, Any]]:
    """Return one row for each n: the simulated mean time with its interval, and the predicted times."""
    return [
        {
            "n": one.n,
            "systems": one.systems,
            "escaped": one.escaped,
            "mean_time": one.mean,
            "lower": one.interval[0],
            "upper": one.interval[1],
            "predicted": found.predicted(one.n),
            "asymptotic": found.asymptotic(one.n),
        }
        for one in found.times
    ]


def report_of(found: Escape) -> str:
    """Return the text on an escape: barrier, asymptotic time, simulated and predicted times, slopes."""
    case, barrier = found.case, found.forward
    other = ORDERED if found.start == UNIFORM else UNIFORM
    prefactor = np.exp(barrier.log_prefactor) / case.rescaling
    power = f" n^{barrier.power:g}" if barrier.power else ""
    lines = [
        f"escape from the {found.start} density to the {other} one: beta = {case.attention.beta:g}, "
        f"noise = {case.stabilizers.noise:g}",
        "",
        f"{'barrier':<18}{found.barrier:.6g} per token, in units of the noise (back: {found.reverse.height:.6g})",
        f"{'mean token':<18}{barrier.saddle.order:.6f} at the saddle, "
        f"{max(barrier.well.order, found.reverse.well.order):.6f} at the ordered density",
        f"{'rate of saddle':<18}{barrier.rate * case.rescaling:.6g}",
        f"{'mean time':<18}{prefactor:.4g}{power} exp({found.barrier:.6g} n) for n -> infinity (Eyring, Kramers)",
    ]
    if not found.times:
        return "\n".join(lines)
    lines += [
        "",
        f"simulated: first time at which the length of the mean token passes {found.threshold:.6f}",
        "",
        "     n   systems   escaped   mean time   95 % interval          one-dimensional   n -> infinity",
    ]
    for row in _rows(found):
        interval = f"{row['lower']:.4g} to {row['upper']:.4g}"
        lines.append(
            f"{row['n']:6d}   {row['systems']:7d}   {row['escaped']:7d}   {row['mean_time']:<9.4g}   {interval:<20}   "
            f"{row['predicted']:<15.4g}   {row['asymptotic']:.4g}"
        )
    if found.slope is not None:
        lines += [
            "",
            f"slope of log mean time against n: {found.slope} (95 %)",
            f"after division by the predicted prefactor: {found.corrected_slope}, barrier {found.barrier:.5f}",
        ]
    if found.interrupted:
        lines += ["", "interrupted: the table has the completed simulations"]
    return "\n".join(lines)
