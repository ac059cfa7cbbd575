"""What each command does: checks of its files, then one call. Each returns the exit status.

Imports stand in the functions, so that a command loads what it needs and help loads nothing.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from meanfield.runtime.messages import tell

if TYPE_CHECKING:
    from solvers.backends import Backend


def run(options: argparse.Namespace) -> int:
    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind
    from meanfield.runtime.limits import require_room
    from meanfield.runtime.paths import output_for, require_files, require_writable

    require_kind(options.case, "case")
    case = load(options.case, options.overrides)
    path = output_for(options.case) if options.output is None else options.output
    require_writable(path, options.case, options.overwrite)
    require_files(case, path)
    if not options.force:
        require_room(case, path)
    from meanfield.running import run as solve

    solve(
        case,
        path,
        overwrite=options.overwrite,
        quiet=options.quiet,
        command=options.command,
        backend=_backend(options.device),
        say=tell,
    )
    return 0


def _backend(device: str) -> Backend:
    """The backend of a device by name. Raises CaseError for one that cannot be used."""
    from meanfield.case.errors import CaseError, install
    from solvers.backends import NoDevice, NotInstalled, backend_on

    try:
        return backend_on(device)
    except NotInstalled as error:
        raise CaseError(f"--device {device}: {error}: {install('gpu')}") from None
    except NoDevice as error:
        raise CaseError(f"--device {device}: {error}") from None


def resume(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_file

    require_file(options.file, "run")
    from meanfield.running import resume as go_on

    go_on(
        options.file,
        until=options.until,
        changes=options.overrides,
        quiet=options.quiet,
        command=options.command,
        backend=_backend(options.device),
        say=tell,
    )
    return 0


def info(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_file

    require_file(options.file, "run", "index")
    from meanfield.analysis.info import describe, format_text
    from meanfield.sweeping.results import describe_sweep, is_sweep, sweep_facts

    of_sweep = is_sweep(options.file)
    if options.verify:
        from meanfield.analysis.verification import report

        print(report(options.file, of_sweep))
    elif options.json:
        _print_json(sweep_facts(options.file) if of_sweep else describe(options.file))
    else:
        print(describe_sweep(options.file) if of_sweep else format_text(describe(options.file)))
    return 0


def plot(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli.kinds import require_file

    require_file(options.file, "run", "index")
    from meanfield.sweeping.results import is_sweep

    figure = Path(options.file).with_suffix(".png") if options.output is None else Path(options.output)
    if is_sweep(options.file):
        from meanfield.figures.sweep.figure import plot_sweep as draw
    else:
        from meanfield.figures.figure import plot as draw
    draw(options.file, figure)
    print(figure)
    return 0


def movie(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli.kinds import require_file

    require_file(options.file, "run")
    from meanfield.movie.animate import movie as film

    target = Path(options.file).with_suffix(".gif") if options.output is None else Path(options.output)
    print(film(options.file, target, fps=options.fps, overwrite=options.overwrite, quiet=options.quiet))
    return 0


def view(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli.kinds import require_file

    require_file(options.file, "run")
    from meanfield.view.page import view as write

    target = Path(options.file).with_suffix(".html") if options.output is None else Path(options.output)
    print(write(options.file, target, overwrite=options.overwrite))
    return 0


def export(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_file

    require_file(options.file, "run")
    from meanfield.export.formats import export as write

    print(write(options.file, options.to, options.output, overwrite=options.overwrite))
    return 0


def mergers(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_file

    require_file(options.file, "run")
    from meanfield.analysis.mergers import format_report, report
    from solvers.io.run_file import FileError, read

    try:
        facts = report(read(options.file))
    except ValueError as error:  # a run whose clusters cannot be told
        raise FileError(f"{options.file}: {error}") from None
    if options.json:
        _print_json(facts)
    else:
        print(format_report(facts))
    if options.output is not None:
        from meanfield.figures.merger_tree import plot_mergers

        print(plot_mergers(options.file, options.output))
    return 0


def compare(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_file

    files = [options.file] if options.other is None else [options.file, options.other]
    for file in files:
        require_file(file, "run")
    from meanfield.analysis.comparison import as_dict
    from meanfield.analysis.comparison import compare as measure
    from meanfield.analysis.comparison_text import format_text, next_in_words

    comparison = measure(*files)
    if options.json:
        _print_json(as_dict(comparison))
    else:
        print(format_text(comparison))
        if options.output is None:
            print(f"\n{next_in_words(comparison)}")
    if options.output is not None:
        from meanfield.figures.comparison.figure import plot_compare

        print(plot_compare(comparison, options.output))
    return 0


def sweep(options: argparse.Namespace) -> int:
    from meanfield.cli.kinds import require_kind

    require_kind(options.sweep, "sweep")
    from meanfield.sweeping.driver import sweep as solve_all

    return solve_all(
        options.sweep,
        options.output,
        jobs=options.jobs,
        dask=options.dask,
        overwrite=options.overwrite,
        retry=options.retry,
        quiet=options.quiet,
        command=options.command,
    )


def check(options: argparse.Namespace) -> int:
    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind
    from meanfield.runtime.cost import estimate
    from meanfield.runtime.paths import require_files
    from meanfield.simulation import refuse

    require_kind(options.case, "case")
    case = load(options.case, options.overrides)
    require_files(case)
    refuse(case)
    print(estimate(case))
    return 0


def stability(options: argparse.Namespace) -> int:
    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind

    require_kind(options.case, "case")
    case = load(options.case, options.overrides)
    from meanfield.analysis.stability_report import report

    print(report(case))
    return 0


def branch(options: argparse.Namespace) -> int:
    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind

    require_kind(options.case, "case")
    case = load(options.case, options.overrides)
    from meanfield.analysis.branch import as_dict, branch_of, report

    found = branch_of(case, options.degree)
    if options.json:
        _print_json(as_dict(found))
    else:
        print(report(found))
    if options.output is not None:
        from meanfield.figures.branch import plot_branch

        print(plot_branch(found, options.output))
    return 0


def _print_json(facts: dict[str, Any]) -> None:
    """As JSON; a NaN, which JSON does not know, as null."""
    import json

    ascii_only = not str(sys.stdout.encoding).lower().startswith("utf")
    print(json.dumps(_without_nan(facts), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and value != value else value
