"""Results of limit: numbers, Dataset, figure, report, and refusals."""

import pickle
import re

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.cli.parser import main
from meanfield.figures.figure import plot_result


@pytest.fixture(scope="module")
def case():
    center = [{"center": [1.0, 0.0], "concentration": 1.0}]
    return mf.load_case(
        {
            "domain": {"manifold": "circle", "resolution": 64},
            "attention": {"beta": 4.0},
            "initial": {"kind": "von_mises_fisher", "components": center},
            "time": {"end": 1.0},
        }
    )


@pytest.fixture(scope="module")
def found(case):
    return mf.limit(case, n=[32, 256], seeds=150, intervals=2, progress=False).limit


@pytest.fixture(scope="module")
def on_sphere(case):
    changes = {
        "domain": {"manifold": "sphere", "resolution": 24},
        "initial.components": [{"center": [1.0, 0.0, 0.0], "concentration": 1.0}],
        "time.end": 0.5,
    }
    return mf.limit(case.replace(changes), n=[16, 128], seeds=120, intervals=1, progress=False).limit


def test_distances_and_deviations_decrease_as_one_over_the_root_of_n(found, on_sphere):
    """The half widths show that a distance ∝ n^−0.4 or n^−0.6 would not pass."""
    for one in (found, on_sphere):
        assert abs(one.exponent.value + 0.5) < 1.5 * one.exponent.half_width < 0.06
        for estimate in one.deviation_exponents:
            assert abs(estimate.value + 0.5) < 1.5 * estimate.half_width < 0.15


def test_variances_agree_with_the_central_limit(found, on_sphere):
    for ratio in (*found.measured_over_predicted, *on_sphere.measured_over_predicted):
        assert abs(ratio.value - 1) < 1.5 * ratio.half_width < 0.35
    low, high = found.fluctuations_interval
    assert ((low < found.fluctuations) & (found.fluctuations < high)).all()


def test_mean_of_many_tokens_is_that_of_the_density(found):
    error = 4 * np.sqrt(found.predicted / found.n[-1] / found.seeds)
    assert (np.abs(found.moments[-1].mean(axis=0) - found.density_moments) < error).all()


def test_noise_adds_to_the_variance(case):
    noisy = mf.limit(
        case.replace({"stabilizers.noise": 0.5}), n=[32, 64], seeds=60, observables=["x"], intervals=1, progress=False
    ).limit
    ratio = noisy.measured_over_predicted[0]
    assert abs(ratio.value - 1) < 1.5 * ratio.half_width < 0.5


@pytest.mark.parametrize("dimension", [2, 3])
def test_observables_about_an_axis_are_the_component_along_it(dimension):
    """Dimensions 2 and 3 are also those of the circle and the sphere, which have further components."""
    about_axis = mf.load_case(
        {
            "domain": {"manifold": "axisymmetric", "dimension": dimension, "resolution": 96},
            "attention": {"beta": 2.0},
            "initial": {"kind": "von_mises_fisher", "components": [{"center": [-1.0], "concentration": 2.0}]},
            "time": {"end": 0.1},
        }
    )
    found = mf.limit(about_axis, n=[16, 32], seeds=3, intervals=1, progress=False).limit
    mean = iv(dimension / 2, 2) / iv(dimension / 2 - 1, 2)
    assert found.observables == ("z",)
    assert found.density_moments[0, 0] == pytest.approx(-mean, rel=1e-3)
    assert found.predicted[0, 0] == pytest.approx(1 - (dimension - 1) * mean / 2 - mean**2, rel=2e-3)
    assert np.abs(found.moments - found.density_moments).max() < 5 * np.sqrt(found.predicted.max() / 16)


def test_no_limit_of_the_variance_is_stated_for_a_collapsed_density(case):
    """The variance of tokens is below 1 after the collapse, whereas the linearized equation on the cells gives 20."""
    changes = {"attention.beta": 9.0, "initial.components": [{"center": [1.0, 0.0], "concentration": 6.0}]}
    found = mf.limit(case.replace(changes | {"time.end": 6.0}), n=[16, 32], seeds=3, intervals=3, progress=False).limit
    assert np.isfinite(found.predicted[:, 0]).tolist() == [True, False, False, False]
    assert np.isfinite(found.measured_over_predicted[0].value)
    assert "limit n → ∞ up to t = 0: later clusters are narrower than a few cells" in found.report


def test_uniform_density_has_the_time_of_departure(case):
    uniform = case.replace({"initial": {"kind": "uniform"}, "time.end": 4.0})
    found = mf.limit(uniform, n=[16, 64], seeds=3, observables=["x"], intervals=4, progress=False).limit
    assert found.rate == pytest.approx(mf.stability(uniform).rates.max())
    assert found.predicted_followed == pytest.approx(np.log([16, 64]) / (2 * found.rate))
    assert found.followed[0] < found.time[-1]
    assert found.density_clusters == 0
    assert found.configurations.sum(axis=1) == pytest.approx(1)
    assert "log(n)/2λ" in found.report


def test_results_are_a_dataset_a_table_and_a_report(found):
    data = found.to_xarray()
    assert data.distance.dims == ("n", "seed", "time")
    assert data.attrs["exponent"] == float(data.exponent) == found.exponent.value
    assert data.configurations.sum("clusters").values == pytest.approx(1)
    table = found.to_dataframe()
    assert len(table) == 2 * 3 * 2
    assert table.loc[(32, 1.0, "x"), "distance"] == pytest.approx(found.mean_distance[0, -1])
    assert repr(found) == found.report
    assert "n → ∞" in found.report
    assert "<img" in found._repr_html_()
    for again in (pickle.loads(pickle.dumps(found)), pickle.loads(pickle.dumps(data)).limit):
        assert again.report == found.report


def test_figure_is_drawn(found, tmp_path):
    assert plot_result(found, tmp_path / "limit.png").stat().st_size > 10_000
    drawn = found.plot()
    assert len(drawn.subfigs) == 2
    assert [ax.get_ylabel() for ax in drawn.axes[:2]] == ["", f"mean W{found.order} (rad)"]


def test_distances_alone_are_returned_where_no_theory_holds(case):
    heads = case.replace({"stabilizers.layer_norm": "ngpt", "time.end": 0.2})
    found = mf.limit(heads, n=[16, 32], seeds=3, intervals=1, progress=False).limit
    assert np.isnan(found.predicted).all()
    assert re.search("central-limit variance: not computed: .*ngpt", found.report)


def test_several_processes_give_the_same_numbers(case):
    short = case.replace({"time.end": 0.2, "stabilizers.noise": 0.1})
    one, two = (mf.limit(short, [16, 24], seeds=3, jobs=jobs, intervals=1, progress=False) for jobs in (1, 2))
    assert np.array_equal(one.distance, two.distance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": [100]}, "n = 100: expected at least two"),
        ({"n": [200, 100]}, "n = 200,100: expected"),
        ({"n": 100}, "n = 100: expected"),
        ({"seeds": 2}, "seeds = 2: expected at least 3"),
        ({"seeds": [1, 1, 2]}, "seeds = 3: expected at least 3 different"),
        ({"jobs": 0}, "jobs = 0: expected a whole number"),
        ({"intervals": 0}, "intervals = 0: expected"),
        ({"order": 3}, "order = 3: expected 1 or 2"),
        ({"tolerance": -1}, "tolerance = -1: expected an angle"),
        ({"observables": ["q"]}, "observables = q: expected"),
        ({"observables": ["x", "log(x)"]}, r"observables = log\(x\): expected a formula that is finite"),
        ({"observables": ["2*x/x"]}, "observables = 2[*]x/x: expected a formula that is finite"),
        ({"observables": []}, "expected at least one formula"),
    ],
)
def test_arguments_are_refused_before_any_run(case, arguments, message):
    with pytest.raises(mf.CaseError, match=message):
        mf.limit(case, **({"n": [16, 32]} | arguments), progress=False)


def test_physics_that_tokens_lack_is_refused(case):
    grows = case.replace({"reaction": {"kind": "linear", "rate": 0.1}})
    with pytest.raises(mf.CaseError, match="reaction"):
        mf.limit(grows, n=[16, 32], progress=False)


def test_command_prints_the_report_and_refuses_bad_input(tmp_path, capsys):
    few = ["limit", "growth_circle", "--set", "time.end=0.1", "--n", "16,32", "--seeds", "3", "--intervals", "1"]
    assert main([*few, "--quiet", "-o", str(tmp_path / "a.png")]) == 0
    assert "exponent of W1" in capsys.readouterr().out
    assert (tmp_path / "a.png").exists()
    assert main([*few, "--quiet", "--json", "--observables", "x,cos(2*phi)"]) == 0
    assert '"observables": [\n    "x",\n    "cos(2*phi)"' in capsys.readouterr().out
    assert main([*few, "--seeds", "2"]) == 2
    assert capsys.readouterr().err.startswith("meanfield: --seeds 2: expected at least 3")
    assert main([*few, "--n", "32,16"]) == 2
    assert main(["limit", "growth_circle", "--observables", "w"]) == 2
    assert "--observables w: expected" in capsys.readouterr().err


def test_interrupt_reports_the_finished_runs(case, monkeypatch):
    from meanfield.analysis.token_numbers import runs

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "find_clusters_of_tokens", interrupt)
    with pytest.raises(KeyboardInterrupt, match="interrupted; 0 of 6 runs of tokens were done"):
        mf.limit(case.replace({"time.end": 0.1}), n=[16, 32], seeds=3, progress=False)
