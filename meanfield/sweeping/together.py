"""Solution of a task by one worker: points together in one array where possible, the rest one by one."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from meanfield.case.errors import CaseError
from meanfield.components.loaded import Source
from meanfield.sweeping.point import DONE, FAILED, FINISHED, PointResult, describe_error, solve_point
from solvers.io.repair import FileError

if TYPE_CHECKING:
    from meanfield.case.case import Case

_REPORT = 1.0  # seconds after which available results are returned


def solve_task(
    cases: Mapping[int, Case | str],
    keep: bool = False,
    limit: float | None = None,
    components: tuple[Source, ...] = (),
) -> Iterator[dict[int, PointResult]]:
    """Yield results of points (runs) by number, in groups as they arrive; errors are in the results, and never raised.

    ``cases``: the case of each point, or its TOML. The other arguments are those of
    :func:`meanfield.sweeping.point.solve_point`.
    """
    waiting = dict(cases)
    if len(cases) > 1 and not keep and limit is None:
        try:
            with suppress(CaseError, FileError, MemoryError):  # the solution of single points reports them
                for results in _together(cases, components):
                    for number in results:
                        del waiting[number]
                    yield results
        except Exception as error:  # an error of an unknown point
            yield {number: PointResult(FAILED, reason=describe_error(error)) for number in waiting}
            return
    for number, case in waiting.items():
        yield {number: solve_point(case, keep, limit, components)}


def _together(cases: Mapping[int, Case | str], components: tuple[Source, ...]) -> Iterator[dict[int, PointResult]]:
    """Yield results, by number in groups, of the points (runs) that can be solved together in one array.

    Points that fail in this array are omitted. The caller solves each of them alone, to report the error.
    """
    from meanfield.case.load import parse
    from meanfield.domains.common.problem import Problem
    from meanfield.simulation import sample_schedule, set_up, snapshot_schedule
    from meanfield.sweeping.tasks import batch_of

    began, numbers, problems = clock.monotonic(), list[int](), list[Problem]()
    if components:
        from meanfield.components.loading import load_sources

        load_sources(components)
    parsed = {number: parse(case) if isinstance(case, str) else case for number, case in cases.items()}
    batch = batch_of(next(iter(parsed.values())))
    if batch is None or any(batch.key(case) is None for case in parsed.values()):
        return
    for number, case in parsed.items():
        try:
            problems.append(set_up(case))
        except CaseError:
            continue
        numbers.append(number)
    together, results = [parsed[number] for number in numbers], dict[int, PointResult]()
    schedules = ([schedule(case) for case in together] for schedule in (sample_schedule, snapshot_schedule))
    for index, tables in batch.solve(together, problems, *schedules):
        if tables is not None:
            results[numbers[index]] = PointResult(DONE, FINISHED, tables=tables)
        if results and clock.monotonic() - began > _REPORT:
            yield _with_wall_time(results, clock.monotonic() - began)
            began, results = clock.monotonic(), {}
    if results:
        yield _with_wall_time(results, clock.monotonic() - began)


def merge_groups(groups: Iterable[dict[int, PointResult]]) -> dict[int, PointResult]:
    """Return all groups of results by number as one dictionary."""
    return {number: result for results in groups for number, result in results.items()}


def _with_wall_time(results: dict[int, PointResult], seconds: float) -> dict[int, PointResult]:
    """Return results of runs that were solved together in ``seconds``; the wall time of each is an equal part."""
    return {number: replace(result, wall_time=seconds / len(results)) for number, result in results.items()}
