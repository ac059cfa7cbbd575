"""Views of a solution: coordinates of every mesh, datasets, and figures."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from solvers import Diffusion, Equation, box, circle, icosphere, interval, solve, sphere
from solvers.mesh.coordinates import layout

MESHES = {
    "interval": lambda: interval(-1.0, 2.0, 12),
    "circle": lambda: circle(12),
    "plane": lambda: box((4, 3), ((0.0, 2.0), (0.0, 3.0))),
    "box": lambda: box((3, 4, 5), ((0.0, 3.0), (0.0, 4.0), (0.0, 5.0))),
    "sphere": lambda: sphere(6),
    "icosphere": lambda: icosphere(1),
}


def solved(mesh, u0=None):
    u0 = mesh.centers[:, 0] if u0 is None else u0
    return solve(Equation(mesh, [Diffusion(mesh, 0.1)]), u0, (0.0, 0.2), times=[0.0, 0.1, 0.2])


@pytest.mark.parametrize("name", MESHES)
def test_coordinates_are_those_of_the_cells(name):
    """The coordinates, broadcast over the dimensions in the order of the cells, are the centers; angles give the
    centers."""
    mesh = MESHES[name]()
    dimensions, shape, coordinates = layout(mesh)
    assert np.prod(shape) == mesh.cells
    if dimensions == ("angle",):
        angle = coordinates["angle"][1]
        found = np.column_stack([np.cos(angle), np.sin(angle)])
    elif "cell" in dimensions:
        found = np.column_stack([coordinates[axis][1] for axis in "xyz"])
        east, north = (np.radians(coordinates[name][1]) for name in ("longitude", "latitude"))
        length = np.linalg.norm(found, axis=1)
        np.testing.assert_allclose(length * np.sin(north), found[:, 2], atol=1e-15)
        np.testing.assert_allclose(length * np.cos(north) * np.cos(east), found[:, 0], atol=1e-15)
    else:
        grids = np.meshgrid(*(coordinates[axis][1] for axis in dimensions), indexing="ij")
        found = np.column_stack([grid.ravel() for grid in grids])
    np.testing.assert_allclose(found, mesh.centers, atol=1e-15)


@pytest.mark.parametrize("name", MESHES)
def test_dataset_holds_times_fields_and_volumes(name):
    mesh = MESHES[name]()
    solution = solved(mesh)
    found = solution.to_xarray(["heat"])
    assert found.heat.dims[0] == "time"
    np.testing.assert_array_equal(found.time, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(found.heat.values.reshape(3, -1), solution.u)
    inner = found.heat.dims[1:]
    np.testing.assert_allclose((found.heat * found.volume).sum(inner), solution.u @ mesh.volumes, atol=1e-13)


def test_names_of_fields():
    mesh = interval(0.0, 1.0, 6)
    two = solved(mesh, np.stack([mesh.centers[:, 0], np.ones(6)]))
    assert list(two.to_xarray()) == ["u0", "u1", "volume"]
    with pytest.raises(ValueError, match=r"fields = \['a'\]: expected 2 names"):
        two.to_xarray(["a"])


def test_a_line_is_drawn_as_curves_and_a_plane_as_cells():
    pytest.importorskip("matplotlib")
    solution = solved(interval(-1.0, 2.0, 12))
    ax = solution.plot()
    assert [line.get_label() for line in ax.lines] == ["t = 0", "t = 0.1", "t = 0.2"]
    np.testing.assert_array_equal(ax.lines[2].get_ydata(), solution.u[2])
    plane = solved(box((4, 3), ((0.0, 2.0), (0.0, 3.0))))
    drawn = plane.plot(time=0.11).collections[0]
    np.testing.assert_array_equal(drawn.get_array(), plane.u[1].reshape(4, 3).T)
    assert [ax.get_ylabel(), plane.plot().figure.axes[1].get_ylabel()] == ["u", "u"]
    with pytest.raises(ValueError, match="a box of 3 dimensions"):
        solved(MESHES["box"]()).plot()


@pytest.mark.parametrize("surface", [sphere(24), icosphere(2)], ids=["rings", "icosphere"])
def test_a_map_of_a_surface_has_every_cell_and_a_color_bar_of_its_height(surface):
    pytest.importorskip("matplotlib")
    number = np.arange(surface.cells, dtype=float)
    ax = solved(surface, np.stack([number, number])).plot(time=0.0, field=-1)
    shown = ax.images[0].get_array().astype(int)
    assert set(shown.ravel()) == set(range(surface.cells))
    # The share of the map's area, weighted by cos(latitude), is that of the cell, up to the points of the map.
    rows = len(shown)
    weight = np.sin((np.arange(rows) + 0.5) * np.pi / rows)[:, None] * np.ones(2 * rows)
    area = np.bincount(shown.ravel(), weight.ravel()) / weight.sum() * surface.volume
    np.testing.assert_allclose(area, surface.volumes, rtol=0.1)
    centers = surface.centers[shown]  # at longitude 0, in the west, in the north and in the south of the map
    assert min(centers[rows // 2, rows, 0], -centers[rows // 2, 0, 0], centers[0, 0, 2], -centers[-1, 0, 2]) > 0.9
    assert ax.figure.axes[1].get_ylabel() == "u1"


@pytest.mark.parametrize(
    "mesh", [box((4, 3), (2.0, 3.0)), box((4, 3), (4.0, 1.0)), sphere(6)], ids=["high", "wide", ""]
)
def test_color_bars_are_as_high_as_the_map(mesh):
    pytest.importorskip("matplotlib")
    ax = solved(mesh).plot()
    ax.figure.draw_without_rendering()
    bar = ax.figure.axes[1].bbox
    assert [bar.y0, bar.y1] == pytest.approx([ax.bbox.y0, ax.bbox.y1])


@pytest.mark.parametrize(
    "mesh", [interval(-1.0, 2.0, 12), box((4, 3), (2.0, 3.0)), sphere(6)], ids=lambda m: m.manifold
)
def test_a_movie_has_a_frame_for_each_time(mesh, tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    solution = solved(mesh)
    with image.open(solution.movie(tmp_path / "u.gif", fps=5)) as film:
        assert film.n_frames == len(solution.t) == 3
        frames = []
        for k in range(3):
            film.seek(k)
            frames.append(np.asarray(film.convert("L")).copy())
    assert all((one != other).any() for one, other in pairwise(frames))
    with pytest.raises(ValueError, match="a box of 3 dimensions"):
        solved(MESHES["box"]()).movie(tmp_path / "v.gif")


def test_empty_axes_of_pyplot_are_drawn_into_and_others_are_not():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    solution = solved(interval(-1.0, 2.0, 12))
    solution.plot()
    assert pyplot.get_fignums() == []
    opened = pyplot.figure()
    first = solution.plot()
    assert (first.figure, first) == (opened, pyplot.gca())
    assert solution.plot().figure is not opened  # whose axes are no longer empty
    pyplot.close(opened)


def test_an_angle_is_drawn_in_order():
    pytest.importorskip("matplotlib")
    ax = solved(circle(12)).plot(time=0.0)
    angle, values = ax.lines[0].get_data()
    assert (np.diff(angle) > 0).all()
    np.testing.assert_allclose(values, np.cos(angle), atol=1e-15)


def test_without_a_mesh_there_is_nothing_to_show():
    solution = solve(Equation(None, [lambda t, u: -u]), [1.0], (0.0, 1.0))
    with pytest.raises(ValueError, match="the equation has no mesh"):
        solution.to_xarray()
