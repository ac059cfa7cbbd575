"""Tracks of recorded atoms: by identity, independent of the samples."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.analysis.atoms import tracks_of_atoms
from meanfield.analysis.mergers import lifetimes, merger_tree
from meanfield.domains.atoms.events import present_clusters

NONE = [-1, -1]


def on_circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def run_with(times, masses, angles, parents):
    columns = {"time": times, "mass": masses, "center": on_circle(*angles), "parents": parents}
    return SimpleNamespace(path="run.h5", events={name: np.array(values, float) for name, values in columns.items()})


def samples(*rows, width):
    """Return masses (samples, width) and centers (samples, width, 2) of lists of (mass, angle), heaviest first."""
    masses, centers = np.full((len(rows), width), np.nan), np.full((len(rows), width, 2), np.nan)
    for k, row in enumerate(rows):
        for column, (mass, angle) in enumerate(row):
            masses[k, column], centers[k, column] = mass, on_circle(angle)[0]
    return masses, centers


# Masses of atoms 0 to 3, then of 2 and 3 merged into 4, then of 0 and 4 merged into 5.
CHAIN = [0.4, 0.3, 0.2, 0.1, 0.3, 0.7]
PARENTS = [NONE, NONE, NONE, NONE, [2, 3], [0, 4]]


def test_atoms_that_touch_between_two_samples_are_followed_through_both_mergers():
    """Atom 3 joins 2 at t = 1.2, and 2 joins 0 at 1.4; samples at t = 1 and 2 show four atoms, and two."""
    run = run_with([0.5] * 4 + [1.2, 1.4], CHAIN, [0.0, 3.0, 0.5, 0.7, 0.6, 0.2], PARENTS)
    rows = [[(0.4, 0.0), (0.3, 3.0), (0.3, 0.6)], [(0.4, 0), (0.3, 3), (0.2, 0.5), (0.1, 0.7)], [(0.7, 0.2), (0.3, 3)]]
    tracks = tracks_of_atoms(run, np.array([0.0, 1.0, 2.0]), *samples(*rows, width=5))
    assert tracks.times.tolist() == [0.0, 0.5, 1.0, 2.0]
    assert tracks.counts.tolist() == [3, 4, 4, 2]
    first, second = merger_tree(tracks)
    assert (first.since, first.time, second.since, second.time) == (1.2, 1.2, 1.4, 1.4)
    assert (first.masses, second.masses) == ((0.2, 0.1), (0.4, pytest.approx(0.3)))
    assert [(one.before, one.after) for one in (first, second)] == [(4, 3), (3, 2)]
    assert first.into == second.into  # the only one of the three in the next sample
    assert {first.source, second.source, second.into} == {0, 2, 3} or {first.source, second.source} < {0, 1, 2, 3}
    assert [(one.count, one.start, one.stop) for one in lifetimes(tracks)] == [
        (3, 0.0, 0.0), (4, 0.5, 1.2), (3, 1.2, 1.4), (2, 1.4, 2.0),
    ]  # fmt: skip


def test_a_sample_of_the_time_of_two_mergers_may_show_the_first_alone():
    run = run_with([0.5] * 4 + [1.0, 1.0], CHAIN, [0.0, 3.0, 0.5, 0.7, 0.6, 0.2], PARENTS)
    rows = [[(0.4, 0.0), (0.3, 3.1), (0.3, 0.61)], [(0.7, 0.2), (0.3, 3.2)]]
    tracks = tracks_of_atoms(run, np.array([1.0, 2.0]), *samples(*rows, width=5))
    assert tracks.counts.tolist() == [4, 2, 2]
    still = next(one for one in tracks.tracks if one.masses[0] == 0.3)
    np.testing.assert_allclose(still.centers, on_circle(3.0, 3.1, 3.2))
    assert len(merger_tree(tracks)) == 2


def test_atoms_beyond_the_recorded_ones_are_where_they_were():
    """Samples with two columns hold the heaviest two of four atoms, later both remaining ones."""
    run = run_with([0.5] * 4 + [1.2, 1.4], CHAIN, [0.0, 3.0, 0.5, 0.7, 0.6, 0.2], PARENTS)
    rows = [[(0.4, 0.1), (0.3, 3.1)], [(0.7, 0.2), (0.3, 3.2)]]
    tracks = tracks_of_atoms(run, np.array([1.0, 2.0]), *samples(*rows, width=2))
    assert tracks.counts.tolist() == [4, 4, 2]
    lightest = next(one for one in tracks.tracks if one.masses[0] == 0.1)
    np.testing.assert_allclose(lightest.centers, on_circle(0.7, 0.7))
    assert [one.masses for one in merger_tree(tracks)] == [(0.2, 0.1), (0.4, 0.3)]


def test_events_after_the_last_sample_are_left_out():
    """A run in progress has such events: events are written at once, samples may wait."""
    run = run_with([0.5] * 4 + [1.2, 1.4], CHAIN, [0.0, 3.0, 0.5, 0.7, 0.6, 0.2], PARENTS)
    rows = samples([(0.4, 0.0), (0.3, 3.0), (0.3, 0.6)], width=5)
    assert tracks_of_atoms(run, np.array([0.2]), *rows) is None
    assert tracks_of_atoms(run, np.empty(0), *samples(width=5)) is None
    tracks = tracks_of_atoms(run, np.array([1.3]), *rows)
    assert (tracks.counts.tolist(), len(tracks.mergers)) == ([4, 3], 1)


@pytest.mark.parametrize("parents", [[[0, 1]], [NONE, NONE, [0, 0]], [NONE, NONE, [0, 2]], [NONE, NONE, [1, 0], NONE]])
def test_parents_that_are_not_present_are_refused(parents):
    with pytest.raises(ValueError, match=r"."):
        present_clusters(parents)


def test_a_new_atom_has_the_place_of_its_first_parent():
    assert present_clusters([NONE, NONE, NONE, [0, 2], [3, 1]]) == [[0], [0, 1], [0, 1, 2], [3, 1], [4]]
