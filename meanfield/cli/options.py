"""Arguments of each command, as values: functions that add them to its parser."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

Argument = Callable[[ArgumentParser], object]
PHENOMENA = "clusters, merging, noise, drift, blow_up, collapse"  # of meanfield.case.catalogue: help loads nothing
FORMATS = ("vtkhdf", "netcdf", "csv")  # as in meanfield.export.formats, repeated here so that the help loads nothing
MAX_DEGREE = 32  # of a branch, whose density has 128 nodes
MAX_SHARDS = 100_000
_BRANCHES = ("stabilizers.noise", "attention.beta", "attention.value")


def option(names: str, metavar: str | None, help_text: str, **more: Any) -> Argument:
    """Return a function that adds one option to a parser; ``names`` are separated by slashes."""
    return lambda parser: parser.add_argument(*names.split("/"), metavar=metavar, help=help_text, **more)


def flag(name: str, help_text: str) -> Argument:
    """Return a function that adds an option without a value to a parser."""
    return lambda parser: parser.add_argument(name, action="store_true", help=help_text)


def overwrite(what: str) -> Argument:
    """Return a function that adds the option ``--overwrite`` to a parser; ``what`` is the replaced file in its help."""
    return flag("--overwrite", f"replace {what} (default: refuse)")


def _integer(most: int, words: str = "a whole number") -> Callable[[str], int]:
    """Return a function that converts the text of an option to an integer from 1 to ``most``.

    ``words`` describe the integer in the message of the ArgumentTypeError for other texts.
    """

    def read(text: str) -> int:
        if not (text.isdecimal() and 1 <= int(text) <= most):
            raise ArgumentTypeError(f"{text}: expected {words} from 1 to {most}")
        return int(text)

    return read


def _time(text: str) -> float:
    """Return a time > 0 from the text of an option. Raises ArgumentTypeError for other texts."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not 0 < time < math.inf:
        raise ArgumentTypeError(f"{text}: expected a finite number > 0")
    return time


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a text that are separated by commas."""
    return tuple(name.strip() for name in text.split(","))


def _times(text: str) -> tuple[float, ...]:
    """Return the times in a text that are separated by commas. Raises ArgumentTypeError for other texts."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise ArgumentTypeError(f"{text}: expected times, such as 0,2.5,10") from None


def _size(text: str) -> tuple[float, float]:
    """Return width and height in inches from a text such as 3.4x2.6. Raises ArgumentTypeError for other texts."""
    try:
        width, height = map(float, text.split("x"))
    except ValueError:
        raise ArgumentTypeError(f"{text}: expected a width and a height in inches, such as 3.4x2.6") from None
    return width, height


def _dpi(text: str) -> int:
    """Return the number of pixels per inch from a text. Raises ArgumentTypeError for other texts."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text}: expected a whole number of pixels per inch")
    return int(text)


def _integers(text: str) -> tuple[int, ...]:
    """Return the integers in a text that are separated by commas. Raises ArgumentTypeError for other texts."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text}: expected integers, such as 32,64,128")
    return tuple(int(part) for part in parts)


def _shard(text: str) -> tuple[int, int]:
    """Return (I, N) from a text I/N, part I of N parts of a sweep. Raises ArgumentTypeError for other texts."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts) <= MAX_SHARDS):
        raise ArgumentTypeError(f"{text}: expected I/N with whole numbers 1 <= I <= N <= {MAX_SHARDS}, such as 3/100")
    return int(part), int(parts)


_SET = "override keys of the case, for example attention.beta=4 (default: none)"
_COMPONENT = (
    "file with components of your own, such as kernels, or the name of an entry point of an installed package; the code"
    " is executed (default: none)"
)
_NEGATIVE = (
    "follow the branch with less mass near the axis of the mode (default: more mass); for odd degrees and on the circle"
    " both branches are rotations of each other"
)
overrides = option("--set", "KEY=VALUE", _SET, nargs="+", action="extend", default=[], dest="overrides")
case_file = (option("case", "CASE", "a case file, or the name of a shipped case"), overrides)
components = option("--component", "FILE.py", _COMPONENT, action="append", default=[], dest="components")
timing = flag("--time", "measure the time of a step and of a sample (default: estimate only)")
search = option("--search", "WORD", "only cases whose topic, name or text contains WORD (default: all)", default="")
new_case = (
    option("manifold", "MANIFOLD", "circle, sphere, line, particles, ..."),
    option("--phenomenon", "NAME", f"{PHENOMENA} (default: clusters)", default="clusters"),
    option("-o/--output", "FILE.toml", "file to write (default: print the case)"),
    overwrite("an existing FILE.toml"),
)
prefix = option("prefix", "PREFIX", "prefix of the keys, for example attention", nargs="?", default="")
_RUNS = "a file of `meanfield run`, `transformer read` or `transformer reference`"
run_file = option("file", "FILE.h5", "a file that `meanfield run` has written")
watched_file = option("file", "FILE.h5", "the file of a run in progress")
states_file = option("file", "FILE.h5", _RUNS)
animated_file = option("file", "FILE.h5", "a file of `meanfield run`, `transformer read|reference` or `solvers.record`")
stored_file = option("file", "FILE.h5", "a file of `meanfield run`, `meanfield sweep` or `solvers.record`")
exported_file = option(
    "file", "FILE.h5", "a file of `meanfield run`, `sweep`, `transformer read|reference` or `solvers.record`"
)
drawn_file = option(
    "file", "FILE.h5",
    "a file of `meanfield run`, `sweep`, `transformer read|reference|experiment|fit` or `solvers.record`",
)  # fmt: skip
described_file = option(
    "file", "FILE.h5", "a file of `meanfield run`, `sweep` or `transformer`, or of `solvers.record`"
)
first_run = option("file", "A.h5", _RUNS)
other_run = option(
    "other",
    "B.h5",
    "another run (default: compare each snapshot of A with the previous and the last snapshot)",
    nargs="?",
)
quiet = flag("--quiet", "show no progress (default: show a bar, or lines in a log)")
run_options = (
    option("-o/--output", "FILE.h5", "file to write (default: the case's name with .h5, in this folder)"),
    overwrite("an existing FILE.h5"),
    flag("--force", "run even where memory or disk may not suffice (default: refuse)"),
)
device = option("--device", None, "device of the computation (default: cpu)", choices=("cpu", "gpu"), default="cpu")
until = option(
    "--until", "TIME", "time at which the run stops, rounded up to a whole layer (default: the case's end)", type=_time
)
as_json = flag("--json", "print JSON (default: text)")
verify = flag("--verify", "verify all data against checksums (default: describe the file)")
figure_if_named = option("-o/--output", "FIGURE.png", "also draw a figure (default: none)")
figure_output = (
    option("-o/--output", "FIGURE.png", "figure to write, .png, .pdf or .svg (default: FILE with .png)"),
    option("--panels", "NAME,...", "panels, such as density,energy (default: all)", type=_names),
    option("--size", "WxH", "size in inches, such as 3.4x2.6 (default: set by the panels)", type=_size),
    option("--dpi", "N", "pixels per inch (default: 160)", type=_dpi, default=160),
    option("--cmap", "NAME", "color map of Matplotlib (default: viridis)", default="viridis"),
    option(
        "--style", None, "style of the figure (default: screen)", choices=("paper", "screen", "dark"), default="screen"
    ),
    option(
        "--times",
        "T,...",
        "times whose nearest snapshots are drawn, at most six (default: chosen by the changes of the state)",
        type=_times,
    ),
    flag("--no-title", "draw no title and no parameters of the run above the figure (default: draw both)"),
    flag("--no-caption", "draw no explanations below the pictures (default: draw them)"),
)
movie_options = (
    option("-o/--output", "FILE.gif|.mp4", "movie to write; .mp4 needs ffmpeg (default: FILE with .gif)"),
    option("--fps", None, "snapshots per second, at most 50 (default: 12)", type=_integer(50), default=12),
    overwrite("an existing movie"),
)
page_output = (
    option("-o/--output", "FILE.html", "page to write (default: FILE with .html)"),
    overwrite("an existing page"),
)
export_options = (
    option("--to", "|".join(FORMATS), "format of the output", choices=FORMATS, required=True),
    option("-o/--output", "PATH", "file to write (default: FILE with .vtkhdf, .nc or .csv)"),
    option("--diagnostics", "NAME", "columns of a csv (default: all diagnostics)", nargs="+"),
    overwrite("an existing PATH"),
)
tokens = option(
    "--tokens",
    "N",
    "also predict the time at which N uniform tokens leave the uniform density (default: none)",
    type=_integer(10**9),
)
_degree = _integer(MAX_DEGREE, "an integer")
branch_options = (
    option("--over", None, "varied parameter: noise, beta, or v of V = vI (default: the noise)", choices=_BRANCHES,
           default=_BRANCHES[0]),
    option("--degree", "L", "degree of the mode that bifurcates (default: 1)", type=_degree, default=1),
    flag("--negative", _NEGATIVE),
)  # fmt: skip
_START = "metastable density at the start; ordered: the one with a nonzero mean token (default: uniform)"
_TOKENS = "numbers of tokens to simulate (default: four numbers whose free-energy barrier n ΔF/κ is 0.9 to 3)"
escape_options = (
    option("--from", None, _START, choices=("uniform", "ordered"), default="uniform", dest="start"),
    option("--n", "N,N", _TOKENS, type=_integers),
    option("--seeds", "K", "number of simulations for each n (default: 64)", type=_integer(10**6), default=64),
    option("--jobs", "N", "number of threads on this machine (default: one per core)", type=_integer(1024)),
    flag("--predict", "only predict, without simulations (default: simulate tokens)"),
)  # fmt: skip
_MESH = "domain.resolution"
_VALUES = "at least three increasing values (default: a quarter, half and all of the case's value)"
convergence_options = (
    option("--over", "KEY", f"an integer key that refines the mesh (default: {_MESH})", default=_MESH),
    option("--values", "N,N,N", _VALUES, type=_integers, default=()),
    option("--of", "DIAGNOSTIC", "diagnostic whose final value is compared (default: energy)", default="energy"),
)
_COUNTS = "increasing numbers of tokens (default: 100,300,1000)"
_OBSERVABLES = "formulas of observables, such as x or cos(2*phi) (default: the components of the mean token)"
limit_options = (
    option("--n", "N,N,...", _COUNTS, type=_integers, default=(100, 300, 1000)),
    option("--seeds", "K", "number of seeds for each n, at least 3 (default: 8)", type=_integer(10**6), default=8),
    option("--jobs", "N", "number of processes on this machine (default: 1)", type=_integer(1024), default=1),
    option("--observables", "F,F,...", _OBSERVABLES, type=_names),
    option("--intervals", "N", "number of equal intervals of time, with output at their ends (default: 10)",
           type=_integer(1000), default=10),
    option("--order", None, "order p of the Wasserstein distance (default: 1)", type=int, choices=(1, 2), default=1),
    option("--tolerance", "ANGLE", "distance up to which tokens follow the density (default: 1/sqrt(beta), at most"
           " 0.25)", type=_time),
)  # fmt: skip
sweep_options = (
    option("sweep", "SWEEP", "a sweep file, or the name of a shipped sweep"),
    option("-o/--output", "INDEX.h5", "index to write (default: the sweep's name with .h5, in this folder)"),
    option("--jobs", "N", "number of processes on this machine (default: one per core)", type=_integer(1024)),
    option("--dask", "ADDRESS", "host:port of a Dask scheduler, whose workers run the points"),
    option("--shard", "I/N", "run only the points I, I + N, ..., for job arrays", type=_shard),
    flag("--retry", "re-run failed points (default: skip them)"),
    flag("--overwrite", "start over (default: continue INDEX.h5)"),
)
