"""Branches of cases: the command's text, JSON and figure, what it refuses, and a run on either side of a fold."""

from __future__ import annotations

import json

import pytest

from meanfield.analysis.branches.branch import branch_of, report
from meanfield.case.load import load
from meanfield.cli.parser import main
from meanfield.figures.branch import plot_branch

OVER_BETA = ["noise_below", "--over", "attention.beta"]
CIRCLE = ["attention.beta=4", "attention.normalization=unnormalized"]


def test_text_and_figure(capsys, tmp_path):
    path = tmp_path / "fold.png"
    assert main(["branch", "noise_below", "-o", str(path), "--set", *CIRCLE]) == 0
    text = capsys.readouterr().out
    assert "fold             2.5835187 = 1.0588772 of it, mean token 0.5471280 long" in text
    assert path.stat().st_size > 10_000


def test_json_is_that_of_the_branch(capsys):
    assert main(["branch", "noise_below", "--json", "--set", *CIRCLE]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folds"][0]["noise"] == pytest.approx(2.58351872782, rel=1e-10)
    assert len(found["equilibria"]) > 20


def test_a_branch_over_beta(tmp_path):
    """At κ = 2.55 ordered states reach down to β = 3.98, where the uniform density is stable to 4.07."""
    found = branch_of(load("noise_below", [*CIRCLE, "stabilizers.noise=2.55"]), over="attention.beta")
    text = report(found)
    assert "critical beta    4.0668454" in text  # I₁(β) = κβ
    assert "fold             3.9815676" in text
    assert (found.uniform_is_stable(below=True), found.uniform_is_stable(below=False)) == (True, False)
    assert plot_branch(found, tmp_path / "beta.png").stat().st_size > 10_000


def test_a_faster_clock_and_another_radius_scale_the_noise():
    """Rescaled attention is slower by e^{−β}; on a sphere of radius 2 β counts 4 times and κ a quarter."""
    plain = branch_of(load("noise_below", [*CIRCLE]))
    slower = branch_of(load("noise_below", [*CIRCLE, "attention.rescaled=true"]))
    larger = branch_of(load("noise_below", ["attention.beta=1", CIRCLE[1], "stabilizers.scale=2"]))
    assert slower.unit == pytest.approx(plain.unit * 2.718281828459045**-4)
    assert larger.unit * larger.branch.folds[0].noise == pytest.approx(4 * plain.branch.folds[0].noise)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["noise_below", "--set", "attention.beta=0"], "attention.beta = 0: expected another number"),
        (["noise_below", "--set", "attention.value=[[-1.0, 0.0], [0.0, -1.0]]"], "degree 1: expected one that grows"),
        (["noise_below", "--set", "attention.normalization=sinkhorn"], 'expected "softmax" or "unnormalized"'),
        (
            ["noise_below", "--over", "attention.beta", "--set", "stabilizers.noise=0"],
            "stabilizers.noise = 0.0: expected",
        ),
        (
            ["noise_below", "--over", "attention.beta", "--set", "stabilizers.noise=0.6"],
            "neutral at some beta at noise",
        ),
        (["heads"], "attention: expected one head whose matrices are multiples of the identity"),
        (["noise_below", "--degree", "0"], "0: expected an integer from 1 to 32"),
    ],
)
def test_refusals(arguments, line, capsys):
    assert main(["branch", *arguments]) == 2
    assert line in capsys.readouterr().err
