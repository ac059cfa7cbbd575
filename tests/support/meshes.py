"""Meshes of every kind, with a mode of Δ whose normal derivative vanishes on the boundary: (mesh, mode,
−eigenvalue)."""

import numpy as np

from solvers.mesh.icosphere import icosphere, subdivided_icosahedron
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box, product, torus
from solvers.mesh.simplices.triangles import triangles
from solvers.mesh.symmetric import axisymmetric, radial

AXIS = np.array([0.36, 0.48, 0.8])
RADIUS = 4.493409457909064  # the first r > 0 with tan r = r, at which sin r / r has the slope 0


def smooth(s):
    """Map [0, 1] onto itself, increasing."""
    return s + 0.1 * np.sin(2 * np.pi * s)


def square(n, seed=0):
    """Return the square [0, π]² in 2n² triangles, with inner points displaced at random."""
    line = np.linspace(0.0, np.pi, n + 1)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    inside = ((points > 0) & (points < np.pi)).all(axis=1)
    points[inside] += 0.2 * np.pi / n * np.random.default_rng(seed).uniform(-1, 1, (inside.sum(), 2))
    i, j = np.divmod(np.arange(n * n), n)
    a = i * (n + 1) + j
    return points, np.concatenate([np.stack([a, a + n + 1, a + 1], 1), np.stack([a + n + 1, a + n + 2, a + 1], 1)])


def level(n):
    return int(np.log2(n)) - 2


def cos(mesh, *modes):
    return np.prod([np.cos(k * mesh.centers[:, c]) for c, k in enumerate(modes)], axis=0)


def quartic(mesh):
    """Return P₄ of the angle from AXIS."""
    z = mesh.centers @ AXIS
    return (35 * z**4 - 30 * z**2 + 3) / 8


def with_mode(mesh, mode, eigenvalue):
    return mesh, mode(mesh), eigenvalue


def closed_surface(n):
    return triangles(*subdivided_icosahedron(level(n)))


MESHES = {
    "interval": lambda n: with_mode(interval(0.0, np.pi, n), lambda m: cos(m, 2), 4.0),
    "stretched": lambda n: with_mode(interval(0.0, np.pi, n, stretch=smooth), lambda m: cos(m, 2), 4.0),
    "periodic": lambda n: with_mode(interval(0.0, 2 * np.pi, n, periodic=True), lambda m: cos(m, 2), 4.0),
    "circle": lambda n: with_mode(circle(n), lambda m: m.centers[:, 0] * m.centers[:, 1], 4.0),
    "box": lambda n: with_mode(box((n, n), (np.pi, np.pi), stretch=(None, smooth)), lambda m: cos(m, 1, 2), 5.0),
    "box 3": lambda n: with_mode(
        box((n // 2,) * 3, (np.pi, np.pi, 2 * np.pi), periodic=(False, False, True)), lambda m: cos(m, 1, 1, 1), 3.0
    ),
    "torus": lambda n: with_mode(torus((n, n)), lambda m: m.centers[:, 0] * m.centers[:, 3], 2.0),
    "cylinder": lambda n: with_mode(
        product(circle(n), interval(0.0, np.pi, n)), lambda m: m.centers[:, 0] * np.cos(m.centers[:, 2]), 2.0
    ),
    "shell": lambda n: with_mode(
        product(sphere(n // 2), interval(0.0, np.pi, n // 2)), lambda m: m.centers[:, 2] * np.cos(m.centers[:, 3]), 3.0
    ),
    "sphere": lambda n: with_mode(sphere(n), quartic, 20.0),
    "icosphere": lambda n: with_mode(icosphere(level(n)), quartic, 20.0),
    "axisymmetric": lambda n: with_mode(axisymmetric(5, n), lambda m: np.cos(m.centers[:, 0]) ** 2 - 0.2, 10.0),
    "radial": lambda n: with_mode(radial(3, 0.0, RADIUS, n), lambda m: np.sinc(m.centers[:, 0] / np.pi), 1.0),
    "triangles": lambda n: with_mode(triangles(*square(n)), lambda m: cos(m, 1, 2), 5.0),
    "surface": lambda n: with_mode(closed_surface(n), quartic, 20.0),
}
VOLUMES = {
    "interval": np.pi, "stretched": np.pi, "periodic": 2 * np.pi, "circle": 2 * np.pi, "box": np.pi**2,
    "box 3": 2 * np.pi**3, "torus": 4 * np.pi**2, "cylinder": 2 * np.pi**2, "shell": 4 * np.pi**2,
    "sphere": 4 * np.pi, "icosphere": 4 * np.pi, "axisymmetric": 8 * np.pi**2 / 3,
    "radial": 4 * np.pi / 3 * RADIUS**3, "triangles": np.pi**2,
}  # fmt: skip
