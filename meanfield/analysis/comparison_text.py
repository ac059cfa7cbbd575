"""Text of a comparison of runs as a table."""

from __future__ import annotations

import numpy as np

from meanfield.analysis.comparison import Comparison, units
from meanfield.analysis.text import format_time
from meanfield.domains.table import kind_of
from meanfield.runtime.messages import command_of
from meanfield.runtime.segments import case_table
from solvers.io.run_file import Run
from solvers.mesh.mesh import Floats

SIDES = "AB"


def format_text(comparison: Comparison) -> str:
    """Return a comparison as text: the compared runs, a line of distances for each time, and the notes."""
    runs = comparison.runs
    lines = [f"{SIDES[i]}  {describe_run(run)}" for i, run in enumerate(runs)] if len(runs) > 1 else []
    lines = lines or [describe_run(runs[0]), "each snapshot: distances from the one before, and to the last"]
    lines += [describe_quantities(comparison), "", *_rows(comparison), ""]
    return "\n".join([*lines, *comparison.notes]).rstrip("\n")


def describe_next_command(comparison: Comparison) -> str:
    """Return a line with the command that draws the comparison."""
    return f"draw it: {command_of('compare', *(run.path for run in comparison.runs), '-o', 'comparison.png')}"


def describe_run(run: Run) -> str:
    """Return a line such as "a.h5: sphere, density in 5520 cells (64 rings), β = 9, 101 snapshots to t = 50"."""
    domain, attention = (case_table(run.attributes).get(key, {}) for key in ("domain", "attention"))
    kind = kind_of(run.manifold)
    if kind.has_tokens:
        tokens = len(run.weights)
        size = f"{tokens} particle{'' if tokens == 1 else 's'}, d = {run.positions(0).shape[1]}"
    else:
        rings = f" ({len(run.ring_cells)} rings)" if kind.shows_rings and not kind.has_radius else ""
        dimension = f", d = {domain['dimension']}" if "dimension" in kind.__struct_fields__ else ""
        size = f"{run.manifold.replace('_', ' ')}{dimension}, density in {run.cells} cells{rings}"
    beta = f", β = {attention['beta']:g}" if "beta" in attention else ""
    span = f"{run.snapshots} snapshot{'' if run.snapshots == 1 else 's'} to t = {format_time(run.times[-1])}"
    return f"{run.path}: {size}{beta}, {span}"


def describe_quantities(comparison: Comparison) -> str:
    """Return a line that names the quantities in the table of distances, and their units."""
    space = comparison.space
    along = (
        "|x − y|" if space.startswith("R") else f"{units(space)} along the {'circle' if space == 'S1' else 'sphere'}"
    )
    mean = "mean cos θ" if space.startswith("polar") else "∫x dμ"
    return f"W₁, W₂: Wasserstein distances, {along}; L¹: ∫|ρ_A − ρ_B|, 0 to 2, of densities; centroid: {mean}"


def _rows(comparison: Comparison) -> list[str]:
    """Return the lines of the table of a comparison: headings, then the distances at each time."""
    of_one = len(comparison.runs) == 1
    labels = _LABELS_OF_ONE if of_one else _LABELS
    table = [["t", *labels.values()]]
    columns = [comparison.columns[name] for name in labels]
    for row, time in enumerate(comparison.times):
        table.append([format_time(time), *(_cell(column, row) for column in columns)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in table]


def _cell(column: Floats, row: int) -> str:
    """Return the number in a row of a comparison's table as text with four figures, a dash for NaN."""
    return "-" if np.isnan(column[row]) else f"{column[row]:.4g}"


_LABELS = {
    "l1": "L¹",
    "w1": "W₁",
    "w2": "W₂",
    "centroid": "centroid",
    "clusters_a": "clusters A",
    "clusters_b": "clusters B",
}
_LABELS_OF_ONE = {
    "step_l1": "L¹ before",
    "step_w1": "W₁ before",
    "step_w2": "W₂ before",
    "last_l1": "L¹ last",
    "last_w1": "W₁ last",
    "last_w2": "W₂ last",
    "clusters": "clusters",
}
