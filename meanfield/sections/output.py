"""Section [output]: what a run keeps in its file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from meanfield.sections.section import Count, Key, NotNegative, Positive, Section


class Output(Section, frozen=True):
    """What is kept. In a parsed case exactly one of ``snapshots``, ``every`` and ``times`` is not None.

    ``spacing`` of snapshots and samples: linear, and log with a handover, unless it is given.
    ``first`` is the first time after 0 where the spacing is logarithmic, else None (default 1e-4 of the end, with a
    handover at most 0.1).
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

    about: ClassVar = {
        "snapshots": Key("number of intervals between snapshots", 100),
        "every": Key("time between snapshots", 0.5, unit="time"),
        "times": Key("times of snapshots", [0.0, 1.0, 10.0], unit="time"),
        "spacing": Key("distribution of snapshots and samples in time", "log"),
        "first": Key("first time after 0 with spacing = 'log'", 0.001, unit="time"),
        "diagnostics": Key("diagnostics to record; all that the domain has if left out", ["mass", "energy"]),
        "samples": Key("number of intervals between samples of the diagnostics", 400),
        "checkpoint": Key("wall time between checkpoints", 60.0, unit="s"),
    }
