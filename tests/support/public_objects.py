"""Small meshes and equations of every kind, made from functions of this module, so that all can be pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import solvers as s
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention, axisymmetric_equation
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.reactions import reaction_logistic
from solvers.mesh.interval import line, polar
from solvers.terms.product import ProductAdvection
from solvers.timestepping.equation import limit_positivity

Array = np.ndarray
Problem = tuple[s.Equation, Array, str]  # equation, state, method
POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.4, 0.6]])
CORNERS = np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])


def squared(x: Array) -> Array:
    return x**2


MESHES: dict[str, Callable[[], s.Mesh]] = {
    "circle": lambda: s.circle(48),
    "sphere": lambda: s.sphere(12),
    "icosphere": lambda: s.icosphere(2),
    "interval": lambda: s.interval(0.0, 1.0, 48),
    "interval, stretched": lambda: s.interval(0.0, 1.0, 16, stretch=squared),
    "interval, periodic": lambda: s.interval(0.0, 1.0, 16, periodic=True),
    "box": lambda: s.box((10, 12), (1.0, 2.0)),
    "torus": lambda: s.torus((12, 10)),
    "product": lambda: s.product(s.circle(8), s.interval(0.0, 1.0, 6)),
    "stack": lambda: s.stack(s.circle(8), 3),
    "axisymmetric": lambda: s.axisymmetric(8, 12),
    "radial": lambda: s.radial(3, 0.5, 2.0, 12),
    "triangles": lambda: s.triangles(POINTS, CORNERS),
    "tetrahedra": lambda: s.tetrahedra(np.eye(4)[:, :3], [[0, 1, 2, 3]]),
    "ball": lambda: s.ball(1.0, 2),
    "disk": lambda: s.disk(1.0, 3),
    "line": lambda: line(16, 5.0, 1.0),
    "polar": lambda: polar(48, 5),
}


def bump(mesh: s.Mesh) -> Array:
    """Return a positive density that is smooth and has no symmetry."""
    x = mesh.centers
    return np.exp(np.sin(2.0 * x[:, 0] + 0.3)) * (1.2 + np.cos(x[:, -1] - 0.4)) / 4.0


class Wind:
    """A velocity that depends on time and on the first three cell values, tangent to a curve or a surface."""

    def __init__(self, mesh: s.Mesh, strength: float = 1.0) -> None:
        x, d = mesh.centers, mesh.ambient_dimension
        turned = np.roll(x, 1, axis=1) * np.where(np.arange(d) % 2, 1.0, -1.0)
        self.direction = strength * (turned - (turned * x).sum(axis=1)[:, None] * x if d > 1 else np.ones_like(x))

    def __call__(self, time: float, values: Array) -> Array:
        return self.direction * (1.0 + 0.3 * np.sin(5.0 * time) + 0.1 * np.tanh(values[..., :3].mean()))


def stream(time: float, points: Array) -> Array:
    return np.sin(points[:, 0] + time) * np.cos(points[:, -1])


def face_flux(time: float, values: Array) -> Array:
    return np.full(49, 0.5 + 0.1 * np.cos(time))


def half_square(u: Array) -> Array:
    return u**2 / 2


def itself(u: Array) -> Array:
    return u


def data(time: float, points: Array) -> Array:
    return 1.0 + 0.3 * np.sin(3.0 * time) + 0.0 * points[:, 0]


def decay(time: float, u: Array) -> Array:
    return u * (1.0 + np.cos(time) - u)


def well(points: Array) -> Array:
    return np.cos(2 * np.pi * points[:, 0]) / 2


def moving_well(time: float, u: Array) -> Array:
    return np.cos(np.linspace(0.0, 6.0, u.shape[-1]) - time) / (1.0 + u.mean())


class OwnTerm:
    """A user's term, with the two required methods."""

    def prepare(self, time: float, values: Array) -> float:
        self.found = np.sin(time) * (np.roll(values, 1) - values)
        return 0.05

    def rate(self, dt: float, rate: Array) -> None:
        rate += self.found


class OwnStiffTerm:
    """A user's stiff term, with the arguments of earlier versions."""

    def longest_step(self, values: Array) -> float:
        return np.inf

    def step(self, dt: float, values: Array, limited: bool = True) -> float:
        self.before = values.copy()
        values[...] = self.before * np.exp(-dt)
        return 0.0


def product_velocities(time: float, density: Array) -> tuple[Array, Array]:
    angle = np.linspace(0.0, 2 * np.pi, density.shape[1], endpoint=False) + np.pi / density.shape[1]
    turn = np.stack([-np.sin(angle), np.cos(angle)], axis=1) * (1.0 + 0.2 * np.tanh(density.max()))
    outward = np.full((*density.shape, 1), 0.3 * np.cos(time))
    outward[[0, -1]] = 0.0
    return np.broadcast_to(turn, (*density.shape, 2)), outward


def _of(mesh: s.Mesh, *terms: Any, method: str = "auto", fields: int = 0) -> Problem:
    start = bump(mesh)
    state = np.stack([start * (1.0 + 0.1 * k) for k in range(fields)]) if fields else start
    return s.Equation(mesh, list(terms)), state, method


def _advection(name: str, **options: Any) -> Problem:
    mesh = MESHES[name]()
    fields = options.pop("fields", 0)
    return _of(mesh, s.Advection(mesh, options.pop("velocity", None) or Wind(mesh), **options), fields=fields)


def _diffusion(name: str, D: Any = 0.05, method: str = "auto", explicit: bool = True, **options: Any) -> Problem:
    mesh = MESHES[name]()
    return _of(mesh, s.Diffusion(mesh, D, **options), *([decay] if explicit else []), method=method)


def _law(**options: Any) -> Problem:
    mesh = MESHES["interval"]()
    return _of(mesh, s.ConservationLaw(mesh, half_square, itself, boundaries={"left": s.Value(data)}, **options))


def _euler() -> Problem:
    mesh, gas = MESHES["interval"](), s.Euler()
    start = gas.conserved(bump(mesh), 0.1 * np.sin(mesh.centers.T), bump(mesh))
    return (
        s.Equation(mesh, [s.ConservationLaw(mesh, gas.flux, gas.speed, riemann=gas.hllc, mirror=gas.mirror)]),
        start,
        "auto",
    )


def _drift(potential: Any, **options: Any) -> Problem:
    mesh = MESHES["interval"]()
    return _of(mesh, s.DriftDiffusion(mesh, 0.5, potential, **options))


def _nonlinear() -> Problem:
    mesh = MESHES["interval"]()
    return _of(mesh, s.NonlinearDiffusion(mesh, squared, boundaries={"left": s.Value(data)}))


def _two_stiff() -> Problem:
    mesh = MESHES["interval"]()
    ends = {"left": s.Value(data), "right": s.Robin(1.0, 0.5, data)}
    terms = (
        s.Diffusion(mesh, 0.05, boundaries=ends, nonnegative=True),
        s.DriftDiffusion(mesh, 0.5, well, nonnegative=True),
    )
    return _of(mesh, *terms, s.Source(decay))


def _own_stiff() -> Problem:
    mesh = MESHES["interval"]()
    return _of(mesh, OwnTerm(), OwnStiffTerm(), method="ssprk3")


def _product() -> Problem:
    circle, radial = s.circle(12), s.interval(0.0, 1.0, 8)
    term = ProductAdvection(s.stack(circle, 8), s.stack(radial, 12), (8, 12), product_velocities)
    start = np.outer(bump(radial), bump(circle)).reshape(-1)
    return s.Equation(None, [term], limit=limit_positivity), start, "ssprk3"


def _attention(name: str, normalization: str, query: float | Array = 1.0) -> Problem:
    from meanfield.model.heads import Head

    mesh = MESHES[name]()
    attention = Attention(mesh, 3.0, normalization, heads=[Head(query=query)])
    equation = mean_field_equation(mesh, Velocity(attention), 0.05, reaction_logistic(mesh, 0.5, 2.0))
    start = bump(mesh)
    return equation, start / (start @ mesh.volumes), "ssprk3"


def _axisymmetric() -> Problem:
    mesh = MESHES["polar"]()
    start = bump(mesh) * np.sin(mesh.centers[:, 0]) ** 3
    equation = axisymmetric_equation(AxisymmetricAttention(mesh, 5, 2.0), 0.05)
    return equation, start / (start @ mesh.volumes), "ssprk3"


EQUATIONS: dict[str, Callable[[], Problem]] = {
    "advection on a circle, donor cells": lambda: _advection("circle", nonnegative=True),
    "advection on a sphere, donor cells": lambda: _advection("sphere", nonnegative=True),
    "advection on an icosphere, donor cells": lambda: _advection("icosphere", nonnegative=True),
    "advection, limiter": lambda: _advection("interval", boundaries={"left": s.Value(data), "right": s.Outflow()}),
    "advection of two fields": lambda: _advection("box", fields=2),
    "advection by a stream function": lambda: _advection("torus", velocity=s.StreamFunction(stream)),
    "advection by fluxes through faces": lambda: _advection(
        "interval", velocity=s.FaceFluxes(face_flux), boundaries={"left": s.Value(data), "right": s.Outflow()}
    ),
    "advection on a product": _product,
    "conservation law": _law,
    "conservation law, WENO": lambda: _law(reconstruction="weno5"),
    "gas dynamics": _euler,
    "diffusion with conditions of time": lambda: _diffusion(
        "interval", boundaries={"left": s.Value(data), "right": s.Flux(data)}
    ),
    "diffusion with conditions of time, split": lambda: _diffusion(
        "interval", boundaries={"left": s.Value(data), "right": s.Flux(data)}, method="ssprk3"
    ),
    "diffusion of a density on a sphere": lambda: _diffusion("sphere", nonnegative=True),
    "diffusion on a sphere": lambda: _diffusion("sphere", method="ark4"),
    "diffusion by a tensor": lambda: _diffusion("box", np.array([[0.05, 0.01], [0.01, 0.02]]), method="implicit"),
    "diffusion, exponential": lambda: _diffusion("torus", method="exponential"),
    "nonlinear diffusion": _nonlinear,
    "drift and diffusion": lambda: _drift(well),
    "drift and diffusion of a density": lambda: _drift(well, nonnegative=True),
    "drift and diffusion, potential of time": lambda: _drift(moving_well),
    "two stiff terms and a source": _two_stiff,
    "terms of a user": _own_stiff,
    "attention on a circle": lambda: _attention("circle", "softmax"),
    "attention on a sphere": lambda: _attention("sphere", "unnormalized"),
    "doubly stochastic attention": lambda: _attention("circle", "sinkhorn"),
    "attention with a matrix": lambda: _attention("sphere", "softmax", np.diag([1.0, 1.5, 0.5])),
    "axisymmetric attention": _axisymmetric,
}
