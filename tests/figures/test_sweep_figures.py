"""Figures of sweeps: the choice of the plotted result, the theory beside the result, and empty cells of failed
points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import integrate

from meanfield.analysis.stability_report import rates_of
from meanfield.case.load import parse
from meanfield.figures.sweep.figure import SweepAxes, axes_of_sweep, compose, plot_sweep
from meanfield.figures.sweep.map import cell_edges
from meanfield.figures.sweep.theory import (
    CLOSE,
    critical_line,
    fastest_mode,
    meeting_time,
    theory_of_curve,
    theory_of_map,
)
from meanfield.model.linear_stability import critical_noise, growth_rates
from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.index import open_index
from meanfield.sweeping.point import DONE, FAILED, PointResult
from meanfield.sweeping.results import SweepResults, describe_sweep, is_sweep, read_sweep
from meanfield.sweeping.scalars import scalars
from solvers.io.run_file import FileError

CRITICAL = """
domain = {manifold = "circle", resolution = 64}
attention = {beta = 1.5, normalization = "unnormalized", rescaled = true}
initial.kind = "uniform"
time.end = 1.0
"""

BETA = '"attention.beta" = {from = 10, to = 1000, count = 3, spacing = "log"}\n'
NOISE = '"stabilizers.noise" = {from = 0.1, to = 0.5, count = 5}\n'
SEEDS = '"initial.seed" = {seeds = 4}\n'
TIMES = np.linspace(0.0, 8.0, 5)


def index_of(folder: Path, keys: str, more: str = "", case: str = "metastable_circle", but: Any = ()) -> Path:
    """Write an index with invented results: √(2β) clusters plus the seed, and a centroid of length κ.

    Points in ``but`` have failed.
    """
    sweep = parse_sweep(f'title = "Made up"\ncase = "{case}"\n{more}\n[keys]\n{keys}')
    path = folder / "index.h5"
    index = open_index(path, sweep, "", overwrite=True, retry=False)
    results = {number: PointResult(FAILED, reason="made up too") for number in but}
    for number, point in enumerate(sweep.points):
        if number not in but:
            count = np.round(np.sqrt(2 * point.case.attention.beta)) + point.values.get("initial.seed", 0)
            centroid = np.zeros((len(TIMES), 2))
            centroid[:, 1] = point.case.stabilizers.noise
            tables = {"time": TIMES, "clusters": np.full(len(TIMES), count), "centroid": centroid}
            results[number] = PointResult(DONE, 0, "", 1.0, tables)
    index.put(results)
    index.close("finished")
    return path


def composed(found: SweepResults) -> Figure:
    return compose(found, axes_of_sweep(found), Figure())


@pytest.mark.parametrize(
    ("keys", "view"),
    [
        (BETA + SEEDS, SweepAxes("attention.beta", "clusters")),
        (SEEDS + BETA, SweepAxes("attention.beta", "clusters")),
        (BETA + NOISE, SweepAxes("attention.beta", "centroid_length", y="stabilizers.noise")),
        (NOISE + 'initial = [{kind = "uniform"}, {kind = "harmonic", degree = 1, amplitude = 0.1}]',
         SweepAxes("stabilizers.noise", "centroid_length", lines="initial")),
        (NOISE + "attention.beta = [1, 2]", SweepAxes("stabilizers.noise", "centroid_length", lines="attention.beta")),
        (SEEDS, SweepAxes("initial.seed", "clusters")),
    ],
)  # fmt: skip
def test_what_is_drawn_is_chosen_by_the_keys(keys: str, view: SweepAxes, tmp_path: Path) -> None:
    case = "metastable_circle" if "initial =" not in keys else "uniform"
    found = read_sweep(index_of(tmp_path, keys, case=case))
    assert axes_of_sweep(found) == view
    composed(found)


def test_medians_and_quartiles(tmp_path: Path) -> None:
    """The median of n, n + 1, n + 2, n + 3 clusters is n + 1.5, between the quartiles n + 0.75 and n + 2.25."""
    ax = composed(read_sweep(index_of(tmp_path, BETA + SEEDS))).axes[0]
    counts = np.round(np.sqrt(2 * np.array([10, 100, 1000])))
    assert ax.lines[0].get_xdata() == pytest.approx([10, 100, 1000], rel=1e-14)
    assert ax.lines[0].get_ydata() == pytest.approx(counts + 1.5, rel=1e-14)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(counts[0] + 0.75)
    assert band[:, 1].max() == pytest.approx(counts[2] + 2.25)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    theory = ax.lines[-1]
    assert theory.get_ydata() == pytest.approx(np.sqrt(2 * theory.get_xdata()), rel=1e-14)


@pytest.mark.parametrize(("factor", "scale"), [(100.0, "linear"), (1e9, "log")])
def test_what_is_exponential_in_a_key_has_a_log_axis(factor: float, scale: str, tmp_path: Path) -> None:
    """A linear axis would show values over decades as zero except for the last."""
    figure = 'figure = {value = "most_clusters_until"}\n'
    found = read_sweep(index_of(tmp_path, NOISE, figure))
    lifetimes = np.geomspace(1.0, factor, 5)
    [ax] = composed(replace(found, scalars={**found.scalars, "most_clusters_until": lifetimes})).axes
    assert ax.get_yscale() == scale


def test_a_lifetime_ends_with_the_merger() -> None:
    """The lifetime ends at the first sample with fewer clusters, at the exact merger of atoms, or at the end of the
    run."""
    tables = {"time": np.array([0.0, 1.0, 10.0, 17.0, 100.0])}
    for clusters, until in (([1, 3, 3, 2, 1], 17.0), ([3] * 5, 100.0)):
        assert scalars({**tables, "clusters": np.array(clusters)})["most_clusters_until"] == until


def test_a_map_has_a_cell_for_each_pair_and_none_where_a_point_failed(tmp_path: Path) -> None:
    keys = '"attention.beta" = [1, 2]\n' + NOISE
    found = read_sweep(index_of(tmp_path, keys, 'figure.y = "stabilizers.noise"', but=[7]))
    figure = composed(found)
    mesh, ax = figure.axes[0].collections[0], figure.axes[0]
    cells = np.ma.filled(mesh.get_array(), np.nan).reshape(5, 2)
    assert cells[:, 0] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert np.isnan(cells[2, 1])
    assert np.isfinite(np.delete(cells.ravel(), 5)).all()
    assert (*ax.get_xlim(), *ax.get_ylim()) == pytest.approx((0.5, 2.5, 0.05, 0.55))
    beta, noise = ax.lines[-1].get_data()
    assert noise == pytest.approx([critical_noise(2, b) for b in beta])


def test_a_map_over_time(tmp_path: Path) -> None:
    figure = 'figure = {x = "time", y = "attention.beta", value = "clusters"}'
    found = read_sweep(index_of(tmp_path, BETA, figure))
    mesh = composed(found).axes[0].collections[0]
    assert mesh.get_array().reshape(3, 5)[:, 2].tolist() == [4, 14, 45]


def test_a_map_over_time_extends_to_the_end_of_the_longest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = 'figure = {x = "time", y = "attention.beta", value = "clusters"}'
    found, full = read_sweep(index_of(tmp_path, BETA, figure)), SweepResults.time_series
    parts = {0: slice(2)}  # of the first run, which ends early
    monkeypatch.setattr(
        SweepResults,
        "time_series",
        lambda self, number, name: tuple(each[parts.get(number, slice(None))] for each in full(self, number, name)),
    )
    cells = np.ma.filled(composed(found).axes[0].collections[0].get_array(), np.nan).reshape(3, 5)
    assert np.isnan(cells).tolist() == [[False, False, True, True, True]] + [[False] * 5] * 2


def test_cell_edges_are_halfway() -> None:
    assert cell_edges(np.array([1.0, 2.0, 4.0]), log=False).tolist() == [0.5, 1.5, 3.0, 5.0]
    assert cell_edges(np.array([1.0, 100.0]), log=True) == pytest.approx([0.1, 10, 1000])


@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_the_fastest_mode_is_the_fastest_degree(dimension: int) -> None:
    """The degree with the largest growth rate differs by less than one from the asymptotic formula for large β."""
    beta = np.array([50.0, 200.0, 1000.0])
    l = fastest_mode(dimension, beta)
    assert l * (l + dimension - 2) == pytest.approx(2 * beta)
    fastest = [1 + growth_rates(dimension, b, np.arange(1, 100)).argmax() for b in beta]
    assert np.abs(l - fastest).max() < 1


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_meeting_times_are_the_ode_s(normalization: str) -> None:
    """The meeting time of equiangular tokens is that of the cosine's ODE in ORACLES, integrated up to 1 − δ."""
    n, beta = 32, 3.0

    def rate(_: float, g: np.ndarray) -> np.ndarray:
        e = np.exp(beta * g)
        weight = 2 / (np.exp(beta) + (n - 1) * e) if normalization == "softmax" else 2 / n
        return weight * e * (1 - g) * ((n - 1) * g + 1)

    def met(_: float, g: np.ndarray) -> float:
        return float(g[0] - (1 - CLOSE))

    met.terminal = True  # type: ignore[attr-defined]
    expected = integrate.solve_ivp(rate, (0, 1e3), [0.0], events=met, rtol=1e-10, atol=1e-12).t[-1]
    found = meeting_time(np.array([beta]), n, normalization)[0]
    assert found == pytest.approx(expected, rel=1e-8)  # the tolerance of the steps


def test_there_is_nothing_to_draw(tmp_path: Path) -> None:
    path = index_of(tmp_path, BETA, but=range(3))
    with pytest.raises(FileError, match="no point is done yet"):
        plot_sweep(path, tmp_path / "a.png")
    path = index_of(tmp_path, BETA, 'figure.value = "mass"')
    with pytest.raises(FileError, match=r"no scalar mass; figure.value can be one of centroid_length, clusters"):
        plot_sweep(path, tmp_path / "a.png")
    path = index_of(tmp_path, BETA, 'figure.x = "time"\nfigure.y = "attention.beta"\nfigure.value = "centroid"')
    with pytest.raises(FileError, match="is an array at each time"):
        plot_sweep(path, tmp_path / "a.png")


def test_an_index_without_numbers_is_refused(tmp_path: Path) -> None:
    found = replace(read_sweep(index_of(tmp_path, '"attention.beta" = [2.0, 3.0]')), scalars={})
    with pytest.raises(FileError, match="has no scalar result"):
        axes_of_sweep(found)


def test_the_figure_is_written(tmp_path: Path) -> None:
    figure = plot_sweep(index_of(tmp_path, BETA + SEEDS), tmp_path / "a.png")
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_an_index_is_told_in_words(tmp_path: Path) -> None:
    path = index_of(tmp_path, BETA + SEEDS, but=[0, 5])
    text = describe_sweep(path)
    for line in ("Made up", "finished", "12, 10 done, 2 failed", "2 times: made up too", "meanfield plot"):
        assert line in text
    assert is_sweep(path)
    other = tmp_path / "other.h5"
    other.write_bytes(b"no HDF5")
    assert not is_sweep(other)


@pytest.mark.parametrize("change", ["stabilizers.scale=2.0", "attention.query=[[3,0],[0,3]]", "attention.beta=2.5"])
def test_the_critical_noise_over_a_sweep_is_where_its_case_stops_growing(change):
    """An axis of β means the β of the case, which the sphere's radius and multiples of I rescale."""
    case = parse(CRITICAL, [change])
    (_, height), beta = theory_of_map(case, "attention.beta", "stabilizers.noise", "clusters"), case.attention.beta
    critical = float(height(np.array([beta]))[0])
    assert critical_line(case, "stabilizers.noise") == pytest.approx(critical, rel=1e-14)
    noisy = parse(CRITICAL, [change, f"stabilizers.noise={critical}"])
    assert rates_of(noisy, np.arange(1, 30)).max() == pytest.approx(0.0, abs=1e-12)


def test_theory_of_identities_is_drawn_for_identities_alone():
    """The mode √(2β) and the meeting time of tokens are drawn only if Q = K = V = I on the unit sphere.

    The meeting time also requires no noise and the time of kernels that are not rescaled.
    """
    tokens = ["domain={manifold = 'particles', count = 8, dimension = 8}", "attention.rescaled=false"]
    plain, crowd = parse(CRITICAL), parse(CRITICAL, tokens)
    assert theory_of_curve(plain, "attention.beta", "clusters") is not None
    assert theory_of_map(crowd, "time", "attention.beta", "pairs_close") is not None
    assert theory_of_curve(parse(CRITICAL, ["stabilizers.scale=2"]), "attention.beta", "clusters") is None
    assert theory_of_curve(parse(CRITICAL, ["attention.key=[[2,0],[0,2]]"]), "attention.beta", "clusters") is None
    changes = ("stabilizers.scale=2", "stabilizers.layer_norm='pre'", "stabilizers.noise=0.1")
    for change in (*changes, "attention.rescaled=true", "attention.normalization='sinkhorn'"):
        assert theory_of_map(parse(CRITICAL, [*tokens, change]), "time", "attention.beta", "pairs_close") is None


@pytest.mark.parametrize(
    ("key", "is_drawn"),
    [("initial.seed", True), ("domain.resolution", True), ("attention.beta", False), ("attention.value", False),
     ("stabilizers.scale", False), ("domain.dimension", False)],
)  # fmt: skip
def test_the_critical_noise_is_drawn_if_it_is_that_of_all_runs(key, is_drawn):
    """The figure has the theory of the first run, which does not hold for other values of some keys."""
    case = parse(CRITICAL)
    assert (critical_line(case, "stabilizers.noise", [key]) is not None) == is_drawn
    if key != "attention.beta":
        assert (theory_of_curve(case, "attention.beta", "clusters", [key]) is not None) == is_drawn
        of_map = theory_of_map(case, "attention.beta", "stabilizers.noise", "clusters", [key])
        assert (of_map is not None) == is_drawn


def test_curves_of_several_values_have_no_common_critical_noise(tmp_path: Path) -> None:
    strength = '"attention.value" = [[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]]'
    noise = '"stabilizers.noise" = [0.1, 0.2]'
    for keys, count in ((noise, 1), (f"{noise}\n{strength}", 0)):
        ax = composed(read_sweep(index_of(tmp_path, keys))).axes[0]
        assert sum("critical" in str(line.get_label()) for line in ax.lines) == count
