"""Figures: the map is exact and preserves areas, and the selected, marked and stated data of a run are right."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from support.run_data import BLOBS, LINEAR, MANIFOLDS, blobs, counted, law, run_data, without
from support.status import run

from meanfield.analysis.snapshot_clusters import SnapshotClusters
from meanfield.case.load import parse
from meanfield.case.summary import describe_layer
from meanfield.figures.axes import label_decades, label_linear, set_time
from meanfield.figures.captions import cluster_history, facts, heading
from meanfield.figures.color_scale import Scale
from meanfield.figures.figure import MAX_HEIGHT, _growth, load, page, plot
from meanfield.figures.free_radius import directions_of, draw_plane, plane_reaches, quantiles, radii_of
from meanfield.figures.panels.selected import panels
from meanfield.figures.profiles import average_rows, draw_space_time, row_edges, time_edges
from meanfield.figures.run_data import RunData, describe_snapshot, snapshots_chosen
from meanfield.figures.saving import save
from meanfield.figures.sphere_map import (
    cell_angles,
    draw_clusters,
    hammer,
    hammer_inverse,
    pixel_cells,
    polar_and_azimuth,
)
from solvers.io.run_file import Column, FileError, RunFile
from solvers.mesh.mesh import Mesh, circle, sphere
from solvers.mesh.rings import sphere_cells

CASE = """title = "A run in a file"
domain = {manifold = "sphere", resolution = 16}
attention = {beta = 4, normalization = "unnormalized", rescaled = true, value = [[-1,0,0],[0,-1,0],[0,0,-1]]}
stabilizers.noise = 0.01
initial.kind = "uniform"
time.end = 5.0
"""
SHARP = """
domain = {manifold = "circle", resolution = 32}
attention.beta = 8.0
initial = {kind = "perturbed", amplitude = 0.1}
time.end = 1e-4
output = {snapshots = 2, samples = 2, diagnostics = ["energy"]}
"""


@pytest.mark.parametrize("rings", [4, 16, 33])
def test_each_cell_center_is_found_in_its_cell(rings: int) -> None:
    mesh = sphere(rings)
    theta, phi, _ = cell_angles(mesh.ring_cells)
    np.testing.assert_array_equal(sphere_cells(mesh.ring_cells, theta, phi), np.arange(mesh.cells))
    x, y, z = mesh.centers.T  # the mesh's own centroids, with azimuth in (−π, π]
    np.testing.assert_array_equal(sphere_cells(mesh.ring_cells, np.arccos(z), np.arctan2(y, x)), np.arange(mesh.cells))


def test_cells_are_found_at_the_poles_and_where_azimuth_starts_again() -> None:
    counts = sphere(8).ring_cells
    theta, phi = np.array([0.0, np.pi, np.pi / 2 - 1e-9]), np.array([-1e-300, 2 * np.pi, -1e-300])
    first = np.concatenate([[0], np.cumsum(counts)])
    found = sphere_cells(counts, theta, phi)
    assert np.all((first[[0, 7, 3]] <= found) & (found < first[[1, 8, 4]]))


def test_cell_areas_are_those_of_the_mesh() -> None:
    mesh = sphere(20)
    np.testing.assert_allclose(cell_angles(mesh.ring_cells)[2], mesh.volumes, rtol=1e-13)  # rounding


def test_the_map_has_an_inverse() -> None:
    theta, phi, _ = cell_angles(sphere(32).ring_cells)
    back = hammer_inverse(*hammer(theta, phi))
    np.testing.assert_allclose(back[0], theta, atol=1e-7)  # near the poles arccos loses half of the digits
    np.testing.assert_allclose(np.mod(back[1], 2 * np.pi), phi, atol=1e-7)
    x, y = hammer(np.array([np.pi / 2, 0.0]), np.array([0.5, 0.0]))
    assert x[0] > 0, "east is on the right"
    assert y[1] > 0, "north is at the top"


def test_pixels_of_a_cell_are_in_proportion_to_its_area() -> None:
    mesh, columns = sphere(12), 1200
    cell = pixel_cells(mesh.ring_cells, columns)
    counts = np.bincount(cell[cell >= 0], minlength=mesh.cells)
    pixel = 4 * math.sqrt(2) * 2 * math.sqrt(2) / (columns * columns // 2)
    perimeter = 4 * np.sqrt(mesh.volumes.max() / pixel)  # a pixel that an edge cuts belongs to either cell at random
    expected = mesh.volumes / pixel
    assert np.abs(counts - expected).max() < perimeter / 2
    # At the edge of the map at most the fraction 1/columns is lost.
    assert counts.sum() == pytest.approx(4 * np.pi / pixel, rel=1e-3)
    assert cell[0, 0] == -1
    assert cell[len(cell) // 2 - 1, columns // 2] == sphere_cells(mesh.ring_cells, np.array(1.57), np.array(1e-3))


def ringed(data: RunData, k: int) -> tuple[np.ndarray, list[str]]:
    """Return the positions (rings, 2) of the rings on the map of snapshot k, and the masses written beside them."""
    ax = Figure().subplots()
    draw_clusters(ax, data, k)
    return ax.lines[0].get_xydata(), [text.get_text() for text in ax.texts]


def test_clusters_are_ringed_at_their_peaks_with_their_masses() -> None:
    mesh = sphere(48)
    places, texts = ringed(run_data(mesh, LINEAR), 40)
    assert texts == ["0.50", "0.30", "0.20"]
    expected = hammer(*polar_and_azimuth(BLOBS["sphere"]))
    np.testing.assert_allclose(places, np.stack(expected, axis=1), atol=1.5 * mesh.width)
    assert len(ringed(run_data(mesh, LINEAR), 0)[0]) == 0


def test_snapshots_are_chosen_where_something_happens() -> None:
    step = np.where(LINEAR < 7, 0.0, 1.0)
    data = run_data(circle(16), LINEAR, diagnostics={"time": LINEAR, "entropy": step})
    chosen = snapshots_chosen(data, 6)
    assert chosen[0] == 0
    assert chosen[-1] == 40
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 6
    assert {27, 28} & set(chosen), f"the step between snapshots 27 and 28 has no snapshot beside it: {chosen}"
    quiet = snapshots_chosen(replace(data, diagnostics={}), 6)
    assert quiet == [0, 8, 16, 24, 32, 40]
    assert snapshots_chosen(replace(data, times=LINEAR[:4]), 6) == [0, 1, 2, 3]


@pytest.mark.parametrize("jump", range(1, 9))
def test_no_snapshot_is_chosen_twice(jump: int) -> None:
    times = np.arange(9.0)
    data = run_data(circle(16), times, diagnostics={"time": times, "entropy": np.where(times < jump, 0.0, 1.0)})
    chosen = snapshots_chosen(data, 6)
    assert [chosen[0], chosen[-1], len(set(chosen))] == [0, 8, 6]
    assert chosen == sorted(chosen)


def test_scale_is_logarithmic_for_clusters_and_a_deviation_for_ripples() -> None:
    assert Scale.of([np.array([0.0, 500.0])]) == Scale(1e-2, 500.0, deviation=False)
    assert Scale.of([np.array([0.9, 1.2])]) == Scale(pytest.approx(-0.2), pytest.approx(0.2), deviation=True)
    assert Scale.of([np.array([1.0, 1 + 1e-15])]).high == 1e-9
    assert Scale.of([np.array([0.0, 500.0])]).values(np.array([0.0, 2.0])) == pytest.approx([1e-2, 2.0], rel=0)


def counting(times: np.ndarray, mergers: list[float]) -> RunData:
    """Return a run to t = 10⁶ that loses one cluster at each of the times ``mergers``."""
    clusters = 5.0 - np.searchsorted(mergers, times, side="right")
    return run_data(circle(16), times, diagnostics={"time": times, "clusters": clusters})


EVEN = np.linspace(0, 1e6, 2001)


@pytest.mark.parametrize(
    ("data", "log"),
    [
        (counting(EVEN, [2e3, 2e4, 9e5]), True),  # mergers over decades
        (counting(EVEN, [6e4, 8e4, 9e4]), True),  # all mergers are early
        (counting(EVEN, [2e4, 2e5, 5e5, 9e5]), False),
        # A log axis does not show mergers before the first sample.
        (counting(EVEN, [100.0, 200.0, 300.0]), False),
        (counting(EVEN, []), False),
        (counting(np.concatenate([[0], np.geomspace(1, 1e6, 99)]), []), True),  # the snapshots are early
        (replace(counting(EVEN, []), log_spacing=True), True),
        (replace(counting(np.array([0.0, 1e6]), []), log_spacing=True), False),
    ],
)
def test_time_is_on_a_log_axis_where_the_case_says_so_or_what_happens_comes_early(data: RunData, log: bool) -> None:
    assert data.log_time == log


def test_a_case_says_that_its_times_have_equal_ratios(tmp_path: Path) -> None:
    """The interval from 2 to 10 is less than a decade, so only the case can select the log axis."""
    text = CASE + 'output = {spacing = "log", first = 2.0}\n'
    with RunFile.create(tmp_path / "run.h5", sphere(8), [Column("mass", (), "1", "mass")], {"case": text}) as file:
        for time in (0.0, 2.0, 4.0, 8.0):
            file.write_snapshot(time, np.full(sphere(8).cells, 0.25 / np.pi))
    assert load(tmp_path / "run.h5").log_time


def test_what_was_recorded_once_has_no_panel() -> None:
    """A run of atoms has entropy only in the first density, which a log axis does not show."""
    times = np.concatenate([[0], np.geomspace(1, 1e6, 40)])
    data = run_data(circle(16), times)
    entropy = np.where(times == 0, 1.0, np.nan)
    data = replace(data, diagnostics=data.diagnostics | {"entropy": entropy})
    assert panels(without(data, "energy", "speed", "power")) == ["clusters"]
    figure = page(data)
    titles = [ax.get_title() for ax in figure.findobj(matplotlib.axes.Axes)]
    assert "energy $E$" in titles


@pytest.mark.parametrize(
    ("counts", "history"),
    [
        ([0, 0, 0, 0, 0, 0, 0, 0], ""),
        ([0, 2, 7, 7, 7, 7, 7, 7], "7 clusters from t = 2"),
        ([1, 1, 1, 1, 1, 1, 1, 1], "1 cluster from t = 0"),
        ([0, 7, 6, 7, 6, 5, 5, 3], "7 clusters from t = 1, 6 from 4, 5 from 5, 3 from 7"),
        ([4, 1, 0, 0, 0, 0, 0, 0], "4 clusters from t = 0, 1 from 1, 0 from 2"),
        ([9, 8, 7, 6, 5, 4, 3, 2], "9 clusters from t = 0, 8 from 1, 7 from 2, 6 from 3, …, 2 from 7"),
    ],
)
def test_the_line_below_tells_when_clusters_were_lost(counts: list[int], history: str) -> None:
    recorded = {"time": np.arange(8.0), "clusters": np.array(counts, dtype=float)}
    data = run_data(circle(16), LINEAR, diagnostics=recorded, clusters=None)
    assert cluster_history(data) == history
    below = page(data).get_supxlabel()
    assert below == history
    assert cluster_history(without(data, "clusters")) == ""


def test_a_long_title_is_cut_after_a_line() -> None:
    words, word = "a title of words " * 20, "https://example.org/" + "x" * 300
    for title, end in [(words, " title of …"), (word, "xxx …")]:
        first, _ = heading(run_data(circle(16), LINEAR, title=title))
        assert 70 < len(first) <= 84
        assert first.endswith(end)
    assert heading(run_data(circle(16), LINEAR, title="$5 and $6"))[0] == r"\$5 and \$6", "no formula was meant"


@pytest.mark.parametrize(("height", "inches"), [(3.0, 3.0 + 4.9 + 0.9), (12.0, MAX_HEIGHT)])
def test_no_figure_is_so_high_that_its_labels_are_lost(
    monkeypatch: pytest.MonkeyPatch, height: float, inches: float
) -> None:
    monkeypatch.setattr("meanfield.figures.profiles.draw_profiles", lambda figure, run_data: None)
    monkeypatch.setattr("meanfield.figures.profiles.profiles_height", lambda run_data: height)
    assert page(run_data(circle(16), LINEAR)).get_size_inches()[1] == pytest.approx(inches)


@pytest.mark.filterwarnings("error")
def test_a_time_axis_of_a_run_that_was_stopped_at_once() -> None:
    """Mergers of such a run are drawn over an interval of length zero."""
    ax = Figure().subplots()
    set_time(ax, "time t", (0.0, 0.0), log=False)
    assert ax.get_xlim()[0] < ax.get_xlim()[1]


def test_a_snapshot_between_samples_counts_in_the_panel_and_in_the_line_below() -> None:
    recorded = {"time": np.array([0.0, 8.0]), "clusters": np.array([5.0, 2.0])}
    nothing = np.empty(0)
    data = run_data(
        circle(16),
        np.array([0.0, 4.0, 8.0]),
        diagnostics=recorded,
        clusters=lambda k: SnapshotClusters((5, 3, 2)[k], nothing, np.empty((0, 2))),
    )
    assert cluster_history(data) == "5 clusters from t = 0, 3 from 4, 2 from 8"
    times, counts = data.clusters_over([0, 1, 2])
    assert (times.tolist(), counts.tolist()) == ([0, 4, 8], [5, 3, 2])


def test_from_the_handover_on_atoms_are_counted() -> None:
    count = lambda k: SnapshotClusters((2, 2, 2, 1)[k], np.empty(0), np.empty((0, 2)))  # noqa: E731
    data = run_data(circle(16), np.arange(4.0), clusters=count, handover=2.0)
    words = [describe_snapshot(data, k) for k in range(4)]
    assert words == ["t = 0 · 2 clusters", "t = 1 · 2 clusters", "t = 2 · 2 atoms", "t = 3 · 1 atom"]
    assert describe_snapshot(replace(data, clusters=None), 1) == "t = 1"


def test_noise_is_data_where_there_is_some() -> None:
    data = run_data(circle(16), LINEAR)
    assert not any("κ" in fact for fact in facts(data))
    assert "noise κ = 0.2 (critical 0.3)" in facts(replace(data, noise=0.2, critical=0.3))


def test_facts_are_one_line_that_always_has_the_state() -> None:
    short = run_data(circle(16), LINEAR, state="killed at t = 2 of 5")
    layer = " · ".join(["unnormalized rescaled attention, V = -1.25 I", *["a part of the layer"] * 5])
    long = replace(short, attention=layer, state="interrupted at t = 2 of 5e+04")
    assert heading(short)[1].endswith("β = 9 · killed at t = 2 of 5")
    _, line = heading(long)
    assert line.endswith(" · … · β = 9 · interrupted at t = 2 of 5e+04")
    assert len(line) <= 132


def test_the_first_four_panels_that_were_recorded_are_drawn() -> None:
    data = run_data(circle(16), LINEAR)
    more = replace(data, diagnostics=data.diagnostics | {"mass": np.linspace(1, 0.9, 41), "centroid": np.ones((41, 2))})
    assert panels(more) == ["energy", "power", "speed", "clusters"]
    assert panels(without(more, "power", "clusters")) == ["energy", "speed", "centroid", "mass"]
    assert panels(without(more, *data.diagnostics.keys() - {"time"})) == ["centroid", "mass"]
    assert panels(replace(data, diagnostics={"time": np.zeros(1), "mass": np.ones(1)})) == []


def test_every_heavy_peak_gets_its_mass_written() -> None:
    mesh = sphere(32)
    directions = np.concatenate([np.eye(3), -np.eye(3)])
    density = np.zeros(mesh.cells)
    density[[np.argmax(mesh.centers @ direction) for direction in directions]] = np.arange(1.0, 7.0)
    ax = Figure().subplots()
    density /= mesh.volumes @ density
    draw_clusters(ax, run_data(mesh, LINEAR, density=lambda k: density, clusters=counted(mesh, lambda k: density)), 0)
    # The peaks lie at the poles, on the edge of the map and in a row along the equator, where side labels do not fit.
    assert len(ax.texts) == 6


def test_a_small_change_is_shown_as_a_change() -> None:
    data = without(run_data(circle(16), LINEAR), "entropy")
    for energy, first, label in [(1e4 + LINEAR, 0.0, "change of $E$"), (1 + LINEAR, 1.0, "$E$")]:
        changed = replace(data, diagnostics=data.diagnostics | {"energy": energy})
        figure = page(changed)
        ax = next(ax for ax in figure.findobj(matplotlib.axes.Axes) if ax.get_title() == "energy $E$")
        assert ax.lines[0].get_ydata()[0] == first
        assert ax.get_ylabel() == label


@pytest.mark.parametrize(("scale", "scaled"), [(9.0, False), (10.0, True)])
def test_energy_has_the_unit_that_its_file_says(tmp_path: Path, scale: float, scaled: bool) -> None:
    """The kernel of β = 8 reaches e^800 on a circle of radius 10, and the energy axis has this number as its unit."""
    run(parse(SHARP, [f"stabilizers.scale={scale}"]), tmp_path / "sharp.h5", quiet=True)
    figure = page(load(tmp_path / "sharp.h5"))
    labels = [ax.get_ylabel() for ax in figure.findobj(matplotlib.axes.Axes)]
    assert any(r"$E$/$e^{|\beta|}$" in label for label in labels) == scaled


def test_ticks_are_plain_numbers_or_powers_with_one_factor() -> None:
    axis = Figure().subplots(subplot_kw={"yscale": "log"}).yaxis
    for low, high, value, text in [
        (0.01, 500.0, 0.1, "0.1"),
        (1e-9, 1.0, 1e-6, "$10^{-6}$"),
        (1.0, 1e6, 1e6, "$10^{6}$"),
    ]:
        label_decades(axis, low, high)
        assert axis.get_major_formatter()(value, 0) == text
    label_decades(axis, 1e-6, 9e-5)
    axis.axes.set_ylim(1e-6, 9e-5)
    assert [axis.get_minor_formatter()(value, 0) for value in (2e-6, 4e-6)] == [r"$2 \times 10^{-6}$", ""]
    label_decades(axis, 1e-2, 1.0)
    assert axis.get_minor_formatter()(0.02, 0) == "", "two decades need no more labels"
    for largest, value, text, label in [(3e-7, -2e-7, "−2", "t  ($10^{-7}$)"), (50.0, 2.5, "2.5", "t")]:
        label_linear(axis, "t", largest)
        assert axis.get_major_formatter()(value, 0) == text
        assert axis.get_label_text() == label


def test_merged_cells_keep_the_mass() -> None:
    values = np.random.default_rng(0).random(3000)
    small = average_rows(values, 720)
    assert len(small) == 600  # the finest division of 3000 cells into at most 720
    assert small.mean() == pytest.approx(values.mean(), rel=1e-14)
    np.testing.assert_array_equal(average_rows(values[:500], 720), values[:500])
    sizes = np.linspace(1, 3, 3000)
    coarse = sizes.reshape(600, 5).sum(axis=1)
    assert average_rows(values, 720, sizes) @ coarse == pytest.approx(values @ sizes, rel=1e-14)


def test_any_number_of_cells_has_hundreds_of_rows() -> None:
    """A prime number of cells, which has no divisor, is divided into equal rows, at which cells are divided."""
    edges = np.linspace(1, 3, 1010) ** 2
    sizes, rows = np.diff(edges), row_edges(edges, 720)
    middles = (edges[1:] + edges[:-1]) / 2
    found = average_rows(middles, 720, sizes)
    assert len(found) == len(rows) - 1 == 504
    assert found @ np.diff(rows) == pytest.approx(middles @ sizes, rel=1e-14)
    np.testing.assert_allclose(found, (rows[1:] + rows[:-1]) / 2, atol=2 * sizes.max() / 8)  # of a cell divided in two


@pytest.mark.parametrize(("peak", "expected"), [(0.2, "neither"), (0.4, "max"), (5.0, "max")])
def test_a_color_bar_tells_of_higher_densities_between_the_snapshots_of_its_scale(peak: float, expected: str) -> None:
    """The scale is that of the profiles at six of the times, the image has all times."""
    heights = np.full(21, 0.3)
    heights[1] = peak
    wave = np.cos(2 * np.pi * (np.arange(64) + 0.5) / 64)
    circle_of_waves = RunData(
        "", "circle", np.array([64]), 1.0, 0.0, "", np.arange(21.0),
        lambda k: (1 + heights[k] * wave).clip(0.9) / (2 * np.pi), {},
    )  # fmt: skip
    figure = Figure()
    draw_space_time(figure.subplots(), circle_of_waves)
    [image] = figure.axes[0].collections
    assert image.colorbar is not None
    assert image.colorbar.extend == expected


def test_columns_stand_around_their_time() -> None:
    for log in (False, True):
        times = np.array([1.0, 2.0, 8.0, 9.0])
        edges = time_edges(times, log)
        assert np.all(edges[:-1] <= times)
        assert np.all(times <= edges[1:])


def test_prediction_starts_at_the_fastest_mode_and_grows_at_its_rate() -> None:
    data = run_data(circle(64), LINEAR)
    line = dashed(data)
    t, predicted = line.get_data()
    assert "l = 3" in line.get_label()
    assert predicted[0] == pytest.approx(data.diagnostics["power"][0, 3], rel=1e-12)  # rounding
    assert np.gradient(np.log(predicted), t) == pytest.approx(2 * 0.5, rel=1e-6)
    assert dashed(replace(data, growth=None)) is None
    alone = np.where(np.arange(data.diagnostics["power"].shape[1]) == 2, data.diagnostics["power"], 0.0)
    assert "l = 2" in dashed(replace(data, diagnostics=data.diagnostics | {"power": alone})).get_label(), (
        "no other is there"
    )
    steep = np.concatenate([data.diagnostics["power"][20:]] * 2)[: len(LINEAR)]
    assert dashed(replace(data, diagnostics=data.diagnostics | {"power": steep})) is None, "it is not near uniform"


def dashed(data: RunData) -> matplotlib.lines.Line2D | None:
    figure = page(without(data, "energy"))
    lines = [line for ax in figure.findobj(matplotlib.axes.Axes) for line in ax.lines if line.get_linestyle() == "--"]
    return lines[0] if lines else None


@pytest.mark.sampled
@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
@pytest.mark.parametrize("mesh", [sphere(12), circle(64)], ids=["sphere", "circle"])
def test_figures_are_written(tmp_path: Path, mesh: Mesh, suffix: str) -> None:
    data = run_data(mesh, LINEAR[::10])
    target = save(page(data), tmp_path / f"figure{suffix}")
    head = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
    assert target.read_bytes().startswith(head)


def run_file(path: Path, snapshots: int = 3, columns: tuple[Column, ...] = ()) -> Path:
    mesh = sphere(16)
    with RunFile.create(path, mesh, columns, {"case": CASE}) as file:
        for k in range(snapshots):
            file.write_snapshot(float(k), blobs(mesh, 20, k / 2))
            file.write_sample(float(k), {c.name: np.ones([n for _, n in c.dims]) for c in columns})
        file.close(stop_reason="interrupted")
    return path


def test_run_file_is_drawn(tmp_path: Path) -> None:
    run = run_file(tmp_path / "run.h5", columns=(Column("entropy", (), "1", "entropy"),))
    assert plot(run, tmp_path / "run.png") == tmp_path / "run.png"
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_story_of_a_run_file(tmp_path: Path) -> None:
    from meanfield.model.linear_stability import growth_rates

    power = Column("power", (("degree", 9),), "1", "power")
    data = load(run_file(tmp_path / "run.h5", columns=(power,)))
    assert heading(data) == [
        "A run in a file",
        "sphere, 16 rings · unnormalized rescaled attention, V = -1 I · β = 4 · noise κ = 0.01 · "
        "interrupted at t = 2 of 5",
    ]
    np.testing.assert_array_equal(data.density(1), blobs(sphere(16), 20, 0.5))
    np.testing.assert_array_equal(data.diagnostics["time"], [0, 1, 2])
    assert data.growth is not None
    l = np.arange(1, 9)
    attention = growth_rates(3, 4.0, l, "unnormalized") * np.exp(-4.0)
    np.testing.assert_allclose(data.growth[1:], -attention - 0.01 * l * (l + 1), rtol=1e-12)  # rounding


def test_bad_input_is_refused_in_one_line(tmp_path: Path) -> None:
    run, empty = run_file(tmp_path / "run.h5"), run_file(tmp_path / "empty.h5", snapshots=0)
    for file, figure, message in [
        (run, "figure.jpg", r"figure\.jpg: unknown figure format '\.jpg'; expected \.png, \.pdf, \.svg"),
        (run, "figure", "unknown figure format ''"),
        (run, "nowhere/figure.png", "nowhere does not exist"),
        (run, "taken.png", "taken.png: cannot be written"),
        (empty, "figure.png", "holds no snapshot"),
        (tmp_path / "missing.h5", "figure.png", "missing.h5"),
    ]:
        (tmp_path / "taken.png").mkdir(exist_ok=True)
        with pytest.raises(FileError, match=message) as caught:
            plot(file, tmp_path / figure)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / figure).is_file()


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_laws_keep_their_mass_on_the_cells_that_are_shown(manifold: str) -> None:
    data = law(manifold, LINEAR)
    shown = radii_of(data) if data.has_radius else data
    assert shown.edges is not None
    assert shown.coordinate is not None
    sizes = np.diff(np.log(shown.edges)) if data.has_radius else np.diff(shown.edges)
    for k in (0, 20, 40):
        # Each omitted cell has at most a thousandth of the peak density.
        assert shown.density(k) @ sizes == pytest.approx(1.0, abs=2e-3)
    assert len(sizes) < {"line": 300, "axisymmetric": 96}.get(manifold, 60), "nothing is left out"


@pytest.mark.parametrize("manifold", ["free_radius_circle", "free_radius_sphere"])
def test_directions_are_the_marginal(manifold: str) -> None:
    data = law(manifold, LINEAR)
    mesh = circle(48) if manifold == "free_radius_circle" else sphere(12)
    np.testing.assert_allclose(
        directions_of(data).density(30), run_data(mesh, LINEAR).density(30), rtol=1e-12
    )  # rounding
    median = quantiles(data, [0, 40], np.array([0.5]))[:, 0]
    # The distribution of log r is symmetric about these values, and a cell is a fifth of a unit of log r wide.
    assert np.log(median) == pytest.approx(np.log([0.5, 50.0]), abs=0.01)


def test_the_plane_has_its_tokens_where_they_are() -> None:
    data = law("free_radius_circle", LINEAR)
    ax = Figure().subplots()
    values = draw_plane(ax, data, 40, 60.0).get_array()
    corner = np.unravel_index(np.argmax(values), values.shape)
    angle = 2 * np.pi * (corner[1] + 0.5) / 48
    assert np.cos(angle) > 0.99, "the heaviest blob is at angle 0"
    # The peak of the density per area is the maximum of e^{−2(s − log 50)²} e^{−2s}, s = log 50 − ½.
    # Cells are 0.19 wide.
    middle = np.sqrt(data.edges[corner[0]] * data.edges[corner[0] + 1])
    assert np.log(middle) == pytest.approx(np.log(50) - 0.5, abs=0.1)
    assert ax.get_xlim() == (-60.0, 60.0)


def test_pictures_of_the_plane_have_one_scale_unless_they_are_far_apart() -> None:
    assert plane_reaches(np.array([1.0, 2.0, 4.0])) == pytest.approx(4.6)
    assert plane_reaches(np.array([0.1, 1.0])) == pytest.approx([0.115, 1.15])
    assert plane_reaches(np.array([0.0, 0.0])) == pytest.approx(1.15)


def test_coordinates_are_bent_where_they_reach_far() -> None:
    line = law("line", LINEAR).coordinate
    assert [text for _, text in line.ticks] == ["−10⁴", "−100", "0", "100", "10⁴"]
    assert np.ptp(np.diff(line.edges[80:])) < 0.01, "cells of the mesh are equal beyond its core"
    near = law("line", LINEAR[:1]).coordinate
    assert [text for _, text in near.ticks] == ["−1", "−0.5", "0", "0.5", "1"]
    radius = radii_of(law("free_radius_circle", LINEAR)).coordinate
    assert {"0.1", "1", "10", "100"} <= {text for _, text in radius.ticks}
    assert radius.edges[0] < np.log(0.1) < np.log(100) < radius.edges[-1]
    polar = law("axisymmetric", LINEAR).coordinate
    assert [text for _, text in polar.ticks] == ["0", "π/4", "π/2"]


def test_what_escaped_is_shown_where_it_did() -> None:
    data = without(law("line", LINEAR), "mass")
    assert panels(data) == ["radius", "variance", "escaped", "clusters"]
    held = replace(data, diagnostics=data.diagnostics | {"escaped": np.full((41, 2), 1e-30)})
    assert panels(held) == ["radius", "variance", "clusters", "centroid"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], ["softmax attention"]),
        (["attention.mask=causal", "attention.kernel=gaussian"], ["softmax attention, gaussian kernel, causal mask"]),
        (["attention.heads=[{}, {}]"], ["softmax attention, 2 heads"]),
        (["attention.value=[[0,1],[-1,0]]"], ["softmax attention, general V"]),
        (["attention.kernel=windowed", "attention.window=0.5"], ["softmax attention, window 0.5 rad"]),
        (["stabilizers.layer_norm=ngpt", "feed_forward={width=4}"], ["softmax attention", "nGPT", "relu feed-forward"]),
        (['reaction={kind="logistic",rate=2}'], ["softmax attention", "logistic reaction, rate 2"]),
        (
            ["domain.manifold=free_radius_circle", "stabilizers.layer_norm=none", "stabilizers.gate=0.5"],
            ["softmax attention", "no layer norm", "gate γ = 0.5"],
        ),
        (
            ["domain.manifold=free_radius_circle", "stabilizers.layer_norm=mix", "stabilizers.switch=2"],
            ["softmax attention", "mix layer norm, switch at t = 2"],
        ),
    ],
)
def test_layers_in_words(changes: list[str], words: list[str]) -> None:
    text = CASE.replace("sphere", "circle").replace(CASE.splitlines()[2], "attention.beta = 4")
    text = text.replace("stabilizers.noise = 0.01\n", "")
    assert describe_layer(parse(text, changes)) == words
    growth = _growth(parse(text, changes), 5)
    assert (growth is None) == (bool(changes)), "linear theory is for the plain layer"
