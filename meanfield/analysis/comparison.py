"""Distances over time between two runs, of densities or particles, or from one run to its own last state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from meanfield.analysis.differences import describe_differences
from meanfield.analysis.drawn import Drawn
from meanfield.analysis.measure import PointMeasure, measure_of, spaces_of
from meanfield.analysis.wasserstein import common_patches, distance_l1, wasserstein
from meanfield.domains.domain import load
from meanfield.domains.table import kind_of
from meanfield.runtime.segments import case_table, model_changes
from solvers.io.run_file import FileError, Run, read
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from xarray import Dataset

TIME_RTOL = 1e-9  # relative difference below which two times are equal
DISTANCES = ("l1", "w1", "w1_error", "w2", "w2_error", "centroid")
Pairs = list[tuple[int, int]]
Report = Callable[[int, int], object]  # called with the numbers of compared and of all pairs of snapshots


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Drawn):
    """Distances between runs over time, as returned by :func:`~meanfield.compare`.

    ``repr`` has the distances at the last time; a notebook shows the figure.

    Attributes
    ----------
    runs : tuple
        Files of the two runs A and B, or of the only run.
    space : str
        Space in which tokens are compared: "S1", "S2", … for directions, "R1", "R2", … for positions, or "polar3", …
        for angles from an axis in d = 3, ….
    pairs : list of (int, int)
        Snapshots of A and of B that each row compares. For one run: each snapshot, and the last.
    times : (rows,) array
        Times of the snapshots of A.
    columns : mapping of str to (rows,) array
        Values by name, NaN where undefined. For two runs: l1 is ``∫|ρ_A − ρ_B|``, w1 and w2 are Wasserstein distances
        in radians or lengths with bounds of their errors w1_error and w2_error, centroid is the distance of the mean
        tokens, clusters_a and clusters_b are numbers of clusters. For one run: step_l1, … from the snapshot before,
        last_l1, … to the last snapshot, and clusters.
    notes : tuple of str
        Remarks for the reader, a line each.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("growth_circle", {"domain.resolution": 32, "time.end": 0.1, "output.samples": 2})
    >>> found = mf.compare(mf.simulate(case, progress=False))
    >>> found.space, float(found.columns["last_l1"][-1])
    ('S1', 0.0)
    """

    runs: tuple[Run, ...]
    space: str
    pairs: Pairs
    times: Floats
    columns: Mapping[str, Floats]
    notes: tuple[str, ...]

    drawing: ClassVar = "meanfield.figures.comparison.figure:draw_comparison"

    @property
    def drawing_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Return the width and height of the figure in inches."""
        size: tuple[float, float] = load("meanfield.figures.comparison.figure:size_of")(self)
        return size

    def to_xarray(self) -> Dataset:
        """Return the distances as a Dataset.

        Returns
        -------
        xarray.Dataset
            The ``columns`` over ``time``.
        """
        from xarray import Dataset

        columns = {name: ("time", values) for name, values in self.columns.items()}
        return Dataset(columns, {"time": self.times}, {"space": self.space, "units": units(self.space)})

    def __repr__(self) -> str:
        """Return a line with the files of the runs, the space, and each distance at the last time."""
        ends = [f"{name} {values[-1]:.4g}" for name, values in self.columns.items() if len(values)]
        last = f"; at the last: {', '.join(ends)}" if ends else ""
        names = " and ".join(str(run.path) for run in self.runs)
        return f"<Comparison of {names} in {self.space} at {len(self.times)} times{last}>"


def compare(
    path_a: str | Path | Run, path_b: str | Path | Run | None = None, report: Report | None = None
) -> Comparison:
    """Compare two runs at their common times, or each snapshot of one run with the previous and with the last one.

    If runs A and B have at most one common time, each snapshot of A within the times of B is compared with the nearest
    earlier one of B, and the ``notes`` of the result say so. A circle compares with particles in d = 2, a sphere with
    particles in d = 3, by direction; otherwise runs must be on the same manifold.

    ``report`` is called after each pair of snapshots: in several dimensions a pair takes a tenth of a second or more.

    Raises solvers.io.run_file.FileError for files that cannot be read or compared.
    """
    a = _read(path_a)
    if path_b is None:
        return _distances_within_run(a, report)
    b = _read(path_b)
    space = _common_space(a, b)
    pairs, notes = _common_times(a, b)
    columns = _distance_arrays(_rows(a, b, pairs, space, report))
    times = a.times[[k for k, _ in pairs]]
    for name, run, side in (("clusters_a", a, 0), ("clusters_b", b, 1)):
        columns[name] = np.array([clusters_at(run, run.times[pair[side]]) for pair in pairs])
    differences = describe_differences(a, b)
    changes = [f"{run.path} is resumed with {text}" for run in (a, b) for text in model_changes(run)]
    notes = [*([] if differences is None else [differences]), *changes, *notes]
    return Comparison((a, b), space, pairs, times, columns, (*notes, *_notes(columns, space)))


def as_dict(comparison: Comparison) -> dict[str, object]:
    """Return a comparison of runs as plain values for JSON; undefined distances are None."""
    columns = {name: [None if np.isnan(v) else float(v) for v in c] for name, c in comparison.columns.items()}
    return {
        "paths": [str(run.path) for run in comparison.runs],
        "space": comparison.space,
        "units": units(comparison.space),
        "times": comparison.times.tolist(),
        "notes": list(comparison.notes),
        **columns,
    }


def units(space: str) -> str:
    """Return the unit of the Wasserstein distances in a space: "length" in R^d, else "radians"."""
    return "length" if space.startswith("R") else "radians"


def clusters_at(run: Run, time: float) -> float:
    """Return the recorded number of clusters at the last sample up to a time, or NaN if none was recorded."""
    last = int(np.searchsorted(run.sample_times, time * (1 + TIME_RTOL), side="right")) - 1
    return float(run.diagnostics["clusters"][last]) if "clusters" in run.diagnostics and last >= 0 else np.nan


def _distances_within_run(run: Run, report: Report | None) -> Comparison:
    """Return the distances from each snapshot of a run to the snapshot before it and to the last snapshot."""
    space, last = spaces_of(run)[0], run.snapshots - 1
    pairs = [(k, last) for k in range(last + 1)]
    rows = _rows(run, run, [*((k - 1, k) for k in range(1, last + 1)), *pairs], space, report)
    steps, ends = [dict.fromkeys(DISTANCES, np.nan), *rows[:last]], rows[last:]
    columns = {
        f"{kind}_{name}": c
        for kind, rows in (("step", steps), ("last", ends))
        for name, c in _distance_arrays(rows).items()
    }
    columns["clusters"] = np.array([clusters_at(run, time) for time in run.times])
    return Comparison((run,), space, pairs, run.times, columns, _notes(columns, space))


def _read(path: str | Path | Run) -> Run:
    """Return the run of a file. Raises FileError if it has no snapshot."""
    run = read(path)
    if run.snapshots == 0:
        raise FileError(f"{run.path}: holds no snapshot yet, so there is nothing to compare")
    return run


def _common_space(a: Run, b: Run) -> str:
    """Return the space in which the tokens of two runs can be compared. Raises FileError if there is none."""
    of_b = spaces_of(b)
    common = [space for space in spaces_of(a) if space in of_b]
    if not common or (a.manifold != b.manifold and not any(kind_of(run.manifold).has_tokens for run in (a, b))):
        raise FileError(
            f"{a.path} is {_kind(a)}, {b.path} is {_kind(b)}: expected the same, "
            "or particles with d = 2 beside a circle, with d = 3 beside a sphere"
        )
    return common[0]


def _kind(run: Run) -> str:
    """Return words on the domain of a run, such as "particles with d = 3", for messages."""
    if kind_of(run.manifold).has_tokens:
        return f"particles with d = {run.positions(0).shape[1]}"
    domain = case_table(run.attributes).get("domain", {})
    dimension = f" with d = {domain.get('dimension')}" if "dimension" in kind_of(run.manifold).__struct_fields__ else ""
    return run.manifold.replace("_", " ") + dimension


def _common_times(a: Run, b: Run) -> tuple[Pairs, list[str]]:
    """Return the pairs of snapshots of two runs to compare, and notes on snapshots without a counterpart."""
    first, last = b.times[0] - TIME_RTOL * abs(b.times[0]), b.times[-1] + TIME_RTOL * abs(b.times[-1])
    inside = np.flatnonzero((a.times >= first) & (a.times <= last))
    if len(inside) == 0:
        spans = [f"{run.path} has t = {run.times[0]:g} to {run.times[-1]:g}" for run in (a, b)]
        raise FileError(f"{spans[0]}, {spans[1]}: expected a snapshot of the first within the times of the second")
    times = a.times[inside]
    earlier = np.searchsorted(b.times, times + TIME_RTOL * np.abs(times), side="right") - 1
    gaps = times - b.times[earlier]
    same = np.abs(gaps) <= TIME_RTOL * np.abs(times)
    if same.all() or same.sum() > 1:
        inside, earlier = inside[same], earlier[same]
        note = f"A has {a.snapshots} snapshots, B {b.snapshots}: compared at the {len(inside)} times that both have"
        notes = [note] if len(inside) < max(a.snapshots, b.snapshots) else []
    else:
        notes = [f"B has no snapshots at A's times: its nearest earlier ones are taken, up to {gaps.max():.3g} before"]
    return list(zip(inside.tolist(), earlier.tolist(), strict=True)), notes


def _rows(a: Run, b: Run, pairs: Pairs, space: str, report: Report | None) -> list[dict[str, float]]:
    """Return the distances between the snapshots of each pair; a pair that occurs twice is computed once."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for done, (k, j) in enumerate(pairs, 1):
        if (k, j) not in found:
            found[k, j] = _distances(a, k, b, j, space)
        if report is not None:
            report(done, len(pairs))
    return [found[pair] for pair in pairs]


def _distances(a: Run, k: int, b: Run, j: int, space: str) -> dict[str, float]:
    """Return the distances between snapshot k of run a and snapshot j of run b, by the names of DISTANCES.

    The distances are L¹, the Wasserstein distances W₁ and W₂ with bounds of their errors, and the distance of the mean
    tokens.
    """
    l1 = distance_l1(a, k, b, j)
    measures: tuple[PointMeasure, PointMeasure] = measure_of(a, k, space), measure_of(b, j, space)
    if not all(measure.masses.sum() > 0 for measure in measures):
        raise FileError(f"{a.path}, t = {a.times[k]:g}: a distribution without mass")
    centroid = float(np.linalg.norm(measures[0].centroid - measures[1].centroid))
    gathered = common_patches(*measures)
    w1, w2 = (wasserstein(*gathered, order) for order in (1, 2))
    values = (np.nan if l1 is None else l1, w1.value, w1.error, w2.value, w2.error, centroid)
    return dict(zip(DISTANCES, values, strict=True))


def _distance_arrays(rows: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """Return the distances of all rows of a comparison as one array (rows,) for each name of DISTANCES."""
    return {name: np.array([row[name] for row in rows]) for name in DISTANCES}


def _notes(columns: Mapping[str, Floats], space: str) -> tuple[str, ...]:
    """Return a note on the largest error of the Wasserstein distances; no note if they are exact."""
    errors = [np.nanmax(c) for name, c in columns.items() if name.endswith("_error") and not np.isnan(c).all()]
    worst = max(errors, default=0.0)
    what = "W₁ and W₂ move patches of tokens, without what happens within them"
    return (f"{what}: off by at most {worst:.2g} {units(space)}, the patches' radii",) if worst > 0 else ()
