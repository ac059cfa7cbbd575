"""Short names of the keys of a case, such as ``beta`` for ``attention.beta``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from meanfield.case.errors import CaseError, did_you_mean, show
from meanfield.case.overrides import Overrides, canonicalize_section, overrides_of
from meanfield.case.schema import entries


def overrides_of_case(changes: Overrides) -> list[str]:
    """Return changes of a case as overrides "key=value", from a mapping by short names or keys, or from texts.

    Raises CaseError for a name of no key or of several keys, and for changes that are no such mapping or texts.
    """
    return overrides_of(full_names(changes) if isinstance(changes, Mapping) else changes)


def full_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of a case by full keys, from changes by short names: the last part of a key.

    A dotted key, and the name of a section, such as ``initial``, stand for themselves; a section with a text means its
    kind, as in ``initial="uniform"``. Of several keys with the same last part the one with the fewest parts is meant.
    Raises CaseError for an unknown name, where several keys are meant, and for a key that is given twice.
    """
    found: dict[str, Any] = {}
    for name, value in changes.items():
        key = _full_name(str(name), value)
        if key in found:
            raise CaseError(f"{key} = {show(value)}: expected once, not also as {key.rpartition('.')[2]}", key)
        found[key] = value
    return found


def _full_name(name: str, value: Any) -> str:
    """Return the dotted key of a short name with a value. Raises CaseError if several keys or none match."""
    short = canonicalize_section(name)
    if "." in short:
        return short
    names = _names()
    if any(key.partition(".")[0] == short for key in names):
        kind = f"{short}.kind"
        return kind if isinstance(value, str) and kind in names else short
    found = [key for key in names if key.rpartition(".")[2] == short]
    found = [key for key in found if key.count(".") == min(other.count(".") for other in found)]
    if len(found) == 1:
        return found[0]
    hint = did_you_mean(short, [key.rpartition(".")[2] for key in names])
    several, nothing = f"one of {', '.join(found)}", f"a parameter, or the last part of a key of `meanfield keys`{hint}"
    raise CaseError(f"{short} = {show(value)}: expected {several if found else nothing}", short)


@cache
def _names() -> tuple[str, ...]:
    """Return the keys of a case that are not in a list of tables."""
    return tuple(name for name in dict.fromkeys(entry.name for entry in entries()) if "[]" not in name)
