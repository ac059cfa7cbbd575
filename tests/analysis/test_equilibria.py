"""Stationary densities: linear theory at the branch's start, known folds, exact states at β → 0, stability near
folds."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

from meanfield.analysis.branches import continuation
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.branches.varied import BetaParameter, NoiseParameter
from meanfield.model.linear_stability import continuous_up_to, critical_noise, growth_rates, transition_coefficient


def follow(equilibria, *arguments, **options):
    return continuation.follow(NoiseParameter(equilibria), *arguments, **options)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(("dimension", "beta"), [(2, 4.0), (3, 2.0), (8, 3.0), (64, 5.0)])
def test_the_uniform_density_has_the_rates_of_linear_theory(dimension, beta, normalization):
    """The reference is Funk–Hecke's formula; the discretization differs by rounding relative to the largest rate."""
    equilibria = Equilibria(dimension, beta, normalization)
    critical = equilibria.critical_noise(1)
    assert critical == pytest.approx(critical_noise(dimension, beta, normalization), rel=1e-12)
    uniform = equilibria.equilibrium(np.zeros_like(equilibria.nodes), critical / 2)
    rates = growth_rates(dimension, beta, np.arange(100), normalization, critical / 2)
    for m, found in enumerate(uniform.rates):  # a degree l occurs in each of the orders m ≤ l
        expected = np.sort(rates[max(m, 1) : max(m, 1) + len(found)])[::-1]
        assert found == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())
        assert uniform.spectra[m].unstable == (expected > 0).sum()


def test_fold_of_unnormalized_attention_on_the_circle():
    """The fold of β = 4 is at 1.0588772 of the critical noise, with length 0.54712795, by iteration on Fourier
    coefficients."""
    [fold] = follow(Equilibria(2, 4.0, "unnormalized")).folds
    assert fold.noise == pytest.approx(2.58351872782, rel=1e-10)
    assert fold.order == pytest.approx(0.54712795, abs=1e-8)
    assert abs(fold.fastest) < 1e-9  # a rate passes zero at a fold


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("dimension", "beta"), [(2, 3.0), (16, 3.0)])
def test_folds_do_not_depend_on_the_nodes(dimension, beta):
    folds = [follow(Equilibria(dimension, beta, "unnormalized", nodes=nodes)).folds for nodes in (96, 160)]
    assert [len(found) for found in folds] == [1, 1]
    assert folds[0][0].noise == pytest.approx(folds[1][0].noise, rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 3])
def test_there_is_a_fold_from_where_the_transition_is_discontinuous(dimension):
    """β* of 2606.05140 is the zero of the coefficient of the expansion about the uniform density."""
    limit = continuous_up_to(dimension)
    for beta, folds in ((0.9 * limit, 0), (1.2 * limit, 1)):
        assert len(follow(Equilibria(dimension, beta, "unnormalized")).folds) == folds


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dimension", "beta"), [(2, 2.0), (8, 2.0)])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_branches_begin_as_the_expansion_says(dimension, beta, normalization):
    """1 = κ#/κ + C a² + O(a⁴) for ρ̄(1 + a⟨x, e⟩ + …), for which ∫⟨x, e⟩ρ is a/d."""
    branch = follow(Equilibria(dimension, beta, normalization))
    point = branch.equilibria[1]
    a = dimension * point.order
    found = (1 - branch.critical / point.noise) / a**2
    assert found == pytest.approx(transition_coefficient(dimension, beta, normalization), abs=0.3 * a**2)


def test_states_at_small_beta_are_von_mises_fisher():
    """β → 0, unnormalized: ρ ∝ e^{R⟨x, e⟩/κ} with R = I_1(R/κ)/I_0(R/κ) on the circle, up to O(β)."""
    branch = follow(Equilibria(2, 1e-5, "unnormalized"))
    for point in branch.equilibria[5::10]:
        noise = point.noise
        length = brentq(lambda r, noise=noise: r - ive(1, r / noise) / ive(0, r / noise), 1e-3, 1.0)
        assert point.order == pytest.approx(length, rel=1e-4)


def test_stability_changes_at_the_fold_alone():
    branch = follow(Equilibria(3, 4.0, "unnormalized"))
    [fold] = branch.folds
    beyond = [point for point in branch.equilibria[1:] if point.order > fold.order]
    before = [point for point in branch.equilibria[1:] if point.order < fold.order]
    assert {point.unstable for point in before} == {1}
    assert {point.unstable for point in beyond} == {0}
    assert all(point.noise <= fold.noise for point in branch.equilibria)


def test_modes_that_decay_have_no_branch():
    with pytest.raises(ValueError, match="degree 1: expected one that grows without noise"):
        follow(Equilibria(3, 4.0, value=-1.0))


def test_a_branch_says_why_it_ends():
    equilibria = Equilibria(2, 4.0, nodes=64)
    assert follow(equilibria).end == "noise below 0.3 of the critical one"
    assert follow(equilibria, min_ratio=0.0).end == "64 nodes do not resolve the density beyond it"
    few = follow(equilibria, steps=3)
    assert (few.end, len(few.equilibria)) == ("3 steps", 4)


def test_a_branch_in_many_dimensions_ends_where_rounding_hides_it():
    """Newton's iteration fails in the first one if the bound of the rounding error has the factor 8 in place of 32."""
    long = follow(Equilibria(64, 10.0), degree=3)
    assert long.end == "128 nodes do not resolve the density beyond it"
    short = follow(Equilibria(64, 3.0), degree=5).end
    assert re.search(r": rounding errors of 4.\de-08 in the equations change the density by \d\.\de-05$", short)
    none = follow(Equilibria(64, 1.0), degree=5, negative=True)
    assert none.end.endswith("near the uniform density the equations are smaller than their rounding errors, 1.0e-05")
    assert len(none.equilibria) == 1


@pytest.mark.parametrize(("dimension", "normalization"), [(2, "unnormalized"), (3, "softmax"), (8, "unnormalized")])
def test_branches_over_beta_meet_those_over_the_noise(dimension, normalization):
    """A stationary density of one branch is one of the other: the same order at the same κ and β."""
    noise = Equilibria(dimension, 3.0, normalization).critical_noise(1)
    along = continuation.follow(BetaParameter(dimension, noise, 3.0, normalization), steps=12)
    assert along.critical == pytest.approx(3.0, rel=1e-12)
    for point in along.equilibria[4::4]:
        equilibria = Equilibria(dimension, point.beta, normalization)
        assert np.abs(equilibria.residual(point.log_density, noise)[0]).max() < 1e-11
        assert np.ptp(point.log_density) > 0.01


def test_fold_over_beta_is_that_over_the_noise():
    """The fold over β is at 4, for the noise of the fold of β = 4 on the circle."""
    [fold] = follow(Equilibria(2, 4.0, "unnormalized")).folds
    [other] = continuation.follow(BetaParameter(2, fold.noise, 4.0, "unnormalized", nodes=48), steps=20).folds
    assert other.beta == pytest.approx(4.0, rel=1e-9)
    assert other.order == pytest.approx(fold.order, rel=1e-6)  # order has a square root at the fold: half of the digits


@pytest.mark.parametrize(("dimension", "beta", "m"), [(2, 3.0, 1), (3, 2.0, 1), (3, 2.0, 2), (5, 3.0, 3)])
def test_rates_across_the_axis_do_not_depend_on_the_nodes(dimension, beta, m):
    """The leading rates of an ordered state do not depend on the Galerkin space and the nodes."""
    found = []
    for nodes in (64, 96):
        equilibria = Equilibria(dimension, beta, nodes=nodes)
        point = follow(equilibria, steps=25).equilibria[-1]
        found.append((point, equilibria))
    first, second = (
        equilibria.equilibrium(
            np.polynomial.Polynomial.fit(found[0][1].nodes, found[0][0].log_density, 30)(equilibria.nodes),
            found[0][0].noise,
        )
        for _, equilibria in found
    )
    assert first.rates[m][:3] == pytest.approx(second.rates[m][:3], rel=1e-6)


def rates_of_the_linearized_equation(equilibria, point, cells):
    """Return the rates of ∂ₜσ = κσ″ − (σΦ₀′ + ρΦ₁′)′, Φ = (1/β)φ(k∗ρ), by Fourier differentiation on a grid of
    angles."""
    beta, unnormalized = equilibria.beta, equilibria.slope(np.array([2.0]))[0] == 1
    angle = 2 * np.pi * np.arange(cells) / cells
    fit = np.polynomial.Chebyshev.fit(equilibria.nodes, point.log_density, 100, domain=[-1, 1])
    rho = np.exp(fit(np.cos(angle)))
    kernel = np.exp(beta * (np.cos(angle[:, None] - angle) - (not unnormalized))) / cells
    waves = np.fft.fftfreq(cells, 1 / cells) * (np.arange(cells) != cells // 2)
    derivative = np.real(np.fft.ifft(1j * waves[:, None] * np.fft.fft(np.eye(cells), axis=0), axis=0))
    normalizer = kernel @ rho
    slope = np.ones(cells) if unnormalized else 1 / normalizer
    force = derivative @ (normalizer if unnormalized else np.log(normalizer)) / beta
    change = derivative @ (slope[:, None] * kernel) / beta
    linear = point.noise * derivative @ derivative - derivative @ (np.diag(force) + rho[:, None] * change)
    found = np.sort(np.real(np.linalg.eigvals(linear)))[::-1]
    return np.delete(found, np.argsort(np.abs(found))[:3])  # mass, rotation, and the highest wave


@pytest.mark.parametrize(("degree", "normalization", "steps"), [(1, "unnormalized", 5), (2, "softmax", 20)])
def test_rates_on_the_circle_are_those_of_the_linearized_equation(degree, normalization, steps):
    equilibria = Equilibria(2, 4.0, normalization)
    point = follow(equilibria, degree, steps=steps).equilibria[-1]
    expected = rates_of_the_linearized_equation(equilibria, point, 96)
    found = np.sort(np.concatenate(point.rates))[::-1]
    # relative to the largest of all rates, as the rounding of the eigenvalues is
    assert found[:6] == pytest.approx(expected[:6], abs=1e-13 * np.abs(expected).max())
    assert point.unstable + point.unstable_across == (expected > 1e-9).sum() > 0


def test_small_positive_rates_are_no_bifurcation():
    """Four clusters, β = 15: the mass exchange of adjacent clusters has a positive rate below 1e-7."""
    equilibria = Equilibria(2, 15.0)
    branch = follow(equilibria, degree=4)
    assert branch.bifurcations == branch.folds == branch.unlocated == ()
    assert {(point.unstable, point.unstable_across) for point in branch.equilibria[1:]} == {(3, 3)}
    point = branch.equilibria[-1]
    expected = rates_of_the_linearized_equation(equilibria, point, 240)
    found = np.sort(np.concatenate(point.rates))[::-1]
    assert found[:6] == pytest.approx(expected[:6], abs=1e-13 * np.abs(expected).max())
    assert 2e-8 < point.rates[1][2] < 1e-7


def test_signs_of_rates_that_are_exponentially_small():
    """Two clusters, β = 30, exchange mass at a rate below rounding, whose sign is known, since I − K is regular.

    The clusters attract each other at a rate whose sign is lost, which counts neither as positive nor as negative.
    """
    branch = follow(Equilibria(2, 30.0), degree=2)
    last = branch.equilibria[-1]
    assert 0 < last.fastest < 1e-20
    assert (last.unstable, last.unknown) == (1, 0)
    assert (last.unstable_across, last.unknown_across) == (0, 1)
    assert (branch.bifurcations, branch.unlocated) == ((), ())


@pytest.mark.parametrize(("dimension", "normalization"), [(2, "softmax"), (3, "unnormalized"), (8, "softmax")])
def test_margins_do_not_depend_on_the_nodes(dimension, normalization):
    """Margins differ by no more than their stated error."""
    found = []
    for nodes in (96, 120):
        equilibria = Equilibria(dimension, 6.0, normalization, nodes=nodes)
        if not found:
            point = follow(equilibria, degree=2, steps=14).equilibria[-1]
            fit = np.polynomial.Chebyshev.fit(equilibria.nodes, point.log_density, 60, domain=[-1, 1])
        u = fit(equilibria.nodes)
        for _ in range(4):
            residual, by_u, _ = equilibria.residual(u, point.noise)
            u = u - np.linalg.solve(by_u, residual)
        found.append(equilibria.equilibrium(u, point.noise).spectra)
    for one, other in zip(*found, strict=True):
        assert np.abs(one.margins[:20] - other.margins[:20]).max() < one.error


def test_a_bifurcation_about_the_same_axis():
    """The equations that continue the branch are singular at the bifurcation, which is located to ten digits all the
    same."""
    found = [follow(Equilibria(64, 10.0, "unnormalized", nodes=nodes), degree=2).bifurcations for nodes in (128, 160)]
    ((one,), (again,)) = found
    assert one.order == again.order == 0
    assert one.state.noise == pytest.approx(again.state.noise, rel=1e-9)
    assert np.abs(one.state.spectra[0].margins).min() < 1e-9
