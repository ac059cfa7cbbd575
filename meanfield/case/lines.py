"""Line numbers of the keys of a case file, for messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from meanfield.case.errors import CaseError, all_of

_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.\- ]+?)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"\s*([\w.\-]+(?:\s*\.\s*[\w\-]+)*)\s*=")


def lines_of_keys(text: str) -> dict[str, int]:
    """Return the line number, from 1, of each dotted key and table of a TOML text; ``a.b[1]`` is the second [[a.b]].

    Keys in inline tables and quoted keys are omitted.
    """
    found: dict[str, int] = {}
    table, tables = "", Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.fullmatch(line):
            table = header[2].replace(" ", "")
            if header[1] == "[[":
                tables[table] += 1
                table = f"{table}[{tables[table] - 1}]"
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            name = re.sub(r"\s", "", key[1])
            found.setdefault(f"{table}.{name}" if table else name, number)
    return found


def with_lines(error: CaseError, source: str, lines: Mapping[str, int | None]) -> CaseError:
    """Return the error with ``source`` and the line of its key in front, if known, also for several errors."""
    if error.parts:
        return all_of([with_lines(part, source, lines) for part in error.parts])
    key = error.key
    while key and key not in lines:
        shorter = re.sub(r"(^|\.)[^.\[]*$|\[\d+\]$", "", key)
        key = shorter if shorter != key else ""  # a quoted key may contain brackets
    return CaseError(f"{source}, line {lines[key]}: {error}", error.key) if lines.get(key) else error


def remove(data: Mapping[str, object], key: str) -> bool:
    """Remove the entry that a dotted key such as ``attention.heads[1].weight`` names from nested tables.

    For a key of a list, the whole list is removed. Returns whether an entry was removed.
    """
    parts = re.findall(r"[\w\-]+|\[\d+\]", key)
    while parts and parts[-1].startswith("["):
        parts.pop()
    node: Any = data
    for part in parts[:-1]:
        try:
            node = node[int(part[1:-1])] if part.startswith("[") else node[part]
        except (KeyError, IndexError, TypeError):
            return False
    return bool(parts) and isinstance(node, dict) and node.pop(parts[-1], None) is not None
