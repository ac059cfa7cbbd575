"""Branches of cases: the command's text, JSON and figure, refusals, and runs on both sides of a fold."""

from __future__ import annotations

import json

import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.branches.branch import branch_of, report
from meanfield.analysis.branches.continuation import follow
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.branches.varied import NoiseParameter
from meanfield.case.load import load
from meanfield.cli.parser import main
from meanfield.figures.figure import plot_result

OVER_BETA = ["noise_below", "--over", "attention.beta"]
CIRCLE = ["attention.beta=4", "attention.normalization=unnormalized"]


def test_text_and_figure(capsys, tmp_path):
    path = tmp_path / "fold.png"
    assert main(["branch", "noise_below", "-o", str(path), "--set", *CIRCLE]) == 0
    text = capsys.readouterr().out
    assert "fold             2.5835187 = 1.0588772 times critical, mean token length 0.5471280" in text
    assert path.stat().st_size > 10_000


def test_json_is_that_of_the_branch(capsys):
    assert main(["branch", "noise_below", "--json", "--set", *CIRCLE]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folds"][0]["noise"] == pytest.approx(2.58351872782, rel=1e-10)
    assert len(found["equilibria"]) > 20


@pytest.mark.parametrize("degree", [0, -1, 1.5, 33])
def test_degrees_that_are_refused(degree, capsys):
    with pytest.raises(mf.CaseError, match=rf"^degree = {degree}: expected an integer from 1 to 32$"):
        mf.branch("noise_below", degree=degree)
    assert main(["branch", "noise_below", f"--degree={degree}"]) == 2
    assert f"{degree}: expected an integer from 1 to 32" in capsys.readouterr().err


def test_the_same_in_python():
    found = mf.branch(mf.load_case("noise_below", CIRCLE))
    assert found.branch.folds[0].noise == pytest.approx(2.58351872782, rel=1e-10)
    assert str(found) == report(found)


def test_a_branch_over_beta(tmp_path):
    """Ordered states at κ = 2.55 exist down to β = 3.98, where the uniform density is stable up to 4.07."""
    found = branch_of(load("noise_below", [*CIRCLE, "stabilizers.noise=2.55"]), over="beta")
    text = report(found)
    assert "critical beta    4.0668454" in text  # I₁(β) = κβ
    assert "fold             3.9815676" in text
    assert (found.uniform_is_stable(below=True), found.uniform_is_stable(below=False)) == (True, False)
    assert plot_result(found, tmp_path / "beta.png").stat().st_size > 10_000


def test_a_faster_clock_and_another_radius_scale_the_noise():
    """Rescaled attention is slower by e^{−β}; on a sphere of radius 2 β counts 4 times and κ a quarter."""
    plain = branch_of(load("noise_below", [*CIRCLE]))
    slower = branch_of(load("noise_below", [*CIRCLE, "attention.rescaled=true"]))
    larger = branch_of(load("noise_below", ["attention.beta=1", CIRCLE[1], "stabilizers.scale=2"]))
    assert slower.unit == pytest.approx(plain.unit * 2.718281828459045**-4)
    assert larger.unit * larger.branch.folds[0].noise == pytest.approx(4 * plain.branch.folds[0].noise)


def test_a_branch_over_beta_is_in_units_of_the_case():
    """β counts 2 · 1.5² times with Q = 2I on a sphere of radius 1.5: at its critical value κ is the critical noise."""
    case = load("noise_below", ["attention.query=[[2,0],[0,2]]", "stabilizers.scale=1.5"])
    critical = branch_of(case, over="beta").critical
    at_critical = mf.stability(case.replace({"attention.beta": critical}))
    assert at_critical.critical_noise == pytest.approx(case.stabilizers.noise, rel=1e-9)


def test_a_branch_over_the_strength_of_values(tmp_path):
    """States for V = v at noise κ are those for v = 1 at κ/v: the fold is at κ over that of the branch over noise."""
    over_noise = branch_of(load("noise_below", CIRCLE)).branch.folds[0]
    found = branch_of(load("noise_below", [*CIRCLE, "stabilizers.noise=2.5"]), over="attention.value")
    fold = found.branch.folds[0]
    assert found.parameter(fold) == pytest.approx(2.5 / over_noise.noise, rel=1e-9)
    assert (found.uniform_is_stable(below=True), found.uniform_is_stable(below=False)) == (True, False)
    again = branch_of(load("noise_below", [*CIRCLE, f"attention.value=[[{fold.value}, 0], [0, {fold.value}]]"]))
    assert again.branch.folds[0].noise == pytest.approx(2.5, rel=1e-9)
    assert f"fold             {2.5 / over_noise.noise:.8g} = " in report(found)
    assert plot_result(found, tmp_path / "value.png").stat().st_size > 10_000


def test_both_branches_of_an_even_degree_on_the_sphere():
    """The branches cross the uniform density: rings exist below the critical noise, two clusters also above it."""
    case = load("collapse_high_dimension", ["domain.dimension=3", "attention.beta=4"])
    more, less = (branch_of(case, 2, negative=negative) for negative in (False, True))
    assert [found.branch.equilibria[1].noise > found.critical for found in (more, less)] == [True, False]
    assert more.moment(more.branch.equilibria[-1]) > 0.8  # 1 for two points
    assert -0.5 < less.moment(less.branch.equilibria[-1]) < -0.4  # −½ for the equator


def test_where_other_branches_leave_the_ring():
    """Tokens of a ring gather at three points from the bifurcation of order 3 on, where a rate is zero."""
    found = [
        follow(NoiseParameter(Equilibria(3, 4.0, nodes=nodes)), 2, negative=True, min_ratio=0.55).bifurcations
        for nodes in (64, 96)
    ]
    ((one,), (again,)) = found
    assert one.order == again.order == 3
    assert one.state.noise == pytest.approx(again.state.noise, rel=1e-9)
    assert np.abs(one.state.rates[3]).min() < 1e-9 * one.state.noise
    text = report(
        branch_of(load("collapse_high_dimension", ["domain.dimension=3", "attention.beta=4"]), 2, negative=True)
    )
    assert "bifurcation      0.065586741 = 0.6003409 times critical, to states of order 3 about the axis" in text


@pytest.mark.parametrize("case", ["metastable_circle", "metastable_sphere", "uniform"])
def test_two_clusters_of_shipped_cases(case, capsys):
    """The clusters exchange mass at an exponentially small rate, which is positive all along the branch."""
    assert main(["branch", case, "--degree", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["not_located"] == []
    assert {state["unstable"] for state in found["equilibria"][-20:]} == {1}
    assert found["end"] == "noise below 0.3 of the critical one"


def test_unknown_signs_are_stated():
    text = report(branch_of(load("metastable_circle", ["attention.beta=30"]), 2))
    assert text.splitlines()[-1].startswith("1 to 2: one rate is positive, the sign of another is below rounding")
    assert any(line.endswith("0 to 1") for line in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["noise_below", "--set", "attention.beta=0"], "attention.beta = 0: expected a nonzero number"),
        (["noise_below", "--set", "attention.value=[[-1.0, 0.0], [0.0, -1.0]]"], "degree 1: expected one that grows"),
        (["noise_below", "--set", "attention.normalization=sinkhorn"], 'expected "softmax" or "unnormalized"'),
        (
            ["noise_below", "--over", "attention.beta", "--set", "stabilizers.noise=0"],
            "stabilizers.noise = 0.0: expected",
        ),
        (
            ["noise_below", "--over", "attention.beta", "--set", "stabilizers.noise=2.4", "stabilizers.scale=2"],
            "neutral at some beta, at the noise of the case",  # 2.4, or 2.4/2² on the unit sphere
        ),
        (["heads"], "attention: expected one head whose matrices are multiples of the identity"),
        (["noise_below", "--degree", "0"], "0: expected an integer from 1 to 32"),
    ],
)
def test_refusals(arguments, line, capsys):
    assert main(["branch", *arguments]) == 2
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(
    ("beta", "words"),
    [(0.5, "no fold: the transition is continuous along this branch"), (17.507, "so the transition is not continuous")],
)
def test_a_branch_without_folds_says_on_which_side_of_the_critical_noise_it_lies(beta: float, words: str) -> None:
    """The transition with unnormalized attention on the sphere is discontinuous from β = 1.815 on (2606.05140v1)."""
    case = load("uniform", [f"attention.beta={beta}", 'attention.normalization="unnormalized"'])
    assert words in report(branch_of(case, 1))
