"""The page of `meanfield view` in a real browser: no messages, operated by real input, and correct to the pixel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from matplotlib import colormaps
from support.browser import ARROW_LEFT, ARROW_RIGHT, END, HOME, SPACE, Browser, chromium
from view.test_view import CASE, RUNS, SNAPSHOTS, real_run, run_file

from meanfield.figures.figure import load
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import HALF_WIDTH, cell_angles, hammer_inverse, pixel_cells
from meanfield.view.page import view
from solvers.io.run_file import Column, RunFile
from solvers.mesh.mesh import circle

LAST = SNAPSHOTS - 1
MANIFOLDS = ("sphere", "circle")
ALL = (*MANIFOLDS, *RUNS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, RunData]]:
    """Return for each manifold its page and the run on the page."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for manifold in ALL:
        run = (run_file if manifold in MANIFOLDS else real_run)(folder / f"{manifold}.h5", manifold)
        made[manifold] = view(run, run.with_suffix(".html")), load(run)
    return made


def expected_colors(run_data: RunData, k: int) -> np.ndarray:
    """Return the colors (cells, 3) by the scale of all snapshots."""
    ratios = [run_data.ratio(i) for i in range(len(run_data.times))]
    low, high = max(min(r.min() for r in ratios), 0.01), max(r.max() for r in ratios)
    return colormaps["viridis"](np.log(ratios[k] / low) / np.log(high / low), bytes=True)[:, :3]


def globe_agreement(browser: Browser, run_data: RunData, k: int) -> float:
    """Return the fraction of the front cells whose center has the color of their density."""
    theta, phi, _ = cell_angles(run_data.ring_cells)
    cells = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)
    azimuth, latitude = (
        float(browser.find("#globe").get_attribute(f"data-{name}")) for name in ("azimuth", "latitude")
    )
    east = np.array([-np.sin(azimuth), np.cos(azimuth), 0])
    eye = np.array([np.cos(latitude) * np.cos(azimuth), np.cos(latitude) * np.sin(azimuth), np.sin(latitude)])
    left, top, size, _ = browser.box("#globe")
    radius = size / 2 - 2
    column = left + size / 2 + radius * cells @ east
    row = top + size / 2 - radius * cells @ np.cross(eye, east)
    front = cells @ eye > 0.3  # cells nearer to the edge are only a few pixels wide
    shown = browser.pixels()[row[front].astype(int), column[front].astype(int)]
    return float(np.all(shown == expected_colors(run_data, k)[front], axis=1).mean())


@pytest.mark.parametrize("manifold", ALL)
def test_page_asks_for_nothing_and_complains_of_nothing(browser: Browser, pages, manifold: str) -> None:
    browser.open(pages[manifold][0])
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    assert browser.requests() == []
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run on the circle whose density is uniform up to t = 7 of 9."""
    mesh, folder = circle(64), tmp_path_factory.mktemp("late")
    case = CASE.format(title='"Late"', manifold="circle", resolution=64)
    with RunFile.create(folder / "late.h5", mesh, [Column("energy")], {"case": case}) as file:
        for k in range(10):
            file.write_snapshot(float(k), (1 + 0.9 * max(k - 7, 0) / 2 * mesh.centers[:, 0]) / (2 * np.pi))
            file.write_sample(float(k), {"energy": float(k)})
        file.close(stop_reason="finished")
    return view(folder / "late.h5", folder / "late.html")


def test_page_opens_at_the_first_snapshot_that_shows_something(browser: Browser, late: Path) -> None:
    browser.open(late)
    browser.wait_for_snapshot(8)
    assert browser.text("#clock") == "t = 8"
    assert "#" not in browser.driver.current_url


def test_address_has_the_time(browser: Browser, late: Path) -> None:
    browser.open(late, fragment="#t=3.2")
    browser.wait_for_snapshot(3)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(9)
    browser.wait("location.hash === '#t=9'")
    browser.run("location.hash = '#t=5'")
    browser.wait_for_snapshot(5)
    browser.open(late, fragment="#t=nonsense")
    browser.wait_for_snapshot(8)
    assert browser.complaints() == []


def test_page_that_asks_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    """The checks of the test above can fail."""
    page = tmp_path / "loud.html"
    page.write_text("<body data-shown=0><img src='missing.png'><script>missing()</script>")
    browser.open(page)
    browser.wait("document.images[0].complete")
    assert browser.requests() == [(tmp_path / "missing.png").as_uri()]
    assert any("missing is not defined" in message for message in browser.complaints())


# Meridians, parallels, marks and labels cover the centers of the other cells.
ENOUGH = 0.8


@pytest.mark.parametrize("k", [0, LAST])
def test_globe_has_the_colours_of_its_cells(browser: Browser, pages, k: int) -> None:
    page, run_data = pages["sphere"]
    browser.open(page)
    browser.find("#slider").send_keys(END if k else HOME)
    browser.wait_for_snapshot(k)
    assert globe_agreement(browser, run_data, k) > ENOUGH
    assert globe_agreement(browser, run_data, LAST - k) < 0.3, "another snapshot's colours agree too"


def test_globe_turns_with_mouse_and_keys(browser: Browser, pages) -> None:
    page, run_data = pages["sphere"]
    browser.open(page)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    _, _, size, _ = browser.box("#globe")
    browser.drag("#globe", (size / 2, size / 2), (80, 30))
    browser.wait("Math.abs(document.querySelector('#globe').dataset.azimuth) > 0.1")
    globe = browser.find("#globe")
    # A point near the middle follows the pointer.
    assert float(globe.get_attribute("data-azimuth")) == pytest.approx(-80 / (size / 2 - 2), abs=1e-5)
    assert float(globe.get_attribute("data-latitude")) == pytest.approx(np.pi / 12 + 30 / (size / 2 - 2), abs=1e-5)
    assert globe_agreement(browser, run_data, LAST) > ENOUGH
    globe.send_keys(ARROW_LEFT)
    turned = -80 / (size / 2 - 2) - np.pi / 36
    assert float(globe.get_attribute("data-azimuth")) == pytest.approx(turned, abs=1e-5)
    assert globe_agreement(browser, run_data, LAST) > ENOUGH
    assert browser.run("return document.body.dataset.shown") == str(LAST), "the globe's arrow moved the time"
    browser.find("h1").click()
    browser.find("body").send_keys(ARROW_LEFT)
    browser.wait_for_snapshot(LAST - 1)
    browser.find("body").send_keys(ARROW_RIGHT)
    browser.wait_for_snapshot(LAST)


def test_map_has_the_colours_and_turns_the_globe(browser: Browser, pages) -> None:
    page, run_data = pages["sphere"]
    browser.open(page)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    browser.run("document.querySelector('#map').scrollIntoView({block: 'center'})")
    left, top, width, height = (round(value) for value in browser.box("#map"))
    cells = pixel_cells(run_data.ring_cells, width)
    shown = browser.pixels()[top : top + height, left : left + width]
    same = np.all(shown == expected_colors(run_data, LAST)[cells], axis=-1)[cells >= 0]
    assert same.mean() > ENOUGH
    browser.drag("#map", (width / 4, height / 2))
    browser.wait("document.querySelector('#globe').dataset.azimuth < -1")
    azimuth = float(browser.find("#globe").get_attribute("data-azimuth"))
    expected = hammer_inverse(np.array([-HALF_WIDTH / 2]), np.zeros(1))[1][0]
    assert azimuth == pytest.approx(expected, abs=0.03)  # a pixel of the map is 0.015 rad


@pytest.mark.parametrize("k", [0, LAST])
def test_ring_and_history_have_the_colours_of_the_cells(browser: Browser, pages, k: int) -> None:
    page, run_data = pages["circle"]
    browser.open(page, height=2400)
    browser.find("#slider").send_keys(END if k else HOME)
    browser.wait_for_snapshot(k)
    colors, picture = expected_colors(run_data, k), browser.pixels()
    angle = 2 * np.pi * (np.arange(len(colors)) + 0.5) / len(colors)
    left, top, size, _ = browser.box("#ring")
    column, row = left + size / 2 + 0.23 * size * np.cos(angle), top + size / 2 - 0.23 * size * np.sin(angle)
    ring = picture[row.astype(int), column.astype(int)]
    assert np.all(np.abs(ring.astype(int) - colors) <= 2, axis=1).mean() > 0.9  # the edges of arcs are smoothed
    left, top, width, height = browser.box("#history")
    rows = (top + height * (1 - angle / (2 * np.pi))).astype(int)
    column = int(left + (3 if k == 0 else width - 4))  # beside the cursor
    assert np.all(picture[rows, column] == colors, axis=1).mean() > 0.9


def test_profile_is_as_high_as_the_density(browser: Browser, pages) -> None:
    page, run_data = pages["circle"]
    browser.open(page)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    path = browser.find("#profile .profile").get_attribute("d")
    heights = np.array([float(path.split(" ")[1].split("H")[0])] + [float(y) for y in re.findall(r"V([\d.]+)", path)])
    ratio = run_data.ratio(LAST)
    assert len(heights) == len(ratio)
    on_scale = ratio > ratio.max() / 1e3
    # Heights are linear in the logarithm, up to the tenth of a pixel of the path's digits.
    fit = np.polyfit(np.log(ratio[on_scale]), heights[on_scale], 1)
    assert np.abs(np.polyval(fit, np.log(ratio[on_scale])) - heights[on_scale]).max() < 0.15
    assert fit[0] < -5


@pytest.mark.parametrize("manifold", ["axisymmetric", "line"])
def test_profile_and_history_stand_where_their_cells_are(browser: Browser, pages, manifold: str) -> None:
    """Positions on the axis follow the cell edges instead of cell numbers, because cells of these manifolds are
    unequal."""
    page, run_data = pages[manifold]
    browser.open(page, height=1600)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    edges, density = run_data.coordinate.edges, run_data.density(LAST)
    place = (edges - edges[0]) / (edges[-1] - edges[0])
    path = browser.find("#profile .profile").get_attribute("d")
    across = np.array([float(x) for x in re.findall(r"H([\d.]+)", path)])
    assert np.ptp(across - place[1:] * (across[-1] - 48)) < 0.2  # the axis starts at 48; digits are tenths of a pixel
    peaks = np.array([run_data.density(k).max() for k in range(SNAPSHOTS)])
    low, high = peaks.min() / 1e3, peaks.max()
    colors = colormaps["viridis"](np.log(density.clip(low) / low) / np.log(high / low), bytes=True)[:, :3]
    left, top, width, height = browser.box("#history")
    rows, middle = (edges[1:] - edges[:-1]) * height / (edges[-1] - edges[0]), (place[1:] + place[:-1]) / 2
    wide = rows > 2  # narrower cells share a row
    assert wide.sum() > 10
    shown = browser.pixels()[(top + height * (1 - middle[wide])).astype(int), int(left + width - 4)]
    assert np.all(np.abs(shown.astype(int) - colors[wide]) <= 1, axis=1).mean() > 0.9


def test_slider_moves_with_the_mouse(browser: Browser, pages) -> None:
    browser.open(pages["sphere"][0])
    first = browser.pixels()
    _, _, width, height = browser.box("#slider")
    browser.drag("#slider", (8, height / 2), (round(width) - 16, 0))
    browser.wait_for_snapshot(LAST)
    left, top, size, _ = (round(value) for value in browser.box("#globe"))
    globe = slice(top, top + size), slice(left, left + size)
    assert np.any(first[globe] != browser.pixels()[globe], axis=-1).mean() > 0.3
    assert browser.text("#clock") == "t = 4"
    assert browser.text("#clusters") == "2 clusters"
    browser.find("#slider").send_keys(ARROW_LEFT)
    browser.wait_for_snapshot(LAST - 1)
    assert browser.text("#clock") == "t = 3"


def test_space_plays_and_pauses(browser: Browser, tmp_path: Path) -> None:
    """A page of many snapshots pauses before the last one, also on a busy machine, and starts over at the end."""
    last = 120  # a minute after the first snapshot at the slowest
    browser.open(view(run_file(tmp_path / "run.h5", "circle", last + 1), tmp_path / "run.html"))
    browser.find("#speed").send_keys(HOME)
    assert browser.find("#speed").get_property("value") == "2"
    browser.find("h1").click()
    browser.find("body").send_keys(SPACE)
    browser.wait("document.body.dataset.shown >= 1")
    assert browser.text("#play") == "Pause"
    browser.find("body").send_keys(SPACE)
    assert browser.text("#play") == "Play"
    paused = browser.find("#slider").get_property("value")  # the shown snapshot follows in the next frame
    assert int(paused) < last
    browser.wait_for_snapshot(paused)
    sleep(0.7)  # longer than the duration of a snapshot
    assert browser.find("#slider").get_property("value") == paused
    assert browser.run("return document.body.dataset.shown") == paused
    browser.find("#slider").send_keys(END, ARROW_LEFT)
    browser.wait_for_snapshot(last - 1)
    browser.find("#play").click()
    browser.wait_for_snapshot(last)
    browser.wait("document.querySelector('#play').textContent === 'Play'")
    browser.find("#play").click()  # playing starts over at the end
    browser.wait(f"document.body.dataset.shown < {last - 1}")


@pytest.mark.parametrize(("manifold", "panel"), [("sphere", ".panel svg.seeks"), ("circle", ".overlay svg")])
def test_press_in_a_panel_goes_to_its_time(browser: Browser, pages, manifold: str, panel: str) -> None:
    browser.open(pages[manifold][0])
    _, _, width, _ = browser.box(panel)
    left, right = 48, width - 20  # of the plotting area, in which time runs from 0 to 4
    browser.drag(panel, (left + 0.45 * (right - left), 80))
    browser.wait_for_snapshot(2)
    assert browser.text("#clock") == "t = 2"
    cursor = browser.find(f"{panel} .cursor")
    assert float(cursor.get_attribute("x1")) == pytest.approx((left + right) / 2, abs=0.5)
    browser.drag(panel, (left + 0.45 * (right - left), 80), (round(0.3 * (right - left)), 0))
    browser.wait_for_snapshot(3)


@pytest.mark.sampled
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [800, 390])
@pytest.mark.parametrize("manifold", ALL)
def test_text_has_room(browser: Browser, pages, manifold: str, width: int, dark: bool) -> None:
    browser.open(pages[manifold][0], width=width, dark=dark)
    browser.find("#slider").send_keys(END)
    browser.wait_for_snapshot(LAST)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    boxes = browser.run(TEXT_BOXES)
    assert len(boxes) > 40
    for i, (text, left, top, right, bottom, fixed) in enumerate(boxes):
        assert left >= 0, f"{text} is cut on the left"
        assert right <= width, f"{text} is cut on the right"
        for other, *place, other_fixed in boxes[:i]:
            apart = left >= place[2] or place[0] >= right or top >= place[3] or place[1] >= bottom
            assert apart or fixed != other_fixed, f"{text!r} lies on {other!r}"
    background = browser.pixels()[3, 3].mean()
    assert background < 40 if dark else background > 220


# For each line of visible text: its words, its box (without the leading above and below letters), and whether the line
# belongs to the player, which covers the page while the page is scrolled.
TEXT_BOXES = """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode()); ) {
  const parent = node.parentElement;
  if (!node.data.trim() || !parent.checkVisibility() || parent.closest("script, style, select, pre")) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (box.width > 0) {
      const fixed = !!parent.closest(".player");
      found.push([node.data.trim(), box.left, box.top + 2, box.right, box.bottom - 3, fixed]);
    }
  }
}
return found;
"""
