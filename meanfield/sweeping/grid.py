"""Keys of a sweep: the values of each key, and the points that combine them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Annotated, Any, Literal, TypeVar, overload

import msgspec
import numpy as np

from meanfield.case.errors import CaseError, refusal, translate
from meanfield.sections.section import Section

Value = Any  # a TOML value: a number, text, a list, a table
Row = dict[str, Value]
_Table = TypeVar("_Table", bound=Section)
MAX_POINTS = 250_000  # of a sweep, and therefore also values of a key
Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_POINTS)]
RANDOM_DESIGNS = ("random", "sobol", "latin hypercube")  # designs with points anywhere in the ranges
_WHOLE = 1e-9  # relative rounding error of the integers of a range


class Range(Section, frozen=True, kw_only=True):
    """Values of a varied key in a range: numbers ``from`` … ``to``, evenly spaced or by a constant factor.

    There are ``count`` numbers. Without ``count`` the numbers are random.

    integer   integers only: all of them without a count, at most ``count`` different ones with a count
    """

    first: float = msgspec.field(name="from")
    last: float = msgspec.field(name="to")
    count: Number | None = None
    spacing: Literal["linear", "log"] = "linear"
    integer: bool = False

    def drawn_at(self, fraction: float) -> float:
        """Return the number of the range for a uniform draw 0 ≤ ``fraction`` < 1.

        In a linear range of integers, all integers, ends included, have equal probability.
        """
        if not self.integer:
            return self.at(fraction)
        if self.spacing == "log":
            ends = Range(first=self.first - 0.5, last=self.last + 0.5, spacing="log")
            return min(max(round(ends.at(fraction)), int(self.first)), int(self.last))
        return int(self.first) + int(fraction * (self.last - self.first + 1))

    def at(self, fraction: float) -> float:
        """Return the number at a fraction 0 ≤ ``fraction`` ≤ 1 of the range, in its linear or logarithmic spacing."""
        if fraction == 1.0:
            return self.last
        if self.spacing == "linear":
            return self.first + fraction * (self.last - self.first)
        return float(self.first * (self.last / self.first) ** fraction)


class Seeds(Section, frozen=True):
    """Seeds 0 … ``seeds`` − 1: runs that differ only in their random numbers."""

    seeds: Number


@dataclass(frozen=True)
class SweptKey:
    """Values that one key of the case takes in a sweep: the list ``values``, or random numbers in the range ``drawn``.

    ``spacing`` is the spacing of the key's axis: "log", "linear", "seeds" or "list".
    """

    spacing: str
    values: tuple[Value, ...] = ()
    drawn: Range | None = None

    def draw(self, random: np.random.Generator) -> Value:
        """Return a random value of the varied key."""
        if self.drawn is not None:
            return self.drawn.drawn_at(float(random.random()))
        return self.values[int(random.integers(len(self.values)))]

    def value_at(self, fraction: float) -> Value:
        """Return the value of the varied key for a uniform draw 0 ≤ ``fraction`` < 1."""
        if self.drawn is not None:
            return self.drawn.drawn_at(fraction)
        return self.values[int(fraction * len(self.values))]


class Rows(Sequence[Row]):
    """Values of the varied keys at each point, stored by key.

    A dictionary for each point would take ten times the memory.
    """

    def __init__(self, columns: dict[str, list[Value]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    @overload
    def __getitem__(self, number: int) -> Row: ...

    @overload
    def __getitem__(self, number: slice) -> Rows: ...

    def __getitem__(self, number: int | slice) -> Row | Rows:
        some = {name: values[number] for name, values in self._columns.items()}
        return Rows(some) if isinstance(number, slice) else some


def plan(table: Any, design: str, points: int | None, seed: int, max_points: int) -> tuple[dict[str, str], Rows]:
    """Return the spacing of each varied key, and the values of these keys at each point (run) of a sweep.

    ``table`` is the table [keys] of a sweep file. Raises CaseError for an invalid table or too many points.
    """
    if not isinstance(table, dict) or not table:
        expected = 'a table such as {"attention.beta" = [1, 4, 9]}'
        missing = table is None or table == {}
        raise CaseError(f"keys: missing; expected {expected}") if missing else refusal("keys", table, expected)
    keys = {key: _varied_values(f"keys.{key}", value, design) for key, value in flatten_table(table, _is_range).items()}
    if design == "random":
        random = np.random.default_rng(seed)
        rows: Iterator[Row] = ({name: key.draw(random) for name, key in keys.items()} for _ in range(points or 0))
    elif design in RANDOM_DESIGNS:
        rows = (
            {name: key.value_at(fraction) for (name, key), fraction in zip(keys.items(), fractions, strict=True)}
            for fractions in _sample_design(design, len(keys), min(points or 0, max_points + 1), seed)
        )
    else:
        rows = _DESIGNS[design](keys)
    columns: dict[str, list[Value]] = {name: [] for name in keys}
    for number, row in enumerate(islice(rows, max_points + 1)):
        if number == max_points:
            raise CaseError(f"keys: more than {max_points} points; expected at most that many")
        for name, value in row.items():
            columns[name].append(value)
    return {name: key.spacing for name, key in keys.items()}, Rows(columns)


def _sample_design(design: str, keys: int, points: int, seed: int) -> list[list[float]]:
    """Return a Sobol or Latin hypercube sample (points, keys) of [0, 1)^keys, more evenly spread than random points."""
    from scipy.stats import qmc

    random = np.random.default_rng(seed)
    if design == "sobol":  # in powers of 2, whose first points are also well distributed
        found = qmc.Sobol(keys, seed=random).random_base2(max(points - 1, 0).bit_length())[:points]
    else:
        found = qmc.LatinHypercube(keys, seed=random).random(points)
    return np.minimum(found, np.nextafter(1.0, 0.0)).tolist()  # type: ignore[no-any-return]


def flatten_table(table: dict[str, Any], is_leaf: Callable[[Any], bool] = lambda value: False) -> dict[str, Any]:
    """Return a nested table as one table with dotted keys; an inner table for which ``is_leaf`` holds stays a value.

    The result is the same whether TOML had the keys quoted, dotted or as nested tables.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value and not is_leaf(value):
            found |= {f"{name}.{inner}": leaf for inner, leaf in flatten_table(value, is_leaf).items()}
        else:
            found[name] = value
    return found


def _is_range(value: object) -> bool:
    """Return whether a value in the table [keys] of a sweep file is a range or seeds, not a table of keys."""
    return isinstance(value, dict) and bool(value.keys() & {"from", "to", "count", "spacing", "integer", "seeds"})


def _varied_values(name: str, value: Any, design: str) -> SweptKey:
    """Return the values of one varied key from its entry in the table [keys] of a sweep file.

    Raises CaseError for an invalid entry.
    """
    if isinstance(value, list) and value:
        return SweptKey("list", tuple(value))
    if not isinstance(value, dict):
        raise refusal(name, value, "a list of values, {from, to, count, spacing} or {seeds}")
    if "seeds" in value:
        return SweptKey("seeds", tuple(range(_convert_entry(name, value, Seeds).seeds)))
    numbers = _convert_entry(name, value, Range)
    if numbers.spacing == "log" and not (numbers.first > 0 and numbers.last > 0):
        raise refusal(name, value, 'numbers > 0 with spacing = "log"')
    if numbers.integer and not (
        numbers.first.is_integer() and numbers.last.is_integer() and numbers.first <= numbers.last
    ):
        raise refusal(name, value, "whole numbers from <= to with integer = true")
    if design in RANDOM_DESIGNS:
        if numbers.count is not None:
            raise refusal(f"{name}.count", numbers.count, f'not allowed with design = "{design}", which has points')
        return SweptKey(numbers.spacing, drawn=numbers)
    if numbers.integer:
        return SweptKey(numbers.spacing, _integers(name, numbers))
    if numbers.count is None:
        raise CaseError(f"{name}.count: missing; expected an integer >= 1")
    return SweptKey(numbers.spacing, _numbers(numbers, all(isinstance(value[end], int) for end in ("from", "to"))))


def _convert_entry(name: str, value: dict[str, Any], kind: type[_Table]) -> _Table:
    """Return an entry of the table [keys] of a sweep file as an object of class ``kind``.

    Raises CaseError, which names the key.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CaseError(f"{name}.{translate(error, value, kind)}") from None


def _integers(name: str, numbers: Range) -> tuple[int, ...]:
    """Return all integers of a range, or about ``count`` evenly spread ones if it has a count, each once.

    Raises CaseError for more than MAX_POINTS integers.
    """
    first, last = int(numbers.first), int(numbers.last)
    if numbers.count is None:
        if last - first >= MAX_POINTS:
            raise CaseError(f"{name}: {last - first + 1} integers; expected at most {MAX_POINTS}, or a count")
        return tuple(range(first, last + 1))
    return tuple(dict.fromkeys(round(numbers.at(k / max(numbers.count - 1, 1))) for k in range(numbers.count)))


def _numbers(numbers: Range, between_integers: bool) -> tuple[float, ...]:
    """Return the ``count`` numbers of a range.

    The numbers are integers if ``between_integers`` and all numbers are whole, as for a resolution.
    """
    assert numbers.count is not None
    found = [numbers.at(k / max(numbers.count - 1, 1)) for k in range(numbers.count)]
    if between_integers and all(math.isclose(x, round(x), rel_tol=_WHOLE) for x in found):
        return tuple(round(x) for x in found)
    return tuple(found)


def _grid(keys: dict[str, SweptKey]) -> Iterator[Row]:
    """Yield the points (runs) of the design "grid": all combinations of values; the last key varies fastest."""
    for values in product(*(key.values for key in keys.values())):
        yield dict(zip(keys, values, strict=True))


def _zip(keys: dict[str, SweptKey]) -> Iterator[Row]:
    """Yield the points (runs) of the design "zip": the first value of each key, then the second of each key, and so on.

    Raises CaseError for keys with different numbers of values.
    """
    first, *others = keys
    for name in others:
        if len(keys[name].values) != len(keys[first].values):
            found, count = len(keys[name].values), len(keys[first].values)
            raise CaseError(f'keys.{name}: {found} values; expected {count}, as keys.{first} has, with design = "zip"')
    for values in zip(*(key.values for key in keys.values()), strict=True):
        yield dict(zip(keys, values, strict=True))


_DESIGNS = {"grid": _grid, "zip": _zip}
