"""Many densities on a circle at once: exact solutions, and independence of each other."""

import numpy as np

from solvers.mesh.mesh import circle
from solvers.timestepping.density.rows import DensityRows
from solvers.timestepping.density.stacked import StackedDensities
from solvers.timestepping.schedules import Listed
from solvers.timestepping.systems import Systems

CELLS = 128


def systems(mesh, speeds, until=1.0, broken=(), dues=(0.0, 0.37, 1.0)):
    """Return densities that rotate at their own speeds; systems in ``broken`` have a velocity of NaN from t = 0.5
    on."""
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    tangent = np.stack([-mesh.centers[:, 1], mesh.centers[:, 0]], axis=1)
    values = np.tile((1 + 0.5 * np.cos(angle)) / (2 * np.pi), (len(speeds), 1))

    def densities(which):
        lost = np.isin(which, broken)

        def velocity(times, densities):
            factors = np.where(lost & (times > 0.5), np.nan, speeds[which])
            return factors[:, None, None] * np.broadcast_to(tangent, (len(which), *tangent.shape))

        return StackedDensities(mesh, len(which), velocity, lambda densities: np.full(len(which), np.inf))

    count, rows = len(speeds), DensityRows(values, densities)
    return Systems(rows, [until] * count, [Listed(dues)] * count)


def looks_of(made):
    found = {number: [(time, values)] for number, time, values in made.start()}
    while len(made.running):
        for number, time, values in made.step():
            found[number].append((time, values))
    return found


def test_each_turns_by_its_own_speed():
    """The phase of the first mode is speed·t, also at observations within steps, to second order in the cell."""
    mesh, speeds = circle(CELLS), np.array([0.0, 0.3, 1.0, 2.5])
    found = looks_of(systems(mesh, speeds))
    first = (mesh.centers[:, 0] + 1j * mesh.centers[:, 1]) * mesh.volumes
    for number, speed in enumerate(speeds):
        assert [time for time, _ in found[number]] == [0.0, 0.37, 1.0]
        for time, values in found[number]:
            assert abs(np.angle(first @ values) - speed * time) < 1e-3  # (2π/128)² / 2 = 1.2e-3
            assert abs(values @ mesh.volumes - 1) < 1e-13
            assert values.min() >= 0


def test_one_that_is_lost_leaves_the_others():
    mesh, speeds = circle(CELLS), np.array([1.0, 2.0, 0.5])
    made, alone = systems(mesh, speeds, broken=(1,)), systems(mesh, speeds[[0, 2]])
    found, expected = looks_of(made), looks_of(alone)
    assert made.lost == {1}
    assert [time for time, _ in found[1]] == [0.0, 0.37]
    for number, other in ((0, 0), (2, 1)):
        for (time, values), (when, exact) in zip(found[number], expected[other], strict=True):
            assert time == when
            np.testing.assert_allclose(values, exact, atol=1e-14)
