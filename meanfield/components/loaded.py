"""Sources of the components that are loaded in this process, for other processes: light to import."""

from __future__ import annotations

from collections.abc import Iterable
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
