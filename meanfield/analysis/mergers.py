"""Merger tree of a run: merged clusters, times, and the change of energy at each merger.

    2β e^{−β} E → Σ_j m_j²          clusters of masses m_j far apart: a staircase
    i and j merge                   the step of the staircase is 2 m_i m_j

Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), for Q = K = V = I and β > 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from meanfield.analysis.drawn import Drawn
from meanfield.analysis.tracks import Merger, Track, Tracks, tracks_of
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from xarray import Dataset

    from solvers.io.run_file import Run

MIN_SAMPLES = 3  # samples that contain a cluster at least; a shorter track is no cluster that merges
PLATEAU = 3  # least number of samples of the energy between two mergers to measure a step
STAIR = 0.2  # relative distance from Σ m² within which a plateau counts as a step of the staircase


@dataclass(frozen=True)
class Lifetime:
    """Period with ``count`` clusters: at least from ``start`` to ``stop``, at most from ``after`` to ``until``.

    start, stop    times of the first and last sample with that number of clusters
    after, until   times of the neighboring samples, None at the ends of the run; equal to start and stop where the
                   change has a known time
    """

    count: int
    start: float
    stop: float
    after: float | None
    until: float | None


class Mergers(Drawn, list[Merger]):
    """Mergers of clusters in the order of time: a list, which is drawn as the merger tree of the run.

    Parameters
    ----------
    mergers : iterable of Merger
        Items of the list.
    run : Run
        Run in which the clusters merge.
    """

    drawing: ClassVar = "meanfield.figures.merger_tree:compose_mergers"
    drawing_size: ClassVar = (10.0, 6.6)

    def __init__(self, mergers: Iterable[Merger], run: Run) -> None:
        super().__init__(mergers)
        self.run = run

    def __reduce__(self) -> tuple[object, ...]:
        return Mergers, (list(self), self.run)

    def to_xarray(self) -> Dataset:
        """Return the mergers as a Dataset.

        Returns
        -------
        xarray.Dataset
            Variables over ``merger``: the times since and time, the clusters into and source with their masses
            mass_into and mass_source, the numbers of clusters before and after, and energy_step.
        """
        from xarray import Dataset

        names = ("since", "time", "into", "source", "before", "after", "energy_step")
        columns = {name: [getattr(merger, name) for merger in self] for name in names}
        for k, name in enumerate(("mass_into", "mass_source")):
            columns[name] = [merger.masses[k] for merger in self]
        return Dataset({name: ("merger", values) for name, values in columns.items()})


def lasts(tracks: Tracks, one: Track) -> bool:
    """Return whether a cluster followed through time lasts long enough, MIN_SAMPLES samples, to be counted.

    An atom, a point mass that replaces a collapsed cluster, always does, since atoms do not flicker.
    """
    return len(one.masses) >= MIN_SAMPLES or bool(tracks.times[one.last] >= tracks.atoms_from)


def merger_tree(tracks: Tracks) -> list[Merger]:
    """Return all mergers of a run in the order of time: those of atoms, and those of clusters that lasted."""
    mergers, of_atoms = list(tracks.mergers), {one.source for one in tracks.mergers}
    changes = [one.first for one in tracks.tracks] + [one.last + 1 for one in tracks.tracks]
    for number, one in enumerate(tracks.tracks):
        if one.into is None or number in of_atoms or not lasts(tracks, one):
            continue
        alone = max(sample for sample in changes if sample <= one.last)
        masses = _mass(tracks.tracks[one.into], alone, one.last), _mass(one, alone, one.last)
        before, after = (int(tracks.counts[sample]) for sample in (one.last, one.last + 1))
        since, time = (float(tracks.times[sample]) for sample in (one.last, one.last + 1))
        mergers.append(Merger(since, time, one.into, number, masses, before, after, 2 * masses[0] * masses[1]))
    return sorted(mergers, key=lambda merger: (merger.time, -merger.masses[1]))


def lifetimes(tracks: Tracks) -> list[Lifetime]:
    """Return the period of each successive number of clusters, from the first sample to the last."""
    if not len(tracks.times):
        return []
    times, counted = tracks.times.tolist(), tracks.counts.tolist()
    changes = [
        (times[sample - 1], times[sample], counted[sample])
        for sample in (np.flatnonzero(np.diff(counted)) + 1).tolist()
        if times[sample] <= tracks.atoms_from
    ]
    changes += {one.time: (one.time, one.time, one.after) for one in tracks.mergers}.values()
    afters, starts = [None, *(low for low, _, _ in changes)], [times[0], *(high for _, high, _ in changes)]
    stops, untils = [*(low for low, _, _ in changes), times[-1]], [*(high for _, high, _ in changes), None]
    counts = [counted[0], *(count for _, _, count in changes)]
    return [Lifetime(*row) for row in zip(counts, starts, stops, afters, untils, strict=True)]


def staircase(run: Run) -> tuple[Floats, Floats] | None:
    """Return the times (samples,) and scaled energies 2β e^{−β} E (samples,) of a run, or None if they are undefined.

    For clusters far apart the scaled energy is Σ m² of their masses, a staircase over time. The scaled energy is
    defined for Q = K = V = I and β > 0, if E was recorded. Q and K may be multiples qI and kI with q k > 0: then the
    values are 2β e^{−βqk} E. All tokens attend to each other as unit vectors: there is no mask, no pattern, and a layer
    norm. The model has not changed at a resumption of the run.
    """
    from meanfield.diagnostics.table import energy_beta, energy_unit
    from meanfield.model.layer_norm import LAYER_NORMS
    from meanfield.runtime.segments import case_of, model_changes

    case = case_of(run)
    attention = case.attention
    beta = case.beta_on_unit_sphere
    plain = attention.is_scalar and attention.value_scale == 1 and attention.kernel == "exponential"
    plain = plain and attention.mask == "none" and attention.pattern is None
    plain = plain and not LAYER_NORMS[case.stabilizers.layer_norm].sees_positions
    if not plain or model_changes(run) or beta <= 0 or "energy" not in run.diagnostics or len(run.sample_times) == 0:
        return None
    with np.errstate(over="ignore"):  # for the unit of a damaged file
        unit = float(np.exp(energy_unit(run, beta) - beta))
    if not np.isfinite(unit):
        return None
    return run.sample_times, 2 * energy_beta(run, case) * unit * run.diagnostics["energy"]


def measured_steps(tracks: Tracks, mergers: list[Merger], times: Floats, values: Floats) -> list[float | None]:
    """Return the increase of the scaled energy 2β e^{−β} E, ``values`` (samples,) at ``times``, at each merger.

    The step is between two plateaus: the flattest part since a cluster last appeared or merged, and the flattest part
    until the next merger. The increase is None for simultaneous mergers, and where a plateau is too short or far from Σ
    m².
    """
    steps: list[float | None] = []
    changes = sorted([tracks.start(number) for number in range(len(tracks.tracks))] + [one.time for one in mergers])
    ends = sorted({tracks.stop(one.source) for one in mergers} | set(tracks.times[-1:].tolist()))
    for merger in mergers:
        before = tracks.stop(merger.source)
        start = max(time for time in changes if time <= before)
        stop = min(time for time in ends if time >= merger.time)
        low = _plateau(tracks, times, values, start, before, merger.energy_step / 2)
        high = _plateau(tracks, times, values, merger.time, stop, merger.energy_step / 2)
        alone = sum(other.time == merger.time for other in mergers) == 1
        steps.append(high - low if alone and low is not None and high is not None else None)
    return steps


def report(run: Run) -> dict[str, Any]:
    """Return the mergers of a run, the lifetime of each number of clusters, and the final clusters as plain values.

    ``mergers``: each merger's fields and ``energy_step_measured``, None where unknown. Raises ValueError for a run
    without clusters: see meanfield.analysis.tracks.tracks_of.
    """
    tracks = tracks_of(run)
    mergers, stairs = merger_tree(tracks), staircase(run)
    measured = [None] * len(mergers) if stairs is None else measured_steps(tracks, mergers, *stairs)
    return {
        "mergers": [
            {**asdict(merger), "energy_step_measured": step} for merger, step in zip(mergers, measured, strict=True)
        ],
        "lifetimes": [asdict(lifetime) for lifetime in lifetimes(tracks)],
        "clusters": int(tracks.counts[-1]) if len(tracks.times) else None,
        "masses": sorted((float(one.masses[-1]) for one in _tracks_at_end(tracks)), reverse=True),
    }


_WHEN = 33  # width of "between 1.234e-05 and 1.235e-05" and a little more
MEANING = (
    "merged: nearer than 1/√(β‖QᵀK‖), at most 1/4 rad, about where the energy grows fastest\n"
    "masses: medians over the samples since a cluster last appeared or merged"
)


def format_report(facts: dict[str, Any]) -> str:
    """Return the facts of ``report`` as two tables: the mergers, and the lifetime of each number of clusters."""
    lines = [f"{'time':{_WHEN}}  {'clusters':>8}  {'masses':>15}  {'2 m m':>8}  {'step of 2 beta e^-beta E':>24}"]
    for one in facts["mergers"]:
        step = one["energy_step_measured"]
        measured = "-" if step is None else f"{step:.4f} ({100 * (step / one['energy_step'] - 1):+z.1f} %)"
        masses = f"{one['masses'][0]:.4f} + {one['masses'][1]:.4f}"
        counts, when = f"{one['before']} → {one['after']}", describe_event_time(one["since"], one["time"])
        lines.append(f"{when:{_WHEN}}  {counts:>8}  {masses:>15}  {one['energy_step']:8.4f}  {measured:>24}")
    if not facts["mergers"]:
        lines = ["no mergers"]
    lines += ["", f"{'clusters':>8}  {'from':{_WHEN}}  to"]
    for one in facts["lifetimes"]:
        start, stop = describe_event_time(one["after"], one["start"]), describe_event_time(one["stop"], one["until"])
        lines.append(f"{one['count']:8d}  {start:{_WHEN}}  {stop}")
    if facts["mergers"]:
        lines += ["", MEANING]
    if facts["masses"]:
        lines += ["", "masses at the end: " + ", ".join(f"{mass:.4f}" for mass in facts["masses"])]
    return "\n".join(lines)


def describe_event_time(low: float | None, high: float | None) -> str:
    """Return the time of an event as text, such as "between 94.94 and 95.81"; one time where both agree or one is None.

    Times have four figures, or as many as distinguish them.
    """
    times = [time for time in (low, high) if time is not None]
    digits = next((n for n in range(4, 17) if len({f"{time:.{n}g}" for time in times}) == len(set(times))), 17)
    texts = list(dict.fromkeys(f"{time:.{digits}g}" for time in times))
    return f"between {texts[0]} and {texts[1]}" if len(texts) > 1 else texts[0]


def _mass(one: Track, first: int, last: int) -> float:
    """Return the median mass of a cluster followed through time, from the sample ``first`` to ``last``."""
    return float(np.median(one.masses[first - one.first : last + 1 - one.first]))


def _tracks_at_end(tracks: Tracks) -> list[Track]:
    """Return the tracks of the clusters that are present in the last sample."""
    return [one for one in tracks.tracks if one.last == len(tracks.times) - 1]


def _plateau(tracks: Tracks, times: Floats, values: Floats, start: float, stop: float, distance: float) -> float | None:
    """Return the scaled energy at the flattest sample within [start, stop], or None where the energy has no plateau.

    Flattest is the sample with the least change between its neighbors. Values within ``distance`` of Σ m², the squared
    masses of the clusters, are preferred: atoms merge some time after the energy has increased.
    """
    inside = np.flatnonzero((times >= start) & (times <= stop))
    if len(inside) < PLATEAU:
        return None
    first_sample = int(np.searchsorted(tracks.times, start))
    squares = sum(
        float(one.masses[first_sample - one.first]) ** 2
        for one in tracks.tracks
        if one.first <= first_sample <= one.last
    )
    change = np.abs(values[inside[2:]] - values[inside[:-2]])
    levels = values[inside[1:-1]]
    close = np.abs(levels - squares) < distance
    level = float(levels[np.where(close | ~close.any(), change, np.inf).argmin()])
    return level if abs(level - squares) < STAIR * squares else None
