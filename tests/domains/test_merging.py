"""Two point masses merge at the exact time of two tokens, in any direction: the mesh pins no cluster."""

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere.initial import initial_points
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from solvers.mesh.mesh import circle, sphere
from solvers.terms.advection import Advection
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

BETA, ANGLE = 4.0, 2.0
MASSES = [(0.5, 0.5), (2 / 3, 1 / 3), (0.7, 0.3)]


def pair_on_circle(offset):
    return [[np.cos(a), np.sin(a)] for a in (offset, offset + ANGLE)]


def pair_on_sphere(kind):
    """Return two points 2 rad apart: along a meridian, over the north pole, on the equator, or in a random
    direction."""
    if kind == "meridian":
        colatitudes, azimuth = (0.57, 0.57 + ANGLE), (0.0, 0.0)
    elif kind == "pole":
        colatitudes, azimuth = (0.9, ANGLE - 0.9), (np.pi + 0.1, 0.1)
    elif kind == "equator":
        colatitudes, azimuth = (np.pi / 2, np.pi / 2), (0.0, ANGLE)
    else:
        p, q = np.random.default_rng(int(kind)).standard_normal((2, 3))
        p /= np.linalg.norm(p)
        q -= (q @ p) * p
        return [p, np.cos(ANGLE) * p + np.sin(ANGLE) * q / np.linalg.norm(q)]
    return [
        [np.sin(c) * np.cos(a), np.sin(c) * np.sin(a), np.cos(c)] for c, a in zip(colatitudes, azimuth, strict=True)
    ]


def merging_time(mesh, points, masses=(0.5, 0.5), normalization="softmax", **scheme):
    """Return the time until the clusters' centers of mass have the cosine ½, over the exact one; infinite if not by
    1.3."""
    expected = exact.pair_time(BETA, masses, normalization)
    velocity = Velocity(Attention(mesh, BETA, normalization))
    equation = mean_field_equation(mesh, velocity)
    if scheme:
        equation = Equation(None, [Advection(mesh, velocity, nonnegative=True, **scheme)], limit=limit_positivity)
    history, centers = [], np.array(points, dtype=float)

    def sample_of(state):
        held = state.values * mesh.volumes
        first = mesh.centers @ centers[0] > mesh.centers @ centers[1]
        for k, side in enumerate((first, ~first)):
            sums = held[side] @ mesh.centers[side]
            centers[k] = sums / np.linalg.norm(sums)
        history.append((state.time, centers[0] @ centers[1]))

    state = State(0.0, initial_points(mesh, points, masses))
    evolve(
        state,
        equation,
        STEPPERS["ssprk3"],
        1.3 * expected,
        [Observer(sample_of, Every(1.3 * expected, 260))],
        after_step=lambda _: bool(history[-1][1] > 0.5),
        rtol=None,
    )
    times, cosines = np.array(history).T
    assert cosines[0] == pytest.approx(np.cos(ANGLE), abs=1e-3)
    if cosines[-1] <= 0.5:
        return np.inf
    assert state.values.min() >= 0
    assert state.values @ mesh.volumes == pytest.approx(1.0, abs=1e-12)
    return np.interp(0.5, cosines[-2:], times[-2:]) / expected


def test_the_exact_times_agree_with_their_closed_form():
    assert exact.pair_time(BETA) == pytest.approx(exact.pair_time_equal(BETA), rel=1e-10)
    assert exact.pair_time(BETA) == pytest.approx(38.6657808166, rel=1e-10)  # ORACLES
    assert exact.pair_time(BETA, normalization="unnormalized") == pytest.approx(1.3982018204, rel=1e-10)


@pytest.mark.sampled
@pytest.mark.parametrize("masses", MASSES)
@pytest.mark.parametrize("offset", [0.0, 0.3, 1.234])
def test_merging_on_the_circle(offset, masses):
    ratio = merging_time(circle(256), pair_on_circle(offset), masses)
    assert abs(ratio - 1) < 0.01, f"time off by {100 * (ratio - 1):+.2f} %"


def test_merging_on_the_circle_unnormalized():
    ratio = merging_time(circle(256), pair_on_circle(0.3), (0.7, 0.3), "unnormalized")
    assert abs(ratio - 1) < 0.01, f"time off by {100 * (ratio - 1):+.2f} %"


def test_face_velocities_pin_clusters():
    """Velocities at faces all point into a cluster's cell, which never moves.

    Donor cells alone, (0, 0), do not pin.
    """
    points = pair_on_circle(0.3)
    pinned = merging_time(circle(256), points, limiter="none")
    assert abs(pinned - 1) > 0.01, f"time off by {100 * (pinned - 1):+.2f} %"
    donor = merging_time(circle(256), points, resolved=(0.0, 0.0))
    assert abs(donor - 1) < 0.01, f"time off by {100 * (donor - 1):+.2f} %"


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "masses"),
    [
        ("meridian", MASSES[0]),
        ("pole", MASSES[0]),
        ("equator", MASSES[1]),
        ("1", MASSES[0]),
        ("2", MASSES[1]),
        ("3", MASSES[2]),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]:.2f}",
)
def test_merging_on_the_sphere(kind, masses):
    ratio = merging_time(sphere(128), pair_on_sphere(kind), masses)
    assert abs(ratio - 1) < 0.01, f"time off by {100 * (ratio - 1):+.2f} %"


def test_merging_on_the_sphere_unnormalized():
    ratio = merging_time(sphere(128), pair_on_sphere("4"), normalization="unnormalized")
    assert abs(ratio - 1) < 0.01, f"time off by {100 * (ratio - 1):+.2f} %"
