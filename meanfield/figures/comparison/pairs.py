"""Panel of tokens in many dimensions: distribution of ⟨x, y⟩ over pairs of different tokens, for each run.

The panel follows a talk by Rigollet: the distribution moves to 1 as tokens cluster, with a peak for each pair of
clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.comparison import Comparison
from meanfield.analysis.comparison_text import SIDES
from meanfield.analysis.measure import measure_of
from meanfield.analysis.text import format_time
from meanfield.figures.axes import label_linear, row_of_axes
from meanfield.figures.particles.tokens import MAX_SAMPLED
from meanfield.figures.run_data import BLACK, BLUE
from solvers.io.run_file import Run
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

BINS = 80
EDGES = np.linspace(-1.0, 1.0, BINS + 1)
_COLORS = (BLACK, BLUE)


def draw_pairs_beside(figure: SubFigure, comparison: Comparison, rows: list[int]) -> None:
    """Draw the distribution of ⟨x, y⟩ over pairs of tokens of two runs, a panel for each of the times ``rows``.

    Run A is filled and run B is a line; triangles mark the means.
    """
    axes = row_of_axes(figure, len(rows))
    for ax, row in zip(axes, rows[-len(axes) :], strict=True):
        for run, k, side, color in zip(comparison.runs, comparison.pairs[row], SIDES, _COLORS, strict=False):
            density, mean = products_of(run, k)
            ax.stairs(density, EDGES, color=color, fill=side == "A", alpha=0.25 if side == "A" else 1.0, label=side)
            ax.plot(mean, 0.0, "^", color=color, markersize=7, clip_on=False)
        ax.set(title=f"t = {format_time(comparison.times[row])}", xlim=(-1, 1), xlabel="⟨x, y⟩ of two tokens")
        label_linear(ax.yaxis, "density  (▲ mean)" if ax is axes[0] else "", ax.get_ylim()[1])
        ax.set_ylim(bottom=0)
    axes[0].legend(frameon=False)


def draw_means(ax: Axes, comparison: Comparison) -> None:
    """Draw the mean of ⟨x, y⟩ over pairs of tokens over time, a line for each run."""
    for side, run in enumerate(comparison.runs):
        means = [mean_product(run, pair[side]) for pair in comparison.pairs]
        ax.plot(comparison.times, means, color=_COLORS[side], label=SIDES[side], lw=1.4, ls=("-", "--")[side])
    ax.set(title="mean ⟨x, y⟩ of two tokens", ylim=(min(0.0, ax.get_ylim()[0]), 1.0))
    ax.legend(frameon=False)


def mean_product(run: Run, k: int) -> float:
    """Return the mean of ⟨x_i, x_j⟩ over pairs i ≠ j of directions of tokens in snapshot k, weighted by mass.

    It equals (|Σ m x|² − Σ m²)/(1 − Σ m²) for masses m of sum 1.
    """
    measure = measure_of(run, k)
    directions = unit_vectors(measure.points)
    masses = measure.masses / measure.masses.sum()
    return float((((masses @ directions) ** 2).sum() - (masses**2).sum()) / (1.0 - (masses**2).sum()))


def products_of(run: Run, k: int) -> tuple[Floats, float]:
    """Return the density (BINS,) and the mean of ⟨x_i, x_j⟩ over pairs i ≠ j of tokens in snapshot k, weighted by mass.

    At most MAX_SAMPLED tokens are used.
    """
    measure = measure_of(run, k)
    points = unit_vectors(measure.points)
    chosen = np.unique(np.linspace(0, len(points) - 1, MAX_SAMPLED).astype(int))
    points, masses = points[chosen], measure.masses[chosen]
    first, second = np.triu_indices(len(points), 1)
    products = np.clip((points @ points.T)[first, second], -1.0, 1.0)
    weights = masses[first] * masses[second]
    density, _ = np.histogram(products, EDGES, weights=weights / weights.sum())
    return density / np.diff(EDGES), float(np.average(products, weights=weights))
