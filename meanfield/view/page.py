"""A run as one page to look at in a browser: no network, no server, all data within."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.figures.captions import SEPARATOR, facts
from meanfield.figures.figure import load
from meanfield.runtime.messages import print_message
from meanfield.runtime.paths import require_target

if TYPE_CHECKING:
    from meanfield.figures.run_data import RunData
    from solvers.io.run_file import Run

SUFFIXES = (".html", ".htm")
SCRIPTS = (
    "data",
    "axis",
    "panel",
    "pixels",
    "globe",
    "map",
    "profile",
    "history",
    "colorbar",
    "player",
    "main",
)  # in this order: main starts when all others are there
KEYS = (
    "Space plays and pauses, ← and → step, Home and End jump. Press or drag in a panel to go to its time. "
    "All quantities are dimensionless; time is depth."
)


def view(path: str | Path | Run, target: str | Path, *, overwrite: bool = False) -> Path:
    """Write the run file ``path`` as a page to ``target`` (.html) and return ``target``.

    The run may still be going: what it has written by now is shown. Long runs and fine meshes are thinned, with a line
    on stderr. Raises FileError where the run file cannot be read or holds no snapshot, where the suffix
    is unknown, and where ``target`` exists and is not to be overwritten or cannot be written. ``target`` appears
    whole or not at all.
    """
    from solvers.io.reading import path_of
    from solvers.io.replacing import replacement
    from solvers.io.run_file import read
    from solvers.io.writing import disk_errors

    target = Path(target)
    require_target(target, path_of(path), overwrite, "page", SUFFIXES)
    page = compose(read(path))
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite) as new:
        new.write_text(page, encoding="utf-8", errors="backslashreplace")  # a name may be no text
    return target


def compose(run: Run, quiet: bool = False) -> str:
    """The page of a run; what it leaves out is said on stderr, unless quiet."""
    from meanfield.view.data import describe, thinned
    from meanfield.view.panels import radii
    from meanfield.view.stages import CLUSTERS, PEAKS, clusters_marked, stage_of

    path, run_data = run.path, load(run)
    shown, notes = thinned(_on_mesh(path, run_data))
    if run_data.particles is not None:
        notes.insert(
            0, f"{len(run_data.particles.weights)} tokens are shown as a density, each in the cell that it lies in"
        )
    for note in () if quiet else notes:
        print_message(f"meanfield: {path}: {note}")
    description, densities = describe(shown)
    stage_help = stage_of(shown).help
    if run_data.particles is not None and {"cluster_center", "cluster_mass"} <= run_data.diagnostics.keys():
        description["marks"] = [clusters_marked(run_data, t) for t in shown.times]
        stage_help = (*(text for text in stage_help if text != PEAKS), CLUSTERS)
    if run_data.has_radius or (run_data.particles is not None and run_data.particles.has_radius):
        description["panels"].insert(0, radii(run_data))
    parts = {
        "TITLE": html.escape(shown.title),
        # Values stay with their names where a narrow page breaks the line.
        "FACTS": html.escape(SEPARATOR.join(facts(run_data)).replace(" = ", "\u00a0=\u00a0")),
        "FILE": html.escape(path.name),
        "CASE": html.escape(run.attributes["case"]),
        "HELP": html.escape(" ".join([*stage_help, KEYS, *(f"{note}." for note in notes)])),
        "LAST": str(len(shown.times) - 1),
        "STYLE": source("style.css"),
        "SCRIPT": "\n".join(source(f"{name}.js") for name in SCRIPTS),
        # A title may hold "</script>": "<" is written so that HTML does not see it.
        "RUN": json.dumps(description, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "LEVELS": densities,
    }
    # In one pass, so that what is put in is not searched again.
    return re.sub("@([A-Z]+)@", lambda place: parts[place[1]], source("page.html"))


def _on_mesh(path: Path, run_data: RunData) -> RunData:
    """The run data as a density without radius. Raises FileError for tokens on no circle or sphere."""
    from meanfield.figures.free_radius import directions_of
    from meanfield.figures.particles.tokens import as_density
    from solvers.io.run_file import FileError

    if run_data.particles is None:
        return directions_of(run_data) if run_data.has_radius else run_data
    if run_data.dimension not in (2, 3):
        raise FileError(
            f"{path}: tokens in {run_data.dimension} dimensions; a page shows 2 or 3, `meanfield plot` and `movie` any"
        )
    return as_density(run_data)


def source(name: str) -> str:
    """Text of a file of the page."""
    return (files("meanfield.view") / "web" / name).read_text(encoding="utf-8")
