"""Numbers and tables as text, in one format for reports, figures, movies and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_time(t: float) -> str:
    """Return a time with four figures, as in 0.125, 12.5, 1.2e+06."""
    return f"{t:.4g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: a line of headings and a line for each row, with as many cells as headings."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
