"""Loaded components: their sources for other processes, and the components that a run's file requires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.case.errors import CaseError
from meanfield.components.component import LOADED

if TYPE_CHECKING:
    from meanfield.case.case import Case

Source = tuple[str, str]  # path and text of a file, or an entry point and an empty text
SOURCES: dict[str, str] = {}
"""Text of each source loaded in this process, by path or entry point."""


def loaded_sources(cases: Iterable[Case] = ()) -> tuple[Source, ...]:
    """Return the files and entry points from which components were loaded, with their texts, for other processes.

    Raises CaseError if one of the cases names a component that no file defines.
    """
    of_user = [one for one in LOADED.values() if one.source not in SOURCES]
    if of_user:
        from meanfield.components.in_case import components_of_case

        for one in (one for case in cases for one in components_of_case(case) if one in of_user):
            raise CaseError(
                f"component {one.name}: is defined in this process only; other processes load components from a file: "
                "load_components(FILE)"
            )
    return tuple(SOURCES.items())


def require_components(path: str | Path, attributes: Mapping[str, object], *, same: bool = False) -> None:
    """Raise CaseError unless all user-defined components that a run's file names are loaded.

    ``same`` also requires that their sources have the same digests.
    """
    for line in str(attributes.get("components", "")).splitlines():
        kind, name, digest = line.split()
        loaded = LOADED.get((kind, name))
        if loaded is None:
            what = f"was computed with the user-defined {kind} {name}"
            raise CaseError(f"{path}: {what}; load it: --component FILE.py, in Python load_components(FILE)")
        if same and loaded.sha256 != digest:
            changed = f"sha256 was {digest[:12]}…, in {loaded.source} {loaded.sha256[:12]}…"
            raise CaseError(f"{path}: the {kind} {name} has changed: {changed}; resume with the same file")
