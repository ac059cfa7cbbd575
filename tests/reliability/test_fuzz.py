"""Malformed cases: a quick selection with a fixed seed; the long one is ``python -m tests.reliability fuzz``."""

from pathlib import Path

from reliability.fuzz import failures


def test_malformed_cases_are_refused_in_a_line(tmp_path: Path) -> None:
    assert failures(tmp_path, count=300, seed=0) == {}
