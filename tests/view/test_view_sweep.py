"""The page of a sweep: its points, and a click that opens a point's data and the page of its run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from figures.test_sweep_figures import index_of
from support.browser import chromium
from support.sweeping import CASE, in_this_process, write
from view.test_view_page import TEXT_BOXES

from meanfield.cli.parser import main
from meanfield.sweeping.driver import sweep
from meanfield.sweeping.results import read_sweep
from meanfield.view.sweep import _series, describe_sweep

FOUR = """
title = "Four <points>"
[keys]
"attention.beta" = [2.0, 8.0]
"initial.amplitude" = [0.01, 0.1]
[keep]
files = true
"""
PRESSED = 2  # beta 8, amplitude 0.01


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of four points, two values of each of two keys."""
    folder = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
        sweep(write(folder / "four.toml", FOUR, CASE), folder / "four.h5")
    return folder / "four.h5"


def test_points_come_back_from_the_page_of_a_sweep(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(index)]) == 0
    text = index.with_suffix(".html").read_text(encoding="utf-8")
    assert "<h1>Four &lt;points&gt;</h1>" in text
    run, found = json.loads(re.search(r'id="run">(.*?)</script>', text, re.DOTALL)[1]), read_sweep(index)
    assert run["keys"]["attention.beta"]["places"] == found.parameters["attention.beta"].tolist() == [2, 2, 8, 8]
    assert run["scalars"]["clusters"]["values"] == found.scalars["clusters"].tolist()
    assert {run["x"], run["y"]} == {"attention.beta", ""}, "as the figure has it: lines for two values of another key"
    energies = next(panel for panel in run["points"][PRESSED]["series"]["panels"] if panel["title"] == "energy")
    assert energies["curves"][0]["values"] == pytest.approx(found.time_series(PRESSED, "energy")[1], rel=1e-8)
    pages = [index.parent / point["page"] for point in run["points"]]
    assert [page.name for page in pages] == ["0000.html", "0001.html", "0002.html", "0003.html"]
    assert all("<h1>" in page.read_text(encoding="utf-8") for page in pages)
    capsys.readouterr()
    assert main(["view", str(index)]) == 2
    assert "exists already; --overwrite replaces it" in capsys.readouterr().err
    assert main(["view", str(index), "-o", str(index.with_name("four.htm"))]) == 2
    assert "four.pages: exists already" in capsys.readouterr().err


def test_the_page_has_the_critical_noise_if_it_is_that_of_all_runs(tmp_path: Path) -> None:
    keys = '"attention.beta" = [1.0, 2.0]\n"stabilizers.noise" = [0.1, 0.2]\n'
    figure = 'figure = {x = "attention.beta", y = "stabilizers.noise", value = "clusters"}'
    for more, expected in (("", True), ('"stabilizers.scale" = [1.0, 2.0]', False)):
        found = describe_sweep(read_sweep(index_of(tmp_path, keys + more, figure)), {})
        assert (found["theory"] is not None) == expected


def test_a_press_on_a_point_opens_its_run(index: Path, tmp_path: Path) -> None:
    page = index.with_name("pressed.html")
    assert main(["view", str(index), "-o", str(page)]) == 0
    with chromium(tmp_path) as browser:
        browser.open(page)
        browser.find("#y").send_keys("initial.amplitude")
        browser.wait("document.querySelectorAll('rect.sweep-point').length === 4")
        boxes = [browser.box(f"[data-point='{n}']") for n in range(4)]
        assert boxes[1][1] < boxes[0][1], "the larger amplitude is above"
        assert boxes[2][0] > boxes[0][0], "the larger beta is to the right"
        browser.find(f"[data-point='{PRESSED}']").click()
        assert browser.text("#point h2") == "point 2: attention.beta = 8, initial.amplitude = 0.01"
        assert browser.find("#panels svg")
        assert browser.requests() == browser.complaints() == []
        browser.find("#open").click()
        browser.wait_for_snapshot(0)
        assert browser.driver.current_url.endswith("pressed.pages/0002.html")
        for width, dark in ((390, True), (800, False)):
            browser.open(page, width=width, dark=dark)
            assert browser.run("return document.documentElement.scrollWidth") <= width
            found = browser.run(TEXT_BOXES)
            for i, (text, left, top, right, bottom, _) in enumerate(found):
                for other, *place, _ in found[:i]:
                    apart = left >= place[2] or place[0] >= right or top >= place[3] or place[1] >= bottom
                    assert apart, f"{text!r} lies on {other!r}"


def test_a_column_of_other_points_is_not_drawn() -> None:
    """A column of an index has only the length that its own points need."""
    tables = {"time": np.arange(4.0), "mass": np.ones(4), "energy": np.zeros(3)}
    found = _series(tables, 100)
    assert found is not None
    assert found == _series({name: tables[name] for name in ("time", "mass")}, 100)
