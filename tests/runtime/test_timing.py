"""Measured times of a step and a sample, and the names of diagnostics that take longer than a step."""

import re
from time import sleep

import pytest

import meanfield as mf
from meanfield.cli.parser import main
from meanfield.components.component import LOADED
from meanfield.domains.sphere.diagnostics import DIAGNOSTICS
from meanfield.runtime.timing import as_seconds, timing

FEW = ["domain.resolution=32", "attention.beta=2"]


def test_check_measures_when_it_is_asked(capsys):
    assert main(["check", "metastable_circle", "--set", *FEW]) == 0
    assert "# a step" not in capsys.readouterr().out
    assert main(["check", "metastable_circle", "--time", "--set", *FEW]) == 0
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(r"# a step        about [\d.]+ [mµ]?s, of 20 from t = 0 to [\d.e-]+", lines[0])
    assert re.match(r"# a sample      about [\d.]+ [mµ]?s, [\d.e+]+ of a step", lines[1])


def test_a_diagnostic_that_takes_longer_than_a_step_is_named():
    before, table = dict(LOADED), dict(DIAGNOSTICS)

    @mf.component("diagnostic")
    def slow(x, mass):
        sleep(0.2)
        return mass.sum()

    try:
        mf.load_components(slow)
        case = mf.load_case("metastable_circle", FEW).replace({"output.diagnostics": ["mass", "slow"]})
        sample = timing(case)[1]
    finally:
        LOADED.clear()
        LOADED.update(before)
        DIAGNOSTICS.clear()
        DIAGNOSTICS.update(table)
    assert re.search(r"longer than a step: slow 2\d\d ms$", sample), sample


def test_a_state_that_becomes_non_finite_is_said():
    """x ↦ x + 10³⁰ Ax exceeds the range of numbers within eleven layers."""
    layers = ["time.method=layers", "time.step=1", "time.layers=30", "domain.count=4", "attention.beta=1e-3"]
    explosion = ["stabilizers.layer_norm=none", "domain.dimension=2", "attention.value=[[1e30,0],[0,1e30]]"]
    (line,) = timing(mf.load_case("tokens_high_dimension", [*layers, *explosion]))
    assert re.match(r"a step        not measured: .*the state is not finite", line)


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (4.1e-3, "4.1 ms"), (5.7e-5, "57 µs"), (2e-8, "20 ns")]
)
def test_units(seconds, text):
    assert as_seconds(seconds) == text
