"""Text of the command ``limit``: tables of distances, fluctuations, exponents, times and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.token_numbers.statistics import Estimate
from meanfield.case.summary import describe_layer

if TYPE_CHECKING:
    from meanfield.results.token_numbers import Limit

ROWS = 6  # times in a table, at most


def report_of(found: Limit) -> str:
    """Return the text that ``meanfield limit`` prints."""
    noise = found.case.stabilizers.noise
    layer = ", ".join(describe_layer(found.case))
    lines = [
        f"tokens beside the density {found.case.domain.location}: beta = {found.case.attention.beta:g}, {layer}, "
        f"noise = {noise:g}",
        f"{found.seeds} seeds for each n, with intervals of 95 % over the seeds",
        "",
        *_distances(found),
        "",
    ]
    for k in range(len(found.observables)):
        lines += [*_fluctuations(found, k), ""]
    if found.not_predicted:
        lines += [f"central-limit variance: not computed: {found.not_predicted}", ""]
    lines += [*_followed(found), "", *_clusters(found)]
    return "\n".join(lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with right-aligned columns."""
    table = [heads, *rows]
    widths = [max(len(row[k]) for row in table) for k in range(len(heads))]
    return ["   ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table]


def _chosen(found: Limit) -> list[int]:
    """Return the indices of at most ROWS equally spaced times for the tables."""
    last = len(found.time) - 1
    return [int(k) for k in np.unique(np.linspace(0, last, min(ROWS, last + 1)).astype(int))]


def _counts(found: Limit) -> list[str]:
    """Return the column titles ``n = count`` of the tables."""
    return [f"n = {count}" for count in found.n]


def _distances(found: Limit) -> list[str]:
    """Return the lines of the table of distances between tokens and density, by time and n."""
    sliced = ", mean over slices" if found.case.domain.space == "S2" else ""
    name = f"W{found.order}"
    rows = [
        [f"{found.time[k]:.4g}", *(f"{mean:.4f} ± {half:.4f}" for mean, half in zip(means, halves, strict=True))]
        for k, means, halves in (
            (k, found.mean_distance[:, k], found.distance_half_width[:, k]) for k in _chosen(found)
        )
    ]
    return [
        f"{name} from n tokens to the density{sliced}, in radians",
        *_table(["time", *_counts(found)], rows),
        f"exponent of {name} in n up to t = {found.all_follow_until:.4g}: {found.exponent} (independent tokens: -0.5)",
    ]


def _fluctuations(found: Limit, k: int) -> list[str]:
    """Return the lines of the table of n Var of observable k, by time and n, with its intervals."""
    name, (low, high) = found.observables[k], found.fluctuations_interval[..., k]
    predicted = not found.not_predicted
    rows = [
        [
            f"{found.time[at]:.4g}",
            *([f"{found.predicted[at, k]:.4g}".replace("nan", "-")] if predicted else []),
            *(
                f"{found.fluctuations[size, at, k]:.4g} [{low[size, at]:.3g}, {high[size, at]:.3g}]"
                for size in range(len(found.n))
            ),
        ]
        for at in _chosen(found)
    ]
    lines = [
        f"n Var of the mean of {name} over the tokens",
        *_table(["time", *(["n → ∞"] if predicted else []), *_counts(found)], rows),
        f"exponent of its standard deviation up to t = {found.all_follow_until:.4g}: {found.deviation_exponents[k]}",
    ]
    if predicted:
        ratio = found.measured_over_predicted[k]
        lines.append(
            f"measured over predicted variance, mean over n and these times: {ratio.value:.3f} ± {ratio.half_width:.3f}"
        )
        if np.isnan(found.predicted[-1, k]):
            last = found.time[np.isfinite(found.predicted[:, k])][-1]
            lines.append(f"limit n → ∞ up to t = {last:.4g}: later clusters are narrower than a few cells")
    return lines


def _followed(found: Limit) -> list[str]:
    """Return the lines of the table of times until which n tokens follow the density."""
    name = f"W{found.order}"
    grows = np.isfinite(found.rate)
    lines = [f"time until which n tokens follow the density, {name} <= {found.tolerance:.4g} rad"]
    rows = [
        [f"{count}", _time(until, found), *([f"{predicted:.4g}"] if grows else [])]
        for count, until, predicted in zip(found.n, found.followed, found.predicted_followed, strict=True)
    ]
    lines += _table(["n", "time", *(["log(n)/2λ"] if grows else [])], rows)
    if grows:
        lines.append(f"fluctuations about the uniform density grow as e^(λt), λ = {found.rate:.6g}")
    return lines


def _time(until: float, found: Limit) -> str:
    """Return a time as text, or ``> end`` if it is infinite."""
    return f"{until:.4g}" if np.isfinite(until) else f"> {found.time[-1]:g}"


def _clusters(found: Limit) -> list[str]:
    """Return the lines of the table of the final numbers of clusters, as shares of the seeds."""
    density = f"; density: {found.density_clusters}" if found.density_clusters >= 0 else ""
    present = np.flatnonzero(found.configurations.any(axis=0))
    rows = [
        [f"{count}", *(f"{share:.0%}" for share in shares[present])]
        for count, shares in zip(found.n, found.configurations, strict=True)
    ]
    return [
        f"share of the seeds by final number of clusters{density}",
        *_table(["n", *map(str, present)], rows),
    ]


def _as_numbers(estimate: Estimate) -> dict[str, float]:
    """Return an estimate as numbers for JSON."""
    return {"value": estimate.value, "half_width": estimate.half_width}


def as_dict(found: Limit) -> dict[str, object]:
    """Return the results as plain values for JSON."""
    low, high = found.fluctuations_interval
    return {
        "n": found.n.tolist(),
        "seeds": found.seeds,
        "time": found.time.tolist(),
        "observables": list(found.observables),
        "order": found.order,
        "distance": found.mean_distance.tolist(),
        "distance_half_width": found.distance_half_width.tolist(),
        "exponent": _as_numbers(found.exponent),
        "fluctuations": found.fluctuations.tolist(),
        "fluctuations_low": low.tolist(),
        "fluctuations_high": high.tolist(),
        "predicted": found.predicted.tolist(),
        "not_predicted": found.not_predicted,
        "deviation_exponents": [_as_numbers(one) for one in found.deviation_exponents],
        "measured_over_predicted": [_as_numbers(one) for one in found.measured_over_predicted],
        "tolerance": found.tolerance,
        "followed": found.followed.tolist(),
        "rate": found.rate,
        "predicted_followed": found.predicted_followed.tolist(),
        "configurations": found.configurations.tolist(),
        "density_clusters": found.density_clusters,
    }
