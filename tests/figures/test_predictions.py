"""Exact predictions in figures, for the cases that they hold for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.run_data import law

from meanfield import load_case
from meanfield.figures.figure import panel
from meanfield.figures.panels.predictions import BlowUp, blow_up_of


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
