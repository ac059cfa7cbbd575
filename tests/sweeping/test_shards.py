"""Shards of a sweep in processes that share only a folder, merged by a sweep without shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.sweeping import CASE, SIX, contents, in_this_process, write

from meanfield.case.errors import CaseError
from meanfield.cli.parser import main
from meanfield.sweeping.driver import DONE, sweep
from meanfield.sweeping.files import lock_path_of_part, points_folder
from meanfield.sweeping.index import Index
from meanfield.sweeping.results import describe_sweep, read_sweep
from solvers.io.lock import Lock


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve sweeps in this process."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)


def test_shards_are_counted_and_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shards run in any order, the second one before the index exists; solved points are not solved again."""
    file, index, whole = write(tmp_path / "six.toml", SIX, CASE), tmp_path / "six.h5", tmp_path / "whole.h5"
    assert main(["sweep", str(file), "-o", str(index), "--shard", "2/4", "--quiet"]) == DONE
    assert "part 2 of 4: 2 points solved; when all have ended" in capsys.readouterr().err
    assert read_sweep(index).done.tolist() == [1, 5]
    assert "6, 2 done, 4 waiting" in describe_sweep(index)
    assert "interrupted" in describe_sweep(index)
    assert sweep(file, index, part=(3, 4), quiet=True) == DONE
    before = read_sweep(index)
    assert before.done.tolist() == [1, 2, 5]
    assert sweep(file, index, quiet=True) == DONE
    after = read_sweep(index)
    np.testing.assert_array_equal(after.wall_times[before.done], before.wall_times[before.done])
    assert sweep(file, whole, quiet=True) == DONE
    assert contents(index) == contents(whole)
    assert not points_folder(index).exists()


def test_a_shard_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed shard continues also after another shard's start; the same shard twice is refused, and info names the
    writer."""
    file, index = write(tmp_path / "six.toml", SIX, CASE), tmp_path / "six.h5"

    def put_and_die(self: Index, *arguments: object, put=Index.put) -> None:  # type: ignore[no-untyped-def]
        put(self, *arguments)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Index, "put", put_and_die)
        with pytest.raises(SystemExit):
            sweep(file, index, part=(1, 2), quiet=True)
    first = read_sweep(index)
    assert first.done.tolist() == [0]
    assert sweep(file, index, part=(2, 2), quiet=True) == DONE
    lock = Lock(lock_path_of_part(index, 1, 2))
    assert "running, by process" in describe_sweep(index)
    lock.release()
    assert sweep(file, index, part=(1, 2), quiet=True) == DONE
    found = read_sweep(index)
    assert found.done.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.wall_times[0] == first.wall_times[0]


def test_a_shard_neither_overwrites_nor_retries(tmp_path: Path) -> None:
    file = write(tmp_path / "six.toml", SIX, CASE)
    for options in ({"overwrite": True}, {"retry": True}):
        with pytest.raises(CaseError, match="--shard: not allowed with --overwrite or --retry"):
            sweep(file, tmp_path / "six.h5", part=(1, 2), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_shard_is_one_of_some(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(write(tmp_path / "six.toml", SIX, CASE)), "--shard", text]) == 2
    assert "expected I/N with whole numbers" in capsys.readouterr().err
