"""Command selftest: it names a check that fails. All checks pass in a command of the README (test_readme.py)."""

import pytest

from meanfield.cli.parser import main
from meanfield.results import selftest


def test_what_fails_is_named(capsys, monkeypatch):
    monkeypatch.setattr(selftest, "CHECKS", {"good": (lambda: 0.0, 0.0), "bad": (lambda: float("nan"), 1.0)})
    assert main(["selftest"]) == 1
    out = capsys.readouterr().out
    assert out == "ok     good: error 0.0e+00, at most 0\nFAILED bad: error nan, at most 1\n1 failed: bad\n"


@pytest.mark.parametrize(
    ("check", "changed"),
    [("growth", "attention.beta=7"), ("pair", "attention.beta=4.1"), ("blow_up", "attention.beta=1.1")],
)
def test_a_wrong_answer_is_found(check, changed, monkeypatch):
    """Every check has its own exact solution: other physics exceeds the limit."""
    load = selftest.load_case
    monkeypatch.setattr(selftest, "load_case", lambda name, changes: load(name, [*changes, changed]))
    limits = {function.__name__: limit for function, limit in selftest.CHECKS.values()}
    assert getattr(selftest, check)() > 3 * limits[check]
