"""Stop conditions, callbacks, and exceptions raised by a run in a user's loop."""

import math
import os
import re
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.components.component import LOADED
from meanfield.domains.sphere.diagnostics import DIAGNOSTICS
from meanfield.runtime import recorder
from meanfield.runtime.progress import Progress
from meanfield.runtime.remaining import RemainingTime
from solvers.io.memory import InMemoryWriter
from solvers.mesh.mesh import Floats

CASE = {
    "domain": {"manifold": "circle", "resolution": 64},
    "initial": {"kind": "perturbed", "amplitude": 0.3, "seed": 1},
    "attention.beta": 3.0,
    "time.end": 60.0,
    "output.samples": 120,
    "output.snapshots": 3,
    "output.diagnostics": ["mass", "clusters"],
}


@pytest.fixture(scope="module")
def case():
    return mf.load_case("uniform").replace(CASE)


def test_a_steady_state_ends_a_run_where_the_whole_run_is_steady(case):
    case = case.replace({"stabilizers.noise": 1.0})  # the uniform density attracts at this noise
    whole = mf.simulate(case.replace({"output.snapshots": 120}))
    stopped = mf.simulate(case.replace({"time.stop": "steady", "time.stop_at": 1e-3}))
    rows = whole.density
    changes = np.linalg.norm(rows[1:] - rows[:-1], axis=1) / np.linalg.norm(rows[1:], axis=1) / np.diff(whole.time)
    expected = whole.time[1:][changes <= 1e-3][0]
    assert 0 < expected < 60
    assert stopped.time[-1] == expected == stopped.diagnostics.time[-1]
    assert (stopped.stop_reason, stopped.message) == ("finished", f"stopped at time {expected:.6g}: steady")
    # the whole run's steps end at its snapshots; in the other run such times lie within steps
    np.testing.assert_allclose(stopped.density[-1], rows[np.searchsorted(whole.time, expected)], rtol=1e-6)


def test_a_number_of_clusters_ends_a_run_and_a_file_goes_on(case, tmp_path):
    path = tmp_path / "run.h5"
    few = mf.run(case.replace({"time.stop": "clusters"}), path)
    assert few.diagnostics["clusters"][-1] == 1 < 60 - few.time[-1]
    assert not ((few.diagnostics["clusters"][1:-1] > 0) & (few.diagnostics["clusters"][1:-1] <= 1)).any()
    assert mf.resume(path).time[-1] > few.time[-1]


def test_functions_see_each_sample_and_may_stop(case):
    seen = []

    def late(moment):
        return moment.time >= 2.0

    result = mf.simulate(case, stop=late, callbacks=[seen.append])
    assert result.time[-1] == 2.0
    assert result.message == "stopped at time 2: late"
    assert [moment.time for moment in seen] == list(result.diagnostics.time)
    assert seen[3].diagnostics["mass"] == result.diagnostics["mass"][3]
    assert seen[0].values @ seen[0].space.volumes == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time.stop": "soon"}, r'time\.stop = "soon"'),
        ({"time.stop_at": 1e-3}, r"time\.stop_at = 0\.001: only allowed with time\.stop"),
        ({"time.stop": "clusters", "output.diagnostics": ["mass"]}, r'time\.stop = "clusters": expected another'),
    ],
)
def test_bad_conditions_are_refused(case, changes, message):
    with pytest.raises(mf.CaseError, match=message):
        case.replace(changes)


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
@pytest.mark.parametrize("in_file", [True, False])
def test_a_signal_ends_the_loop_that_runs_cases(case, tmp_path, number, kind, in_file, capfd):
    """The handler is the caller's again, the file is closed and can continue, and computed data are kept.

    Samples lie within steps: no further sample of the step is taken after the signal.
    """
    done = []

    def send(moment):
        if moment.time == 2.0:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)

    def loop():
        for beta in (3, 4):
            changed = case.replace({"attention.beta": beta, "time.end": 5})
            if in_file:
                mf.run(changed, tmp_path / f"{beta}.h5", callbacks=[send])
            else:
                mf.simulate(changed, callbacks=[send])
            done.append(beta)

    with pytest.raises(kind, match="interrupted at time ") as error:
        loop()
    assert done == []
    assert signal.getsignal(number) is before
    assert kind is KeyboardInterrupt or error.value.code == 143
    partial = mf.open_run(tmp_path / "3.h5") if in_file else error.value.result
    assert partial.stop_reason == "interrupted"
    assert partial.diagnostics.time[-1] == 2.0
    reached = float(str(error.value).split("interrupted at time ")[1].split(";")[0])
    assert 1.0 < reached < 2.0  # start of the step
    if in_file:
        whole, resumed = mf.simulate(case.replace({"time.end": 5})), mf.resume(partial.path)
        assert np.asarray(resumed.density).tobytes() == whole.density.tobytes()
        assert np.array_equal(resumed.diagnostics.time, whole.diagnostics.time)
        assert np.array_equal(resumed.diagnostics["mass"], whole.diagnostics["mass"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_second_signal_raises_what_the_first_stands_for(case, tmp_path, number, kind):
    def send(moment):
        if moment.time == 2.0:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(kind, match="interrupted at once") as error:
        mf.run(case, tmp_path / "run.h5", callbacks=[send])
    assert kind is KeyboardInterrupt or error.value.code == 143
    assert mf.open_run(tmp_path / "run.h5").stop_reason == "interrupted"


def test_a_state_that_becomes_non_finite_is_raised_with_what_there_is(tmp_path):
    changes = {"domain.resolution": 256, "time.end": 20.0}
    with pytest.raises(mf.NonFinite, match=r"stopped on .*; .*run\.h5 is valid up to its last snapshot"):
        mf.run(mf.load_case("blow_up_line", changes), tmp_path / "run.h5")
    with pytest.raises(mf.NonFinite) as error:
        mf.simulate(mf.load_case("blow_up_line", changes))
    partial, file = error.value.result, mf.open_run(tmp_path / "run.h5")
    assert partial.stop_reason == file.stop_reason == "failed"
    assert partial.density.tobytes() == np.asarray(file.density).tobytes()


def test_one_function_is_a_callback_as_a_list_of_it_is(case, tmp_path):
    case, path, seen = case.replace({"time.end": 1, "output.samples": 2}), tmp_path / "run.h5", []
    mf.simulate(case, callbacks=lambda moment: seen.append(moment.time))
    mf.run(case, path, callbacks=lambda moment: seen.append(moment.time))
    mf.resume(path, until=1.5, callbacks=lambda moment: seen.append(moment.time))
    assert seen == [0.0, 0.5, 1.0, 0.0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize("wrong", [{"callbacks": 3}, {"callbacks": [3]}, {"stop": 3}], ids=str)
def test_a_wrong_callback_is_refused_before_a_file_is_written(case, tmp_path, wrong):
    name, path = next(iter(wrong)), tmp_path / "run.h5"
    with pytest.raises(TypeError, match=rf"^{name}\S* = int: expected a function of \(moment\)$"):
        mf.run(case, path, **wrong)
    assert list(tmp_path.iterdir()) == []
    mf.run(case.replace({"time.end": 1}), path)
    with pytest.raises(TypeError, match=rf"^{name}\S* = int: expected a function of \(moment\)$"):
        mf.resume(path, until=2, **wrong)
    assert mf.open_run(path).stop_reason == "finished"


@pytest.mark.parametrize("interval", [0, 1e9], ids=["always", "at the end"])
def test_a_live_plot_has_each_sample(case, interval):
    """The plot includes samples since its last drawing, once the run has ended."""
    live = mf.LivePlot("clusters", "mass", interval=interval)
    result = mf.simulate(case.replace({"time.end": 3, "output.samples": 6}), callbacks=[live])
    for ax, name in zip(live.figure.axes, live.names, strict=True):
        times, values = ax.lines[0].get_data()
        assert np.array_equal(times, result.diagnostics.time)
        assert np.array_equal(values, result.diagnostics[name])
        assert ax.get_xlim()[1] >= times[-1]  # within the limits


@pytest.fixture
def cell(monkeypatch):
    """Outputs of the cell of a notebook, in order: pairs of a name, "display" or "update", and what is shown."""
    outputs = []

    class Handle:
        def update(self, shown, raw=False):
            outputs.append(("update", shown if raw else len(shown.axes[0].lines[0].get_xdata())))

    def display(shown, display_id, raw=False):
        outputs.append(("display", shown))
        return Handle()

    for name, content in {
        "ipykernel": {},
        "IPython": {"get_ipython": object},
        "IPython.display": {"display": display},
    }.items():
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(content)
    return outputs


def test_live_draws_in_the_cell_of_a_notebook(case, cell):
    """The figure is displayed once, and updated by the handle of the display."""
    result = mf.live(case, draw=["clusters", "mass"], interval=0, progress=False, end=3, samples=6)
    (_, shown), *updated = cell
    assert [ax.get_ylabel() for ax in shown.axes] == ["clusters", "mass"]
    assert updated == [("update", number) for number in (*range(1, 8), 7)]
    assert np.array_equal(shown.axes[1].lines[0].get_ydata(), result.diagnostics["mass"])


def test_live_without_a_window_is_refused(case):
    with pytest.raises(RuntimeError, match=r"^live: Matplotlib's backend agg has no windows; expected a notebook, or "):
        mf.live(case)


def test_live_draws_in_a_window(case, monkeypatch):
    drawn = []
    monkeypatch.setattr("meanfield.results.live_plot.interactive_backends", lambda: ["agg"])
    monkeypatch.setattr(plt, "show", lambda block: drawn.append(block))
    result = mf.live(case, draw="mass", end=1)
    assert drawn == [False]
    assert np.array_equal(plt.gcf().axes[0].lines[0].get_ydata(), result.diagnostics["mass"])
    plt.close("all")


def test_a_bar_in_a_notebook_is_one_output_of_the_cell(case, cell, capfd):
    """The bar is erased at the end, so that a stored or exported notebook does not hold its states."""
    mf.simulate(case.replace({"time.end": 1}))
    (name, _), *updated = cell
    assert {name, *(name for name, _ in updated[:-1])} == {"display", "update"}
    assert [shown for _, shown in updated if shown["text/plain"]][-1]["text/plain"].count("t = 1/1") == 1
    assert updated[-1] == ("update", {"text/plain": "", "text/html": ""})
    assert capfd.readouterr() == ("", "")
    cell.clear()
    with Progress("title", 0.0, 1.0, quiet=False, remaining=RemainingTime(1.0, [])) as bar:
        bar.show("a line")
        assert re.fullmatch(r"a line\ntitle: +0%.*", cell[-1][1]["text/plain"])


@pytest.mark.parametrize("name", ["enrgy", "centroid"])
def test_a_live_plot_refuses_what_is_no_recorded_number(case, name):
    case = case.replace({"output.diagnostics": ["mass", "centroid"], "time.end": 1})
    with pytest.raises(ValueError, match=f"LivePlot.'{name}'.: expected .* recorded: mass$"):
        mf.simulate(case, callbacks=[mf.LivePlot(name)])


@pytest.mark.parametrize(
    "domain",
    [
        {"manifold": "circle", "resolution": 48},
        {"manifold": "sphere", "resolution": 14},
        {"manifold": "particles", "dimension": 3, "count": 12},
    ],
    ids=lambda domain: domain["manifold"],
)
def test_samples_that_wait(domain: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagnostics of many samples together equal those of single samples, which callbacks need."""
    together: list[int] = []
    write_samples = InMemoryWriter.write_samples

    def counted(self: InMemoryWriter, times: Sequence[float], values: dict[str, Floats]) -> None:
        together.append(len(times))
        write_samples(self, times, values)

    monkeypatch.setattr(InMemoryWriter, "write_samples", counted)
    monkeypatch.setattr(recorder, "MAX_WAIT", math.inf)
    monkeypatch.setattr(recorder, "MAX_COST", math.inf)
    initial = {"kind": "uniform"} if "count" in domain else {"kind": "perturbed"}
    case = mf.load_case(
        {
            "domain": domain,
            "attention": {"beta": 3.0},
            "initial": initial,
            "time": {"end": 0.5},
            "output": {"samples": 70},
        }
    )
    waited = mf.simulate(case)
    size = (waited.density if "resolution" in domain else waited.position)[0].size
    assert sum(together) == 71
    assert max(together) == min(recorder.MAX_SAMPLES, recorder.MAX_NUMBERS // size)
    together.clear()
    at_once = mf.simulate(case, callbacks=[lambda moment: None])
    assert together == [1] * 71
    for name in case.output.diagnostics:
        assert waited.diagnostics[name].tobytes() == at_once.diagnostics[name].tobytes()


@pytest.fixture
def own_diagnostics():
    """Unload at the end the diagnostics that a test has loaded."""
    tables = LOADED, DIAGNOSTICS
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.mark.usefixtures("own_diagnostics")
def test_samples_before_one_that_fails_are_kept(case, tmp_path, monkeypatch):
    """A user's diagnostic that raises during a run ends the run; earlier samples are written."""
    monkeypatch.setattr(recorder, "MAX_WAIT", math.inf)
    monkeypatch.setattr(recorder, "MAX_COST", math.inf)

    @mf.component("diagnostic", long_name="largest mass, until it is large")
    def narrow(x, mass):
        if mass.max() > 0.04:
            raise RuntimeError("no such number")
        return mass.max()

    mf.load_components(narrow)
    case = case.replace({"output.diagnostics": ["mass", "narrow"], "time.end": 10, "output.samples": 40})
    times = []
    for name, callbacks in (("waited", []), ("at_once", [lambda moment: None])):
        with pytest.raises(mf.CaseError, match="no such number"):
            mf.run(case, tmp_path / f"{name}.h5", callbacks=callbacks)
        times.append(mf.open_run(tmp_path / f"{name}.h5").diagnostics.time)
    assert 2 < len(times[0]) < 41
    np.testing.assert_array_equal(*times)


def pair_in_cells(beta: float, end: float) -> mf.Result:
    """Return a run of two clusters in neighboring cells of a circle of 32, one cluster on the mesh, with masses 0.37
    and 0.63."""
    width = 2 * math.pi / 32
    points = [[math.cos(angle), math.sin(angle)] for angle in (4.5 * width, 5.5 * width)]
    changes = {
        "domain": {"manifold": "circle", "resolution": 32},
        "initial": {"kind": "points", "points": points, "masses": [0.37, 0.63]},
        "attention.beta": beta,
        "time": {"end": end, "stop": "steady"},
        "output.samples": round(end),
        "output.snapshots": 2,
    }
    return mf.simulate(mf.load_case("uniform").replace(changes))


def test_a_collapsed_cluster_settles_in_one_cell_as_is_documented() -> None:
    """p' = −βh²/2 p(1 − p)(1 − 2p) for the mass p of the lighter cell, to the next order in βh²; at rest for β = 0."""
    assert pair_in_cells(0.0, 20.0).message == "stopped at time 1: steady"
    beta, width = 4.0, 2 * math.pi / 32
    early = pair_in_cells(beta, 20.0)
    assert early.message.startswith("not steady at time 20: the state changes by 0.0")
    assert early.message.endswith("creep into one of them, at a rate of βh²/2 with cells of width h")
    exact = solve_ivp(lambda t, p: -beta * width**2 / 2 * p * (1 - p) * (1 - 2 * p), (0.0, 20.0), [0.37], rtol=1e-8)
    masses = np.asarray(early.density)[-1] * width
    assert masses[4] == pytest.approx(exact.y[0, -1], rel=0.1)
    settled = pair_in_cells(beta, 60 / (beta * width**2))
    assert settled.message.endswith(": steady"), settled.message
    assert settled.time[-1] == pytest.approx(30 / (beta * width**2), rel=0.4)


def erase_values(moment):
    moment.values[...] = 0.0


def erase_masses(moment):
    moment.diagnostics["cluster_mass"][...] = 0.0


def erase_record(moment):
    moment.diagnostics["mass"] = 0.0


@pytest.mark.parametrize("erase", [erase_values, erase_masses, erase_record])
@pytest.mark.parametrize("manifold", ["circle", "particles"])
def test_what_callbacks_are_given_is_read_only(case, manifold, erase):
    domain = {"manifold": "circle", "resolution": 64} if manifold == "circle" else {"manifold": manifold, "count": 8}
    changes = {"domain": domain, "time.end": 0.1, "output.samples": 3}
    changes |= {"output.diagnostics": ["mass", "cluster_mass"]}
    with pytest.raises((ValueError, TypeError), match=r"read-only|item assignment"):
        mf.simulate(mf.load_case("uniform").replace(changes), callbacks=[erase])
