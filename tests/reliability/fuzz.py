"""Malformed cases through load, check and setup: mutants of the shipped cases, by keys and values of the schema.

Each mutant is a valid case, or is refused in one line; anything else is a failure. The figure of merit is the number
of failures among the mutants. A large case is checked and not set up.
"""

from __future__ import annotations

import copy
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.schema import schema as schema
from meanfield.runtime.cost import estimate
from meanfield.shipped import shipped_texts
from meanfield.simulation import set_up
from solvers.io.run_file import FileError

LARGEST = 600  # maximum number of cells, or of coordinates of tokens, of a case that is set up
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 64, 10**6, 2**31, 2**63 - 1, -(2**63), 0.0, -0.0, 0.5, 1.0, -1.5, 1e-9, 1e-300, 5e-324, 1e12,
    1e100, 1e154, 1.7e308, -1e308, float("nan"), float("inf"), True, False, "", "uniform", "softmax", "none", "β",
    "a/b", "\n", "x" * 300, "../../etc", "/dev/null", [], [0.0], [1.0, 0.0], [[1, 0], [0, 1]], [[1]], [[]],
    [[1e200, 0], [0, 1]], [float("nan")], ["a"], {}, {"a": 1}, [{}], {"kind": "uniform"}, {"ensemble": "goe"},
)  # fmt: skip
Table = dict[str, Any]


def failures(folder: Path, count: int, seed: int = 0) -> Counter[str]:
    """Make and try ``count`` mutants, and return the failures by frequency. Nothing is written to ``folder``."""
    chance, found = random.Random(seed), Counter[str]()
    tables = [read(text) for _, text in sorted(shipped_texts("cases").items())]
    words = _words(schema())
    for _ in range(count):
        if wrong := failure_of(_mutant(tables, words, chance)):
            found[wrong] += 1
    return found


def failure_of(text: str) -> str | None:
    """Return the failure of reading, checking and setting up a case, or None for a valid case or a one-line refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            case = parse(text)
            estimate(case)
            numbers = (case.domain.count or 0) * case.domain.d if case.domain.has_tokens else 0
            if max(numbers, case.domain.cells_and_width()[0]) <= LARGEST:
                set_up(case).initial()
    except (CaseError, FileError) as error:
        wrong = [
            len(str(part))
            for part in getattr(error, "parts", ()) or (error,)
            if "\n" in str(part) or len(str(part)) >= 1000
        ]
        return f"a message of {wrong[0]} letters" if wrong else None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:60]} ({Path(place.filename).name}:{place.lineno})"
    return None


def read(text: str) -> Table:
    import tomllib

    table = tomllib.loads(text)
    domain = table["domain"]
    for name, small in (("resolution", 12), ("count", 20), ("radial_resolution", 8)):
        if name in domain:
            domain[name] = min(domain[name], small)
    return table


def _words(part: Any) -> list[str]:
    """Return the names of all keys in a schema, and the words that are possible values."""
    found: set[str] = set()
    if isinstance(part, dict):
        found |= set(part.get("properties", {})) | {word for word in part.get("enum", ()) if isinstance(word, str)}
        for value in part.values():
            found |= set(_words(value))
    elif isinstance(part, list):
        for value in part:
            found |= set(_words(value))
    return sorted(found)


def _mutant(tables: list[Table], words: list[str], chance: random.Random) -> str:
    """Return the text of a mutant: some changes of a table, and sometimes of characters."""
    table = copy.deepcopy(chance.choice(tables))
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        chance.choice(MUTATIONS)(table, tables, words, chance)
    text = tomli_w.dumps(table)
    if chance.random() < 0.1:
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice(["", "[", "=", "\x00", "]]", "1e999", "\n", '"']) + text[place + 1 :]
    return text


def _section(table: Table, chance: random.Random) -> Table:
    sections = [value for value in table.values() if isinstance(value, dict)]
    return chance.choice([table, *sections * 4])


def _set_known(table: Table, tables: list[Table], words: list[str], chance: random.Random) -> None:
    section = _section(table, chance)
    if section:
        section[chance.choice(sorted(section))] = _value(words, chance)


def _set_any(table: Table, tables: list[Table], words: list[str], chance: random.Random) -> None:
    _section(table, chance)[chance.choice(words)] = _value(words, chance)


def _drop(table: Table, tables: list[Table], words: list[str], chance: random.Random) -> None:
    section = _section(table, chance)
    if section:
        del section[chance.choice(sorted(section))]


def _swap(table: Table, tables: list[Table], words: list[str], chance: random.Random) -> None:
    """Replace a section by that of another case."""
    other = chance.choice(tables)
    name = chance.choice(sorted(other))
    table[name] = copy.deepcopy(other[name])


def _scale(table: Table, tables: list[Table], words: list[str], chance: random.Random) -> None:
    """Multiply an existing number by a power of ten."""
    section = _section(table, chance)
    numbers = [key for key, value in section.items() if isinstance(value, float)]
    if numbers:
        section[chance.choice(numbers)] *= chance.choice([-1.0, 1e-200, 1e-12, 1e-3, 1e3, 1e12, 1e200])


def _value(words: list[str], chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(VALUES)) if chance.random() < 0.8 else chance.choice(words)


MUTATIONS: tuple[Callable[[Table, list[Table], list[str], random.Random], None], ...] = (
    _set_known, _set_known, _set_any, _drop, _swap, _scale,
)  # fmt: skip
