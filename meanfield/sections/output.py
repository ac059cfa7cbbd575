"""Section [output]: what a run keeps in its file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from meanfield.sections.section import Count, NotNegative, Positive, Section


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``spacing`` of snapshots and samples: linear, and log with a hand-over, unless it is given.
    ``first`` is the first time after 0 where the spacing is logarithmic, else None (default 1e-4 of the end, with a
    hand-over at most 0.1).
    ``diagnostics``: by default all that there are on the manifold. ``samples`` counts their samples, ``checkpoint`` is
    seconds of wall time between checkpoints.
    """

    snapshots: Count | None = None
    every: Positive | None = None
    times: Annotated[tuple[NotNegative, ...], Meta(min_length=1)] | None = None
    spacing: Literal["linear", "log"] | None = None
    first: Positive | None = None
    diagnostics: tuple[str, ...] | None = None
    samples: Count = 400
    checkpoint: Positive = 60.0
