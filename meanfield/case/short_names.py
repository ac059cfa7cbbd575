"""Short names of the keys of a case, such as ``beta`` for ``attention.beta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meanfield.case.errors import CaseError, show
from meanfield.case.overrides import canonicalize_section
from meanfield.case.schema import entries


def full_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of a case by full keys, from changes by short names: the last part of a key.

    A full key, and the name of a section, such as ``initial``, stand for themselves. Of several keys with the same last
    part the one with the fewest parts is meant. Raises CaseError for an unknown name, and where several keys are meant.
    """
    return {_full_name(canonicalize_section(name), value): value for name, value in changes.items()}


def _full_name(short: str, value: Any) -> str:
    """Return the dotted key of a short name, its last part; raise CaseError if several keys or none match."""
    names = [name for name in dict.fromkeys(entry.name for entry in entries()) if "[]" not in name]
    if short in names or any(name.partition(".")[0] == short for name in names):
        return short
    found = [name for name in names if name.rpartition(".")[2] == short]
    found = [name for name in found if name.count(".") == min(other.count(".") for other in found)]
    if len(found) == 1:
        return found[0]
    expected = f"one of {', '.join(found)}" if found else "a parameter, or the last part of a key of `meanfield keys`"
    raise CaseError(f"{short} = {show(value)}: expected {expected}", short)
