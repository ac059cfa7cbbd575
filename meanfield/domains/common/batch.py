"""Interface of a domain for the solution of many small cases together, in one array."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.case.case import Case
from meanfield.domains.common.problem import Problem
from solvers.mesh.mesh import Floats
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.systems import Observation, Systems

Tables = dict[str, Floats]  # "time" (samples) and the columns (samples, ...)


class Batch(NamedTuple):
    """Functions by which a domain solves many small cases together in one array: a batch.

    key     case → properties that cases have to share to be solved together; None for a case that is solved alone
    size    case → number of such cases in one array
    solve   cases of one key, their problems, and the schedules of their diagnostics and their snapshots → numbers of
            cases as they end, with their diagnostics; None instead of the diagnostics for a case that has to be solved
            alone
    few     number of batches that take less time than the start of a worker
    """

    key: Callable[[Case], Hashable | None]
    size: Callable[[Case], int]
    solve: Callable[
        [Sequence[Case], Sequence[Problem], Sequence[Schedule], Sequence[Schedule]], Iterator[tuple[int, Tables | None]]
    ]
    few: int


def tables_of(
    systems: Systems, measure: Callable[[Iterable[Observation]], None], tables: Callable[[int], Tables]
) -> Iterator[tuple[int, Tables | None]]:
    """Yield the number and the diagnostics of each case of a batch when its run ends, None where no step was possible.

    systems   runs of the cases, in one array
    measure   called with the samples of the systems, to compute diagnostics
    tables    number of a case → its diagnostics
    """
    with np.errstate(all="ignore"):
        measure(systems.start())
        active = set(systems.running.tolist())
        while active:
            measure(systems.step())
            ended = active - set(systems.running.tolist())
            active -= ended
            for number in sorted(ended):
                yield number, None if number in systems.lost else tables(number)
