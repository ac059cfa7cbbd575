"""Colors and heights of densities: one scale for all snapshots of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats, label_decades, label_linear

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap, Normalize

    from meanfield.figures.run_data import RunData

COLOR_MAP = "viridis"
UNIFORM, UNIFORM_TEXT = 1e-9, "$10^{-9}$"  # smaller deviations are not drawn, since rounding would look like a pattern
SHOWN_DECADES, MAX_DECADES = 1e-3, 1e-12  # factors of the lowest and of the highest peak: lower densities are not shown


def color_map() -> Colormap:
    """Return the color map in the current settings of Matplotlib."""
    from matplotlib import colormaps, rcParams

    return colormaps[rcParams["image.cmap"]]


def shades(count: int) -> Floats:
    """Return colors (count, 4) of ordered lines, without the end of the color map close to the background."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    dark = sum(to_rgb(rcParams["axes.facecolor"])) < 1.5
    return np.asarray(color_map()(np.linspace(0.2, 1, count) if dark else np.linspace(0, 0.8, count)))


@dataclass(frozen=True)
class Scale:
    """Color scale of densities: log ρ/ρ̄, or the deviation ρ/ρ̄ − 1 for a run that stays nearly uniform.

    ρ̄ is the uniform density.

    low, high      range of the scale
    deviation      whether the deviation is shown
    density_name   label of a density in its own units, on domains without a uniform density
    """

    low: float
    high: float
    deviation: bool
    density_name: str = ""

    @classmethod
    def of(cls, ratios: Sequence[Floats]) -> Scale:
        """Return the common color scale of several densities ``ratios``, in units of the uniform density."""
        low, high = min(float(ratio.min()) for ratio in ratios), max(float(ratio.max()) for ratio in ratios)
        extreme = max(high - 1, 1 - low)
        if extreme < 0.5:
            return cls(-max(extreme, UNIFORM), max(extreme, UNIFORM), deviation=True)
        # Values below a hundredth carry no information; the scale always includes 1.
        return cls(min(max(low, 1e-2), 0.5), max(high, 2.0), deviation=False)

    @classmethod
    def of_density(cls, peaks: Floats, density_name: str) -> Scale:
        """Return the color scale of densities that are not relative to a uniform one, given each snapshot's maximum.

        It extends from the highest maximum to three decades below the lowest one.
        """
        return cls(lowest_shown(peaks), float(peaks.max()), deviation=False, density_name=density_name)

    def values(self, ratio: Floats) -> Floats:
        """Return the values whose colors a map shows for densities ρ/ρ̄: ρ/ρ̄ − 1, or ρ/ρ̄ but at least ``low``."""
        return ratio - 1 if self.deviation else ratio.clip(self.low)

    def heights(self, ratio: Floats) -> Floats:
        """Return the heights of a density's curve over position, for densities ρ/ρ̄: ρ/ρ̄ − 1, or ρ/ρ̄ on a log axis.

        Small ρ/ρ̄ are set to a value below the axis, so that the curve leaves the panel there.
        """
        return ratio - 1 if self.deviation else ratio.clip(self.low / 10)

    @property
    def limits(self) -> tuple[float, float]:
        """Return the limits of the vertical axis for the curve of a density over position, with a margin."""
        return (1.1 * self.low, 1.1 * self.high) if self.deviation else (self.low, 1.5 * self.high)

    @property
    def norm(self) -> Normalize:
        """Return Matplotlib's map of values to the range of colors, linear for deviations, else logarithmic."""
        from matplotlib.colors import LogNorm, Normalize

        return (Normalize if self.deviation else LogNorm)(self.low, self.high)

    def extend(self, ratios: Sequence[Floats]) -> str:
        """Return at which ends densities ρ/ρ̄ are beyond the scale: "neither", "min", "max" or "both"."""
        low, high = (end([end(ratio) for ratio in ratios]) - self.deviation for end in (np.min, np.max))
        return ("neither", "min", "max", "both")[int(low < self.low) + 2 * int(high > self.high)]

    @property
    def is_uniform(self) -> bool:
        """Return whether all deviations from the uniform density are below UNIFORM."""
        return self.deviation and self.high <= UNIFORM

    @property
    def is_cut(self) -> bool:
        """Return whether some cells may have densities below the range of the scale."""
        return bool(self.density_name) or (not self.deviation and self.low <= 1e-2)

    @property
    def symbol(self) -> str:
        """Return the symbol of the quantity shown, such as ρ/ρ̄."""
        return self.density_name or (r"$\rho/\bar\rho - 1$" if self.deviation else r"$\rho/\bar\rho$")

    @property
    def label(self) -> str:
        """Return the label of the quantity shown, with the value of the uniform density."""
        return self.density_name or f"{self.symbol}  (uniform density = {0 if self.deviation else 1})"

    def draw_on(self, axis: Axis, label: str) -> None:
        """Set ticks and ``label`` of an axis that shows values of this scale."""
        if self.deviation:
            label_linear(axis, label, self.high)
        else:
            label_decades(axis, self.low, self.high)
            axis.set_label_text(label)


def lowest_shown(peaks: Floats) -> float:
    """Return the lower bound of the densities that are shown, given the maximum of each snapshot."""
    return float(max(SHOWN_DECADES * peaks.min(), MAX_DECADES * peaks.max()))


def scale_of(run_data: RunData, snapshots: Iterable[int]) -> Scale:
    """Return the common color scale of the densities of these snapshots, which are read one after the other."""
    ends = np.array([[ratio.min(), ratio.max()] for ratio in map(run_data.ratio, snapshots)])
    coordinate = run_data.coordinate
    return (
        Scale.of_density(ends[:, 1], coordinate.density_name)
        if coordinate and coordinate.density_name
        else Scale.of([ends])
    )
