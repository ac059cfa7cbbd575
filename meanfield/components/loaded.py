"""Components that are loaded: their sources for other processes, and those that a run's file requires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.case.errors import CaseError
from meanfield.components.component import LOADED

if TYPE_CHECKING:
    from meanfield.case.case import Case

Source = tuple[str, str]  # a file's path and text, or an entry point and an empty text
SOURCES: dict[str, str] = {}
"""What has been loaded, in this process."""


def loaded_sources(cases: Iterable[Case] = ()) -> tuple[Source, ...]:
    """What has been loaded, for other processes.

    Raises CaseError for a function that no file holds where one of the cases names it.
    """
    of_user = [one for one in LOADED.values() if one.source not in SOURCES]
    if of_user:
        from meanfield.components.in_case import used_by

        for one in (one for case in cases for one in used_by(case) if one in of_user):
            raise CaseError(
                f"component {one.name}: is a function of this process; other processes need it in a file: "
                "load_components(FILE)"
            )
    return tuple(SOURCES.items())


def require_components(path: str | Path, attributes: Mapping[str, object], *, same: bool = False) -> None:
    """Raise CaseError unless the components of a run's file are loaded, ``same`` ones to the last character."""
    for line in str(attributes.get("components", "")).splitlines():
        kind, name, digest = line.split()
        loaded = LOADED.get((kind, name))
        if loaded is None:
            what = f"was computed with the user-defined {kind} {name}"
            raise CaseError(f"{path}: {what}; load it: --component FILE.py, in Python load_components(FILE)")
        if same and loaded.sha256 != digest:
            changed = f"sha256 {digest[:12]}…, that of {loaded.source} is {loaded.sha256[:12]}…"
            raise CaseError(f"{path}: its {kind} {name} was another: {changed}; resume with the same file")
