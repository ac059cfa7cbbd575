"""Bessel functions by logarithms, Gegenbauer functions and the spectrum of e^{β⟨x,y⟩} on spheres of any dimension."""

import mpmath
import numpy as np
import pytest
from scipy import special

from solvers.mesh.interval import edges_of, polar
from solvers.transforms.bessel import log_bessel
from solvers.transforms.exponential import exponential_degree, exponential_multipliers, exponential_spectrum
from solvers.transforms.gegenbauer import gegenbauer
from solvers.transforms.polar import log_area, log_masses

DIMENSIONS = [2, 3, 4, 5, 64, 1024, 4096]
NODES, GAUSS = np.polynomial.legendre.leggauss(1000)
THETA = (NODES + 1) * np.pi / 2  # 5 nodes per width of the uniform distribution at d = 4096


def weights(dimension):
    """Return the uniform distribution at THETA; sin^{d−2} is below 1e-300 where it underflows."""
    law = GAUSS * np.exp((dimension - 2) * np.log(np.sin(THETA)))
    return law / law.sum()


@pytest.mark.parametrize("order", [-0.5, 0.0, 0.5, 1.0, 10.0, 31.5, 32.0, 40.0, 511.0, 2047.0])
def test_bessel_functions_by_logarithms(order):
    """The reference has 40 digits, at arguments from far below the order to far above it."""
    argument = np.array([0.0, 1e-8, 0.1, 1.0, 9.0, 50.0, 300.0, 1000.0])
    log_value, ratio = log_bessel(order, argument)
    assert log_value[0] == pytest.approx(0.0, abs=1e-14)
    assert ratio[0] == 0.0
    with mpmath.workdps(40):
        for b, found, quotient in zip(argument[1:], log_value[1:], ratio[1:], strict=True):
            exact = mpmath.besseli(order, b)
            expected = float(mpmath.log(mpmath.gamma(order + 1) * (2 / mpmath.mpf(b)) ** order * exact))
            assert found == pytest.approx(expected, rel=2e-15, abs=2e-15)
            expected = float(mpmath.besseli(order + 1, b) / exact)
            assert quotient == pytest.approx(expected, rel=1e-13 * max(1, b / 300))  # the last digits of e^{log g}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_gegenbauer_functions_are_orthonormal(dimension):
    values = gegenbauer(dimension, THETA, 12)
    gram = (values * weights(dimension)) @ values.T
    # Rounding of 1000 terms, and of nodes times the exponent of the sine.
    assert np.abs(gram - np.eye(13)).max() < 1e-12


def test_gegenbauer_functions_are_those_of_the_books():
    theta = np.linspace(0, np.pi, 50)
    for l in range(9):
        size = np.sqrt(2.0) if l else 1.0
        assert gegenbauer(2, theta, 8)[l] == pytest.approx(size * np.cos(l * theta), abs=1e-13)
        legendre = np.sqrt(2 * l + 1) * special.eval_legendre(l, np.cos(theta))
        assert gegenbauer(3, theta, 8)[l] == pytest.approx(legendre, abs=1e-13)
        for dimension in (4, 64, 4096):
            count = special.comb(dimension + l - 1, l) - (special.comb(dimension + l - 3, l - 2) if l > 1 else 0)
            assert gegenbauer(dimension, np.zeros(1), l)[l, 0] == pytest.approx(np.sqrt(count), rel=1e-12)


def test_many_degrees_do_not_overflow():
    values = gegenbauer(4096, np.linspace(0, np.pi, 20), 350)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("beta", [0.0, 1e-3, 5.0, -5.0, 100.0])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_spectrum_of_the_exponential(dimension, beta):
    """c_l/c_0 = I_{l+ν}/I_ν and c_0 = Γ(ν + 1)(2/β)^ν I_ν, computed with 40 digits."""
    log_first, ratios = exponential_spectrum(dimension, beta, 6)
    nu = mpmath.mpf(dimension) / 2 - 1
    if beta == 0:
        assert log_first == pytest.approx(0.0, abs=1e-14)
        assert ratios.tolist() == [1, 0, 0, 0, 0, 0]
        return
    with mpmath.workdps(40):
        first = mpmath.besseli(nu, abs(beta))
        expected = float(mpmath.log(mpmath.gamma(nu + 1) * (2 / mpmath.mpf(abs(beta))) ** nu * first))
        assert log_first == pytest.approx(expected, rel=2e-15, abs=2e-15)
        for l in range(6):
            ratio = float(mpmath.besseli(l + nu, abs(beta)) / first) * np.sign(beta) ** l
            assert ratios[l] == pytest.approx(ratio, rel=2e-13)


@pytest.mark.parametrize("cells", [16, 256])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_masses_of_the_uniform_law(dimension, cells):
    """P(angle ≤ θ) = ½ B(sin²θ; (d−1)/2, ½) up to the equator, by SciPy's incomplete beta function."""
    mesh = polar(cells, dimension)
    masses = np.exp(log_masses(mesh, dimension))
    half = edges_of(mesh)[: mesh.cells // 2 + 1]
    expected = np.diff(0.5 * special.betainc((dimension - 1) / 2, 0.5, np.sin(half) ** 2))
    assert np.abs(masses[: mesh.cells // 2] - expected).max() < 3e-12  # digits of betainc at d = 4096
    assert masses.sum() == pytest.approx(1.0, abs=1e-14)
    assert masses == pytest.approx(masses[::-1], rel=1e-11)
    assert np.isfinite(log_masses(mesh, dimension)).all()


@pytest.mark.parametrize("dimension", [2, 3, 8])
@pytest.mark.parametrize("beta", [-5.0, 0.5, 9.0, 100.0, 1000.0])
def test_the_truncated_kernel_is_the_kernel_to_rounding(dimension, beta):
    """e^{βz − |β|} = Σ_l c_l N_l P_l(z)/|S^{d−1}|, N_l harmonics of degree l; a third fewer degrees do not suffice."""
    theta, last = np.linspace(0.0, np.pi, 50), exponential_degree(dimension, beta)
    l, d = np.arange(last + 1), dimension
    harmonics = special.binom(l + d - 1, d - 1) - np.where(l > 1, special.binom(np.maximum(l + d - 3, 0), d - 1), 0.0)
    weights = exponential_multipliers(d, beta, last + 1) * harmonics / np.exp(log_area(d))
    found = weights / np.sqrt(harmonics) @ gegenbauer(d, theta, last)
    assert np.abs(found - np.exp(beta * np.cos(theta) - abs(beta))).max() < 1e-13
    assert np.abs(weights[int(0.7 * last) :]).sum() > 1e-16 * np.abs(weights).sum()
