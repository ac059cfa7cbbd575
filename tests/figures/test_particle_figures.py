"""Figures of particles: tokens are drawn at their positions with their masses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from movie.test_movie import drawn_pages, stays_on
from support.run_data import LINEAR, LOG, particles, run_data, without

from meanfield.figures.axes import draw_change, mark_time, set_decades
from meanfield.figures.captions import cluster_history, facts
from meanfield.figures.figure import load, page, panel, plot
from meanfield.figures.panels.selected import panels
from meanfield.figures.particles.circle import TWO_PI, copies, draw_angle_lines
from meanfield.figures.particles.panels import draw_radii
from meanfield.figures.particles.projected import BINS, draw_projections, has_pairs, pair_shares
from meanfield.figures.particles.tokens import (
    as_density,
    directions,
    merge_points,
    principal_axes,
    token_quantiles,
    variance,
)
from meanfield.figures.run_data import RunData, TokenData
from meanfield.movie.page import WIDTH
from solvers.io.layout import Points
from solvers.io.run_file import Column, RunFile
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.rings import sphere_cells

CASE = """title = "Tokens in a file"
domain = {{manifold = "particles", dimension = {d}, count = {n}}}
attention.beta = 4
initial.kind = "uniform"
stabilizers.layer_norm = "{norm}"
time.end = 5.0
"""


def of_tokens(data: RunData, *positions: np.ndarray, weights: np.ndarray | None = None) -> RunData:
    """Return run data with these positions (n, d) at the first snapshots."""
    masses = np.ones(len(positions[0])) if weights is None else weights
    return replace(data, times=np.arange(float(len(positions))), particles=TokenData(lambda k: positions[k], masses))


@pytest.mark.parametrize(("d", "count"), [(2, 40), (2, 5000), (3, 40), (3, 5000)])
def test_each_token_is_in_the_cell_that_it_lies_in(d: int, count: int) -> None:
    data = particles(d, count)
    shown, weights = as_density(data), data.particles.weights
    mesh = circle(int(shown.ring_cells[0])) if d == 2 else sphere(len(shown.ring_cells))
    assert shown.manifold == mesh.manifold
    nearest = np.zeros(mesh.cells)
    points = directions(data, 20)
    if d == 2:  # cells are equal, so the center of a token's cell is the nearest center
        cells = np.array([np.argmax(mesh.centers @ x) for x in points])
    else:
        cells = sphere_cells(mesh.ring_cells, np.arccos(points[:, 2]), np.arctan2(points[:, 1], points[:, 0]))
    np.add.at(nearest, cells, weights)
    np.testing.assert_allclose(shown.density(20) * mesh.volumes, nearest, atol=1e-14)  # rounding of the sums
    assert "mass" not in shown.diagnostics


def test_radii_are_those_within_which_the_mass_is() -> None:
    positions = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, -2.0], [10.0, 0.0]])
    data = of_tokens(particles(2, 4), positions, weights=np.array([0.2, 0.5, 0.2, 0.1]))
    # The masses are 0.5, 0.2, 0.2, 0.1 in order of radius, with cumulative sums 0.5, 0.7, 0.9, 1.
    found = token_quantiles(data, [0], np.array([0.05, 0.5, 0.51, 0.9, 0.95, 1.0]))[0]
    np.testing.assert_array_equal(found, [1, 1, 2, 3, 10, 10])


def test_axes_are_those_of_the_last_snapshot_that_is_spread() -> None:
    axes = np.eye(5)
    wide = np.concatenate([axes[[3, 3, 3, 1, 1]], -axes[[3, 3, 3, 1, 1]]])
    narrow = axes[[0] * 10] + 1e-3 * wide
    data = of_tokens(particles(5, 10), wide, wide[::-1], narrow)
    # The variance is 1 if the mean is zero; six tenths of the variance lie along e₄ and four tenths along e₂.
    assert [variance(data, k) for k in (0, 1)] == pytest.approx([1, 1], rel=1e-14)
    snapshot, found, share = principal_axes(data)
    assert snapshot == 1
    # The sign is also determined: the largest entry is positive.
    np.testing.assert_allclose(found, axes[[3, 1]].T, atol=1e-14)
    assert share == pytest.approx(1.0, rel=1e-14)
    shares = principal_axes(of_tokens(particles(5, 10), np.concatenate([axes, -axes])))
    assert shares[2] == pytest.approx(2 / 5, rel=1e-14), "five axes have as much each"
    assert principal_axes(of_tokens(particles(5, 2), axes[:1]))[1].shape == (5, 2), "one token has no axes of its own"


def test_dots_in_one_place_are_one_of_their_mass() -> None:
    points = np.array([[0.5, 0.5], [0.5, 0.5001], [-0.5, 0.25]])
    places, masses = merge_points(points, np.array([1.0, 3.0, 4.0]), 2.0)
    order = np.argsort(places[:, 0])
    np.testing.assert_allclose(masses[order], [0.5, 0.5])
    np.testing.assert_allclose(places[order], [[-0.5, 0.25], [0.5, 0.500075]])
    assert len(merge_points(points, np.ones(3), 1e-3)[0]) == 3


def test_a_token_that_turns_is_shown_all_the_way() -> None:
    turned = np.linspace(-1.0, 14.0, 200)
    lines = np.stack(copies(turned))
    assert np.all(np.abs(np.diff(lines)) < 0.1), "a line jumps across the picture"
    seen = np.where((lines >= 0) & (lines < TWO_PI), lines, np.nan)
    np.testing.assert_allclose(np.nanmax(seen, axis=0), np.mod(turned, TWO_PI), atol=1e-12)  # rounding of the turns


def test_lines_are_as_wide_as_their_mass_and_leave_out_time_zero() -> None:
    data = particles(2, 4, LOG)
    lines = draw_angle_lines(Figure().subplots(), data)
    assert all(path.vertices[0, 0] == LOG[1] for path in lines.get_paths())
    weights = data.particles.weights
    assert np.unique(lines.get_linewidths()) == pytest.approx(np.sqrt(weights / weights.mean()), rel=1e-12)


def test_pairs_are_in_the_row_of_their_angle() -> None:
    angle = np.radians(61.0)  # the angle of the two tokens, in the 21st bin of 3°
    tokens = np.array([[1.0, 0.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0, 0.0]])
    from meanfield.clusters.pairs import pairs_of_points

    apart, together = pairs_of_points(tokens, np.ones(2)), pairs_of_points(tokens[[0, 0]], np.ones(2))
    recorded = {"time": np.arange(3.0), "pairs": np.stack([apart, together, np.full(64, np.nan)])}
    data = replace(particles(4, 2), diagnostics=recorded)
    times, shares = pair_shares(data)
    np.testing.assert_array_equal(times, [0, 1])
    assert shares.shape == (2, BINS)
    np.testing.assert_array_equal(shares.argmax(axis=1), [20, 0])
    np.testing.assert_allclose(shares.max(axis=1), 1.0)
    assert has_pairs(data)
    assert not has_pairs(without(data, "pairs"))


def test_clusters_of_several_tokens_are_ringed_in_projections() -> None:
    data = particles(16, 40, LINEAR[:2])
    _, masses, centers = data.clusters(1)
    figure = Figure()
    draw_projections(figure.subfigures(), data)
    rings = figure.axes[1].collections[1]
    several = masses > data.particles.weights.max()
    assert 0 < several.sum() <= len(centers)
    np.testing.assert_allclose(rings.get_offsets(), centers[several] @ principal_axes(data)[1], atol=1e-14)
    assert len(figure.axes[0].collections[1].get_offsets()) == 0, "there is none at time 0"


def test_speed_is_drawn_as_long_as_tokens_are_not_one() -> None:
    """Speed is omitted once all tokens are one cluster, when the speed is the error of steps.

    A speed as small can be true earlier, while clusters stay apart.
    """
    speed = np.concatenate([np.full(20, 1e-12), np.geomspace(1e-1, 1e-5, 10), np.full(11, 1e-10)])
    recorded = {"time": LINEAR, "speed": speed, "clusters": np.where(np.arange(41) < 25, 2.0, 1.0)}
    for data, drawn in [
        (particles(3, 12, diagnostics=recorded), 30),
        (particles(3, 12, diagnostics=recorded | {"clusters": np.full(41, 2.0)}), 41),
        (particles(3, 12, diagnostics=recorded, handover=9.0), 41),
    ]:
        ax = Figure().subplots()
        panel(data, ax, ["speed"])
        assert np.isfinite(ax.get_lines()[0].get_ydata()).sum() == drawn


@pytest.mark.parametrize(
    ("data", "titles"),
    [
        (particles(2, 40), {"tokens over time; width: mass", "tokens at these times; area: mass"}),
        (particles(2, 400), {"density over time", "profiles"}),
        (particles(2, 40, radius=True), {"tokens over time; width: mass", "radius of each token", "tokens at t = 10"}),
        (particles(3, 40, radius=True), {"radius of each token", "t = 10 · 3 clusters"}),
        (particles(3, 400, radius=True), {"radius quantiles of the tokens", "t = 0 · 0 clusters"}),
        (particles(9, 40), {"angle between two tokens, arccos ⟨θ, θ′⟩", "t = 10 · 3 clusters"}),
    ],
)  # fmt: skip
def test_dimension_and_number_say_what_is_drawn(data: RunData, titles: set[str]) -> None:
    with matplotlib.rc_context({"figure.constrained_layout.use": True}):
        figure = page(data)
    assert titles <= {ax.get_title() for ax in figure.findobj(Axes)}


def test_panels_are_those_with_something_to_show() -> None:
    data = particles(3, 40, radius=True)
    assert panels(data) == ["energy", "speed", "variance", "clusters"], "each token's radius is drawn already"
    assert panels(particles(3, 40)) == ["energy", "speed", "clusters", "pairs_close"]
    lost = data.diagnostics | {"speed": np.full(41, np.nan), "variance": np.full(41, np.inf)}
    assert panels(replace(data, diagnostics=lost)) == ["energy", "clusters", "pairs_close", "centroid"]
    assert "mass" not in panels(without(particles(3, 40), "energy", "speed", "clusters")), "tokens keep theirs"


def test_what_is_no_number_leaves_a_gap() -> None:
    ax, values = Figure().subplots(), np.array([1.0, np.nan, 2.0, np.inf])
    draw_change(ax, np.arange(4.0), values, "E")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1, np.nan, 2, np.nan])
    set_decades(ax, values)
    assert ax.get_ylim() == pytest.approx((1 / 3, 6))
    set_decades(ax, np.zeros(3))
    assert ax.texts[0].get_text() == "zero at all times"
    assert (
        cluster_history(
            particles(3, 4, diagnostics={"time": LINEAR[:1], "clusters": np.full(1, np.nan)}, clusters=None)
        )
        == ""
    )


def test_an_energy_that_grows_over_decades_is_drawn_by_decades() -> None:
    data = particles(3, 4)
    data = replace(data, diagnostics=data.diagnostics | {"energy": np.geomspace(1, 1e300, 41)})
    ax = next(ax for ax in page(data).findobj(Axes) if ax.get_title() == "energy $E$")
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[1] < 1e101  # a log axis has no ticks beyond this value


def test_the_handover_is_marked_in_every_panel_over_time() -> None:
    data = run_data(circle(64), LINEAR, handover=4.0)
    assert "atoms from t = 4" in facts(data)
    assert not [fact for fact in facts(replace(data, handover=np.nan)) if "atoms" in fact]
    over_time = [ax for ax in page(data).findobj(Axes) if ax.get_xlim() == (0.0, 10.0)]
    marked = [ax for ax in over_time if "point masses" in [text.get_text() for text in ax.texts]]
    assert len(marked) == 5, "the density over time, and four panels"
    ax = Figure().subplots()
    ax.set_xlim(1, 2)
    for time in (np.nan, 0.5, 3.0):
        mark_time(ax, time, "not here")
    assert not ax.lines


def test_few_radii_are_lines_and_many_are_quantiles() -> None:
    few, many = Figure().subplots(), Figure().subplots()
    draw_radii(few, particles(3, 40, LOG, radius=True))
    draw_radii(many, particles(3, 400, LOG, radius=True))
    assert [len(few.lines), len(many.lines)] == [40, 3]
    assert few.lines[0].get_ydata()[-1] == pytest.approx(np.exp(8), rel=1e-12)
    assert few.get_xscale() == "log"


def run_file(path: Path, d: int, n: int, norm: str = "post") -> Path:
    columns = [Column("cluster_mass", (("cluster", 32),)), Column("cluster_center", (("cluster", 32), ("d", d)))]
    data = particles(d, n)
    case = {"case": CASE.format(d=d, n=n, norm=norm)}
    with RunFile.create(path, Points(data.particles.weights, d), columns, case) as file:
        for k in (0, 20, 40):
            file.write_sample(LINEAR[k], {column.name: data.diagnostics[column.name][k] for column in columns})
            file.write_snapshot(LINEAR[k], data.particles.positions(k))
        file.close(stop_reason="interrupted")
    return path


@pytest.mark.parametrize(("d", "norm"), [(2, "post"), (3, "pre"), (16, "none")])
def test_run_files_of_particles_are_drawn(tmp_path: Path, d: int, norm: str) -> None:
    run = run_file(tmp_path / "run.h5", d, 12, norm)
    data = load(run)
    assert data.particles.has_radius == (norm != "post")
    assert facts(data)[0] == f"particles, d = {d}, 12 tokens"
    np.testing.assert_array_equal(data.particles.positions(1), particles(d, 12).particles.positions(20))
    assert plot(run, tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.sampled
@pytest.mark.parametrize(("d", "count"), [(2, 40), (2, 400), (2, 4000), (3, 40), (3, 4000), (16, 40)])
def test_tokens_move_in_their_picture_and_keep_their_page(d: int, count: int) -> None:
    bare = replace(particles(d, count, LOG[::5]), clusters=None)  # without rings, so the only moving marks are tokens
    for data in (particles(d, count, LINEAR[::5]), bare, particles(d, count, np.zeros(1))):
        times = data.times
        first, last = drawn_pages(data, [0, len(times) - 1])
        for picture in (first, last):
            stays_on(picture)
        assert len(times) == 1 or np.mean(first[102:452, :WIDTH] != last[102:452, :WIDTH]) > 1e-3
        assert len(times) == 1 or np.array_equal(first[:60], last[:60]), "the heading moved"


def test_layers_of_a_trained_transformer_are_called_layers() -> None:
    data = replace(particles(64, 8), manifold="transformer", in_layers=True)
    figure = page(data)
    labels = {ax.get_xlabel() for ax in figure.axes} | {ax.get_title() for ax in figure.axes}
    assert {"layer", "layer  (gray: snapshots above)"} <= labels
    assert not [label for label in labels if "time" in label or "t =" in label]
