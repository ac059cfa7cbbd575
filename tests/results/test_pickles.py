"""Results in other processes: pickles and copies; damaged results refused in a line."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.cli.parser import main

CASE = mf.load_case(
    "metastable_circle", ["domain.resolution=32", "time.end=0.1", "output.snapshots=2", "output.samples=4"]
)


@pytest.fixture
def result(tmp_path: Path) -> mf.Result:
    return mf.run(CASE, tmp_path / "o.h5")


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
def test_copies_of_results(copied: Any, result: mf.Result, tmp_path: Path) -> None:
    memory = mf.simulate(CASE)
    assert memory.mesh.cells == result.mesh.cells == 32  # cached arrays, which are not copied
    for one in (result, memory):
        other = copied(one)
        np.testing.assert_array_equal(np.asarray(other.density), np.asarray(one.density))
        np.testing.assert_array_equal(other.diagnostics["mass"], one.diagnostics["mass"])
        assert copied(one.to_xarray()).equals(one.to_xarray())
        assert copied(one.diagnostics.to_xarray()).equals(one.diagnostics.to_xarray())
        assert copied(mf.compare(one)) is not None
    copied(memory).save(tmp_path / "saved.h5")
    assert mf.resume(tmp_path / "saved.h5", until=0.2).time[-1] == 0.2
    theory = mf.stability(CASE)
    np.testing.assert_array_equal(copied(theory).rates, theory.rates)


def test_a_lazy_dataset_in_another_process(result: mf.Result) -> None:
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        total = pool.submit(_sum, result.to_xarray()).result()
    assert total == np.asarray(result.density).sum()


def _sum(dataset: Any) -> float:
    return float(dataset["density"].values.sum())


def test_threads_that_write_one_path_are_refused_but_one(tmp_path: Path) -> None:
    """Every refusal is a line that names the writer."""
    path, errors = tmp_path / "o.h5", []

    def write() -> None:
        try:
            mf.run(CASE, path, overwrite=True)
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [e for e in errors if isinstance(e, mf.FileError) and "being written by process" in str(e)]
    assert errors == expected
    assert mf.open_run(path).stop_reason == "finished"


@pytest.mark.parametrize(
    ("damage", "commands", "message"),
    [
        ("hand_over_time", ["info"], "hand_over_time is 'text', no number"),
        ("density", ["movie", "view", "plot"], "is not finite"),
        ("segments", ["info", "resume"], "segments is damaged"),
    ],
)
def test_damage_is_refused_in_a_line(
    damage: str, commands: list[str], message: str, result: mf.Result, capsys: pytest.CaptureFixture[str]
) -> None:
    with h5py.File(result.path, "r+") as file:
        file.attrs.modify("digest", np.bytes_(b""))
        if damage == "density":
            file["density"][:] = np.nan
        else:
            file.attrs[damage] = {"hand_over_time": "text", "segments": "[" * 100_000}[damage]
            file.attrs["contents"] += f"\n@{damage}"
    for command in commands:
        assert main([command, str(result.path)]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert message in line
