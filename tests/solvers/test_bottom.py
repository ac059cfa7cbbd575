"""Shallow water over a bottom: lakes at rest with dry ground, flow over a bump, water in a parabolic bowl."""

import numpy as np
import pytest

from solvers import ConservationLaw, ShallowWater, Value, box, icosphere, interval, sphere

WATER = ShallowWater(9.81)
MESHES = {
    "interval": lambda: interval(-1.0, 1.0, 40, stretch=lambda s: s**2),
    "box": lambda: box((12, 9), (1.0, 1.0)),
    "sphere": lambda: sphere(12),
    "icosphere": lambda: icosphere(2),
}


def law_over(mesh, bottom, riemann="hllc", **options):
    solver = getattr(WATER, riemann, riemann)
    tangent = (1, 4) if mesh.manifold in ("sphere", "icosphere") else None
    return ConservationLaw(
        mesh, WATER.flux, WATER.speed, riemann=solver, mirror=WATER.mirror, source=WATER.over(mesh, bottom),
        tangent=tangent, **options,
    )  # fmt: skip


def rate_of(law, u):
    rate = np.zeros_like(u)
    law.prepare(0.0, u)
    law.rate(0.0, rate)
    return rate


def advanced(law, u, end, cfl=0.4):
    """Advance by Heun's method, which is strongly stable."""
    time = 0.0
    while time < end:
        dt = min(cfl * float(law.prepare(time, u)), end - time)
        one = u + dt * rate_of(law, u)
        u, time = 0.5 * (u + one + dt * rate_of(law, one)), time + dt
    return u


@pytest.mark.parametrize("riemann", ["rusanov", "hll", "hllc", "roe"])
@pytest.mark.parametrize("name", MESHES)
def test_a_lake_with_dry_shores_stays_at_rest(name, riemann):
    """Heights of the bottom are random up to 1.5, the level of the water is 1: a third of the ground is dry."""
    mesh = MESHES[name]()
    bottom = 1.5 * np.random.default_rng(0).random(mesh.cells)
    u = np.zeros((1 + mesh.ambient_dimension, mesh.cells))
    u[0] = np.maximum(1.0 - bottom, 0.0)
    width = (mesh.volumes ** (1 / mesh.dimension)).min()
    assert np.abs(rate_of(law_over(mesh, bottom, riemann), u)).max() < 1e-14 * 9.81 / width  # rounding of gh²


def test_a_bottom_of_another_mesh_is_refused():
    mesh = interval(0.0, 1.0, 8)
    with pytest.raises(ValueError, match=r"bottom of shape \(7,\): expected \(8,\), as the mesh has 8 cells"):
        WATER.over(mesh, np.zeros(7))
    with pytest.raises(ValueError, match=r"bottom\[2\] = nan: expected finite numbers"):
        WATER.over(mesh, np.where(np.arange(8) == 2, np.nan, 0.0))


def test_a_flow_over_a_bump_is_of_second_order():
    """Steady subcritical flow on a line: the discharge q and q²/(2h²) + g(h + b) are constant."""
    q, sizes, errors = 4.42, (50, 100), []
    for cells in sizes:
        mesh = interval(0.0, 20.0, cells)
        x = mesh.centers[:, 0]
        bottom = 0.2 * np.exp(-((x - 10.0) ** 2) / 4)
        head = q**2 / (2 * 2.0**2) + 9.81 * 2.0
        h = np.array([np.roots([9.81, 9.81 * b - head, 0.0, q**2 / 2]).real.max() for b in bottom])
        ends = {"left": Value([2.0, q]), "right": Value([2.0, q])}
        law = law_over(mesh, bottom, boundaries=ends)
        errors.append(np.abs(rate_of(law, np.stack([h, q + 0 * h]))) @ mesh.volumes)
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert (orders > 1.8).all(), (errors, orders)


def bowl(x, time):
    """Return depth, velocity and bottom of Thacker's (1981) planar water in a parabolic canal, and the period.

    The bottom is x² − 1 in units where the water at rest has the depth 1 and the half width 1. The surface is a plane
    that swings: h = 1 − (x − A sin ωt)², v = Aω cos ωt, with ω² = 2g.
    """
    omega, swing = np.sqrt(2 * 9.81), 0.5
    depth = np.maximum(1 - (x - swing * np.sin(omega * time)) ** 2, 0.0)
    return depth, swing * omega * np.cos(omega * time), x**2 - 1, 2 * np.pi / omega


def test_water_in_a_parabolic_canal_swings():
    """The error after a period, with shores that get wet and dry, is of first order."""
    errors = []
    for cells in (50, 100):
        mesh = interval(-2.0, 2.0, cells)
        x = mesh.centers[:, 0]
        depth, speed, bottom, period = bowl(x, 0.0)
        law = law_over(mesh, bottom)
        u = advanced(law, np.stack([depth, depth * speed]), period)
        assert u[0].min() >= 0
        assert u[0].sum() == pytest.approx(depth.sum(), rel=1e-13)
        errors.append(np.abs(u[0] - depth).sum() / depth.sum())
    assert errors[1] < 0.01, errors
    assert np.log2(errors[0] / errors[1]) > 0.7, errors  # 1 by the shores; observed 0.83
