"""Panels of the diagnostics over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import (
    Floats,
    annotate,
    draw_change,
    ink,
    label_decades,
    label_linear,
    positive,
    set_decades,
)
from meanfield.figures.color_scale import color_map
from meanfield.figures.power import ROUNDING, draw_power
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, SKY, SNAPSHOTS, VERMILION, RunData, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP_NOISE = 1e-6  # fraction of the largest speed: positions have errors of about 1e-9 from time steps
NO_LENGTH = 1e-13  # rounding error of a centroid at the origin
ESCAPED = 1e-12  # smallest mass at the ends of a mesh that is drawn; tails have less
MAX_DRAWN = 1e100  # largest value on a log axis, whose ticks extend beyond
NO_SPREAD = 1e-8  # fraction of the radius: remaining spread of collapsed tokens after rounding
AHEAD = 2.0  # a predicted event is shown up to this multiple of the last time
STEPS, ROOM = 200, 10.0  # points of a curve beyond the last sample, and the largest ratio to the recorded maximum
GROWTH = 1e4  # ratio of largest to smallest energy for a log axis
MAX_CURVES = 16  # curves drawn of an array
TITLE = 48  # letters of a panel's title written by a user
LABELS = 6  # labels of a causal mask in a legend


def is_worth(run_data: RunData, name: str) -> bool:
    """Return whether a diagnostic is worth a panel: recorded, and finite at two or more times on the time axis.

    The mass of particles is constant, and their radius is drawn elsewhere. A negligible ``escaped`` is not drawn.
    """
    values = run_data.diagnostics.get(name)
    if values is None:
        return False
    drawable = (np.abs(values) < MAX_DRAWN).reshape(len(values), -1).any(axis=1)
    if np.count_nonzero(drawable & ((run_data.diagnostics["time"] > 0) | (not run_data.log_time))) < 2:
        return False
    if name == "mass" and run_data.particles is not None:
        return False  # particles conserve mass
    if name == "radius" and run_data.particles is not None:
        return not run_data.particles.has_radius  # the radius of each token is drawn elsewhere
    return name != "escaped" or bool(values.max() > ESCAPED)


def time_range(run_data: RunData, name: str) -> tuple[float, float]:
    """Return the time limits of the panel of a diagnostic: its samples, extended to a predicted event soon after."""
    first, last = run_data.sample_range
    predicted = run_data.predictions.get(name)
    if predicted is None or run_data.log_time or not last < predicted.moment <= AHEAD * last:
        return first, last
    return first, predicted.moment + 0.2 * (predicted.moment - first)  # room for the label right of the curve


def draw_prediction(ax: Axes, run_data: RunData, name: str) -> None:
    """Draw the predicted curve of a diagnostic on its panel, and append its description to the title."""
    if (predicted := run_data.predictions.get(name)) is None:
        return
    times, (_, last) = run_data.diagnostics.get("time", run_data.times), time_range(run_data, name)
    if last > times[-1]:
        times = np.concatenate([times, np.linspace(times[-1], last, STEPS)[1:]])
    ax.plot(times, predicted.trace(times), color=ink(0), lw=1.4, ls="--")
    ax.set_title(f"{ax.get_title()} (dashed: {predicted.text})")


def draw_energy(ax: Axes, run_data: RunData, names: Sequence[str] = ("entropy", "energy")) -> None:
    """Draw the negative entropy H = ∫ρ log ρ on the left axis and the energy E on the right axis, or one of both."""
    relative = run_data.relative_entropy
    unit = r"/$e^{|\beta|}$" if run_data.scaled_energy else ""
    curves = {
        "entropy": ("$H$", BLUE, "-"),
        "energy": (f"$E${unit}", VERMILION, "--"),
    }
    recorded = [name for name in names if is_worth(run_data, name)]
    for name, side in zip(recorded, (ax, None), strict=False):
        symbol, color, style = curves[name]
        style = style if len(recorded) > 1 else "-"
        if side is None:
            side = ax.twinx()
            side.spines["right"].set_visible(True)
        values = np.where(np.abs(run_data.diagnostics[name]) < MAX_DRAWN, run_data.diagnostics[name], np.nan)
        draw_change(side, run_data.diagnostics["time"], values, symbol, color=color, ls=style)
        finite = values[np.isfinite(values)]
        if name == "energy" and finite.min() > 0 and finite.max() > GROWTH * finite.min():
            side.set(yscale="log", ylim=(finite.min() / 2, 2 * finite.max()), ylabel=symbol)
            label_decades(side.yaxis, *side.get_ylim())
        side.yaxis.label.set_color(color)
        side.tick_params(axis="y", labelcolor=color)
    entropy = (
        r"relative entropy $H=\int\rho\,\log(\rho/\bar\rho)$"
        if relative
        else r"negative entropy $H=\int\rho\,\log\rho$"
    )
    titles = {"entropy": entropy, "energy": "energy $E$"}
    ax.set_title(", ".join(titles[name] for name in recorded))


def _draw_speed(ax: Axes, run_data: RunData) -> None:
    """Draw the root mean square speed of the tokens on a logarithmic axis."""
    speed = run_data.diagnostics["speed"]
    ax.set(ylabel="root mean square |X|", title="speed")
    if np.nanmax(speed) ** 2 < ROUNDING and np.isnan(run_data.handover):  # atoms have exact speeds, however small
        ax.set_yticks([])
        annotate(ax, "nothing moves: zero to rounding")
        return
    speed = np.where(_is_over(run_data), np.nan, speed)
    ax.plot(run_data.diagnostics["time"], positive(speed), color=GREEN, lw=1.4)
    set_decades(ax, speed, decades=20 if np.isnan(run_data.handover) else 300)


def _is_over(run_data: RunData) -> NDArray[np.bool_]:
    """Return for each sample (samples,) whether all tokens form one cluster of negligible speed from then to the end.

    Speeds below the fraction STEP_NOISE of the largest come from errors of the time steps.
    """
    speed, clusters = run_data.diagnostics["speed"], run_data.diagnostics.get("clusters")
    if run_data.particles is None or clusters is None or np.isfinite(run_data.handover):
        return np.zeros(len(speed), dtype=bool)
    moving = (clusters != 1) | ~(speed < STEP_NOISE * np.nanmax(speed))
    last = np.flatnonzero(moving)[-1] if moving.any() else len(speed)
    return np.arange(len(speed)) > last


def _draw_clusters(ax: Axes, run_data: RunData) -> None:
    """Draw the number of clusters, and the degree of the fastest mode on the circle."""
    from matplotlib.ticker import MaxNLocator

    times, clusters = run_data.clusters_over(snapshots_chosen(run_data, SNAPSHOTS))
    top = max(float(np.nanmax(clusters)), 1.0)
    ax.step(times, clusters, where="post", color=ink(0), lw=1.4)
    ax.set(ylabel="number", title="clusters", ylim=(-0.05 * top, 1.1 * top))  # zero is above the axis
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    if np.nanmax(clusters) == 0:
        annotate(ax, "none at any time")
    elif run_data.kind.space == "S1" and run_data.growth is not None and run_data.growth.max() > 0:
        fastest = int(run_data.growth.argmax())  # the expected number of clusters from a small perturbation
        ax.axhline(fastest, color=ink(0.4), lw=1.2, ls=":", zorder=1)
        ax.set_title(f"clusters (dotted: fastest mode, l = {fastest})")


def _draw_pairs_close(ax: Axes, run_data: RunData) -> None:
    """Draw the share of pairs of tokens whose cosine is above 0.999."""
    ax.set(title=r"collapsed pairs of tokens, $\langle\theta,\theta'\rangle>0.999$", ylabel="share of pairs")
    ax.plot(run_data.diagnostics["time"], run_data.diagnostics["pairs_close"], color=ORANGE, lw=1.4)
    ax.set_ylim(-0.05, 1.05)


def _draw_cosine(ax: Axes, run_data: RunData) -> None:
    """Draw the mean inner product of two tokens over time, up to 1, the value of coinciding tokens."""
    cosine = run_data.diagnostics["cosine"]
    ax.plot(run_data.diagnostics["time"], cosine, color=ORANGE, lw=1.4, marker="o", markersize=3.5)
    ax.set(title="mean inner product of two tokens", ylabel=r"$\langle\theta,\theta'\rangle$")
    ax.set_ylim(min(-0.05, 1.05 * float(cosine.min())), 1.05)


def _draw_centroid(ax: Axes, run_data: RunData) -> None:
    """Draw the length of the mean token, or the change of the length if that is small."""
    length = np.linalg.norm(run_data.diagnostics["centroid"], axis=1)
    ax.set_title("centroid")
    if np.nanmax(length) < NO_LENGTH:
        ax.set_yticks([])
        annotate(ax, "at the origin, to rounding")
        return
    if not draw_change(ax, run_data.diagnostics["time"], length, r"$|\int x\,\rho|$", color=PURPLE):
        draw_prediction(ax, run_data, "centroid")


def _draw_mass(ax: Axes, run_data: RunData) -> None:
    """Draw the mass, or the change of the mass if that is small."""
    ax.set_title("mass")
    draw_change(ax, run_data.diagnostics["time"], run_data.diagnostics["mass"], r"$\int\rho$", color=ink(0))


def _draw_on_log_axis(name: str, title: str, label: str) -> Callable[[Axes, RunData], None]:
    """Return the function that draws a positive diagnostic over time on a logarithmic axis.

    Growth at a constant rate is then a straight line.
    """

    def draw(ax: Axes, run_data: RunData) -> None:
        """Draw the diagnostic on a logarithmic axis, with its predicted curve if there is one."""
        values = run_data.diagnostics[name]
        ax.set(ylabel=label, title=title)
        ax.plot(run_data.diagnostics["time"], positive(values), color=BLUE, lw=1.4)
        set_decades(ax, values)
        draw_prediction(ax, run_data, name)

    return draw


def _draw_variance(ax: Axes, run_data: RunData) -> None:
    """Draw the variance of tokens above its rounding error, with room for a predicted blow-up soon after."""
    values = run_data.diagnostics["variance"]
    if "radius" in run_data.diagnostics:
        lost = values < (NO_SPREAD * run_data.diagnostics["radius"]) ** 2
        values = np.where(np.logical_or.accumulate(lost), 0.0, values)
    ax.set(ylabel=r"$\int|x-\bar x|^2\rho$", title="variance of the tokens")
    ax.plot(run_data.diagnostics["time"], positive(values), color=BLUE, lw=1.4)
    beyond = time_range(run_data, "variance") != run_data.sample_range
    set_decades(ax, np.append(values, ROOM * values.max()) if beyond else values)
    draw_prediction(ax, run_data, "variance")


def _draw_drift(ax: Axes, run_data: RunData) -> None:
    """Draw the drift of tokens, 1 − mean cosine, from 0 (unchanged) to at least 1 (uncorrelated)."""
    drift = run_data.diagnostics["drift"]
    ax.plot(run_data.diagnostics["time"], drift, color=VERMILION, lw=1.4)
    ax.set(title="drift of the tokens", ylabel="1 − mean cosine", ylim=(-0.05, 1.05 * max(1.0, float(drift.max()))))


def _draw_escaped(ax: Axes, run_data: RunData) -> None:
    """Draw over time the mass in the first and in the last cell of the mesh, which mass cannot leave outward."""
    ends = run_data.kind.ends
    escaped = run_data.diagnostics["escaped"]
    ax.set(ylabel="mass", title="mass in the cells at the ends of the mesh")
    for values, name, color in zip(escaped.T, ends, (SKY, VERMILION), strict=True):
        ax.plot(run_data.diagnostics["time"], positive(values), color=color, lw=1.4, label=name)
    set_decades(ax, escaped, floor=ESCAPED)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def label_angles(run_data: RunData) -> Floats:
    """Return the angles (samples, labels) between the mean tokens at each position in the sequence and at the first.

    Positions in the sequence are the labels of a causal mask. The angle is 0 if either mean token is zero.
    """
    centroid = run_data.diagnostics["label_centroid"]
    length = np.linalg.norm(centroid, axis=2)
    cosine = np.einsum("sld,sd->sl", centroid, centroid[:, 0])
    size = length * length[:, :1]
    return np.asarray(np.arccos(np.clip(np.divide(cosine, size, out=np.ones_like(size), where=size > 0), -1, 1)))


def _draw_label_centroid(ax: Axes, run_data: RunData) -> None:
    """Draw over time the angle between the mean tokens at each position in the sequence and at the first.

    Positions in the sequence are the labels of a causal mask.
    """
    angles = label_angles(run_data)
    labels = angles.shape[1]
    named = np.unique(np.linspace(0, labels - 1, LABELS).astype(int))
    for k, color in enumerate(color_map()(np.linspace(0, 0.9, labels))):
        name = f"label {k + 1}" if k in named else None
        ax.plot(run_data.diagnostics["time"], angles[:, k], color=color, lw=1.4, label=name)
    ax.set_title("mean token of each label")
    label_linear(ax.yaxis, "angle from label 1 (rad)", float(angles.max()))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small", labelspacing=0.2)


def draw_component(ax: Axes, run_data: RunData, name: str) -> None:
    """Draw a diagnostic that a user has defined: a number over time, or a curve for each component of an array.

    At most MAX_CURVES curves are drawn.
    """
    values = run_data.diagnostics[name].reshape(len(run_data.diagnostics[name]), -1)
    curves = values.T[np.unique(np.linspace(0, values.shape[1] - 1, MAX_CURVES).astype(int))]
    colors = color_map()(np.linspace(0, 0.9, len(curves))) if len(curves) > 1 else [BLUE]
    for curve, color in zip(curves, colors, strict=True):
        ax.plot(run_data.diagnostics["time"], curve, color=color, lw=1.4)
    label_linear(ax.yaxis, name, float(np.nanmax(np.abs(curves))))
    ax.set_title(shorten(run_data.components[name], TITLE, placeholder=" …"))


PANELS = {  # the first recorded ones are drawn
    "energy": (("entropy", "energy"), draw_energy),
    "power": (("power",), draw_power),
    "speed": (("speed",), _draw_speed),
    "cosine": (("cosine",), _draw_cosine),
    "length": (("length",), _draw_on_log_axis("length", "length of the states", r"$\sqrt{\mathrm{mean}\,|h|^2}$")),
    "radius": (("radius",), _draw_on_log_axis("radius", "radius of the tokens", r"$R=\sqrt{\int|x|^2\rho}$")),
    "variance": (("variance",), _draw_variance),
    "drift": (("drift",), _draw_drift),
    "roughness": (
        ("roughness",),
        _draw_on_log_axis("roughness", "roughness of the field", r"$\int|\partial_x u|^2 dx$"),
    ),
    "label_centroid": (("label_centroid",), _draw_label_centroid),
    "escaped": (("escaped",), _draw_escaped),
    "clusters": (("clusters",), _draw_clusters),
    "pairs_close": (("pairs_close",), _draw_pairs_close),
    "centroid": (("centroid",), _draw_centroid),
    "mass": (("mass",), _draw_mass),
}
