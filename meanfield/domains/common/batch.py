"""What a domain offers for solving many small cases together, in one array."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.case.case import Case
from meanfield.domains.common.problem import Problem
from solvers.mesh.mesh import Floats
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.systems import Look, Systems

Tables = dict[str, Floats]  # "time" (samples) and the columns (samples, ...)


class Batch(NamedTuple):
    """Three functions, and how many batches take less time than a worker takes to start.

    key    case → what cases have to share to be solved together; None for a case that is solved alone
    size   case → how many such cases go into one array
    solve  cases of one key, their problems, and when their diagnostics and their snapshots are due → numbers of cases
           as they end, with their diagnostics; None in their place for a case that has to go alone
    """

    key: Callable[[Case], Hashable | None]
    size: Callable[[Case], int]
    solve: Callable[
        [Sequence[Case], Sequence[Problem], Sequence[Schedule], Sequence[Schedule]], Iterator[tuple[int, Tables | None]]
    ]
    few: int


def tables_of(
    systems: Systems, measure: Callable[[Iterable[Look]], None], tables: Callable[[int], Tables]
) -> Iterator[tuple[int, Tables | None]]:
    """Yield numbers and tables of systems as they end, None in place of the tables of one that is lost.

    measure   called with the looks at the systems
    tables    number of a system → its diagnostics
    """
    with np.errstate(all="ignore"):
        measure(systems.start())
        waiting = set(systems.running.tolist())
        while waiting:
            measure(systems.step())
            gone = waiting - set(systems.running.tolist())
            waiting -= gone
            for number in sorted(gone):
                yield number, None if number in systems.lost else tables(number)
