"""Cut of the circle's axis at an angle without tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.run_data import LINEAR, particles, run_data

from meanfield.figures.figure import panel
from meanfield.figures.panels.cut import with_cut
from meanfield.figures.particles.circle import draw_angles
from solvers.mesh.mesh import circle

CELLS = 96


def bump(angle: float) -> np.ndarray:
    """Return a density (cells,) concentrated at an angle."""
    density = np.exp(40 * (np.cos((np.arange(CELLS) + 0.5) * 2 * np.pi / CELLS - angle) - 1))
    return density / (density.sum() * 2 * np.pi / CELLS)


@pytest.mark.parametrize(
    ("angle", "cut"), [(0.0, -np.pi), (np.pi, 0.0), (0.1, -np.pi), (np.pi / 2, 0.0), (-np.pi / 8, -np.pi)]
)
def test_the_cut_is_away_from_the_mass(angle: float, cut: float) -> None:
    data = run_data(circle(CELLS), LINEAR, density=lambda k: bump(angle))
    assert with_cut(data, [0, 40]).cut == pytest.approx(cut, abs=1e-15)


@pytest.mark.parametrize("angle", np.linspace(0, 6, 13))
def test_densities_keep_their_angles(angle: float) -> None:
    data = run_data(circle(CELLS), LINEAR, density=lambda k: bump(angle))
    opened = with_cut(data, [0])
    assert opened.coordinate is not None
    middles = (opened.coordinate.edges[1:] + opened.coordinate.edges[:-1]) / 2
    highest = middles[opened.density(0).argmax()]
    assert abs((highest - angle + np.pi) % (2 * np.pi) - np.pi) <= np.pi / CELLS * (1 + 1e-9)  # half a cell


def test_the_densest_moment_decides() -> None:
    data = run_data(circle(CELLS), LINEAR, density=lambda k: bump(0.0) if k == 40 else bump(np.pi / 2))
    assert with_cut(data, [0, 39]).cut == 0
    assert with_cut(data, [0, 39, 40]).cut == pytest.approx(-np.pi)


def test_a_uniform_density_and_other_domains_keep_their_axes() -> None:
    assert with_cut(run_data(circle(CELLS), LINEAR, density=lambda k: np.ones(CELLS)), [0]).cut == 0


def test_a_pair_that_merges_at_angle_0_is_one_in_the_picture() -> None:
    data = run_data(circle(CELLS), LINEAR, density=lambda k: (bump(1 - k / 40) + bump(k / 40 - 1)) / 2)
    ax = Figure().subplots()
    panel(data, ax, ["density"])
    assert ax.get_ylim() == pytest.approx((-np.pi, np.pi))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["−π", "−π/2", "0", "π/2", "π"]
    assert abs(int(ax.collections[0].get_array()[:, -1].argmax()) - CELLS // 2) <= 1


def test_tokens_are_drawn_around_the_same_cut() -> None:
    made = particles(2, 2)
    assert made.particles is not None

    def positions(k: int) -> np.ndarray:
        angles = np.array([1.0, -1.0]) * (1 - k / 40)
        return np.column_stack([np.cos(angles), np.sin(angles)])

    ax = Figure().subplots()
    draw_angles(ax, replace(made, particles=replace(made.particles, positions=positions)))
    low, high = ax.get_ylim()
    assert low == pytest.approx(-high)
    ends = [line[-1, 1] for line in ax.collections[0].get_segments()]
    assert any(abs(end) < 1e-12 for end in ends)
