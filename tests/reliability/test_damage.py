"""Damaged files: a quick selection with a fixed seed; the long one is ``python -m tests.reliability damage``."""

from pathlib import Path

from reliability.damage import failures


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    assert failures(tmp_path, count=40, seed=1, each=2) == {}
