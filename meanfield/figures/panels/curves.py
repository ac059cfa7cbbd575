"""Curves of the diagnostics over time: what each panel shows."""

from __future__ import annotations

from collections.abc import Callable
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

STEP_NOISE = 1e-6  # of the largest speed: steps of tokens have errors of about 1e-9 of a position
NO_LENGTH = 1e-13  # of a centroid: what rounding leaves of tokens whose mean is zero
ESCAPED = 1e-12  # mass at the ends of a mesh that is worth a panel; far tails have less
MAX_DRAWN = 1e100  # drawn on a log axis: its ticks go some way beyond
NO_SPREAD = 1e-8  # of the radius: what integrators leave of tokens that are one
AHEAD = 2.0  # last samples: an event that is predicted sooner is shown
STEPS, ROOM = 200, 10.0  # of a curve beyond the last sample, and how many times the largest value it may reach
GROWTH = 1e4  # of an energy, from which a log axis reads better
MAX_CURVES = 16  # of a diagnostic that is an array
TITLE = 48  # letters of a panel's title, of text that a user wrote
LABELS = 6  # of a causal mask, named in a legend


def is_worth(run_data: RunData, name: str) -> bool:
    """Whether a diagnostic was recorded, and has something to show: at more than one time that is on the axis."""
    values = run_data.diagnostics.get(name)
    if values is None:
        return False
    drawable = (np.abs(values) < MAX_DRAWN).reshape(len(values), -1).any(axis=1)
    if np.count_nonzero(drawable & ((run_data.diagnostics["time"] > 0) | (not run_data.log_time))) < 2:
        return False
    if name == "mass" and run_data.particles is not None:
        return False  # tokens keep theirs
    if name == "radius" and run_data.particles is not None:
        return not run_data.particles.has_radius  # then each token's is drawn already
    return name != "escaped" or bool(values.max() > ESCAPED)


def time_range(run_data: RunData, name: str) -> tuple[float, float]:
    """Range of a panel: that of its samples, and on to an event that is predicted soon after them."""
    first, last = run_data.sample_range
    predicted = run_data.predictions.get(name)
    if predicted is None or run_data.log_time or not last < predicted.moment <= AHEAD * last:
        return first, last
    return first, predicted.moment + 0.2 * (predicted.moment - first)  # room for its name, right of the curve


def draw_prediction(ax: Axes, run_data: RunData, name: str) -> None:
    """The predicted curve of a panel that is drawn, and what it is in the title."""
    if (predicted := run_data.predictions.get(name)) is None:
        return
    times, (_, last) = run_data.diagnostics.get("time", run_data.times), time_range(run_data, name)
    if last > times[-1]:
        times = np.concatenate([times, np.linspace(times[-1], last, STEPS)[1:]])
    ax.plot(times, predicted.trace(times), color=ink(0), lw=1.4, ls="--")
    ax.set_title(f"{ax.get_title()} (dashed: {predicted.text})")


def _draw_energy(ax: Axes, run_data: RunData) -> None:
    """Entropy H = ∫ρ log ρ on the left axis, energy E on the right."""
    relative = run_data.relative_entropy
    unit = r"/$e^{|\beta|}$" if run_data.scaled_energy else ""
    curves = {
        "entropy": ("$H$", BLUE, "-"),
        "energy": (f"$E${unit}", VERMILION, "--"),
    }
    recorded = [name for name in curves if is_worth(run_data, name)]
    for name, side in zip(recorded, (ax, None), strict=False):
        symbol, color, style = curves[name]
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
    integrand = r"\rho\,\log(\rho/\bar\rho)" if relative else r"\rho\,\log\rho"
    titles = {"entropy": rf"entropy $H=\int{integrand}$", "energy": "energy $E$"}
    ax.set_title(", ".join(titles[name] for name in recorded))


def _draw_speed(ax: Axes, run_data: RunData) -> None:
    speed = run_data.diagnostics["speed"]
    ax.set(ylabel="root mean square |X|", title="speed")
    if np.nanmax(speed) ** 2 < ROUNDING and np.isnan(run_data.hand_over):  # of atoms it is exact, however small
        ax.set_yticks([])
        annotate(ax, "nothing moves: zero to rounding")
        return
    speed = np.where(_is_over(run_data), np.nan, speed)
    ax.plot(run_data.diagnostics["time"], positive(speed), color=GREEN, lw=1.4)
    set_decades(ax, speed, decades=20 if np.isnan(run_data.hand_over) else 300)


def _is_over(run_data: RunData) -> NDArray[np.bool_]:
    """(samples,) whether all tokens are one cluster for good, and move only by the tolerance of the steps."""
    speed, clusters = run_data.diagnostics["speed"], run_data.diagnostics.get("clusters")
    if run_data.particles is None or clusters is None or np.isfinite(run_data.hand_over):
        return np.zeros(len(speed), dtype=bool)
    moving = (clusters != 1) | ~(speed < STEP_NOISE * np.nanmax(speed))
    last = np.flatnonzero(moving)[-1] if moving.any() else len(speed)
    return np.arange(len(speed)) > last


def _draw_clusters(ax: Axes, run_data: RunData) -> None:
    from matplotlib.ticker import MaxNLocator

    times, clusters = run_data.clusters_over(snapshots_chosen(run_data, SNAPSHOTS))
    top = max(float(np.nanmax(clusters)), 1.0)
    ax.step(times, clusters, where="post", color=ink(0), lw=1.4)
    ax.set(ylabel="number", title="clusters", ylim=(-0.05 * top, 1.1 * top))  # zero stays off the axis
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10]))
    if np.nanmax(clusters) == 0:
        annotate(ax, "none at any time")
    elif run_data.kind.space == "S1" and run_data.growth is not None and run_data.growth.max() > 0:
        fastest = int(run_data.growth.argmax())  # as many clusters condense from a small perturbation
        ax.axhline(fastest, color=ink(0.4), lw=1.2, ls=":", zorder=1)
        ax.set_title(f"clusters (dotted: fastest mode, l = {fastest})")


def _draw_pairs_close(ax: Axes, run_data: RunData) -> None:
    ax.set(title="pairs of tokens that have met", ylabel=r"share with $\langle\theta,\theta'\rangle>0.999$")
    ax.plot(run_data.diagnostics["time"], run_data.diagnostics["pairs_close"], color=ORANGE, lw=1.4)
    ax.set_ylim(-0.05, 1.05)


def _draw_cosine(ax: Axes, run_data: RunData) -> None:
    """Drawn up to 1, where all tokens are one."""
    cosine = run_data.diagnostics["cosine"]
    ax.plot(run_data.diagnostics["time"], cosine, color=ORANGE, lw=1.4, marker="o", markersize=3.5)
    ax.set(title="mean inner product of two tokens", ylabel=r"$\langle\theta,\theta'\rangle$")
    ax.set_ylim(min(-0.05, 1.05 * float(cosine.min())), 1.05)


def _draw_centroid(ax: Axes, run_data: RunData) -> None:
    length = np.linalg.norm(run_data.diagnostics["centroid"], axis=1)
    ax.set_title("centroid")
    if np.nanmax(length) < NO_LENGTH:
        ax.set_yticks([])
        annotate(ax, "at the origin, to rounding")
        return
    if not draw_change(ax, run_data.diagnostics["time"], length, r"$|\int x\,\rho|$", color=PURPLE):
        draw_prediction(ax, run_data, "centroid")


def _draw_mass(ax: Axes, run_data: RunData) -> None:
    ax.set_title("mass")
    draw_change(ax, run_data.diagnostics["time"], run_data.diagnostics["mass"], r"$\int\rho$", color=ink(0))


def _draw_size(name: str, title: str, label: str) -> Callable[[Axes, RunData], None]:
    """A panel for a positive number on a log axis, where growth at a constant rate is a straight line."""

    def draw(ax: Axes, run_data: RunData) -> None:
        values = run_data.diagnostics[name]
        ax.set(ylabel=label, title=title)
        ax.plot(run_data.diagnostics["time"], positive(values), color=BLUE, lw=1.4)
        set_decades(ax, values)
        draw_prediction(ax, run_data, name)

    return draw


def _draw_variance(ax: Axes, run_data: RunData) -> None:
    """The variance, as far as it is more than rounding, and room above for a blow-up soon after the last sample."""
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
    """Drawn from 0, where tokens are what they were, to at least 1, where that is forgotten."""
    drift = run_data.diagnostics["drift"]
    ax.plot(run_data.diagnostics["time"], drift, color=VERMILION, lw=1.4)
    ax.set(title="drift of the tokens", ylabel="1 − mean cosine", ylim=(-0.05, 1.05 * max(1.0, float(drift.max()))))


def _draw_escaped(ax: Axes, run_data: RunData) -> None:
    """Masses at both ends of the mesh, which no cell beyond could take up."""
    ends = run_data.kind.ends
    escaped = run_data.diagnostics["escaped"]
    ax.set(ylabel="mass", title="mass in the cells at the ends of the mesh")
    for values, name, color in zip(escaped.T, ends, (SKY, VERMILION), strict=True):
        ax.plot(run_data.diagnostics["time"], positive(values), color=color, lw=1.4, label=name)
    set_decades(ax, escaped, floor=ESCAPED)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def label_angles(run_data: RunData) -> Floats:
    """(samples, labels) angle between each label's mean token and the first label's, 0 where either has none."""
    centroid = run_data.diagnostics["label_centroid"]
    length = np.linalg.norm(centroid, axis=2)
    cosine = np.einsum("sld,sd->sl", centroid, centroid[:, 0])
    size = length * length[:, :1]
    angles: Floats = np.arccos(np.clip(np.divide(cosine, size, out=np.ones_like(size), where=size > 0), -1, 1))
    return angles


def _draw_label_centroid(ax: Axes, run_data: RunData) -> None:
    """How far each label's mean token is from the first label's."""
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
    """A diagnostic of a user's own: a number over time, or a curve for each of several."""
    values = run_data.diagnostics[name].reshape(len(run_data.diagnostics[name]), -1)
    curves = values.T[np.unique(np.linspace(0, values.shape[1] - 1, MAX_CURVES).astype(int))]
    colors = color_map()(np.linspace(0, 0.9, len(curves))) if len(curves) > 1 else [BLUE]
    for curve, color in zip(curves, colors, strict=True):
        ax.plot(run_data.diagnostics["time"], curve, color=color, lw=1.4)
    label_linear(ax.yaxis, name, float(np.nanmax(np.abs(curves))))
    ax.set_title(shorten(run_data.components[name], TITLE, placeholder=" …"))


PANELS = {  # the first that were recorded are drawn
    "energy": (("entropy", "energy"), _draw_energy),
    "power": (("power",), draw_power),
    "speed": (("speed",), _draw_speed),
    "cosine": (("cosine",), _draw_cosine),
    "length": (("length",), _draw_size("length", "length of the states", r"$\sqrt{\mathrm{mean}\,|h|^2}$")),
    "radius": (("radius",), _draw_size("radius", "radius of the tokens", r"$R=\sqrt{\int|x|^2\rho}$")),
    "variance": (("variance",), _draw_variance),
    "drift": (("drift",), _draw_drift),
    "roughness": (("roughness",), _draw_size("roughness", "roughness of the field", r"$\int|\partial_x u|^2 dx$")),
    "label_centroid": (("label_centroid",), _draw_label_centroid),
    "escaped": (("escaped",), _draw_escaped),
    "clusters": (("clusters",), _draw_clusters),
    "pairs_close": (("pairs_close",), _draw_pairs_close),
    "centroid": (("centroid",), _draw_centroid),
    "mass": (("mass",), _draw_mass),
}
