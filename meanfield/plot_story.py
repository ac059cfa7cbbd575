"""What a figure is drawn from: a run as plain arrays, the snapshots worth showing, and their colour scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.plot_axes import Floats, label_decades, label_linear

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.colors import Normalize

Integers = NDArray[np.integer]

# Okabe and Ito's colours, which stay apart for every kind of colour vision; the pale yellow goes last.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#F0E442",
)  # fmt: skip
COLOR_MAP = "viridis"
SNAPSHOTS = 6  # shown of a run
UNIFORM, UNIFORM_TEXT = 1e-9, "$10^{-9}$"  # smaller deviations are not drawn: rounding would look like a pattern
VOLUMES = {"circle": 2 * np.pi, "sphere": 4 * np.pi}


@dataclass(frozen=True, eq=False)
class Story:
    """A run, as far as a figure needs it.

    ring_cells    (rings,) cells of each ring from north to south; on the circle the one ring
    attention     what is said about it in the heading
    times         (snapshots,) increasing
    density       density(k): (cells,) the cell averages of snapshot k, with respect to length or area
    diagnostics   "time" and whatever else was recorded, each with samples along the first axis;
                  "power" is (sample, degree) from degree 0 on
    growth        (degrees,) predicted growth rate λ of each mode about uniform, from degree 0 on, or None
    state         how the run stands, where it has not simply finished
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
    state: str = ""

    def ratio(self, k: int) -> Floats:
        """(cells,) density of snapshot k in units of the uniform density."""
        return self.density(k) * VOLUMES[self.manifold]

    @property
    def log_time(self) -> bool:
        """Whether time reads better on a log axis: most snapshots lie in the first tenth of the run."""
        return len(self.times) > 2 and float(np.median(self.times)) < 0.1 * float(self.times[-1])

    def clusters_at(self, t: float) -> int | None:
        """The recorded number of clusters at the last sample up to t; None where none was recorded."""
        if "clusters" not in self.diagnostics:
            return None
        sample = np.searchsorted(self.diagnostics["time"], t * (1 + 1e-9), side="right") - 1
        return int(self.diagnostics["clusters"][sample]) if sample >= 0 else None


def snapshots_chosen(story: Story, count: int) -> list[int]:
    """At most ``count`` snapshots, first and last among them, spread evenly over what happens.

    "What happens" is an arc length: the total variation of entropy, energy and number of clusters, each as a
    fraction of its whole, and half as much for time itself, so that a long metastable state is shown too.
    """
    if len(story.times) <= count:
        return list(range(len(story.times)))
    clock = np.log(story.times.clip(story.times[1])) if story.log_time else story.times
    arcs = [_fraction(clock)]
    for name in ("entropy", "energy", "clusters"):
        values = story.diagnostics.get(name)
        if values is not None and len(values) > 1 and np.ptp(values) > 0:
            arcs.append(_fraction(np.interp(story.times, story.diagnostics["time"], values)))
    changes = sum(arcs[1:], np.zeros(len(clock)))
    arc = arcs[0] / 2 + changes / max(len(arcs) - 1, 1)
    chosen = np.searchsorted(arc, np.linspace(0, arc[-1], count) * (1 - 1e-12))
    chosen[-1] = len(arc) - 1
    for place in range(count - 2, 0, -1):  # no snapshot twice: move doubles down, then up again from the first
        chosen[place] = min(chosen[place], chosen[place + 1] - 1)
    for place in range(1, count):
        chosen[place] = max(chosen[place], chosen[place - 1] + 1)
    return [int(k) for k in chosen]


def _fraction(values: Floats) -> Floats:
    """(snapshots,) total variation up to each snapshot over the whole; zeros where nothing changes."""
    variation = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(values)))])
    return variation / variation[-1] if variation[-1] > 0 else variation


@dataclass(frozen=True)
class Scale:
    """Colours for densities: log ρ/ρ̄, or the deviation ρ/ρ̄ − 1 of a run that stays nearly uniform."""

    low: float
    high: float
    deviation: bool

    @classmethod
    def of(cls, ratios: Sequence[Floats]) -> Scale:
        """The scale shared by the densities ``ratios``, in units of the uniform density."""
        low, high = min(float(ratio.min()) for ratio in ratios), max(float(ratio.max()) for ratio in ratios)
        extreme = max(high - 1, 1 - low)
        if extreme < 0.5:
            return cls(-max(extreme, UNIFORM), max(extreme, UNIFORM), deviation=True)
        # Empty space falls without end, and means nothing below a hundredth; 1 is always on the scale.
        return cls(min(max(low, 1e-2), 0.5), max(high, 2.0), deviation=False)

    def values(self, ratio: Floats) -> Floats:
        """What is drawn for ρ/ρ̄."""
        return ratio - 1 if self.deviation else ratio.clip(self.low)

    @property
    def norm(self) -> Normalize:
        from matplotlib.colors import LogNorm, Normalize

        return (Normalize if self.deviation else LogNorm)(self.low, self.high)

    @property
    def is_uniform(self) -> bool:
        """Whether there is no deviation to see."""
        return self.deviation and self.high <= UNIFORM

    @property
    def symbol(self) -> str:
        return r"$\rho/\bar\rho - 1$" if self.deviation else r"$\rho/\bar\rho$"

    @property
    def label(self) -> str:
        return f"{self.symbol}  (uniform density = {0 if self.deviation else 1})"

    def draw_on(self, axis: Axis, label: str) -> None:
        """Ticks and ``label`` of an axis that shows these values."""
        if self.deviation:
            label_linear(axis, label, self.high)
        else:
            label_decades(axis, self.low, self.high)
            axis.set_label_text(label)


def format_time(t: float) -> str:
    """A time with four figures, as in 0.125, 12.5, 1.2e+06."""
    return f"{t:.4g}"
