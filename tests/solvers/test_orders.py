"""Orders by manufactured solutions u = 2 + e^{−t} g, every mesh × every term, as docs/numerics.md states them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import exact
from support.meshes import AXIS, RADIUS, smooth, square

from solvers import (
    Advection,
    ConservationLaw,
    Diffusion,
    DriftDiffusion,
    Equation,
    NonlinearDiffusion,
    axisymmetric,
    box,
    circle,
    icosphere,
    interval,
    product,
    radial,
    solve,
    sphere,
    torus,
    triangles,
)


@dataclass
class Case:
    """A mesh of n cells along an axis with a mode g of Δ, −Δg = λ g, ∂ₙg = 0, as functions of centers (cells, d)."""

    mesh: Any
    g: Any
    slope: Any  # ∇g in the coordinates of the ambient space
    eigenvalue: float
    spheres: tuple = ()  # coordinates in which the mesh lies on a unit sphere or circle

    def gradient(self, x):
        found = self.slope(x)
        for part in self.spheres:
            found[:, part] -= (found[:, part] * x[:, part]).sum(axis=1)[:, None] * x[:, part]
        return found


def cosines(*waves):
    """Return Π cos(k_c x_c), and its gradient."""
    k = np.array(waves, dtype=float)

    def slope(x):
        cos, sin = np.cos(k * x), np.sin(k * x)
        others = [np.delete(cos, c, axis=1).prod(axis=1) for c in range(len(k))]
        return -k * sin * np.stack(others, axis=1)

    return lambda x: np.cos(k * x).prod(axis=1), slope, float(k @ k)


def pair(i, j):
    """Return x_i x_j, and its gradient in the ambient space."""

    def slope(x):
        found = np.zeros_like(x)
        found[:, i], found[:, j] = x[:, j], x[:, i]
        return found

    return lambda x: x[:, i] * x[:, j], slope


AROUND, ROUND = slice(0, 2), slice(0, 3)
LINEAR = (lambda x: x @ AXIS, lambda x: np.tile(AXIS, (len(x), 1)))
CASES = {
    "interval": Case(lambda n: interval(0.0, np.pi, n), *cosines(2)),
    "stretched": Case(lambda n: interval(0.0, np.pi, n, stretch=smooth), *cosines(2)),
    "circle": Case(circle, *pair(0, 1), 4.0, (AROUND,)),
    "box": Case(lambda n: box((n, n), (np.pi, np.pi)), *cosines(1, 2)),
    "3-D box": Case(lambda n: box((n // 2, n // 2, 4), (np.pi, np.pi, 1.0)), *cosines(1, 1, 0)),
    "torus": Case(lambda n: torus((n, n)), *pair(0, 3), 2.0, (AROUND, slice(2, 4))),
    "sphere": Case(sphere, *LINEAR, 2.0, (ROUND,)),
    "icosphere": Case(lambda n: icosphere(int(np.log2(n)) - 2), *LINEAR, 2.0, (ROUND,)),
    "axisymmetric": Case(lambda n: axisymmetric(4, n), lambda x: np.cos(x[:, 0]), lambda x: -np.sin(x), 3.0),
    "radial": Case(
        lambda n: radial(3, 0.0, RADIUS, n),
        lambda x: np.sinc(x[:, 0] / np.pi),
        lambda x: (np.cos(x) - np.sinc(x / np.pi)) / np.maximum(x, 1e-9),
        1.0,
    ),
    "product": Case(
        lambda n: product(circle(n), interval(0.0, np.pi, n)),
        lambda x: x[:, 0] * np.cos(x[:, 2]),
        lambda x: np.stack([np.cos(x[:, 2]), 0 * x[:, 0], -x[:, 0] * np.sin(x[:, 2])], axis=1),
        2.0,
        (AROUND,),
    ),
    "triangles": Case(lambda n: triangles(*square(n)), *cosines(1, 1)),
}
D, V, C = 0.5, 0.4, 0.3  # coefficients of diffusion, of a potential V g, of a velocity C ∇g
END = 0.5


def coefficient(mesh, g):
    return D * (1 + 0.5 * g)


def spread(u, e, g, slope, rate):
    """Return div(D(1 + g/2)∇u) of u = 2 + e g, with Δg = rate."""
    return D * ((1 + 0.5 * g) * e * rate + 0.5 * e * slope)


def law(case, mesh, g, slope):
    """Return the conservation law with the flux f = C u²/2 ∇g at any points."""

    def flux(u, x):
        return (C * u**2 / 2)[:, None] * case.gradient(x)

    def speed(u, x):
        return C * np.abs(u) * np.linalg.norm(case.gradient(x), axis=1)

    return ConservationLaw(mesh, flux, speed, "none")


TERMS = {  # name: the term of (case, mesh, g, ∇g), and its rate of (u, e^{−t}, g, |∇g|², Δg)
    "advection": (
        lambda case, mesh, g, slope: Advection(mesh, lambda t, u: C * slope, limiter="none"),
        lambda u, e, g, square, laplacian: -C * (e * square + u * laplacian),
    ),
    "conservation law": (
        law,
        lambda u, e, g, square, laplacian: -C * (u * e * square + u**2 / 2 * laplacian),
    ),
    "diffusion": (
        lambda case, mesh, g, slope: Diffusion(mesh, D),
        lambda u, e, g, square, laplacian: D * e * laplacian,
    ),
    "by cell": (lambda case, mesh, g, slope: Diffusion(mesh, coefficient(mesh, g)), spread),
    "tensor": (
        lambda case, mesh, g, slope: Diffusion(
            mesh, coefficient(mesh, g)[:, None, None] * np.eye(mesh.centers.shape[1])
        ),
        spread,
    ),
    "porous": (
        lambda case, mesh, g, slope: NonlinearDiffusion(mesh, lambda u: D * u**2 / 4),
        lambda u, e, g, square, laplacian: D / 2 * (u * e * laplacian + e**2 * square),
    ),
    "drift": (
        lambda case, mesh, g, slope: DriftDiffusion(mesh, D, V * g),
        lambda u, e, g, square, laplacian: D * e * laplacian + V * (e * square + u * laplacian),
    ),
}


def error(case, name, n):
    """Return the L¹ error at t = END over the volume."""
    build, rate = TERMS[name]
    mesh = case.mesh(n)
    x = mesh.centers
    g, slope = case.g(x), case.gradient(x)
    square, laplacian = (slope**2).sum(axis=1), -case.eigenvalue * g

    def u(t):
        return 2 + np.exp(-t) * g

    def forcing(t, _):
        return -np.exp(-t) * g - rate(u(t), np.exp(-t), g, square, laplacian)

    is_upwind = name in ("advection", "conservation law")  # with larger errors in space
    equation = Equation(mesh, [build(case, mesh, g, slope), forcing])
    found = solve(equation, u(0.0), (0.0, END), rtol=1e-5 if is_upwind else 1e-7).u[-1]
    return np.abs(found - u(END)) @ mesh.volumes / mesh.volume


def stated():
    """Return (term, mesh) → order, from the table in docs/numerics.md."""
    page = (Path(__file__).parents[2] / "docs/numerics.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.split("## Orders")[1].splitlines() if line.startswith("| ")]
    (_, *columns), rows = lines[0], lines[2:]
    return {
        (row[0].strip("`"), mesh): float(order)
        for row in rows
        for column, order in zip(columns, row[1:], strict=True)
        for mesh in column.split(", ")
    }


ORDERS = stated()


def sizes(name, term):
    """Return the cells along an axis; errors of advection by upwind fluxes are of second order from some 64 on."""
    if term == "advection" and name != "triangles":
        return (64, 128)
    return (32, 64) if term == "advection" else (16, 32)


@pytest.mark.sampled
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("name", CASES)
def test_orders_are_those_that_are_stated(name, term):
    """The tolerance is 0.1; preasymptotic orders above the stated one are accepted."""
    each = sizes(name, term)
    errors = [error(CASES[name], term, n) for n in each]
    observed = exact.orders(errors, each)[-1]
    assert observed > ORDERS[term, name] - 0.1, f"order {observed:.2f}, errors {errors}"
