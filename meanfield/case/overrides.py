"""Overrides such as ``attention.beta=4`` of the parsed TOML of a case."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from meanfield.case.errors import CaseError, refusal, show, show_key

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_BARE_WORDS = re.compile(r"([^\W\d]|[/~.])[\w .,:;!?/~-]*")
_SNAPSHOTS = ("snapshots", "every", "times")
_FORMER_SECTIONS = {"hand_over": "handover"}  # former names of sections, which stay valid in files and overrides
Toml = dict[str, Any]  # tables of a parsed TOML text
Overrides = Mapping[str, Any] | Sequence[str]  # values by dotted keys, or texts like "attention.beta=4"


def overrides_of(changes: Overrides) -> list[str]:
    """Return changes of a case as a list of overrides "key=value".

    A mapping has dotted keys, and numbers, texts, lists, tables or records as values. Overrides are returned unchanged.
    Raises CaseError for anything else: also a text, although it is a sequence, and a value None, which TOML lacks.
    """
    if isinstance(changes, str) or not isinstance(changes, Mapping | Sequence):
        raise CaseError(f"override {show(changes)}: expected a list of KEY=VALUE, or a mapping")
    if not isinstance(changes, Mapping):
        for change in changes:
            if not isinstance(change, str):
                raise CaseError(f"override {show(change)}: expected KEY=VALUE, for example attention.beta=4")
        return list(changes)
    absent = next((key for key, value in changes.items() if value is None), None)
    if absent is not None:
        raise CaseError(f"override {absent} = None: expected a number, text, list or table")
    return [f"{key}={inline(value)}" for key, value in changes.items()]


def inline(value: object) -> str:
    """Return a value in TOML on one line; NumPy numbers, arrays and records are converted to Python."""
    value = value.tolist() if hasattr(value, "tolist") else value
    value = without_none(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show_key(key)} = {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def without_none(data: Any) -> Any:
    """Return nested data without keys that are None, since TOML has no null."""
    if isinstance(data, dict):
        return {key: without_none(value) for key, value in data.items() if value is not None}
    return [without_none(item) for item in data] if isinstance(data, list | tuple) else data


def canonicalize_section(key: str) -> str:
    """Return a dotted key of a case with the current name of its section."""
    section, dot, rest = key.partition(".")
    return _FORMER_SECTIONS.get(section, section) + dot + rest


def canonicalize_sections(data: Toml) -> Toml:
    """Return the tables of a case by the current names of their sections.

    Raises CaseError for a section that is there by both of its names.
    """
    for former, name in _FORMER_SECTIONS.items():
        if former in data and name in data:
            raise CaseError(f"{former}: not allowed beside {name}, its present name", former)
    return {canonicalize_section(key): value for key, value in data.items()}


def apply(data: Toml, overrides: Sequence[str]) -> None:
    """Set each ``KEY=VALUE`` in ``data``; VALUE is TOML, or bare words for a string.

    Keys that contradict an override are removed: any of output.snapshots, every and times removes the choice of the
    file among them; output.spacing=linear and a time.end not after output.first remove output.first;
    another initial.kind empties its section; points and tokens remove domain.count. Raises CaseError for anything but a
    dotted key, ``=`` and a value.
    """
    pairs = [_split(override) for override in overrides]
    _remove_contradicted(data, dict(pair for key, value in pairs for pair in _flattened(key, value)))
    for key, value in pairs:
        _set(data, key, value)


def _split(override: str) -> tuple[str, object]:
    """Return the key and the value of an override ``KEY=VALUE``; raise CaseError if it cannot be parsed."""
    key, equals, text = (part.strip() for part in override.partition("="))
    if not (equals and _KEY.fullmatch(key) and text and override.isprintable()):
        raise CaseError(f"override {show(override)}: expected KEY=VALUE, for example attention.beta=4")
    try:
        return canonicalize_section(key), tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        if _BARE_WORDS.fullmatch(text):
            return canonicalize_section(key), text
        raise CaseError(
            f"override {show(override)}: expected a TOML value after =, such as 0.5 or [1.0, 2.0]"
        ) from None


def _flattened(key: str, value: object) -> list[tuple[str, object]]:
    """Return a key and a value as pairs; of a section, the pairs of its keys."""
    return [(f"{key}.{name}", item) for name, item in value.items()] if isinstance(value, dict) else [(key, value)]


def _remove_contradicted(data: Toml, new: Toml) -> None:
    """Remove the values of a case in place that contradict its overrides ``new``."""
    output, initial = data.get("output"), data.get("initial")
    if isinstance(output, dict) and any(f"output.{name}" in new for name in _SNAPSHOTS):
        for name in _SNAPSHOTS:
            output.pop(name, None)
    if isinstance(output, dict) and new.get("output.spacing") == "linear":
        output.pop("first", None)
    if isinstance(output, dict) and "output.first" not in new and _is_late(output.get("first"), new.get("time.end")):
        output.pop("first", None)  # the default for this end replaces it
    if isinstance(initial, dict) and new.get("initial.kind", initial.get("kind")) != initial.get("kind"):
        if new.get("initial.kind") in ("points", "tokens"):
            remove_initial(data)
        data["initial"] = {}


def remove_initial(data: Toml) -> None:
    """Remove the section [initial] of a case that points replace, and the number of tokens, which the points set."""
    data.pop("initial", None)
    domain = data.get("domain")
    if isinstance(domain, dict):
        domain.pop("count", None)


def _is_late(first: Any, end: Any) -> bool:
    """Return whether the first output time of a case file is at or after an end time that an override sets."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (first, end))
    return numbers and first >= end > 0


def _set(data: Toml, key: str, value: object) -> None:
    """Set a dotted key in the nested tables of a case, in place."""
    *tables, name = key.split(".")
    for depth, table in enumerate(tables):
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise refusal(".".join(tables[: depth + 1]), data, "a table")
    data[name] = value
