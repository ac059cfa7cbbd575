"""Shallow water on the rotating sphere: test cases 2, 5 and 6 of Williamson and others, and Galewsky's jet.

Units are days and radii of the Earth. Speeds are in m/s. All runs have the HLLC solver and default options.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline

from benchmarks.measure import CORES, Figure
from benchmarks.spectral import SpectralModel
from solvers import ConservationLaw, Equation, Mesh, ShallowWater, solve, sphere
from solvers.mesh.mesh import Floats

RADIUS, DAY = 6371220.0, 86400.0  # meters, seconds
WATER, SPIN = ShallowWater(9.80616 * DAY**2 / RADIUS), 7.292e-5 * DAY
SPEED = DAY / RADIUS  # 1 m/s
Start = Callable[[Floats], tuple[Floats, Floats, Floats]]  # depth, velocity and bottom at points (..., 3)


def shallow_water(
    jet: int = 128, steady: int = 64, waves: int = 64, degree: int = 63, days: float = 1.0
) -> list[Figure]:
    """Measure the decay of a balanced jet, and the errors of a steady flow, a flow over a mountain and a wave.

    jet      rings for the jet of Galewsky, Scott and Polvani (2004) without a perturbation
    steady   rings for case 2
    waves    rings for cases 5 and 6
    degree   degree of the spectral model that is the reference of cases 5 and 6
    days     factor of all times
    """
    return [
        *_jet(jet, 2 * days),
        *_steady(steady, 5 * days),
        *_wave("case 5", _over_mountain, waves, degree, 15 * days),
        *_wave("case 6", _rossby_wave, waves, degree, 10 * days),
    ]


def _east(x: Floats) -> Floats:
    east = np.cross([0.0, 0.0, 1.0], x)
    return np.asarray(east / np.linalg.norm(east, axis=-1)[..., None])


def _advanced(mesh: Mesh, depth: Floats, velocity: Floats, days: float, bottom: Floats | None = None) -> Floats:
    """Return the state (4, cells) after ``days``, from a depth (cells,) and a velocity (cells, 3)."""

    def coriolis(time: float, u: Floats) -> Floats:
        rate = np.zeros_like(u)
        rate[1:] = -2 * SPIN * mesh.centers[:, 2] * np.cross(mesh.centers, u[1:].T).T
        return rate

    source = None if bottom is None or not bottom.any() else WATER.over(mesh, bottom)
    law = ConservationLaw(mesh, WATER.flux, WATER.speed, riemann=WATER.hllc, source=source, tangent=(1, 4))
    start = np.vstack([depth, depth * velocity.T])
    return np.asarray(solve(Equation(mesh, [law, coriolis]), start, (0.0, days), times=[days]).u[-1])


def _error(mesh: Mesh, found: Floats, expected: Floats) -> float:
    """Return the l2 norm of the error over that of the expected field, as in Williamson and others."""
    return float(np.sqrt((found - expected) ** 2 @ mesh.volumes / (expected**2 @ mesh.volumes)))


def _zonal(x: Floats, speed: float, depth: float) -> tuple[Floats, Floats]:
    """Return the level and the velocity of a rigid rotation in geostrophic balance, at points x (..., 3)."""
    level = depth - (SPIN * speed + speed**2 / 2) * x[..., 2] ** 2 / WATER.gravity
    return level, speed * np.cross([0.0, 0.0, 1.0], x)


def _jet(rings: int, days: float) -> list[Figure]:
    mesh = sphere(rings)
    south, north = np.pi / 7, np.pi / 2 - np.pi / 7

    def wind(latitude: Floats) -> Floats:
        inside = (latitude > south) & (latitude < north)
        square = np.where(inside, (latitude - south) * (latitude - north), -1.0)
        return np.where(inside, 80 * SPEED * np.exp(1 / square + 4 / (north - south) ** 2), 0.0)

    grid = np.linspace(-np.pi / 2, np.pi / 2, 20001)[1:-1]
    slope = wind(grid) * (2 * SPIN * np.sin(grid) + np.tan(grid) * wind(grid)) / WATER.gravity
    fall = CubicSpline(grid, slope).antiderivative()
    mean = np.sum(fall(grid) * np.cos(grid)) / np.sum(np.cos(grid))
    latitude, east = np.arcsin(mesh.centers[:, 2]), _east(mesh.centers)
    depth = 1e4 / RADIUS + mean - fall(latitude)
    found = _advanced(mesh, depth, wind(latitude)[:, None] * east, days)
    velocity = WATER.primitive(found)[1].T / SPEED
    name = f"balanced jet on {rings} rings after {days:g} days"
    zonal, meridional = (velocity * east).sum(axis=1), (velocity * np.cross(mesh.centers, east)).sum(axis=1)
    start = float(wind(latitude).max() / SPEED)
    return [
        Figure(f"{name}: largest zonal speed, {start:.2f} at the start", float(zonal.max()), "m/s", least=79.0),
        Figure(f"{name}: largest meridional speed", float(np.abs(meridional).max()), "m/s", most=0.5),
    ]


def _steady(rings: int, days: float) -> list[Figure]:
    mesh = sphere(rings)
    depth, velocity = _zonal(mesh.centers, 2 * np.pi / 12, 2.94e4 / 9.80616 / RADIUS)
    error = _error(mesh, _advanced(mesh, depth, velocity, days)[0], depth)
    return [Figure(f"case 2 on {rings} rings after {days:g} days: error of the depth", error, "1", most=1e-3)]


def _wave(name: str, start: Start, rings: int, degree: int, days: float) -> list[Figure]:
    mesh = sphere(rings)
    depth, velocity, bottom = start(mesh.centers)
    begin = CORES()
    found = _advanced(mesh, depth, velocity, days, bottom)
    seconds = CORES() - begin
    expected = _spectral(start, degree, days, mesh.centers)
    error = found[0] + bottom - expected
    name = f"{name} on {rings} rings after {days:g} days"
    l1 = float(np.abs(error) @ mesh.volumes / (expected @ mesh.volumes))
    loss = _energy(mesh, found, bottom) / _energy(mesh, np.vstack([depth, depth * velocity.T]), bottom) - 1
    return [
        Figure(f"{name}: l1 error of the level, against a spectral model of degree {degree}", l1, "1"),
        Figure(f"{name}: l2 error", _error(mesh, found[0] + bottom, expected), "1"),
        Figure(f"{name}: largest error", float(np.abs(error).max() / expected.max()), "1"),
        Figure(f"{name}: change of the energy", loss, "1"),
        Figure(f"{name}: time", seconds, "s"),
    ]


def _spectral(start: Start, degree: int, days: float, x: Floats) -> Floats:
    """Return the level (points,) of the spectral model at points x (points, 3)."""
    model = SpectralModel(degree, WATER.gravity, SPIN, 1 / 24)
    depth, velocity, bottom = start(model.points)
    floor = model.analysis(bottom)
    return model.interpolate(model.advance(model.state(depth, velocity), floor, days)[2] + floor, x)


def _energy(mesh: Mesh, u: Floats, bottom: Floats) -> float:
    motion = (u[1:] ** 2).sum(axis=0) / (2 * u[0])
    return float((motion + WATER.gravity * ((u[0] + bottom) ** 2 - bottom**2) / 2) @ mesh.volumes)


def _over_mountain(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return case 5, a zonal flow over a cone of 2000 m: the depth, the velocity and the bottom."""
    far = np.hypot(np.arctan2(x[..., 1], x[..., 0]) + np.pi / 2, np.arcsin(x[..., 2]) - np.pi / 6)
    bottom = 2000 / RADIUS * (1 - np.minimum(far * 9 / np.pi, 1))
    level, velocity = _zonal(x, 20 * SPEED, 5960 / RADIUS)
    return level - bottom, velocity, bottom


def _rossby_wave(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return case 6, a wave of Rossby and Haurwitz with wave number 4: the depth, the velocity and a flat bottom."""
    z, speed, number = x[..., 2], 7.848e-6 * DAY, 4
    angle, c = number * np.arctan2(x[..., 1], x[..., 0]), np.sqrt(1 - z**2)
    east = _east(x)
    u = speed * (c + c ** (number - 1) * (number * z**2 - c**2) * np.cos(angle))
    v = -speed * number * c ** (number - 1) * z * np.sin(angle)
    a = speed * (SPIN + speed / 2) * c**2 + speed**2 / 4 * c ** (2 * number) * (
        (number + 1) * c**2 + (2 * number**2 - number - 2) - 2 * number**2 / c**2
    )
    b = (
        2 * (SPIN + speed) * speed / ((number + 1) * (number + 2)) * c**number
        * ((number**2 + 2 * number + 2) - (number + 1) ** 2 * c**2)
    )  # fmt: skip
    d = speed**2 / 4 * c ** (2 * number) * ((number + 1) * c**2 - (number + 2))
    depth = 8000 / RADIUS + (a + b * np.cos(angle) + d * np.cos(2 * angle)) / WATER.gravity
    return depth, u[..., None] * east + v[..., None] * np.cross(x, east), np.zeros_like(depth)
