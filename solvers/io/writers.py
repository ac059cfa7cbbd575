"""Identities of the writers of a run file: the run that has created it and each continuation, one after the other.

Checkpoints beside a file carry the identity of their writer, so that those of another run are not taken for its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

WRITERS = "writers"  # attribute: a line for each writer


@dataclass(frozen=True)
class Writer:
    """One writer of a file.

    identity    random; empty of the versions that wrote none
    snapshots   rows that the file held when the writer began
    samples     rows of the diagnostics
    """

    identity: str
    snapshots: int = 0
    samples: int = 0


EARLIER = Writer("")


def new_writer(snapshots: int = 0, samples: int = 0) -> Writer:
    """Return a writer with an identity that no other has."""
    return Writer(secrets.token_hex(16), snapshots, samples)


def writers_as_text(writers: Sequence[Writer]) -> str:
    """Return the value of the attribute."""
    return "\n".join(f"{writer.identity or '-'} {writer.snapshots} {writer.samples}" for writer in writers)


def writers_from_text(text: str) -> tuple[Writer, ...]:
    """Return the writers of a file by its attribute. Raises ValueError for another text."""
    return tuple(_writer(line) for line in text.split("\n")) if text else (EARLIER,)


def _writer(line: str) -> Writer:
    identity, *counts = line.split(" ")
    if len(counts) != 2 or not all(count.isdecimal() and len(count) < 19 for count in counts):
        raise ValueError(f"attribute {WRITERS} is damaged")
    return Writer("" if identity == "-" else identity, *map(int, counts))
