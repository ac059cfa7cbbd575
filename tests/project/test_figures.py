"""Pictures of the pages: each is made by commands of its page, as docs/figures.py lists them.

The runs of shipped cases (tests/shipped) and the commands of the pages (test_snippets.py) are compared with them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.needs import need_module
from support.pictures import PICTURES, description, draw_and_compare

from docs.figures import COMMANDS, DOCS, MAX_BYTES, NUMBERS

PAGES = [path.read_text("utf-8") for path in (DOCS.parent / "README.md", *DOCS.glob("*.md"))]
SHOWN = [
    (name, page) for page in PAGES for name in re.findall(r"^!\[.*?\]\((?:docs/)?(.*?)\.png\)$", page, re.MULTILINE)
]


LONG = {"experiments/stabilizers", "experiments/fit"}  # without stored numbers


def test_all_pictures_are_listed() -> None:
    stored = {
        path.relative_to(DOCS).with_suffix("").as_posix() for path in [*DOCS.glob("*.png"), *DOCS.glob("*/*.png")]
    }
    assert {name for name, _ in SHOWN} == stored - {name for name in stored if name.startswith("gallery/")}
    assert {name for name in stored if not name.startswith("gallery/")} == COMMANDS.keys() | LONG


@pytest.mark.parametrize("name", NUMBERS)
def test_a_picture_is_drawn_from_stored_numbers(name: str, tmp_path: Path) -> None:
    """The figure that the code draws now from the numbers of an experiment is the picture of the page."""
    need_module("torch")
    shutil.copy(NUMBERS[name], tmp_path)
    draw_and_compare(Path(name).name, tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_with_a_picture_has_its_commands(name: str) -> None:
    pages = [page for shown, page in SHOWN if shown == name]
    assert any(all(f"meanfield {command}" in page for command in COMMANDS[name]) for page in pages)


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_a_picture_is_small_and_has_a_description(picture: Path) -> None:
    assert picture.stat().st_size <= MAX_BYTES
    assert len(description(picture)) > 3
