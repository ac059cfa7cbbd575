"""The mass of the values that an equation prepares: summed once, never that of another array or time."""

import threading

import numpy as np
import pytest

from solvers import Equation, sphere
from solvers.terms.mass import CachedSummary, mass_of


@pytest.fixture
def mesh():
    return sphere(8)


def counted(monkeypatch, mesh):
    calls, summary = [], mesh.backend.summary
    monkeypatch.setattr(mesh.backend, "summary", lambda *arguments: calls.append(arguments) or summary(*arguments))
    return calls


def test_values_that_are_prepared_are_added_up_once(monkeypatch, mesh):
    calls, values = counted(monkeypatch, mesh), np.arange(1.0, mesh.cells + 1)
    with CachedSummary(values):
        assert mass_of(mesh, values) == mass_of(mesh, values) == pytest.approx(mesh.volumes @ values, rel=1e-14)
        assert len(calls) == 1
        other = sphere(8)  # the same volumes, which are not compared
        assert mass_of(other, values) == mass_of(mesh, values)
        assert len(calls) == 3
        assert mass_of(mesh, 2 * values) == pytest.approx(2 * mesh.volumes @ values, rel=1e-14)


def test_changed_values_have_another_mass(mesh):
    values = np.ones(mesh.cells)
    for factor in (1.0, 3.0):
        values *= factor
        with CachedSummary(values):
            assert mass_of(mesh, values) == pytest.approx(4 * np.pi * factor, rel=1e-13)
    values *= 2.0
    assert mass_of(mesh, values) == pytest.approx(24 * np.pi, rel=1e-13)


def test_an_equation_within_a_term_of_another_keeps_both_masses(mesh):
    values, within = np.ones(mesh.cells), 2.0 * np.ones(mesh.cells)
    inner, found = Equation(mesh, [lambda t, u: np.zeros_like(u)]), []

    class Nested:
        def prepare(self, time, values):
            found.append(mass_of(mesh, values))
            inner.prepare(time, within)
            found.append(mass_of(mesh, values))
            return np.inf

        def rate(self, dt, rate):
            pass

    Equation(mesh, [Nested()]).prepare(0.0, values)
    assert found == [mass_of(mesh, values)] * 2


def test_threads_prepare_apart(mesh):
    values, found = np.ones(mesh.cells), []
    with CachedSummary(values):
        mass_of(mesh, values)
        values *= 2.0  # a forbidden change, which shows whose sum is found
        thread = threading.Thread(target=lambda: found.append(mass_of(mesh, values)))
        thread.start()
        thread.join()
        assert found[0] == pytest.approx(2 * mass_of(mesh, values), rel=1e-13)


@pytest.mark.filterwarnings("ignore:invalid value encountered in add")  # ∞ − ∞ of lost values
@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_lost_is_found_by_the_mass(mesh, lost):
    equation, values = Equation(mesh, [lambda t, u: np.zeros_like(u)]), np.ones(mesh.cells)
    assert equation.prepare(0.0, values) == np.inf
    values[7] = lost
    assert np.isnan(equation.prepare(0.0, values))
    values[8] = -lost
    assert np.isnan(equation.prepare(0.0, values))


def test_a_mass_beyond_numbers_is_named(mesh):
    equation, values = Equation(mesh, [lambda t, u: np.zeros_like(u)]), np.full(mesh.cells, 1.7e308)
    assert np.isnan(equation.prepare(0.0, values))
    assert "beyond the range of numbers" in equation.lost_in(0.0, values)
