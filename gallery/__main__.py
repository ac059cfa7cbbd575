"""``python -m gallery [--page FILE.md]``: run all entries, print or write the table of verdicts."""

from __future__ import annotations

import argparse
from pathlib import Path

from .table import page, statements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="a page to write (default: print it)")
    target = parser.parse_args().page
    text = page(statements())
    if target is None:
        print(text)
    else:
        target.write_text(text, "utf-8")


main()
