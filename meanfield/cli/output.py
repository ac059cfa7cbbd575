"""Results on standard output: text, or JSON."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meanfield.analysis.drawn import Drawn


def print_result(options: Namespace, facts: Callable[[], Mapping[str, object]], text: Callable[[], str]) -> None:
    """Print the result of a command: ``facts`` as JSON with the option --json, else ``text``."""
    if options.json:
        print_json(facts())
    else:
        print(text())


def draw_result(options: Namespace, found: Drawn) -> None:
    """Draw the result of a command to the figure that the option --output names, if any, and print its path."""
    if options.output is not None:
        from meanfield.figures.figure import plot_result

        print(plot_result(found, options.output))


def print_json(facts: Mapping[str, object]) -> None:
    """Print ``facts`` as JSON, NaN and infinities as null; in ASCII if standard output is not in a Unicode encoding."""
    import json

    ascii_only = not str(sys.stdout.encoding).lower().startswith("utf")
    print(json.dumps(_finite(facts), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def _finite(value: object) -> object:
    """Return a value of nested tables and lists in which None replaces numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
