"""Branches of cases: the command's text, JSON and figure, what it refuses, and a run on either side of a fold."""

from __future__ import annotations

import json

import pytest

from meanfield.analysis.branch import branch_of
from meanfield.case.load import load
from meanfield.cli.parser import main

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
        (["heads"], "attention: expected one head whose matrices are multiples of the identity"),
        (["noise_below", "--degree", "0"], "0: expected an integer from 1 to 32"),
    ],
)
def test_refusals(arguments, line, capsys):
    assert main(["branch", *arguments]) == 2
    assert line in capsys.readouterr().err
