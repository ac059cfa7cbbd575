"""Recorder of all behavior that the command line shows, for changes that must change nothing.

    python tests/support/recording.py record FOLDER [--only NAME ...] [--movies] [--jobs 2]
    python tests/support/recording.py compare A B [--only NAME ...]

``record`` runs every shipped case and sweep, shortened, and variants of them, with every command, each in a separate
folder. All written files, all printed text, and digests of both are kept. ``compare`` lists each dataset, attribute,
figure and text that differs, and the size of the difference. The exit status is 1 if there is any.
The package is called through its console script alone, so that modules may move.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.metadata import entry_points
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

from recorded_differences import differences, digests
from recorded_sessions import Session, sessions

# The order of BLAS sums depends on the number of threads.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "COLUMNS": "120"}
MANIFEST, TEXTS = "manifest.json", "texts.json"
TIMINGS = (  # pattern, replacement
    (r"^(compiling|t = \S+ of|versions |# memory ).*\n", ""),  # versions of parts; memory is a rounded estimate
    (r'^ *"(wall_times?|versions|file_size|git_commit|start|started|command|writer)":( \[[^]]*\],?| .*)\n', ""),
    (r"\b\d+(\.\d+)?(e[-+]?\d+)? s\b", "N s"),
    (r"\b\d+(\.\d+)? [kMG]?B\b", "N B"),  # HDF5 packs groups of attributes by length, which includes the command
)


@cache
def console_script() -> Callable[[], int]:
    """Return the entry point of the installed command ``meanfield``."""
    (script,) = entry_points(group="console_scripts", name="meanfield")
    command: Callable[[], int] = script.load()
    return command


def call(line: str) -> dict[str, Any]:
    """Run one command in this process, in the current folder, and return its status and its output."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["meanfield", *shlex.split(line)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "argv", argv):
        try:
            status = console_script()()
        except SystemExit as end:  # --help and --version
            status = end.code if isinstance(end.code, int) else 1
        except Exception:  # a traceback is behavior, too: its last line is kept
            status = 1
            err.write(traceback.format_exc().splitlines()[-1])
    return {"status": status, "out": without_timings(out.getvalue()), "err": without_timings(err.getvalue())}


def without_timings(text: str) -> str:
    """Return the text without the parts that differ from one execution to the next."""
    for pattern, replacement in TIMINGS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def record_session(session: Session, folder: Path) -> tuple[str, dict[str, str], float]:
    """Run the commands of a session in a new folder, and return its name, its digests, and its CPU seconds."""
    began, place = time.process_time(), folder / session.name
    place.mkdir(parents=True)
    for name, content in session.files.items():
        (place / name).write_text(content, encoding="utf-8")
    before = Path.cwd()
    os.chdir(place)
    try:
        texts = {line: call(line) for line in session.lines()}
    finally:
        os.chdir(before)
    (place / TEXTS).write_text(json.dumps(texts, indent=1, ensure_ascii=False), encoding="utf-8")
    return session.name, digests(place), time.process_time() - began


def record(folder: Path, only: list[str], movies: bool, jobs: int) -> int:
    """Record all sessions in a new folder, and return the exit status."""
    chosen = [session for session in sessions(movies) if not only or session.name in only]
    if missing := set(only) - {session.name for session in chosen}:
        sys.exit(f"--only: no session {', '.join(sorted(missing))}")
    folder = folder.absolute()
    folder.mkdir(parents=True)
    began, manifest = time.monotonic(), {}
    for name, found, seconds in _recorded(chosen, folder, jobs):
        manifest |= {f"{name}/{key}": digest for key, digest in found.items()}
        print(f"{name:32} {len(found):5} digests {seconds:6.1f} s of CPU", flush=True)
    (folder / MANIFEST).write_text(json.dumps(dict(sorted(manifest.items())), indent=0), encoding="utf-8")
    print(f"{len(manifest)} digests of {len(chosen)} sessions in {time.monotonic() - began:.0f} s: {folder}")
    return 0


def _recorded(chosen: list[Session], folder: Path, jobs: int) -> Iterator[tuple[str, dict[str, str], float]]:
    os.environ.update(ENVIRONMENT)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(record_session, chosen, [folder] * len(chosen))


def compare(a: Path, b: Path, only: list[str]) -> int:
    """Print the differences between two records, or between the sessions ``only`` of them; return 1 if there are
    any."""
    first, second = (_manifest(folder, only) for folder in (a, b))
    found = 0
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) == second.get(key):
            continue
        found += 1
        if key in first and key in second:
            print(f"{key}: {differences(a, b, key)}")
        else:
            print(f"{key}: only in {a if key in first else b}")
    print(f"{found} of {len(first.keys() | second.keys())} digests differ")
    return min(found, 1)


def _manifest(folder: Path, only: list[str]) -> dict[str, str]:
    digests: dict[str, str] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    if missing := set(only) - {key.partition("/")[0] for key in digests}:
        sys.exit(f"--only: no session {', '.join(sorted(missing))} in {folder}")
    return {key: digest for key, digest in digests.items() if not only or key.partition("/")[0] in only}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("record")
    new.add_argument("folder", type=Path, metavar="FOLDER")
    new.add_argument("--movies", action="store_true", help="animate each run, too")
    new.add_argument("--jobs", type=int, default=2)
    old = commands.add_parser("compare")
    old.add_argument("a", type=Path)
    old.add_argument("b", type=Path)
    for command in (new, old):
        command.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these sessions (default: all)")
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.a, options.b, options.only)
    return record(options.folder, options.only, options.movies, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
