"""Exact predictions in figures, for the cases that they hold for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.run_data import law

from meanfield import load_case
from meanfield.figures.diagnostics import panels
from meanfield.figures.figure import panel
from meanfield.figures.panels.predictions import BlowUp, Pair, blow_up_of, pair_of


def test_the_shipped_blow_up_is_predicted() -> None:
    assert blow_up_of(load_case("blow_up_line")) == BlowUp(1.0, 0.2, 1)
    assert BlowUp(1.0, 0.2, 1).time == pytest.approx(2.5, rel=1e-15)


@pytest.mark.parametrize("change", ["stabilizers.gate=0.5", "stabilizers.noise=0.1", "attention.value=[[2.0]]"])
def test_other_dynamics_have_no_such_prediction(change: str) -> None:
    assert blow_up_of(load_case("blow_up_line", [change])) is None


def test_the_prediction_solves_its_equation() -> None:
    predicted, times, h = BlowUp(1.5, 0.1, 2), np.linspace(0.1, 2.5, 9), 1e-5
    rate = (predicted.trace(times + h) - predicted.trace(times - h)) / (2 * h) / 2  # of each coordinate
    variance = predicted.trace(times) / 2
    # Central differences err by (h/(T − t))² ≤ 1e-9, and by rounding of 1e-16/h.
    np.testing.assert_allclose(rate, 2 * 1.5 * variance**2, rtol=1e-8)
    assert np.isnan(predicted.trace(np.array([predicted.time * (1 + 1e-15), 4.0]))).all()


def test_the_prediction_is_drawn_with_its_time() -> None:
    times = np.linspace(0, 2, 5)
    recorded = {"time": times, "variance": BlowUp(1.0, 0.2, 1).trace(times)}
    data = replace(law("line", times), diagnostics=recorded, blow_up=BlowUp(1.0, 0.2, 1))
    ax = Figure().subplots()
    panel(data, ax, ["variance"])
    drawn, exact = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_array_equal(drawn, exact)
    assert ax.get_title() == "variance (dashed: exact, infinite at t = 2.5)"


def test_the_shipped_pair_is_predicted() -> None:
    for name, expected in (("merging_pair_circle", 38.6657808166), ("tokens_pair", 21353.5091997)):
        pair = pair_of(load_case(name))
        assert pair is not None
        assert pair.time(0.5) == pytest.approx(expected, rel=1e-10)  # as the case's comment has it


@pytest.mark.parametrize(
    "change", ["stabilizers.noise=0.1", "attention.value=[[2.0,0.0],[0.0,1.0]]", "initial.masses=[0.7,0.3]"]
)
def test_other_pairs_have_no_such_prediction(change: str) -> None:
    assert pair_of(load_case("merging_pair_circle", [change])) is None


def test_the_time_of_the_pair_solves_its_equation() -> None:
    pair, c, h = Pair(4.0, -0.4), np.linspace(-0.3, 0.9, 7), 1e-5
    slope = (pair.time(c + h) - pair.time(c - h)) / (2 * h)
    # Central differences err by h² times a third derivative of at most 1e4 of the slope, and by rounding over h.
    np.testing.assert_allclose(slope, (1 + np.exp(4.0 * (1 - c))) / (2 * (1 - c**2)), rtol=1e-6)
    # The table's 4000 cells: an error of the curvature times (15/4000)²/8.
    np.testing.assert_allclose(2 * pair.trace(pair.time(c)) ** 2 - 1, c, atol=1e-5)


def test_the_pair_is_drawn_in_the_centroid() -> None:
    times, pair = np.linspace(0, 40, 9), Pair(4.0, -0.4)
    length = pair.trace(times)
    recorded = {"time": times, "centroid": np.stack([length, 0 * length], axis=1)}
    ax = Figure().subplots()
    panel(replace(law("line", times), diagnostics=recorded, pair=pair), ax, ["centroid"])
    np.testing.assert_allclose(ax.get_lines()[-1].get_ydata(), length)
    assert ax.get_title().startswith("centroid (dashed: exact, angle 60° at t = ")


def test_a_predicted_pair_is_among_the_panels() -> None:
    data = law("line", np.linspace(0, 2, 5))
    assert panels(replace(data, pair=Pair(4.0, -0.4)))[0] == "centroid" != panels(data)[0]
