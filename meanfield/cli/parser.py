"""The command ``meanfield``: reads arguments, calls one function, returns an exit status.

0 done; 2 bad input (one line on stderr); 3 the state became non-finite or exploded; 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NoReturn

from meanfield import __version__
from meanfield.cli import catalogue as cli_catalogue
from meanfield.cli import commands as cli_commands
from meanfield.cli import file_commands as cli_file_commands
from meanfield.cli import options as cli_options
from meanfield.cli import transformer as cli_transformer
from meanfield.cli.streams import OUTPUT, give_up_output, prepare
from meanfield.runtime.messages import print_message

_BAD_INPUT, _NON_FINITE = 2, 3
_INTERRUPTED, _BROKEN_PIPE = 130, 141  # 128 + the signal, as shells have it
_LONG_WORD, _SHOWN = re.compile(r"\S{301,}"), 100  # characters of a path or a key, and of its two ends
_EPILOG = """\
CASE is the path of a case file or the name of a shipped case (`meanfield cases` lists them).
Exit status: 0 done, 2 bad input, 3 non-finite or exploding state, 130 interrupted (`meanfield resume` continues).

first steps:
  meanfield cases
  meanfield run uniform -o first.h5
  meanfield plot first.h5
"""


class CommandError(Exception):
    """Arguments that cannot be followed. Its message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Instead of printing the usage and leaving: the one line is printed by ``main``."""
        raise CommandError(f"{message}; usage: {self.usage or self.prog + ' COMMAND ...'}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` defaults to the process's arguments. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _flushed():
            return _dispatch(arguments)
    except KeyboardInterrupt as error:
        return _refuse(str(error) or "interrupted", _INTERRUPTED)
    except BrokenPipeError:
        give_up_output()  # the reader has gone
        return _BROKEN_PIPE
    except CommandError as error:
        return _refuse(str(error))
    except OSError as error:
        if error.filename is None:  # not about a file that the user named
            raise
        if error.filename == OUTPUT:
            give_up_output()
        return _refuse(f"{error.filename}: {error.strerror}")
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:  # help
            raise
        for kind, code in _errors_of_users().items():
            if isinstance(error, kind):
                return _refuse(str(error), code)
        raise


def command() -> int:
    """As ``main``, where the process ends with it: a signal that comes late does not change the status."""
    prepare()
    status = main()
    if status == _INTERRUPTED:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return status


@contextmanager
def _flushed() -> Iterator[None]:
    """What the block has written to standard output is there at its end, also where help or a version ends it."""
    try:
        yield
    finally:
        if sys.stdout is not None and not isinstance(sys.exception(), OSError):
            sys.stdout.flush()


def _refuse(message: str, status: int = _BAD_INPUT) -> int:
    print_message(f"meanfield: {_LONG_WORD.sub(_cut, message)}")
    return status


def _cut(word: re.Match[str]) -> str:
    return f"{word[0][:_SHOWN]}…{word[0][-_SHOWN:]}"


def _errors_of_users() -> dict[type[BaseException], int]:
    """The exit status of each error whose message is one line for users."""
    from meanfield.case.errors import CaseError
    from meanfield.runtime.signals import Terminated
    from solvers.io.run_file import FileError
    from solvers.timestepping.state import NonFinite

    return {CaseError: _BAD_INPUT, FileError: _BAD_INPUT, NonFinite: _NON_FINITE, Terminated: _INTERRUPTED}


def _dispatch(argv: list[str]) -> int:
    parser: argparse.ArgumentParser = _parsers()
    name = ""
    for word in argv:
        commands = _commands_of(parser)
        if not commands or word.startswith("-"):
            break
        if word not in commands:
            raise CommandError(f"{name} {word}: no such command{_nearest(word, commands)}".lstrip())
        parser, name = commands[word], f"{name} {word}".lstrip()
    options, unknown = _parsers().parse_known_args(_with_overrides_joined(argv))
    if unknown:
        known = sorted(set(re.findall(r"--[a-z]+", parser.format_help())))
        raise CommandError(f"{unknown[0]}: unexpected argument{_nearest(unknown[0], known)}")
    if options.handler is None:
        parser.print_help()
        return 0
    options.command = shlex.join(["meanfield", *argv])
    if getattr(options, "components", ()):
        from meanfield.components.loading import load_components

        load_components(*options.components)
    handler: Callable[[argparse.Namespace], int] = options.handler
    return handler(options)


def _with_overrides_joined(words: Sequence[str]) -> list[str]:
    """``--set a=1 b=2 CASE`` as ``--set=a=1 --set=b=2 CASE``: a word without = is not taken for an override."""
    joined: list[str] = []
    is_first = is_later = False
    for word in words:
        if is_first or (is_later and "=" in word and not word.startswith("-")):
            joined.append(f"--set={word}")
            is_first, is_later = False, True
        elif word == "--set":
            is_first = True
        else:
            joined.append(word)
            is_later = False
    return [*joined, "--set"] if is_first else joined


def _nearest(word: str, choices: Iterable[str]) -> str:
    known = list(choices)
    matches = difflib.get_close_matches(word.lower(), known, n=1)
    return f'; did you mean "{matches[0]}"?' if matches else f"; expected one of {', '.join(known)}"


def _commands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command of a parser, by name; none where it has no commands."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return groups[0].choices if groups else {}


def help_texts() -> dict[str, str]:
    """The help of every command by what is typed, ``meanfield transformer read`` and the like included."""
    found: dict[str, str] = {}
    waiting: list[argparse.ArgumentParser] = [_parsers()]
    for parser in waiting:  # which grows by the commands of each
        found[parser.prog] = parser.format_help()
        waiting.extend(_commands_of(parser).values())
    return found


@cache
def _parsers() -> _Parser:
    """The parser, with those of its commands."""
    parser = _Parser(
        prog="meanfield",
        description="Mean-field theory of Transformers: a token density moved by self-attention.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"meanfield {__version__}")
    _add_commands(parser, "meanfield", _COMMANDS)
    return parser


def _add_commands(parser: argparse.ArgumentParser, words: str, table: Mapping[str, _Command]) -> None:
    """Add the commands of a table to the parser of what is typed before them."""
    parser.set_defaults(handler=None)
    group = parser.add_subparsers(title="commands", metavar="COMMAND", prog=words, parser_class=_Parser)
    for name, (handler, summary, usage, arguments) in table.items():
        typed = f"{words} {name}"
        command = group.add_parser(
            name, help=summary, description=summary, usage=f"{typed} {usage}", allow_abbrev=False
        )
        command.set_defaults(handler=handler)
        for add in arguments:
            add(command)


def _transformer_commands(parser: argparse.ArgumentParser) -> None:
    _add_commands(parser, "meanfield transformer", cli_transformer.COMMANDS)


_Add = Callable[[argparse.ArgumentParser], None]
_Command = tuple[Callable[[argparse.Namespace], int] | None, str, str, tuple[_Add, ...]]
_SET = "[--set KEY=VALUE ...]"
_COMMANDS: dict[str, _Command] = {
    "run": (
        cli_commands.run,
        "solve a case and write an HDF5 file",
        f"CASE [-o FILE.h5] {_SET} [--overwrite] [--force] [--quiet] [--device cpu|gpu]",
        (cli_options.case_file, cli_options.components, cli_options.run_options, cli_options.quiet, cli_options.device),
    ),
    "resume": (
        cli_commands.resume,
        "continue from the last checkpoint of a run",
        f"FILE.h5 [--until TIME] {_SET} [--quiet] [--device cpu|gpu]",
        (cli_options.run_to_resume, cli_options.components, cli_options.until, cli_options.quiet, cli_options.device),
    ),
    "info": (
        cli_file_commands.info,
        "describe a running, killed or finished run",
        "FILE.h5 [--json | --verify]",
        (cli_options.run_file, cli_options.components, cli_options.as_json, cli_options.verify),
    ),
    "plot": (
        cli_file_commands.plot,
        "draw snapshots and diagnostics over time",
        "FILE.h5 [-o FIGURE.png] [--panels NAME,...] [--size WxH] [--dpi N] [--cmap NAME] [--style paper|screen|dark]",
        (cli_options.run_file, cli_options.components, cli_options.figure_output),
    ),
    "mergers": (
        cli_file_commands.mergers,
        "report which clusters merged, when, and the lifetime of each cluster count",
        "FILE.h5 [-o FIGURE.png] [--json]",
        (cli_options.run_file, cli_options.components, cli_options.figure_if_named, cli_options.as_json),
    ),
    "compare": (
        cli_file_commands.compare,
        "distances (L1, Wasserstein) between two runs, or a density and particles",
        "A.h5 [B.h5] [-o FIGURE.png] [--json]",
        (
            cli_options.run_file,
            cli_options.components,
            cli_options.other_run,
            cli_options.figure_if_named,
            cli_options.as_json,
        ),
    ),
    "sweep": (
        cli_commands.sweep,
        "run a case over values of its keys, on this machine or a Dask cluster",
        "SWEEP [-o INDEX.h5] [--jobs N] [--dask ADDRESS] [--shard I/N] [--retry] [--overwrite] [--quiet]",
        (cli_options.sweep_options, cli_options.components, cli_options.quiet),
    ),
    "movie": (
        cli_file_commands.movie,
        "animate a run, a frame for each snapshot",
        "FILE.h5 [-o FILE.gif|FILE.mp4] [--fps 12] [--overwrite] [--quiet]",
        (cli_options.run_file, cli_options.components, cli_options.movie_options, cli_options.quiet),
    ),
    "view": (
        cli_file_commands.view,
        "write a page for the browser, of a run, a sweep or a recorded solution",
        "FILE.h5 [-o FILE.html] [--overwrite]",
        (cli_options.run_file, cli_options.components, cli_options.page_output),
    ),
    "watch": (
        cli_file_commands.watch,
        "serve the page of a run while it continues, to browsers of this machine",
        "FILE.h5",
        (cli_options.run_file, cli_options.components),
    ),
    "export": (
        cli_file_commands.export,
        "write densities for ParaView or on a regular grid, or diagnostics as a table",
        f"FILE.h5 --to {'|'.join(cli_options.FORMATS)} [-o PATH] [--diagnostics NAME ...] [--overwrite]",
        (cli_options.run_file, cli_options.components, cli_options.export_options),
    ),
    "check": (
        cli_commands.check,
        "validate a case; print it resolved, with cells, memory and steps",
        f"CASE {_SET} [--time]",
        (cli_options.case_file, cli_options.timing, cli_options.components),
    ),
    "cases": (
        cli_catalogue.cases,
        "list the shipped cases by topic, with the time that each takes",
        "[--search WORD]",
        (cli_options.search,),
    ),
    "new": (
        cli_catalogue.new,
        "write a commented case for a manifold and a phenomenon",
        "MANIFOLD [--phenomenon NAME] [-o FILE.toml] [--overwrite]",
        (cli_options.new_case,),
    ),
    "keys": (
        cli_catalogue.keys,
        "list the keys of a case file: what each is, its range, default and an example",
        "[PREFIX]",
        (cli_options.prefix,),
    ),
    "schema": (cli_catalogue.schema, "print the JSON Schema of a case file, for editors", "", ()),
    "stability": (
        cli_commands.stability,
        "growth rate of each mode about the uniform density, and the critical noise",
        f"CASE {_SET}",
        (cli_options.case_file, cli_options.components),
    ),
    "branch": (
        cli_commands.branch,
        "stationary densities over noise, beta or V, stable and unstable, through folds",
        f"CASE [--over stabilizers.noise] [--degree L] [--negative] [-o FIGURE.png] [--json] {_SET}",
        (cli_options.case_file, cli_options.branch_options, cli_options.figure_if_named, cli_options.as_json),
    ),
    "convergence": (
        cli_commands.convergence,
        "error of a run by runs on coarser meshes, and the observed order",
        f"CASE [--over domain.resolution] [--values N,N,N] [--of energy] [-o FIGURE.png] [--json] {_SET}",
        (
            cli_options.case_file,
            cli_options.components,
            cli_options.convergence_options,
            cli_options.figure_if_named,
            cli_options.as_json,
        ),
    ),
    "selftest": (cli_catalogue.selftest, "check this installation by small runs with exact answers", "", ()),
    "transformer": (
        None,
        "read a trained Transformer's layers, and run cases by PyTorch's attention",
        f"{'|'.join(cli_transformer.COMMANDS)} ...",
        (_transformer_commands,),
    ),
}
