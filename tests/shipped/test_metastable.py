"""Promises of the shipped cases with particles and atoms: metastable states and their mergers, early and late."""

import numpy as np
import pytest
from scipy import optimize
from support import exact
from support.exact_flow import flow
from support.exact_particles import equiangular_gap
from support.shipped_runs import assert_stated, finished

from meanfield.analysis.mergers import report
from meanfield.clusters.near import merging_angle
from meanfield.domains.atoms.flow import MERGE_ANGLE
from meanfield.domains.particles.velocity import ParticleVelocity


@pytest.mark.parametrize("name", [
    "ladder_circle", "merging_far_circle", "three_clusters_sphere", "tokens_causal", "tokens_drift",
    "tokens_equiangular", "tokens_high_dimension", "tokens_ladder", "tokens_pair",
])  # fmt: skip
def test_promise(name, tmp_path):
    PROMISES[name](*finished(name, tmp_path))


def cosine_of_pair(file):
    """Return the cosine between two equal atoms from the length of their mean."""
    return 2 * (file.diagnostics["centroid"] ** 2).sum(axis=1) - 1


def time_of(times, values, level):
    """Return the time at which increasing values pass a level, by the quintic through the six nearest samples."""
    k = int(np.flatnonzero(values >= level)[0])
    around = slice(max(k - 3, 0), k + 3)
    return float(np.polynomial.Polynomial.fit(values[around] - level, times[around], 5)(0))


def merging_far(case, file):
    expected = exact.pair_time_equal(case.attention.beta)
    assert_stated("merging_far_circle", f"merge at t = {expected:.1e}".replace("e+", "e"))
    cosine = cosine_of_pair(file)
    # The closed form starts at the last sample before cosine 1/2.
    before = int(np.flatnonzero(cosine >= 0.5)[0]) - 1
    left = exact.pair_time_equal(case.attention.beta, angle=np.arccos(cosine[before]))
    assert file.sample_times[before] + left == pytest.approx(expected, rel=0.01)
    # The time from cosine 1/2 to the merger is about e^{β/2}, which is negligible beside e^{β(1 − cos 2)}.
    (merger,) = report(file)["mergers"]
    assert merger["time"] == pytest.approx(expected, rel=0.01)
    assert merger["time"] in file.sample_times
    assert file.diagnostics["clusters"][-1] == 1


def ladder(case, file):
    assert 0 < file.attributes["hand_over_time"] < 20
    facts = report(file)
    late = [merger for merger in facts["mergers"] if merger["time"] > 100]
    assert [merger["after"] for merger in late] == [6, 5, 4, 3]
    assert all(one["before"] - one["after"] == 1 for one in facts["mergers"])
    for merger in late:
        assert merger["energy_step_measured"] == pytest.approx(merger["energy_step"], rel=1e-3)
    [first] = [one for one in facts["mergers"] if file.attributes["hand_over_time"] < one["since"] <= 100]
    assert first["time"] == pytest.approx(18.0, abs=0.1)
    assert first["after"] == 7
    assert first["energy_step_measured"] == pytest.approx(first["energy_step"], rel=0.03)
    assert facts["clusters"] == 3
    times = np.array([first["time"], *(merger["time"] for merger in late)])
    factors = times[1:] / times[:-1]
    assert_stated("ladder_circle", f"each comes {factors.min():.0f} to 2000 times later")
    assert 1500 < factors.max() < 2000
    rates = [exact.growth_rate(2, case.attention.beta, degree) for degree in range(1, case.initial.degrees)]
    fast = np.argsort(rates)[::-1] + 1
    assert_stated("ladder_circle", f"modes of degree {fast[0]} and {fast[1]} grow fastest")


def three_clusters(case, file):
    points = np.array(case.initial.points)
    points /= np.linalg.norm(points, axis=1)[:, None]
    masses = np.array(case.initial.masses)
    law = ParticleVelocity(case.attention.beta, masses=masses)
    times = np.geomspace(1, 2e3, 1500)  # half a percent apart
    directions, _ = flow(law, points, np.ones(3), np.append(0.0, times), tolerance=1e-12)
    cosines = np.stack([(directions[1:, i] * directions[1:, j]).sum(axis=1) for i, j in ((0, 1), (0, 2), (1, 2))])
    # Clusters merge at the merging angle, their atoms touch later, at 1e-4 rad.
    met = np.sort(times[(cosines > np.cos(merging_angle(case.attention.beta))).argmax(axis=1)])[:2]
    touched = np.sort(times[(cosines > 1 - MERGE_ANGLE**2 / 2).argmax(axis=1)])[:2]
    counts = file.diagnostics["clusters"]
    found = [file.sample_times[np.flatnonzero(counts <= k)[0]] for k in (2, 1)]
    assert found == pytest.approx(met, rel=0.02)
    beta, energy = case.attention.beta, file.diagnostics["energy"]
    climbed = 2 * beta * np.exp(-beta) * energy
    handed = file.sample_times > file.attributes["hand_over_time"]
    for first, last in zip(0.99 * met, 1.01 * touched, strict=True):  # a cluster is two atoms
        handed &= (file.sample_times < first) | (file.sample_times > last)
    assert handed.sum() > 100
    for sample in np.flatnonzero(handed):
        there = file.diagnostics["cluster_mass"][sample]
        held = np.isfinite(there)
        x, m = file.diagnostics["cluster_center"][sample][held], there[held]
        pairs = m @ np.exp(beta * (x @ x.T - 1)) @ m
        assert climbed[sample] == pytest.approx(pairs, abs=1e-6)
    plateau = handed & (counts == 1)
    assert climbed[plateau] == pytest.approx(1.0, abs=1e-6)


def tokens_pair(case, file):
    expected = exact.pair_time_equal(case.attention.beta)
    cosine = cosine_of_pair(file)
    # The closed form starts at the last sample before cosine 1/2.
    before = int(np.flatnonzero(cosine >= 0.5)[0]) - 1
    left = exact.pair_time_equal(case.attention.beta, angle=np.arccos(cosine[before]))
    assert file.sample_times[before] + left == pytest.approx(expected, rel=1e-6)
    assert_stated("tokens_pair", f"after t = {expected:.7f}")
    assert file.diagnostics["clusters"][-1] == 1


def tokens_equiangular(case, file):
    n, beta = case.domain.count, case.attention.beta
    square = (file.diagnostics["centroid"] ** 2).sum(axis=1)
    cosine = (n * square - 1) / (n - 1)
    gaps = equiangular_gap("post", n, beta, file.sample_times)
    np.testing.assert_allclose(1 - cosine, gaps, atol=1e-7)

    def gap_at(time):
        return equiangular_gap("post", n, beta, [0.0, time])[-1] - 0.1

    expected = optimize.brentq(gap_at, 0.1, case.time.end, xtol=1e-12)
    assert time_of(file.sample_times, cosine, 0.9) == pytest.approx(expected, rel=1e-6)


def tokens_drift(case, file):
    axis = np.array(case.initial.axis) / np.linalg.norm(case.initial.axis)
    found = file.diagnostics["centroid"] @ axis
    parameters = [exact.moebius_parameter(3, case.initial.parameter, time) for time in file.sample_times]
    expected = [exact.mean_cosine(parameter) for parameter in parameters]
    # The tolerance is four standard errors of a uniform token's cosine, which has the largest variance.
    error = 4 / np.sqrt(3 * case.domain.count)
    np.testing.assert_allclose(found, expected, atol=error)


def tokens_high_dimension(case, file):
    least = []
    for k in range(file.snapshots):
        x = file.positions(k)
        mean = x.mean(axis=0)
        assert k == 0 or np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-12
        least.append((x @ x.T).min() if (x @ mean).min() > 0 else np.nan)
    inside = [value for value in least if np.isfinite(value)]
    assert len(inside) > 40
    assert np.diff(inside).min() > -1e-12
    assert file.diagnostics["pairs_close"][-1] == 1
    late = np.array([1 - least[-21], 1 - least[-1]])  # 20 snapshots of 0.2
    assert np.log(late[0] / late[1]) == pytest.approx(2 * 4.0, rel=0.01)


def tokens_causal(case, file):
    first, last = file.positions(0), file.positions(-1)
    assert np.abs(last[0] - first[0]).max() < 1e-12
    assert np.linalg.norm(last - last[0], axis=1).max() < 1e-3
    away = [np.linalg.norm(file.positions(k)[1] - first[0]) for k in (-41, -1)]  # 40 snapshots of 0.25
    assert np.log(away[0] / away[1]) == pytest.approx(10 / 2, rel=0.01)


def tokens_ladder(case, file):
    handed = file.attributes["hand_over_time"]
    k = int(np.searchsorted(file.times, 150.0)) - 1
    assert 20 < handed < file.times[k]
    law, ones = ParticleVelocity(case.attention.beta), np.ones(case.domain.count)
    directions, _ = flow(law, file.positions(0), ones, np.array([0.0, file.times[k]]), tolerance=1e-12)
    assert np.abs(file.positions(k) - directions[-1]).max() < 1e-6
    climbed = 2 * case.attention.beta * np.exp(-case.attention.beta) * file.diagnostics["energy"]
    squares = np.nansum(file.diagnostics["cluster_mass"] ** 2, axis=1)
    # Samples near the last merger are excluded.
    late = (file.sample_times > 1e4) & (np.abs(file.sample_times / 2.56e8 - 1) > 0.1)
    assert climbed[late] == pytest.approx(squares[late], abs=1e-6)
    assert file.diagnostics["clusters"][-1] == 1


PROMISES = {
    "ladder_circle": ladder,
    "merging_far_circle": merging_far,
    "three_clusters_sphere": three_clusters,
    "tokens_causal": tokens_causal,
    "tokens_drift": tokens_drift,
    "tokens_equiangular": tokens_equiangular,
    "tokens_high_dimension": tokens_high_dimension,
    "tokens_ladder": tokens_ladder,
    "tokens_pair": tokens_pair,
}
