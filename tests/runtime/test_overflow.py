"""Diagnostics that exceed the range of numbers: infinite in the file, and stated wherever the run is described."""

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.analysis.info import describe, format_text
from meanfield.cli.parser import main
from meanfield.diagnostics.overflow import describe_overflow, overflows
from meanfield.figures.captions import facts
from meanfield.figures.figure import load
from meanfield.model.functionals import root_mean_square

CHANGES = ["domain.count=8", "time.end=8", "output.samples=17", "output.snapshots=3"]


@pytest.fixture(scope="module")
def blown_up(tmp_path_factory):
    path = tmp_path_factory.mktemp("overflow") / "blown_up.h5"
    mf.run(mf.load_case("representation_blow_up", CHANGES), path)
    return path


def test_energy_beyond_the_range_of_numbers_is_stated(blown_up):
    """|u| is about e^{0.8 t}, so that e^{|u|²} is the largest double at t = ½ log(709)/0.8 = 4.1."""
    facts_found = describe(blown_up)
    assert list(facts_found["overflow"]) == ["energy"]
    assert 4.0 <= facts_found["overflow"]["energy"] <= 5.0  # samples are 8/17 apart
    expected = "energy infinite (beyond 1.8e308) from t = 4.235 on"
    assert f"{'overflow':9} {expected}" in format_text(facts_found)
    assert expected.replace("4.235", "4.24") in facts(load(blown_up))  # captions have three digits
    with h5py.File(blown_up) as file:
        assert file["diagnostics/energy"].attrs["overflow"] == "inf where it exceeds 1.8e308"
        assert "overflow" not in file["diagnostics/speed"].attrs
        energy, times = file["diagnostics/energy"][:], file["diagnostics/time"][:]
    np.testing.assert_array_equal(np.isinf(energy), times >= 4.2)


def test_a_run_says_so_when_it_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    changes = [part for change in CHANGES for part in ("--set", change)]
    assert main(["run", "representation_blow_up", *changes]) == 0
    printed = "".join(capsys.readouterr())
    assert "representation_blow_up.h5: energy infinite (beyond 1.8e308) from t = 4.235 on" in printed


def test_nothing_is_said_of_finite_numbers(tmp_path):
    path = tmp_path / "finite.h5"
    mf.run(mf.load_case("representation_blow_up", [*CHANGES, "time.end=2"]), path)
    assert describe(path)["overflow"] == {}
    assert "infinite" not in format_text(describe(path))
    assert "infinite" not in " ".join(facts(load(path)))


def test_words_of_several_diagnostics():
    times = np.arange(4.0)
    columns = {
        "a": np.array([0.0, 1.0, np.inf, np.inf]),
        "b": np.array([[0.0, 0.0], [0.0, 0.0], [1.0, -np.inf], [np.nan, 0.0]]),
        "c": np.array([np.inf, 0.0, 0.0, 0.0]),
        "d": np.array([np.nan, 0.0, 0.0, 1e308]),
    }
    assert overflows(times, columns) == {"a": 2.0, "b": 2.0, "c": 0.0}
    assert describe_overflow(overflows(times, columns)) == (
        "c infinite (beyond 1.8e308) from t = 0 on, a and b infinite (beyond 1.8e308) from t = 2 on"
    )
    assert overflows(np.empty(0), {"a": np.empty(0), "b": np.empty((0, 3))}) == {}


def test_root_mean_square_whose_squares_are_out_of_range():
    masses, vectors = np.array([0.25, 0.75]), np.array([[3.0, 4.0], [0.0, 5.0]])
    rows = np.stack([vectors, 1e200 * vectors])
    np.testing.assert_allclose(root_mean_square(masses, rows), [5.0, 5e200], rtol=1e-15)
