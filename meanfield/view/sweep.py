"""Page of a sweep for a browser: a phase diagram whose points show the results of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from meanfield.case.load import parse
from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import COLOR_MAP
from meanfield.figures.run_data import BLUE
from meanfield.figures.sweep.curve import abscissas, short
from meanfield.figures.sweep.figure import axes_of_sweep
from meanfield.figures.sweep.theory import theory_of_map
from meanfield.runtime.messages import print_message
from meanfield.runtime.paths import require_target
from meanfield.sweeping.files import run_file
from meanfield.sweeping.point import FAILED
from meanfield.sweeping.results import SweepResults, read_sweep, tables_of
from meanfield.sweeping.scalars import lengths, long_name
from meanfield.view.bands import hex_colors
from meanfield.view.data import Described, evenly
from meanfield.view.page import SUFFIXES, fill_template, view
from meanfield.view.panels import curve_of, linear, round_values
from solvers.io.repair import FileError
from solvers.io.replacing import replacement
from solvers.io.writing import disk_errors

SCRIPTS = ("data", "axis", "panel", "sweep")
MAX_NUMBERS = 400_000  # numbers of diagnostics over time, of all points together
CURVE = 60  # points of a theoretical curve
HELP = "Select a point to see its results; a point with a run file links to a separate page."


def view_sweep(path: str | Path, target: str | Path, *, overwrite: bool = False) -> Path:
    """Write the sweep whose index is ``path`` as a page to ``target`` (.html) and return ``target``.

    Points (runs of the sweep) with stored run files get pages in the folder NAME.pages beside ``target``. The sweep may
    be in progress. Raises FileError if the index cannot be read, if no point is done, or if an output exists and
    ``overwrite`` is false.
    """
    path, target = Path(path), Path(target)
    require_target(target, path, overwrite, "page", SUFFIXES)
    found = read_sweep(path)
    if not len(found.done):
        raise FileError(f"{path}: no point is done yet")
    folder = target.with_name(f"{target.stem}.pages")
    pages = _write_pages(path, folder, len(found.status), overwrite)
    with disk_errors(target, "cannot write it"), replacement(target, overwrite=overwrite) as new:
        new.write_text(compose_sweep(found, pages), encoding="utf-8")
    return target


def _write_pages(path: Path, folder: Path, count: int, overwrite: bool) -> dict[int, str]:
    """Write a page for each of the ``count`` runs of a sweep that has a run file, to ``folder``.

    Return the addresses of the pages relative to the HTML page of the sweep, by the number of the run.
    """
    points = [number for number in range(count) if run_file(path, number).is_file()]
    if folder.exists() and points and not overwrite:
        raise FileError(f"{folder}: exists already; --overwrite replaces its pages")
    if points:
        folder.mkdir(exist_ok=True)
    pages = {}
    for number in points:
        try:
            page = view(run_file(path, number), folder / f"{number:04}.html", overwrite=overwrite)
        except FileError as error:  # such as a point in progress without a snapshot
            print_message(f"meanfield: {error}")
        else:
            pages[number] = f"{folder.name}/{page.name}"
    return pages


def compose_sweep(found: SweepResults, pages: dict[int, str]) -> str:
    """Return the page of a sweep as HTML; ``pages`` are the addresses of the pages of its runs."""
    done, count = len(found.done), len(found.status)
    failed = int((found.status == FAILED).sum())
    state = f"{count} points" if done == count else f"{done} of {count} points"
    texts = {
        "TITLE": str(found.attributes["title"]) or found.path.stem,
        "FACTS": state + (f" · {failed} failed" if failed else ""),
        "CASE": str(found.attributes["sweep"]),
        "HELP": HELP,
    }
    return fill_template("sweep.html", found.path, SCRIPTS, texts, describe_sweep(found, pages))


def describe_sweep(found: SweepResults, pages: dict[int, str]) -> Described:
    """Return a sweep as plain values for the script of its page: keys, scalars, and runs with diagnostics over time."""
    chosen = axes_of_sweep(found)
    keys = {key: _key_values(found, key) for key, values in found.parameters.items() if len(set(values.tolist())) > 1}
    keys = keys or {key: _key_values(found, key) for key in found.parameters}
    scalars = {name: values for name, values in found.scalars.items() if values.ndim == 1}
    x = chosen.x if chosen.x in keys else next(iter(keys))
    return {
        "colors": hex_colors(COLOR_MAP),
        "random": found.is_random,
        "keys": keys,
        "scalars": {
            name: {"name": long_name(name), "values": round_values(values)} for name, values in scalars.items()
        },
        "x": x,
        "y": chosen.y if chosen.y in keys and chosen.y != x else "",
        "value": chosen.value if chosen.value in scalars else next(iter(scalars)),
        "theory": _theory(found, x, chosen.y, chosen.value),
        "points": _points(found, pages),
    }


def _key_values(found: SweepResults, key: str) -> Described:
    """Return a key of a sweep as plain values: positions of all runs on its axis, texts, scale and ticks."""
    places = abscissas(found, key)
    texts = found.parameters[key].dtype == object
    words = [short(value, key) if texts else f"{value:.6g}" for value in found.parameters[key].tolist()]
    ticks = [[place, text] for place, text in dict(zip(places.tolist(), words, strict=True)).items()]
    return {
        "places": round_values(places),
        "texts": words,
        "log": found.spacings[key] == "log",
        "ticks": ticks if texts else None,
    }


def _points(found: SweepResults, pages: dict[int, str]) -> list[Described]:
    """Return the status of each point (run) of a sweep as plain values, with its diagnostics over time if done."""
    room = MAX_NUMBERS // len(found.done)
    series = {number: _series(tables, room) for number, tables in tables_of(found)}
    return [
        {
            "status": status,
            "reason": found.reasons[number],
            "seconds": round_values(found.wall_times[number : number + 1])[0],
            "page": pages.get(number),
            "series": series.get(number),
        }
        for number, status in enumerate(found.status)
    ]


def _series(tables: Mapping[str, Floats], room: int) -> Described | None:
    """Return the diagnostics of a run over time as panels with at most ``room`` numbers, or None if there are none.

    The panels show scalar diagnostics and the length of the mean token.
    """
    times = tables["time"]
    tables = {
        name: values for name, values in tables.items() if len(values) == len(times)
    }  # the others have other times
    curves = {name: values for name, values in tables.items() if name != "time" and values.ndim == 1}
    if "centroid" in tables:
        curves["length of the mean token"] = lengths(tables["centroid"])
    if not curves or len(times) < 2:
        return None
    shown = evenly(len(times), max(room // (len(curves) + 1), 2))
    panels = [linear(name, [curve_of(values[shown], BLUE)], step=name == "clusters") for name, values in curves.items()]
    return {"times": round_values(times[shown]), "panels": panels}


def _theory(found: SweepResults, x: str, y: str | None, value: str) -> Described | None:
    """Return the theoretical curve over keys ``x`` and ``y`` of a sweep as plain values, None if there is none."""
    others = found.parameters.keys() - {x, y}
    if y is None or (curve := theory_of_map(parse(found.attributes["case"]), x, y, value, others)) is None:
        return None
    name, height = curve
    places = abscissas(found, x)
    low, high = float(places.min()), float(places.max())
    grid = np.geomspace(low, high, CURVE) if found.spacings[x] == "log" else np.linspace(max(low, 0.0), high, CURVE)
    heights = np.asarray(height(grid), dtype=float)
    plain = name.replace(r"$\kappa_\#$", "κ#")
    return {
        "x": x,
        "y": y,
        "name": plain,
        "points": [list(pair) for pair in zip(round_values(grid), round_values(heights), strict=True)],
    }
