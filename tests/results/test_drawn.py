"""Figures, tables and displays in notebooks of results other than runs, and several results in one figure."""

import html
import io
import pickle
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import meanfield as mf

TOKENS = {
    "domain": {"manifold": "particles", "dimension": 2},
    "attention": {"beta": 1.0},
    "initial": {"kind": "points", "points": [[1, 0], [0, 1], [1, 1]]},
    "time": {"end": 20.0},
    "output": {"samples": 60, "snapshots": 6},
}


@pytest.fixture(scope="module")
def run():
    return mf.simulate(TOKENS)


@pytest.fixture(scope="module")
def shown(run):
    other = mf.simulate(TOKENS, beta=2)
    return {
        "branch": mf.branch("noise_below"),
        "stability": mf.stability("growth_circle"),
        "comparison": mf.compare(run, other),
        "mergers": run.mergers(),
    }


LENGTHS = {"stability": 32, "comparison": 7, "mergers": 2}


@pytest.mark.parametrize("name", ["branch", "stability", "comparison", "mergers"])
def test_results_have_a_figure_a_table_and_a_display(shown, name):
    found = shown[name]
    assert isinstance(found.plot(), Figure)
    assert found.plot().axes
    table, dataset = found.to_dataframe(), found.to_xarray()
    assert list(table.columns) == list(dataset.data_vars)
    assert len(table) == LENGTHS.get(name, len(table)) > 1
    display = found._repr_html_()
    assert re.match(r'<img alt="\w+" style="max-width: 100%" src="data:image/png;base64,', display)
    assert "<details>" in display


@pytest.mark.parametrize("name", ["branch", "stability", "comparison", "mergers"])
def test_results_are_drawn_into_a_part_of_a_figure(shown, name):
    whole = Figure((9, 12))
    part = whole.subfigures(2, 1)[1]
    assert shown[name].plot(part) is whole
    assert whole.axes
    assert tuple(whole.get_size_inches()) == (9, 12)


def test_tables_have_the_numbers_of_their_results(shown):
    branch, mergers = shown["branch"], shown["mergers"]
    states = branch.branch.equilibria
    np.testing.assert_array_equal(branch.to_dataframe().noise, [branch.parameter(state) for state in states])
    np.testing.assert_array_equal(shown["stability"].to_xarray().rate.sel(degree=3), shown["stability"].rates[3])
    np.testing.assert_array_equal(mergers.to_dataframe().time, [merger.time for merger in mergers])
    np.testing.assert_array_equal(shown["comparison"].to_xarray().w1, shown["comparison"].columns["w1"])


def test_mergers_are_a_list(run, shown):
    assert shown["mergers"] == list(shown["mergers"]) == pickle.loads(pickle.dumps(shown["mergers"]))
    assert [merger.after for merger in run.mergers()] == [1, 1]  # both at once


def test_a_branch_shows_its_report(shown):
    assert repr(shown["branch"]) == str(shown["branch"])
    assert len(repr(shown["branch"]).splitlines()) < 40


def curves(figure):
    return [line.get_ydata() for line in figure.axes[0].lines]


def test_results_are_drawn_over_each_other(run):
    other = mf.simulate(TOKENS, beta=2)
    figure = mf.plot([run, other], "speed")
    for curve, result in zip(curves(figure), (run, other), strict=True):
        np.testing.assert_array_equal(curve, result.diagnostics["speed"])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["beta = 1", "beta = 2"]
    named = mf.plot({"A": run, "B": other}, ["speed", "centroid", "energy"])
    assert [ax.get_ylabel() for ax in named.axes] == ["speed", "centroid", "energy"]
    assert [text.get_text() for text in named.axes[2].get_legend().get_texts()] == ["A", "B"]


def test_results_are_drawn_in_the_width_of_a_column(run):
    figure = mf.plot(run, ["energy", "speed", "mass"], size=(3.4, 5), style="paper", dpi=100)
    assert [ax.get_ylabel() for ax in figure.axes] == ["energy", "speed", "mass"]
    assert [ax.get_subplotspec().colspan.start for ax in figure.axes] == [0, 0, 0]
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match=r"size = 3\.4x1: too small for these panels"):
        mf.plot(run, ["energy", "speed", "mass"], size=(3.4, 1), style="paper").savefig(io.BytesIO())


def test_one_result_is_drawn_on_given_axes(run):
    ax = Figure().add_subplot()
    assert mf.plot(run, "energy", ax=ax) is ax.figure
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("mas",), {}, "diagnostics = 'mas': expected one or more of mass, .*energy"),
        (("energy",), {"labels": ["a", "b"]}, r"labels = \['a', 'b'\]: expected 1, one for each result"),
        ((["energy", "speed"],), {"ax": Figure().add_subplot()}, "expected one name for one ax"),
        (("energy",), {"ax": Figure().add_subplot(), "dpi": 100}, "dpi = 100: expected none with ax"),
        (("energy",), {"style": "papr"}, "style = 'papr': expected paper, screen, dark"),
    ],
)
def test_wrong_calls_of_plot_are_refused(run, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        mf.plot([run], *arguments, **options)


def test_a_notebook_shows_the_page_itself(run, tmp_path):
    shown = run.view()
    frame = re.fullmatch(r'<iframe style="[^"]*" srcdoc="([^"]*)"></iframe>', shown._repr_html_())
    page = run.view(tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.unescape(frame[1]) == page
    assert len(repr(shown)) < 100
