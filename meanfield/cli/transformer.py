"""The commands `meanfield transformer ...`: their arguments, what each does, and the table of them; see cli.py."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser

from meanfield.cli import options as cli_options
from meanfield.runtime.messages import tell


def model(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, or a name on the hub of Hugging Face")
    parser.add_argument(
        "--text", metavar="FILE|-", help="input text, - for the standard input (default: a bundled sample)"
    )


def read_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the model's name with .h5, here")
    _overwrite(parser, "FILE.h5")


def case_options(parser: ArgumentParser) -> None:
    parser.add_argument("--layer", metavar="K", type=int, help="its attention in all layers (default: each its own)")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="default: the model's name with -case, here")
    _overwrite(parser, "the case in FOLDER")


def reference_options(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE.h5", help="default: the case's name with -reference.h5, here")
    _overwrite(parser, "FILE.h5")


def _overwrite(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--overwrite", action="store_true", help=f"replace {what} (default: refuse)")


def read(options: argparse.Namespace) -> int:
    from meanfield.runtime.paths import require_writable
    from meanfield.transformer.model import short_name, states_of

    path = f"{short_name(options.model)}.h5" if options.output is None else options.output
    require_writable(path, options.text or "", options.overwrite)
    from meanfield.transformer.reading import read_transformer

    states = states_of(options.model, options.text)
    given = {"overwrite": options.overwrite, "quiet": options.quiet, "command": options.command}
    read_transformer(states, path, **given, say=tell)
    return 0


def case(options: argparse.Namespace) -> int:
    import sys

    from meanfield.transformer.case import require_attention, require_new, write_case
    from meanfield.transformer.model import short_name, states_of

    folder = f"{short_name(options.model)}-case" if options.output is None else options.output
    require_new(folder, options.overwrite)
    states = states_of(options.model, options.text, lambda name, config: require_attention(name, config, options.layer))
    written = write_case(states, folder, options.layer)
    print(written)
    print(f"solve it: meanfield run {written}", file=sys.stderr)
    return 0


def reference(options: argparse.Namespace) -> int:
    from pathlib import Path

    from meanfield.case.load import load
    from meanfield.cli.kinds import require_kind
    from meanfield.runtime.paths import require_files, require_writable

    require_kind(options.case, "case")
    resolved = load(options.case, options.overrides)
    name = Path(options.case).name.removesuffix(".toml")
    path = f"{name}-reference.h5" if options.output is None else options.output
    require_writable(path, options.case, options.overwrite)
    require_files(resolved, path)
    from meanfield.transformer.reference import run_reference

    given = {"overwrite": options.overwrite, "quiet": options.quiet, "command": options.command}
    run_reference(resolved, path, **given, say=tell)
    return 0


COMMANDS = {
    "read": (
        read,
        "write the directions of a text's tokens after each layer of a model, as particles",
        "MODEL [--text FILE|-] [-o FILE.h5] [--overwrite] [--quiet]",
        (model, read_options, cli_options.quiet),
    ),
    "case": (
        case,
        "write a case that has a model's attention, from the same tokens",
        "MODEL [--layer K] [--text FILE|-] [-o FOLDER] [--overwrite]",
        (model, case_options),
    ),
    "reference": (
        reference,
        "run a case of particles in layers by PyTorch's attention",
        "CASE [-o FILE.h5] [--set KEY=VALUE ...] [--overwrite] [--quiet]",
        (cli_options.case_file, reference_options, cli_options.quiet),
    ),
}
