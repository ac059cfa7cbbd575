"""Every shipped case runs, and satisfies the promise of the comment at its top."""

import numpy as np
import pytest
from scipy import optimize, special
from scipy.integrate import solve_ivp
from shipped import test_layer, test_layer_norms, test_metastable, test_sequences, test_unbounded
from support import exact
from support.shipped_runs import assert_stated, crossing, finished

import meanfield as mf
from meanfield.case.load import shipped
from meanfield.clusters.on_cells import find_clusters
from meanfield.shipped import shipped_texts
from meanfield.simulation import set_up
from solvers.io.run_file import Run

SLOW = ["merging_pair_sphere", "metastable_circle", "metastable_sphere"]


@pytest.mark.parametrize("name", [
    "flow_beta0_circle", "flow_beta0_sphere", "growth_circle", "growth_sphere", "merging_pair_circle", "noise_above",
    "noise_below", "uniform", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
])  # fmt: skip
def test_promise(name, tmp_path):
    PROMISES[name](*finished(name, tmp_path))


def test_every_case_says_what_it_promises():
    others = (
        test_layer,
        test_layer_norms,
        test_metastable,
        test_sequences,
        test_unbounded,
    )
    promised = [*PROMISES, *(name for theme in others for name in theme.PROMISES)]
    assert sorted(promised) == list(shipped())
    texts = shipped_texts("cases")
    for name, title in shipped().items():
        comment = texts[name].split("title =")[0]
        assert all(line.startswith("#") for line in comment.splitlines())
        assert "# Verified: " in comment
        assert title


def test_uniform_stays_on_the_circle_too(tmp_path):
    uniform(*finished("uniform", tmp_path, "domain.manifold=circle", "domain.resolution=256"))


def merging_pair(case, file):
    times, centroid, clusters = file.sample_times, file.diagnostics["centroid"], file.diagnostics["clusters"]
    cosine = 2 * (centroid**2).sum(axis=1) - 1
    expected = exact.pair_time_equal(case.attention.beta)
    for name in ("merging_pair_circle", "merging_pair_sphere"):
        assert_stated(name, f"1/2 after t = {expected:.10f} at beta = {case.attention.beta:g}")
    assert crossing(times, cosine, 0.5) == pytest.approx(expected, rel=0.01)
    assert (clusters[0], clusters[-1]) == (2, 1)
    middle = np.sum(case.initial.points, axis=0)
    middle /= np.linalg.norm(middle)
    # The great circle through the two atoms crosses cells that are not symmetric about it.
    np.testing.assert_allclose(centroid[-1], middle, atol=2e-3)


def growth(case, file, tolerance):
    power, degree = file.diagnostics["power"], case.initial.degree
    amplitude = np.sqrt(power[:, degree])
    rate = np.log(amplitude[-1] / amplitude[0]) / file.sample_times[-1]
    expected = exact.growth_rate(case.domain.d, case.attention.beta, degree)
    assert rate == pytest.approx(expected, rel=tolerance)
    name = {2: "growth_circle", 3: "growth_sphere"}[case.domain.d]
    assert_stated(name, f"{expected:.10f} for l = {degree} at beta = {case.attention.beta:g}")
    return np.sqrt(power[-1]), amplitude[-1]


def growth_circle(case, file):
    amplitudes, _ = growth(case, file, 1e-3)
    others = [l for l in range(1, len(amplitudes)) if l % 3]
    assert amplitudes[others].max() < 1e-12


def growth_sphere(case, file):
    amplitudes, largest = growth(case, file, 5e-3)
    assert amplitudes[[1, 2, 4, 5, 6, 7, 8]].max() < 0.01 * largest


def critical_noise(beta):
    return special.iv(1, beta) / (beta * special.iv(0, beta))


def stationary_moment(beta, noise, guess, cells=256):
    """Return the first moment of the density that solves ρ ~ Z[ρ]^{1/(βκ)} on the circle, by Newton's method on
    moments."""
    degrees = np.arange(1, 25)
    waves = np.cos(np.outer(degrees, 2 * np.pi * np.arange(cells) / cells))
    coefficients = 2 * special.iv(degrees, beta)

    def residual(moments):
        density = (special.iv(0, beta) + coefficients * moments @ waves) ** (1 / (beta * noise))
        return waves @ density / density.sum() - moments

    found = optimize.root(residual, guess**degrees, tol=1e-13)
    assert np.abs(found.fun).max() < 1e-12
    return float(found.x[0])


def noise_below(case, file):
    beta, noise = case.attention.beta, case.stabilizers.noise
    assert noise == pytest.approx(0.95 * critical_noise(beta), rel=1e-3)
    p, r1 = special.iv(0, beta) / special.iv(1, beta), special.iv(1, beta) / special.iv(0, beta)
    r = special.iv(2, beta) / special.iv(1, beta)
    third = p * (p - 1) / 16 * (r * (p - 1) / (1 - r) - (p + 2))

    def leading(ratio):
        return np.sqrt((1 / ratio - 1) / (8 * abs(third) * r1**3))

    first_order = leading(noise / critical_noise(beta))
    expected = stationary_moment(beta, noise, first_order)
    near = leading(0.999) / stationary_moment(beta, 0.999 * critical_noise(beta), leading(0.999)) - 1
    assert_stated(
        "noise_below",
        f"{critical_noise(beta):.10f}",
        f"{expected:.5f}. The leading order",
        f"gives {first_order:.5f}: {first_order / expected - 1:.0%}".replace("%", " % too large"),
        f"{100 * near:.1f} % at 0.999",
    )
    moment = file.diagnostics["centroid"][:, 0]
    assert moment[-1] == pytest.approx(expected, rel=3e-3)
    assert abs(moment[-1] - moment[-10]) < 1e-4  # the moment is stationary


def noise_above(case, file):
    beta, noise = case.attention.beta, case.stabilizers.noise
    assert noise == pytest.approx(1.05 * critical_noise(beta), rel=1e-3)
    amplitude = np.sqrt(file.diagnostics["power"][:, 1])
    rate = np.log(amplitude[-1] / amplitude[0]) / file.sample_times[-1]
    assert rate == pytest.approx(critical_noise(beta) - noise, rel=5e-3)
    assert not file.diagnostics["clusters"].any()
    critical = critical_noise(beta)
    assert_stated("noise_above", f"{critical:.10f}", f"rate kappa - kappa# = {noise - critical:.10f}")


def flow_beta0(case, file, tolerance):
    dimension, axis = case.domain.d, np.array(case.initial.axis)
    s = [exact.moebius_parameter(dimension, case.initial.parameter, time) for time in file.sample_times[1:]]
    lengths = np.tanh(np.array(s) / 2) if dimension == 2 else exact.mean_cosine(np.array(s))
    np.testing.assert_allclose(file.diagnostics["centroid"][1:], lengths[:, None] * axis, atol=tolerance)
    name, times = {2: ("flow_beta0_circle", (1, 2, 5)), 3: ("flow_beta0_sphere", (1, 2, 3, 5))}[dimension]
    for time in times:
        k = int(np.abs(file.sample_times - time).argmin())
        assert file.sample_times[k] == pytest.approx(time, abs=1e-12)
        assert_stated(name, f"{lengths[k - 1]:.10f} (t = {time})")


def fastest(case):
    """Return the (degrees, rates) of the modes of the uniform density, the fastest first."""
    rates = [exact.growth_rate(case.domain.d, case.attention.beta, degree) for degree in range(1, 9)]
    order = np.argsort(rates)[::-1]
    return order + 1, np.array(rates)[order]


def uniform(case, file):
    _, rates = fastest(case)
    assert_stated("uniform", f"e^{rates[0] * case.time.end:.0f} until t = {case.time.end:g}")
    mean = 1 / file.cell_areas.sum()
    for k in range(file.snapshots):
        assert np.abs(file.density(k) / mean - 1).max() < 1e-12


def atoms(points, masses, beta, start, until):
    """Return a function from time to unit vectors (k, d): weighted atoms with softmax attention, the limit of clusters.

    The equation is that of arXiv 2312.10794.
    """

    def velocity(_, flat):
        x = flat.reshape(points.shape)
        weights = np.exp(beta * (x @ x.T - 1)) * masses
        pull = weights @ x / weights.sum(axis=1, keepdims=True)
        return (pull - (pull * x).sum(axis=1, keepdims=True) * x).ravel()

    path = solve_ivp(velocity, (start, until), points.ravel(), "LSODA", rtol=1e-9, atol=1e-11, dense_output=True)
    return lambda time: path.sol(time).reshape(points.shape)


def groups(x, angle=0.1):
    """Return the number of groups of atoms within an angle of each other; atoms at 0.1 rad are about to merge."""
    together = np.linalg.matrix_power((x @ x.T > np.cos(angle)).astype(int), len(x)) > 0
    return len(np.unique(together, axis=0))


def metastable(case, file: Run, counts, counts_until, last_times, held, merger_tolerance, stair_tolerance):
    """Assert that clusters form and merge like weighted atoms.

    The number of clusters is ``counts[0]`` until ``counts_until``; ``last_times`` are upper bounds of the times at
    which
    each count ends.
    """
    times, number, energy = file.sample_times, file.diagnostics["clusters"], file.diagnostics["energy"]
    beta, mesh = case.attention.beta, set_up(case).space
    assert number[0] == 0
    assert list(dict.fromkeys(number[times > 10])) == counts  # one after the other
    assert (number[(times > 10) & (times < counts_until)] == counts[0]).all()
    for count, time in zip(counts[1:], last_times, strict=True):
        assert (number[times > time] <= count).all()
    start = int(np.searchsorted(file.times, 25.0)) - 1
    density = file.density(start)
    found = find_clusters(mesh, density)
    assert found.count == counts[0]
    near = (mesh.centers @ found.centers.T).max(axis=1) > np.cos(0.3)
    assert (density * mesh.volumes)[near].sum() > held
    path = atoms(found.centers, found.masses, beta, file.times[start], case.time.end)
    expected = np.array([groups(path(time)) for time in times[times > file.times[start]]])
    measured = number[times > file.times[start]]
    for count in counts[1:]:
        merger, law = (times[times > file.times[start]][np.argmax(n == count)] for n in (measured, expected))
        # Samples are 1 to 3 % of the time apart.
        assert merger == pytest.approx(law, rel=merger_tolerance), f"merger to {count}"
    final = find_clusters(mesh, file.density(-1))
    stair = 2 * beta * np.exp(-beta) * energy[-1]
    assert stair == pytest.approx((final.masses**2).sum(), rel=stair_tolerance)
    # A cluster that moves from cell to cell is one or two cells wide in turn, and its energy changes by as much.
    assert (np.diff(energy) / energy[1:]).min() > -1e-3


def metastable_circle(case, file):
    metastable(case, file, [4, 3, 2], 200, [360, 1500], 0.999, 0.03, 0.01)
    degrees, _ = fastest(case)
    assert_stated("metastable_circle", "the modes of degree {}, {} and {} grow fastest".format(*degrees[:3]))


def metastable_sphere(case, file):
    metastable(case, file, [7, 6, 5, 4, 3], 25, [30, 60, 90, 115], 0.99, 0.05, 0.02)
    degrees, rates = fastest(case)
    phrase = "the modes of degree {} and {} grow fastest, by {:.2f} and {:.2f} per unit of time"
    assert_stated("metastable_sphere", phrase.format(*degrees[:2], *rates[:2]))


PROMISES = {
    "flow_beta0_circle": lambda case, file: flow_beta0(case, file, 2e-4),
    "flow_beta0_sphere": lambda case, file: flow_beta0(case, file, 1.5e-3),
    "growth_circle": growth_circle,
    "growth_sphere": growth_sphere,
    "merging_pair_circle": merging_pair,
    "merging_pair_sphere": merging_pair,
    "metastable_circle": metastable_circle,
    "metastable_sphere": metastable_sphere,
    "noise_above": noise_above,
    "noise_below": noise_below,
    "uniform": uniform,
}


@pytest.mark.parametrize("name", ["flow_beta0_sphere", "merging_pair_circle"])
def test_the_error_of_time_is_far_below_that_of_the_mesh(name):
    """Both errors, at the default ``cfl``, are the change by a step or a cell of less than half the length."""
    case = mf.load_case(name, {"domain.resolution": 32, "output.samples": 50})
    speed, short, fine = (
        mf.simulate(one).diagnostics["speed"]
        for one in (case, case.replace({"time.cfl": 0.2}), case.replace({"domain.resolution": 72}))
    )
    assert np.abs(speed - short).max() < 1e-3 * np.abs(speed - fine).max()  # 1.8e-3 and more with ssprk2
