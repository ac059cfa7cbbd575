"""Tables, verdicts and figure of the experiment on stabilizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.transformer.experiments.drawing import NAMES, STYLES, curve
from meanfield.transformer.experiments.statistics import describe, describe_difference
from meanfield.transformer.experiments.subjects import KINDS, STATES
from meanfield.transformer.labelled import Outcome
from solvers.mesh.mesh import Floats

PROFILES = {
    "distance": "distance between the states of two examples",
    "departure": "distance from the first states",
    "rank": "effective rank of the states",
    "separation": "variance between classes by total variance",
    "size": "log10 of the size of states by the first one",
}


def _architectures(found: Outcome) -> Iterator[tuple[int, tuple[int, ...], list[str]]]:
    """Yield kind of network, indices on the free axes and their values as texts, for each point of these axes."""
    names = _free_axes(found)
    for k in range(len(KINDS)):
        for place in np.ndindex(*(len(found[name]) for name in names)):
            yield k, place, [str(found[name][i]) for name, i in zip(names, place, strict=True)]


def _free_axes(found: Outcome) -> tuple[str, ...]:
    """Return the names of the axes of the varied keys of a study, except network, depth and seed."""
    return found.arrays["stable_rate"].dims[1:-2]


def _best_rate(accuracy: Floats) -> int:
    """Return the index of the learning rate with the largest mean over seeds of ``accuracy`` (rate, seed)."""
    return int(accuracy.mean(axis=-1).argmax())


def summary(found: Outcome) -> str:
    """Return a table of the measures of each architecture, and the verdicts on the claims of the sources."""
    rows, depths, rates = [], found["layers"], found["rate"]
    for k, place, texts in _architectures(found):
        accuracy, exploded = found["accuracy"][k][place], found["explosion"][k][place] < 1
        deep, at = accuracy[-1], _best_rate(accuracy[-1])
        depth, rate = np.unravel_index(accuracy.mean(axis=-1).argmax(), accuracy.shape[:-1])
        ends = (
            f"{describe(values[:, 0, -1])} → {describe(values[:, 1, -1])}"
            for values in (found[name][k][place][-1, at] for name in PROFILES)
        )
        rows.append([
            KINDS[k], *texts, f"{describe(accuracy[depth, rate])} ({depths[depth]} layers, rate {rates[rate]:g})",
            f"{describe(deep[at])} (rate {rates[at]:g})", f"{100 * exploded.mean():.0f} %",
            f"{np.median(found['stable_rate'][k][place][-1]):g}", *ends,
        ])  # fmt: skip
    head = ["network", *_free_axes(found), "best accuracy", f"best at {depths[-1]} layers", "exploded"]
    head += [f"largest stable rate at {depths[-1]} layers", *(f"{name}, untrained → trained" for name in PROFILES)]
    return "\n".join([table(head, rows), *_verdicts(found)])


def _verdicts(found: Outcome) -> Iterator[str]:
    """Yield a line on each claim of the sources: its effect size with a 95 % interval over seeds, and its null.

    The null is the same difference between untrained networks. Both are at the largest depth.
    """
    names, depth = _free_axes(found), found["layers"][-1]
    residual, norm = (list(found[name]) if name in names else [] for name in ("residual", "layer_norm"))
    if {"true", "false"} <= set(residual):
        with_it, without = (_pick(found, "residual", residual.index(value)) for value in ("true", "false"))
        for name in ("distance", "departure", "separation"):
            yield from _compare(
                f"drift without residual: {name} without − with it, {depth} layers", name, without, with_it
            )
    if "none" in norm and len(norm) > 1:
        bare = _pick(found, "layer_norm", norm.index("none"))
        for k, value in enumerate(norm):
            if value != "none":
                normed = _pick(found, "layer_norm", k)
                title = f"explosion without layer norm: {{}}, none − {value}, {depth} layers"
                yield from _compare(title.format("size"), "size", bare, normed)
                rates = [
                    describe_difference(*(np.log10(stable) for stable in pair))
                    for pair in zip(bare["stable_rate"], normed["stable_rate"], strict=True)
                ]
                yield f"- {title.format('log10 of the largest stable rate')}: {_by_kind(rates)}"


def _pick(found: Outcome, axis: str, index: int) -> dict[str, list[Floats]]:
    """Return measures by name, a list over the kinds of network, at value number ``index`` of a varied key ``axis``.

    A list has an array (seed, state) for each kind; for the largest stable rate the array is (seed,). The networks have
    the largest number of layers and the learning rate of best accuracy. Measures by depth are taken after the last
    layer. All arrays are means over the other varied keys, geometric ones for the largest stable rate.
    """
    names = _free_axes(found)
    picked: dict[str, list[Floats]] = {name: [] for name in ("stable_rate", *PROFILES)}
    for k in range(len(KINDS)):
        places = [p for j, p, _ in _architectures(found) if j == k and p[names.index(axis)] == index]
        for name in PROFILES:
            best = [found[name][k][p][-1, _best_rate(found["accuracy"][k][p][-1])][..., -1] for p in places]
            picked[name].append(np.mean(best, axis=0))
        stable = [_stable_rate(found, found["stable_rate"][k][p][-1]) for p in places]
        picked["stable_rate"].append(np.exp(np.mean(np.log(stable), axis=0)))
    return picked


def _stable_rate(found: Outcome, largest: Floats) -> Floats:
    """Return the largest stable rates, for logarithms: a tenth of the smallest rate tried where no rate is stable."""
    return np.asarray(np.maximum(largest, found["rate"].min() / 10))


def _compare(title: str, name: str, some: dict[str, list[Floats]], others: dict[str, list[Floats]]) -> Iterator[str]:
    """Yield lines on the difference of a measure between two sets of networks, trained and untrained."""
    for k, state in reversed(list(enumerate(STATES))):
        pairs = zip(some[name], others[name], strict=True)
        yield f"- {title}, {state}: {_by_kind([describe_difference(a[:, k], b[:, k]) for a, b in pairs])}"


def _by_kind(texts: list[str]) -> str:
    """Return one text for each kind of network as a list in words."""
    return ", ".join(f"{NAMES[kind]} {text}" for kind, text in zip(KINDS, texts, strict=True))


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the profiles of an experiment on stabilizers, with a row of axes for each kind of network.

    The left axes have, by number of layers, the largest learning rate without an explosion and the accuracy at the best
    rate. The right ones have, by relative depth in the deepest networks, the distance between the states of two
    examples, and the distance of states from the first ones.
    """
    figure.set_size_inches(13.0, 6.8)
    axes = figure.subplots(len(KINDS), 4, squeeze=False)
    kinds = list(_architectures(found))
    colors = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, len(kinds) // len(KINDS)))
    depths, free = found["layers"], _free_axes(found)
    for number, (k, place, texts) in enumerate(kinds):
        style = {"color": colors[number % len(colors)]}
        label = ", ".join(f"{name} {text}" for name, text in zip(free, texts, strict=True))
        accuracy = found["accuracy"][k][place]
        best = np.array([one[_best_rate(one)] for one in accuracy])
        stable = _stable_rate(found, found["stable_rate"][k][place])
        axes[k, 0].plot(depths, np.exp(np.log(stable).mean(axis=-1)), "o-", label=label, ms=3, **style)
        curve(axes[k, 1], depths, best.T, **style)
        at = _best_rate(accuracy[-1])
        for ax, name in zip(axes[k, 2:], ("distance", "departure"), strict=True):
            for values, line in zip(np.moveaxis(found[name][k][place][-1, at], 1, 0), STYLES.values(), strict=True):
                curve(ax, found["place"], values, ls=line, **style)
    titles: tuple[tuple[str, Callable[[Axes], Any]], ...] = (
        ("largest stable rate", lambda ax: ax.set(yscale="log", xlabel="layers")),
        ("accuracy at the best rate", lambda ax: ax.set(ylim=(0, 1), xlabel="layers")),
        (PROFILES["distance"], lambda ax: ax.set(xlabel=f"depth by {depths[-1]} layers", ylim=(0, None))),
        (PROFILES["departure"], lambda ax: ax.set(xlabel=f"depth by {depths[-1]} layers", ylim=(0, None))),
    )
    for k, kind in enumerate(KINDS):
        for ax, (title, arrange) in zip(axes[k], titles, strict=True):
            arrange(ax)
            ax.set_title(title if k == 0 else "", fontsize=9)
        axes[k, 0].set_ylabel(NAMES[kind])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.04 + 0.03 * (len(labels) // 4), 1, 1))
