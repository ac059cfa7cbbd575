"""Every entry of the gallery reproduces the statement of its source."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from meanfield.gallery.not_computed import NOT_COMPUTED
from meanfield.gallery.statement import Statement
from meanfield.gallery.table import ENTRIES, HEAD, name_of, page, row, run_entry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "statements.md").read_text("utf-8")


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_entry(entry: Path) -> None:
    found = run_entry(entry)
    assert found.difference <= found.tolerance, f"{found.found} instead of {found.expected}"
    name = name_of(entry)
    [line] = [line for line in PAGE.splitlines() if f"](../gallery/entries/{name}.py) (`{name}`) |" in line]
    *printed, expected, _, verdict = line.split(" | ")
    *words, number, _, today = row(name, found).split(" | ")
    assert [*printed, verdict] == [*words, today]
    # seven digits are printed, and the last one of a number that is computed depends on rounding
    assert float(expected) == pytest.approx(float(number), rel=1e-6, abs=1e-6)


def test_the_page_of_statements_has_every_entry_once_and_in_order() -> None:
    named = re.findall(r"^\| \[.*?\(`([a-z_0-9]+/[a-z_0-9]+)`\) \|", PAGE, re.MULTILINE)
    assert named == [name_of(entry) for entry in ENTRIES]
    assert PAGE.split("## Not computed")[1] == page({}).split("## Not computed")[1]
    assert PAGE.startswith(HEAD)


def test_every_entry_has_a_figure_and_prints_its_verdict() -> None:
    texts = {name_of(entry): entry.read_text("utf-8") for entry in ENTRIES}
    lacking = [
        name
        for name, text in texts.items()
        if not re.search(r"\ndraw(_\w+)?\(", text) or not text.endswith("\nprint(STATEMENT)\n")
    ]
    assert lacking == []
    assert len(texts) >= 100


def test_what_is_not_computed_names_entries_that_exist() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_]+)`", " ".join(NOT_COMPUTED.values()))
    assert set(named) <= {name_of(entry) for entry in ENTRIES}


def test_one_command_runs_an_entry(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "meanfield.gallery", "merging/equiangular", "--figures", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "verdict    reproduced" in ran.stdout, ran.stderr
    assert (tmp_path / "merging_equiangular.png").stat().st_size > 10_000


def test_refuted_statements_say_by_how_much() -> None:
    one = Statement("1 is 2", "nobody", "text", 2.0, 1.0, 0.05, "none", holds=1.0, where="here")
    assert one.verdict == "refuted by 1 here"
    assert Statement("1 is 2", "nobody", "text", 2.0, 1.5, 0.05, "none", holds=1.0).verdict == "off by 0.5"
    assert Statement("0 is 0", "nobody", "text", 0.0, 0.01, 0.05, "none").verdict == "reproduced"


def test_a_wide_tolerance_reproduces_and_refutes_nothing() -> None:
    """A run that finds 0.575 is reported as consistent with 0.637 ± 0.24."""
    wide = Statement("a share", "nobody", "text", 0.637, 0.575, 0.38, "few samples", where="here")
    assert wide.verdict == "consistent with here"
    assert Statement("a share", "nobody", "text", 1.0, 1.04, 0.0501, "none").verdict == "consistent with"
    assert Statement("a share", "nobody", "text", 1.0, 1.04, 0.05, "none").verdict == "reproduced"
    for tolerance, found in ((0.06, 1.0), (0.01, 1.999)):
        with pytest.raises(ValueError, match=r"expected a difference above a tolerance of at most 0\.05"):
            Statement("1 is 2", "nobody", "text", 2.0, found, tolerance, "none", holds=1.0)
    rows = re.findall(r"\| (reproduced|refuted)[^|]*\(to ([\d.e-]+):", PAGE)
    assert len(rows) >= 90
    assert max(float(tolerance) for _, tolerance in rows) <= 0.05


def test_a_statement_that_does_not_hold_is_said_so() -> None:
    wrong = Statement("1 is 2", "nobody", "text", 2.0, 1.0, 0.1, "none")
    assert wrong.verdict == "off by 0.5"
    assert "off by 0.5" in page({"wrong": wrong})


def test_headings_are_topics_with_abbreviations_in_capitals() -> None:
    one = Statement("1 is 1", "nobody", "text", 1.0, 1.0, 0.05, "none")
    found = page({"layer_norm/one": one, "pde/one": one})
    headings = re.findall("^## (.*)$", found, re.MULTILINE)
    assert headings == ["Layer norm", "PDE", "Not computed"]
    assert set(headings) <= set(re.findall("^## (.*)$", PAGE, re.MULTILINE))
