"""Page of a run for a browser: a single file with all data, without network or server."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.figures.captions import SEPARATOR, facts
from meanfield.figures.figure import load
from meanfield.runtime.messages import print_message
from meanfield.runtime.paths import require_target
from solvers.io.reading import path_of
from solvers.io.repair import FileError
from solvers.io.replacing import replacement
from solvers.io.run_file import Run, read
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    from meanfield.figures.run_data import RunData

    # Description and levels for the script, instructions for the picture, and notes on omitted data.
    Shown = tuple[dict[str, Any], str, list[str], list[str]]
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
    "tokens",
    "projection",
    "tree",
    "pictures",
    "player",
    "main",
)  # order of execution: main requires all others
KEYS = "Space plays and pauses, ← and → step, Home and End jump. Click or drag in a panel to go to that time."
DEPTH = "All quantities are dimensionless; time is depth."

DOTS = "A dot is a token, or several at one position; its area is proportional to their mass."
TREE = "Click a merger in the tree to go to its time."


def view(path: str | Path | Run, target: str | Path, *, overwrite: bool = False) -> Path:
    """Write the run file ``path`` as a page to ``target`` (.html) and return ``target``.

    A run in progress is shown up to the last snapshot written. Long runs and fine meshes are thinned, with a line on
    stderr. Raises FileError if the run file cannot be read or has no snapshot, if the suffix is unknown, and if
    ``target`` exists and ``overwrite`` is false or cannot be written. ``target`` is written atomically.
    """
    target = Path(target)
    require_target(target, path_of(path), overwrite, "page", SUFFIXES)
    page = compose(read(path))
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite) as new:
        new.write_text(page, encoding="utf-8", errors="backslashreplace")  # file names may be invalid text
    return target


def compose(run: Run, quiet: bool = False) -> str:
    """Return the page of a run as HTML.

    Notes on omitted data are printed to stderr unless ``quiet``.
    """
    from meanfield.view.panels import radii
    from meanfield.view.tokens import are_points
    from meanfield.view.tree import tree_of

    if run.is_solution:
        return _page_of_solution(run, quiet)
    run_data = load(run)
    show = _cells if run_data.particles is None or not are_points(run_data) else _points
    description, levels, usage, notes = show(run_data)
    if run_data.has_radius or (run_data.particles is not None and run_data.particles.has_radius):
        description["panels"].insert(0, radii(run_data))
    if (tree := tree_of(run)) is not None:
        description["tree"], usage = tree, [*usage, TREE]
    _print_notes(run, () if quiet else notes)
    texts = {
        "TITLE": run_data.title,
        # Values stay on one line with their names on a narrow page.
        "FACTS": SEPARATOR.join(facts(run_data)).replace(" = ", "\u00a0=\u00a0"),
        "CASE": run.attributes["case"],
        "HELP": " ".join([*usage, KEYS, DEPTH, *(f"{note}." for note in notes)]),
    }
    return _assemble_page(run, texts, description, levels)


def _page_of_solution(run: Run, quiet: bool) -> str:
    """Return the page of a recorded solution of a PDE as HTML."""
    from meanfield.view.solution import describe_solution

    if run.snapshots == 0:
        raise FileError(f"{run.path}: holds no snapshot yet")
    description, notes = describe_solution(run)
    _print_notes(run, () if quiet else notes)
    texts = {
        "TITLE": run.path.stem,
        "FACTS": f"{', '.join(run.fields)} ({run.manifold}, {run.cells} cells)",
        "CASE": str(run.attributes.get("case", "")),
        "HELP": " ".join([KEYS, *(f"{note}." for note in notes)]),
    }
    return _assemble_page(run, texts, description, "")


def _print_notes(run: Run, notes: Iterable[str]) -> None:
    """Print notes on a run, a line each."""
    for note in notes:
        print_message(f"meanfield: {run.path}: {note}")


def _assemble_page(run: Run, texts: dict[str, str], description: dict[str, Any], levels: str) -> str:
    """Return the page of a run as HTML, with its texts, its data, and its densities encoded in ``levels``."""
    last = str(len(description["times"]) - 1)
    return fill_template("page.html", run.path, SCRIPTS, texts, description, LAST=last, LEVELS=levels)


def _cells(run_data: RunData) -> Shown:
    """Return a density for the HTML page: data, encoded levels, instructions, and notes on omitted data.

    The density is that of the run, its marginal on directions if the radius is free, or the binned density of many
    tokens.
    """
    from meanfield.figures.free_radius import directions_of
    from meanfield.figures.particles.tokens import as_density
    from meanfield.view.data import describe, thin_data
    from meanfield.view.stages import stage_of

    if run_data.particles is None:
        shown, notes = thin_data(directions_of(run_data) if run_data.has_radius else run_data)
        return *describe(shown), list(stage_of(shown).help), notes
    shown, notes = thin_data(as_density(run_data))
    count = len(run_data.particles.weights)
    notes.insert(0, f"{count} tokens are shown as a density, binned into cells")
    return *describe(shown), list(stage_of(shown).help), notes


def _points(run_data: RunData) -> Shown:
    """Return individual tokens for the HTML page: data, encoded directions, instructions, and notes on omitted data."""
    from meanfield.view.stages import CLUSTERS, TURNING
    from meanfield.view.tokens import describe_tokens, thin_tokens

    shown, notes = thin_tokens(run_data)
    usage = [*(TURNING if run_data.dimension == 3 else ()), DOTS]
    if run_data.clusters is not None:
        usage.append(CLUSTERS)
    return *describe_tokens(shown), usage, notes


def fill_template(
    body: str, path: Path, scripts: Iterable[str], texts: Mapping[str, str], data: Mapping[str, Any], **parts: str
) -> str:
    """Return the HTML page of the file ``path``: the common head and the file ``body``, with each @NAME@ replaced.

    A name stands for one of the texts, for one of the parts, which are HTML, or for the scripts or their data.
    """
    parts |= {name: html.escape(text) for name, text in texts.items()} | {
        "FILE": html.escape(path.name),
        "STYLE": source("style.css"),
        "SCRIPT": "\n".join(source(f"{name}.js") for name in scripts),
        # A title may contain "</script>", so "<" is escaped.
        "RUN": json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
    }
    # A single pass, so that inserted text is not searched.
    return re.sub("@([A-Z]+)@", lambda place: parts[place[1]], source("head.html") + source(body))


def source(name: str) -> str:
    """Return the text of a file of the folder web, such as a script of the HTML page."""
    return (files("meanfield.view") / "web" / name).read_text(encoding="utf-8")
