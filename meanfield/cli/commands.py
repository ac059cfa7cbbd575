"""Commands on cases and sweeps: checks of their files, then one call. Each returns the exit status.

Imports stand in the functions, so that a command loads what it needs and help loads nothing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from meanfield.cli.json_output import print_json
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
        print_json(as_dict(found))
    else:
        print(report(found))
    if options.output is not None:
        from meanfield.figures.branch import plot_branch

        print(plot_branch(found, options.output))
    return 0


def selftest(options: argparse.Namespace) -> int:
    from time import perf_counter

    from meanfield.results.selftest import selftest as outcomes

    start, failed = perf_counter(), []
    for outcome in outcomes():
        word = "ok    " if outcome.passed else "FAILED"
        print(f"{word} {outcome.name}: error {outcome.error:.1e}, at most {outcome.limit:g}", flush=True)
        failed += [] if outcome.passed else [outcome.name]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else f"all is well, {perf_counter() - start:.0f} s")
    return 1 if failed else 0


def cases(options: argparse.Namespace) -> int:
    from meanfield.case.load import shipped

    titles = shipped()
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"{name:{width}}  {title}")
    return 0


def schema(options: argparse.Namespace) -> int:
    import json

    from meanfield.case.schema import schema as json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def keys(options: argparse.Namespace) -> int:
    from meanfield.case.errors import CaseError
    from meanfield.case.schema import entries

    found = entries(options.prefix)
    if not found:
        raise CaseError(f"{options.prefix}: no key begins so; `meanfield keys` lists all")
    for entry in found:
        unit = f" [{entry.unit}]" if entry.unit else ""
        only = f" ({entry.variant})" if entry.variant else ""
        print(f"{entry.name}{unit}{only}\n    {entry.description}")
        print(f"    {entry.expected}; default: {entry.default}; for example {entry.example}")
    return 0
