"""Components that a run's file names: required before it is resumed or read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meanfield.case.errors import CaseError
from meanfield.components.component import LOADED


def require_components(path: str | Path, attributes: Mapping[str, Any], *, same: bool = False) -> None:
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
