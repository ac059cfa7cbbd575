"""Designs of sweeps: Sobol points and Latin hypercubes, and ranges of whole numbers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from support.sweeping import CASE

from meanfield.case.errors import CaseError
from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.grid import MAX_POINTS, Range, plan

RANGES = """
[keys]
"attention.beta" = {from = 1.0, to = 9.0}
"stabilizers.noise" = {from = 0.01, to = 1.0, spacing = "log"}
"initial.seed" = {from = 0, to = 3, integer = true}
"""


def rows(design: str, points: int, seed: int = 0) -> np.ndarray:
    sweep = parse_sweep(f'design = "{design}"\npoints = {points}\nseed = {seed}\n{RANGES}{CASE}')
    return np.array([list(row.values()) for row in sweep.rows])


@pytest.mark.parametrize("design", ["sobol", "latin hypercube"])
def test_points_fill_every_key_evenly(design: str) -> None:
    """16 points: one in each sixteenth of each range, and each of four integers four times; the same for a seed."""
    found = rows(design, 16)
    fractions = np.array([(found[:, 0] - 1) / 8, np.log(found[:, 1] / 0.01) / np.log(100)])
    for column in fractions:
        assert sorted((16 * column).astype(int)) == list(range(16))
    assert np.bincount(found[:, 2].astype(int)).tolist() == [4] * 4
    np.testing.assert_array_equal(found, rows(design, 16))
    assert (found != rows(design, 16, seed=1)).any()
    assert len(rows(design, 11)) == 11


def test_sobol_points_fill_squares() -> None:
    """The 16 points have one in each square of a quarter by a quarter, for two keys of a scrambled (0, 4, 2)-net."""
    found = rows("sobol", 16)
    squares = 4 * ((found[:, 0] - 1) / 8 * 4).astype(int) + (np.log(found[:, 1] / 0.01) / np.log(100) * 4).astype(int)
    assert sorted(squares) == list(range(16))


def test_ranges_of_integers() -> None:
    """All integers occur without a count, different ones with a count; random ones are as frequent at the ends as
    between."""

    def values(text: str) -> list[int]:
        return [row["initial.seed"] for row in parse_sweep(f'[keys]\n"initial.seed" = {{{text}}}\n{CASE}').rows]

    assert values("from = 3, to = 7, integer = true") == [3, 4, 5, 6, 7]
    assert values('from = 1, to = 100, count = 8, spacing = "log", integer = true') == [1, 2, 4, 7, 14, 27, 52, 100]
    assert values("from = 1, to = 3, count = 9, integer = true") == [1, 2, 3]
    whole = Range(first=2, last=5, integer=True)
    assert [whole.drawn_at(k / 8) for k in range(8)] == [2, 2, 3, 3, 4, 4, 5, 5]
    by_factor = Range(first=1, last=3, spacing="log", integer=True)
    assert [by_factor.drawn_at(fraction) for fraction in (0.0, 0.5, 0.6, 1.0)] == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('design = "sobol"\n' + RANGES, 'points: missing; expected an integer >= 1 with design = "sobol"'),
        ('[keys]\n"initial.seed" = {from = 0.5, to = 3, integer = true}\n', "whole numbers from <= to"),
        ('[keys]\n"initial.seed" = {from = 0, to = 1000000, integer = true}\n', "1000001 integers; expected at most"),
    ],
)
def test_what_cannot_be_is_refused(text: str, expected: str) -> None:
    with pytest.raises(CaseError, match=expected):
        parse_sweep(text + CASE)


def test_many_points_take_little_memory() -> None:
    """Two values of 10⁴ points, of few distinct ones, take a pointer each, and the reserve of a growing list."""
    tracemalloc.start()
    try:
        _, rows = plan({"a": [1.5] * 100, "b": {"seeds": 100}}, "grid", None, 0, MAX_POINTS)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 3 * 8 * len(rows)
    assert rows[101] == {"a": 1.5, "b": 1}
    assert [row["b"] for row in rows[98:102]] == [98, 99, 0, 1]
