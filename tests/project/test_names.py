"""Names on the package index: the texts recommend the installation of this project."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DISTRIBUTION = "meanfield-transformers"  # "meanfield" on the index is an unrelated project


def texts():
    """Return the path of every text of this project except this file."""
    folders = ("meanfield", "solvers", "cases", "sweeps", "docs", "benchmarks", "tests", ".ci")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    kinds = (".py", ".md", ".toml", ".js", ".html", "")
    paths = [*ROOT.glob("*.md"), ROOT / "pyproject.toml", *inside]
    return [path for path in paths if path.is_file() and path.suffix in kinds and path != Path(__file__)]


def test_the_distribution_has_its_own_name():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["name"] == DISTRIBUTION


def test_no_text_recommends_the_unrelated_project():
    """Neither ``pip install meanfield`` nor an extra ``meanfield[...]`` appears."""
    wrong = re.compile(r"pip install (-\S+ )*['\"]?meanfield(?!-transformers)|(?<![\w.-])meanfield\[[a-z]")
    lines = [(path, line) for path in texts() for line in path.read_text("utf-8").splitlines()]
    assert len(lines) > 10_000
    assert not [f"{path}: {line}" for path, line in lines if wrong.search(line)]


def test_every_extra_that_a_text_names_is_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.compile(r"(?:meanfield-transformers|'\.)\[([a-z0-9-]+)\]")
    found = {extra for path in texts() for extra in named.findall(path.read_text("utf-8"))}
    assert found == set(extras)
    assert len(found) == 9


def test_solvers_knows_nothing_of_this_package():
    """The labels, messages and docstrings of solvers speak of points and densities."""
    paths = [path for path in texts() if ROOT / "solvers" in path.parents]
    lines = [(path, line) for path in paths for line in path.read_text("utf-8").splitlines()]
    assert len(lines) > 4000
    words = re.compile(
        r"[Tt]oken(?!_hex|ize|Error)|meanfield|(?<!Node)Transformer"
    )  # except names in Python's standard library
    assert not [f"{path}: {line}" for path, line in lines if words.search(line)]
