"""Segments of a run: each start, by ``run`` and then by ``resume``, with its case, its settings and its version.

The first segment is in the attributes of the file. Each later one is a line of JSON in the attribute ``segments``.
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
from meanfield.case.overrides import canonicalize_section
from meanfield.components.loaded import require_components
from meanfield.runtime.messages import command_of
from meanfield.runtime.provenance import provenance
from solvers.io.run_file import FileError, Run

FIXED = ("domain", "initial", "output.diagnostics")  # determine the cells of the file, its first density, its columns
MODEL = ("attention", "feed_forward", "reaction", "stabilizers", "sequence", "time.method", "time.step")  # of tokens
ATTRIBUTES = ("case", "start", "versions", "git_commit", "command")  # attributes of each segment


@dataclass(frozen=True)
class Segment:
    """Segment of a run: the part from one start, by ``run`` or ``resume``, to the next.

    from_time, until   model times of its start and of its planned end
    changes            the settings that it changed, such as "attention.beta=4"
    case               its resolved case, TOML
    start              date of its start, ISO 8601
    versions, git_commit, command   software and command
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
    """Return advice on how to continue a run that has stopped early, from the attributes of its file.

    Files of externally computed layers cannot be resumed, and must be written anew.
    """
    if "layers_of" in attributes:
        return "it cannot be resumed: write it anew with --overwrite"
    return f"continue from the last checkpoint: {command_of('resume', path)}"


def case_of(run: Run) -> Case:
    """Return the case with which a run has started, before any resumption with changes.

    Raises FileError for a file without a case, CaseError for an invalid one.
    """
    if not case_table(run.attributes):
        raise FileError(f"{run.path}: has no case; it was not written by `meanfield run`")
    require_components(run.path, run.attributes)
    return parse(run.attributes["case"])


def model_changes(run: Run) -> list[str]:
    """Return the changes of the model of a run at resumptions, such as "attention.beta=4 from t = 1".

    Predictions for the case with which the run has started do not hold after such a change. Raises FileError for
    damaged segments.
    """
    found = []
    for segment in read_segments(run.attributes)[1:]:
        texts = [text for text in segment.changes if canonicalize_section(text.strip(' "')).startswith(MODEL)]
        found += [f"{' '.join(texts)} from t = {segment.from_time:g}"] if texts else []
    return found


def case_table(attributes: Mapping[str, object]) -> dict[str, Any]:
    """Return the case that the attributes of a run file contain, as a table; empty if there is none.

    Raises FileError for invalid TOML.
    """
    try:
        return tomllib.loads(str(attributes.get("case", "")))
    except (ValueError, RecursionError) as error:
        raise FileError(f"the file's attribute case is damaged: {error}") from None


def read_segments(attributes: Mapping[str, object]) -> list[Segment]:
    """Return all segments of a run (its parts between resumptions) from the attributes of its file.

    The list is empty without a whole case.

    Raises FileError for attributes that hold no valid case or segments.
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
    """Return the case of a resumed run: the case before the resumption with ``changes``, such as "attention.beta=4".

    Raises CaseError for keys that cannot change within a run.
    """
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
    """Return the next segment of a run (part between resumptions), from ``time`` until ``until``.

    The default of ``until`` is the end of ``case``. An interrupted extension continues to its planned end, unless
    time.end has changed.
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
    """Return the attribute ``segments`` of a run file with one more segment: a part of the run after a resumption."""
    return {"segments": f"{attributes.get('segments', '')}{json.dumps(asdict(segment), ensure_ascii=False)}\n"}
