"""Commands on cases and sweeps: validation of the files, then one call. Each returns the exit status.

Imports are in the functions, so that a command loads only what it needs and the help loads nothing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from meanfield.cli.kinds import require_figure, require_file, require_kind
from meanfield.cli.output import draw_result, print_result
from meanfield.runtime.messages import print_message

if TYPE_CHECKING:
    from meanfield.case.case import Case
    from solvers.backends import Backend


def case_of(options: argparse.Namespace) -> Case:
    """Return the case that a command names, with its overrides. Raises CaseError."""
    from meanfield.case.load import load

    require_kind(options.case, "case")
    return load(options.case, options.overrides)


def run(options: argparse.Namespace) -> int:
    """Run a case into a file; return the exit status."""
    from meanfield.runtime.limits import require_room
    from meanfield.runtime.paths import output_for, require_files, require_writable

    case = case_of(options)
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
        show=print_message,
    )
    return 0


def _backend(device: str) -> Backend:
    """Return the backend of a device by name. Raises CaseError for an unusable device."""
    from meanfield.case.errors import CaseError, install
    from solvers.backends import NoDevice, NotInstalled, backend_on

    try:
        return backend_on(device)
    except NotInstalled as error:
        raise CaseError(f"--device {device}: {error}: {install('gpu')}") from None
    except NoDevice as error:
        raise CaseError(f"--device {device}: {error}") from None


def resume(options: argparse.Namespace) -> int:
    """Continue the run of a file; return the exit status."""
    require_file(options.file, "run")
    from meanfield.running import resume as go_on

    go_on(
        options.file,
        until=options.until,
        changes=options.overrides,
        quiet=options.quiet,
        command=options.command,
        backend=_backend(options.device),
        show=print_message,
    )
    return 0


def sweep(options: argparse.Namespace) -> int:
    """Run the points of a sweep; return the exit status."""
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
        part=options.shard,
    )


def check(options: argparse.Namespace) -> int:
    """Print a validated case with its cells, memory and steps; return the exit status."""
    from meanfield.runtime.cost import estimate
    from meanfield.runtime.paths import require_files
    from meanfield.simulation import validate_setup

    case = case_of(options)
    require_files(case)
    validate_setup(case)
    print(estimate(case))
    if options.time:
        from meanfield.runtime.timing import timing

        print("\n".join(f"# {line}" for line in timing(case)))
    return 0


def stability(options: argparse.Namespace) -> int:
    """Print the growth rates about the uniform density; return the exit status."""
    case = case_of(options)
    from meanfield.results.refusals import with_option_names
    from meanfield.results.theory import stability as compute

    with with_option_names(("tokens",)):
        print(compute(case, tokens=options.tokens).report)
    return 0


def branch(options: argparse.Namespace) -> int:
    """Print, and draw if a figure is named, a branch of stationary densities; return the exit status."""
    require_figure(options.output)
    case = case_of(options)
    from meanfield.analysis.branches.branch import as_dict, branch_of, report

    found = branch_of(case, options.degree, options.over, options.negative)
    print_result(options, lambda: as_dict(found), lambda: report(found))
    draw_result(options, found)
    return 0


def limit(options: argparse.Namespace) -> int:
    """Print, and draw if a figure is named, the comparison of n tokens with a density; return the exit status."""
    require_figure(options.output)
    case = case_of(options)
    from meanfield.results.limit_text import as_dict
    from meanfield.results.refusals import with_option_names
    from meanfield.results.token_numbers import tokens_beside_density

    with with_option_names(("n", "seeds", "intervals", "observables", "tolerance")):
        found = tokens_beside_density(
            case,
            options.n,
            options.seeds,
            options.jobs,
            options.observables,
            options.intervals,
            options.order,
            options.tolerance,
            not options.quiet,
        )
    print_result(options, lambda: as_dict(found), lambda: found.report)
    draw_result(options, found)
    return 0


def escape(options: argparse.Namespace) -> int:
    """Print, and draw if a figure is named, the times of escape of n tokens; return the exit status."""
    require_figure(options.output)
    case = case_of(options)
    from meanfield.results.escapes import as_dict
    from meanfield.results.escapes import escape as simulate
    from meanfield.results.refusals import with_option_names
    from meanfield.runtime.signals import Interrupted

    n = () if options.predict else options.n
    with with_option_names(("n", "seeds", "jobs")):
        found = simulate(case, n, options.seeds, options.jobs, options.start, progress=not options.quiet)
    print_result(options, lambda: as_dict(found), lambda: found.report)
    draw_result(options, found)
    if found.interrupted:
        raise Interrupted("interrupted; the numbers are those of the completed simulations")
    return 0


def convergence(options: argparse.Namespace) -> int:
    """Print the error of a run, estimated on coarser meshes; draw it if a figure is named; return the exit status."""
    require_figure(options.output)
    case = case_of(options)
    from meanfield.analysis.convergence import as_dict, convergence_of, report

    study = convergence_of(case, options.over, options.values, options.of)
    asked = study, options.over, options.of
    print_result(options, lambda: as_dict(*asked), lambda: report(*asked))
    if options.output is not None:
        from meanfield.figures.comparison.convergence import plot_convergence

        print(plot_convergence(*asked, options.output))
    return 0
