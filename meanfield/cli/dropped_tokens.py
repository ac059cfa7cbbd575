"""The option --drop of commands that read Transformers: tokens that are moved and left out of what is written."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser


def drop_option(parser: ArgumentParser, done: str) -> None:
    parser.add_argument(
        "--drop", metavar="TOKENS", default="", help=f"special, first or both: tokens that are moved but not {done}"
    )


def dropped_tokens(options: argparse.Namespace) -> tuple[str, ...]:
    """The names given. Raises CaseError for another one; called before a model is read."""
    from meanfield.transformer.ablation import require_drops

    drop = names_of(options.drop)
    require_drops(drop)
    return drop


def names_of(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
