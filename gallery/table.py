"""The table of all statements: an entry is a script in a folder of gallery/entries that sets STATEMENT."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

from .statement import Statement

FOLDER = Path(__file__).parent / "entries"
ENTRIES = sorted(FOLDER.glob("*/*.py"))
HEAD = """\
# Statements of the literature

Each row is an entry of `gallery/entries`: a script of some lines through the Python API that computes the number of a
source. `python -m gallery --page docs/statements.md` runs them all and writes this page; a test runs each and compares.

| entry | statement | source | published | found | verdict |
|---|---|---|---|---|---|
"""


def name_of(entry: Path) -> str:
    """Topic and name, such as growth/circle."""
    return entry.relative_to(FOLDER).with_suffix("").as_posix()


def statement_of(entry: Path) -> Statement:
    """Run an entry."""
    found = runpy.run_path(str(entry))["STATEMENT"]
    assert isinstance(found, Statement)
    return found


def statements() -> dict[str, Statement]:
    """By name of the entry."""
    return {name_of(entry): statement_of(entry) for entry in ENTRIES}


def page(found: Mapping[str, Statement]) -> str:
    """The page in Markdown."""
    rows = [
        f"| `{name}` | {one.text} | {one.source} ({one.read}) | {one.published:.7g} "
        f"| {one.found:.7g} | {one.verdict} (to {one.tolerance:.0e}: {one.reason}) |"
        for name, one in found.items()
    ]
    return HEAD + "\n".join(rows) + "\n"
