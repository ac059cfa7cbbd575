"""The arguments of the commands `meanfield transformer ...`, as functions that add them to a parser."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from meanfield.cli import options

Arguments = Callable[[ArgumentParser], object]
EXPERIMENTS = (  # of meanfield.transformer.experiments.table, named here so that help loads nothing
    "information", "attention", "bottleneck", "gradients", "sensitivity", "stabilizers", "scaling", "untrained",
)  # fmt: skip


def option(names: str, metavar: str | None, help_text: str, **more: Any) -> Arguments:
    """Return a function that adds one option, of the names between slashes."""
    return lambda parser: parser.add_argument(*names.split("/"), metavar=metavar, help=help_text, **more)


def number(name: str, default: int, words: str) -> Arguments:
    return option(f"--{name}", "N", f"{words} (default: {default})", type=int, default=default)


def drop(done: str) -> Arguments:
    """Return the option for tokens that are moved but not ``done``."""
    return option("--drop", "TOKENS", f"special, first or both: tokens that are moved but not {done}", default="")


def output(default: str) -> tuple[Arguments, ...]:
    return (
        option("-o/--output", "FILE.h5", f"default: {default}, here"),
        lambda parser: options.overwrite(parser, "FILE.h5"),
    )


def file_and_figure(default: str) -> tuple[Arguments, ...]:
    file, overwrite = output(default)
    return file, option("--figure", "FILE.png", "default: the output's name with .png"), overwrite


model = option("model", "MODEL", "a folder, or a name on the hub of Hugging Face")
text = option("--text", "FILE|-", "input text, - for the standard input (default: a bundled sample)")
texts = option("--texts", "FOLDER", "its files *.txt (default: ten texts of the package)")
