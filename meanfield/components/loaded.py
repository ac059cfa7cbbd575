"""Sources of the components that are loaded in this process, for other processes: light to import."""

from __future__ import annotations

from meanfield.case.errors import CaseError
from meanfield.components.component import LOADED

Source = tuple[str, str]  # a file's path and text, or an entry point and an empty text
SOURCES: dict[str, str] = {}
"""What has been loaded, in this process."""


def loaded_sources() -> tuple[Source, ...]:
    """What has been loaded, for other processes. Raises CaseError for a function that no file holds."""
    for one in LOADED.values():
        if one.source not in SOURCES:
            raise CaseError(
                f"component {one.name}: is a function of this process; other processes need it in a file: "
                "load_components(FILE)"
            )
    return tuple(SOURCES.items())
