"""Movies: one frame for each snapshot in the snapshot's colors, one page size for all, and no partial files."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from support.needs import need
from support.run_data import LINEAR, LOG, MANIFOLDS, law, particles, run_data

from meanfield.cli.parser import main
from meanfield.domains.table import DOMAINS
from meanfield.figures.color_scale import Scale
from meanfield.figures.figure import STYLE, load
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import pixel_cells
from meanfield.movie.animate import movie
from meanfield.movie.frames import Frames
from meanfield.movie.page import HEIGHT, WIDTH, label_density, palette, shades
from meanfield.movie.pictures import MAP_LEFT, MAP_TOP, MAP_WIDTH, MARGIN
from meanfield.movie.shown import frame_numbers
from solvers.io.run_file import Column, FileError, RunFile
from solvers.mesh.mesh import Mesh, circle, sphere

CASE = """title = "Two blobs that part"
domain = {{manifold = "{manifold}", resolution = 16}}
attention.beta = 4
initial.kind = "uniform"
time.end = 5.0
"""
SNAPSHOTS = 5
COLUMNS = (Column("energy", (), "1", "energy"), Column("clusters", (), "1", "clusters"))
MESHES = {"sphere": lambda: sphere(16), "circle": lambda: circle(64)}
FAKE_FFMPEG = """#!/bin/sh
for last; do :; done
{does}
"""


def blobs(mesh: Mesh, k: int) -> np.ndarray:
    """Return a density (cells,) of two blobs, further apart and sharper with each k, on a uniform background."""
    places = np.array([[1.0, 0.3 * k, 0.0], [1.0, -0.3 * k, 0.0]])[:, : mesh.centers.shape[1]]
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    bumps = np.exp((5 + 10 * k) * (mesh.centers @ places.T - 1)).sum(axis=1)
    return 0.1 / mesh.volume + 0.9 * bumps / (mesh.volumes @ bumps)


def run_file(path: Path, manifold: str = "sphere", snapshots: int = SNAPSHOTS, close: bool = True) -> Path:
    mesh = MESHES[manifold]()
    file = RunFile.create(path, mesh, COLUMNS, {"case": CASE.format(manifold=manifold)})
    for k in range(snapshots):
        file.write_snapshot(float(k), blobs(mesh, k))
        file.write_sample(float(k), {"energy": float(k), "clusters": min(k, 2)})
    if close:
        file.close(stop_reason="finished")
    else:
        path.with_suffix(".copy.h5").write_bytes(path.read_bytes())  # the file that a killed process leaves
        file.close(stop_reason="finished")
    return path


def frames(path: Path) -> list[np.ndarray]:
    """Return each frame (height, width, 3) of a GIF."""
    with Image.open(path) as image:
        found = []
        for k in range(image.n_frames):
            image.seek(k)
            found.append(np.array(image.convert("RGB")))
        return found


def drawn_pages(run_data: RunData, snapshots: list[int]) -> list[np.ndarray]:
    """Return each snapshot's page (height, width, 3) before any codec."""
    pages = []
    with matplotlib.rc_context(STYLE | {"figure.constrained_layout.use": False}):
        figure = Figure()
        canvas = FigureCanvasAgg(figure)
        page = Frames(run_data, figure)
        for k in snapshots:
            page.show(k)
            canvas.draw()
            pages.append(np.array(canvas.buffer_rgba())[..., :3])
    return pages


def fake_ffmpeg(folder: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """Put on the PATH, beside the shell's own tools, an ffmpeg that executes only the script ``does``."""
    folder.mkdir()
    (folder / "ffmpeg").write_text(FAKE_FFMPEG.format(does=does))
    (folder / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize("manifold", MESHES)
def test_gif_has_a_frame_for_each_snapshot(tmp_path: Path, manifold: str) -> None:
    run = run_file(tmp_path / "run.h5", manifold)
    assert movie(run, tmp_path / "run.gif", fps=5) == tmp_path / "run.gif"
    shown = frames(tmp_path / "run.gif")
    assert [frame.shape for frame in shown] == [(HEIGHT, WIDTH, 3)] * SNAPSHOTS
    picture = slice(MAP_TOP, MAP_TOP + 350), slice(0, MAP_WIDTH)
    for before, after in pairwise(shown):
        assert np.mean(before[picture] != after[picture]) > 0.01
        assert np.mean(before[:60] != after[:60]) == 0, "the heading moved"
        assert np.mean(before[:, 740:] != after[:, 740:]) == 0, "the scale changed"
    with Image.open(tmp_path / "run.gif") as image:
        assert image.info["duration"] == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.gif", "run.h5"]


def still_then_moving(times: np.ndarray, **changes: object) -> RunData:
    """Return a run on the circle that is uniform up to snapshot 30 of 41, and then moves."""
    mesh, uniform = circle(64), np.full(64, 0.5 / np.pi)

    def density(k: int) -> np.ndarray:
        return blobs(mesh, k - 30) if k > 30 else uniform

    data = run_data(mesh, times, density=density, diagnostics={"time": times}, **changes)
    return replace(data, clusters=None)


def test_movie_of_logarithmic_times_has_no_frames_without_change() -> None:
    still = still_then_moving(LOG, log_spacing=True)
    assert frame_numbers(still) == [0, *range(31, 41)]
    assert frame_numbers(replace(still, log_spacing=False)) == list(range(41))
    constant = replace(still, density=lambda k: still.density(0))
    assert frame_numbers(constant) == [0, 40]
    tokens = particles(3, 20, LOG, log_spacing=True)
    positions = tokens.particles.positions
    waiting = replace(tokens.particles, positions=lambda k: positions(max(k, 30)))
    assert frame_numbers(replace(tokens, particles=waiting, clusters=None)) == [0, *range(31, 41)]


def test_projected_tokens_are_within_the_axes_in_all_frames() -> None:
    """The tokens spread widely between the first, the last and the snapshot whose principal axes are shown."""
    ends = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    reaches = [0.0, 1.0, 0.6, 0.0]
    positions = [np.hstack([r * ends, np.full((4, 1), np.sqrt(1 - r**2)), np.zeros((4, 1))]) for r in reaches]
    data = particles(4, 4, np.arange(4.0))
    tokens = replace(data.particles, positions=lambda k: positions[k], weights=np.full(4, 0.25))
    figure = Figure()
    Frames(replace(data, particles=tokens, clusters=None), figure)
    [ax] = [one for one in figure.axes if one.get_xlabel() == "first axis"]
    assert ax.get_xlim()[1] > 1


def test_pixels_have_the_colours_of_their_cells(tmp_path: Path) -> None:
    run = run_file(tmp_path / "run.h5")
    movie(run, tmp_path / "run.gif")
    run_data, filmed = load(run), frames(tmp_path / "run.gif")
    ratios = [run_data.ratio(k) for k in range(SNAPSHOTS)]
    low, high = max(min(r.min() for r in ratios), 0.01), max(r.max() for r in ratios)
    first, last = drawn_pages(run_data, [0, SNAPSHOTS - 1])
    cell = pixel_cells(run_data.ring_cells, MAP_WIDTH)
    for k, drawn in ((0, first), (SNAPSHOTS - 1, last)):
        top, left = MAP_TOP + MARGIN, MAP_LEFT + MARGIN
        place = slice(top, top + len(cell)), slice(left, left + MAP_WIDTH)
        level = np.log(ratios[k] / low) / np.log(high / low)
        expected = shades()(level, bytes=True)[cell][..., :3]
        # Meridians, parallels, rings and the edge of the map cover the other pixels.
        same = np.all(drawn[place] == expected, axis=-1)[cell >= 0]
        assert same.mean() > 0.9, f"snapshot {k}: {same.mean():.0%}"
        # Pillow finds the nearest palette entry for boxes of 4 x 4 x 4 colors instead of for each color.
        near = (np.abs(filmed[k][place].astype(int) - expected).max(axis=-1) <= 4)[cell >= 0]
        assert near.mean() > 0.9, f"snapshot {k}: {near.mean():.0%}"


def test_palette_holds_the_map_and_white_and_black() -> None:
    colors = palette()
    assert colors.shape == (256, 3)
    found = {tuple(color) for color in colors.tolist()}
    assert {(0, 0, 0), (255, 255, 255)} <= found
    assert {tuple(color) for color in shades()(np.arange(shades().N), bytes=True)[:, :3].tolist()} <= found


@pytest.mark.sampled
@pytest.mark.parametrize("manifold", MESHES)
@pytest.mark.parametrize("kind", ["one snapshot", "no diagnostics", "log time", "uniform", "ripple"])
def test_every_run_has_frames_whose_ink_stays_on_the_page(tmp_path: Path, manifold: str, kind: str) -> None:
    run_data = load(run_file(tmp_path / "run.h5", manifold))
    cells = len(run_data.density(0))
    run_data = {
        "one snapshot": replace(run_data, times=np.zeros(1)),
        "no diagnostics": replace(run_data, diagnostics={}, title="A title longer than the page is wide " * 9),
        "log time": replace(run_data, times=np.array([0, 1e-3, 1e-2, 0.1, 1e2])),
        "uniform": replace(run_data, density=lambda k: np.full(cells, 1 / DOMAINS[manifold].volume)),
        "ripple": replace(
            run_data, density=lambda k: (1 + 2.5e-4 * np.cos(np.arange(cells))) / DOMAINS[manifold].volume
        ),
    }[kind]
    for page in drawn_pages(run_data, [0, len(run_data.times) - 1]):
        stays_on(page)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_every_manifold_moves_in_its_picture_and_keeps_its_page(manifold: str) -> None:
    for times in (LINEAR, LOG, np.zeros(1)):
        first, last = drawn_pages(law(manifold, times), [0, len(times) - 1])
        for page in (first, last):
            stays_on(page)
        picture = slice(MAP_TOP, MAP_TOP + 350), slice(0, WIDTH)
        if len(times) > 1:
            assert np.mean(first[picture] != last[picture]) > 0.01
            assert np.array_equal(first[:60], last[:60]), "the heading moved"
    short, long = (
        law(manifold, LINEAR, title="short"),
        law(manifold, LINEAR, title="A title longer than the page is wide " * 9),
    )
    tops = [
        np.flatnonzero((drawn_pages(data, [0])[0][:MAP_TOP].min(axis=-1) < 200).any(axis=1)) for data in (short, long)
    ]
    for rows in tops:
        assert np.diff(rows).max() < 25, "a wide gap between heading and clock"


@pytest.mark.parametrize(
    ("name", "values"), [("energy", 2.723987 + 1e-9 * LINEAR), ("energy", 1e6 * LINEAR), ("clusters", LINEAR // 3)]
)
def test_the_time_line_is_named_and_has_few_plain_ticks(name: str, values: np.ndarray) -> None:
    with matplotlib.rc_context(STYLE | {"figure.constrained_layout.use": False}):
        figure = Figure()
        Frames(replace(law("axisymmetric", LINEAR), diagnostics={"time": LINEAR, name: values}), figure)
    line = next(ax for ax in figure.axes if name in ax.get_title(loc="left"))
    texts = [text.get_text() for text in line.get_yticklabels()]
    assert 2 <= len(texts) <= 5
    assert max(map(len, texts)) <= 4, f"ticks with an offset or too many digits: {texts}"
    assert line.lines[0].get_drawstyle() == ("steps-post" if name == "clusters" else "default")
    assert ("change" in line.get_title(loc="left")) == (np.ptp(values) < 1)


@pytest.mark.parametrize(("high", "tick", "text"), [(500.0, 100.0, "100"), (3e6, 1e6, "$10^{6}$")])
def test_ticks_of_densities_are_plain_numbers_or_powers(high: float, tick: float, text: str) -> None:
    ax = Figure().subplots()
    ax.set_yscale("log")
    label_density(ax, Scale(0.01, high, deviation=False), "density")
    assert ax.yaxis.get_major_formatter()(tick, 0) == text
    assert (ax.get_title(), ax.get_ylabel()) == ("density", "")


def stays_on(page: np.ndarray) -> None:
    """Assert that the page's edges cut nothing off."""
    ink = page.min(axis=-1) < 200
    assert ink.mean() > 0.01
    assert not ink[:3].any(), "cut at the top"
    assert not ink[-3:].any(), "cut at the bottom"
    assert not ink[:, :3].any(), "cut on the left"
    assert not ink[:, -3:].any(), "cut on the right"


def test_killed_and_running_files_are_filmed(tmp_path: Path) -> None:
    run_file(tmp_path / "run.h5", close=False)
    movie(tmp_path / "run.copy.h5", tmp_path / "killed.gif")
    assert len(frames(tmp_path / "killed.gif")) == SNAPSHOTS
    with RunFile.create(tmp_path / "live.h5", sphere(16), (), {"case": CASE.format(manifold="sphere")}) as file:
        for k in range(2):
            file.write_snapshot(float(k), blobs(sphere(16), k))
        movie(tmp_path / "live.h5", tmp_path / "live.gif")
        assert len(frames(tmp_path / "live.gif")) == 2
        file.close(stop_reason="finished")


def test_mp4_gets_every_pixel_of_every_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ffmpeg(tmp_path / "bin", monkeypatch, 'echo "$@" > "$0.arguments"; cat > "$last"')
    movie(run_file(tmp_path / "run.h5"), tmp_path / "run.mp4", fps=7)
    assert (tmp_path / "run.mp4").stat().st_size == SNAPSHOTS * WIDTH * HEIGHT * 4
    arguments = (tmp_path / "bin/ffmpeg.arguments").read_text()
    for option in (f"-s {WIDTH}x{HEIGHT}", "-framerate 7", "-vcodec libx264", "-pix_fmt yuv420p"):
        assert option in arguments


def test_mp4_can_be_played(tmp_path: Path) -> None:
    ffmpeg = need("ffmpeg")
    movie(run_file(tmp_path / "run.h5"), tmp_path / "run.mp4")
    command = [ffmpeg, "-v", "error", "-i", str(tmp_path / "run.mp4"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout
    played = np.frombuffer(raw, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)
    assert len(played) == SNAPSHOTS
    assert np.abs(played[0].astype(int) - played[-1]).mean() > 1


def test_what_cannot_be_filmed_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, empty = run_file(tmp_path / "run.h5"), run_file(tmp_path / "empty.h5", snapshots=0)
    (tmp_path / "taken.gif").write_bytes(b"old")
    monkeypatch.setenv("PATH", str(tmp_path))
    for file, name, message in [
        (run, "run.avi", r"run\.avi: unknown kind of movie '\.avi'; expected \.gif, \.mp4"),
        (run, "run.mp4", r"run\.mp4: \.mp4 needs ffmpeg, which is not on the PATH; \.gif works without it"),
        (run, "taken.gif", r"taken\.gif: exists already; --overwrite replaces it"),
        (run, "nowhere/run.gif", "nowhere does not exist"),
        (empty, "run.gif", "holds no snapshot"),
        (tmp_path / "missing.h5", "run.gif", r"missing\.h5"),
    ]:
        with pytest.raises(FileError, match=message) as caught:
            movie(file, tmp_path / name)
        assert "\n" not in str(caught.value)
    shutil.copy(run, tmp_path / "named.gif")
    with pytest.raises(FileError, match="is the run itself"):
        movie(tmp_path / "named.gif", tmp_path / "named.gif", overwrite=True)
    with pytest.raises(ValueError, match="fps: 51; expected a whole number from 1 to 50"):
        movie(run, tmp_path / "run.gif", fps=51)
    assert (tmp_path / "taken.gif").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"run.h5", "empty.h5", "taken.gif", "named.gif"}


@pytest.mark.parametrize("does", ["echo broken >&2; exit 1", 'cat > "$last"; echo broken >&2; exit 1'])
def test_ffmpeg_that_fails_leaves_the_old_movie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    fake_ffmpeg(tmp_path / "bin", monkeypatch, does)
    (tmp_path / "run.mp4").write_bytes(b"old")
    run = run_file(tmp_path / "run.h5")
    with pytest.raises(FileError, match="ffmpeg failed with status 1: broken"):
        movie(run, tmp_path / "run.mp4", overwrite=True)
    assert (tmp_path / "run.mp4").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "run.h5", "run.mp4"}


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(run_file(tmp_path / "run.h5", snapshots=2))
    assert main(["movie", run, "--fps", "4"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'run.gif'}\n"
    assert main(["movie", run]) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main(["movie", run, "--overwrite", "--quiet"]) == 0
    for fps in ("0", "51", "2.5", "x"):
        assert main(["movie", run, "--fps", fps]) == 2
        assert f"{fps}: expected a whole number from 1 to 50" in capsys.readouterr().err
