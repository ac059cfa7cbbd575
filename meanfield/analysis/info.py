"""Status of a run file: running, killed, interrupted, failed or finished, and the next command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from meanfield.case.errors import CaseError
from meanfield.case.load import parse, read_toml
from meanfield.diagnostics.overflow import describe_overflow, overflows
from meanfield.domains.table import kind_of
from meanfield.runtime.messages import command_of, counted
from meanfield.runtime.segments import Segment, read_segments, resume_advice
from solvers.io.run_file import Run, read

_UNITS = {True: "cells", False: "· 1e-4 rad"}  # unit of a spread, on a mesh or of tokens
Facts = dict[str, Any]  # values by name: numbers, texts, lists and tables, None where unknown
UNKNOWN = "unknown"  # logits of a model whose attention is of another kind
LARGE_ERROR = 0.05  # of a merger's time, relative
HAND_OVER = ("hand_over_time", "hand_over_error", "hand_over_angle")  # attributes of a run with a handover


def describe(path: str | Path | Run) -> Facts:
    """Return the status of a run file as plain values, None where unknown.

    ``state`` is running, killed, interrupted, finished or failed; ``next`` is the recommended next command. Times are
    model time; ``wall_time`` and ``remaining`` are seconds. ``remaining`` is an estimate for a run in progress without
    a handover to atoms. Settings are those of the last of the ``segments``, the parts of a run between resumptions.
    Raises solvers.io.run_file.FileError for a file that cannot be read.
    """
    run = read(path)
    attributes, segments = run.attributes, read_segments(run.attributes)
    text = segments[-1].case if segments else attributes.get("case", "")
    case = read_toml(text, str(path))
    state = _state(run)
    steady = state == "running" and "handover" not in case  # atoms take decades of time in seconds
    last = run.snapshots - 1
    particles = not run.is_solution and kind_of(run.manifold).has_tokens
    density = run.density(last) if last >= 0 and not particles and not run.is_solution else None
    return {
        "path": str(run.path),
        "title": case.get("title"),
        "state": state,
        "stop_reason": attributes["stop_reason"],
        "message": attributes["message"],
        "writer": run.writer,
        "next": _describe_next_command(state, attributes, run.path),
        "manifold": run.manifold,
        "resolution": case.get("domain", {}).get("resolution", run.resolution),
        "cells": run.cells,
        "fields": list(run.fields) if run.is_solution else None,
        "tokens": len(run.weights) if particles else None,
        "dimension": case.get("domain", {}).get("dimension"),
        "beta": None if case.get("domain", {}).get("logits") == UNKNOWN else case.get("attention", {}).get("beta"),
        "layer": _layer(text),
        "normalization": case.get("attention", {}).get("normalization"),
        "noise": case.get("stabilizers", {}).get("noise"),
        "initial": case.get("initial", {}).get("kind"),
        "snapshots": run.snapshots,
        "samples": len(run.sample_times),
        "first_time": float(run.times[0]) if last >= 0 else None,
        "last_time": float(run.times[-1]) if last >= 0 else None,
        "end_time": segments[-1].until if segments else None,
        "wall_time": attributes["wall_time"],
        "remaining": _remaining_seconds(run, segments[-1]) if segments and steady else None,
        "mass_drift": _mass_drift(run),
        "ranges": _ranges(run) if run.is_solution else None,
        "minimum_density": None if density is None else float(density.min()),
        "maximum_density": None if density is None else float(density.max()),
        "clusters": _last_value(run, "clusters"),
        "overflow": overflows(run.sample_times, run.diagnostics),
        "handover": "handover" in case,
        **{name: _finite(run.number(name, math.nan)) for name in HAND_OVER},
        "start": attributes.get("start"),
        "segments": [asdict(segment) for segment in segments],
        "versions": attributes.get("versions"),
        "schema_version": attributes["schema_version"],
        "file_size": run.size,
    }


def format_text(facts: Facts) -> str:
    """Return the status of a run, the result of ``describe``, as about ten lines of text."""
    return "\n".join(f"{name:9} {text}" for name, text in _lines(facts) if text)


def _lines(facts: Facts) -> list[tuple[str, str]]:
    """Return the lines of the status of a run, each as its name and its text; empty texts are not shown."""
    return [
        ("file", f"{facts['path']}, {_size(facts['file_size'])}"),
        ("title", facts["title"] or ""),
        ("state", _state_text(facts)),
        ("domain", _domain(facts)),
        ("fields", _fields(facts)),
        ("physics", _physics(facts)),
        ("time", _time(facts)),
        (
            "stored",
            f"{counted(facts['snapshots'], 'snapshot')}, {counted(facts['samples'], 'sample')} of the diagnostics",
        ),
        ("density" if facts["tokens"] is None else "tokens", _density(facts)),
        ("atoms", _atoms(facts)),
        ("overflow", describe_overflow(facts["overflow"])),
        ("resumed", _describe_resumptions(facts)),
        ("versions", facts["versions"] or ""),
        ("next", facts["next"]),
    ]


def _domain(facts: Facts) -> str:
    """Return words on the domain of a run: its tokens and dimension, or its mesh."""
    if facts["tokens"] is not None:
        return f"{facts['tokens']} particles in {facts['dimension']} dimensions"
    return f"{facts['manifold']}, resolution {facts['resolution']}, {facts['cells']} cells"


def _fields(facts: Facts) -> str:
    """Return the names of the fields of a recorded solution as text, with their ranges in the last snapshot."""
    ranges = facts["ranges"] or {}
    texts = [f"{name} from {ranges[name][0]:.3g} to {ranges[name][1]:.3g}" for name in ranges]
    return f"{', '.join(texts)} in the last snapshot" if texts else ", ".join(facts["fields"] or ())


def _ranges(run: Run) -> dict[str, list[float]]:
    """Return the least and the largest value of each field in the last snapshot; no field if there is no snapshot."""
    if not run.snapshots:
        return {}
    last = {name: run.field(name, -1) for name in run.real_fields}
    return {name: [float(values.min()), float(values.max())] for name, values in last.items()}


def _state(run: Run) -> str:
    """Return the state of a run: "killed" if its writer has died, else the stored reason of its stop."""
    stop: str = run.attributes["stop_reason"]
    return "killed" if stop == "running" and run.writer is None else stop


def _describe_next_command(state: str, attributes: Mapping[str, Any], path: str | Path) -> str:
    """Return advice on the next command for a run in a state, such as "finished" or "killed"."""
    plot = command_of("plot", path)
    return {
        "running": f"in progress; plot it with: {plot}",
        "killed": resume_advice(attributes, path),
        "interrupted": resume_advice(attributes, path),
        "finished": f"plot it: {plot}",
        "failed": f"plot what led to it: {plot}",
    }[state]


def _state_text(facts: Facts) -> str:
    """Return the state of a run and its detail in words, such as the process that writes the file."""
    detail = {
        "running": f"by {facts['writer']}",
        "killed": "the writing process died; valid up to its last snapshot",
    }.get(facts["state"], facts["message"])
    return f"{facts['state']}: {detail}" if detail else facts["state"]


def _physics(facts: Facts) -> str:
    """Return the line on β, the layer, the noise and the initial density of a run."""
    texts = [
        "" if facts["beta"] is None else f"β = {facts['beta']:g}",
        *(facts["layer"] or [facts["normalization"] or ""]),
        f"noise {facts['noise']:g}" if facts["noise"] else "",
        f"from {facts['initial']}" if facts["initial"] else "",
    ]
    return ", ".join(text for text in texts if text)


def _layer(text: str) -> list[str] | None:
    """Return words on the transformer layer of a case, given as the text of its file.

    The result is None for an empty text, and for a case of another version whose keys are unknown.
    """
    from meanfield.case.summary import describe_layer

    try:
        return describe_layer(parse(text)) if text else None
    except CaseError:
        return None


def _time(facts: Facts) -> str:
    """Return the line on the reached and the planned time of a run, and on its wall time."""
    if facts["last_time"] is None:
        return "no snapshot yet"
    end = "" if facts["end_time"] is None else f" of {facts['end_time']:g}"
    wall = f", in {_duration(facts['wall_time'])}" if facts["wall_time"] else ""  # of the last checkpoint or stop
    remaining = "" if facts["remaining"] is None else f", about {_duration(facts['remaining'])} remain"
    return f"{facts['last_time']:g}{end}{wall}{remaining}"


def _density(facts: Facts) -> str:
    """Return the line on the range of the last density, the number of clusters and the error of the mass."""
    kind = "cluster" if facts["hand_over_time"] is None else "atom"
    low, high, drift, clusters = (facts[n] for n in ("minimum_density", "maximum_density", "mass_drift", "clusters"))
    texts = [
        "" if low is None else f"{low:.3g} to {high:.3g} in the last snapshot",
        "" if clusters is None else f"{clusters:g} {kind}{'' if clusters == 1 else 's'}",
        "" if drift is None else f"mass changed by at most {drift:.1e}",
    ]
    return ", ".join(text for text in texts if text)


def _merger_error(error: float | None, angle: float | None) -> str:
    """Return a phrase on the error of the time of the next merger that the handover from clusters to atoms causes.

    Atoms are point masses. ``error`` is relative, and None if no merger follows by the end. ``angle`` is the error of
    positions, and None before the handover.
    """
    if error is not None:
        return f"estimated handover error {error:.1e} of the time to the next merger"
    return "" if angle is None else "no merger follows by the end"


def _atoms(facts: Facts) -> str:
    """Return words on the handover from clusters to atoms, which are point masses: its time and its estimated errors.

    The text is empty for a run without handover; before the handover it says why there are no atoms yet.
    """
    time, error, angle = (facts[name] for name in HAND_OVER)
    on_mesh = facts["tokens"] is None
    if facts["handover"] and time is None:
        return _describe_atom_limit(facts) or f"not yet: some cluster is wider than handover.spread {_UNITS[on_mesh]}"
    finer = "a finer mesh, or handover.spread below 1," if on_mesh else "handover.spread below 1"
    hint = f"; {finer} reduces it" if (error or 0.0) > LARGE_ERROR else ""
    before = " (without the error of the mesh before the handover)" if on_mesh else ""
    texts = [
        "" if time is None else f"clusters are atoms from t = {time:.6g}, which merge below 1e-4 rad",
        _merger_error(error, angle),
        "" if angle is None else f"{'estimated handover error' if error is None else 'and'} {angle:.1e} rad{before}",
    ]
    return ", ".join(text for text in texts if text) + hint


def _describe_atom_limit(facts: Facts) -> str:
    """Return a remark that a run of tokens has too many clusters for atoms; empty if there are few enough."""
    if facts["tokens"] is None or facts["clusters"] is None:
        return ""
    from meanfield.domains.atoms.handover_states import atom_limit

    max_atoms, d = atom_limit(facts["dimension"]), facts["dimension"]
    return f"not yet: more than {max_atoms} clusters in {d} dimensions" if facts["clusters"] > max_atoms else ""


def _finite(value: float) -> float | None:
    """Return a number, None where the number is not finite and so not known yet."""
    return value if math.isfinite(value) else None


def _describe_resumptions(facts: Facts) -> str:
    """Return words on how often a run was resumed, and on settings that changed; empty if it never was."""
    later = facts["segments"][1:]
    changes = [f"{' '.join(s['changes'])} from t = {s['from_time']:g}" for s in later if s["changes"]]
    times = {0: "", 1: "once"}.get(len(later), f"{len(later)} times")
    return "; ".join([times, *changes]) if later else ""


def _duration(seconds: float) -> str:
    """Return a duration as text such as "12.3 s", or "1:02:03" from a minute on."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def _remaining_seconds(run: Run, segment: Segment) -> float | None:
    """Return the estimated seconds until the end of a run, at the rate of progress in this segment.

    A segment is a part of the run between resumptions. The result is None before the segment has advanced, and if the
    start of the segment is unknown.
    """
    if not segment.start:
        return None
    reached = max([segment.from_time, *run.times[-1:], *run.sample_times[-1:]])
    elapsed = (datetime.now(UTC) - datetime.fromisoformat(segment.start)).total_seconds()
    done = reached - segment.from_time
    return elapsed * (segment.until - reached) / done if done > 0 else None


def _size(size: int) -> str:
    """Return the size of a file in bytes as text, in MB or kB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _mass_drift(run: Run) -> float | None:
    """Return the largest departure of the total mass of a run from its first value.

    The masses are the recorded ones, or without them those of the first and the last snapshot. The result is None for
    tokens, for fields of a PDE, and if neither masses nor snapshots are recorded.
    """
    if run.is_solution or kind_of(run.manifold).has_tokens:  # fields of a PDE need not conserve mass
        return None
    mass = run.diagnostics.get("mass")
    if mass is not None and len(mass):
        return float(abs(mass - mass[0]).max())
    if run.snapshots == 0:
        return None
    return abs(float(run.cell_areas @ (run.density(-1) - run.density(0))))


def _last_value(run: Run, name: str) -> float | None:
    """Return the last value of a diagnostic of a run, or None if it has none."""
    values = run.diagnostics.get(name)
    return float(values[-1]) if values is not None and len(values) else None
