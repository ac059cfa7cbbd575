"""Diagnostics of a case: those that are possible, and those that are recorded unless others are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meanfield.case.case import Case
from meanfield.domains.domain import load

if TYPE_CHECKING:
    from meanfield.diagnostics.table import Table

_MANY = 1000  # tokens, all pairs of which are only summed on request


def possible_diagnostics(case: Case) -> tuple[str, ...]:
    """The names that ``output.diagnostics`` may have, in the order of the domain's table."""
    table: Table = load(case.domain.diagnostics)
    return tuple(name for name, entry in table.items() if entry.possible(case))


def default_diagnostics(case: Case) -> tuple[str, ...]:
    """All that are possible, less those of special studies and, among many particles, those over all pairs."""
    table: Table = load(case.domain.diagnostics)
    many = (case.domain.count or 0) > _MANY
    chosen = (name for name in possible_diagnostics(case) if table[name].default)
    return tuple(name for name in chosen if not (many and table[name].sums_pairs))
