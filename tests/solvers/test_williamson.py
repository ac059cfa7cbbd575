"""Shallow water on the rotating sphere: cases 2 and 5 of Williamson and others (1992), with days and radii as units."""

import numpy as np
import pytest

from solvers import ConservationLaw, Equation, ShallowWater, solve, sphere

RADIUS, DAY = 6371220.0, 86400.0  # meters, seconds
WATER, SPIN = ShallowWater(9.80616 * DAY**2 / RADIUS), 7.292e-5 * DAY


def zonal_flow(x, speed, depth):
    """Return h + b and v of a flow about the axis in geostrophic balance."""
    turn = np.stack([-x[:, 1], x[:, 0], 0 * x[:, 0]])
    return depth - (SPIN * speed + speed**2 / 2) * x[:, 2] ** 2 / WATER.gravity, speed * turn


def flow(mesh, bottom=None):
    """Return the equation with the Coriolis force, over a bottom (cells,)."""
    x, z = mesh.centers, mesh.centers[:, 2]

    def coriolis(t, u):
        rate = np.zeros_like(u)
        rate[1:] = -2 * SPIN * z * np.cross(x, u[1:].T).T
        return rate

    source = None if bottom is None else WATER.over(mesh, bottom)
    law = ConservationLaw(mesh, WATER.flux, WATER.speed, riemann=WATER.hllc, source=source, tangent=(1, 4))
    return Equation(mesh, [law, coriolis])


def test_a_zonal_flow_stays_at_second_order():
    """Case 2, two days: the l2 error of h is of second order between 16 and 32 rings."""
    errors = []
    for rings in (16, 32):
        mesh = sphere(rings)
        h, v = zonal_flow(mesh.centers, 2 * np.pi / 12, 2.94e4 / 9.80616 / RADIUS)
        found = solve(flow(mesh), np.vstack([h, h * v]), (0.0, 2.0), times=[2.0]).u[-1, 0]
        errors.append(np.sqrt((found - h) ** 2 @ mesh.volumes / (h**2 @ mesh.volumes)))
    order = np.log2(errors[0] / errors[1])
    assert order > 1.8, f"errors {errors}, order {order:.2f}"
    assert errors[1] < 3e-3  # 1.8e-3; after five days 4.1e-3


def mountain(x):
    """Return the height (cells,) of a cone of 2000 m, at 90° west and 30° north, π/9 wide."""
    longitude, latitude = np.arctan2(x[:, 1], x[:, 0]), np.arcsin(x[:, 2])
    far, wide = np.hypot(longitude + np.pi / 2, latitude - np.pi / 6), np.pi / 9
    return 2000 / RADIUS * (1 - np.minimum(far, wide) / wide)


@pytest.mark.parametrize("level", [5960, 1000])
def test_water_at_rest_around_a_mountain_stays_at_rest(level):
    """Case 5 without wind: within an hour nothing moves, also where the mountain of 2000 m is an island."""
    mesh = sphere(16)
    b = mountain(mesh.centers)
    u = np.zeros((4, mesh.cells))
    u[0] = np.maximum(level / RADIUS - b, 0)
    found = solve(flow(mesh, b), u, (0.0, 1 / 24)).u[-1]
    speed = np.linalg.norm(WATER.primitive(found)[1], axis=0) * RADIUS / DAY
    assert speed.max() < 1e-9  # m/s, from rounding; 12 to 20 m/s by the force −gh∇b at the cell centers


def test_a_flow_over_a_mountain_keeps_its_mass_and_loses_little_energy():
    """Case 5, five days on 16 rings: the upwind fluxes lose 2.3e-3 of the energy; the surface stays in its range."""
    mesh = sphere(16)
    b = mountain(mesh.centers)
    surface, v = zonal_flow(mesh.centers, 20 * DAY / RADIUS, 5960 / RADIUS)
    u = np.vstack([surface - b, (surface - b) * v])
    found = solve(flow(mesh, b), u, (0.0, 5.0), times=[5.0]).u[-1]

    def energy(u):
        motion = (u[1:] ** 2).sum(axis=0) / (2 * u[0])
        return (motion + WATER.gravity * ((u[0] + b) ** 2 - b**2) / 2) @ mesh.volumes

    assert found[0] @ mesh.volumes == pytest.approx(u[0] @ mesh.volumes, rel=1e-13)
    assert -5e-3 < energy(found) / energy(u) - 1 < 0
    height = (found[0] + b) * RADIUS
    assert 4900 < height.min() < height.max() < 6100  # meters; 4992 and 5960 at the start
    assert np.abs((found[1:] * mesh.centers.T).sum(axis=0)).max() < 1e-3 * np.abs(found[1:]).max()  # tangent
