"""Sweeps on a real Dask scheduler with two worker processes on loopback, any of which may be killed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.dask_cluster import Cluster
from support.needs import need_module
from support.sweeping import (
    CASE,
    SIX,
    SLOW,
    contents,
    in_this_process,
    let_go_on,
    start,
    statuses,
    wait_for_points,
    write,
)

from meanfield.case.errors import CaseError
from meanfield.sweeping.dask_pool import with_dask
from meanfield.sweeping.driver import DONE, POINTS_FAILED, sweep


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    need_module("distributed")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # folders of killed workers and of their points stay
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.slow
def test_workers_and_the_sweep_killed(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is lost, then the sweep; another start continues. The result equals a local solution to the last bit."""
    file, index, whole = write(tmp_path / "slow.toml", SIX, SLOW, CASE), tmp_path / "slow.h5", tmp_path / "whole.h5"
    process = start(file, index, 1, cluster.address)
    wait_for_points(process, 1)
    cluster.workers[0].kill()
    let_go_on(process, 2)
    wait_for_points(process, 2)
    process.kill()
    process.wait()
    assert len(statuses(index)) == 6  # complete, whenever it is killed
    cluster.add_worker()
    assert sweep(file, index, dask=cluster.address, quiet=True) == DONE
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    assert sweep(file, whole, quiet=True) == DONE
    assert contents(index) == contents(whole)


@pytest.mark.slow
def test_failed_points_are_told_by_workers(cluster: Cluster, tmp_path: Path) -> None:
    """The reason of a failure comes back from the worker; files are found in any working folder."""
    keys = '[keys]\ninitial = [{kind = "tokens", file = "absent.npy"}, {kind = "uniform"}]\n'
    file, index = write(tmp_path / "tokens.toml", keys, CASE), tmp_path / "tokens.h5"
    assert sweep(file, index, dask=cluster.address, quiet=True) == POINTS_FAILED
    assert statuses(index) == ["failed", "done"]


@pytest.mark.slow
def test_a_scheduler_without_workers_that_dies(tmp_path: Path) -> None:
    """Messages state that workers are missing, and then that the scheduler has gone; the index is an interrupted
    sweep's."""
    need_module("distributed")
    cluster = Cluster(tmp_path, workers=0)
    file, index = write(tmp_path / "six.toml", SIX, CASE), tmp_path / "six.h5"
    # Short waits for the scheduler's return.
    code = "from meanfield.sweeping import dask_pool; dask_pool.CONNECTING = 2.0; import meanfield.__main__"
    command = [sys.executable, "-c", code, "sweep", str(file), "-o", str(index), "--dask", cluster.address]
    at_once = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    process = subprocess.Popen([*command, "--quiet"], stderr=subprocess.PIPE, text=True, env=at_once)
    try:
        assert process.stderr is not None
        assert "its scheduler has no worker; waiting for one: dask worker " in process.stderr.readline()
    finally:
        cluster.stop()
    error = process.stderr.read()
    assert process.wait() == 2, error
    assert error.splitlines()[-1] == (
        f"meanfield: --dask {cluster.address}: lost the connection to the scheduler; 0 of 6 points are kept in "
        f"{index}; continue with the same command"
    )
    assert "Traceback" not in error
    assert statuses(index) == ["waiting"] * 6


def test_no_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("distributed")
    monkeypatch.setattr("meanfield.sweeping.dask_pool.CONNECTING", 0.2)
    file = write(tmp_path / "six.toml", SIX, CASE)
    with pytest.raises(CaseError, match=r"^--dask 127.0.0.1:9: no scheduler answers") as refused:
        sweep(file, tmp_path / "six.h5", dask="127.0.0.1:9", quiet=True)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "six.h5").exists()


def test_without_dask_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CaseError, match=r"pip install 'meanfield-transformers\[sweep\]'"):
        sweep(write(tmp_path / "six.toml", SIX, CASE), tmp_path / "six.h5", dask="127.0.0.1:9", quiet=True)


@pytest.mark.parametrize("address", ["nonsense", "no_scheme://127.0.0.1:1", ""])
def test_an_address_that_is_none_is_refused_at_once(address, tmp_path, capfd):
    """The refusal does not take 20 s, with a traceback from a client that cannot be closed."""
    with pytest.raises(CaseError, match="expected host:port"):
        with_dask(address)
    gc.collect()
    assert capfd.readouterr().err == ""
