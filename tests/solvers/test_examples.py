"""Examples of docs/examples.md: each runs, ends with an assertion against an exact solution, and is short."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/examples.md").read_text(encoding="utf-8")
FIRST, *EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def name_of(code):
    return re.search(r'f"(\w+)', code)[1]


@pytest.mark.parametrize("code", EXAMPLES, ids=name_of)
def test_example(code, capsys):
    names = {}
    exec(FIRST, names)
    exec(code, names)
    assert capsys.readouterr().out
    assert "assert " in code


def test_examples_are_short():
    """The code has at most ten lines up to the solution, and the others for the comparison with the exact one."""
    for code in EXAMPLES:
        assert code[: code.index("solve(")].count("\n") + 1 <= 10, code
