"""Panel of the power by degree, with the growth predicted by linear theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import annotate, ink, positive, set_decades
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW, RunData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEGREES = 8
DEGREE_COLORS = (ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, YELLOW, "0.5")
NEARLY_UNIFORM = 0.1  # mean square of ρ/ρ̄ − 1 above which the linear prediction is not drawn
ROUNDING = 1e-28  # mean square of the rounding error of a uniform density, and of its velocity


def draw_power(ax: Axes, run_data: RunData) -> None:
    """Draw the power of the harmonics of degrees 1 … 8 of the density over time.

    The growth e^{2λt} that linear theory predicts for the fastest recorded mode is added.
    """
    time, power = run_data.diagnostics["time"], run_data.diagnostics["power"]
    ax.set(ylabel="mean square", title="power by degree $l$")
    if power[:, 1:].max() < ROUNDING:
        ax.set_yticks([])
        annotate(ax, "every mode is zero to rounding")
        return
    fastest = fastest_degree(run_data)
    degrees = [*range(1, min(DEGREES + 1, power.shape[1]))]
    if fastest > DEGREES:
        degrees[-1] = fastest
    for degree, color in zip(degrees, DEGREE_COLORS, strict=False):
        width = 2.4 if degree == fastest else 1.2
        ax.plot(time, positive(power[:, degree]), color=color, lw=width, label=f"l = {degree}")
    set_decades(ax, power[:, degrees], floor=ROUNDING)
    if fastest:
        _draw_prediction(ax, run_data, fastest)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small", labelspacing=0.2)


def fastest_degree(run_data: RunData) -> int:
    """Return the recorded degree with the largest growth rate predicted by linear theory.

    0 if the theory does not apply or the first density is not nearly uniform.
    """
    power = run_data.diagnostics["power"]
    if run_data.growth is None or power[0, 1:].sum() > NEARLY_UNIFORM or power.shape[1] < 2:
        return 0
    present = power[0, 1:] > ROUNDING  # a mode of zero amplitude does not grow, and a decaying one never appears
    return 1 + int(np.argmax(np.where(present, run_data.growth[1 : power.shape[1]], -np.inf))) if present.any() else 0


def _draw_prediction(ax: Axes, run_data: RunData, degree: int) -> None:
    """Draw the growth power(0)·e^{2λt} that linear theory predicts for ``degree``, up to the top of the panel."""
    assert run_data.growth is not None
    start, rate = run_data.diagnostics["power"][0, degree], float(run_data.growth[degree])
    first, last = run_data.sample_range
    time = np.geomspace(first, last, 400) if run_data.log_time else np.linspace(first, last, 400)
    with np.errstate(under="ignore", over="ignore"):
        predicted = start * np.exp(2 * rate * (time - run_data.diagnostics["time"][0]))
    within = predicted <= ax.get_ylim()[1]
    label = f"predicted:\nexp(2λt), l = {degree}\nλ = {rate:.3g}"
    ax.plot(time[within], positive(predicted[within]), color=ink(0), ls="--", lw=1.4, label=label)
