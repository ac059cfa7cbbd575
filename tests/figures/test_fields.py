"""Files of solvers.record: their description and their figures, for every mesh and any number of fields."""

import base64
import io
import json
import re

import h5py
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import meanfield as mf
from meanfield.analysis.info import describe, format_text
from meanfield.cli.parser import main
from meanfield.export.formats import export
from meanfield.figures.fields import chart, triangulation
from meanfield.figures.figure import has_room, plot
from meanfield.movie.animate import movie
from meanfield.view.page import view
from solvers.io.run_file import FileError
from solvers.io.run_file import read as open_file
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle
from solvers.mesh.product import box, torus
from solvers.mesh.simplices.triangles import triangles
from solvers.mesh.views import draw as draw_on_mesh
from solvers.recording.record import record
from solvers.timestepping.state import State

SPACES = {
    "interval": interval(0.0, 1.0, 16), "circle": circle(12), "box": box((6, 5), (1.0, 2.0)),
    "body": box((4, 4, 3), (1.0, 1.0, 1.0)), "torus": torus((6, 5)), "icosphere": icosphere(1),
}  # fmt: skip


def written(path, mesh, fields):
    shape = (len(fields), mesh.cells) if len(fields) > 1 else (mesh.cells,)
    with record(path, mesh, every=1.0, fields=fields, diagnostics={"largest": lambda u: u.max()}) as recorder:
        for time in range(3):
            state = State(float(time), np.random.default_rng(time).random(shape))
            recorder.begin(state)
    return path


@pytest.mark.parametrize("name", SPACES)
def test_a_solution_is_described_and_drawn(name, tmp_path):
    fields = ("u", "v") if name in ("box", "interval") else ("u",)
    path = written(tmp_path / "run.h5", SPACES[name], fields)
    text = format_text(describe(path))
    assert f"{SPACES[name].cells} cells" in text
    last = np.random.default_rng(2).random((len(fields), SPACES[name].cells))
    ranges = [f"{field} from {u.min():.3g} to {u.max():.3g}" for field, u in zip(fields, last, strict=True)]
    assert f"fields    {', '.join(ranges)} in the last snapshot" in text
    assert "mass" not in text  # fields of a PDE are not densities
    assert "density" not in text
    assert plot(path, tmp_path / "run.png").stat().st_size > 5000


def test_a_result_shows_a_solution(tmp_path):
    result = mf.open_run(written(tmp_path / "run.h5", SPACES["interval"], ("u", "v")))
    assert result._repr_html_().startswith('<img alt="run.h5"')
    assert "density" not in repr(result)
    figure = Figure(figsize=(6, 5))
    assert result.plot(figure=figure) is figure
    assert [ax.get_ylabel() for ax in figure.axes[:2]] == ["u", "v"]
    with pytest.raises(ValueError, match="a recorded solution of a PDE is drawn without panels, times and caption"):
        result.plot(panels="u")
    with pytest.raises(ValueError, match="a recorded solution of a PDE is drawn in a figure: expected no ax"):
        result.plot(Figure().add_subplot())


@pytest.mark.parametrize("options", ["", "--size 3.4x5 --style paper --dpi 100"])
def test_the_command_draws_a_solution_whose_texts_are_clear(options, tmp_path, monkeypatch):
    """Rows of four squares as wide as the page are those whose heights the layout underestimates."""
    path, drawn = tmp_path / "gs.h5", []
    mesh = box((6, 6), (2.5, 2.5))
    with record(path, mesh, every=10.0, fields=("u", "v")) as recorder:
        for time in range(0, 101, 10):
            recorder.begin(State(float(time), np.random.default_rng(time).random((2, mesh.cells))))
    monkeypatch.setattr("meanfield.figures.fields.save", lambda figure, *_: drawn.append(figure) or path)
    assert main(["plot", str(path), *options.split()]) == 0
    assert has_room(drawn[0])
    assert [ax.get_title() for ax in drawn[0].axes][:1] == ["u, t = 100" if options else "u, t = 0"]


def test_a_size_without_room_is_refused_for_a_solution(tmp_path, capsys):
    path = written(tmp_path / "run.h5", SPACES["box"], ("u", "v"))
    assert main(["plot", str(path), "--size", "3.4x0.6", "--style", "paper"]) == 2
    assert "size = 3.4x0.6: too small for these panels" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["interval", "body", "icosphere"])
def test_a_solution_is_filmed_a_frame_each_snapshot(name, tmp_path):
    path = written(tmp_path / "run.h5", SPACES[name], ("u", "v") if name == "interval" else ("u",))
    with Image.open(movie(path, tmp_path / "run.gif", quiet=True)) as film:
        assert film.n_frames == 3
        first = np.asarray(film.convert("L"), dtype=float)
        film.seek(2)
        # The gray levels, at most 255, show that the field has changed.
        assert np.abs(np.asarray(film.convert("L"), dtype=float) - first).mean() > 0.1


@pytest.mark.parametrize("name", ["interval", "torus"])
def test_the_page_of_a_solution_has_a_picture_of_each_snapshot(name, tmp_path):
    path = written(tmp_path / "run.h5", SPACES[name], ("u", "v"))
    text = view(path, tmp_path / "run.html").read_text(encoding="utf-8")
    assert f'<p class="facts">u, v ({SPACES[name].manifold}, {SPACES[name].cells} cells)</p>' in text
    held = json.loads(re.search(r'id="run">(.*?)</script>', text, re.DOTALL)[1])
    assert held["timeLabels"] == ["t = 0", "t = 1", "t = 2"]
    assert held["panels"][0]["curves"][0]["values"] == pytest.approx(
        [np.random.default_rng(time).random((2, SPACES[name].cells)).max() for time in range(3)], rel=1e-8
    )
    pictures = [Image.open(io.BytesIO(base64.b64decode(one.partition(",")[2]))) for one in held["pictures"]]
    first, last = (np.asarray(pictures[k].convert("L"), dtype=float) for k in (0, 2))
    assert first.shape == (620, 800)
    assert np.abs(first - last).mean() > 0.1


@pytest.mark.parametrize(
    ("mesh", "aspect"),
    [(box((12, 4), (4.0, 1.0)), 1.0), (box((4, 4), (4.0, 0.2)), "auto"), (box((4, 12), (1.0, 4.0)), 1.0),
     (SPACES["torus"], 1.0), (SPACES["icosphere"], 1.0)],
)  # fmt: skip
def test_maps_have_one_scale_unless_they_are_narrow(mesh, aspect, tmp_path):
    path = written(tmp_path / "run.h5", mesh, ("u",))
    figure = mf.open_run(path).plot(figure=Figure(figsize=(10, 5)))
    own = draw_on_mesh(np.zeros(1), np.zeros((1, mesh.cells)), mesh)
    maps = [ax for ax in (*figure.axes, own) if ax.get_title().endswith(("t = 0", "t = 2"))]
    assert len(maps) == 3
    assert {ax.get_aspect() for ax in maps} == {aspect}
    assert {ax.get_xlabel() for ax in maps if mesh is SPACES["torus"]} <= {"first angle (degrees)"}


def test_charts_locate_cells():
    places, labels = chart(circle(4).centers)
    np.testing.assert_allclose(places[:, 0], [45, 135, 225, 315])
    assert labels == ["angle (degrees)"]
    places, _ = chart(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    np.testing.assert_allclose(places, [[0, 90], [90, 0]])


def test_what_needs_no_export_says_so(tmp_path):
    path = written(tmp_path / "run.h5", SPACES["box"], ("u",))
    with pytest.raises(FileError, match="the file is netCDF-4"):
        export(path, "netcdf")


def blown_up(path, mesh, part):
    """Record a solution of which the fraction ``part`` of the cells is NaN."""
    values = np.where(np.arange(mesh.cells) < part * mesh.cells, np.nan, np.arange(mesh.cells, dtype=float))
    with record(path, mesh, every=1.0) as recorder:
        for time in (0.0, 1.0):
            recorder.begin(State(time, values))
    return path


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("space", ["circle", "box"])
@pytest.mark.parametrize(
    ("command", "status"), [("info", 0), ("info --verify", 0), ("plot -o a.png", 0), ("view", 2), ("movie --quiet", 2)]
)
def test_a_solution_of_nan_is_described_or_refused_in_a_line(space, command, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blown_up(tmp_path / "a.h5", SPACES[space], 1.0)
    name, *options = command.split()
    assert main([name, "a.h5", *options]) == status
    if status:
        message = "meanfield: a.h5: no value of u is finite\n"
        assert capsys.readouterr().err == message


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("space", ["circle", "box"])
def test_a_solution_that_is_partly_nan_is_drawn_where_it_is_finite(space, tmp_path):
    path = blown_up(tmp_path / "a.h5", SPACES[space], 0.4)
    for draw, name in ((plot, "a.png"), (view, "a.html"), (movie, "a.gif")):
        draw(path, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_a_triangulation_is_drawn_with_its_own_triangles(tmp_path):
    """The map of an L leaves out the corner; an older file without the triangles is drawn by Delaunay's."""
    corners = np.array([[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [3, 4, 7], [3, 7, 6]])
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 2], [1, 2.0]])
    mesh = triangles(points, corners)
    path = written(tmp_path / "run.h5", mesh, ("u",))
    expected = {frozenset(triangle) for triangle in corners.tolist()}
    assert {frozenset(triangle) for triangle in open_file(path).triangles.tolist()} == expected
    assert {frozenset(triangle) for triangle in triangulation(open_file(path)).triangles.tolist()} == expected
    ax = draw_on_mesh(np.zeros(1), np.arange(8.0)[None], mesh)
    drawn = {frozenset(map(tuple, path.vertices[:3].tolist())) for path in ax.collections[0].get_paths()}
    assert drawn == {frozenset(map(tuple, points[triangle].tolist())) for triangle in corners}
    for target in ("run.png", "run.gif"):
        (plot if target.endswith("png") else movie)(path, tmp_path / target)
        assert (tmp_path / target).stat().st_size > 5000
    with h5py.File(path, "a", locking=False) as file:
        del file["triangles"]
    assert open_file(path).triangles is None
    assert len(triangulation(open_file(path)).triangles) == 7
