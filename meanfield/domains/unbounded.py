"""Meshes of the line and of radii: cells are equal within a core, and proportional to the distance beyond the core."""

from __future__ import annotations

from meanfield.sections.section import Problems

LENGTHS = (1e-100, 1e100)  # bounds for which squares of cell widths are doubles too
MIN_CORE = 1e-12  # relative to domain.outermost: with more decades, neighboring cells round to the same position


def length_problems(outermost: float, inner: dict[str, float]) -> Problems:
    """Yield the errors of the lengths of an unbounded mesh: its end ``outermost``, and ``inner`` lengths by key."""
    low, high = LENGTHS
    if not low <= outermost <= high:
        yield "domain.outermost", outermost, f"a number from {low:g} to {high:g}"
    for key, length in inner.items():
        if not MIN_CORE * outermost <= length <= high:
            expected = f"a number from {MIN_CORE * outermost:g}, {MIN_CORE:g} of domain.outermost, to {high:g}"
            yield f"domain.{key}", length, expected
