"""Diffusion on rings of latitude with fluxes from fitted cubics: order, spectrum, conservation, growth of a pattern."""

import numpy as np
import pytest
from scipy.special import sph_harm_y

from solvers import Diffusion, Equation, solve
from solvers.mesh.mesh import Mesh, sphere
from solvers.terms.operators import TensorOperator


def averages(mesh: Mesh, l: int, m: int) -> np.ndarray:
    """Return averages (cells,) of the real part of Y_lm, by Gauss's rule in cos θ and φ."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    rings = []
    for ring, cells in enumerate(mesh.ring_cells):
        north, south = np.cos(mesh.ring_edges[ring : ring + 2])
        z = (north + south) / 2 + (south - north) / 2 * nodes
        phi = (np.arange(cells)[:, None] + (nodes + 1) / 2) * (2 * np.pi / cells)
        values = np.real(sph_harm_y(l, m, np.arccos(z)[None, None], phi[:, :, None]))
        rings.append(np.einsum("cpz,p,z->c", values, weights / 2, weights / 2))
    return np.concatenate(rings)


def rate_error(rings: int, l: int, m: int) -> float:
    """Return the relative error of ⟨Y, ΔY⟩/⟨Y, Y⟩ against −l(l + 1)."""
    mesh = sphere(rings)
    mode, change = averages(mesh, l, m), np.empty(mesh.cells)
    TensorOperator(mesh, 1.0).apply(mode, change)
    rate = (mesh.volumes * mode) @ change / ((mesh.volumes * mode) @ mode)
    return abs(rate / (-l * (l + 1)) - 1)


@pytest.mark.parametrize(("l", "m"), [(4, 0), (4, 2), (8, 5)])
def test_rates_of_harmonics_are_of_order_above_three(l: int, m: int) -> None:
    """Fluxes of cubics are of third order or better, whatever the counts of rings, and rates of nearly fourth."""
    coarse, fine = rate_error(32, l, m), rate_error(64, l, m)
    assert np.log2(coarse / fine) > 3.5
    assert fine < 3e-4


@pytest.mark.parametrize("rings", [8, 13, 16])
def test_no_mode_grows(rings: int) -> None:
    """No eigenvalue has a positive real part, or an imaginary part above 1 % of its decay, though the fit is not
    symmetric."""
    rates = np.linalg.eigvals(TensorOperator(sphere(rings), 1.0).matrix().toarray())
    rates = rates[np.argsort(np.abs(rates))]
    assert abs(rates[0]) < 1e-9
    assert rates[1:].real.max() == pytest.approx(-2.0, rel=2e-2)
    assert (np.abs(rates.imag[1:]) < 1e-2 * np.abs(rates.real[1:])).all()


def test_mass_is_kept_and_uniform_fields_stay() -> None:
    mesh = sphere(24)
    values, change = np.random.default_rng(0).standard_normal(mesh.cells), np.empty(mesh.cells)
    operator = TensorOperator(mesh, 1.0)
    operator.apply(values, change)
    assert abs(mesh.volumes @ change) < 1e-13 * (mesh.volumes @ np.abs(change))
    operator.apply(np.ones(mesh.cells), change)
    assert not change.any()


def test_schnakenberg_on_the_sphere_grows_at_its_rate() -> None:
    """The fastest mode of u' = a − u + u²v + D₁Δu, v' = b − u²v + D₂Δv from l = 8 grows at its rate to 1 %, by
    default."""
    mesh, a, b, D, l = sphere(64), 0.1, 0.9, (0.004, 0.12), 8

    def reaction(time, u):
        return np.stack([a - u[0] + u[0] ** 2 * u[1], b - u[0] ** 2 * u[1]])

    u, v = a + b, b / (a + b) ** 2
    jacobian = np.array([[-1 + 2 * u * v, u * u], [-2 * u * v, -u * u]]) - l * (l + 1) * np.diag(D)
    rates, shapes = np.linalg.eig(jacobian)
    best = int(rates.real.argmax())
    assert rates[best] > 0.1
    steady, shape = np.array([u, v])[:, None], shapes[:, best].real[:, None] * averages(mesh, l, 5)
    found = solve(Equation(mesh, [Diffusion(mesh, list(D)), reaction]), steady + 1e-5 * shape, (0.0, 6.0))
    grown = np.sum(mesh.volumes * (found.u[-1] - steady) * shape) / np.sum(mesh.volumes * 1e-5 * shape**2)
    assert np.log(grown) / 6.0 == pytest.approx(rates[best].real, rel=0.01), found.message


def test_heat_on_the_sphere_decays_right_by_default() -> None:
    """The error of e^{−l(l+1)t} is 1e-4 at 64 rings."""
    mesh = sphere(64)
    mode = averages(mesh, 3, 2)
    found = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), mode, (0.0, 0.1))
    assert np.abs(found.u[-1] - np.exp(-1.2) * mode).max() < 1e-4 * np.abs(mode).max()
