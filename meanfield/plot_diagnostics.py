"""Diagnostics over time, a panel each for those that were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    Floats,
    Story,
    snapshots_chosen,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

DEGREES = 8
DEGREE_COLORS = (ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW, "0.5")
NEARLY_UNIFORM = 0.1  # mean square of ρ/ρ̄ − 1 below which the linear prediction is worth a line


def panels(story: Story) -> list[str]:
    """Names of the panels that the recorded diagnostics fill; none for fewer than two samples."""
    if len(story.diagnostics.get("time", ())) < 2:
        return []
    return [name for name, (needs, _) in PANELS.items() if any(need in story.diagnostics for need in needs)]


def draw_diagnostics(figure: SubFigure, story: Story) -> None:
    """Fill ``figure`` with the panels of ``panels(story)``, two to a row, an odd last one across."""
    names = panels(story)
    rows = [names[i : i + 2] for i in range(0, len(names), 2)]
    layout: list[Any] = [row * (2 // len(row)) for row in rows]
    axes = figure.subplot_mosaic(layout)
    times = [t for t in story.times[snapshots_chosen(story, SNAPSHOTS)] if t > 0 or not story.log_time]
    for name, ax in axes.items():
        PANELS[name][1](ax, story)
        if story.log_time:
            ax.set_xscale("log")
        ax.set_xlim(*_time_range(story))
        for t in times:
            ax.axvline(t, color="0.85", lw=0.8, zorder=0)
        if name in rows[-1]:
            ax.set_xlabel("time t  (grey: snapshots above)")


def _time_range(story: Story) -> tuple[float, float]:
    time = story.diagnostics["time"]
    return float(time[time > 0].min() if story.log_time else time[0]), float(time[-1])


def _draw_energy(ax: Axes, story: Story) -> None:
    """Entropy on the left axis, energy on the right."""
    time = story.diagnostics["time"]
    curves = {
        "entropy": (r"entropy $H=\int\rho\,\log\rho$", BLUE, "-"),
        "energy": ("energy E", VERMILION, "--"),
    }
    recorded = [name for name in curves if name in story.diagnostics]
    for name, side in zip(recorded, (ax, None), strict=False):
        label, color, style = curves[name]
        side = side or ax.twinx()
        side.plot(time, story.diagnostics[name], color=color, ls=style, lw=1.4)
        side.set_ylabel(label, color=color)
        side.tick_params(axis="y", labelcolor=color)
    ax.set_title(" and ".join(recorded))


def _draw_speed(ax: Axes, story: Story) -> None:
    speed = story.diagnostics["speed"]
    ax.plot(story.diagnostics["time"], _positive(speed), color=GREEN, lw=1.4)
    ax.set(yscale="log", ylim=_log_range(speed), ylabel="|X|", title="speed")


def _draw_clusters(ax: Axes, story: Story) -> None:
    from matplotlib.ticker import MaxNLocator

    clusters = story.diagnostics["clusters"]
    ax.step(story.diagnostics["time"], clusters, where="post", color=BLACK, lw=1.4)
    ax.set(ylabel="number", title="clusters", ylim=(0, max(float(clusters.max()) * 1.1, 1.5)))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _draw_power(ax: Axes, story: Story) -> None:
    """Power of degrees 1 … 8, and the growth e^{2λt} predicted for the fastest of all that were recorded."""
    time, power = story.diagnostics["time"], story.diagnostics["power"]
    rates = np.zeros(power.shape[1]) if story.growth is None else story.growth
    fastest = 1 + int(np.argmax(rates[1 : power.shape[1]]))
    degrees = [*range(1, min(DEGREES + 1, power.shape[1]))]
    if fastest > DEGREES:
        degrees[-1] = fastest
    for degree, color in zip(degrees, DEGREE_COLORS, strict=False):
        ax.plot(time, _positive(power[:, degree]), color=color, lw=1.2, label=f"l = {degree}")
    low, high = _log_range(power[:, degrees])
    if story.growth is not None and power[0, 1:].sum() < NEARLY_UNIFORM:
        ax.lines[degrees.index(fastest)].set_linewidth(2.4)
        fine = (np.geomspace if story.log_time else np.linspace)(*_time_range(story), 400)
        with np.errstate(under="ignore", over="ignore"):
            predicted = power[0, fastest] * np.exp(2 * rates[fastest] * (fine - time[0]))
        label = f"$e^{{2λt}}$, l = {fastest}\nλ = {rates[fastest]:.3g}"
        within = predicted <= high
        ax.plot(fine[within], _positive(predicted[within]), color=BLACK, ls="--", lw=1.4, label=label)
    ax.set(yscale="log", ylim=(low, high), ylabel="mean square", title="power by degree l")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small", labelspacing=0.2)


def _log_range(values: Floats) -> tuple[float, float]:
    """Limits of a log axis: what was recorded and a little more, but no more than 20 decades down."""
    positive = values[values > 0]
    if len(positive) == 0:
        return 0.1, 1.0
    high = 3 * float(positive.max())
    return max(float(positive.min()) / 3, high * 1e-20), high


def _positive(values: Floats) -> Floats:
    """The values that a log axis can show; the others leave a gap."""
    return np.where(values > 0, values, np.nan)


PANELS = {
    "energy": (("entropy", "energy"), _draw_energy),
    "power": (("power",), _draw_power),
    "speed": (("speed",), _draw_speed),
    "clusters": (("clusters",), _draw_clusters),
}
