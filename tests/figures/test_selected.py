"""Panels selected by name: each panel has its own axes, in figures of any width."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from support.run_data import LINEAR, particles, run_data

from meanfield.figures.figure import page, panel
from meanfield.figures.panels.options import FigureOptions
from meanfield.figures.panels.selected import panel_names, panels
from solvers.mesh.mesh import Mesh, circle, sphere


def test_a_run_names_its_panels() -> None:
    recorded = ["entropy", "energy", "power", "speed", "clusters"]
    assert panel_names(run_data(circle(64), LINEAR)) == ["density", "profiles", *recorded]
    assert panel_names(run_data(circle(64), LINEAR[:1], diagnostics={"time": LINEAR[:1]})) == ["profiles"]
    assert panel_names(run_data(sphere(8), LINEAR)) == ["density", *recorded]
    assert "density" not in panel_names(particles(2, 8))


def test_the_energy_and_the_entropy_are_panels_of_their_own() -> None:
    titles = {"energy": "energy $E$", "entropy": r"negative entropy $H=\int\rho\,\log\rho$"}
    figure = page(run_data(circle(64), LINEAR), FigureOptions(tuple(titles)))
    assert [ax.get_title() for ax in figure.axes] == [*titles.values()]
    ax = Figure().subplots()
    assert panel(run_data(circle(64), LINEAR), ax, ["energy"]).axes == [ax]


@pytest.mark.parametrize("space", ["density", "particles"])
def test_the_snapshots_nearest_to_given_times_are_drawn(space: str) -> None:
    data = run_data(sphere(8), LINEAR) if space == "density" else particles(3, 8)
    wanted = data.times[[0, 5, -1]]
    figure = page(data, FigureOptions(times=tuple(wanted + np.array([0.001, 0.001, 0]))))
    titles = [ax.get_title() for ax in figure.findobj(Axes) if ax.get_title().startswith("t = ")]
    assert [title.split(" ")[2] for title in titles] == [f"{time:.4g}" for time in wanted]
    narrow = page(data, FigureOptions(times=tuple(wanted), size=(3.4, 9.0)))
    assert sum(ax.get_title().startswith("t = ") for ax in narrow.findobj(Axes)) == 3


@pytest.mark.parametrize("times", [(), (-1.0,), (1e9,), (0.0,) * 7, (np.nan,)], ids=str)
def test_other_times_are_refused(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"times = .*: expected 1 to 6 numbers from 0 to"):
        page(run_data(circle(64), LINEAR), FigureOptions(times=times))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mesh", [circle(64), sphere(8)], ids=["circle", "sphere"])
def test_the_title_and_the_captions_can_be_left_out(mesh: Mesh) -> None:
    def words(**options: bool) -> tuple[bool, bool]:
        figure = page(run_data(mesh, LINEAR), FigureOptions(**options))
        figure.draw_without_rendering()
        parts = [figure, *figure.subfigs]
        return bool(figure.get_suptitle()), any(part.get_supxlabel() for part in parts)

    assert words() == (True, True)
    assert words(title=False) == (False, True)
    assert words(caption=False) == (True, False)


@pytest.mark.parametrize("panels", [None, ("density",)])
def test_given_texts_are_the_title_and_the_caption(panels: tuple[str, ...] | None) -> None:
    figure = page(run_data(sphere(8), LINEAR), FigureOptions(panels, title="My title", caption="My caption"))
    assert figure.get_suptitle() == "My title"
    assert [part.get_supxlabel() for part in [figure, *figure.subfigs]] == ["My caption", *[""] * len(figure.subfigs)]
    with pytest.raises(ValueError, match="caption = 3: expected a text, True or False"):
        FigureOptions(caption=3)  # type: ignore[arg-type]


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
    with pytest.raises(ValueError, match="panels = 'density': expected one or more of entropy, energy"):
        panel(run_data(sphere(8), LINEAR), Figure().subplots(), ["density"])


def test_a_page_has_no_panel_of_rounding() -> None:
    kept = {"time": LINEAR, "mass": 1 + 1e-15 * np.arange(41), "centroid": np.full((41, 2), 1e-16)}
    data = run_data(circle(64), LINEAR, diagnostics=kept)
    assert panels(data) == []
    assert panel_names(data)[2:] == ["centroid", "mass"]  # drawn only on request
    lost = kept | {"mass": 1 - 1e-9 * np.arange(41), "centroid": np.full((41, 2), 1e-6)}
    assert panels(run_data(circle(64), LINEAR, diagnostics=lost)) == ["centroid", "mass"]
