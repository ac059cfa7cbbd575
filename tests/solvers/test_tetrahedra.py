"""Tetrahedra: conductances against linear finite elements, orders of errors in a ball, tags, files, refused input."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial import Delaunay
from scipy.special import spherical_jn
from support import exact
from support.needs import need_module

from solvers import Advection, Diffusion, Equation, Laplacian, Value, ball, read_tetrahedra, solve, tetrahedra

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
PAIR = [[0, 1, 2, 3], [1, 2, 3, 4]]


def scattered(n=60):
    """Return random points of the unit cube with its corners, and Delaunay's tetrahedra, without flat ones."""
    inside = np.random.default_rng(3).uniform(0.05, 0.95, (n, 3))
    points = np.concatenate([np.stack(np.meshgrid(*3 * [[0.0, 1.0]]), axis=-1).reshape(-1, 3), inside])
    corners = Delaunay(points).simplices
    volumes = np.abs(np.linalg.det(points[corners[:, 1:]] - points[corners[:, :1]]))
    return points, corners[volumes > 1e-12]


def cotangent_sums(points, corners):
    """Return Σ (l/6) cot θ for each pair of points, with the angle θ at the opposite edge of length l."""
    found = {}
    for cell in corners:
        for i in range(4):
            for j in range(i):
                k, l = (points[cell[m]] for m in range(4) if m not in (i, j))
                along = (l - k) / np.linalg.norm(l - k)
                to = [points[cell[m]] - k for m in (i, j)]
                a, b = (x - (x @ along) * along for x in to)
                cotangent = a @ b / np.linalg.norm(np.cross(a, b))
                pair = tuple(sorted((cell[i], cell[j])))
                found[pair] = found.get(pair, 0.0) + np.linalg.norm(l - k) * cotangent / 6
    return found


def test_conductances_are_those_of_linear_finite_elements():
    points, corners = scattered()
    mesh = tetrahedra(points, corners)
    expected = cotangent_sums(points, corners)
    inner = mesh.face_cells[:, 0] != mesh.face_cells[:, 1]
    found = dict(zip(map(tuple, mesh.face_cells[inner].tolist()), mesh.face_conductances()[inner], strict=True))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[pair] for pair in expected], list(expected.values()), rtol=1e-9, atol=1e-12)


def test_cells_are_closed_and_fill_the_body():
    mesh = tetrahedra(*scattered())
    assert mesh.volume == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(mesh.divergence(np.tile([1.0, -2.0, 3.0], (mesh.cells, 1))), 0.0, atol=1e-9)
    for axis in range(3):  # of the boundary: each side of the cube has area 1
        faces = np.flatnonzero(np.isin(mesh.face_centers[:, axis], [0.0, 1.0]))
        np.testing.assert_allclose(np.abs(mesh.face_normals[faces, axis]), 1.0, rtol=1e-12)
        assert mesh.face_areas[faces].sum() == pytest.approx(2.0, rel=1e-12)


def test_a_face_is_where_two_barycentric_coordinates_are_equal():
    """The parts of the face between corners 1 and 2 lie in the plane x = y of the only tetrahedron."""
    mesh = tetrahedra(CORNERS[:4], PAIR[:1])
    face = mesh.face_cells.tolist().index([1, 2])
    np.testing.assert_allclose(mesh.face_normals[face], [-np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-15)
    corners = np.array([[1, 1, 0], [2 / 3, 2 / 3, 0], [0.5, 0.5, 0.5], [2 / 3, 2 / 3, 2 / 3]]) * [0.5, 0.5, 0.5]
    middle, one, center, other = corners
    halves = [(middle, one, center), (middle, center, other)]
    areas = [np.linalg.norm(np.cross(b - a, c - a)) / 2 for a, b, c in halves]
    assert mesh.face_areas[face] == pytest.approx(sum(areas), rel=1e-14)
    expected = sum(area * np.mean(half, axis=0) for area, half in zip(areas, halves, strict=True)) / sum(areas)
    np.testing.assert_allclose(mesh.face_centers[face], expected, rtol=1e-14)


def test_the_gradient_of_a_parabola_is_exact_at_the_boundary_too():
    mesh = ball(1.0, 3)
    x, y, z = mesh.centers.T
    found = mesh.gradient(x**2 - 3 * x * y + 2 * z**2 - y)
    np.testing.assert_allclose(found, np.stack([2 * x - 3 * y, -3 * x - 1, 4 * z], axis=1), atol=1e-11)


def test_poisson_in_a_ball_is_of_second_order():
    """Δu = −π² sin(πr)/(πr) has the solution u = sin(πr)/(πr), which is 0 for r = 1 and also an eigenfunction."""
    sizes, errors, values = (6, 12), [], []
    for n in sizes:
        mesh = ball(1.0, n)
        laplacian = Laplacian(mesh, {"boundary": Value(0.0)})
        expected = np.sinc(np.linalg.norm(mesh.centers, axis=1))
        error = laplacian.solve(-(np.pi**2) * expected) - expected
        errors.append(np.sqrt(mesh.integrate(error**2)))
        values.append(abs(laplacian.eigs(1)[0][0] + np.pi**2))
    assert exact.orders(errors, sizes)[-1] > 1.8, errors
    assert exact.orders(values, sizes)[-1] > 1.8, values


def test_heat_between_walls_of_a_ball_is_of_second_order():
    """The mode j₁(kr) z/r, where j₁'(k) = 0, decays to e^(−1/2)."""
    k = brentq(lambda x: spherical_jn(1, x, derivative=True), 1.5, 2.5)
    sizes, errors = (6, 12), []
    for n in sizes:
        mesh = ball(1.0, n)
        r = np.maximum(np.linalg.norm(mesh.centers, axis=1), 1e-9)
        mode = spherical_jn(1, k * r) * mesh.centers[:, 2] / r
        found = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), 2 + mode, (0.0, 0.5 / k**2), rtol=1e-6).u[-1]
        errors.append(np.sqrt(mesh.integrate((found - 2 - np.exp(-0.5) * mode) ** 2)))
        assert mesh.integrate(found) == pytest.approx(mesh.integrate(2 + mode), rel=1e-12)
    assert exact.orders(errors, sizes)[-1] > 1.8, errors


def test_advection_of_a_turned_ball_converges_with_order_above_one():
    """A Gaussian beside the axis turns by one radian with the ball."""
    sizes, errors = (4, 8), []
    for n in sizes:
        mesh = ball(1.0, n)
        velocity = np.cross([0.0, 0.0, 1.0], mesh.centers)

        def at(angle, centers=mesh.centers):
            return np.exp(-8 * ((centers - 0.4 * np.array([np.cos(angle), np.sin(angle), 0])) ** 2).sum(axis=1))

        turn = Advection(mesh, lambda t, u, velocity=velocity: velocity)
        found = solve(Equation(mesh, [turn]), at(0.0), (0.0, 1.0)).u[-1]
        errors.append(mesh.integrate(np.abs(found - at(1.0))))
        assert mesh.integrate(found) == pytest.approx(mesh.integrate(at(0.0)), rel=1e-12)
    assert exact.orders(errors, sizes)[-1] > 1.2, errors


def test_named_surfaces_of_gmsh_are_tags_of_the_boundary(tmp_path):
    meshio = need_module("meshio")
    cells = [("triangle", np.array([[1, 0, 2], [1, 2, 3]])), ("tetra", np.array(PAIR))]
    numbers = [np.array([1, 3]), np.full(2, 2)]
    names = {"floor": np.array([1, 2]), "body": np.array([2, 3]), "cut": np.array([3, 2])}  # cut: inside the mesh
    data = {"gmsh:physical": numbers, "gmsh:geometrical": numbers}
    unused = np.concatenate([CORNERS, [[9.0, 9.0, 9.0]]])
    meshio.write(
        tmp_path / "body.msh", meshio.Mesh(unused, cells, cell_data=data, field_data=names), file_format="gmsh22"
    )
    mesh = read_tetrahedra(tmp_path / "body.msh")
    assert mesh.cells == 5
    assert set(mesh.boundary_faces) == {"floor", "boundary"}
    assert (mesh.face_centers[mesh.boundary_faces["floor"], 2] == 0).all()
    assert mesh.face_areas[mesh.boundary_faces["floor"]].sum() == pytest.approx(0.5, rel=1e-12)
    flux = solve(Equation(mesh, [Diffusion(mesh, 1.0, boundaries={"floor": Value(1.0)})]), np.ones(5), (0.0, 1.0))
    np.testing.assert_allclose(flux.u[-1], 1.0, rtol=1e-12)


def test_a_file_without_tetrahedra_is_refused(tmp_path):
    meshio = need_module("meshio")
    meshio.write_points_cells(tmp_path / "flat.vtk", CORNERS[:3], [("triangle", np.array([[0, 1, 2]]))])
    with pytest.raises(ValueError, match=r"flat\.vtk: expected tetrahedra, it has triangle$"):
        read_tetrahedra(tmp_path / "flat.vtk")


def test_a_picture_shows_the_middle_of_a_body():
    mesh = ball(2.0, 4)
    solution = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), mesh.centers[:, 0], (0.0, 0.1))
    shown = solution.plot().collections[0].get_offsets()
    assert 10 < len(shown) < mesh.cells / 3
    np.testing.assert_allclose(np.ptp(shown, axis=0), 4.0, rtol=0.1)
    assert set(solution.to_xarray().coords) == {"time", "x", "y", "z"}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tetrahedra(CORNERS[:, :2], PAIR), r"points of shape \(5, 2\): expected \(n, 3\)$"),
        (lambda: tetrahedra(CORNERS, [[0, 1, 2]]), r"corners of shape \(1, 3\): expected \(tetrahedra, 4\)$"),
        (lambda: tetrahedra(CORNERS, PAIR[:1]), "^point 4: expected to be a corner of a tetrahedron$"),
        (lambda: tetrahedra(CORNERS * [1, 1, 0], PAIR), "^tetrahedron 0: expected corners that are not in a plane$"),
        (
            lambda: tetrahedra(CORNERS, [*PAIR, [1, 2, 3, 0]]),
            r"^tetrahedra: 3 share the triangle \[1 2 3\]",
        ),
        (
            lambda: tetrahedra([*CORNERS[:4], [0.1, 0.1, 0.1]], PAIR),
            "^tetrahedra 0 and 1 overlap: expected one on each side of the triangle they share$",
        ),
        (
            lambda: tetrahedra(CORNERS, PAIR, {"cut": [[1, 2, 3]]}),
            r"^tags\['cut'\]\[0\] = \[1, 2, 3\]: expected the points of a boundary triangle$",
        ),
        (lambda: ball(1.0, 0), "^shells = 0: expected a whole number >= 1$"),
        (lambda: ball(-1.0, 3), "^radius = -1.0: expected"),
    ],
)
def test_invalid_bodies_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
