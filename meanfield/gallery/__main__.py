"""Entries of the gallery: ``python -m meanfield.gallery [NAME ...]`` prints each statement with its number and verdict.

Without names, all entries run and are printed as a table. Names are those of the table, such as
noise/unnormalized_fold.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from meanfield.gallery.size import NAME
from meanfield.gallery.table import FOLDER, page, run_entry, statements


def main() -> None:
    """Run the entries that the command line names, and print or write their statements."""
    parser = argparse.ArgumentParser(prog="python -m meanfield.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries to run (default: all, as a table)")
    parser.add_argument("--full", action="store_true", help="use ensembles of full size (default: small ones)")
    parser.add_argument("--page", type=Path, help="write the table to this page (default: print the table)")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="save the figures here (default: no figures)")
    options = parser.parse_args()
    if options.full:
        os.environ[NAME] = "full"
    for name in options.names:
        if not (FOLDER / f"{name}.py").exists():
            parser.error(f"{name}: expected the name of an entry, such as growth/circle")
        print(f"{name}\n{run_entry(FOLDER / f'{name}.py', options.figures)}\n")
    if options.names:
        return
    text = page(statements(options.figures))
    if options.page is None:
        print(text)
    else:
        options.page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
