"""Diagnostics over time, a panel each for those that were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.plot_axes import draw_change, positive, say, set_decades, set_time
from meanfield.plot_story import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    SNAPSHOTS,
    VERMILION,
    YELLOW,
    Story,
    snapshots_chosen,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

DEGREES = 8
DEGREE_COLORS = (ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW, "0.5")
NEARLY_UNIFORM = 0.1  # mean square of ρ/ρ̄ − 1 below which the linear prediction is worth a line
ROUNDING = 1e-28  # mean square that rounding alone may leave of a uniform density; the square of its speed too
LARGEST_BETA = 700.0  # beyond it energies are recorded in units of e^|β|: diagnostics.LARGEST_BETA, a heavy import
MOST = 4  # panels


def panels(story: Story) -> list[str]:
    """Names of at most four panels that the recorded diagnostics fill; none for fewer than two samples."""
    if len(story.diagnostics.get("time", ())) < 2:
        return []
    return [name for name, (needs, _) in PANELS.items() if any(need in story.diagnostics for need in needs)][:MOST]


def draw_diagnostics(figure: SubFigure, story: Story) -> None:
    """Fill ``figure`` with the panels of ``panels(story)``, two to a row, an odd last one across."""
    names = panels(story)
    rows = [names[i : i + 2] for i in range(0, len(names), 2)]
    layout: list[Any] = [row * (2 // len(row)) for row in rows]
    axes = figure.subplot_mosaic(layout)
    times = [t for t in story.times[snapshots_chosen(story, SNAPSHOTS)] if t > 0 or not story.log_time]
    for name, ax in axes.items():
        PANELS[name][1](ax, story)
        set_time(ax, "time t  (grey: snapshots above)", _time_range(story), log=story.log_time)
        if name not in rows[-1]:
            ax.tick_params(axis="x", labelbottom=False)
            ax.set_xlabel("")
        for t in times:
            ax.axvline(t, color="0.85", lw=0.8, zorder=0)


def _time_range(story: Story) -> tuple[float, float]:
    time = story.diagnostics["time"]
    return float(time[time > 0].min() if story.log_time else time[0]), float(time[-1])


def _draw_energy(ax: Axes, story: Story) -> None:
    """Entropy H = ∫ρ log ρ on the left axis, energy E on the right."""
    unit = r"/$e^{|\beta|}$" if abs(story.beta) > LARGEST_BETA else ""
    curves = {
        "entropy": ("$H$", BLUE, "-"),
        "energy": (f"$E${unit}", VERMILION, "--"),
    }
    recorded = [name for name in curves if name in story.diagnostics]
    for name, side in zip(recorded, (ax, None), strict=False):
        symbol, color, style = curves[name]
        if side is None:
            side = ax.twinx()
            side.spines["right"].set_visible(True)
        draw_change(side, story.diagnostics["time"], story.diagnostics[name], symbol, color=color, ls=style)
        side.yaxis.label.set_color(color)
        side.tick_params(axis="y", labelcolor=color)
    titles = {"entropy": r"entropy $H=\int\rho\,\log\rho$", "energy": "energy $E$"}
    ax.set_title(", ".join(titles[name] for name in recorded))


def _draw_speed(ax: Axes, story: Story) -> None:
    speed = story.diagnostics["speed"]
    ax.set(ylabel="root mean square |X|", title="speed")
    if speed.max() ** 2 < ROUNDING:
        ax.set_yticks([])
        say(ax, "nothing moves: zero to rounding")
        return
    ax.plot(story.diagnostics["time"], positive(speed), color=GREEN, lw=1.4)
    set_decades(ax, speed)


def _draw_clusters(ax: Axes, story: Story) -> None:
    from matplotlib.ticker import MaxNLocator

    clusters = story.diagnostics["clusters"]
    most = max(float(clusters.max()), 1.0)
    ax.step(story.diagnostics["time"], clusters, where="post", color=BLACK, lw=1.4)
    ax.set(ylabel="number", title="clusters", ylim=(-0.05 * most, 1.1 * most))  # zero stays off the axis
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    if clusters.max() == 0:
        say(ax, "none at any time")


def _draw_power(ax: Axes, story: Story) -> None:
    """Power of degrees 1 … 8, and the growth e^{2λt} predicted for the fastest of all that were recorded."""
    time, power = story.diagnostics["time"], story.diagnostics["power"]
    ax.set(ylabel="mean square", title="power by degree $l$")
    if power[:, 1:].max() < ROUNDING:
        ax.set_yticks([])
        say(ax, "every mode is zero to rounding")
        return
    fastest = _fastest(story)
    degrees = [*range(1, min(DEGREES + 1, power.shape[1]))]
    if fastest > DEGREES:
        degrees[-1] = fastest
    for degree, color in zip(degrees, DEGREE_COLORS, strict=False):
        width = 2.4 if degree == fastest else 1.2
        ax.plot(time, positive(power[:, degree]), color=color, lw=width, label=f"l = {degree}")
    set_decades(ax, power[:, degrees], floor=ROUNDING)
    if fastest:
        _draw_prediction(ax, story, fastest)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, labelspacing=0.2)


def _fastest(story: Story) -> int:
    """The recorded degree that is predicted to grow fastest; 0 where there is no prediction, or it does not apply."""
    power = story.diagnostics["power"]
    if story.growth is None or power[0, 1:].sum() > NEARLY_UNIFORM or power.shape[1] < 2:
        return 0
    return 1 + int(np.argmax(story.growth[1 : power.shape[1]]))


def _draw_prediction(ax: Axes, story: Story, degree: int) -> None:
    """The line power(0)·e^{2λt} of ``degree``, as far as the panel is high."""
    assert story.growth is not None
    start, rate = story.diagnostics["power"][0, degree], float(story.growth[degree])
    first, last = _time_range(story)
    time = np.geomspace(first, last, 400) if story.log_time else np.linspace(first, last, 400)
    with np.errstate(under="ignore", over="ignore"):
        predicted = start * np.exp(2 * rate * (time - story.diagnostics["time"][0]))
    within = predicted <= ax.get_ylim()[1]
    label = f"predicted:\nexp(2λt), l = {degree}\nλ = {rate:.3g}"
    ax.plot(time[within], positive(predicted[within]), color=BLACK, ls="--", lw=1.4, label=label)


def _draw_centroid(ax: Axes, story: Story) -> None:
    length = np.linalg.norm(story.diagnostics["centroid"], axis=1)
    ax.set_title("centroid")
    draw_change(ax, story.diagnostics["time"], length, r"$|\int x\,\rho|$", color=PURPLE)


def _draw_mass(ax: Axes, story: Story) -> None:
    ax.set_title("mass")
    draw_change(ax, story.diagnostics["time"], story.diagnostics["mass"], r"$\int\rho$", color=BLACK)


PANELS = {  # the first that were recorded are drawn
    "energy": (("entropy", "energy"), _draw_energy),
    "power": (("power",), _draw_power),
    "speed": (("speed",), _draw_speed),
    "clusters": (("clusters",), _draw_clusters),
    "centroid": (("centroid",), _draw_centroid),
    "mass": (("mass",), _draw_mass),
}
