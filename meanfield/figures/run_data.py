"""Run data of a figure as plain arrays, and selection of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from meanfield.analysis.snapshot_clusters import TIME_RTOL, SnapshotClusters
from meanfield.analysis.text import format_time
from meanfield.domains.domain import Domain
from meanfield.domains.table import kind_of
from meanfield.figures.axes import Floats, is_early
from meanfield.figures.coordinate import Coordinate, coordinate_of
from meanfield.figures.predictions.prediction import Prediction

Integers = NDArray[np.integer]

# Colors of Okabe and Ito, distinguishable with every kind of color vision; the pale yellow is last.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442",
)  # fmt: skip
SNAPSHOTS = 6  # number of snapshots shown of a run
TIME, LAYERS = ("time t", "t = "), ("layer", "layer ")  # label of an axis, and prefix of a single time
ROUNDING = 1e-12  # relative size of changes due to rounding


@dataclass(frozen=True, eq=False)
class TokenData:
    """Tokens of a run of particles, for figures.

    positions    positions(k): (n, d) x = rθ of snapshot k
    weights      (n,) masses
    has_radius   whether r differs from 1
    length       length of the sequence, if the tokens form one; else None
    """

    positions: Callable[[int], Floats]
    weights: Floats
    has_radius: bool = False
    length: float | None = None


@dataclass(frozen=True, eq=False)
class RunData:
    """Run as plain arrays, for a figure.

    manifold      as in a case, or "radius" for the distribution of log r of a run with a free radius
    ring_cells    (rings,) cells of each ring from north to south; one ring in one dimension; none for particles
    attention     description of attention and the rest of the layer for the heading
    times         (snapshots,) increasing
    density       density(k): (cells,) cell averages of snapshot k, with respect to length or area; not for particles
    diagnostics   "time" and the recorded quantities, each with samples along the first axis;
                  "power" is (sample, degree) from degree 0 on
    critical      noise below which the uniform density is unstable, or None
    growth        (degrees,) predicted growth rate λ of each mode about uniform, from degree 0 on, or None
    model_changes changes of the model at resumptions of the run, after which no prediction holds
    predictions   of diagnostics, by name
    components    user-defined diagnostics: descriptions by name
    shown         snapshots to draw, instead of those that are chosen by the changes of the run; None to choose
    clusters      clusters(k): clusters of snapshot k, as the diagnostic counts them; None without clusters
    state         status of the run, empty for a finished run
    dimension     d of the ambient R^d, if the manifold does not determine it
    edges         (cells + 1,) cell edges: polar angles, points of the line, radii; None for equal cells.
                  With a free radius (radii + 1,), and cells are (radii, directions) flattened
    expansion     c of radii that grow as e^{ct}; edges are those at time 0
    uniform       (cells,) distribution of uniform tokens, if drawn for comparison
    core          half width of the linear part of the axis of a line; 0 for a linear axis
    cut           angle at which the axis of the circle begins
    particles     tokens of a run of particles
    handover     time from which the clusters of the density or of the tokens are atoms; NaN without handover
    scaled_energy     whether "energy" is in units of the largest kernel, e^|β|
    relative_entropy  whether "entropy" is relative to the uniform density
    log_spacing   whether the case requests times of equal ratios
    in_layers     whether time counts layers
    """

    title: str
    manifold: str
    ring_cells: Integers
    beta: float
    noise: float
    attention: str
    times: Floats
    density: Callable[[int], Floats]
    diagnostics: Mapping[str, Floats]
    growth: Floats | None = None
    critical: float | None = None
    state: str = ""
    dimension: int | None = None
    edges: Floats | None = None
    expansion: float = 0.0
    uniform: Floats | None = None
    core: float = 0.0
    cut: float = 0.0
    particles: TokenData | None = None
    handover: float = np.nan
    scaled_energy: bool = False
    relative_entropy: bool = False
    log_spacing: bool = False
    in_layers: bool = False
    model_changes: tuple[str, ...] = ()
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    components: Mapping[str, str] = field(default_factory=dict)
    clusters: Callable[[int], SnapshotClusters] | None = None
    shown: tuple[int, ...] | None = None

    def ratio(self, k: int) -> Floats:
        """Return the density (cells,) of snapshot k relative to the uniform density; unscaled if there is none."""
        return self.density(k) * self.kind.volume

    @cached_property
    def coordinate(self) -> Coordinate | None:
        """Return the coordinate along the cells of a density in one dimension, else None."""
        return coordinate_of(self)

    @property
    def kind(self) -> type[Domain]:
        """Return the class that describes the domain of the run, by the name of its manifold."""
        return kind_of(self.manifold)

    @property
    def has_radius(self) -> bool:
        """Return whether the density is one over direction and radius."""
        return self.kind.has_radius

    @property
    def time_label(self) -> str:
        """Return the label of a time axis: time or layers."""
        return (LAYERS if self.in_layers else TIME)[0]

    def moment(self, t: float, text: Callable[[float], str] = format_time) -> str:
        """Return a time as text such as "t = 12.5" or "layer 6"; ``text`` formats the number."""
        return (LAYERS if self.in_layers else TIME)[1] + text(t)

    @cached_property
    def log_time(self) -> bool:
        """Return whether figures have a logarithmic time axis.

        They do on request of the case, or if half of the snapshots or of the changes are in the first tenth of the
        time.
        """
        if len(self.times) < 3:
            return False
        first, last = float(self.times[self.times > 0][0]), float(self.times[-1])
        snapshots_early = is_early(self.times, np.ones(len(self.times)), first, last)
        return self.log_spacing or snapshots_early or self._changes_early(first, last)

    def _changes_early(self, first: float, last: float) -> bool:
        """Return whether the recorded quantities changed mostly in the first tenth of the time.

        Each quantity has the same weight.
        """
        if len(changes := list(self.changes())) == 0:
            return False
        # A change between two samples is attributed to the earlier time.
        moments = np.concatenate([times[:-1] for times, _ in changes])
        amounts = np.concatenate([np.diff(_fraction(values)) for _, values in changes])
        return is_early(moments, amounts, first, last)

    def changes(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield times and finite values of each recorded diagnostic whose changes mark events, such as the energy.

        Diagnostics that are constant to rounding are left out; of the radius the values are logarithms.
        """
        for name in ("entropy", "energy", "clusters", "radius"):
            values = self.diagnostics.get(name, np.empty(0))
            finite = np.isfinite(values)
            values = values[finite]
            if len(values) > 1 and np.ptp(values) > ROUNDING * np.abs(values).max():
                shown = np.log(values) if name == "radius" and values.min() > 0 else values
                yield self.diagnostics["time"][finite], shown

    @property
    def sample_range(self) -> tuple[float, float]:
        """Return the first and the last time on the time axis at which diagnostics were recorded."""
        time = self.diagnostics["time"]
        return float(time[time > 0].min() if self.log_time else time[0]), float(time[-1])

    def counted_at(self, k: int) -> str:
        """Return the number of clusters of snapshot k as text such as "3 clusters", or "3 atoms" from the handover on.

        Atoms are point masses that replace collapsed clusters. They are counted as one only when they touch.
        """
        if self.clusters is None:
            return ""
        found = self.clusters(k).number
        kind = "atom" if self.times[k] >= self.handover else "cluster"
        return f"{found} {kind}{'' if found == 1 else 's'}"

    def clusters_over(self, snapshots: Sequence[int]) -> tuple[Floats, Floats]:
        """Return times and numbers of clusters at all samples and at these snapshots, in the order of time.

        Numbers are NaN if unknown.
        """
        times, counts = self.diagnostics["time"], self.diagnostics["clusters"]
        if self.clusters is None:
            return times, counts
        more = [k for k in snapshots if not np.isclose(times, self.times[k], rtol=TIME_RTOL, atol=0).any()]
        times = np.concatenate([times, self.times[more]])
        counts = np.concatenate([counts, [float(self.clusters(k).number) for k in more]])
        order = np.argsort(times, kind="stable")
        return times[order], counts[order]


def snapshots_chosen(run_data: RunData, count: int) -> list[int]:
    """Return at most ``count`` snapshots to draw, with the first and the last, evenly spaced in arc length of the run.

    The arc length is the mean total variation of entropy, energy, number of clusters and log radius, each as a fraction
    of its total, plus half the fraction of time, so that long metastable states are shown too. Snapshots of given times
    are returned instead if the run data has them.
    """
    if run_data.shown is not None:
        given = run_data.shown
        return [given[i] for i in np.unique(np.linspace(0, len(given) - 1, min(count, len(given))).astype(int))]
    if len(run_data.times) <= count:
        return list(range(len(run_data.times)))
    clock = np.log(run_data.times.clip(run_data.times[1])) if run_data.log_time else run_data.times
    arcs = [_fraction(clock)] + [_fraction(np.interp(run_data.times, *change)) for change in run_data.changes()]
    changes = sum(arcs[1:], np.zeros(len(clock)))
    arc = arcs[0] / 2 + changes / max(len(arcs) - 1, 1)
    chosen = np.searchsorted(arc, np.linspace(0, arc[-1], count) * (1 - 1e-12))
    chosen[-1] = len(arc) - 1
    for index in range(count - 2, 0, -1):  # make the snapshots distinct: shift duplicates down, then up from the first
        chosen[index] = min(chosen[index], chosen[index + 1] - 1)
    for index in range(1, count):
        chosen[index] = max(chosen[index], chosen[index - 1] + 1)
    return [int(k) for k in chosen]


def with_times(run_data: RunData, times: Sequence[float] | None) -> RunData:
    """Return the data of a run of which the snapshots nearest to ``times`` are drawn; None to choose snapshots.

    Raises ValueError for more than SNAPSHOTS times, and for times before the first or after the last snapshot.
    """
    if times is None:
        return run_data
    first, last = float(run_data.times[0]), float(run_data.times[-1])
    if not (1 <= len(times) <= SNAPSHOTS and all(first <= time <= last for time in times)):
        expected = f"1 to {SNAPSHOTS} numbers from {first:g} to {last:g}"
        raise ValueError(f"times = {', '.join(f'{time:g}' for time in times)}: expected {expected}")
    nearest = {int(np.abs(run_data.times - time).argmin()) for time in times}
    return replace(run_data, shown=tuple(sorted(nearest)))


def _fraction(values: Floats) -> Floats:
    """Return the variation of values up to each snapshot as a fraction of the total; zeros without changes."""
    variation = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(values)))])
    return variation / variation[-1] if variation[-1] > 0 else variation


def describe_snapshot(run_data: RunData, k: int) -> str:
    """Return the title of snapshot k such as "t = 12.5 · 3 clusters" or, for a trained Transformer, "layer 6"."""
    counted = run_data.counted_at(k)
    return run_data.moment(run_data.times[k]) + (f" · {counted}" if counted else "")
