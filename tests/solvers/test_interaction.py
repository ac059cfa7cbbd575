"""Sources and interactions: eigenvalues, sums compared with dense sums, published phase transitions."""

import numpy as np
import pytest
from scipy import special
from scipy.optimize import brentq
from support import exact

from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box
from solvers.mesh.stack import stack
from solvers.terms.diffusion import Diffusion
from solvers.terms.drift.scharfetter_gummel import DriftDiffusion
from solvers.terms.source import Source
from solvers.transforms.interaction import Convolution, DenseKernel, Zonal


def test_the_step_of_a_source_follows_its_fastest_rate():
    rates = np.linspace(-7.0, -1.0, 40)
    source = Source(lambda t, u: rates * u)
    step = source.prepare(0.0, np.ones(40))
    assert 1 / (1.3 * 7.0) <= step < 1 / 7.0  # a margin of 1.3 over the estimate of the iterations, which is from below
    assert Source(lambda t, u: 0.0 * u).prepare(0.0, np.ones(4)) == np.inf
    assert Source(lambda t, u: -u, fastest=4.0).prepare(0.0, np.ones(4)) == 0.25


def test_a_source_of_fields_that_rotate_has_its_frequency():
    source = Source(lambda t, u: 5.0 * np.stack([-u[1], u[0]]))
    assert source.prepare(0.0, np.ones((2, 8))) == pytest.approx(1 / 6.5, rel=1e-3)
    rate = np.zeros((2, 8))
    source.rate(0.1, rate)
    assert (rate == 5.0 * np.array([[-1.0], [1.0]])).all()


@pytest.mark.parametrize(
    ("result", "kind"), [(np.ones((1, 4)), ValueError), (np.ones(3), ValueError), (np.full(4, np.nan), ValueError)]
)
def test_a_source_of_another_shape_is_refused(result, kind):
    with pytest.raises(kind, match=r"expected|finite"):
        Source(lambda t, u: result).prepare(0.0, np.ones(4))


@pytest.mark.parametrize("mesh", [circle(48), sphere(24)], ids=lambda mesh: mesh.manifold)
def test_zonal_sums_are_those_over_all_pairs(mesh):
    """The field is 0 in most cells, so that on the sphere no share is summed as uniform."""
    u = np.random.default_rng(0).random(mesh.cells)
    u[u < 0.7] = 0.0
    zonal = Zonal(mesh, lambda z: np.exp(2 * z))
    assert zonal.truncation < 1e-12
    x, masses = mesh.centers, u * mesh.volumes
    kernel = np.exp(2 * x @ x.T)
    assert np.abs(zonal.potential(u) - kernel @ masses).max() < 1e-9 * masses.sum()
    pull = 2 * (kernel * masses) @ x
    pull -= (pull * x).sum(axis=1, keepdims=True) * x
    assert np.abs(zonal.drift(u) - pull).max() < 1e-9 * masses.sum()


def test_a_uniform_field_rests_on_the_sphere_and_modes_beside_it_have_their_rates():
    """|x × y| has a tail beyond 16 rings, whose sums over cells differ from ring to ring. Degree 2: −π²/8."""
    mesh = sphere(16)
    zonal = Zonal(mesh, lambda z: np.sqrt(1 - z**2), tol=0.05)
    assert np.abs(zonal.drift(np.full(mesh.cells, 0.7))).max() < 1e-14
    assert zonal.potential(np.full(mesh.cells, 0.7)) == pytest.approx(0.7 * np.pi**2, rel=1e-12)
    mode = 3 * mesh.centers[:, 2] ** 2 - 1
    change = zonal.potential(1 + 1e-6 * mode) - zonal.potential(np.ones(mesh.cells))
    assert change == pytest.approx(-(np.pi**2) / 8 * 1e-6 * mode, abs=0.02 * 1e-6)


@pytest.mark.parametrize("manifold", ["sphere", "interval"])
def test_sums_over_cells_are_of_second_order(manifold):
    """The error of the midpoint rule for an eigenfunction of the kernel, as docs/numerics.md states it."""

    def error(cells):
        if manifold == "sphere":
            mesh = sphere(cells)
            mode, kernel = (3 * mesh.centers[:, 2] ** 2 - 1) / 2, Zonal(mesh, np.array([0.0, 0.0, 1.0]))
        else:
            mesh = interval(0.0, 1.0, cells, periodic=True)
            mode = np.cos(2 * np.pi * mesh.centers[:, 0])
            kernel = Convolution(mesh, lambda r: 2 * np.cos(2 * np.pi * r[:, 0]))
        return np.abs(kernel.potential(mode) - mode).max()

    order = np.log(error(16) / error(64)) / np.log(4)  # 2.2 on the sphere, 2.0 on the interval
    assert order > 1.95, f"order {order:.2f}"


def test_a_kernel_that_the_mesh_cannot_hold_reports_what_is_lost():
    assert 1e-12 < Zonal(circle(24), lambda z: np.exp(8 * z)).truncation < 1e-3
    with pytest.raises(ValueError, match=r"degrees omit .* of it; expected a finer mesh"):
        Zonal(sphere(8), lambda z: np.exp(60 * z))
    with pytest.raises(ValueError, match="Zonal on a icosphere"):
        Zonal(icosphere(1), lambda z: z)


@pytest.mark.parametrize("periodic", [True, False])
def test_convolutions_are_sums_over_all_pairs(periodic):
    mesh = box((12, 8), (3.0, 2.0), periodic=periodic)
    u = np.random.default_rng(1).random(mesh.cells)
    offsets = mesh.shortest((mesh.centers[:, None] - mesh.centers[None]).reshape(-1, 2))
    width = 0.25
    kernel = lambda r: np.cos(2 * np.pi * r[..., 0] / 3) * np.cos(np.pi * r[..., 1])  # noqa: E731
    means = np.sinc(width / 3) * np.sinc(width / 2)  # means of the kernel over a cell
    expected = (kernel(offsets).reshape(mesh.cells, -1) * means) @ (u * mesh.volumes)
    assert np.abs(Convolution(mesh, kernel).potential(u) - expected).max() < 1e-5  # Gauss's rule of 4 nodes


def test_a_quadratic_attraction_pulls_to_the_center_of_mass():
    """K = −r²/2 gives ∇(K∗u) = M (center − x) exactly; −|r| on a line gives the mass ahead minus the mass behind."""
    mesh = box((10, 9), (1.0, 1.0))
    u = np.random.default_rng(2).random(90)
    mass, center = u @ mesh.volumes, (u * mesh.volumes) @ mesh.centers
    drift = Convolution(mesh, lambda r: -(r**2).sum(axis=-1) / 2).drift(u)
    assert np.abs(drift - (center - mass * mesh.centers)).max() < 1e-12
    line = interval(0.0, 1.0, 30)
    v = np.random.default_rng(3).random(30) * line.volumes
    pull = Convolution(line, lambda r: -np.abs(r[:, 0]), lambda r: -np.sign(r)).drift(v / line.volumes)[:, 0]
    assert np.abs(pull - (v.sum() - 2 * np.cumsum(v) + v)).max() < 1e-12


def test_keller_and_segel_spread_or_collapse_at_their_rate():
    """dM₂/dt = 4M(1 − M/8π) in the plane, −Δc = u, from a Gaussian, for masses below and above 8π."""
    mesh = box((96, 96), ((-6.0, 6.0), (-6.0, 6.0)))
    square = (mesh.centers**2).sum(axis=1)
    field = Convolution(mesh, lambda r: -np.log((r**2).sum(axis=-1)) / (4 * np.pi))
    for part in (0.5, 1.5):
        mass = part * 8 * np.pi
        u = mass * np.exp(-square / 2) / (2 * np.pi)
        term = DriftDiffusion(mesh, 1.0, lambda t, u: -field.potential(u), nonnegative=True)
        term.prepare(0.0, u)
        rate = np.zeros(mesh.cells)
        term.rate(0.0, rate)
        assert (rate * mesh.volumes) @ square == pytest.approx(4 * mass * (1 - part), rel=0.01)


def test_dense_kernels_sum_over_all_pairs_in_tiles(monkeypatch):
    monkeypatch.setattr("solvers.transforms.interaction.TILE_BYTES", 8 * 162 * 3 * 10)
    mesh = icosphere(2)
    u = np.random.default_rng(4).random(mesh.cells)
    dense = DenseKernel(mesh, lambda x, y: np.exp((x * y).sum(axis=-1)))
    expected = np.exp(mesh.centers @ mesh.centers.T) @ (u * mesh.volumes)
    assert np.abs(dense(u) - expected).max() < 1e-12 * np.abs(expected).max()


def relaxed(term, u, dt, steps):
    for _ in range(steps):
        term.prepare(0.0, u)
        term.step(dt, u)
    return u


@pytest.mark.parametrize("ratio", [2.2, 3.0, 4.0])
def test_kuramotos_order_is_that_of_its_gibbs_density(ratio):
    """r = I₁(κ)/I₀(κ), κ = (K/D) r, D = 1: Gibbs density of the potential −K r cos θ, exact on the mesh."""
    k = brentq(lambda k: k - ratio * special.ive(1, k) / special.ive(0, k), 1e-3, 20.0)
    mesh = circle(64)
    pull = Zonal(mesh, lambda z: ratio * z)
    term = DriftDiffusion(mesh, 1.0, lambda t, u: -pull.potential(u), nonnegative=True)
    u = relaxed(term, (1 + 0.5 * mesh.centers[:, 0]) / (2 * np.pi), 0.5, 400)
    assert np.linalg.norm((u * mesh.volumes) @ mesh.centers) == pytest.approx(k / ratio, abs=1e-4)


def test_maier_and_saupe_order_by_the_values_of_their_gibbs_density():
    """K = U P₂, U = 8: S = ⟨P₂⟩ of e^{U S P₂}, on the sphere by rings."""
    strength = 8.0
    p2 = lambda z: (3 * z**2 - 1) / 2  # noqa: E731
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def excess(s):
        density = np.exp(strength * s * p2(nodes)) * weights
        return (density * p2(nodes)).sum() / density.sum() - s

    expected = brentq(excess, 0.4, 0.99)

    mesh = sphere(64)  # errors of the sums over cells: 3.3e-4 at 32 rings, 7.5e-5 at 64, 1.1e-5 at 128
    pull = Zonal(mesh, lambda z: strength * p2(z))
    term = DriftDiffusion(mesh, 1.0, lambda t, u: -pull.potential(u), nonnegative=True)
    u = relaxed(term, (1 + 0.8 * p2(mesh.centers[:, 2])) / (4 * np.pi), 0.5, 12)
    assert (u * mesh.volumes) @ p2(mesh.centers[:, 2]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("theta", "critical"), [(0.5, 0.2645049), (1.0, 0.4569466), (2.0, 0.8157866)])
def test_desai_and_zwanzig_order_below_their_critical_noise(theta, critical):
    """V = x⁴/4 − x²/2 + θ(x − m)²/2: the mean 0 becomes unstable at D_c, where θ⟨x²⟩ = D."""
    mesh = interval(-3.2, 3.2, 240)
    x = mesh.centers[:, 0]

    def susceptibility(noise):
        density = np.exp(-(x**4 / 4 - x**2 / 2 + theta * x**2 / 2) / noise)
        return theta * (density * x**2).sum() / density.sum() / noise - 1

    assert brentq(susceptibility, 0.05, 2.0) == pytest.approx(critical, abs=1e-6)
    for factor, sign in ((0.97, 1), (1.03, -1)):
        noise = factor * critical
        gibbs = np.exp(-(x**4 / 4 - x**2 / 2 + theta * x**2 / 2) / noise)
        gibbs /= gibbs @ mesh.volumes
        shift = 1e-4 * x * gibbs
        potential = lambda t, u: x**4 / 4 - x**2 / 2 + theta * (x - (u * mesh.volumes) @ x) ** 2 / 2  # noqa: E731
        term = DriftDiffusion(mesh, noise, potential)
        u = relaxed(term, gibbs + shift, 0.2, 20)
        first = (u * mesh.volumes) @ x
        assert np.sign((relaxed(term, u, 0.2, 10) * mesh.volumes) @ x - first) == sign


def test_a_reaction_and_diffusion_make_the_rate_of_their_mode():
    """u′ = 3u + Δu on the circle from cos 2φ has the rate −1, by both terms' rates."""
    mesh = circle(64)
    mode = mesh.centers[:, 0] ** 2 - mesh.centers[:, 1] ** 2
    total = np.zeros(64)
    for term in (Source(lambda t, u: 3 * u), Diffusion(mesh, 1.0)):
        assert term.prepare(0.0, mode) > 0
        term.rate(0.0, total)
    assert np.abs(total + mode).max() < 1e-4
    assert exact.orders([4.0, 1.0], [1, 2])[0] == pytest.approx(2.0)


@pytest.mark.parametrize("mesh", [circle(32), sphere(8)], ids=lambda mesh: mesh.manifold)
def test_a_zonal_kernel_may_vanish_or_be_constant(mesh):
    """K = 0, the first of a sweep over a coupling, gives 0, and K = 1 gives the mass."""
    u = np.random.default_rng(0).random(mesh.cells)
    none, constant = Zonal(mesh, lambda z: 0.0 * z), Zonal(mesh, lambda z: 1.0)
    assert not none.potential(u).any()
    assert not none.drift(u).any()
    assert constant.potential(u) == pytest.approx(np.full(mesh.cells, u @ mesh.volumes), rel=1e-12)


def test_a_convolution_is_the_same_in_any_unit_of_length():
    """K(r/L) on a box of length L = 1e-12 gives the values of L = 1 times L²."""
    u = np.random.default_rng(0).random(64)
    one, tiny = (
        Convolution(box((8, 8), (L, L), periodic=True), lambda r, L=L: np.exp(-((r / L) ** 2).sum(axis=1))).potential(u)
        for L in (1.0, 1e-12)
    )
    assert tiny == pytest.approx(1e-24 * one, rel=1e-12)


def test_a_convolution_refuses_copies_of_a_mesh():
    """The cells of a stack have equal volumes, but its copies do not continue each other."""
    with pytest.raises(ValueError, match="Convolution on a 2 × interval: expected an interval or a box of equal cells"):
        Convolution(stack(interval(0.0, 1.0, 8), 2), lambda r: r[:, 0])
