"""`meanfield view` of particles: tokens as points in any dimension, the field of a sequence, many tokens as a
density."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from figures.test_particle_figures import run_file
from support.browser import END, Browser, chromium
from support.run_data import LINEAR, particles
from view.test_view import held
from view.test_view_page import TEXT_BOXES

from meanfield.clusters.pairs import pairs_of_points
from meanfield.figures.figure import load
from meanfield.figures.particles.projected import angle_shares
from meanfield.figures.particles.tokens import FEW_CELLS, MAX_LINES, directions, principal_axes
from meanfield.figures.run_data import RunData
from meanfield.view.page import view
from meanfield.view.tokens import are_points, thin_tokens
from solvers.io.layout import Points
from solvers.io.run_file import Column, RunFile

HALF_LEVEL = 1 / 65536 * 1.001  # of the range −1 … 1, and rounding
SEQUENCE = """title = "A field"
domain = {manifold = "particles", dimension = 4, count = 30}
attention.beta = 4
sequence.length = 2.0
initial = {kind = "waves", amplitude = 1.0, mean = [1.0, 0.0, 0.0, 0.0]}
time = {method = "layers", layers = 5, step = 1.0}
"""
STEPS, MERGED = np.arange(6.0), 3  # a cluster exists for at least three samples


def merging(path: Path) -> Path:
    """Write three clusters of ten tokens each in R⁴; the third, 40° from the second, merges with it at layer MERGED."""
    columns = [Column("cluster_mass", (("cluster", 3),)), Column("cluster_center", (("cluster", 3), ("d", 4)))]
    with RunFile.create(path, Points(np.full(30, 1 / 30), 4), columns, {"case": SEQUENCE}) as file:
        for time in STEPS:
            centers, masses = np.eye(4)[:3].copy(), np.full(3, 1 / 3)
            centers[2] = 0, np.cos(np.radians(40)), np.sin(np.radians(40)), 0
            places = np.repeat(centers[[0, 1, 1 if time >= MERGED else 2]], 10, axis=0)
            if time >= MERGED:
                centers[2], masses = np.nan, np.array([1 / 3, 2 / 3, np.nan])
            file.write_sample(time, {"cluster_mass": masses, "cluster_center": centers})
            file.write_snapshot(time, places * (1 + 1e-12 * time))
        file.close(stop_reason="finished")
    return path


@pytest.mark.parametrize("d", [2, 3, 16])
def test_tokens_come_back_from_the_page_as_points(tmp_path: Path, d: int) -> None:
    run = run_file(tmp_path / "run.h5", d, 12, "pre")
    description, levels = held(view(run, tmp_path / "run.html"))
    data = load(run)
    matrix = np.eye(d) if d <= 3 else np.hstack([principal_axes(data, 6)[1], np.eye(d)[:, :6]])
    for k in range(3):
        found = (levels[k].reshape(-1, 12) + 0.5) / 32768 - 1
        np.testing.assert_allclose(found, (directions(data, k) @ matrix).T, atol=HALF_LEVEL)
    assert description["stage"] == {2: "tokenCircle", 3: "tokenGlobe"}.get(d, "tokenPlane")
    assert [mark[-1] for mark in description["marks"][1]] == pytest.approx([1 / min(d, 3)] * min(d, 3), abs=1e-5)
    assert len(description["marks"][1][0]) == {2: 2, 3: 3}.get(d, 13)  # an angle, two angles, or 12 axes, and a mass
    assert description["panels"][0]["title"] == "radius quantiles of the tokens"
    band = description["pairs"]
    low, high = band["scale"]["low"], band["scale"]["high"]
    packed = np.frombuffer(zlib.decompress(base64.b64decode(band["levels"])), "<u2")[:60]
    shares = low * (high / low) ** ((packed + 0.5) / 65536)
    expected = angle_shares(pairs_of_points(directions(data, 0), data.particles.weights)[None])[0]
    np.testing.assert_allclose(shares, expected.clip(low), rtol=1e-3)  # half a level of a few decades


def test_many_tokens_are_a_density_or_some_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_file(tmp_path / "run.h5", 2, MAX_LINES + 1)
    description, _ = held(view(run, tmp_path / "run.html"))
    assert "301 tokens are shown as a density, binned into cells" in capsys.readouterr().err
    assert description["stage"] == "ring"
    assert description["cells"] == FEW_CELLS / 2  # more tokens than lines have coarser bins
    assert [mark[-1] for mark in description["marks"][1]] == pytest.approx([0.5, 0.5], abs=1e-5)
    many = particles(16, 1500, LINEAR[::20])
    assert are_points(many)
    shown, notes = thin_tokens(many)
    assert notes == ["1000 of 1500 tokens are shown, evenly chosen"]
    np.testing.assert_array_equal(shown.particles.positions(1)[[0, -1]], many.particles.positions(1)[[0, -1]])


def test_the_field_of_a_sequence_comes_back_and_time_is_in_layers(tmp_path: Path) -> None:
    description, _ = held(view(merging(tmp_path / "run.h5"), tmp_path / "run.html"))
    assert description["timeName"] == "layer"
    assert description["timeLabels"] == [f"layer {k}" for k in range(6)]
    first, second = description["bands"]
    assert first["axis"]["edges"][-1] == 2.0
    for band in (first, second):
        packed = np.frombuffer(zlib.decompress(base64.b64decode(band["levels"])), "<u2").reshape(6, 30)
        levels = np.cumsum(packed, axis=0, dtype="<u2")
        field = ((levels + 0.5) / 32768 - 1) * band["scale"]["high"]
        assert np.ptp(field[MERGED, 10:]) == 0, "two clusters are one"
        assert abs(field[MERGED, 0] - field[MERGED, 10]) > 0.1
        # Tokens are unit vectors, so their deviation from the mean along one axis is at most 2.
        assert np.abs(field).max() <= 2


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def dots(browser: Browser, data: RunData, axes: np.ndarray, k: int, color: tuple[int, int, int]) -> float:
    """Return the fraction of tokens whose position along two axes (d, 2) has the color of dots."""
    left, top, width, _ = browser.box("#dots")
    reach = 1.1 * max(np.abs(directions(data, i) @ axes).max() for i in range(len(data.times)))
    across, up = (directions(data, k) @ axes).T / (2 * reach)
    picture = browser.pixels().astype(int)
    shown = picture[(top + width * (0.5 - up)).astype(int), (left + width * (0.5 + across)).astype(int)]
    return float((np.abs(shown - color) < 90).all(axis=1).mean())


def test_dots_are_where_tokens_are_along_the_axes_that_are_chosen(browser: Browser, tmp_path: Path) -> None:
    run = run_file(tmp_path / "run.h5", 16, 12)
    data = load(run)
    browser.open(view(run, tmp_path / "run.html"), height=1400)
    blue, principal, coordinates = (0, 114, 178), principal_axes(data)[1], np.eye(16)[:, [2, 3]]
    assert dots(browser, data, principal, 0, blue) == 1
    for select, axis in (("#across", "coordinate 3"), ("#up", "coordinate 4")):
        browser.find(select).send_keys(axis)
    browser.wait("document.querySelector('#projection').textContent.includes('coordinate 4')")
    assert dots(browser, data, coordinates, 0, blue) == 1
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(2)
    assert dots(browser, data, coordinates, 2, blue) == 1
    assert dots(browser, data, principal, 2, blue) < 1


def test_a_press_on_a_merger_goes_there(browser: Browser, tmp_path: Path) -> None:
    browser.open(view(merging(tmp_path / "run.h5"), tmp_path / "run.html"), height=1400)
    ring = browser.find("#tree .merger")
    assert ring.get_attribute("aria-label") == "3 → 2 clusters, masses 0.333 + 0.333, between 2 and 3"
    ring.click()
    browser.wait_for_snapshot(MERGED)
    assert browser.text("#clock") == "layer 3"
    assert browser.text("#tree .caption") == ring.get_attribute("aria-label")
    assert len(browser.driver.find_elements("css selector", "#tree .branch")) >= 3


@pytest.mark.sampled
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1200, False)])
@pytest.mark.parametrize("d", [2, 3, 16, 4])
def test_pages_of_tokens_have_room_and_are_quiet(
    browser: Browser, tmp_path: Path, d: int, width: int, dark: bool
) -> None:
    run = merging(tmp_path / "run.h5") if d == 4 else run_file(tmp_path / "run.h5", d, 12, "pre")
    browser.open(view(run, tmp_path / "run.html"), width=width, dark=dark)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(5 if d == 4 else 2)
    assert browser.requests() == browser.complaints() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    boxes = browser.run(TEXT_BOXES)
    assert len(boxes) > 40
    for i, (text, left, top, right, bottom, fixed) in enumerate(boxes):
        assert left >= 0, f"{text} is cut on the left"
        assert right <= width, f"{text} is cut on the right"
        for other, *place, other_fixed in boxes[:i]:
            apart = left >= place[2] or place[0] >= right or top >= place[3] or place[1] >= bottom
            assert apart or fixed != other_fixed, f"{text!r} lies on {other!r}"
