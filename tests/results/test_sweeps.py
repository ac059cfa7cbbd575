"""Sweeps from Python: keys as dimensions, user scalars, opened indexes; processes and Dask give the same."""

import subprocess
import sys

import numpy as np
import pytest
from support.sweeping import in_this_process

import meanfield as mf
from meanfield.results import sweeps
from meanfield.sweeping.driver import sweep as sweep_file
from meanfield.sweeping.local_pool import SolverLost

BASE = """
domain = { manifold = "circle", resolution = 32 }
attention = { beta = 1.0 }
initial = { kind = "perturbed", amplitude = 0.1 }
time = { end = 0.5 }
output = { samples = 10 }
"""
KEYS = {"attention.beta": [1.0, 2.0, 4.0], "initial.seed": [0, 1]}


@pytest.fixture
def case(tmp_path):
    (tmp_path / "case.toml").write_text(BASE)
    return mf.load_case(tmp_path / "case.toml")


def test_three_values_in_six_lines(tmp_path):
    """A script without a guard for its main module leaves no files, and the processes of its sweep do not run it."""
    script = """
import meanfield as mf
from matplotlib.figure import Figure
ax, case = Figure().subplots(), mf.load_case("uniform", ["domain.resolution=16", "time.end=0.1"])
for beta in (2, 4, 8):
    result = mf.simulate(case.replace({"attention.beta": beta}))
    ax.plot(result.diagnostics.time, result.diagnostics["energy"], label=f"β = {beta}")
print(mf.sweep(case, {"attention.beta": [2, 4], "time.end": [0.1]}, jobs=2).mass.shape, len(ax.lines))
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("(2, 1) 3\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_keys_are_dimensions_and_results_those_of_single_runs(case):
    found = mf.sweep(case, KEYS, jobs=2, scalars={"peak": lambda result: np.asarray(result.density[-1]).max()})
    assert found.energy.dims == found.peak.dims == ("attention.beta", "initial.seed")
    assert found.power.dims == ("attention.beta", "initial.seed", "degree")
    assert (found.status == "done").all()
    for beta, seed in ((1.0, 0), (4.0, 1)):
        single = mf.simulate(case.replace({"attention.beta": beta, "initial.seed": seed}))
        point = found.sel({"attention.beta": beta, "initial.seed": seed})
        assert point.energy == single.diagnostics["energy"][-1]
        assert point.peak == single.density[-1].max()


def test_an_index_opens_with_its_keys_as_dimensions(case, tmp_path):
    keys = "\n".join(f'"{key}" = {values}' for key, values in KEYS.items())
    (tmp_path / "sweep.toml").write_text(f'case = "case.toml"\n[keys]\n{keys}\n')
    sweep_file(tmp_path / "sweep.toml", tmp_path / "index.h5", jobs=1, quiet=True)
    opened, memory = mf.open_sweep(tmp_path / "index.h5"), mf.sweep(case, KEYS, jobs=1)
    for name in ("energy", "clusters", "most_clusters"):
        np.testing.assert_array_equal(opened[name], memory[name], name)


@pytest.mark.parametrize(
    "keys",
    [
        {"attention.beta": [4.0, 1.0], "initial.seed": [2, 0, 1]},
        {"time.end": [0.2, 0.1]},
        {"attention.heads": [[{"weight": 0.5}] * 2, [{"value": [[0.0, -1.0], [1.0, 0.0]]}]], "time.end": [0.1]},
    ],
)
def test_the_layout_in_an_index_is_that_in_memory(case, tmp_path, keys):
    """The keys come first, in the given order, as do their values; then the dimensions of the quantity."""
    memory, opened = mf.sweep(case, keys, jobs=1), mf.sweep(case, keys, jobs=1, path=tmp_path / "index.h5")
    assert opened.power.dims == (*keys, "degree")
    assert memory.identical(opened.drop_vars("wall_time"))


def test_on_the_workers_of_a_dask_client(case):
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        found = mf.sweep(case, {"attention.beta": [1.0, 2.0]}, client=client)
        assert client.status == "running"  # the user's client
    single = mf.simulate(case.replace({"attention.beta": 2.0}))
    assert found.energy[1] == single.diagnostics["energy"][-1]


@pytest.mark.parametrize("in_index", [False, True], ids=["memory", "index"])
def test_lost_workers_are_an_error_of_users_that_keeps_the_results(case, tmp_path, monkeypatch, in_index):
    def lose_all_but_one(client):
        def solve(work):
            yield next(in_this_process(1)(work))
            raise SolverLost("client: lost the connection to the scheduler")

        return solve

    monkeypatch.setattr(sweeps, "with_client", lose_all_but_one)
    path, keys = tmp_path / "index.h5" if in_index else None, {"domain.resolution": [32, 48]}
    with pytest.raises(mf.CaseError, match=r"^client: lost the connection to the scheduler") as lost:
        mf.sweep(case, keys, client="client", path=path)
    if path is None:
        assert lost.value.result.status.values.tolist() == ["done", "failed"]
        assert lost.value.result.reason[1] == str(lost.value)
        assert np.isfinite(lost.value.result.energy).values.tolist() == [True, False]
    else:
        assert str(lost.value).endswith(f"; 1 of 2 points are kept in {path}; the same call continues")
        assert mf.open_sweep(path).status.values.tolist() == ["done", "waiting"]
        assert (mf.sweep(case, keys, jobs=1, path=path).status == "done").all()


def test_points_that_cannot_be_run_are_refused_before_any_is(case):
    with pytest.raises(mf.CaseError, match=r"point 1 \(attention.beta=-1\): attention.beta = -1"):
        mf.sweep(case, {"attention.beta": [1, -1]})
    with pytest.raises(mf.CaseError, match=r"keys = \{\}: expected one or more"):
        mf.sweep(case, {})


def test_into_an_index_and_on_with_it(case, tmp_path):
    """Points in the index are not run again: their wall times are kept."""
    path = tmp_path / "index.h5"
    few = {"attention.beta": [1.0, 2.0]}
    first = mf.sweep(case, few, jobs=1, path=path)
    memory = mf.sweep(case, few, jobs=1)
    for name in ("energy", "power", "most_clusters"):
        np.testing.assert_array_equal(first[name], memory[name])
    again = mf.sweep(case, few, jobs=1, path=path)
    np.testing.assert_array_equal(again.wall_time, first.wall_time)
    with pytest.raises(mf.FileError, match="--overwrite"):
        mf.sweep(case, {"attention.beta": [3.0]}, jobs=1, path=path)
    with pytest.raises(mf.CaseError, match="scalars = peak: not allowed with path"):
        mf.sweep(case, few, path=path, scalars={"peak": len})
    assert mf.sweep(case, {"attention.beta": [3.0]}, jobs=1, path=path, overwrite=True).sizes == {
        **memory.sizes,
        "attention.beta": 1,
    }


def test_a_reader_of_netcdf_finds_dimensions_and_keys(case, tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "index.h5"
    ours = mf.sweep(case, {"attention.beta": [1.0, 2.0], "initial.seed": [0, 1]}, jobs=1, path=path)
    with (
        xarray.open_dataset(path, engine="h5netcdf") as root,
        xarray.open_dataset(path, engine="h5netcdf", group="result") as result,
    ):
        assert not any("phony" in str(name) for name in (*root.sizes, *result.sizes))
        assert list(root["attention.beta"]) == [1.0, 1.0, 2.0, 2.0]
        assert root.status.dims == result.energy.dims == ("point",)
        grid = xarray.merge([root, result]).set_index(point=["attention.beta", "initial.seed"]).unstack()
        np.testing.assert_array_equal(grid.energy.transpose(*ours.energy.dims), ours.energy)
