"""What each command does: checks of its files, then one call. Each returns the exit status.

Imports stand in the functions, so that a command loads what it needs and help loads nothing.
"""

from __future__ import annotations

import argparse


def run(options: argparse.Namespace) -> int:
    from meanfield.case import load
    from meanfield.cli_files import output_for, require_writable

    case = load(options.case, options.overrides)
    path = output_for(options.case) if options.output is None else options.output
    require_writable(path, options.case, options.overwrite)
    from meanfield.run import run as solve

    return solve(case, path, overwrite=options.overwrite, quiet=options.quiet, command=options.command)


def resume(options: argparse.Namespace) -> int:
    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.run import resume as go_on

    return go_on(
        options.file,
        until=options.until,
        changes=options.overrides,
        quiet=options.quiet,
        command=options.command,
    )


def info(options: argparse.Namespace) -> int:
    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.info import describe, format_text

    facts = describe(options.file)
    if options.json:
        import json

        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print(format_text(facts))
    return 0


def plot(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.plots import plot as draw

    figure = Path(options.file).with_suffix(".png") if options.output is None else Path(options.output)
    draw(options.file, figure)
    print(figure)
    return 0


def movie(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.movie import movie as film

    target = Path(options.file).with_suffix(".gif") if options.output is None else Path(options.output)
    print(film(options.file, target, fps=options.fps, overwrite=options.overwrite, quiet=options.quiet))
    return 0


def view(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.view import view as write

    target = Path(options.file).with_suffix(".html") if options.output is None else Path(options.output)
    print(write(options.file, target, overwrite=options.overwrite))
    return 0


def export(options: argparse.Namespace) -> int:
    from meanfield.cli_files import require_readable

    require_readable(options.file)
    from meanfield.export import export as write

    print(write(options.file, options.to, options.output, overwrite=options.overwrite))
    return 0


def check(options: argparse.Namespace) -> int:
    from meanfield.case import load
    from meanfield.estimate import estimate

    print(estimate(load(options.case, options.overrides)))
    return 0


def cases(options: argparse.Namespace) -> int:
    from meanfield.case import shipped

    titles = shipped()
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"{name:{width}}  {title}")
    return 0


def schema(options: argparse.Namespace) -> int:
    import json

    from meanfield.case import schema as json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def stability(options: argparse.Namespace) -> int:
    from meanfield.case import load

    case = load(options.case, options.overrides)
    from meanfield.stability_report import report

    print(report(case))
    return 0
