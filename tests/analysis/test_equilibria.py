"""Stationary densities: linear theory at their root, known folds, exact states at β → 0, stability beside a fold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

from meanfield.analysis.continuation import follow
from meanfield.analysis.equilibria import Equilibria
from meanfield.model.linear_stability import continuous_up_to, critical_noise, growth_rates, transition_coefficient


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(("dimension", "beta"), [(2, 4.0), (3, 2.0), (8, 3.0), (64, 5.0)])
def test_the_uniform_density_has_the_rates_of_linear_theory(dimension, beta, normalization):
    """By Funk–Hecke; the discretization differs from it by rounding, of the largest of its rates."""
    equilibria = Equilibria(dimension, beta, normalization)
    critical = equilibria.critical_noise(1)
    assert critical == pytest.approx(critical_noise(dimension, beta, normalization), rel=1e-12)
    uniform = equilibria.equilibrium(np.zeros_like(equilibria.nodes), critical / 2)
    rates = growth_rates(dimension, beta, np.arange(1, 33), normalization, critical / 2)
    assert uniform.fastest == pytest.approx(rates.max(), rel=1e-9)
    assert uniform.unstable == (rates > 0).sum()


def test_fold_of_unnormalized_attention_on_the_circle():
    """β = 4: 1.0588772 of the critical noise, 0.54712795 long, from an iteration on Fourier coefficients."""
    [fold] = follow(Equilibria(2, 4.0, "unnormalized")).folds
    assert fold.noise == pytest.approx(2.58351872782, rel=1e-10)
    assert fold.order == pytest.approx(0.54712795, abs=1e-8)
    assert abs(fold.fastest) < 1e-9  # a fold is where a rate passes zero


@pytest.mark.parametrize(("dimension", "beta"), [(2, 3.0), (16, 3.0)])
def test_folds_do_not_depend_on_the_nodes(dimension, beta):
    folds = [follow(Equilibria(dimension, beta, "unnormalized", nodes=nodes)).folds for nodes in (96, 160)]
    assert [len(found) for found in folds] == [1, 1]
    assert folds[0][0].noise == pytest.approx(folds[1][0].noise, rel=1e-9)


@pytest.mark.parametrize("dimension", [2, 3])
def test_there_is_a_fold_from_where_the_transition_is_discontinuous(dimension):
    """β* of 2606.05140, which the coefficient of the expansion about the uniform density has as its zero."""
    limit = continuous_up_to(dimension)
    for beta, folds in ((0.9 * limit, 0), (1.2 * limit, 1)):
        assert len(follow(Equilibria(dimension, beta, "unnormalized")).folds) == folds


@pytest.mark.parametrize(("dimension", "beta"), [(2, 2.0), (8, 2.0)])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_branches_begin_as_the_expansion_says(dimension, beta, normalization):
    """1 = κ#/κ + C a² + O(a⁴) for ρ̄(1 + a⟨x, e⟩ + …), of which ∫⟨x, e⟩ρ is a/d."""
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
    assert follow(equilibria, least=0.0).end == "64 nodes do not resolve the density beyond it"
    few = follow(equilibria, steps=3)
    assert (few.end, len(few.equilibria)) == ("3 steps", 4)
