"""Figures as text, as JSON, and as the table of docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# The page shows velocity and flux on the largest mesh only, and all other figures.
_COSTS = ("velocity,", "flux,", "velocity and flux,", "dense sum,")
_SHOWN_COSTS = ("1412504 cells, β = 50", "growth")
_HIDDEN = (": per cell",)
# Columns of the table over commits: ratios to a reference or a limit of the same run, and whole commands.
HISTORY_COLUMNS = {
    "flux / copy": "flux, 1412504 cells, β = 50: processor time of a core relative to NumPy's copy of ρ, X and rate",
    "velocity / ducc0": "velocity, 1412504 cells, β = 50: processor time relative to ducc0's transforms",
    "2 cores over 1": "SSPRK3 step, 944010 cells: speed by 2 cores relative to one, in wall time",
    "tokens / ducc0": "attention among 1000000 tokens on the sphere, uniform, β = 10: "
    "processor time relative to ducc0's transforms",
    "writing": "writing and diagnostics, main example of the README: share of the run's time",
    "main job": "main example of the README, 8630 cells to t = 150: whole command",
    "first compile": "start-up: first run, which compiles the kernels",
    "warm start": "start-up: the same run with compiled kernels",
}


def line(figure: Figure) -> str:
    """Return a measured figure as one line of text: name, value with unit, and target or note."""
    return f"{figure.name:<78} {_number(figure):>28}  {figure.target or figure.note}".rstrip()


def markdown(results: dict[str, Any]) -> str:
    """Return the Markdown table of the measured figures in ``results``, the content of :func:`to_json`."""
    rows = [
        f"| {_escaped(figure.name)} | {_number(figure)} | {figure.target or figure.note} |"
        for figure in _shown(_figures(results))
    ]
    return "\n".join(
        [
            heading(results),
            "",
            "| quantity | measured | target |",
            "|---|---|---|",
            *rows,
        ]
    )


def heading(results: dict[str, Any]) -> str:
    """Return the line above a table: date, machine and versions of ``results``."""
    machine, versions = results["machine"], results["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"On {results['date']}, {machine['cores']} cores of {machine['processor']}, {named}:"


def to_json(figures: Iterable[Figure], date: str, machine: dict[str, Any], versions: dict[str, str]) -> str:
    """Return measured figures as JSON text, with date, machine and software versions."""
    content = {
        "date": date,
        "machine": machine,
        "versions": versions,
        "figures": [asdict(figure) for figure in figures],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def update_page(path: Path, rows: str) -> None:
    """Replace the table between the markers BEGIN and END of the page ``path`` by ``rows``, Markdown.

    Raises ValueError unless each marker occurs once.
    """
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{path}: expected the marks {BEGIN} and {END}, each once")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{rows}\n{END}{after}", encoding="utf-8")


def row_of_commit(results: dict[str, Any], commit: str) -> str:
    """Return one row of the Markdown table of figures over commits; a dash marks a missing figure."""
    found = {figure.name: figure for figure in _figures(results)}
    cells = [_number(replace(found[name], low=None)) if name in found else "–" for name in HISTORY_COLUMNS.values()]
    return f"| {results['date']} | {commit} | {results['machine']['processor']} | {' | '.join(cells)} |\n"


def add_to_history(path: Path, results: dict[str, Any], commit: str) -> None:
    """Add a commit's row to the table over commits; a missing file is created."""
    if not path.exists():
        names = ["date", "commit", "processor", *HISTORY_COLUMNS]
        path.write_text(f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(row_of_commit(results, commit))


def _figures(results: dict[str, Any]) -> list[Figure]:
    return [Figure(**figure) for figure in results["figures"]]


def _shown(figures: Iterable[Figure]) -> Iterable[Figure]:
    for figure in figures:
        is_cost = figure.name.startswith(_COSTS)
        if is_cost and not any(part in figure.name for part in _SHOWN_COSTS):
            continue
        if not any(part in figure.name for part in _HIDDEN):
            yield figure


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")  # the bars of |X| would separate cells


def _number(figure: Figure) -> str:
    if figure.value is None:
        return "skipped"
    value = _digits(figure.value)
    if figure.low is not None and figure.high is not None:
        value += f" ({_digits(figure.low)} to {_digits(figure.high)})"
    return value if figure.unit == "1" else f"{value} {figure.unit}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
