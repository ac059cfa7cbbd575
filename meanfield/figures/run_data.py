"""Data of a figure: a run as plain arrays, and the snapshots to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from meanfield.analysis.snapshot_clusters import TIME_RTOL, Counted
from meanfield.analysis.text import format_time
from meanfield.domains.domain import Domain
from meanfield.domains.table import kind_of
from meanfield.figures.axes import Floats, is_early
from meanfield.figures.coordinate import Coordinate, coordinate_of
from meanfield.figures.predictions.prediction import Prediction

Integers = NDArray[np.integer]

# Okabe and Ito's colours, which stay apart for every kind of colour vision; the pale yellow goes last.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442",
)  # fmt: skip
SNAPSHOTS = 6  # shown of a run
TIME, LAYERS = ("time t", "t = "), ("layer", "layer ")  # the label of an axis, and what precedes one moment
ROUNDING = 1e-12  # of a quantity: changes that are none


@dataclass(frozen=True, eq=False)
class TokenData:
    """The tokens of a run of particles.

    positions    positions(k): (n, d) x = rθ of snapshot k
    weights      (n,) their masses
    has_radius   whether r is anything but 1
    length       of the sequence whose field they are, in their order; None of tokens without one
    """

    positions: Callable[[int], Floats]
    weights: Floats
    has_radius: bool = False
    length: float | None = None


@dataclass(frozen=True, eq=False)
class RunData:
    """A run, as far as a figure needs it.

    manifold      as in a case, or "radius" for the distribution of log r of a run with a free radius
    ring_cells    (rings,) cells of each ring from north to south; in one dimension the one ring; of particles none
    attention     what is said in the heading about it and the rest of the layer
    times         (snapshots,) increasing
    density       density(k): (cells,) the cell averages of snapshot k, with respect to length or area; not of particles
    diagnostics   "time" and whatever else was recorded, each with samples along the first axis;
                  "power" is (sample, degree) from degree 0 on
    critical      noise below which the uniform density is unstable, or None
    growth        (degrees,) predicted growth rate λ of each mode about uniform, from degree 0 on, or None
    predictions   of diagnostics, by their names
    components    diagnostics of a user's own: their names, and what they are in words
    clusters      clusters(k): those of snapshot k, as the diagnostic counts them; None where there are none to count
    state         how the run stands, where it has not simply finished
    dimension     d of the ambient R^d, where the manifold does not say it
    edges         (cells + 1,) where the cells end: polar angles, points of the line, radii; None where they are equal.
                  With a free radius (radii + 1,), and cells are (radii, directions) flattened
    expansion     c of radii that grow as e^{ct}; edges are those at time 0
    uniform       (cells,) the distribution of uniform tokens, where it is drawn for comparison
    core          of the line, within which its axis is linear; 0 where it is linear throughout
    cut           angle at which the circle is cut open to be an axis
    particles     the tokens, where they are particles
    hand_over     time from which the clusters of the density or of the tokens are atoms; NaN where they never are
    scaled_energy  whether "energy" is in units of the largest kernel, e^|β|
    relative_entropy  whether "entropy" is relative to the uniform density
    log_spacing   whether the case asked for times of equal ratios
    in_layers     whether times count layers
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
    hand_over: float = np.nan
    scaled_energy: bool = False
    relative_entropy: bool = False
    log_spacing: bool = False
    in_layers: bool = False
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    components: Mapping[str, str] = field(default_factory=dict)
    clusters: Callable[[int], Counted] | None = None

    def ratio(self, k: int) -> Floats:
        """(cells,) density of snapshot k in units of the uniform density; as it is where there is no uniform one."""
        return self.density(k) * self.kind.volume

    @cached_property
    def coordinate(self) -> Coordinate | None:
        """Along the cells, in one dimension; else None."""
        return coordinate_of(self)

    @property
    def kind(self) -> type[Domain]:
        """The record of the domain."""
        return kind_of(self.manifold)

    @property
    def has_radius(self) -> bool:
        return self.kind.has_radius

    @property
    def time_label(self) -> str:
        """Label of an axis of time."""
        return (LAYERS if self.in_layers else TIME)[0]

    def moment(self, t: float, text: Callable[[float], str] = format_time) -> str:
        """As in "t = 12.5" or "layer 6"."""
        return (LAYERS if self.in_layers else TIME)[1] + text(t)

    @cached_property
    def log_time(self) -> bool:
        """Whether time reads better on a log axis: so the case says, or snapshots or changes come early in the run."""
        if len(self.times) < 3:
            return False
        first, last = float(self.times[self.times > 0][0]), float(self.times[-1])
        snapshots_early = is_early(self.times, np.ones(len(self.times)), first, last)
        return self.log_spacing or snapshots_early or self._changes_early(first, last)

    def _changes_early(self, first: float, last: float) -> bool:
        """Whether what was recorded changed early, each quantity as much as any other."""
        if len(changes := list(self.changes())) == 0:
            return False
        # A change since the sample before may have come right after it.
        moments = np.concatenate([times[:-1] for times, _ in changes])
        amounts = np.concatenate([np.diff(_fraction(values)) for _, values in changes])
        return is_early(moments, amounts, first, last)

    def changes(self) -> Iterator[tuple[Floats, Floats]]:
        """Times and values of the diagnostics whose changes mark events, where they are finite."""
        for name in ("entropy", "energy", "clusters", "radius"):
            values = self.diagnostics.get(name, np.empty(0))
            finite = np.isfinite(values)
            values = values[finite]
            if len(values) > 1 and np.ptp(values) > ROUNDING * np.abs(values).max():
                shown = np.log(values) if name == "radius" and values.min() > 0 else values
                yield self.diagnostics["time"][finite], shown

    @property
    def sample_range(self) -> tuple[float, float]:
        """First and last time of the diagnostics on the time axis."""
        time = self.diagnostics["time"]
        return float(time[time > 0].min() if self.log_time else time[0]), float(time[-1])

    def counted_at(self, k: int) -> str:
        """As in "3 clusters" of snapshot k, from the handover on "3 atoms", which are one only when they touch."""
        if self.clusters is None:
            return ""
        found = self.clusters(k).number
        kind = "atom" if self.times[k] >= self.hand_over else "cluster"
        return f"{found} {kind}{'' if found == 1 else 's'}"

    def clusters_over(self, snapshots: Sequence[int]) -> tuple[Floats, Floats]:
        """Times and number of clusters, NaN for unknown, as recorded and of these snapshots; at each time once."""
        times, counts = self.diagnostics["time"], self.diagnostics["clusters"]
        if self.clusters is None:
            return times, counts
        more = [k for k in snapshots if not np.isclose(times, self.times[k], rtol=TIME_RTOL, atol=0).any()]
        times = np.concatenate([times, self.times[more]])
        counts = np.concatenate([counts, [float(self.clusters(k).number) for k in more]])
        order = np.argsort(times, kind="stable")
        return times[order], counts[order]


def snapshots_chosen(run_data: RunData, count: int) -> list[int]:
    """At most ``count`` snapshots, first and last among them, spread evenly over what happens.

    "What happens" is an arc length: the total variation of entropy, energy, number of clusters and log radius,
    each as a fraction of its whole, and half as much for time itself, so that a long metastable state is shown too.
    """
    if len(run_data.times) <= count:
        return list(range(len(run_data.times)))
    clock = np.log(run_data.times.clip(run_data.times[1])) if run_data.log_time else run_data.times
    arcs = [_fraction(clock)] + [_fraction(np.interp(run_data.times, *change)) for change in run_data.changes()]
    changes = sum(arcs[1:], np.zeros(len(clock)))
    arc = arcs[0] / 2 + changes / max(len(arcs) - 1, 1)
    chosen = np.searchsorted(arc, np.linspace(0, arc[-1], count) * (1 - 1e-12))
    chosen[-1] = len(arc) - 1
    for index in range(count - 2, 0, -1):  # no snapshot twice: move doubles down, then up again from the first
        chosen[index] = min(chosen[index], chosen[index + 1] - 1)
    for index in range(1, count):
        chosen[index] = max(chosen[index], chosen[index - 1] + 1)
    return [int(k) for k in chosen]


def _fraction(values: Floats) -> Floats:
    """(snapshots,) total variation up to each snapshot over the whole; zeros where nothing changes."""
    variation = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(values)))])
    return variation / variation[-1] if variation[-1] > 0 else variation


def moment_in_words(run_data: RunData, k: int) -> str:
    """Title of snapshot k, as in "t = 12.5 · 3 clusters"; of a trained Transformer "layer 6"."""
    counted = run_data.counted_at(k)
    return run_data.moment(run_data.times[k]) + (f" · {counted}" if counted else "")
