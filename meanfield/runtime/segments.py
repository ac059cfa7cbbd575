"""The segments of a run: each start, by ``run`` and then by ``resume``, with its case, its settings and its version.

The first is in the file's attributes. Each later one is a line of JSON in the attribute ``segments``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.components.loaded import require_components
from meanfield.runtime.provenance import provenance
from solvers.io.run_file import FileError, Run

FIXED = ("domain", "initial", "output.diagnostics")  # the file's cells, its first density, its columns
ATTRIBUTES = ("case", "start", "versions", "git_commit", "command")  # attributes that a segment has of its own


@dataclass(frozen=True)
class Segment:
    """One start of a run.

    from_time, until   model time at which it began, and to which it was to go
    changes            the settings that it changed, such as "attention.beta=4"
    case               its resolved case, TOML
    start              when it began, ISO 8601
    versions, git_commit, command   what computed it
    """

    from_time: float
    until: float
    changes: list[str]
    case: str
    start: str
    versions: str
    git_commit: str
    command: str


def resume_advice(attributes: Mapping[str, object], path: str | Path) -> str:
    """What to do with a file whose run has stopped early; one of layers that others compute is written anew."""
    if "layers_of" in attributes:
        return "it cannot be resumed: write it anew with --overwrite"
    return f"continue from the last checkpoint: meanfield resume {path}"


def case_of(run: Run) -> Case:
    """The case that a file began with. Raises FileError for a file without one, CaseError for one that cannot be."""
    if not case_table(run.attributes):
        raise FileError(f"{run.path}: has no case; it was not written by `meanfield run`")
    require_components(run.path, run.attributes)
    return parse(run.attributes["case"])


def case_table(attributes: Mapping[str, object]) -> dict[str, Any]:
    """The case that a file's ``attributes`` hold, as a table; empty without one. Raises FileError for what is none."""
    try:
        return tomllib.loads(str(attributes.get("case", "")))
    except (ValueError, RecursionError) as error:
        raise FileError(f"the file's attribute case is damaged: {error}") from None


def read_segments(attributes: Mapping[str, object]) -> list[Segment]:
    """All segments in a file's ``attributes``, the first included; none in a file without a whole case.

    Raises FileError where what they hold is no case, or no segments.
    """
    of_file = {name: str(attributes.get(name, "")) for name in ATTRIBUTES}
    end = case_table(attributes).get("time", {}).get("end")
    if end is None:
        return []
    first = Segment(from_time=0.0, until=end, changes=[], **of_file)
    try:
        lines = str(attributes.get("segments", "")).splitlines()
        return [first, *(msgspec.convert(json.loads(line), Segment) for line in lines)]
    except (ValueError, TypeError, RecursionError) as error:
        raise FileError(f"the file's attribute segments is damaged: {error}") from None


def next_case(segments: Sequence[Segment], changes: Sequence[str]) -> Case:
    """The last segment's case with ``changes``. Raises CaseError for what cannot change within a run."""
    before = parse(segments[-1].case)
    after = parse(segments[-1].case, changes)
    for key in FIXED:
        if attrgetter(key)(before) != attrgetter(key)(after):
            named = (text for text in changes if text.strip().startswith(key))
            change = next(named, ", ".join(changes))  # defaults of the domain may depend on other keys
            raise CaseError(f"{change}: {key} cannot change within a run; `meanfield run` starts another")
    return after


def next_segment(
    segments: Sequence[Segment], case: Case, changes: Sequence[str], time: float, until: float | None, command: str
) -> Segment:
    """The segment from ``time`` on: to ``until``, else to the end of ``case``.

    An extension that was broken off continues to where it was to go, unless time.end is another now.
    """
    last = segments[-1]
    if until is not None:
        end = float(until)
    elif case.time.end != parse(last.case).time.end:
        end = case.time.end
    else:
        end = max(case.time.end, last.until)
    made = provenance(case, command)
    return Segment(time, end, list(changes), **{name: str(made[name]) for name in ATTRIBUTES})


def with_segment(attributes: Mapping[str, object], segment: Segment) -> dict[str, str]:
    """The attribute ``segments`` with one more."""
    return {"segments": f"{attributes.get('segments', '')}{json.dumps(asdict(segment), ensure_ascii=False)}\n"}
