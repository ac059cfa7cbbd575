"""Convergence of a case: comparison with an exact growth, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from meanfield.analysis.convergence import convergence_of
from meanfield.case.errors import CaseError
from meanfield.case.load import load
from meanfield.cli.parser import main
from meanfield.running import run_in_memory

CHANGES = ["time.end=1.0", "output.samples=2", "output.snapshots=1"]


def test_estimates_are_the_errors_against_a_much_finer_mesh() -> None:
    """The entropy of the exact flow at β = 0 on the circle is of second order in the cells."""
    case = load("flow_beta0_circle", [*CHANGES, "domain.resolution=128"])
    study = convergence_of(case, of="entropy")
    assert study.resolutions == (32, 64, 128)
    fine = run_in_memory(case.replace({"domain.resolution": 512})).diagnostics["entropy"][-1]
    own = run_in_memory(case).diagnostics["entropy"][-1]
    assert study.estimate == pytest.approx(abs(own - fine), rel=0.5)  # preasymptotic order
    assert study.orders[-1] == pytest.approx(2.0, abs=0.5)


def test_the_command_prints_draws_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convergence", "flow_beta0_circle", "--values", "16,24,32", "--of", "entropy", "--set", *CHANGES]
    assert main([*words, "-o", str(tmp_path / "orders.png")]) == 0
    out = capsys.readouterr().out
    assert "entropy at the end with domain.resolution = 32: error about" in out
    assert (tmp_path / "orders.png").read_bytes().startswith(b"\x89PNG")
    for changed, message in (
        (["--values", "16,8,32"], "--values 16,8,32: expected at least 3 increasing integers"),
        (["--of", "mas"], '--of = "mas": expected one of mass, entropy'),
        (["--over", "attention.beta"], '--over = "attention.beta": expected a key that is an integer'),
        (["--values", "1,x"], "1,x: expected integers, such as 32,64,128"),
    ):
        assert main([*words, *changed]) == 2
        assert message in capsys.readouterr().err


def test_all_cases_are_checked_before_the_first_runs() -> None:
    with pytest.raises(CaseError, match=r"domain\.resolution = 2"):
        convergence_of(load("flow_beta0_circle", CHANGES), values=(2, 4, 8))


def test_a_vector_is_measured_by_its_length() -> None:
    study = convergence_of(load("flow_beta0_circle", CHANGES), values=(16, 32, 64), of="centroid")
    assert np.isfinite(study.estimate)
    assert study.estimate > 0
