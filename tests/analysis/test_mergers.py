"""Merger trees: of planted tracks, and of a run, whose energy steps are 2 m_i m_j."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path
from scipy.integrate import solve_ivp

from meanfield import load_case, simulate
from meanfield.analysis.mergers import (
    describe_event_time,
    format_report,
    lifetimes,
    measured_steps,
    merger_tree,
    report,
    staircase,
)
from meanfield.analysis.tracks import Merger, Track, Tracks, tracks_of
from meanfield.clusters.near import merging_angle
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.equation import Velocity, mean_field_equation
from meanfield.figures.axes import set_time
from meanfield.figures.figure import STYLE, WIDTH
from meanfield.figures.labels import write_beside
from meanfield.figures.merger_tree import _time_axis, draw_mergers, plot_mergers, tree_order
from meanfield.model.attention import Attention
from meanfield.running import run_in_memory
from solvers.io.run_file import FileError, RunFile, read
from solvers.mesh.mesh import circle
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Logarithmic
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

BETA, END = 9.0, 3000.0
CASE = f"""title = "Four clusters on the circle, three, two"
domain = {{manifold = "circle", resolution = 128}}
attention.beta = {BETA}
initial = {{kind = "perturbed", amplitude = 1e-2, seed = 0}}
time.end = {END}
"""
DIAGNOSTICS = ("energy", "clusters", "cluster_mass", "cluster_center")


def planted():
    """Return tracks 0.4, 0.3, 0.2 and 0.1: the last joins the first after t = 3, the third joins the first after t =
    6."""
    times = np.arange(10.0)
    lasts, masses, into = (9, 9, 6, 3), (0.4, 0.3, 0.2, 0.1), (None, None, 0, 0)
    tracks = []
    for last, mass, target in zip(lasts, masses, into, strict=True):
        here = np.full(last + 1, mass)
        if mass == 0.4:
            here[4:] += 0.1
            here[7:] += 0.2
        tracks.append(Track(0, here, np.tile([1.0, 0.0], (last + 1, 1)), target))
    return Tracks(times, tuple(tracks))


def stairs(tracks):
    squares = np.zeros(len(tracks.times))
    for one in tracks.tracks:
        squares[one.samples] += one.masses**2
    return squares


def test_planted_mergers():
    first, second = merger_tree(planted())
    assert (first.time, first.source, first.into, first.before, first.after) == (4.0, 3, 0, 4, 3)
    assert (second.time, second.source, second.into, second.before, second.after) == (7.0, 2, 0, 3, 2)
    assert first.masses == pytest.approx((0.4, 0.1))
    assert [first.energy_step, second.energy_step] == pytest.approx([0.08, 0.2])
    found = [(one.count, one.after, one.start, one.stop, one.until) for one in lifetimes(planted())]
    assert found == [(4, None, 0.0, 3.0, 4.0), (3, 3.0, 4.0, 6.0, 7.0), (2, 6.0, 7.0, 9.0, None)]


def test_moments_are_known_between_samples_or_of_atoms_exactly():
    """Atoms exist from t = 4 on: the first merger is between two samples, the second has been recorded."""
    tracks = planted()
    assert [(one.since, one.time) for one in merger_tree(tracks)] == [(3.0, 4.0), (6.0, 7.0)]
    of_atoms = Merger(6.5, 6.5, 0, 2, (0.5, 0.2), 3, 2, 0.2)
    tracks = replace(tracks, mergers=(of_atoms,), atoms_from=4.0)
    assert [(one.since, one.time) for one in merger_tree(tracks)] == [(3.0, 4.0), (6.5, 6.5)]
    found = [(one.count, one.after, one.start, one.stop, one.until) for one in lifetimes(tracks)]
    assert found == [(4, None, 0.0, 3.0, 4.0), (3, 3.0, 4.0, 6.5, 6.5), (2, 6.5, 6.5, 9.0, None)]
    assert lifetimes(Tracks(np.empty(0), ())) == []


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (94.9, 95.81, "between 94.9 and 95.81"),
        (1e6, 1e6 + 1, "between 1000000 and 1000001"),
        (7.0, 7.0, "7"),
        (None, 0.0, "0"),
        (4917.33, None, "4917"),
    ],
)
def test_moments_in_words(low, high, words):
    assert describe_event_time(low, high) == words


def test_steps_are_measured_on_plateaus_of_the_energy():
    """Ramps before each merger, as tokens approach, change nothing: a plateau is where the energy is flattest."""
    tracks = planted()
    times = np.linspace(0, 9, 181)
    values = stairs(tracks)[np.searchsorted(tracks.times, times, side="right") - 1]
    ramp = 0.01 * np.exp(-10 * np.abs(times - 3.5)) + 0.02 * np.exp(-10 * np.abs(times - 6.5))
    assert measured_steps(tracks, merger_tree(tracks), times, values + ramp) == pytest.approx([0.08, 0.2], rel=1e-3)
    few = measured_steps(tracks, merger_tree(tracks), times[::40], values[::40])
    assert few == [None, None]


def test_an_energy_that_has_climbed_before_atoms_touch_is_no_plateau_before_the_merger():
    """The energy has its later value, and is flattest, in the unit of time before each merger; the plateaus rise a
    bit."""
    tracks, times = planted(), np.linspace(0, 9, 181)
    early = stairs(tracks)[np.searchsorted(tracks.times, np.minimum(times + 2.0, 9.0), side="right") - 1]
    climbed = ((times > 2.0) & (times < 4.0)) | ((times > 5.0) & (times < 7.0))
    slowly = 1e-6 * np.cumsum(~climbed)
    assert measured_steps(tracks, merger_tree(tracks), times, early + slowly) == pytest.approx([0.08, 0.2], rel=1e-2)


@pytest.mark.parametrize(("factor", "stair"), [(0.85, True), (1.15, True), (0.75, False), (1.3, False)])
def test_plateaus_within_a_fifth_of_the_sum_of_squares_are_stairs(factor, stair):
    tracks = planted()
    values = factor * stairs(tracks)
    measured = measured_steps(tracks, merger_tree(tracks), tracks.times, values)
    assert measured == (pytest.approx([0.08 * factor, 0.2 * factor]) if stair else [None, None])


def test_clusters_that_flicker_are_no_mergers():
    tracks = planted()
    flicker = Track(5, np.array([0.01, 0.01]), np.tile([0.0, 1.0], (2, 1)), 0)
    assert len(merger_tree(Tracks(tracks.times, (*tracks.tracks, flicker)))) == 2


def test_atoms_do_not_flicker():
    """A merger of atoms counts however few samples show both; one of clusters before the handover may be noise."""
    tracks = planted()
    brief = Track(5, np.array([0.01]), np.array([[0.0, 1.0]]), 0)
    for atoms_from, mergers in ((5.0, 3), (5.5, 2)):
        both = Tracks(tracks.times, (*tracks.tracks, brief), atoms_from=atoms_from)
        assert len(merger_tree(both)) == mergers
        assert len(tree_order(both)) == mergers + 2


def merging_times(angles, masses, beta, scale, end):
    """Return when neighbors on the circle come nearer than ``scale``, by their plain equation of motion."""

    def rate(_, x):
        away = x - x[:, None]
        return (masses * np.exp(beta * np.cos(away)) * np.sin(away)).sum(axis=1)

    def gap(k):
        return lambda _, x: np.diff([*x, x[0] + 2 * np.pi])[k] - scale

    gaps = [gap(k) for k in range(len(masses))]
    return sorted(
        np.concatenate(solve_ivp(rate, (0, end), angles, "Radau", rtol=1e-10, atol=1e-12, events=gaps).t_events)
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("spacing", "diagnostics"), [("log", None), ("linear", ["energy"])])
def test_no_merger_of_atoms_is_lost_before_the_first_sample(spacing, diagnostics):
    """The first merger is at 0.0603, before the first scheduled sample after 0: at 0.1, or at 50."""
    angles, masses = (0.3, 1.7, 3.2, 4.9), (0.4, 0.1, 0.3, 0.2)
    points = [[float(np.cos(angle)), float(np.sin(angle))] for angle in angles]
    case = {
        "domain": {"manifold": "circle", "resolution": 64},
        "attention": {"beta": 9.0, "normalization": "unnormalized"},
        "initial": {"kind": "points", "points": points, "masses": list(masses)},
        "time": {"end": 1e4},
        "handover": {},
        "output": {"spacing": spacing, "samples": 200} | ({"diagnostics": diagnostics} if diagnostics else {}),
    }
    mergers = simulate(case).mergers()
    exact = merging_times(angles, np.array(masses), 9.0, merging_angle(9.0), 1e4)
    assert [one.time for one in mergers] == pytest.approx(exact, rel=1e-4)  # points are deposited on cells
    assert all(one.since == one.time for one in mergers)
    assert [sum(one.masses) for one in mergers] == pytest.approx([0.5, 0.5, 1.0])
    assert [(one.before, one.after) for one in mergers] == [(4, 3), (3, 2), (2, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_lines_of_a_tree_do_not_cross(seed):
    """Only ended tracks lie between a track's end and the track that it joins."""
    random = np.random.default_rng(seed)
    lasts = np.append(99, random.permutation(np.arange(5, 95))[:12])
    into = [None] + [int(random.choice(np.flatnonzero(lasts > last))) for last in lasts[1:]]
    tracks = Tracks(np.arange(100.0), tuple(
        Track(0, np.full(last + 1, 0.1), np.tile([1.0, 0.0], (last + 1, 1)), target)
        for last, target in zip(lasts, into, strict=True)
    ))  # fmt: skip
    order = tree_order(tracks)
    assert sorted(order) == list(range(13))
    place = {number: k for k, number in enumerate(order)}
    for number, target in enumerate(into):
        if target is not None:
            low, high = sorted((place[number], place[target]))
            assert (lasts[order[low + 1 : high]] < lasts[number]).all()


@cache
def mesh_and_samples():
    """Return (mesh, [(time, density, diagnostics)]) of the run of CASE."""
    mesh = circle(128)
    law = Velocity(Attention(mesh, BETA))
    diagnostics = diagnostics_round(DIAGNOSTICS, mesh, law)
    samples = []

    def keep(state):
        samples.append((state.time, state.values.copy(), diagnostics(state.time, state.values)))

    state = State(0.0, initial_perturbed(mesh, 1e-2, 12, 0))
    observer = Observer(keep, Logarithmic(1.0, END, 200))
    evolve(state, mean_field_equation(mesh, law), STEPPERS["ssprk3"], END, (observer,), rtol=None)
    return mesh, law, samples


def write(path, names):
    mesh, law, samples = mesh_and_samples()
    with RunFile.create(path, mesh, diagnostics_round(names, mesh, law).columns, {"case": CASE}) as file:
        for time, density, values in samples:
            file.write_sample(time, {name: values[name] for name in names})
            file.write_snapshot(time, density)
    return read(path)


@pytest.fixture(scope="module", params=["diagnostics", "snapshots"])
def run(request, tmp_path_factory):
    """Return the run in a file, with recorded clusters or with clusters only in the snapshots."""
    names = DIAGNOSTICS if request.param == "diagnostics" else ("energy", "clusters")
    return write(tmp_path_factory.mktemp("run") / f"{request.param}.h5", names)


@pytest.fixture(scope="module")
def facts(run):
    return report(run)


def test_the_tree_of_a_run(run, facts):
    """The number of tracks is the number of clusters at any time; four at most, then three, then two."""
    tracks = tracks_of(run)
    np.testing.assert_array_equal(tracks.counts, run.diagnostics["clusters"])
    assert [(one["before"], one["after"]) for one in facts["mergers"]] == [(4, 3), (3, 2)]
    assert [one["count"] for one in facts["lifetimes"]][-3:] == [4, 3, 2]
    assert facts["clusters"] == 2
    assert sum(facts["masses"]) == pytest.approx(1.0, abs=1e-9)
    for one, other in pairwise(facts["lifetimes"]):
        assert one["stop"] < other["start"]


def test_energy_steps_of_a_run_are_twice_the_product_of_the_masses(facts):
    """Neighbors at 1.5 rad add e^{−9·0.93} = 2e-4 to the staircase; the rest, 2 %, is the slope of the plateaus."""
    for one in facts["mergers"]:
        assert one["energy_step"] == pytest.approx(2 * np.prod(one["masses"]))
        assert one["energy_step_measured"] == pytest.approx(one["energy_step"], rel=0.02)


def test_the_report_as_text(facts):
    text = format_report(facts)
    lines = text.splitlines()
    first = facts["mergers"][0]
    assert lines[1].startswith(f"between {first['since']:.4g} and {first['time']:.4g} ")
    # The end of one row, the start of the next.
    assert text.count(f"between {first['since']:.4g} and {first['time']:.4g}") == 3
    assert "4 → 3" in lines[1]
    assert "3 → 2" in lines[2]
    assert " %)" in lines[1]
    assert "masses at the end: 0.5" in lines[-1]


def test_the_figure_of_a_run(run, tmp_path):
    target = plot_mergers(run.path, tmp_path / "tree.png")
    assert target.stat().st_size > 10_000
    with pytest.raises(FileError, match="unknown figure format"):
        plot_mergers(run.path, tmp_path / "tree.xyz")


def forest(count, seed=0, samples=200):
    """Return ``count`` clusters that merge one by one on a log axis, at random, into one of the initial clusters."""
    random = np.random.default_rng(seed)
    times = np.concatenate([[0], np.geomspace(1, 1e6, samples - 1)])
    lasts = np.append(samples - 1, np.sort(random.integers(2, samples - 20, count - 1))[::-1])
    into = [None] + [int(random.integers(0, k)) for k in range(1, count)]
    angles = random.permutation(np.linspace(-3, 3, count))
    masses = [np.full(last + 1, 1 / count) for last in lasts]
    for k in range(count - 1, 0, -1):
        masses[into[k]][lasts[k] + 1 :] += masses[k][-1]
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows = zip(masses, directions, into, strict=True)
    return Tracks(times, tuple(Track(0, m, np.tile(x, (len(m), 1)), target) for m, x, target in rows))


@pytest.mark.parametrize("circle_", [False, True], ids=["rows", "circle"])
@pytest.mark.parametrize(("count", "least"), [(3, 3), (8, 7), (25, 10)])
def test_masses_are_written_in_the_panel_apart_and_on_no_line(count, least, circle_):
    """Labels are legible at 800 pixels: 7 points of a page ten inches wide on a screen of 96 pixels an inch."""
    tracks = forest(count, seed=count)
    with matplotlib.rc_context(STYLE):
        page = Figure(figsize=(WIDTH, 4))
        axes = page.subplots()
        lines = draw_mergers(axes, tracks, circle=circle_)
        set_time(axes, "time t", (1.0, 1e6), log=True)
        page.draw_without_rendering()
        texts = write_beside(axes, lines)
        page.draw_without_rendering()
    assert len(texts) >= least
    assert lines[0].text == "1.00" == texts[0].get_text()
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert axes.bbox.containsx(box.x0)
        assert axes.bbox.containsx(box.x1)
        assert axes.bbox.containsy(box.y0)
        assert axes.bbox.containsy(box.y1)
        assert not any(box.overlaps(other) for other in boxes[:k])
        for line in lines:
            path = axes.transData.transform_path(Path(line.points))
            assert not path.intersects_bbox(box, filled=False)
        assert texts[k].get_fontsize() * 800 / 96 / WIDTH >= 7


@pytest.mark.parametrize(
    ("mergers", "log_spacing", "log"),
    [
        ([200.0, 900.0, 9e4], False, True),
        ([2e3, 3e5, 9e5], False, False),
        ([], False, False),
        ([], True, True),
    ],
)
def test_the_time_axis_follows_the_rule_of_all_figures(mergers, log_spacing, log):
    times = np.linspace(0, 1e6, 10001)
    tracks = Tracks(times, (Track(0, np.ones(10001), np.tile([1.0, 0.0], (10001, 1))),))
    mergers_in_time = [Merger(time, time, 0, 1, (0.5, 0.5), 2, 1, 0.5) for time in mergers]
    limits, found = _time_axis(tracks, mergers_in_time, log_spacing)
    assert found == log
    assert limits == ((100.0, 1e6) if log else (0.0, 1e6))


def test_no_energy_step_where_matrices_are_no_identities(tmp_path):
    case = CASE.replace("attention.beta = 9.0", "attention = {beta = 9, value = [[-1, 0], [0, -1]]}")
    mesh, law, samples = mesh_and_samples()
    path = tmp_path / "run.h5"
    with RunFile.create(path, mesh, diagnostics_round(DIAGNOSTICS, mesh, law).columns, {"case": case}) as file:
        for time, _, values in samples[::4]:
            file.write_sample(time, values)
    assert [one["energy_step_measured"] for one in report(read(path))["mergers"]] == [None, None]


@pytest.mark.parametrize(
    ("change", "is_defined"),
    [
        ({}, True),
        ({"attention.mask": "causal"}, False),
        ({"attention.pattern": {"local": 1}}, False),
        ({"stabilizers.layer_norm": "none", "attention.beta": 1.0}, False),
    ],
)
def test_the_staircase_is_defined_where_all_tokens_attend_to_each_other_as_unit_vectors(change, is_defined):
    """The energy counts each pair once under a causal mask, and grows with the lengths without layer norm."""
    found = staircase(run_in_memory(load_case("tokens_pair", {"time.end": 0.1, "output.samples": 2} | change)))
    assert (found is not None) == is_defined
