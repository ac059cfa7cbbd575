"""Tracks of planted clusters: moves, mergers, births, crossings and any order of the samples."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from support.status import run

from meanfield.analysis.snapshot_clusters import counter
from meanfield.analysis.tracks import MAX_ANGLE, track, tracks_of
from meanfield.case.load import parse
from solvers.io.run_file import FileError, read

TWO_TOKENS = """
domain.manifold = "particles"
attention.beta = 1.0
initial = {kind = "points", points = [[1.0, 0.0], [0.76, 0.64]]}
time.end = 0.01
output = {snapshots = 1, samples = 1, diagnostics = ["clusters"]}
"""


def on_circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def unit(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def sampled(columns, seed=None, room=6):
    """Return times, masses and centers from lists of (mass, center) of each sample, heaviest first or shuffled."""
    random = np.random.default_rng(seed)
    masses = np.full((len(columns), room), np.nan)
    centers = np.full((len(columns), room, len(columns[0][0][1])), np.nan)
    for k, clusters in enumerate(columns):
        found = sorted(clusters, key=lambda one: -one[0])
        if seed is not None:
            random.shuffle(found)
        for place, (mass, center) in enumerate(found):
            masses[k, place], centers[k, place] = mass, center
    return np.arange(float(len(columns))), masses, centers


def planted(seed=3):
    """Return five drifting clusters on S²; 3 joins 1 after sample 5, then 1 joins 0 after 9; 4 appears at sample 2."""
    random = np.random.default_rng(seed)
    places = unit(np.array([[1, 0, 0], [0.75, 1, 0], [-1, 0, 0], [0.5, 1, 0.6], [0, 0, -1.0]]))
    masses = np.array([0.45, 0.2, 0.15, 0.1, 0.1])
    samples = []
    for k in range(14):
        here = []
        for number in range(5):
            if (number == 4 and k < 2) or (number == 3 and k > 5) or (number == 1 and k > 9):
                continue
            mass = masses[number] + (0.1 if number == 0 and k < 2 else 0.0)
            mass += masses[3] if number == 1 and k > 5 else 0.0
            mass += masses[1] + masses[3] if number == 0 and k > 9 else 0.0
            parts = [1, 3] if number == 1 and k > 5 else [0, 1, 3] if number == 0 and k > 9 else [number]
            mean = masses[parts] @ places[parts]
            drift = 0.03 * random.standard_normal(3)
            here.append((mass * random.uniform(0.97, 1.03), unit(unit(mean) + drift)))
        samples.append(here)
    return samples


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_planted_tracks_are_recovered(seed):
    tracks = track(*sampled(planted(), seed))
    lives = sorted((one.first, one.last) for one in tracks.tracks)
    assert lives == [(0, 5), (0, 9), (0, 13), (0, 13), (2, 13)]
    third = next(k for k, one in enumerate(tracks.tracks) if one.last == 5)
    first = next(k for k, one in enumerate(tracks.tracks) if one.last == 9)
    root = tracks.tracks[first].into
    assert tracks.tracks[third].into == first
    assert tracks.tracks[root].masses[-1] == pytest.approx(0.75, rel=0.03)
    np.testing.assert_array_equal(tracks.counts, [4] * 2 + [5] * 4 + [4] * 4 + [3] * 4)
    assert tracks.start(third) == 0.0
    assert tracks.stop(third) == 5.0


def test_identity_is_kept_when_clusters_cross_mass_rank():
    """The files' order swaps at the fourth sample without motion: two tracks remain, each at its position."""
    grows = [(0.3 + 0.05 * k, 0.7 - 0.05 * k) for k in range(9)]
    tracks = track(*sampled([[(a, on_circle(0.0)), (b, on_circle(2.0))] for a, b in grows]))
    assert len(tracks.tracks) == 2
    for one in tracks.tracks:
        angle = np.arctan2(one.centers[:, 1], one.centers[:, 0])
        np.testing.assert_allclose(angle, angle[0], atol=1e-12)
        np.testing.assert_allclose(one.masses, [pair[int(angle[0] > 1)] for pair in grows], rtol=1e-12)


def test_mass_tells_which_of_two_went_on():
    """B moves far into C while A moves to B's former position: position alone would merge B into A."""
    before = [(0.5, on_circle(0.0)), (0.1, on_circle(0.5)), (0.4, on_circle(1.2))]
    after = [(0.5, on_circle(0.28)), (0.5, on_circle(1.06))]
    tracks = track(*sampled([before, before, after, after]))
    by_mass = {round(float(one.masses[0]), 1): one for one in tracks.tracks}
    assert by_mass[0.5].last == 3
    assert by_mass[0.4].last == 3
    np.testing.assert_allclose(by_mass[0.4].centers[-1], on_circle(1.06))
    assert tracks.tracks[by_mass[0.1].into] is by_mass[0.4]


def test_a_cluster_follows_most_of_its_mass_though_a_fragment_is_nearer():
    """0.5 of 0.7 joins 0.3, and 0.2 stays behind, a new cluster: masses that double are no match by position."""
    before, after = [(0.7, on_circle(0.0)), (0.3, on_circle(1.0))], [(0.2, on_circle(0.05)), (0.8, on_circle(0.7))]
    tracks = track(*sampled([before, before, after, after]))
    assert [(one.first, one.last, one.into) for one in tracks.tracks] == [(0, 3, None), (0, 1, 0), (2, 3, None)]
    np.testing.assert_allclose(tracks.tracks[0].centers[-1], on_circle(0.7))


def test_a_merger_is_kept_by_the_heavier_though_the_lighter_is_nearer():
    before, after = [(0.7, on_circle(0.0)), (0.3, on_circle(0.8))], [(1.0, on_circle(0.5))]
    tracks = track(*sampled([before, before, after]))
    assert [(one.last, one.into) for one in tracks.tracks] == [(2, None), (1, 0)]


def test_what_is_too_far_dies_and_is_born():
    far = MAX_ANGLE + 0.1
    tracks = track(*sampled([[(1.0, on_circle(0.0))]] * 2 + [[(1.0, on_circle(far))]] * 2))
    assert [(one.first, one.last, one.into) for one in tracks.tracks] == [(0, 1, None), (2, 3, None)]
    near = track(*sampled([[(1.0, on_circle(0.0))]] * 2 + [[(1.0, on_circle(MAX_ANGLE - 0.01))]] * 2))
    assert len(near.tracks) == 1


def test_the_lightest_clusters_are_followed():
    """The mass is far below the tolerance of the transport plan, while others merge."""
    light = [(1e-9, on_circle(2.0 + 0.5 * k)) for k in range(4)]
    before, after = [(0.5, on_circle(0.0)), (0.5 - 4e-9, on_circle(0.6)), *light], [(1 - 4e-9, on_circle(0.3)), *light]
    tracks = track(*sampled([before, before, after, after]))
    assert len(tracks.tracks) == 6
    assert sorted(one.last for one in tracks.tracks) == [1, 3, 3, 3, 3, 3]


def test_samples_without_clusters():
    one = [(1.0, on_circle(1.0))]
    times, masses, centers = sampled([one] * 6)
    masses[[0, 3]] = np.nan
    tracks = track(times, masses, centers)
    assert [(one.first, one.last) for one in tracks.tracks] == [(1, 2), (4, 5)]
    np.testing.assert_array_equal(tracks.counts, [0, 1, 1, 0, 1, 1])
    assert track(np.empty(0), np.empty((0, 32)), np.empty((0, 32, 3))).tracks == ()


def test_many_clusters_that_all_move_and_merge_in_pairs():
    """Thirty tracks on S⁷ in pairs of neighbors have fifteen mergers, at the right samples, of the right pairs."""
    random = np.random.default_rng(5)
    roots = unit(random.standard_normal((15, 8)))
    aside = unit(roots + 0.5 * unit(random.standard_normal((15, 8))))
    when = random.integers(3, 17, 15)
    samples = []
    for k in range(20):
        here = []
        for place, (root, other, end) in enumerate(zip(roots, aside, when, strict=True)):
            mass = 0.04 + 0.001 * place
            joined = k >= end
            here.append((mass + (0.02 if joined else 0), unit(root * mass + other * 0.02) if joined else root))
            here += [] if joined else [(0.02, other)]
        samples.append(here)
    tracks = track(*sampled(samples, seed=1, room=32))
    merged = [one for one in tracks.tracks if one.into is not None]
    assert len(tracks.tracks) == 30
    assert sorted(one.last + 1 for one in merged) == sorted(when)
    for one in merged:
        assert tracks.tracks[one.into].centers[0] @ one.centers[0] > 0.85  # the neighbor in the pair: cos 0.46


def test_light_atoms_near_heavy_ones_merge_once():
    """Twenty atoms fall into five of 20 to 100 times their mass, one after the other, with a sample at each merger.

    The distance of each to its heavy atom falls as e^{−t}, to 1e-4 rad, where others are a few times as far away.
    """
    random, touch = np.random.default_rng(0), 1e-4
    heavy = 2 * np.pi / 5 * np.arange(5)
    light, owner, side = random.uniform(0.002, 0.009, 20), np.arange(20) % 5, np.where(np.arange(20) < 10, 1, -1)
    start = random.uniform(0.05, 0.6, 20)
    samples = []
    for time in [0.0, *np.sort(np.log(start / touch)) + 1e-12]:
        apart = start * np.exp(-time)
        there = apart > touch
        whole = 0.18 + np.bincount(owner[~there], light[~there], 5)
        angles = (heavy[owner] + side * apart)[there]
        samples.append([*zip(whole, on_circle(heavy), strict=True), *zip(light[there], on_circle(angles), strict=True)])
    found = track(*sampled(samples, room=32)).tracks
    assert len(found) == 25
    merged = {round(float(one.masses[-1]), 12): (one.last, one.into) for one in found if one.into is not None}
    order, heavies = np.argsort(start), {one.into for one in found} - {None}
    assert len(heavies) == 5
    assert [merged[round(float(light[number]), 12)][0] for number in order] == list(range(20))


def test_atoms_merge_from_afar():
    """Samples in the logarithm of time miss the approach of atoms; masses that add up exactly show the merger."""
    masses = np.array([[0.7, 0.3], [1.0, np.nan]])
    there = np.array([[np.cos(2.0), np.sin(2.0)]])
    centers = np.array([[[1.0, 0.0], *there], [[np.cos(0.6), np.sin(0.6)], [np.nan, np.nan]]])
    found = track(np.array([1.0, 2.0]), masses, centers)
    assert [one.into for one in found.tracks] == [None, 0]
    vanished = track(np.array([1.0, 2.0]), np.array([[0.7, 0.3], [0.9, np.nan]]), centers)
    assert [one.into for one in vanished.tracks] == [None, None]


@pytest.mark.parametrize("sharp", ["stabilizers.scale=6", "attention.query=[[36, 0], [0, 9]]"])
def test_clusters_in_snapshots_are_those_of_the_diagnostics(tmp_path, sharp):
    """Tokens 0.7 rad apart are two clusters at the scale of attention, 1/6 rad, and would be one at the scale of β
    alone."""
    run(parse(TWO_TOKENS, [sharp]), tmp_path / "two.h5", quiet=True)
    found = read(tmp_path / "two.h5")
    np.testing.assert_array_equal(found.diagnostics["clusters"], 2)
    np.testing.assert_array_equal(tracks_of(found).counts, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mass", -0.5), ("mass", 0.0), ("mass", 1e200), ("center", 1e200), ("center", 0.0), ("center", np.nan)],
)
def test_clusters_that_no_run_has_are_damage(name: str, value: float, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    run(parse(TWO_TOKENS.replace('"clusters"]', '"clusters", "cluster_mass", "cluster_center"]')), path)
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs["digest"] = ""  # the file of a killed run has none
        file[f"diagnostics/cluster_{name}"][1, 0] = value
    for read_clusters in (tracks_of, counter):
        with pytest.raises(FileError, match=r"run\.h5: damaged: .* of clusters are "):
            read_clusters(read(path))


@pytest.mark.parametrize("number", [-1.0, 1e300, np.nan])
def test_numbers_of_clusters_that_no_run_has_are_damage(number: float, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    run(parse(TWO_TOKENS), path)
    with h5py.File(path, "r+", locking=False) as file:
        file.attrs["digest"] = ""  # the file of a killed run has none
        file["diagnostics/clusters"][1] = number
    with pytest.raises(FileError, match=r"run\.h5: damaged: numbers of clusters are from "):
        counter(read(path))
