"""Instances of a parametrized test that a run without --exhaustive selects: the marker `sampled`."""

from collections.abc import Mapping, Sequence


def spread_evenly(number: int, count: int) -> set[int]:
    """Return the positions of at most ``count`` of ``number`` instances: the middle ones of groups of equal size."""
    return {(2 * k + 1) * number // (2 * count) for k in range(count)}


def hold_each_value(instances: Sequence[Mapping[str, object]]) -> set[int]:
    """Return the positions of few instances that together hold each value of each parameter.

    Each choice adds most new values. Values are equal where their representations as text are.
    """
    values = [{(name, repr(value)) for name, value in instance.items()} for instance in instances]
    missing, chosen = set[tuple[str, str]]().union(*values), set[int]()
    while missing:
        best = max(range(len(values)), key=lambda k: len(values[k] & missing))
        missing -= values[best]
        chosen.add(best)
    return chosen
