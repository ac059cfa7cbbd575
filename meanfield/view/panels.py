"""Panels of the page of `meanfield view`: each recorded diagnostic as curves over time, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import COLOR_MAP
from meanfield.figures.free_radius import quantiles
from meanfield.figures.panels.curves import is_worth, label_angles
from meanfield.figures.particles.tokens import token_quantiles
from meanfield.figures.power import DEGREE_COLORS, DEGREES, fastest_degree
from meanfield.figures.run_data import BLUE, GREEN, ORANGE, PURPLE, ROUNDING, SKY, VERMILION, RunData

SNAPSHOTS = 300  # largest number for the radii
PARTS = {0.05: SKY, 0.5: BLUE, 0.95: ORANGE}  # quantiles of the radius, and their colors
DECADES = 20  # largest range of a logarithmic panel
ARRAYS = ("time", "pairs", "cluster_center")  # without curves
COLORS = ["#888888" if color == "0.5" else color for color in DEGREE_COLORS]  # of curves
INK = "currentColor"  # follows the light or dark scheme of the page, unlike black
Panel = dict[str, Any]


def panels(run_data: RunData) -> list[Panel]:
    """Return the panels of the HTML page of a run, one for each recorded diagnostic, known ones first.

    There is no panel for fewer than two samples.
    """
    if len(run_data.diagnostics.get("time", ())) < 2:
        return []
    unknown = [name for name in run_data.diagnostics if name not in PANELS and name not in ARRAYS]
    known = [_with_prediction(PANELS[name](run_data), run_data, name) for name in PANELS if is_worth(run_data, name)]
    return known + [_user_panel(run_data, name) for name in unknown]


def round_values(values: Floats) -> list[float | None]:
    """Return the values with nine digits for JSON, None for values that are not finite.

    Nine digits show relative changes of a millionth.
    """
    return [float(f"{value:.9g}") if np.isfinite(value) else None for value in values]


def curve_of(values: Floats, color: str, label: str = "") -> Panel:
    """Return a curve of a panel of the HTML page as plain values."""
    return {"label": label, "color": color, "values": round_values(values)}


def linear(title: str, curves: list[Panel], low: float | None = None, **options: Any) -> Panel:
    """Return a panel of the HTML page with a linear axis that includes all values; ``low`` sets its lower end."""
    values = np.array([value for curve in curves for value in curve["values"] if value is not None] or [0.0])
    lowest, highest = float(values.min() if low is None else low), float(values.max())
    # Values that are constant to rounding have a range relative to their size, so that ticks differ.
    size = max(abs(lowest), abs(highest))
    room = 0.06 * (highest - lowest) if highest - lowest > ROUNDING * size else 0.05 * size or 1.0
    limits = {"low": lowest if low is not None else lowest - room, "high": highest + room}
    return {"title": title, "log": False, "curves": curves} | limits | options


def _logarithmic(title: str, curves: list[Panel], **options: Any) -> Panel:
    """Return a panel of the HTML page with a log axis for all positive values within DECADES of the largest."""
    positive = [value for curve in curves for value in curve["values"] if value is not None and value > 0] or [1.0]
    high = 2 * max(positive)
    low = max(min(positive) / 2, high * 10.0**-DECADES)
    for curve in curves:
        curve["values"] = [value if value is not None and value > 0 else None for value in curve["values"]]
    return {"title": title, "log": True, "curves": curves, "low": low, "high": high} | options


def _energy(run_data: RunData) -> Panel:
    """Return the panel of the energy over time for the HTML page."""
    unit = " in units of e^|β|" if run_data.scaled_energy else ""
    return linear(f"energy E{unit}", [curve_of(run_data.diagnostics["energy"], VERMILION)])


def _entropy(run_data: RunData) -> Panel:
    """Return the panel of the negative entropy or the relative entropy over time for the HTML page."""
    relative = run_data.relative_entropy
    name, integrand = ("relative entropy", "ρ log ρ/ρ̄") if relative else ("negative entropy", "ρ log ρ")
    return linear(f"{name} H = ∫{integrand}", [curve_of(run_data.diagnostics["entropy"], BLUE)])


def _clusters(run_data: RunData) -> Panel:
    """Return the panel of the number of clusters over time for the HTML page."""
    clusters = run_data.diagnostics["clusters"]
    max_clusters = int(max(np.nanmax(clusters), 1))
    step = next(
        step for power in range(9) for step in (10**power, 2 * 10**power, 5 * 10**power) if 6 * step >= max_clusters
    )
    ticks = [[n, str(n)] for n in range(0, max_clusters + 1, step)]
    return linear("clusters", [curve_of(clusters, INK)], low=0, step=True, ticks=ticks)


def _cluster_mass(run_data: RunData) -> Panel:
    """Return a panel of the HTML page with the masses of the heaviest clusters over time, a curve for each."""
    masses = [values for values in run_data.diagnostics["cluster_mass"].T if np.isfinite(values).any()]
    found = enumerate(zip(masses, COLORS, strict=False), 1)
    return linear("mass of clusters, heaviest first", [curve_of(*pair, str(i)) for i, pair in found], low=0)


def _pairs_close(run_data: RunData) -> Panel:
    """Return the panel of the share of pairs of tokens with cosine above 0.999 over time for the HTML page."""
    values = run_data.diagnostics["pairs_close"]
    return linear("collapsed pairs: share with ⟨θ, θ′⟩ > 0.999", [curve_of(values, ORANGE)], low=0)


def _centroid(run_data: RunData) -> Panel:
    """Return the panel of the length of the mean token over time for the HTML page."""
    length = np.linalg.norm(run_data.diagnostics["centroid"], axis=1)
    return linear("centroid |∫xρ|", [curve_of(length, PURPLE)], low=0)


def _speed(run_data: RunData) -> Panel:
    """Return the panel of the root mean square speed of the tokens, on a log axis, for the HTML page."""
    return _logarithmic("speed √∫|X|²ρ", [curve_of(run_data.diagnostics["speed"], GREEN)])


def _mass(run_data: RunData) -> Panel:
    """Return the panel of the change of the mass over time for the HTML page."""
    mass = run_data.diagnostics["mass"]
    return linear(f"mass − {mass[0]:.9g}", [curve_of(mass - mass[0], INK)])


def _power(run_data: RunData) -> Panel:
    """Return a panel of the HTML page with the power of the harmonics of degrees 1 … 8 of the density over time.

    The growth e^{2λt} of the fastest mode that linear theory predicts is added if the density is nearly uniform at
    first.
    """
    time, power = run_data.diagnostics["time"], run_data.diagnostics["power"]
    fastest = fastest_degree(run_data)
    degrees = [*range(1, min(DEGREES + 1, power.shape[1]))]
    if fastest > DEGREES:
        degrees[-1] = fastest
    curves = [curve_of(power[:, l], color, f"l = {l}") for l, color in zip(degrees, COLORS, strict=False)]
    panel = _logarithmic("power by degree l", curves)
    if fastest and run_data.growth is not None:
        rate = float(run_data.growth[fastest])
        panel["curves"].append(_growth(power[0, fastest], rate, fastest, time, panel["high"]))
    return panel


def _growth(start: float, rate: float, degree: int, time: Floats, high: float) -> Panel:
    """Return the predicted curve start · e^{2λt}, λ the growth rate, up to the top ``high`` of the panel."""
    with np.errstate(over="ignore", under="ignore"):
        predicted = start * np.exp(2 * rate * (time - time[0]))
    within = np.where((predicted > 0) & (predicted <= high), predicted, np.nan)
    return curve_of(within, INK, f"e^(2λt), l = {degree}, λ = {rate:.3g}") | {"dashed": True}


def _with_prediction(panel: Panel, run_data: RunData, name: str) -> Panel:
    """Return a panel of the HTML page with the predicted curve of its diagnostic, and the time of the predicted event.

    The panel is unchanged if there is no prediction.
    """
    if (predicted := run_data.predictions.get(name)) is None:
        return panel
    values = round_values(predicted.trace(run_data.diagnostics["time"]))
    shown = [value if value is not None and panel["low"] <= value <= panel["high"] else None for value in values]
    curve = {"label": predicted.text, "color": INK, "values": shown, "dashed": True}
    panel["curves"][0]["label"] = "computed"
    if np.isfinite(predicted.moment):
        panel["title"] += f"; {predicted.event} at {run_data.moment(float(f'{predicted.moment:.4g}'))}"
    return panel | {"curves": [*panel["curves"], curve]}


def _size(name: str, title: str) -> Callable[[RunData], Panel]:
    """Return the function that makes a panel of a positive diagnostic on a log axis."""
    return lambda run_data: _logarithmic(title, [curve_of(run_data.diagnostics[name], BLUE)])


def _escaped(run_data: RunData) -> Panel:
    """Return a panel of the HTML page with the masses in the cells at the ends of the mesh."""
    ends = run_data.kind.ends
    found = zip(run_data.diagnostics["escaped"].T, (SKY, VERMILION), ends, strict=True)
    curves = [curve_of(values, color, end) for values, color, end in found]
    return _logarithmic("mass at the ends of the mesh", curves)


def _label_centroid(run_data: RunData) -> Panel:
    """Return a panel of the HTML page with the angles between the mean tokens at each position and at the first.

    Positions in the sequence are the labels of a causal mask; at most DEGREES of them are shown.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    angles = label_angles(run_data)
    shown = np.unique(np.linspace(0, angles.shape[1] - 1, DEGREES).astype(int))
    colors = colormaps[COLOR_MAP](np.linspace(0.1, 0.9, len(shown)))
    curves = [curve_of(angles[:, k], to_hex(color), f"label {k + 1}") for k, color in zip(shown, colors, strict=True)]
    return linear("mean token of each label: angle from label 1 (rad)", curves, low=0)


def radii(run_data: RunData) -> Panel:
    """Return a panel of the HTML page with the quantiles of the radius of tokens, at up to SNAPSHOTS times."""
    shown = np.unique(np.linspace(0, len(run_data.times) - 1, SNAPSHOTS).round().astype(int))
    find = quantiles if run_data.particles is None else token_quantiles
    found = find(run_data, shown, np.array(list(PARTS))).T
    curves = [
        curve_of(values, color, f"{part:.0%}") for values, (part, color) in zip(found, PARTS.items(), strict=True)
    ]
    times = round_values(run_data.times[shown])
    return _logarithmic("radius quantiles of the tokens", [curve | {"times": times} for curve in curves])


def _user_panel(run_data: RunData, name: str) -> Panel:
    """Return a panel of the HTML page for a diagnostic of a user: a curve for each of the first eight components."""
    values = run_data.diagnostics[name].reshape(len(run_data.diagnostics["time"]), -1)[:, :DEGREES]
    if values.shape[1] == 1:
        return linear(name, [curve_of(values[:, 0], INK)])
    return linear(name, [curve_of(values[:, i], COLORS[i], str(i)) for i in range(values.shape[1])])


PANELS: dict[str, Callable[[RunData], Panel]] = {
    "energy": _energy,
    "entropy": _entropy,
    "clusters": _clusters,
    "radius": _size("radius", "radius R = √∫|x|²ρ"),
    "variance": _size("variance", "variance ∫|x − x̄|²ρ"),
    "label_centroid": _label_centroid,
    "cluster_mass": _cluster_mass,
    "pairs_close": _pairs_close,
    "centroid": _centroid,
    "power": _power,
    "speed": _speed,
    "mass": _mass,
    "escaped": _escaped,
}
