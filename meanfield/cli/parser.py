"""Command ``meanfield``: reads arguments, calls one function, returns an exit status.

0 done; 1 a self-test failed; 2 bad input (one line on stderr); 3 the state became non-finite or exploded, or points of
a sweep failed; 130 interrupted; 141 the reader of standard output has ended.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import MappingProxyType
from typing import NoReturn

from meanfield import __version__
from meanfield.cli.surroundings import (
    OUTPUT,
    discard_output,
    ignore_settings_of_folder,
    limit_threads,
    prepare,
    problem_of_variables,
)
from meanfield.cli.table import COMMANDS, Command
from meanfield.runtime.messages import print_message

_BAD_INPUT, _NON_FINITE = 2, 3
_INTERRUPTED, _BROKEN_PIPE = 130, 141  # 128 + the signal, as in shells
_LONG_WORD, _SHOWN = re.compile(r"\S{301,}"), 100  # characters at each end of a shortened path or key
_EPILOG = """\
CASE is the path of a case file or the name of a shipped case (`meanfield cases` lists them).
Exit status: 0 done, 1 failed self-test, 2 bad input, 3 non-finite or exploding state, or failed points of a sweep,
130 interrupted (`meanfield resume` continues).

first steps:
  meanfield cases
  meanfield run uniform -o first.h5
  meanfield plot first.h5
"""


class CommandError(Exception):
    """Error in the arguments of a command. The message is one line."""


class _Parser(argparse.ArgumentParser):
    """Parser of a command. ``commands`` are the parsers of the subcommands by name, empty if it has none."""

    commands: Mapping[str, _Parser] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        """Raise CommandError instead of printing the usage and exiting; ``main`` prints the line."""
        raise CommandError(f"{message}; usage: {self.usage or self.prog + ' COMMAND ...'}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` defaults to the process's arguments. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _flush_at_end():
            options = _parse_options(arguments)
            status: int = options.handler(options)
            return status
    except KeyboardInterrupt as error:
        return _refuse(str(error) or "interrupted", _INTERRUPTED)
    except BrokenPipeError:
        discard_output()  # the reader of the output has ended
        return _BROKEN_PIPE
    except CommandError as error:
        return _refuse(str(error))
    except OSError as error:
        if error.filename is None:  # an error of no file that the user named
            raise
        if error.filename == OUTPUT:
            discard_output()
        return _refuse(f"{error.filename}: {error.strerror}")
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:  # an exit after help
            raise
        for kind, code in _errors_of_users().items():
            if isinstance(error, kind):
                return _refuse(str(error), code)
        raise


def command() -> int:
    """Run ``main`` as the last action of a process: later signals do not change the exit status.

    Garbage collection runs less often, since imports leave no cycles, and not at the end, where it takes 0.1 s for the
    objects of Numba.
    """
    gc.set_threshold(20_000)
    prepare()
    limit_threads()
    ignore_settings_of_folder()
    status = main()
    gc.freeze()
    if status == _INTERRUPTED:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return status


@contextmanager
def _flush_at_end() -> Iterator[None]:
    """Flush standard output at the end of the block, also where help or a version ends it."""
    try:
        yield
    finally:
        if sys.stdout is not None and not isinstance(sys.exception(), OSError):
            sys.stdout.flush()


def _refuse(message: str, status: int = _BAD_INPUT) -> int:
    """Print a message, with long words abbreviated, and return the exit status."""
    print_message(f"meanfield: {_LONG_WORD.sub(_cut, message)}")
    return status


def _cut(word: re.Match[str]) -> str:
    """Return the beginning and the end of a long word, with an ellipsis between."""
    return f"{word[0][:_SHOWN]}…{word[0][-_SHOWN:]}"


def _errors_of_users() -> dict[type[BaseException], int]:
    """Return the exit status for each class of errors whose message is one line for users."""
    from meanfield.case.errors import CaseError
    from meanfield.runtime.signals import Terminated
    from solvers.io.run_file import FileError
    from solvers.timestepping.state import NonFinite

    return {CaseError: _BAD_INPUT, FileError: _BAD_INPUT, NonFinite: _NON_FINITE, Terminated: _INTERRUPTED}


def _parse_options(argv: list[str]) -> argparse.Namespace:
    """Return the options of a command line; ``handler`` runs the command with the options and returns the status."""
    parser = root_parser()
    name = ""
    for word in argv:
        if not parser.commands or word.startswith("-"):
            break
        if word not in parser.commands:
            raise CommandError(f"{name} {word}: no such command{_hint(word, parser.commands)}".lstrip())
        parser, name = parser.commands[word], f"{name} {word}".lstrip()
    if problem := problem_of_variables():
        raise CommandError(problem)
    options, unknown = root_parser().parse_known_args(_with_overrides_joined(argv))
    if unknown:
        known = sorted(set(re.findall(r"--[a-z]+", parser.format_help())))
        raise CommandError(f"{unknown[0]}: unexpected argument{_hint(unknown[0], known)}")
    if options.handler is None:
        options.handler = partial(_print_help, parser)
    options.command = shlex.join(["meanfield", *argv])
    if getattr(options, "components", ()):
        from meanfield.components.loading import load_components

        load_components(*options.components)
    return options


def _print_help(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    """Print the help of a command without its subcommand; return the exit status."""
    parser.print_help()
    return 0


def _with_overrides_joined(words: Sequence[str]) -> list[str]:
    """Return ``--set a=1 b=2 CASE`` as ``--set=a=1 --set=b=2 CASE``: a word without = is no override."""
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


def _hint(word: str, choices: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: the most similar of the choices, or all choices."""
    known = list(choices)
    matches = difflib.get_close_matches(word.lower(), known, n=1)
    return f'; did you mean "{matches[0]}"?' if matches else f"; expected one of {', '.join(known)}"


@cache
def root_parser() -> _Parser:
    """Return the parser of the command line, with the parsers of all commands."""
    parser = _Parser(
        prog="meanfield",
        description="Mean-field theory of Transformers: a token density moved by self-attention.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"meanfield {__version__}")
    _add_commands(parser, "meanfield", COMMANDS)
    return parser


def _add_commands(parser: _Parser, words: str, table: Mapping[str, Command]) -> None:
    """Add the commands of a table to a parser; ``words`` are the words of the command line that precede them."""
    parser.set_defaults(handler=None)
    group = parser.add_subparsers(title="commands", metavar="COMMAND", prog=words, parser_class=_Parser)
    for name, (handler, summary, usage, arguments) in table.items():
        typed = f"{words} {name}"
        command = group.add_parser(
            name, help=summary, description=summary, usage=f"{typed} {usage}", allow_abbrev=False
        )
        command.set_defaults(handler=handler)
        if isinstance(arguments, Mapping):
            _add_commands(command, typed, arguments)
            continue
        for add in arguments:
            add(command)
    parser.commands = group.choices
