"""Panels selected by name: each panel has its own axes, in figures of any width."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.run_data import LINEAR, particles, run_data

from meanfield.figures.figure import page, panel
from meanfield.figures.panels.options import FigureOptions
from meanfield.figures.panels.selected import panel_names, panels
from solvers.mesh.mesh import circle, sphere


def test_a_run_names_its_panels() -> None:
    recorded = ["energy", "power", "speed", "clusters"]
    assert panel_names(run_data(circle(64), LINEAR)) == ["density", "profiles", *recorded]
    assert panel_names(run_data(circle(64), LINEAR[:1], diagnostics={"time": LINEAR[:1]})) == ["profiles"]
    assert panel_names(run_data(sphere(8), LINEAR)) == ["density", *recorded]
    assert "density" not in panel_names(particles(2, 8))


def test_panels_are_drawn_in_the_order_of_their_names() -> None:
    names = ["speed", "density", "clusters"]
    figure = page(run_data(circle(64), LINEAR), FigureOptions(tuple(names)))
    assert [ax.get_title().split(" (")[0] for ax in figure.axes][:3] == ["speed", "density over time", "clusters"]
    assert figure.axes[0].get_xlabel() == "time t"  # the title above does not name the axis


def test_the_density_is_drawn_on_given_axes() -> None:
    figure, data = Figure(), run_data(circle(64), LINEAR)
    ax = figure.subplots()
    assert panel(data, ax, ["density"]) is figure
    picture = ax.collections[0].get_array()
    assert picture.shape == (64, 41)
    assert picture[:, -1].max() == pytest.approx(data.ratio(40).max(), rel=1e-15)


def test_maps_stand_above_the_other_panels() -> None:
    figure = page(run_data(sphere(8), LINEAR), FigureOptions(("clusters", "density")))
    titles = [ax.get_title() for ax in figure.axes]
    assert sum(title.startswith("t = ") for title in titles) == 6
    assert titles[-1].startswith("clusters") or titles[-1] == ""
    alone = page(run_data(sphere(8), LINEAR), FigureOptions(("density",)))
    assert [ax.get_title()[:4] for ax in alone.axes[:6]] == ["t = "] * 6


@pytest.mark.parametrize(
    ("names", "message"), [(["enrgy"], "'enrgy': expected one or more of"), (["speed"] * 2, "name once")]
)
def test_unknown_and_repeated_panels_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        page(run_data(sphere(8), LINEAR), FigureOptions(tuple(names)))
    with pytest.raises(ValueError, match="panels = 'density': expected one or more of energy"):
        panel(run_data(sphere(8), LINEAR), Figure().subplots(), ["density"])


def test_a_page_has_no_panel_of_rounding() -> None:
    kept = {"time": LINEAR, "mass": 1 + 1e-15 * np.arange(41), "centroid": np.full((41, 2), 1e-16)}
    data = run_data(circle(64), LINEAR, diagnostics=kept)
    assert panels(data) == []
    assert panel_names(data)[2:] == ["centroid", "mass"]  # drawn only on request
    lost = kept | {"mass": 1 - 1e-9 * np.arange(41), "centroid": np.full((41, 2), 1e-6)}
    assert panels(run_data(circle(64), LINEAR, diagnostics=lost)) == ["centroid", "mass"]
