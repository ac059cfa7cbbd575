"""Numbers as text, alike in tables, figures, movies and pages."""

from __future__ import annotations


def format_time(t: float) -> str:
    """A time with four figures, as in 0.125, 12.5, 1.2e+06."""
    return f"{t:.4g}"
