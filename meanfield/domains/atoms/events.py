"""Events of a run in two stages: the appearance of each cluster of atoms, at the handover or by a merger of two.

Rows of the table are numbered from 0 on. The first rows are the clusters at the handover. A later row contains the row
numbers of the two merged clusters as its ``parents``, as a linkage table does. Two clusters merge when they are nearer
than the scale of :mod:`meanfield.clusters.near`, before their atoms touch.
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

NO_PARENTS = (-1, -1)  # of a cluster at the handover


def event_columns(dimension: int) -> tuple[Column, ...]:
    """Return the columns of the table of events, in which each row is the appearance of a cluster in R^``dimension``.

    Atoms are point masses that replace collapsed clusters.
    """
    return (
        Column("mass", (), "1", "mass of the new cluster", (), EVENTS),
        Column("center", (("d", dimension),), "1", "center of the new cluster", (), EVENTS),
        Column(
            "parents", (("parent", 2),), "1", "numbers of the clusters that it replaces, -1 at the handover", (), EVENTS
        ),
    )


def handover_events(time: float, clusters: Atoms) -> list[Event]:
    """Return the events of the handover, which replaces collapsed clusters by atoms: one event for each cluster."""
    rows = zip(clusters.masses, clusters.positions, strict=True)
    return [(time, {"mass": mass, "center": center, "parents": NO_PARENTS}) for mass, center in rows]


def merger_events(events: Sequence[Event], mergers: Sequence[AtomMerger], clusters: Atoms) -> list[Event]:
    """Return the events of the mergers of clusters in one step, one for each merger.

    ``clusters`` are the clusters after the step, ``events`` the events before the step.
    """
    now: list[int] = present_clusters([event["parents"] for _, event in events])[-1]
    found: list[Event] = []
    for merger in mergers:
        i, j = merger.atoms
        parents = now[i], now[j]
        found.append((merger.time, {"mass": sum(merger.masses), "center": merger.position, "parents": parents}))
        now[i], now[j] = len(events) + len(found) - 1, -1
    for number, mass in zip([number for number in now if number >= 0], clusters.masses, strict=True):
        if number >= len(events):
            found[number - len(events)][1]["mass"] = (
                mass  # the mass of the diagnostics: another order of summation differs by rounding
            )
    return found


def present_clusters(parents: Sequence[Sequence[float]] | Floats) -> list[list[int]]:
    """Return the numbers of the clusters that are present after each event, in the order of their first atoms.

    ``parents`` (events, 2) are the numbers of the clusters that merge in an event, −1 for a cluster of the
    handover. A new cluster takes the position of the first of its parents. Raises ValueError for invalid parents.
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
