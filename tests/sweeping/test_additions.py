"""Additions of a user to the index of a sweep: commands ignore them, and a continued sweep keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.sweeping import CASE, SIX, contents, in_this_process, write

from meanfield.cli.parser import main
from meanfield.sweeping.driver import DONE, sweep


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the index of a sweep of six points, one of which waits; sweep.toml and whole.h5 are beside it."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    path = tmp_path / "index.h5"
    assert sweep(write(tmp_path / "sweep.toml", SIX, CASE), path, quiet=True) == DONE
    (tmp_path / "whole.h5").write_bytes(path.read_bytes())
    with h5py.File(path, "r+") as file:
        file["status"][1], file.attrs["state"] = "waiting", "interrupted"
    return path


def add(path: Path) -> dict[str, Any]:
    """Add an object of every kind, and return the values for comparison."""
    with h5py.File(path, "r+") as file:
        file.attrs["note"], file["status"].attrs["note"] = "mine", np.arange(3.0)
        file["points"] = np.arange(5)  # the name of a group of version 1
        file["mine/deep"] = "words"
        file["link"] = h5py.ExternalLink("nowhere.h5", "/a")
        if "result" in file:
            file["result"].create_group("points")["rows"] = np.ones(2)
            file["samples/text"] = "words"
            file["result/number"] = 1.0
    return additions(path)


def additions(path: Path) -> dict[str, Any]:
    """Return the additions of ``add`` that a file contains."""
    with h5py.File(path) as file:
        found: dict[str, Any] = {"note": file.attrs.get("note"), "link": file.get("link", getlink=True)}
        found["of status"] = np.asarray(file["status"].attrs.get("note")).tolist()
        for name in ("points", "mine/deep", "result/points/rows", "samples/text", "result/number"):
            if name in file and isinstance(file[name], h5py.Dataset):
                found[name] = np.asarray(file[name][()]).tolist()
        link = found.pop("link")
        return {**found, "link": (link.filename, link.path) if isinstance(link, h5py.ExternalLink) else None}


def test_a_sweep_that_continues_keeps_what_a_user_has_added(index: Path) -> None:
    before = add(index)
    assert all(before.values())
    assert sweep(index.with_name("sweep.toml"), index, quiet=True) == DONE
    assert additions(index) == before
    ours = contents(index.with_name("whole.h5"))
    assert {name: value for name, value in contents(index).items() if name in ours} == ours


@pytest.mark.parametrize("command", ["info {0}", "info {0} --verify", "info {0} --json", "view {0} -o {1}/page.html"])
def test_additions_are_no_damage(command: str, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(index)
    assert main(command.format(index, index.parent).split()) == 0
    assert "damaged" not in capsys.readouterr().err


def test_an_index_that_is_overwritten_keeps_nothing(index: Path) -> None:
    add(index)
    assert sweep(index.with_name("sweep.toml"), index, quiet=True, overwrite=True) == DONE
    assert contents(index) == contents(index.with_name("whole.h5"))
