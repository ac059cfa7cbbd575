"""Open grid of stabilizers: residual × layer norm × depth × learning rate × any further keys, for both networks.

    accuracy    of the test examples, after the last complete epoch
    explosion   fraction of the steps before an explosion; 1 without an explosion
    gradient    log10 of the largest gradient norm of any part at any step
    distance    √(Σ_{a≠b} |x_a − x_b|² / (2 Σ_{a≠b} |x_a|²)) of examples a, b: 0 if all are equal, 1 if orthogonal
    departure   mean |x_l/|x_l| − x_0/|x_0|| of an example from its first states: √2 where orthogonal
    rank        effective rank of the centered states of all tokens
    separation  share of the variance of mean states that lies between classes; (classes − 1)/(examples − 1) by chance
    size        log10 of the root mean square of the states, relative to the first ones

The last five are functions of depth, of untrained networks (the null of the same architecture) and trained ones. x are
the states of all tokens of an example. Each network is a point; points are trained in separate processes, or by Dask.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from meanfield.case.errors import CaseError
from meanfield.domains.trained.diagnostics import effective_rank
from meanfield.running import Printer
from meanfield.transformer.experiments.subjects import KINDS, STATES, case_of, one_thread
from meanfield.transformer.experiments.verdicts import PROFILES, draw, summary
from meanfield.transformer.experiments.workers import HERE, Workers
from meanfield.transformer.labelled import Labelled, Outcome, coordinates
from meanfield.transformer.networks.data import task_of
from meanfield.transformer.networks.network import TokenNetwork, traced
from meanfield.transformer.networks.section import TrainingCase
from meanfield.transformer.networks.training import begin, train
from solvers.mesh.mesh import Floats, Integers

GRID = {  # values by key of the training file
    "network.residual": ("true", "false"),
    "network.layer_norm": ("pre", "none"),
    "network.layers": ("2", "6", "12"),
    "training.rate": ("0.001", "0.01", "0.1"),
}
LAST = ("network.layers", "training.rate")  # keys of the last axes before the seed
OWN = ("network.kind", "training.seed")  # keys of axes of any grid
EXAMPLES = 128
ROUNDING = 1e-6  # of float32, in sums over many numbers
PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)  # depths, relative to the number of layers
NUMBERS = {
    "accuracy": "fraction of correct answers on the test examples",
    "explosion": "fraction of the steps before an explosion, 1 without one",
    "gradient": "log10 of the largest gradient norm",
}


def stabilizers(
    case: TrainingCase, seeds: tuple[int, ...], show: Printer, workers: Workers = HERE, vary: Sequence[str] = ()
) -> Outcome:
    """Train networks with all combinations of values of a grid, and return their measures.

    ``vary``: texts such as "training.rate=0.001,0.01", which replace axes of the grid or add axes. Each measure is an
    array (network, ..., layers, rate, seed). A measure by depth has two more axes, state (untrained, trained) and place
    (relative depth). Raises CaseError for a text of another form, and for values that exclude each other.
    """
    grid = _grid(vary)
    points: list[tuple[Any, ...]] = list(itertools.product(KINDS, *grid.values(), seeds))
    cases = [
        case_of(case.replace([f"{key}={value}" for key, value in zip(grid, values, strict=True)]), kind, seed)
        for kind, *values, seed in points
    ]
    found = []
    for point, values in zip(points, workers.map(train_and_measure, cases), strict=True):
        found.append(values)
        show(f"{len(found)} of {len(cases)}: {', '.join(map(str, point))}: accuracy {values['accuracy']:.3f}")
    names = [_name(key) for key in grid]
    axes, shape = ("network", *names, "seed"), [len(KINDS), *map(len, grid.values()), len(seeds)]
    arrays = coordinates(
        network=KINDS, **{name: _typed(values) for name, values in zip(names, grid.values(), strict=True)}, seed=seeds
    )
    arrays |= coordinates(state=STATES, place=PLACES)
    for name, long_name in NUMBERS.items():
        arrays[name] = Labelled(axes, np.reshape([values[name] for values in found], shape), long_name)
    for name, long_name in PROFILES.items():
        by_depth = np.reshape([values[name] for values in found], (*shape, len(STATES), len(PLACES)))
        arrays[name] = Labelled((*axes, "state", "place"), by_depth, long_name)
    stable = largest_stable_rates(arrays["explosion"].values, arrays["rate"].values)
    arrays["stable_rate"] = Labelled((*axes[:-2], "seed"), stable, "largest learning rate without an explosion")
    return Outcome(arrays, summary, draw)


def largest_stable_rates(explosion: Floats, rates: Floats) -> Floats:
    """Return the largest rate up to which no training exploded, (..., seed); 0 if there is none.

    ``explosion`` (..., rate, seed) is 1 where training did not explode.
    """
    order = np.argsort(rates)
    stable = np.cumprod(np.take(explosion, order, axis=-2) >= 1, axis=-2)
    return np.asarray((stable * np.sort(rates)[:, None]).max(axis=-2))


@one_thread()
def train_and_measure(case: TrainingCase) -> dict[str, Any]:
    """Train one network, and return its measures by name: numbers, and arrays (state, place) before and after it."""
    fit = begin(case, task_of(case))
    inputs, labels = fit.task.test.inputs[:EXAMPLES], fit.task.test.labels[:EXAMPLES].cpu().numpy()
    untrained = profiles(fit.network, inputs, labels)
    train(fit)
    trained = profiles(fit.network, inputs, labels)
    steps = case.training.epochs * -(-len(fit.task.train) // case.training.batch)
    gradients = np.array(fit.history.gradient_norm)
    largest = np.nanmax(np.where(np.isfinite(gradients), gradients, np.nan), initial=1e-300)
    return {
        "accuracy": fit.history.test_accuracy[-1],
        "explosion": (len(fit.history.loss) - 1) / steps if fit.stopped else 1.0,  # the last step exploded
        "gradient": float(np.log10(largest)),
        **{name: [untrained[name], trained[name]] for name in PROFILES},
    }


def profiles(network: TokenNetwork, inputs: torch.Tensor, labels: Integers) -> dict[str, list[float]]:
    """Return the measures by depth of a network's states on inputs, at each of ``PLACES``, by name.

    Labels of tokens have no classes of examples: the separation is then NaN. All measures of states that are not finite
    are NaN.
    """
    _, trace = traced(network, inputs)
    states = [trace.states[round(place * (len(trace.states) - 1))].cpu().double().numpy() for place in PLACES]
    first = states[0]
    if not all(np.isfinite(x).all() for x in states):
        return {name: [np.nan] * len(PLACES) for name in PROFILES}
    return {
        "distance": [distance_of(x) for x in states],
        "departure": [float(np.linalg.norm(_directions(x) - _directions(first), axis=1).mean()) for x in states],
        "rank": [effective_rank(_centered(x.reshape(-1, x.shape[-1]))) for x in states],
        "separation": [separation_of(x.mean(axis=1), labels) if labels.ndim == 1 else np.nan for x in states],
        "size": [float(np.log10(np.sqrt((x**2).mean() / (first**2).mean()) + 1e-300)) for x in states],
    }


def distance_of(states: Floats) -> float:
    """Return the root mean square distance of two examples, relative to orthogonal ones, of states (examples, n, d)."""
    rows = states.reshape(len(states), -1)
    squares, m = (rows**2).sum(), len(rows)
    return (
        float(np.sqrt(max(1 - ((rows.sum(axis=0) ** 2).sum() - squares) / ((m - 1) * squares), 0))) if squares else 0.0
    )


def separation_of(points: Floats, labels: Integers) -> float:
    """Return the part of the variance of points (examples, d) that lies between the means of their classes."""
    rows = _centered(points)
    means = np.stack([rows[labels == label].mean(axis=0) for label in labels])
    total = (rows**2).sum()
    return float((means**2).sum() / total) if total else 0.0


def _centered(rows: Floats) -> Floats:
    """Return rows minus their mean; 0 if all rows are equal up to rounding.

    Without the zeros the effective rank would be that of rounding errors.
    """
    centered = np.asarray(rows - rows.mean(axis=0))
    return centered if np.linalg.norm(centered) > ROUNDING * np.linalg.norm(rows) else np.zeros_like(rows)


def _directions(states: Floats) -> Floats:
    """Return the states of each example (examples, n, d) as one unit vector (examples, n·d)."""
    rows = states.reshape(len(states), -1)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def _grid(vary: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each key of the grid; depth, in increasing order, and learning rate are the last keys."""
    grid = dict(GRID)
    for text in vary:
        key, _, values = text.partition("=")
        if not all(values.split(",")) or key.count(".") != 1 or key in OWN:
            raise CaseError(f'vary = {text}: expected KEY=VALUE,VALUE such as "training.rate=0.001,0.01"')
        grid[key] = tuple(values.split(","))
    depths = grid["network.layers"]
    grid["network.layers"] = tuple(text for _, text in sorted(zip(_typed(depths), depths, strict=True)))
    return {key: grid[key] for key in [*(key for key in grid if key not in LAST), *LAST]}


def _name(key: str) -> str:
    """Return the name of the axis of a varied key: its last part, with the section if the name is taken."""
    section, name = key.split(".")
    return f"{section}_{name}" if name in ("seed", "state", *NUMBERS, *PROFILES) else name


def _typed(values: Sequence[str]) -> list[float] | list[int] | Sequence[str]:
    """Return texts as whole numbers or floats if all are, else unchanged."""
    for kind in (int, float):
        try:
            return [kind(value) for value in values]
        except ValueError:
            continue
    return values
