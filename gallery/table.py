"""The table of all statements: an entry is a script in a folder of gallery/entries that sets STATEMENT."""

from __future__ import annotations

import contextlib
import io
import runpy
from collections.abc import Mapping
from pathlib import Path

from .not_computed import NOT_COMPUTED
from .statement import Statement

FOLDER = Path(__file__).parent / "entries"
ENTRIES = sorted(FOLDER.glob("*/*.py"))
HEAD = """\
# Statements of the literature

Each row is an entry of the gallery: a script of some lines through the Python API that computes the number of a
source. One command runs an entry, and says what it found:

```text
python -m gallery noise/unnormalized_fold
```

`python -m gallery --page docs/statements.md` runs them all and writes this page, `--full` with ensembles of full size;
a test runs each at its quick size and compares. *Read* says what was seen of the source: where only the abstract could
be read, the formula was derived again, and equation numbers are missing. The text of 2512.01868, a survey, is its TeX
source as a public repository keeps it, of a version that it does not name; statements *as a third party has transcribed
them* are those of a formalization of the named version, which has sections and labels, and no equation numbers.

*Reproduced* means agreement to a tolerance of at most 5 %, *consistent with* to a larger one, which excludes less; each
row has its tolerance.

Thirteen entries have a full size, at which they take from two seconds to fifteen minutes of a core. All were run at it
and have the same verdicts.

| entry | statement | source | published | found | verdict |
|---|---|---|---|---|---|
"""


def name_of(entry: Path) -> str:
    """Topic and name, such as growth/circle."""
    return entry.relative_to(FOLDER).with_suffix("").as_posix()


def statement_of(entry: Path, figures: Path | None = None) -> Statement:
    """Run an entry; its figure is saved in the folder ``figures``, if there is one, and closed."""
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
    """By name of the entry."""
    return {name_of(entry): statement_of(entry, figures) for entry in ENTRIES}


def page(found: Mapping[str, Statement]) -> str:
    """The page in Markdown."""
    rows = [row(name, one) for name, one in found.items()]
    others = [f"| {statement} | {why} |" for statement, why in NOT_COMPUTED.items()]
    tail = "\n\n## Not computed\n\n| statement | why |\n|---|---|\n" + "\n".join(others)
    return HEAD + "\n".join(rows) + tail + "\n"


def row(name: str, one: Statement) -> str:
    """The row of a statement in the table of the page."""
    verdict = f"{one.verdict} (to {one.tolerance:.2g}: {_cell(one.reason)})"
    cells = (f"`{name}`", _cell(one.text), f"{one.source}; read: {one.read}")
    return f"| {' | '.join(cells)} | {one.published:.7g} | {one.found:.7g} | {verdict} |"


def _cell(text: str) -> str:
    """A cell of a Markdown table."""
    return text.replace("|", "\\|")
