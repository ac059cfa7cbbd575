"""Keys in which the cases of two runs differ, as data and as a line of text."""

from __future__ import annotations

from meanfield.runtime.segments import case_table
from meanfield.sweeping.grid import flatten_table
from solvers.io.run_file import Run

IGNORED = ("title", "output")  # sections that change no state
_SHOWN = 24  # characters of a value; for longer values, and for lists, only the key is named


def differing_keys(a: dict[str, object], b: dict[str, object]) -> dict[str, tuple[object, object]]:
    """Return the dotted keys in which two resolved cases differ, each with its two values; None where a case lacks it.

    Titles and the settings of the output are left out. A list is one value.
    """
    flat = [flatten_table(case) for case in (a, b)]
    keys = [key for key in dict.fromkeys([*flat[0], *flat[1]]) if key.split(".")[0] not in IGNORED]
    return {key: (flat[0].get(key), flat[1].get(key)) for key in keys if flat[0].get(key) != flat[1].get(key)}


def describe_differences(a: Run, b: Run) -> str | None:
    """Return a line of text on the keys in which the cases of two runs differ; None if all are equal.

    An example is "the cases differ in attention.beta (3, 4) and domain.manifold (circle, particles)".
    """
    found = differing_keys(case_table(a.attributes), case_table(b.attributes))
    texts = [f"{key}{_values(*values)}" for key, values in sorted(found.items())]
    if not texts:
        return None
    return f"the cases differ in {', '.join(texts[:-1])}{' and ' if texts[1:] else ''}{texts[-1]}"


def _values(a: object, b: object) -> str:
    """Return two differing values as text in parentheses; an empty text for lists and for long values."""
    if isinstance(a, list) or isinstance(b, list):
        return ""
    texts = ["none" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in (a, b)]
    return f" ({', '.join(texts)})" if max(map(len, texts)) <= _SHOWN and texts[0] != texts[1] else ""
