"""Command ``python -m tests.reliability fuzz|damage|faults [--count N] [--seed S]``: runs a harness and prints
failures."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

HARNESSES = {"fuzz": 100_000, "damage": 10_000, "faults": 1000}  # default counts
SHOWN = 20  # maximum number of printed kinds of failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("harness", choices=HARNESSES)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, began = options.count or HARNESSES[options.harness], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = import_module(f".{options.harness}", __package__).failures(Path(folder), count, options.seed)
    for text, times in found.most_common(SHOWN):
        print(f"{times:6}  {text}")
    took = time.monotonic() - began
    print(f"{options.harness}: {found.total()} failures in {count}, seed {options.seed}, {took:.0f} s")
    return min(found.total(), 1)


sys.exit(main())
