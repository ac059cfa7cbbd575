"""Sweeps: six small runs, continued, refused, failed and kept."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.status import run
from support.sweeping import CASE, SIX, in_this_process, statuses, write

from meanfield.case.errors import CaseError
from meanfield.case.load import parse, to_toml
from meanfield.cli.parser import main
from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.driver import DONE, POINTS_FAILED, sweep
from meanfield.sweeping.files import points_folder
from meanfield.sweeping.point import PointResult, solve_point
from meanfield.sweeping.results import describe_sweep
from meanfield.sweeping.tasks import Solved, Work
from solvers.io.run_file import FileError, read

PATIENCE = 300.0  # seconds for a point of no more than one


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve sweeps in this process."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)


@pytest.fixture
def six(tmp_path: Path) -> Path:
    """Return a sweep file of six points."""
    return write(tmp_path / "six.toml", SIX, CASE)


def test_six_points_are_the_runs_alone(six: Path, tmp_path: Path) -> None:
    index = tmp_path / "six.h5"
    assert sweep(six, index, jobs=2, quiet=True) == DONE
    with h5py.File(index) as file:
        assert file.attrs["kind"] == "sweep"
        assert file.attrs["state"] == "finished"
        assert file["parameters/attention.beta"][:].tolist() == [2.0, 2.0, 4.0, 4.0, 9.0, 9.0]
        assert file["parameters/initial.seed"][:].tolist() == [0, 1, 0, 1, 0, 1]
        assert set(file["exit_status"][:]) == {0}
        for number, point in enumerate(parse_sweep(six.read_text()).points):
            alone = tmp_path / f"{number}.h5"
            run(point.case, alone, quiet=True)
            found, table = read(alone), file["samples"]
            for name, values in {"time": found.sample_times, **found.diagnostics}.items():
                assert table[name][number].tobytes() == values.tobytes(), name
            assert file["result/entropy"][number] == found.diagnostics["entropy"][-1]
            length = np.linalg.norm(found.diagnostics["centroid"], axis=-1)[-1]  # the same sum, to the bit
            assert file["result/centroid_length"][number] == length
    assert statuses(index) == ["done"] * 6
    assert not points_folder(index).exists()


@pytest.mark.usefixtures("at_once")
def test_a_finished_sweep_is_left_as_it_is(six: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = tmp_path / "six.h5"
    sweep(six, index, quiet=True)
    before = index.read_bytes()
    capsys.readouterr()
    assert sweep(six, index) == DONE
    assert "has all 6 points already" in capsys.readouterr().err
    assert main(["info", str(index), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["state"], facts["points"], facts["reasons"]) == ("finished", {"done": 6}, [""] * 6)
    assert len(facts["parameters"]["attention.beta"]) == len(facts["results"]["clusters"]) == 6
    assert index.read_bytes() == before


@pytest.mark.usefixtures("at_once")
def test_another_sweep_does_not_take_its_place(six: Path, tmp_path: Path) -> None:
    index = tmp_path / "six.h5"
    sweep(six, index, quiet=True)
    other = write(tmp_path / "other.toml", SIX.replace("9.0", "16.0"), CASE)
    before = index.read_bytes()
    found = r"not changed: it has 6 points of another sweep, or of this sweep .* \(Six\); -o starts .* --overwrite"
    with pytest.raises(FileError, match=found):
        sweep(other, index, quiet=True)
    assert index.read_bytes() == before
    run(parse_sweep(six.read_text()).points[0].case, tmp_path / "run.h5", quiet=True)
    with pytest.raises(FileError, match="not an index of a sweep"):
        sweep(six, tmp_path / "run.h5", quiet=True)
    assert sweep(other, index, overwrite=True, quiet=True) == DONE
    with h5py.File(index) as file:
        assert file["parameters/attention.beta"][-1] == 16.0


@pytest.mark.usefixtures("at_once")
def test_failed_points_are_kept_with_their_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = tmp_path / "tokens.npy"
    keys = f'[keys]\ninitial = [{{kind = "tokens", file = "{tokens}"}}, {{kind = "uniform"}}]\n'
    index, file = tmp_path / "tokens.h5", write(tmp_path / "tokens.toml", keys, CASE)
    assert sweep(file, index, quiet=True) == POINTS_FAILED
    assert statuses(index) == ["failed", "done"]
    error = capsys.readouterr().err
    assert "1 of 2 points failed; --retry" in error
    with h5py.File(index) as found:
        assert str(tokens) in found["reason"][0].decode()
        assert np.isnan(found["result/entropy"][0])
        assert np.isfinite(found["result/entropy"][1])
    assert sweep(file, index, quiet=True) == POINTS_FAILED
    np.save(tokens, [[1.0, 0.0], [0.0, 2.0]])
    assert sweep(file, index, retry=True, quiet=True) == DONE
    assert statuses(index) == ["done", "done"]


@pytest.mark.usefixtures("at_once")
def test_an_explosion_is_a_result(tmp_path: Path) -> None:
    """The status is 3: some sweeps study blow-ups. The variance grows to 3.3, beyond the smaller mesh."""
    keys = '[keys]\n"domain.outermost" = [50.0, 4.5]\n[set]\n"time.end" = 2.35\n"domain.resolution" = 256\n'
    index, file = tmp_path / "up.h5", write(tmp_path / "up.toml", 'case = "blow_up_line"\n', keys)
    assert sweep(file, index, quiet=True) == DONE
    with h5py.File(index) as found:
        assert found["exit_status"][:].tolist() == [0, 3]
        assert b"stopped on" in found["reason"][1]
        assert found["reason"][0] == b""
    assert statuses(index) == ["done", "done"]


@pytest.mark.usefixtures("at_once")
def test_run_files_are_kept_where_asked(six: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "kept.toml", SIX, "[keep]\nfiles = true\n", CASE)
    assert sweep(file, tmp_path / "kept.h5", quiet=True) == DONE
    runs = sorted((tmp_path / "kept.runs").iterdir())
    assert [name.name for name in runs] == [f"{number:04}.h5" for number in range(6)]
    assert parse(read(runs[5]).attributes["case"]).attention.beta == 9.0


def test_case_errors_are_not_lost(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="point 1"):
        sweep(write(tmp_path / "bad.toml", '[keys]\n"attention.beta" = [1.0, -1.0]\n', CASE), quiet=True)
    assert not list(tmp_path.glob("*.h5"))


def test_a_point_over_its_time_is_stopped_as_by_an_interrupt(tmp_path: Path) -> None:
    """The file is valid to its last step, and contains at least one step, however short the limit."""
    # Compiles: otherwise the limit would cut a step of half a minute.
    quick = solve_point(to_toml(parse(CASE.replace("case.", ""))))
    assert quick.status == "done"
    text = to_toml(parse(CASE.replace("case.", ""), ["time.end=1e9"]))
    result = solve_point(text, True, 0.1)
    assert result.status == "over time"
    assert result.reason.startswith("interrupted at time")
    assert result.file is not None
    (tmp_path / "run.h5").write_bytes(result.file)
    kept = read(tmp_path / "run.h5")
    assert kept.attributes["stop_reason"] == "interrupted"
    np.testing.assert_array_equal(kept.sample_times, result.tables["time"])
    assert solve_point(to_toml(parse(CASE.replace("case.", ""))), False, PATIENCE).status == "done"


@pytest.mark.parametrize("domain", ["manifold = 'particles'\ncount = 8", "manifold = 'circle'\nresolution = 48"])
def test_small_points_run_in_memory_to_the_same_results(domain: str, tmp_path: Path, monkeypatch: Any) -> None:
    """The results are bitwise those of a run file, for a point that ends and for a stopped one; no folder is made."""
    tokens = f"[domain]\n{domain}\n[attention]\nbeta = 4.0\n[time]\nend = 0.5\n"
    text = to_toml(parse(tokens, ["initial.kind=uniform", "output.snapshots=2", "output.samples=5"]))
    with_file = solve_point(text, True)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda **_: pytest.fail("made a folder"))
    result = solve_point(text)
    assert (result.status, result.exit_status, result.reason) == ("done", 0, "")
    assert result.file is None
    assert result.tables.keys() == with_file.tables.keys()
    for name, values in result.tables.items():
        np.testing.assert_array_equal(values, with_file.tables[name], err_msg=name)
    changes = ["initial.kind=uniform", "output.snapshots=2", "time.end=1e9", "time.method=ssprk3"]
    stopped = solve_point(to_toml(parse(tokens, changes)), False, 0.1)
    assert (stopped.status, stopped.exit_status) == ("over time", 130)
    assert stopped.reason.startswith("interrupted at time")
    assert len(stopped.tables["time"]) >= 1


def test_points_over_their_time_wait_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A repeated sweep with a longer limit keeps finished points, and solves stopped ones again."""
    done, stopped = PointResult("done", 0, wall_time=1.0), PointResult("over time", 130, "interrupted at time 3")
    asked: list[tuple[float | None, list[int]]] = []

    def solver(answer: PointResult) -> Any:
        def solve(work: Work) -> Solved:
            asked.append((work.limit, list(work.numbers)))
            for number in work.numbers:
                yield {number: done if number < 4 else answer}

        return lambda jobs: solve

    index, file = tmp_path / "six.h5", tmp_path / "six.toml"
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", solver(stopped))
    assert sweep(write(file, "limit = 2.5\n", SIX, CASE), index, quiet=True) == POINTS_FAILED
    assert "2 of 6 points ran over the limit of 2.5 s; the same command solves them again" in capsys.readouterr().err
    assert statuses(index) == ["done"] * 4 + ["over time"] * 2
    assert "6, 4 done, 2 over time" in describe_sweep(index)
    assert "continue with the same command" in describe_sweep(index)
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", solver(done))
    assert sweep(write(file, "limit = 60\n", SIX, CASE), index, quiet=True) == DONE
    assert statuses(index) == ["done"] * 6
    assert asked == [(2.5, [0, 1, 2, 3, 4, 5]), (60.0, [4, 5])]


@pytest.mark.parametrize("limit", ["0", "-1", '"1 h"'])
def test_a_limit_is_a_positive_number(limit: str) -> None:
    with pytest.raises(CaseError, match=r"limit = .*: expected a number > 0"):
        parse_sweep(f"limit = {limit}\n{SIX}{CASE}")
