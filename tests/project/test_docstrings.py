"""Rules for docstrings that a program can check: the first word."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("solvers", "meanfield", "benchmarks", "gallery")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NEEDS_OTHER_LINES = re.findall(
    r"\w+",
    """
    what where how which who whose when while that those these this its their his as if whether other others
    since than though unless until of to from by with in on at for among before after between beside beyond
    about around behind below above along across against during into like near off onto outside inside over per
    through toward towards under upon via within without except
    """,
)  # relatives, demonstratives, prepositions: a sentence that begins so is not understood alone
VERBS = re.findall(
    r"\w+",
    """
    accept accumulate add advance allocate animate append apply ask attach begin call cancel check choose clear
    clip close collect compare compile compute continue convert copy count create decode defer delete discard
    divide do draw drop eliminate encode end estimate evaluate exchange expand export extrapolate fill find fit
    flush fold give handle hold ignore import integrate interpolate interrupt keep launch limit list load lock
    log make map mark measure merge minimize move multiply name normalize open overwrite pack parse plot prepare
    print process project raise read record reduce refuse register reject release remove rename repair replace
    report reserve reset resolve restore resume return reverse rewrite rotate run sample save scale select send
    serve set show skip solve sort split stop store subtract sum swap take test train transform try unpack
    update use validate verify wait warn wrap write yield
    """,
)


@cache
def docstrings(folder):
    """Return (place, first word, whether of a function) of every docstring in a folder of the project."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and (text := ast.get_docstring(node)):
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {text.partition(chr(10))[0]}"
                word = re.match(r"[A-Za-z]*", text)[0]
                found.append((place, word, isinstance(node, FUNCTIONS)))
    return found


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_a_docstring_is_understood_alone(folder):
    assert len(docstrings(folder)) > 100
    assert [place for place, word, _ in docstrings(folder) if word.lower() in NEEDS_OTHER_LINES] == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_docstrings_of_functions_begin_with_a_verb(folder):
    """A verb that is missing is added to VERBS."""
    words = [(place, word) for place, word, is_function in docstrings(folder) if is_function]
    assert [place for place, word in words if word.lower() not in VERBS or not word[0].isupper()] == []
