"""Table of all statements; an entry is a script in a subfolder of gallery/entries that defines STATEMENT."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from meanfield.gallery.not_computed import NOT_COMPUTED
from meanfield.gallery.statement import Statement
from meanfield.shipped import shipped_folder

FOLDER = Path(str(shipped_folder("gallery/entries")))
ENTRIES = sorted(FOLDER.glob("*/*.py"))
ARXIV = re.compile(r"\b\d{4}\.\d{5}(v\d+)?\b")
HEAD = """\
# Statements of the literature

Each row is an entry of the gallery: a short Python script that computes a number from the literature. One command
runs an entry and prints the result:

```text
python -m meanfield.gallery noise/unnormalized_fold
```

`python -m meanfield.gallery --page statements.md` runs all entries and writes this page; `--full` uses ensembles of
full size. A test runs each entry at its small size and compares the result with this page.

- *Expected* is the number from the formula of the source, or from a formula *derived here*.
- *Read* names the parts of the source that were read. Where only the abstract was available, the formula was derived
  here, and equation numbers are missing.
- The text of the survey 2512.01868 is a TeX source in a public repository, which does not name the version.
- Statements *transcribed by a third party* come from a formalization of the named version. The formalization has
  sections and labels, but no equation numbers.
- *Reproduced* means agreement to a tolerance of at most 5 %. *Consistent with* means agreement to a larger
  tolerance. Each row states its tolerance and the reason for it. Tolerances are relative to the expected number, and
  absolute if that number is 0.
- *Refuted by* a difference means that the run agrees, to the tolerance, with another number, which is derived here.
  The difference is the distance of the expected number from the derived number. Difference and tolerance are relative
  to the derived number, and absolute if that number is 0.

Thirteen entries also have a full size, at which one entry takes from two seconds to fifteen minutes on one core. Each
has the same verdict at both sizes.
"""
TABLE = "| statement | source | expected | found | verdict |\n|---|---|---|---|---|\n"


def name_of(entry: Path) -> str:
    """Return topic and name of an entry of the gallery, such as growth/circle."""
    return entry.relative_to(FOLDER).with_suffix("").as_posix()


def run_entry(entry: Path, figures: Path | None = None) -> Statement:
    """Run an entry and return its statement; its figure is saved in the folder ``figures``, if given, and closed."""
    from matplotlib import pyplot

    with contextlib.redirect_stdout(io.StringIO()):
        found = runpy.run_path(str(entry))["STATEMENT"]
    assert isinstance(found, Statement)
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        pyplot.gcf().savefig(figures / f"{name_of(entry).replace('/', '_')}.png")
    pyplot.close("all")
    return found


def statements(figures: Path | None = None) -> dict[str, Statement]:
    """Return the statements of all entries of the gallery by the name of the entry."""
    return {name_of(entry): run_entry(entry, figures) for entry in ENTRIES}


def page(found: Mapping[str, Statement]) -> str:
    """Return the page of all statements of the gallery in Markdown, a table for each topic."""
    topics = groupby(found.items(), key=lambda item: item[0].partition("/")[0])
    tables = [
        f"\n## {_heading(topic)}\n\n{TABLE}" + "\n".join(row(*item) for item in rows) + "\n" for topic, rows in topics
    ]
    others = [f"| {_link_papers(statement)} | {why} |" for statement, why in NOT_COMPUTED.items()]
    tail = "\n## Not computed\n\n| statement | why |\n|---|---|\n" + "\n".join(others)
    return HEAD + "".join(tables) + tail + "\n"


def _heading(topic: str) -> str:
    """Return the heading of a topic: PDE for pde, otherwise the name with a capital letter and spaces."""
    return "PDE" if topic == "pde" else topic.replace("_", " ").capitalize()


def row(name: str, one: Statement) -> str:
    """Return the row of a statement of the literature in a Markdown table, with links to its entry and the papers."""
    statement = f"[{_cell(one.text)}](../gallery/entries/{name}.py) (`{name}`)"
    source = _link_papers(f"{one.source}; read: {one.read}")
    verdict = f"{one.verdict} (to {one.tolerance:.2g}: {_cell(one.reason)})"
    return f"| {statement} | {source} | {one.expected:.7g} | {one.found:.7g} | {verdict} |"


def _link_papers(text: str) -> str:
    """Return a text with links to the papers that it names by their numbers on arXiv."""
    return ARXIV.sub(r"[\g<0>](https://arxiv.org/abs/\g<0>)", text)


def _cell(text: str) -> str:
    """Return the text of a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")
