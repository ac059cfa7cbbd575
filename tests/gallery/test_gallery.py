"""Every entry of the gallery finds what its source states."""

from pathlib import Path

import pytest

from gallery.statement import Statement
from gallery.table import ENTRIES, name_of, page, statement_of


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_entry(entry: Path) -> None:
    found = statement_of(entry)
    assert found.difference <= found.tolerance, f"{found.found} instead of {found.published}"


def test_every_entry_is_in_the_page_of_statements() -> None:
    text = (Path(__file__).parents[2] / "docs" / "statements.md").read_text("utf-8")
    assert [name_of(entry) for entry in ENTRIES if f"`{name_of(entry)}`" not in text] == []


def test_a_statement_that_does_not_hold_is_said_so() -> None:
    wrong = Statement("1 is 2", "nobody", "text", 2.0, 1.0, 0.1, "none")
    assert wrong.verdict == "off by 0.5"
    assert "off by 0.5" in page({"wrong": wrong})
