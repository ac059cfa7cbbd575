"""Coordinate of a density in one dimension for figures: cell edges along the axis, ticks and label.

Pages and figures draw along a linear axis, so this module transforms the coordinate. Radii are transformed by the
logarithm. Points x of a long line are transformed by arcsinh(x/core), linear within the core and logarithmic beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield.domains.domain import load
from meanfield.figures.axes import Floats

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from meanfield.figures.run_data import RunData

Ticks = list[tuple[float, str]]
MAX_TICKS = 7
MIN_TICK_DISTANCE = 0.08  # fraction of an axis: closer to the tick at zero there is no room for a tick
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, eq=False)
class Coordinate:
    """Coordinate along the cells of a density in one dimension, as an axis of a figure.

    edges          (cells + 1,) increasing positions of the cell edges on the axis
    label          of the axis
    ticks          pairs of a position and a text
    density_name   label of the density, empty if it is shown in units of the uniform density
    """

    edges: Floats
    label: str
    ticks: Ticks
    density_name: str = ""

    @property
    def limits(self) -> tuple[float, float]:
        """Return the ends of the axis along this coordinate."""
        return float(self.edges[0]), float(self.edges[-1])

    def draw_on(self, axis: Axis) -> None:
        """Set the ticks, the label and the limits of a figure's ``axis`` along this coordinate."""
        places, texts = zip(*self.ticks, strict=True)
        axis.set_ticks(places, texts)
        axis.set_label_text(self.label)
        axis.axes.set(**{f"{axis.axis_name}lim": self.limits})  # type: ignore[attr-defined]


def coordinate_of(run_data: RunData) -> Coordinate | None:
    """Return the coordinate of a density for figures, or None in more than one dimension."""
    make = run_data.kind.coordinate
    return None if make is None else load(make)(run_data)


def angle_on_circle(run_data: RunData) -> Coordinate:
    """Return the coordinate of the circle: the angle φ over one turn, starting at the angle ``run_data.cut``."""
    edges = np.linspace(0, 2 * np.pi, int(run_data.ring_cells[0]) + 1) + run_data.cut
    return Coordinate(edges, "angle φ (rad)", _parts_of_pi(edges, 2))


def polar_angle(run_data: RunData) -> Coordinate:
    """Return the coordinate of densities with an axis of symmetry: the polar angle θ."""
    assert run_data.edges is not None
    ticks = _parts_of_pi(run_data.edges, 4)
    if len(ticks) < 3:  # the cells shown are close to the equator
        ticks = _round_numbers(run_data.edges)
    return Coordinate(run_data.edges, "polar angle θ (rad)", ticks, "p(θ), per radian")


def token_on_line(run_data: RunData) -> Coordinate:
    """Return the coordinate of the line: the position x of a token, linear near zero and logarithmic beyond."""
    assert run_data.edges is not None
    if run_data.core == 0:
        return Coordinate(run_data.edges, "token x", _round_numbers(run_data.edges), "ρ(x)")
    place = np.arcsinh(run_data.edges / run_data.core)
    return Coordinate(place, "token x", _signed_decades(run_data.edges, run_data.core), "ρ(x)")


def log_radius(run_data: RunData) -> Coordinate:
    """Return the coordinate of radii: r on a log axis."""
    assert run_data.edges is not None
    label = f"radius r, in units of exp({run_data.expansion:g} t)" if run_data.expansion else "radius r"
    return Coordinate(np.log(run_data.edges), label, _decades(run_data.edges), "density of log r")


def _parts_of_pi(edges: Floats, part: int) -> Ticks:
    """Return ticks at the multiples of π/``part`` between the first and the last edge."""
    count = np.arange(np.ceil(edges[0] * part / np.pi - 1e-9), np.floor(edges[-1] * part / np.pi + 1e-9) + 1)
    return [(n * np.pi / part, fraction_of_pi(int(n), part)) for n in count]


def fraction_of_pi(n: int, part: int) -> str:
    """Return a text such as −3π/4 for nπ/part."""
    common = int(np.gcd(n, part))
    n, part = n // common, part // common
    return "0" if n == 0 else f"{'−' * (n < 0)}{'' if abs(n) == 1 else abs(n)}π" + (f"/{part}" if part > 1 else "")


def _round_numbers(edges: Floats, bend: Callable[[Floats], Floats] = lambda x: x) -> Ticks:
    """Return ticks at round numbers, at positions transformed by ``bend``."""
    from matplotlib.ticker import MaxNLocator

    low, high = edges[0], edges[-1]
    values = MaxNLocator(nbins=MAX_TICKS - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [(float(bend(v)), number(v)) for v in values[(values >= low) & (values <= high)]]


def _decades(edges: Floats) -> Ticks:
    """Return ticks of a log axis at powers of ten and, if the axis spans few decades, at 2 and 5 times these.

    On an axis that spans less than a factor of 5, the ticks are round numbers.
    """
    low, high = edges[0], edges[-1]
    if high < 5 * low:
        return _round_numbers(edges, np.log)
    exponents = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
    exponents = exponents[:: -(-len(exponents) // MAX_TICKS)]
    values = 10.0**exponents
    if high < 200 * low:
        values = np.sort(np.outer([1, 2, 5], 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high))).ravel())
    return [(float(np.log(v)), number(v)) for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]


def _signed_decades(edges: Floats, core: float) -> Ticks:
    """Return ticks at zero and at powers of ten beyond ``core`` on either side, for the axis arcsinh(x/core)."""
    far = np.abs(edges[[0, -1]]).max()
    exponents = np.arange(np.ceil(np.log10(core)), np.floor(np.log10(far)) + 1)
    exponents = exponents[:: -(-len(exponents) // (MAX_TICKS // 2))]
    values = np.concatenate([-(10.0 ** exponents[::-1]), [0.0], 10.0**exponents])
    place, low, high = (np.arcsinh(v / core) for v in (values, edges[0], edges[-1]))
    room = (values == 0) | (np.abs(place) > MIN_TICK_DISTANCE * (high - low))
    shown = (place >= low) & (place <= high) & room
    return [(float(p), number(v)) for p, v in zip(place[shown], values[shown], strict=True)]


def number(value: float) -> str:
    """Return a number as text such as 0.5, −20, 10⁶ or 2×10⁻⁴."""
    if value == 0 or 1e-3 < abs(value) < 1e4:
        return f"{value:.6g}".replace("-", "−")
    digits, exponent = f"{value:.5e}".split("e")
    factor = {"1": "", "-1": "−"}.get(f"{float(digits):g}", f"{float(digits):g}×".replace("-", "−"))
    return f"{factor}10{str(int(exponent)).translate(SUPERSCRIPTS)}"
