"""Exact predictions in figures, and the cases for which they are valid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from shipped.test_layer_norms import tokens
from support.exact import mean_cosine, moebius_parameter, resultant
from support.run_data import law

from meanfield import load_case, resume, run, simulate
from meanfield.analysis.mergers import staircase
from meanfield.figures.captions import facts
from meanfield.figures.figure import load, panel
from meanfield.figures.panels.curves import AHEAD, time_range
from meanfield.figures.panels.selected import panels
from meanfield.figures.predictions.pair import Pair
from meanfield.figures.predictions.prediction import Prediction
from meanfield.figures.predictions.table import predictions_of
from solvers.io.run_file import RunFile, read

PLANE = "attention.value=[[1.0,0.3],[0.0,0.4]]"


def test_the_shipped_blow_ups_are_predicted() -> None:
    line, plane = (predictions_of(load_case(name))["variance"] for name in ("blow_up_line", "blow_up_plane"))
    times = np.linspace(0, 2.4, 9)
    # The tolerance RTOL is 1e-10, and the error grows toward the blow-up.
    np.testing.assert_allclose(line.trace(times), 0.2 / (1 - 0.4 * times), rtol=1e-8)
    # The integration ends at the variance HUGE, 1e-8 of the time before the blow-up.
    assert line.moment == pytest.approx(2.5, rel=2e-8)
    assert plane.moment == pytest.approx(2.42, abs=0.005)  # the value in the case's comment
    assert np.isnan(line.trace(np.array([line.moment, 4.0]))).all()


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("contraction_line", [], lambda t: 1 / (1 + 2 * t)),
        ("gate_line", [], lambda t: 0.3 / (1 + (0.3 / 0.294 - 1) * np.exp(0.6 * t))),
        ("drift_line", [], lambda t: 0.9 ** (3 ** np.round(t))),
        ("blow_up_plane", ["attention.value=[[-1.0,0.0],[0.0,-1.0]]"], lambda t: 0.4 / (1 + 0.4 * t)),
    ],
)
def test_variances_of_gaussians_are_those_in_closed_form(name: str, changes: list[str], expected) -> None:
    times = np.arange(4.0)
    np.testing.assert_allclose(predictions_of(load_case(name, changes))["variance"].trace(times), expected(times), 1e-8)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("blow_up_line", "stabilizers.noise=0.1"),
        ("blow_up_line", "attention.normalization=unnormalized"),
        ("merging_pair_circle", "stabilizers.noise=0.1"),
        ("merging_pair_circle", "attention.value=[[2.0,0.0],[0.0,1.0]]"),
        ("merging_pair_circle", "initial.masses=[0.7,0.3]"),
        ("flow_beta0_circle", "attention.beta=1"),
        ("tokens_equiangular", "attention.mask=causal"),
        ("reaction", "attention.value=[[1.0,0.0],[0.0,0.0]]"),
        ("representation_blow_up", "initial.amplitude=2"),
    ],
)
def test_other_dynamics_have_no_such_prediction(name: str, change: str) -> None:
    assert predictions_of(load_case(name))
    assert not predictions_of(load_case(name, [change]))


def test_the_exact_flow_is_that_of_the_moebius_group() -> None:
    times = np.array([0.0, 1.0, 2.5])
    for name, d, start in (("flow_beta0_circle", 2, 0.6190392084062235), ("flow_beta0_sphere", 3, None)):
        case = load_case(name)
        parameter = case.initial.parameter if start is None else start
        expected = [moebius_parameter(d, parameter, t) for t in times]
        lengths = np.tanh(np.array(expected) / 2) if d == 2 else [mean_cosine(s) for s in expected]
        np.testing.assert_allclose(predictions_of(case)["centroid"].trace(times), lengths, rtol=1e-7)


def test_selection_is_von_mises_fisher_and_high_dimensions_are_logistic() -> None:
    times = np.array([0.5, 2.0])
    found = predictions_of(load_case("reaction"))["centroid"].trace(times)
    np.testing.assert_allclose(found, [resultant(2, 2 * t) for t in times], rtol=1e-10)
    high = predictions_of(load_case("collapse_high_dimension"))["centroid"]
    odds = high.trace(times) ** 2 / (1 - high.trace(times) ** 2)
    assert np.log(odds[1] / odds[0]) == pytest.approx(2 * 1.5, rel=1e-12)
    assert high.text == "as d → ∞"


def test_equiangular_tokens_and_a_constant_field_are_as_predicted() -> None:
    for name, diagnostic, end, rtol in (
        ("tokens_equiangular", "centroid", 5.0, 1e-6),  # the run's tolerance times its growth
        # The field is not exactly constant: the error is its amplitude squared.
        ("representation_blow_up", "radius", 6.0, 0.02),
    ):
        case = load_case(name, [f"time.end={end}", "output.snapshots=1", "output.samples=4"])
        recorded = simulate(case).diagnostics
        values = np.asarray(recorded[diagnostic])
        found = values if values.ndim == 1 else np.linalg.norm(values, axis=1)
        predicted = predictions_of(case)[diagnostic].trace(np.asarray(recorded.time))
        np.testing.assert_allclose(found, predicted, rtol=rtol)


def test_the_blow_up_is_drawn_up_to_its_moment() -> None:
    times = np.linspace(0, 2, 5)
    blow_up = predictions_of(load_case("blow_up_line"))["variance"]
    recorded = {"time": times, "variance": blow_up.trace(times)}
    data = replace(law("line", times), diagnostics=recorded, predictions={"variance": blow_up})
    ax = Figure().subplots()
    panel(data, ax, ["variance"])
    drawn, exact = ax.get_lines()[:2]
    np.testing.assert_array_equal(drawn.get_ydata(), exact.get_ydata()[:5])
    assert ax.get_xlim()[1] > blow_up.moment
    assert np.nanmax(exact.get_ydata()) > ax.get_ylim()[1] > 5 * recorded["variance"][-1], "it leaves the panel"
    assert [text.get_text() for text in ax.texts] == ["blow-up at t = 2.5"]
    assert ax.get_title() == "variance of the tokens (dashed: exact)"
    late = replace(data, predictions={"variance": Prediction(blow_up.trace, moment=1.01 * AHEAD * times[-1])})
    assert time_range(late, "variance") == (0, 2), "what is far ahead is not shown"


def test_a_spread_that_rounding_leaves_is_not_drawn() -> None:
    times, radius = np.arange(5.0), np.geomspace(1, 1e8, 5)
    recorded = {"time": times, "variance": np.array([1.0, 0.1, 1e-5, 1e-5, 1e3]), "radius": radius}
    ax = Figure().subplots()
    panel(replace(law("line", times), diagnostics=recorded), ax, ["variance"])
    drawn = ax.get_lines()[0].get_ydata()
    np.testing.assert_array_equal(np.isfinite(drawn), [True, True, True, False, False])


def test_the_shipped_pair_is_predicted() -> None:
    for name, expected in (("merging_pair_circle", 38.6657808166), ("tokens_pair", 21353.5091997)):
        predicted = predictions_of(load_case(name))["centroid"]
        assert predicted.moment == pytest.approx(expected, rel=1e-10)  # the value in the case's comment


@pytest.mark.parametrize("scheme", ["ngpt", "cod", "pre", "peri", "mix"])
def test_two_tokens_are_predicted_with_every_layer_norm(scheme: str) -> None:
    """Predictions solve the equations of the shipped cases, which tests/shipped/test_layer_norms.py writes out."""
    case, times = load_case(f"layer_norm_{scheme}"), np.linspace(0, 4, 9)
    angle, radius = tokens(case, times)
    found = predictions_of(case)
    # LSODA has tolerance 1e-9; tokens() has short steps over the corner of mix.
    rtol = 1e-5 if scheme == "mix" else 1e-7
    np.testing.assert_allclose(found["centroid"].trace(times), radius * np.cos(angle / 2), rtol=rtol)
    assert ("radius" in found) == case.tokens_have_radius
    if case.tokens_have_radius:
        np.testing.assert_allclose(found["radius"].trace(times), radius, rtol=rtol)
    moment = found["centroid"].moment
    assert np.isnan(moment) or tokens(case, np.array([0, moment]))[0][1] == pytest.approx(np.pi / 3, abs=1e-5)
    assert not predictions_of(load_case(f"layer_norm_{scheme}", ["stabilizers.noise=0.1"] if scheme in ("ngpt", "cod")
                                        else ["stabilizers.gate=0.1"]))  # fmt: skip


@pytest.mark.parametrize(
    ("norm", "points", "is_predicted"),
    [("mix", [[1.0, 0.0], [0.6, 0.8]], True), ("pre", [[2.0, 0.0], [1.2, 1.6]], True),
     ("pre", [[2.0, 0.0], [0.6, 0.8]], False)],
    ids=["mix switches at t = 1", "both points have the radius 2", "two radii"],
)  # fmt: skip
def test_two_tokens_move_as_predicted(norm: str, points: list[list[float]], is_predicted: bool) -> None:
    """Tokens begin at the lengths of the points if initial.radius is absent; mix switches at t = 1 by default."""
    sections = {"domain": {"manifold": "particles"}, "attention": {"beta": 2.0}, "stabilizers": {"layer_norm": norm}}
    sections |= {"initial": {"kind": "points", "points": points}, "time": {"end": 2.0}, "output": {"samples": 4}}
    case = load_case(sections)
    found, diagnostics = predictions_of(case), simulate(case).diagnostics
    assert found.keys() == ({"centroid", "radius"} if is_predicted else set())
    for name, prediction in found.items():
        values = diagnostics[name] if name == "radius" else np.linalg.norm(diagnostics[name], axis=1)
        np.testing.assert_allclose(prediction.trace(diagnostics.time), values, rtol=1e-7)  # LSODA: 1e-9 a step


def test_no_prediction_for_a_run_whose_model_has_changed_at_a_resumption(tmp_path: Path) -> None:
    """The predicted curve is that of the first β; the heading has the time from which another one applies."""
    path = tmp_path / "run.h5"
    run("tokens_pair", path, beta=1, end=0.5, samples=4)
    resume(path, changes={"output.samples": 8, "time.end": 0.6})
    assert "centroid" in load(path).predictions
    resume(path, changes={"attention.beta": 4, "time.end": 1.0})
    found = load(path)
    assert found.predictions == {}
    assert "attention.beta=4 from t = 0.6" in facts(found)
    assert staircase(read(path)) is None
    RunFile.append(path).close(stop_reason="interrupted")
    assert load(path).state == "interrupted at t = 1 of 1"


def test_the_time_of_the_pair_solves_its_equation() -> None:
    pair, c, h = Pair(4.0, -0.4), np.linspace(-0.3, 0.9, 7), 1e-5
    slope = (pair.time(c + h) - pair.time(c - h)) / (2 * h)
    # Central differences have an error of h² times the third derivative, at most 1e4 of the slope, and rounding over h.
    np.testing.assert_allclose(slope, (1 + np.exp(4.0 * (1 - c))) / (2 * (1 - c**2)), rtol=1e-6)
    # The table has 4000 cells, so interpolation has an error of the curvature times (15/4000)²/8.
    np.testing.assert_allclose(2 * pair.trace(pair.time(c)) ** 2 - 1, c, atol=1e-5)


def test_the_pair_is_drawn_in_the_centroid_first_among_the_panels() -> None:
    times, pair = np.linspace(0, 40, 9), Pair(4.0, -0.4)
    length = pair.trace(times)
    recorded = {"time": times, "energy": times, "centroid": np.stack([length, 0 * length], axis=1)}
    data = replace(law("line", times), diagnostics=recorded)
    predicted = replace(data, predictions={"centroid": Prediction(pair.trace, "exact", 30.0, "angle 60°")})
    assert panels(predicted)[0] == "centroid" != panels(data)[0]
    ax = Figure().subplots()
    panel(predicted, ax, ["centroid"])
    np.testing.assert_allclose(ax.get_lines()[1].get_ydata(), length)
    assert ax.get_title() == "centroid (dashed: exact)"
    assert [text.get_text() for text in ax.texts] == ["angle 60° at t = 30"]
