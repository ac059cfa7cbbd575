"""Sums over tokens by transforms and over pairs, compared with whole matrices in extended precision."""

import mpmath
import numpy as np
import pytest

from meanfield.domains.particles.pair_sums import PairSums, ZonalPairSums
from meanfield.domains.particles.sums import (
    BilinearPointSums,
    ZonalPointSums,
    pays,
    token_sums,
)
from meanfield.model.heads import Head, log_bound, steepness
from meanfield.model.kernel import KERNELS, kernel_of, windowed_kernel
from meanfield.model.zonal_multipliers import zonal_multipliers
from solvers.transforms.exponential import exponential_degree

COUNT = 4000
CLOUDS = ["uniform", "cluster", "one place", "two far", "lonely", "poles"]
ASKED = 1e-11  # a hundred times smaller than the tolerance of the velocity


def cloud(kind, d, n=COUNT, seed=0):
    """Return tokens (n, d) and masses of sum 1, some of them 0."""
    random, axes = np.random.default_rng(seed), np.eye(d)
    points = random.standard_normal((n, d))
    centers = {
        "uniform": 0 * points,
        "cluster": axes[:1],
        "one place": axes[:1],
        "two far": np.where(random.random(n)[:, None] < 0.4, axes[0], 0.3 * axes[1] - axes[0]),
        "lonely": axes[:1],
        "poles": np.outer(random.choice([1, -1], n), axes[-1]),
    }[kind]
    width = {"uniform": 1.0, "one place": 1e-17, "two far": 0.03, "poles": 0.02}.get(kind, 0.1)
    points = centers + width * points
    if kind == "lonely":
        points[0], points[1] = -axes[0], axes[1]
    if kind == "poles":
        points[:6] = np.outer([1, 1, 1, -1, -1, 1], axes[-1])
    masses = random.random(n)
    masses[2::7] = 0.0
    return points / np.linalg.norm(points, axis=1)[:, None], masses / masses.sum()


def general(d, size, seed=3):
    """Return a head with βQᵀK of norm ``size`` at β = 1 and no symmetry."""
    query, key = np.random.default_rng(seed).standard_normal((2, d, d))
    return Head(query * size / np.linalg.norm(query.T @ key, 2), key)


def expected(points, masses, targets, exponent):
    """Return log Z and N/Z at some tokens; exponent(x, y) → (len(targets), n), in extended precision."""
    wide = points.astype(np.longdouble)
    logs = exponent(wide[targets], wide)
    logs[:, masses == 0] = -np.inf
    highest = logs.max(axis=1)
    kernel = np.exp(logs - highest[:, None]) * masses
    total = kernel.sum(axis=1)
    return np.log(total) + highest, kernel @ wide / total[:, None]


def assert_same(found, points, masses, exponent, asked=ASKED):
    """Assert equality at the first tokens, which include the special ones, and at some others."""
    targets = np.r_[0:10, 10 : len(points) : 20]
    targets = targets[targets < len(points)]
    scale, normalizer, sums = (array[targets] for array in found)
    log_total, mean = expected(points, masses, targets, exponent)
    assert np.abs(np.log(normalizer) + scale - log_total).max() < asked
    assert np.linalg.norm(sums / normalizer[:, None] - mean, axis=1).max() < asked


def bilinear(beta, head, d, gaussian=False):
    query, key = (np.eye(d) * matrix if np.ndim(matrix) == 0 else matrix for matrix in (head.query, head.key))

    def exponent(x, y):
        if gaussian:
            return -beta / 2 * (((x @ query.T)[:, None] - y @ key.T) ** 2).sum(axis=2)
        return beta * (x @ query.T) @ (y @ key.T).T

    return exponent


@pytest.mark.sampled
@pytest.mark.parametrize("beta", [1.0, 10.0, 60.0, -10.0])
@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("d", [2, 3])
def test_zonal_sums(d, kind, beta):
    points, masses = cloud(kind, d)
    sums = token_sums(points, beta, Head())
    assert isinstance(sums, ZonalPointSums)
    assert_same(sums.apply(masses), points, masses, bilinear(beta, Head(), d))


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("d", [2, 3])
def test_sums_with_any_matrices(d, kind, size):
    points, masses = cloud(kind, d)
    head = general(d, size)
    found = BilinearPointSums(points, 1.0, head).apply(masses)
    assert_same(found, points, masses, bilinear(1.0, head, d), 1e-10)  # Z of 1e-5 of the mass has that many digits


@pytest.mark.parametrize("kind", ["uniform", "two far", "lonely"])
def test_both_grids_where_tokens_are_many(kind):
    points, masses = cloud(kind, 3, 8000)
    head = general(3, 12.0)
    sums = token_sums(points, 1.0, head)
    assert isinstance(sums, BilinearPointSums)
    assert sums._operator._targets is not None
    assert_same(sums.apply(masses), points, masses, bilinear(1.0, head, 3))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("head", [Head(1.5, -0.5), "general"], ids=["numbers", "matrices"])
def test_gaussian_sums(head, d):
    points, masses = cloud("lonely", d)
    head = general(d, 8.0) if head == "general" else head
    exponent = bilinear(4.0, head, d, gaussian=True)
    assert_same(token_sums(points, 4.0, head, KERNELS["gaussian"]).apply(masses), points, masses, exponent)
    assert_same(PairSums(points, 4.0, head, KERNELS["gaussian"]).apply(masses), points, masses, exponent)


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("kind", ["uniform", "two far", "lonely"])
def test_windowed_sums(kind, d):
    points, masses = cloud(kind, d, 2500)
    masses += 1e-4  # a token that sees no other sees itself
    sums = token_sums(points, 5.0, Head(), kernel_of("windowed", 0.8))
    assert isinstance(sums, ZonalPointSums if d < 4 else ZonalPairSums)
    kernel = lambda x, y: np.log(windowed_kernel((x @ y.T).astype(float), 5.0, 0.8)) + 5.0  # noqa: E731
    assert_same(sums.apply(masses), points, masses, kernel, 1e-10)  # 1e-14 of the largest Z, with Z down to 4e-4 of it


@pytest.mark.parametrize("d", [2, 3])
def test_multipliers_of_a_window_add_up_to_its_kernel(d):
    """Σ_l c_l (2l + 1)/4π = K(1) on the sphere, (c_0 + 2 Σ c_l)/2π on the circle, for many degrees without noise."""
    multipliers = zonal_multipliers(d, kernel_of("windowed", 0.2), 5.0)
    degrees = np.arange(len(multipliers))
    weights = (2 * degrees + 1) / (4 * np.pi) if d == 3 else np.where(degrees > 0, 2, 1) / (2 * np.pi)
    assert len(multipliers) > 400
    assert multipliers @ weights == pytest.approx(windowed_kernel(np.ones(1), 5.0, 0.2)[0], rel=1e-11)


def test_a_window_with_a_sharp_edge_is_summed_over_pairs():
    points, _ = cloud("uniform", 2, 2500)
    assert zonal_multipliers(2, kernel_of("windowed", 0.02), 5.0) is None
    assert isinstance(token_sums(points, 5.0, Head(), kernel_of("windowed", 0.02)), ZonalPairSums)


@pytest.mark.parametrize("make", [
    lambda points: token_sums(points, 9.0, Head()),
    lambda points: token_sums(points, -12.0, Head()),
    lambda points: BilinearPointSums(points, 1.0, general(3, 9.0)),
    lambda points: PairSums(points, 9.0, Head()),
    lambda points: PairSums(points, 1.0, general(3, 9.0), KERNELS["gaussian"]),
    lambda points: token_sums(points, 9.0, Head(), kernel_of("windowed", 2.0)),
])  # fmt: skip
def test_log_weights_are_weights(make):
    points, masses = cloud("cluster", 3)
    logs = np.linspace(-30.0, 2000.0, COUNT)
    logs[: COUNT // 2] = 1990.0
    sums = make(points)
    scale, normalizer, vectors = sums.apply(masses, logs)
    other, total, means = sums.apply(masses * np.exp(logs - 2000.0))
    assert np.abs(np.log(normalizer / total) + scale - other - 2000.0).max() < 1e-10
    assert np.abs(vectors / normalizer[:, None] - means / total[:, None]).max() < 1e-10


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_tokens(n, d):
    points, masses = np.eye(d)[:n], np.full(n, 1 / n)
    for head in (Head(), general(d, 3.0)):
        for sums in (token_sums(points, 3.0, head), BilinearPointSums(points, 3.0, head)):
            assert_same(sums.apply(masses), points, masses, bilinear(3.0, head, d), 1e-13)


def test_lonely_token_to_fifty_digits():
    """A token opposite to 3999 tokens attends to itself with e^{2β}/4000 relative to them; at β = 3 they have a share.

    A transform's error is some roundings of the largest Z, which is 1 in units of the lonely token's Z.
    """
    points, masses = cloud("lonely", 3)
    for beta in (3.0, 9.0):
        scale, normalizer, sums = token_sums(points, beta, Head()).apply(masses)
        with mpmath.workdps(50):
            kernel = [m * mpmath.exp(beta * float(z)) for m, z in zip(masses, points @ points[0], strict=True)]
            mean = [float(mpmath.fdot(kernel, map(float, column)) / mpmath.fsum(kernel)) for column in points.T]
        rounding = 16 * np.finfo(float).eps / normalizer[0]
        assert np.abs(sums[0] / normalizer[0] - mean).max() < rounding
        assert abs(np.log(normalizer[0]) + scale[0] - float(mpmath.log(mpmath.fsum(kernel)))) < rounding


def test_many_lost_tokens_in_clusters_are_summed_by_patches(monkeypatch):
    """βQᵀK with a cluster where its attention is weak: every Z is lost relative to e^{‖B‖}, and still accurate."""
    points, masses = cloud("one place", 3, 5000)
    seen = []
    import solvers.transforms.patches

    gathered = solvers.transforms.patches.interpolated_sources
    monkeypatch.setattr(
        solvers.transforms.patches, "interpolated_sources", lambda *all: seen.append(1) or gathered(*all)
    )
    sums = token_sums(points, -12.0, Head())
    assert_same(sums.apply(masses), points, masses, bilinear(-12.0, Head(), 3))
    assert seen


def test_pairs_where_a_transform_cannot_be():
    sphere, _ = cloud("uniform", 3, 3000)
    assert isinstance(token_sums(sphere, 5.0, Head()), ZonalPointSums)
    assert isinstance(token_sums(sphere, 5.0, Head(), causal=True), PairSums)
    assert isinstance(token_sums(1.01 * sphere, 5.0, Head()), PairSums)
    assert isinstance(token_sums(np.where(sphere == sphere[9], np.nan, sphere), 5.0, Head()), PairSums)
    assert isinstance(token_sums(cloud("uniform", 4, 3000)[0], 5.0, Head()), PairSums)
    steep = Head(np.eye(3), np.diag([1.0, 1.0, 0.5]))
    assert isinstance(token_sums(sphere, 5.0, steep), BilinearPointSums)
    assert isinstance(token_sums(sphere, 5.0, steep, KERNELS["gaussian"]), BilinearPointSums)
    out_of_range = Head(1e-3, 1e3 * steep.key)  # weights e^{−β|Ky|²/2} beyond the range of numbers
    assert isinstance(token_sums(sphere, 5.0, out_of_range, KERNELS["gaussian"]), PairSums)


def test_transforms_are_for_many_tokens():
    assert not pays(500, 3, 30)
    assert pays(5000, 3, 30)
    assert not pays(5000, 3, 300)
    assert pays(5000, 3, 30, zonal=False)
    assert not pays(5000, 3, 90, zonal=False)
    assert all(pays(10**6, d, exponential_degree(d, 100.0)) for d in (2, 3))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("head", [Head(2.0, 0.5), Head(-1.0, 2.0), Head(1.0, np.diag([1.0, -3.0, 0.5]))])
def test_largest_kernel(head, gaussian):
    points, _ = cloud("uniform", 3, 2000)
    largest = bilinear(3.0, head, 3, gaussian)(points[:300], points).max()
    bound = log_bound(3.0, head, KERNELS["gaussian" if gaussian else "exponential"])
    assert largest <= bound + 1e-12
    if not gaussian:
        assert bound == abs(steepness(3.0, head))
    assert bound - largest < (0.4 if np.ndim(head.key) == 0 or not gaussian else 10.0)


def test_format_is_that_of_the_tokens():
    points, masses = cloud("uniform", 4, 50)
    found = PairSums(points.astype(np.float32), 2.0, general(4, 1.0), KERNELS["gaussian"]).apply(masses, np.zeros(50))
    assert {array.dtype for array in found} == {np.dtype(np.float32)}


def test_causal_windowed_sums():
    points, masses = cloud("uniform", 4, 50)
    _, normalizer, sums = ZonalPairSums(points, 2.0, kernel_of("windowed", 1.0), causal=True).apply(masses)
    kernel = np.tril(windowed_kernel(points @ points.T, 2.0, 1.0)) * masses
    assert np.abs(normalizer - kernel.sum(axis=1)).max() < 1e-15
    assert np.abs(sums - kernel @ points).max() < 1e-15
