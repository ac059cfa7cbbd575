"""Sweeps: six small runs, gone on with, refused, failed and kept."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from sweeping import CASE, SIX, in_this_process, statuses, write

from meanfield.case import CaseError, parse
from meanfield.run import run
from meanfield.sweep import DONE, POINTS_FAILED, sweep
from meanfield.sweep_case import parse_sweep
from meanfield.sweep_index import points_folder
from solvers.output import FileError, read


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps are solved in this process."""
    monkeypatch.setattr("meanfield.sweep.with_processes", in_this_process)


@pytest.fixture
def six(tmp_path: Path) -> Path:
    """A sweep file of six points."""
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
            found, table = read(alone), file[f"points/{number:04}"]
            for name, values in found.diagnostics.items():
                assert table[name][:].tobytes() == values.tobytes(), name
            assert file["result/entropy"][number] == found.diagnostics["entropy"][-1]
            length = np.linalg.norm(found.diagnostics["centroid"][-1])
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
    assert "all 6 points are there already" in capsys.readouterr().err
    assert index.read_bytes() == before


@pytest.mark.usefixtures("at_once")
def test_another_sweep_does_not_take_its_place(six: Path, tmp_path: Path) -> None:
    index = tmp_path / "six.h5"
    sweep(six, index, quiet=True)
    other = write(tmp_path / "other.toml", SIX.replace("9.0", "16.0"), CASE)
    with pytest.raises(FileError, match=r"index of another sweep.*--overwrite"):
        sweep(other, index, quiet=True)
    run(parse_sweep(six.read_text()).points[0].case, tmp_path / "run.h5", quiet=True)
    with pytest.raises(FileError, match="no index of a sweep"):
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
    """Status 3: a blow-up is what some sweeps look for. The variance grows to 3.3, beyond the smaller mesh."""
    keys = '[keys]\n"domain.outermost" = [50.0, 4.5]\n[set]\n"time.end" = 2.35\n"domain.resolution" = 128\n'
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
