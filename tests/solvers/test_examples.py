"""Examples of docs/examples.md: each runs, compares its error with an exact solution by an assertion, and is short."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/examples.md").read_text(encoding="utf-8")
FIRST, *EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def title_of(code):
    return re.search(r'f"([^:{]+):', code)[1]


@pytest.mark.parametrize("code", EXAMPLES, ids=title_of)
def test_example(code, capsys):
    names = {}
    exec(FIRST, names)
    exec(code, names)
    assert capsys.readouterr().out.startswith(title_of(code))
    assert 0 <= names["error"] < 0.1
    lines, error = re.search(rf"^\| {title_of(code)} \| (\d+) \| (\S+) \|", PAGE, flags=re.MULTILINE).groups()
    assert int(lines) == sum(map(bool, code.splitlines()))
    assert names["error"] < 2 * float(error) + 1e-7  # of the table; other processors round differently
    assert re.search(r"^assert .*\berror < ", code, flags=re.MULTILINE)


def test_there_are_thirty_short_examples():
    assert len(set(map(title_of, EXAMPLES))) == len(EXAMPLES) == 30
    for code in EXAMPLES:
        assert sum(map(bool, code.splitlines())) <= 12, title_of(code)
