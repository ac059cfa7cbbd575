"""Events of a run in two stages: the appearance of each atom, at the handover or by a merger of two atoms.

Rows of the table are numbered from 0 on. The first rows are the atoms of the handover. A later row contains the row
numbers of the two merged atoms as its ``parents``, as a linkage table does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.domains.atoms.flow import AtomMerger
from meanfield.domains.atoms.velocity import Atoms
from meanfield.domains.common.problem import Event
from solvers.io.layout import Column
from solvers.io.schema import EVENTS
from solvers.mesh.mesh import Floats

NO_PARENTS = (-1, -1)  # of an atom of the handover


def event_columns(dimension: int) -> tuple[Column, ...]:
    """Return the columns of the table of events, in which each row is the appearance of an atom in R^``dimension``.

    Atoms are point masses that replace collapsed clusters.
    """
    return (
        Column("mass", (), "1", "mass of the new atom", (), EVENTS),
        Column("center", (("d", dimension),), "1", "position of the new atom", (), EVENTS),
        Column(
            "parents", (("parent", 2),), "1", "numbers of the atoms that it replaces, -1 at the handover", (), EVENTS
        ),
    )


def handover_events(time: float, atoms: Atoms) -> list[Event]:
    """Return the events of the handover, which replaces collapsed clusters by atoms: one event for each atom."""
    rows = zip(atoms.masses, atoms.positions, strict=True)
    return [(time, {"mass": mass, "center": center, "parents": NO_PARENTS}) for mass, center in rows]


def merger_events(events: Sequence[Event], mergers: Sequence[AtomMerger], atoms: Atoms) -> list[Event]:
    """Return the events of the mergers of atoms in one step, one for each merger.

    ``atoms`` are those after the step, ``events`` those before it.
    """
    now: list[int] = present_atoms([event["parents"] for _, event in events])[-1]
    found: list[Event] = []
    for merger in mergers:
        i, j = merger.atoms
        parents = now[i], now[j]
        found.append((merger.time, {"mass": sum(merger.masses), "center": merger.position, "parents": parents}))
        now[i], now[j] = len(events) + len(found) - 1, -1
    for number, mass in zip([number for number in now if number >= 0], atoms.masses, strict=True):
        if number >= len(events):
            found[number - len(events)][1]["mass"] = (
                mass  # the mass of the diagnostics: another order of summation differs by rounding
            )
    return found


def present_atoms(parents: Sequence[Sequence[float]] | Floats) -> list[list[int]]:
    """Return the numbers of the atoms that are present after each event, in the order of the states.

    ``parents`` (events, 2) are the numbers of the atoms that merge in an event, −1 for an atom of the handover. A new
    atom takes the position of the first of its parents. Raises ValueError for invalid parents.
    """
    rows: list[list[int]] = []
    for number, (first, second) in enumerate(np.asarray(parents, dtype=float).reshape(-1, 2).tolist()):
        if first < 0 and len(rows[-1] if rows else []) == number:
            rows.append([*range(number + 1)])
        else:
            before = list(rows[-1]) if rows else []
            before.remove(int(second))
            before[before.index(int(first))] = number
            rows.append(before)
    return rows
