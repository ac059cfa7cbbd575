"""Every kind of run in every kind of figure, page, movie and export: complete, one cluster count, no overlapping
text."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from figures.test_page_layout import apart, drawn, inside
from matplotlib.figure import Figure
from PIL import Image
from support.kinds import CASES
from view.test_view import held

import meanfield as mf
from meanfield.analysis.info import describe, format_text
from meanfield.analysis.snapshot_clusters import cluster_finder
from meanfield.domains.table import kind_of
from meanfield.figures.figure import STYLE, load, page
from meanfield.figures.merger_tree import plot_mergers
from meanfield.figures.panels.options import FigureOptions
from meanfield.figures.panels.selected import panel_names
from meanfield.figures.run_data import RunData
from meanfield.movie.frames import Frames
from solvers.io.run_file import FileError, Run, read

MERGING = {"circle to atoms", "tokens in 3 dimensions"}  # the merger tree of all kinds is the same picture
NO_CLUSTERS = {"axisymmetric", "line", "tokens in 1 dimension"}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_run_has_every_picture_and_export(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = mf.run(mf.load_case(CASES[kind]), tmp_path / "run.h5")
    run, data = read(tmp_path / "run.h5"), load(tmp_path / "run.h5")
    assert (data.clusters is None) == (kind in NO_CLUSTERS)
    _texts_are_apart(*drawn(data, monkeypatch))
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout without room only warns
        page(data, FigureOptions(tuple(panel_names(data)))).draw_without_rendering()
    counts = _counts_of_the_movie(result, run, tmp_path, monkeypatch)
    _one_count_everywhere(run, data, counts, tmp_path)
    _exported(result, run, tmp_path)
    if kind in MERGING:
        assert plot_mergers(run.path, tmp_path / "tree.png").stat().st_size > 5000
    assert "finished" in format_text(describe(run))


def _texts_are_apart(figure: Figure, texts: list[object]) -> None:
    boxes = {text: text.get_window_extent() for text in texts}
    assert len(boxes) > 8
    inside(figure.bbox, boxes)
    apart(boxes)


def _counts_of_the_movie(result: mf.Result, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the cluster text of each movie frame, after asserting that there is one frame for each snapshot."""
    shown: dict[int, str] = {}

    class Watched(Frames):
        def show(self, k: int) -> None:
            super().show(k)
            shown[k] = self._count.get_text()

    monkeypatch.setattr("meanfield.movie.animate.Frames", Watched)
    with Image.open(result.movie(folder / "run.gif")) as film:
        assert film.n_frames == run.snapshots == len(shown)
    return [shown[k] for k in range(len(shown))]


def _one_count_everywhere(run: Run, data: RunData, counts: list[str], folder: Path) -> None:
    """Assert that figure, movie and page state the recorded number of clusters and mark exactly those clusters."""
    result = mf.open_run(run.path)
    description, _ = held(result.view(folder / "run.html"))
    for k, time in enumerate(run.times):
        words = data.counted_at(k)
        assert counts[k] == description["clusters"][k] == words
        if data.clusters is None:
            assert words == ""
            assert description["marks"][k] == []
            continue
        number, masses, places = data.clusters(k)
        assert words == f"{number} {'atom' if time >= data.handover else 'cluster'}{'' if number == 1 else 's'}"
        assert [mark[-1] for mark in description["marks"][k]] == pytest.approx(masses, abs=1e-5)
        assert len(places) == len(masses) == min(number, 32)
        if not time >= data.handover:
            assert number == cluster_finder(run)(k).count
        at = np.flatnonzero(np.isclose(run.sample_times, time, rtol=1e-9, atol=0.0))
        if "clusters" in run.diagnostics and len(at):
            assert number == run.diagnostics["clusters"][at[-1]]
            if "cluster_mass" in run.diagnostics:
                assert masses == pytest.approx(run.diagnostics["cluster_mass"][at[-1]][: len(masses)], rel=1e-9)


def _exported(result: mf.Result, run: Run, folder: Path) -> None:
    """Assert that CSV is always exported, and netCDF and VTK are exported or refused with the domains that have
    them."""
    table = result.export(folder / "run.csv", "csv").read_text().splitlines()
    assert len(table) == len(run.sample_times) + 1
    kind = kind_of(run.manifold)
    points = kind.has_tokens and run.snapshot_shape[1] <= 3
    for to, possible in [("netcdf", kind.netcdf), ("vtkhdf", kind.vtkhdf or points)]:
        target = folder / f"run.{to}"
        if possible:
            assert result.export(target, to).stat().st_size > 1000
            continue
        with pytest.raises(FileError, match=r"run\.h5: .*(expected|supports|holds|knows|contains)"):
            result.export(target, to)
        assert not target.exists()
