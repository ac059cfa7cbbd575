"""Checkpoints with a right hash and wrong scalars or arrays: no run resumes from them, and a line states the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reliability.checkpoints import archive_of, entries_of, hashed
from reliability.files import CELLS, make_killed_run, mark_as_killed
from support.status import run

from meanfield.case.load import parse
from meanfield.cli.parser import main
from solvers.io.checkpoint import SCALARS
from solvers.io.repair import FileError
from solvers.mesh.mesh import circle
from solvers.recording.record import record, restart
from solvers.timestepping.state import State

WRONG: list[tuple[str, Any]] = [
    ("steps", -1), ("steps", 1.5), ("steps", 10**30), ("steps", "7"), ("time", -0.5), ("time", "soon"), ("time", None),
    ("dt", -1e-3), ("dt", "text"), ("wall_time", -1), ("snapshots", -1), ("snapshots", 2.0), ("samples", "all"),
    ("samples", True), ("time", float("nan")), ("dt", float("inf")),
]  # fmt: skip
RESUME = ["resume", "run.h5", "--until", "0.3", "--quiet"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the file of a killed run, and the checkpoints beside it."""
    folder = tmp_path_factory.mktemp("killed")
    run(parse(CELLS), folder / "cells.h5", quiet=True)
    mark_as_killed(folder / "cells.h5")
    make_killed_run(folder / "run.h5", folder / "killed_cells.h5")
    return folder


def change(path: Path, scalars: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Give a checkpoint other scalars or arrays, and the hash of these."""
    entries = entries_of(path.read_bytes())
    facts = json.loads(str(entries[SCALARS]))
    facts["scalars"] |= scalars
    path.write_bytes(hashed(archive_of({**entries, SCALARS: json.dumps(facts), **(arrays or {})})))


def copied(killed: Path, folder: Path) -> Path:
    """Copy the run, and return the path of its latest checkpoint."""
    for path in killed.glob("run.h5*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / "run.h5.checkpoint-1"


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_scalars_are_refused_in_a_line(
    name: str, value: Any, killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    change(copied(killed, tmp_path), {name: value})
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(RESUME) == 2
    error = capsys.readouterr().err
    assert error.startswith("meanfield: run.h5")
    assert "checkpoint" in error
    assert error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("values", [np.full(32, np.nan), np.ones(31), np.ones((2, 16)), np.array(1.0)])
def test_arrays_that_are_no_state_are_refused_in_a_line(
    values: Any, killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    change(copied(killed, tmp_path), {}, {"array.values": values})
    monkeypatch.chdir(tmp_path)
    assert main(RESUME) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "damaged" in error


@pytest.mark.parametrize(
    ("name", "value"), [("steps", -1), ("time", float("nan")), ("dt", -1.0), ("time", "text"), ("method.step", "text")]
)
def test_a_recorded_solution_does_not_restart_from_wrong_scalars(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with record(path, circle(8), every=0.5, checkpoint=1e-9) as watch:
        state = State(0.0, np.ones(8))
        watch.begin(state)
        state.time, state.steps = 0.25, 1
        watch.observe_if_due(state)
        latest = path.with_name("run.h5.checkpoint-0")
        assert latest.exists()
        change(latest, {name: value})
        with pytest.raises(FileError, match="checkpoint"):
            restart(path)
