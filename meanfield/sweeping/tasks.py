"""Tasks of a sweep: points that one worker solves together, in one array where possible."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from meanfield.case.load import to_toml
from meanfield.components.loaded import Source, loaded_sources
from meanfield.domains.domain import load

if TYPE_CHECKING:
    from meanfield.case.case import Case
    from meanfield.domains.common.batch import Batch
    from meanfield.sweeping.point import PointResult

MAX_KEYS = 64  # number of batches that are being filled at once
Task = dict[int, "Case"]  # the cases of some points, by number
Solved = Generator["dict[int, PointResult]", None, None]


@dataclass(frozen=True)
class Work:
    """Points of a sweep that a solver has to solve.

    numbers   of the points
    case      number → case
    keep      whether run files are kept
    limit     seconds after which a point is stopped, or None
    """

    numbers: Sequence[int]
    case: Callable[[int], Case]
    keep: bool = False
    limit: float | None = None

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Return the sources of the user-defined components that the cases may name, for other processes.

        Raises CaseError for components that cannot be sent.
        """
        return loaded_sources(map(self.case, self.numbers))

    @property
    def few(self) -> int:
        """Return the number of batches of points (runs) that take less time than the start of a worker process."""
        batch = batch_of(self.case(self.numbers[0])) if len(self.numbers) else None
        return 0 if batch is None else batch.few

    def tasks(self, at_once: int = 1) -> Iterator[Task]:
        """Yield all tasks, created on demand; a task is a group of points (runs) that one worker solves.

        ``at_once``: number of points in a task, if its points are not solved together in one array.
        """
        filling: dict[Hashable, Task] = {}
        for number in self.numbers:
            case = with_absolute_paths(self.case(number))
            batch = None if self.keep or self.limit is not None else batch_of(case)
            key = None if batch is None else batch.key(case)
            size = at_once if batch is None or key is None else max(batch.size(case), at_once)
            name = type(case.domain), key
            task = filling.setdefault(name, {})
            task[number] = case
            if len(task) >= size:
                yield filling.pop(name)
            elif len(filling) > MAX_KEYS:
                yield filling.pop(next(iter(filling)))
        yield from filling.values()


Solver = Callable[[Work], Solved]


def as_text(task: Task) -> dict[int, str]:
    """Return the cases of a task in TOML, for another process."""
    return {number: to_toml(case) for number, case in task.items()}


def batch_of(case: Case) -> Batch | None:
    """Return the functions with which the case's domain solves many cases together in one array; None without them."""
    if case.domain.batch is None:
        return None
    batch: Batch = load(case.domain.batch)
    return batch


def with_absolute_paths(case: Case) -> Case:
    """Return the case with absolute paths of its files, because a worker process may run in another folder."""
    replace = msgspec.structs.replace
    if case.attention.file is not None:
        case = replace(case, attention=replace(case.attention, file=str(Path(case.attention.file).absolute())))
    if (file := getattr(case.initial, "file", None)) is not None:
        case = replace(case, initial=replace(case.initial, file=str(Path(file).absolute())))
    return case
