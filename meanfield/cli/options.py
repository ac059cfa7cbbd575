"""The arguments of each command, as functions that add them to its parser."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError

PHENOMENA = "clusters, merging, noise, drift, blow_up, collapse"  # meanfield.case.catalogue's: help loads nothing
MAX_DEGREE = 32  # of a branch: its density is held by 128 nodes
MAX_SHARDS = 100_000


def case_file(parser: ArgumentParser) -> None:
    parser.add_argument("case", metavar="CASE", help="a case file, or the name of a shipped case")
    overrides(parser)


def timing(parser: ArgumentParser) -> None:
    parser.add_argument("--time", action="store_true", help="time a step and a sample (default: estimate only)")


def search(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--search", metavar="WORD", default="", help="only cases whose text contains WORD (default: all)"
    )


def new_case(parser: ArgumentParser) -> None:
    parser.add_argument("manifold", metavar="MANIFOLD", help="circle, sphere, line, particles, ...")
    parser.add_argument("--phenomenon", metavar="NAME", default="clusters", help=f"{PHENOMENA} (default: clusters)")
    parser.add_argument("-o", "--output", metavar="FILE.toml", help="default: print it")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing FILE.toml (default: refuse)")


def prefix(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prefix", metavar="PREFIX", nargs="?", default="", help="prefix of the keys, for example attention"
    )


def run_to_resume(parser: ArgumentParser) -> None:
    run_file(parser)
    overrides(parser)


def overrides(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        dest="overrides",
        help="override keys of the case, for example attention.beta=4 (default: none)",
    )


def run_file(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.h5", help="a file that `meanfield run` has written")


def components(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--component",
        metavar="FILE.py",
        action="append",
        default=[],
        dest="components",
        help="components of your own, or an installed package's entry point; its code runs (default: none)",
    )


def quiet(parser: ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress (default: a bar, or lines in a log)")


def run_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the case's name with .h5, here")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing FILE.h5 (default: refuse)")
    parser.add_argument(
        "--force", action="store_true", help="run even where memory or disk may not suffice (default: refuse)"
    )


def device(parser: ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where to compute (default: cpu)")


def until(parser: ArgumentParser) -> None:
    parser.add_argument("--until", metavar="TIME", type=_time, help="where to stop (default: the case's end)")


def _time(text: str) -> float:
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not 0 < time < math.inf:
        raise ArgumentTypeError(f"{text}: expected a finite number > 0")
    return time


def as_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON (default: text)")


def verify(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--verify", action="store_true", help="verify all data against checksums (default: describe the file)"
    )


def figure_output(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FIGURE.png", help="or .pdf, .svg (default: FILE with .png)")
    parser.add_argument(
        "--panels", metavar="NAME,...", type=_names, help="panels, such as density,energy (default: all)"
    )

    parser.add_argument(
        "--size", metavar="WxH", type=_size, help="in inches, such as 3.4x2.6 (default: as the panels need)"
    )
    parser.add_argument("--dpi", metavar="N", type=_dpi, default=160, help="pixels per inch (default: 160)")
    parser.add_argument("--cmap", metavar="NAME", default="viridis", help="Matplotlib's colour map (default: viridis)")
    parser.add_argument("--style", choices=("paper", "screen", "dark"), default="screen", help="default: screen")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _size(text: str) -> tuple[float, float]:
    try:
        width, height = map(float, text.split("x"))
    except ValueError:
        raise ArgumentTypeError(f"{text}: expected a width and a height in inches, such as 3.4x2.6") from None
    return width, height


def _dpi(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text}: expected a whole number of pixels per inch")
    return int(text)


def movie_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.gif|.mp4", help="default: FILE with .gif; .mp4 needs ffmpeg")
    parser.add_argument("--fps", type=_fps, default=12, help="snapshots per second, at most 50 (default: 12)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing movie (default: refuse)")


def page_output(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.html", help="default: FILE with .html")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing page (default: refuse)")


def _fps(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 50):
        raise ArgumentTypeError(f"{text}: expected a whole number from 1 to 50")
    return int(text)


FORMATS = ("vtkhdf", "netcdf", "csv")  # meanfield.export.formats's, named here so that help loads nothing


def export_options(parser: ArgumentParser) -> None:
    parser.add_argument("--to", metavar="|".join(FORMATS), choices=FORMATS, required=True, help="the format")
    parser.add_argument("-o", "--output", metavar="PATH", help="default: FILE with .vtkhdf, .nc or .csv")
    parser.add_argument("--diagnostics", metavar="NAME", nargs="+", help="columns of a csv (default: all diagnostics)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing PATH (default: refuse)")


def figure_if_named(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FIGURE.png", help="also draw a figure (default: none)")


def branch_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--over",
        choices=("stabilizers.noise", "attention.beta", "attention.value"),
        default="stabilizers.noise",
        help="what varies: noise, beta, or v of V = vI (default: the noise)",
    )
    help_text = "degree of the mode that bifurcates (default: 1)"
    parser.add_argument("--degree", metavar="L", type=_degree, default=1, help=help_text)
    help_text = (
        "the branch with less mass at the axis, another one for even degrees except on the circle (default: more mass)"
    )
    parser.add_argument("--negative", action="store_true", help=help_text)


def _degree(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= MAX_DEGREE):
        raise ArgumentTypeError(f"{text}: expected an integer from 1 to {MAX_DEGREE}")
    return int(text)


def convergence_options(parser: ArgumentParser) -> None:
    key, default = "domain.resolution", "a quarter, half and all of the case's value"
    parser.add_argument(
        "--over", metavar="KEY", default=key, help=f"an integer key that refines the mesh (default: {key})"
    )
    parser.add_argument(
        "--values", metavar="N,N,N", type=_integers, default=(), help=f"increasing (default: {default})"
    )
    parser.add_argument(
        "--of", metavar="DIAGNOSTIC", default="energy", help="compared by its value at the end (default: energy)"
    )


def _integers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text}: expected integers, such as 32,64,128")
    return tuple(int(part) for part in parts)


def other_run(parser: ArgumentParser) -> None:
    parser.add_argument("other", metavar="B.h5", nargs="?", help="another run (default: A's snapshots with each other)")


def sweep_options(parser: ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep file, or the name of a shipped sweep")
    parser.add_argument("-o", "--output", metavar="INDEX.h5", help="default: the sweep's name with .h5, here")
    parser.add_argument("--jobs", metavar="N", type=_jobs, help="processes on this machine (default: one per core)")
    parser.add_argument("--dask", metavar="ADDRESS", help="host:port of a Dask scheduler, whose workers run the points")
    parser.add_argument("--shard", metavar="I/N", type=_shard, help="only points I, I + N, ..., for job arrays")
    parser.add_argument("--retry", action="store_true", help="re-run failed points (default: keep)")
    parser.add_argument("--overwrite", action="store_true", help="start over (default: continue INDEX.h5)")


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts) <= MAX_SHARDS):
        raise ArgumentTypeError(f"{text}: expected I/N with whole numbers 1 <= I <= N <= {MAX_SHARDS}, such as 3/100")
    return int(part), int(parts)


def _jobs(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 1024):
        raise ArgumentTypeError(f"{text}: expected a whole number from 1 to 1024")
    return int(text)


def overwrite(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} (default: refuse)")
