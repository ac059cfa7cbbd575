"""Commands on the files of runs and sweeps: validation of the files, then one call. Each returns the exit status.

Imports are in the functions, so that a command loads only what it needs and the help loads nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from meanfield.cli.kinds import require_figure, require_file
from meanfield.cli.output import draw_result, print_result
from meanfield.runtime.messages import command_of


def info(options: argparse.Namespace) -> int:
    """Print a description or a verification of a file; return the exit status."""
    require_file(options.file, "run", "index")
    from meanfield.transformer.labelled import described
    from solvers.io.run_file import FileError

    if not options.json and (text := described(options.file)) is not None:
        if options.verify:
            raise FileError(f"{options.file}: --verify expects the file of a run, or the index of a sweep")
        print(text)
        return 0
    from meanfield.analysis.info import describe, format_text
    from meanfield.sweeping.results import describe_sweep, is_sweep, sweep_facts

    of_sweep = is_sweep(options.file)
    if options.verify:
        from meanfield.analysis.verification import report

        print(report(options.file, of_sweep))
    elif of_sweep:
        print_result(options, lambda: sweep_facts(options.file), lambda: describe_sweep(options.file))
    else:
        facts = describe(options.file)
        print_result(options, lambda: facts, lambda: format_text(facts))
    return 0


def plot(options: argparse.Namespace) -> int:
    """Draw the figure of a file and print its path; return the exit status."""
    require_file(options.file, "run", "index")
    from meanfield.figures.panels.options import FigureOptions
    from meanfield.sweeping.results import is_sweep
    from meanfield.transformer.labelled import is_labelled
    from solvers.io.run_file import FileError

    figure = Path(options.file).with_suffix(".png") if options.output is None else Path(options.output)
    try:
        chosen = FigureOptions(
            options.panels, options.size, options.dpi, options.cmap, options.style,
            options.times, not options.no_title, not options.no_caption,
        )  # fmt: skip
    except ValueError as error:
        raise FileError(str(error)) from None
    of_sweep, of_study = is_sweep(options.file), is_labelled(options.file)
    if (of_sweep or of_study) and chosen != FigureOptions():
        kind = "the index of a sweep" if of_sweep else "the file of an experiment"
        raise FileError(f"{options.file}: is {kind}, which is drawn without options")
    if of_sweep:
        from meanfield.figures.sweep.figure import plot_sweep

        print(plot_sweep(options.file, figure))
    elif of_study:
        from meanfield.figures.saving import figure_target, save
        from meanfield.transformer.stored import draw_stored

        print(save(draw_stored(options.file), figure_target(figure)))
    else:
        from meanfield.figures.figure import plot as draw

        print(draw(options.file, figure, chosen))
    return 0


def movie(options: argparse.Namespace) -> int:
    """Write the animation of a run and print its path; return the exit status."""
    require_file(options.file, "run")
    from meanfield.movie.animate import movie as film

    target = Path(options.file).with_suffix(".gif") if options.output is None else Path(options.output)
    print(film(options.file, target, fps=options.fps, overwrite=options.overwrite, quiet=options.quiet))
    return 0


def view(options: argparse.Namespace) -> int:
    """Write the page of a file for the browser and print its path; return the exit status."""
    require_file(options.file, "run", "index")
    from meanfield.sweeping.results import is_sweep

    target = Path(options.file).with_suffix(".html") if options.output is None else Path(options.output)
    if is_sweep(options.file):
        from meanfield.view.sweep import view_sweep as write
    else:
        from meanfield.view.page import view as write
    print(write(options.file, target, overwrite=options.overwrite))
    return 0


def watch(options: argparse.Namespace) -> int:
    """Serve the page of a run in progress until the run ends; return the exit status."""
    require_file(options.file, "run")
    from meanfield.view.watch import watch as serve

    ended = serve(options.file, lambda address: print(address, flush=True))
    print(f"{options.file}: {ended}; keep the page: {command_of('view', options.file)}")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write data of a file in another format and print the path; return the exit status."""
    require_file(options.file, "run", "index")
    from meanfield.export.formats import export as write

    chosen = options.diagnostics
    print(write(options.file, options.to, options.output, overwrite=options.overwrite, diagnostics=chosen))
    return 0


def mergers(options: argparse.Namespace) -> int:
    """Print, and draw if a figure is named, the mergers of clusters in a run; return the exit status."""
    require_file(options.file, "run")
    require_figure(options.output)
    from meanfield.analysis.mergers import format_report, report
    from solvers.io.run_file import FileError, read

    try:
        facts = report(read(options.file))
    except ValueError as error:  # a run without clusters
        raise FileError(f"{options.file}: {error}") from None
    print_result(options, lambda: facts, lambda: format_report(facts))
    if options.output is not None:
        from meanfield.figures.merger_tree import plot_mergers

        print(plot_mergers(options.file, options.output))
    return 0


def compare(options: argparse.Namespace) -> int:
    """Print the distances between runs or snapshots, draw them if a figure is named; return the exit status."""
    files = [options.file] if options.other is None else [options.file, options.other]
    for file in files:
        require_file(file, "run")
    require_figure(options.output)
    from meanfield.analysis.comparison import as_dict
    from meanfield.analysis.comparison import compare as measure
    from meanfield.analysis.comparison_text import describe_next_command, format_text
    from meanfield.runtime.progress import CountedProgress

    comparison = measure(files[0], options.other, CountedProgress("pairs of snapshots compared"))
    print_result(options, lambda: as_dict(comparison), lambda: format_text(comparison))
    if not options.json and options.output is None:
        print(f"\n{describe_next_command(comparison)}")
    draw_result(options, comparison)
    return 0
