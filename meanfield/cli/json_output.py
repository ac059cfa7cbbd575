"""Results as JSON on standard output."""

from __future__ import annotations

import sys
from typing import Any


def print_json(facts: dict[str, Any]) -> None:
    """Print ``facts`` as JSON; NaN, which JSON lacks, as null. ASCII alone where the output is not in Unicode."""
    import json

    ascii_only = not str(sys.stdout.encoding).lower().startswith("utf")
    print(json.dumps(_without_nan(facts), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and value != value else value
