"""Every mesh: its volume, closed cells, the order of heat; boundaries by name; refused input."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial import Delaunay
from support import exact
from support.meshes import AXIS, MESHES, VOLUMES, level, smooth, square
from support.needs import need_module

from solvers.mesh.boundaries import Robin, Value
from solvers.mesh.checks import check_mesh
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval, line, polar
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box, product, torus
from solvers.mesh.simplices.files import read_triangles
from solvers.mesh.simplices.triangles import triangles
from solvers.mesh.stack import stack
from solvers.mesh.symmetric import axisymmetric, radial
from solvers.terms.conservation_law import ConservationLaw
from solvers.terms.diffusion import Diffusion
from solvers.terms.laplacian import Laplacian
from solvers.terms.laws.euler import Euler
from solvers.terms.limiters import Reconstruction
from solvers.timestepping.equation import Equation
from solvers.timestepping.solve import solve

EACH = pytest.mark.parametrize("name", MESHES)
FLAT = ("interval", "stretched", "periodic", "box", "box 3", "triangles")


@EACH
def test_a_mesh_is_consistent_and_has_its_volume(name):
    mesh = MESHES[name](32)[0]
    check_mesh(mesh)
    Reconstruction(mesh, "mc")
    assert np.isfinite(mesh.face_conductances()).all()
    if name in VOLUMES:
        assert mesh.volumes.sum() == pytest.approx(VOLUMES[name], rel=1e-12)  # rounding of sums
    else:
        assert mesh.volumes.sum() == pytest.approx(4 * np.pi, rel=6 / mesh.cells)  # triangles lie within the sphere


@pytest.mark.parametrize("name", FLAT)
def test_cells_are_closed(name):
    """Σ A n = 0 outward for each cell: a uniform flow has no divergence."""
    mesh = MESHES[name](32)[0]
    sums = np.zeros(mesh.centers.shape)
    owner = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    outward = np.where(mesh.cell_sides & 1, -1.0, 1.0)[:, None] * mesh.face_normals[mesh.cell_sides >> 1]
    np.add.at(sums, owner, outward * mesh.face_areas[mesh.cell_sides >> 1, None])
    assert np.abs(sums).max() < 1e-13 * mesh.face_areas.max() * 10


@EACH
def test_the_laplacian_has_its_eigenvalue_to_second_order(name):
    """⟨f, Δf⟩/⟨f, f⟩ of a mode approximates −λ; curves of equal cells have fluxes of fourth order."""
    sizes, errors = (16, 32, 64), []
    for size in sizes:
        mesh, mode, eigenvalue = MESHES[name](size)
        rate = np.zeros(mesh.cells)
        Diffusion(mesh, 1.0).laplacian(mode, rate)
        weighted = mode * mesh.volumes
        errors.append(abs(weighted @ rate / (weighted @ mode) / eigenvalue + 1))
    observed = exact.orders(errors, sizes)
    assert observed[-1] > 1.9, f"orders {observed}, errors {errors}"


@EACH
def test_heat_keeps_its_mass_and_what_is_uniform(name):
    mesh = MESHES[name](16)[0]
    term = Diffusion(mesh, 1.0)
    values = np.random.default_rng(1).standard_normal(mesh.cells)
    before, scale = mesh.volumes @ values, mesh.volumes @ np.abs(values)
    term.step(0.1, values)
    assert mesh.volumes @ values == pytest.approx(before, abs=1e-12 * scale)  # rounding in some 100 stages
    rate = np.ones(mesh.cells)
    term.laplacian(np.ones(mesh.cells), rate)
    assert (rate == 0).all()


def test_boundaries_have_names():
    mesh = box((4, 5, 6), (1.0, (2.0, 4.0), 3.0), periodic=(False, False, True))
    assert {tag: len(faces) for tag, faces in mesh.boundary_faces.items()} == {
        "left": 30, "right": 30, "bottom": 24, "top": 24, "back": 0, "front": 0,
    }  # fmt: skip
    assert (mesh.face_centers[mesh.boundary_faces["top"], 1] == 4.0).all()
    assert mesh.shape == (4, 5, 6)
    assert set(product(circle(4), interval(0, 1, 4)).boundary_faces) == {"left", "right"}


def test_sides_of_triangles_turn_counterclockwise_and_edges_keep_their_tags():
    points, corners = square(8)
    left = [[k, k + 1] for k in range(8)]
    mesh = triangles(points, corners[:, ::-1], {"left": left})
    assert (mesh.face_centers[mesh.boundary_faces["left"], 0] == 0.0).all()
    assert len(mesh.boundary_faces["left"]) == 16
    assert len(mesh.boundary_faces["boundary"]) == 48
    for cell in range(mesh.cells):
        sides = mesh.cell_sides[mesh.cell_start[cell] : mesh.cell_start[cell + 1]]
        away = mesh.face_centers[sides >> 1] - mesh.centers[cell]
        angle = np.arctan2(away[:, 1], away[:, 0])
        turns = np.mod(np.diff(angle, append=angle[0]), 2 * np.pi)
        assert turns.sum() == pytest.approx(2 * np.pi)
        assert turns.min() > 1e-3


def test_triangles_are_read_from_a_file(tmp_path):
    meshio = need_module("meshio")
    points, corners = square(6)
    path = tmp_path / "square.vtk"
    meshio.write_points_cells(path, np.column_stack([points, np.zeros(len(points))]), [("triangle", corners)])
    mesh = read_triangles(path)
    assert mesh.centers.shape == (49, 2)
    assert mesh.volume == pytest.approx(np.pi**2, rel=1e-12)


def test_named_lines_of_gmsh_are_tags_of_the_boundary(tmp_path):
    """The groups of version 2.2 are numbers of the cells, with names in a table."""
    meshio = need_module("meshio")
    points, corners = square(6)
    left, inside = np.stack([np.arange(6), np.arange(1, 7)], axis=1), np.array([[8, 9]])
    cells = [("line", np.concatenate([left, inside])), ("triangle", corners)]
    numbers = [np.array([1] * 6 + [3]), np.full(len(corners), 2)]
    names = {"left": np.array([1, 1]), "body": np.array([2, 2]), "cut": np.array([3, 1])}
    data = {"gmsh:physical": numbers, "gmsh:geometrical": numbers}
    file = meshio.Mesh(np.column_stack([points, 0 * points[:, 0]]), cells, cell_data=data, field_data=names)
    meshio.write(tmp_path / "square.msh", file, file_format="gmsh22")
    mesh = read_triangles(tmp_path / "square.msh")
    assert set(mesh.boundary_faces) == {"left", "boundary"}
    assert (mesh.face_centers[mesh.boundary_faces["left"], 0] == 0).all()
    assert mesh.face_areas[mesh.boundary_faces["left"]].sum() == pytest.approx(np.pi, rel=1e-12)


@pytest.mark.parametrize("level", [2, 3, 4])
def test_centers_of_an_icosphere_are_centroids(level):
    """The error is 0.2 % of a width after Lloyd's steps, and 4 % for a halved icosahedron."""
    mesh = icosphere(level)
    starts, ends = mesh.face_ends().swapaxes(0, 1)
    centroids = np.zeros((mesh.cells, 3))
    for side in range(2):  # flat triangles between a center and its faces
        cells = mesh.face_cells[:, side]
        center = mesh.centers[cells]
        areas = np.linalg.norm(np.cross(starts - center, ends - center), axis=1) / 2
        np.add.at(centroids, cells, areas[:, None] * (center + starts + ends) / 3)
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    assert np.linalg.norm(centroids - mesh.centers, axis=1).max() < 2e-3 * mesh.width


def test_no_cell_of_an_icosphere_is_small():
    mesh = icosphere(level(64))
    assert mesh.cells == 2562
    assert mesh.volumes.min() > 0.7 * mesh.volumes.max()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: interval(1.0, 0.0, 8), "a, b = 1.0, 0.0: expected finite numbers a < b"),
        (lambda: interval(0.0, 1.0, 0), "cells = 0: expected a whole number >= 3"),
        (lambda: interval(0.0, 1.0, 8, stretch=lambda s: 2 * s), "stretch: expected a map of"),
        (lambda: box((4, 4), (1.0,)), "cells of 2 axes and extent of 1: expected the same number, 1 to 3"),
        (lambda: box((4,) * 4, (1.0,) * 4), "cells of 4 axes"),
        (lambda: icosphere(0), "level = 0: expected 1 to 9"),
        (lambda: axisymmetric(1, 8), "d = 1: expected 2 to 343"),
        (lambda: radial(1, 0.0, 1.0, 8), "d = 1: expected 2 to 343"),
        (lambda: radial(3, -0.5, 1.0, 8), r"^a = -0\.5: expected a radius >= 0$"),
        (lambda: radial(200, 0.0, 1e-3, 8), "the volumes of shells are too small or too large for a number"),
        (lambda: radial(200, 1.0, 1e3, 8), "the volumes of shells are too small or too large for a number"),
        (lambda: triangles([[0, 0], [1, 0], [2, 0]], [[0, 1, 2]]), "expected corners that are not on a line"),
        (lambda: triangles([[0, 0], [1, 0], [0, 1], [5, 5]], [[0, 1, 2]]), "point 3: expected to be a corner"),
        (lambda: triangles([[0, 0], [1, 0], [0, 1]], [[0, 1, 3]]), "corners 0 to 3: expected 0 to 2"),
        (lambda: triangles([[0], [1], [0]], [[0, 1, 2]]), r"points of shape \(3, 1\)"),
        (lambda: triangles(CORNERS, [[0, 1, 2], [0, 1, 3]]), "triangles 0 and 1 overlap: expected one on each side"),
        (lambda: triangles(CORNERS[:3], [[0, 1, 2], [2, 1, 0]]), "triangles 0 and 1: expected different corners"),
        (lambda: triangles(*pair(CORNERS[:3], scale=0.1, shift=0.2)), "triangles 1 and 0 overlap: expected disjoint"),
        (lambda: triangles(*pair(CORNERS[:3], scale=9.0, shift=-1.0)), "triangles 0 and 1 overlap: expected disjoint"),
        (lambda: triangles(*pair(CORNERS[:3], scale=1.0, shift=0.3)), "triangles 0 and 1 overlap: expected disjoint"),
        (lambda: triangles(*pair(CORNERS[:3], scale=1.0, shift=0.0)), "triangles 0 and 1 overlap: expected disjoint"),
        (lambda: triangles(*pair([[0, 0], [9, 0], [4, 1]], scale=[0.1, 9], shift=[4, -1])), "triangles 0 and 1 over"),
        (lambda: triangles(*star(7, 2)), "triangles around point 0 overlap: their angles add up to 12.5664"),
        (lambda: triangles(TWISTED, [[0, 1, 2], [0, 3, 2]]), "triangles 0 and 1: expected the same orientation"),
        (lambda: tagged([(0, 1), (2, 0)]), r"^tags\['hot'\]\[1\] = \[2, 0\]: expected the points of a boundary edge$"),
        (lambda: tagged([(0, 6)]), r"^tags\['hot'\]\[0\] = \[0, 6\]: expected the points of a boundary edge$"),
        (lambda: tagged([(-1, 0)]), r"^tags\['hot'\]\[0\] = \[-1, 0\]: expected the points of a boundary edge$"),
        (lambda: tagged([0, 1, 2]), r"^tags\['hot'\] of shape \(3,\): expected \(edges, 2\)$"),
        (lambda: tagged([]), r"^tags\['hot'\] of shape \(0,\): expected \(edges, 2\)$"),
    ],
)
def test_what_is_no_mesh_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


CORNERS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.1, 0.5]]


TWISTED = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.5], [0.0, 1.0, 0.0]]  # a square in space, not flat


def tagged(pairs):
    """Return a square of two triangles with the tag "hot"; (0, 2) is the diagonal."""
    return triangles([[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 1, 2], [0, 2, 3]], tags={"hot": pairs})


def star(count, turns):
    """Return a point and ``count`` triangles around it, whose angles add up to 2π turns."""
    angles = 2 * np.pi * turns / count * np.arange(count)
    points = np.append([[0.0, 0.0]], np.stack([np.cos(angles), np.sin(angles)], axis=1), axis=0)
    return points, [[0, 1 + k, 1 + (k + 1) % count] for k in range(count)]


def pair(corners, scale, shift):
    """Return the points and corners of a triangle and of its scaled and shifted copy, which share no point."""
    points = np.asarray(corners, dtype=np.float64)
    return np.append(points, scale * points + shift, axis=0), [[0, 1, 2], [3, 4, 5]]


def test_triangles_once_around_a_point_are_taken():
    assert triangles(*star(7, 1)).cells == 8


@pytest.mark.parametrize("shift", [[1.0, 0.0], [0.5, 0.5], [-1e-9 - 1, 0.0], [2.0, 3.0]])
def test_triangles_that_touch_or_lie_apart_are_taken(shift):
    assert triangles(*pair(CORNERS[:3], scale=1.0, shift=shift)).cells == 6


def test_a_graded_triangulation_with_a_hole_is_taken():
    rng = np.random.default_rng(5)
    radius, angle = np.exp(rng.uniform(-9, 0, 900)), rng.uniform(0, 2 * np.pi, 900)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    corners = Delaunay(points).simplices
    corners = corners[np.linalg.norm(points[corners].mean(axis=1), axis=1) > 1e-3]
    used, renumbered = np.unique(corners, return_inverse=True)
    assert triangles(points[used], renumbered.reshape(-1, 3)).cells == len(used)


@pytest.mark.parametrize(
    "build",
    [
        lambda: circle(10**9),
        lambda: sphere(10**9),
        lambda: sphere(12_300),
        lambda: interval(0.0, 1.0, 10**12),
        lambda: line(10**12, 1.0, 1.0),
        lambda: polar(10**12, 3),
        lambda: axisymmetric(3, 10**12),
        lambda: radial(3, 0.0, 1.0, 10**12),
        lambda: torus((13_000, 13_000)),
        lambda: torus((10**6, 10**7)),
        lambda: box((13_000, 13_000), (1.0, 1.0)),
    ],
)
def test_meshes_of_too_many_faces_are_refused_before_they_are_made(build):
    """The memory stays below that of one array of these meshes."""
    tracemalloc.start()
    with pytest.raises(ValueError, match="expected a mesh of at most 300000000 faces"):
        build()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1e9


def test_poisson_in_a_shell_with_other_conditions_on_either_side():
    """Δu = −2d has the solution c − r², and Δu = 0 the solution r^{2−d}; both converge with order 2."""
    errors = []
    for cells in (32, 64):
        ball, shell = radial(3, 0.0, 1.0, cells), radial(5, 0.5, 2.0, cells)
        held = Laplacian(ball, {"outer": Robin(1.0, 2.0, 0.0)}).solve(-6.0)  # u + 2u' = 0 at r = 1: c = 5
        outside = Laplacian(shell, {"inner": Value(8.0), "outer": Value(0.125)}).solve(0.0)
        at = [mesh.centers[:, 0] for mesh in (ball, shell)]
        errors.append([np.abs(held - 5 + at[0] ** 2).max(), np.abs(outside - at[1] ** -3.0).max()])
    assert np.log2(errors[0] / np.array(errors[1])) == pytest.approx([2, 2], abs=0.25), errors


def test_one_map_and_one_flag_are_those_of_all_axes():
    graded, periodic = box((4, 5), (1.0, 1.0), stretch=np.square), box((4, 5), (1.0, 1.0), periodic=np.True_)
    assert (graded.volumes == box((4, 5), (1.0, 1.0), stretch=(np.square, np.square)).volumes).all()
    assert periodic.periods == (1.0, 1.0)


@pytest.mark.parametrize("d", [3, 8])
def test_the_laplacian_of_zones_is_of_second_order_up_to_the_poles(d):
    """Δ cos θ = −(d − 1) cos θ."""
    errors = []
    for cells in (25, 50):
        mesh = axisymmetric(d, cells)
        z = np.cos(mesh.centers[:, 0])
        errors.append(np.abs(Laplacian(mesh).matrix @ z + (d - 1) * z).max())
    assert errors[0] < 0.01
    assert errors[0] / errors[1] > 3.5, errors


def test_a_gas_of_constant_pressure_rests_in_a_ball():
    mesh, gas = radial(3, 0.0, 1.0, 20), Euler()
    per_volume = np.diff(mesh.face_areas) / mesh.volumes
    rest = gas.conserved(np.ones(20), np.zeros((1, 20)), np.ones(20))
    law = ConservationLaw(mesh, gas.flux, gas.speed, riemann=gas.hllc, mirror=gas.mirror)

    def pressure(t, u):
        return np.stack([0 * u[0], gas.primitive(u)[2] * per_volume, 0 * u[0]])

    found = solve(Equation(mesh, [law, pressure]), rest, (0.0, 1.0)).u[-1]
    assert np.abs(found - rest).max() < 1e-13


def test_a_dimension_whose_sphere_has_no_area_in_64_bits_is_refused():
    with pytest.raises(ValueError, match=r"^d = 1000000000: expected 2 to 343$"):
        axisymmetric(10**9, 16)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: circle(2.5), r"cells = 2\.5: expected a whole number >= 3"),
        (lambda: circle("8"), "cells = '8': expected a whole number >= 3"),
        (lambda: sphere(None), "rings = None: expected a whole number >= 4"),
        (lambda: interval(0.0, "1", 8), "b = '1': expected a number"),
        (lambda: box(8, 1.0), "cells = 8: expected one value for each axis"),
        (lambda: box((8, 8), 1.0), r"extent = 1\.0: expected one value for each axis"),
        (lambda: torus(8), "cells = 8: expected two whole numbers"),
        (lambda: icosphere(2.0), r"level = 2\.0: expected 1 to 9"),
        (lambda: product(circle(4), 4), "second = int: expected a Mesh"),
        (lambda: stack("circle", 4), "^mesh = str: expected a Mesh$"),
        (lambda: triangles(CORNERS[:3], [[0, 1, 2.5]]), "^corners of dtype float64: expected integers$"),
        (lambda: triangles(CORNERS[:3], [["0", "1", "2"]]), "^corners of dtype <U1: expected integers$"),
        (lambda: tagged([(0.5, 1.0)]), r"^tags\['hot'\] of dtype float64: expected integers$"),
    ],
)
def test_arguments_of_other_types_are_refused(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_an_extent_may_be_a_list():
    assert box((4, 4), [[0.0, 1.0], [2.0, 4.0]]).volume == pytest.approx(2.0)


HEAT = {  # as in docs/numerics.md: about the smallest number of cells whose own error is below 1e-4
    "interval": lambda: (interval(0.0, np.pi, 32), lambda x: np.cos(2 * x[:, 0]), 4),
    "stretched": lambda: (interval(0.0, np.pi, 192, stretch=smooth), lambda x: np.cos(2 * x[:, 0]), 4),
    "circle": lambda: (circle(64), lambda x: x[:, 0] * x[:, 1], 4),
    "box": lambda: (box((32, 32), (np.pi, np.pi)), lambda x: np.cos(x[:, 0]) * np.cos(2 * x[:, 1]), 5),
    "box 3": lambda: (box((16,) * 3, (np.pi,) * 3), lambda x: np.cos(x).prod(axis=1), 3),
    "torus": lambda: (torus((32, 32)), lambda x: x[:, 0] * x[:, 3], 2),
    "sphere": lambda: (sphere(64), lambda x: x @ AXIS, 2),
    "icosphere": lambda: (icosphere(5), lambda x: x @ AXIS, 2),
    "axisymmetric": lambda: (axisymmetric(3, 160), lambda x: np.cos(x[:, 0]), 2),
}


@pytest.mark.parametrize("name", HEAT)
def test_heat_to_the_default_tolerance_in_one_call(name):
    """The factor e^{−½} of a mode of any sign is met in each cell by the default ``solve``, within its rtol of 1e-4."""
    mesh, mode, eigenvalue = HEAT[name]()
    u0 = mode(mesh.centers)
    found = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), u0, (0.0, 0.5 / eigenvalue)).u[-1]
    assert np.abs(found - np.exp(-0.5) * u0).max() < 1e-4 * np.abs(u0).max()


def test_a_line_of_a_file_within_the_mesh_is_no_boundary(tmp_path):
    """Points on the boundary come first: the pair (0, 10) of an inner point must not be confused with the edge (1,
    2)."""
    need_module("meshio")
    angles = np.pi / 4 * np.arange(8)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.concatenate([rim, 0.3 * rim, np.zeros((1, 2))])
    blocks = {"CPS3, ELSET=all": Delaunay(points).simplices}
    blocks |= {"T3D2, ELSET=inner": [(0, 10)], "T3D2, ELSET=edge": [(1, 2), (1, 9)]}
    rows = ["*NODE", *(f"{k + 1}, {x!r}, {y!r}, 0" for k, (x, y) in enumerate(points.tolist()))]
    for kind, cells in blocks.items():
        rows += [f"*ELEMENT, TYPE={kind}", *(f"1, {', '.join(str(k + 1) for k in cell)}" for cell in cells)]
    path = tmp_path / "disk.inp"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    mesh = read_triangles(path)
    assert set(mesh.boundary_faces) == {"edge", "boundary"}
    middle = mesh.face_centers[mesh.boundary_faces["edge"]].mean(axis=0)
    np.testing.assert_allclose(middle, points[1:3].mean(axis=0), rtol=1e-14)
