"""Comparison of run files: pairs of snapshots, values, refusals, text, JSON and figure."""

import json

import numpy as np
import pytest

from meanfield import resume, run
from meanfield.analysis import comparison
from meanfield.analysis.comparison import as_dict, compare
from meanfield.analysis.comparison_text import describe_next_command, format_text
from meanfield.analysis.measure import measure_of, spaces_of
from meanfield.cli.parser import main
from meanfield.domains.sphere.initial import initial_points, initial_uniform
from meanfield.figures.figure import plot_result
from solvers.io.layout import Column, Points, Variable
from solvers.io.run_file import FileError, RunFile, read
from solvers.mesh.interval import edges_of, line, polar
from solvers.mesh.mesh import circle, sphere

CASE = 'title = "A test"\n[domain]\nmanifold = "{}"\ndimension = {}\n[attention]\nbeta = 4.0\n'


def write(path, space, times, snapshot, clusters=None, dimension=3, variables=(), extra=""):
    """Write a run file with ``snapshot(t)`` at ``times``, and a sample of the number of clusters with each."""
    attributes = {"case": CASE.format(space.manifold, dimension) + extra}
    columns = [] if clusters is None else [Column("clusters")]
    with RunFile.create(path, space, columns, attributes, variables) as file:
        for k, t in enumerate(times):
            if clusters is not None:
                file.write_sample(t, {"clusters": clusters[k]})
            file.write_snapshot(t, snapshot(t))
    return path


def at_angle(angle):
    return np.array([[np.cos(angle), np.sin(angle)]])


def turning(path, speed, times, clusters=None, start=0.0):
    """Write a run of one particle on the circle that turns at ``speed``."""
    return write(path, Points(np.ones(1), 2), times, lambda t: 2 * at_angle(start + speed * t), clusters, 2)


def bump(mesh, angle):
    """Return a density with a bump at an angle from the first axis."""
    center = np.eye(mesh.centers.shape[1])[0] * np.cos(angle) + np.eye(mesh.centers.shape[1])[1] * np.sin(angle)
    density = np.exp(8.0 * (mesh.centers @ center - 1))
    return density / (density @ mesh.volumes)


def test_two_particles_that_turn_apart(tmp_path):
    """The distance at speeds 1 and ½ is t/2, exact at every time, whatever the radius."""
    times = np.linspace(0, 4, 5)
    a, b = turning(tmp_path / "a.h5", 1.0, times, [1, 1, 2, 2, 3]), turning(tmp_path / "b.h5", 0.5, times)
    found = compare(a, b)
    np.testing.assert_array_equal(found.times, times)
    assert found.space == "S1"
    np.testing.assert_allclose(found.columns["w1"], times / 2, atol=1e-12)
    np.testing.assert_allclose(found.columns["w2"], times / 2, atol=1e-12)
    np.testing.assert_allclose(found.columns["centroid"], 2 * np.sin(times / 4), atol=1e-12)
    np.testing.assert_array_equal(found.columns["clusters_a"], [1, 1, 2, 2, 3])
    assert np.isnan(found.columns["clusters_b"]).all()
    assert np.isnan(found.columns["l1"]).all()
    assert found.notes == ()


def test_one_run_against_itself(tmp_path):
    times = np.array([0.0, 0.5, 2.0])
    found = compare(turning(tmp_path / "a.h5", 1.0, times, [2, 1, 1]))
    np.testing.assert_allclose(found.columns["step_w1"], [np.nan, 0.5, 1.5], atol=1e-12)
    np.testing.assert_allclose(found.columns["last_w2"], [2.0, 1.5, 0.0], atol=1e-7)
    np.testing.assert_array_equal(found.columns["clusters"], [2, 1, 1])
    assert f"of {tmp_path / 'a.h5'} in S1 at 3 times; at the last: " in repr(found)
    assert "step_w1 1.5, " in repr(found)
    assert repr(found.runs[0]) == f"<Run {tmp_path / 'a.h5'}: 3 snapshots, 3 samples of 1 diagnostics on particles>"
    text = format_text(found)
    assert "1 particle, d = 2, β = 4, 3 snapshots to t = 2" in text
    assert text.splitlines()[5].split()[:4] == ["0", "-", "-", "-"]  # no previous snapshot, and no density
    assert describe_next_command(found) == f"draw it: meanfield compare {tmp_path / 'a.h5'} -o comparison.png"


@pytest.mark.parametrize(("manifold", "d"), [(circle, 2), (sphere, 3)])
def test_a_density_beside_particles(tmp_path, manifold, d):
    """An atom on its mesh and a particle at the same point are no farther apart than the width of the atom's cells."""
    mesh = manifold(32)
    point = np.eye(d)[:1] * 0.6 + np.eye(d)[1:2] * 0.8
    a = write(tmp_path / "a.h5", mesh, [0.0, 1.0], lambda t: initial_points(mesh, point, [1.0]), dimension=d)
    b = write(tmp_path / "b.h5", Points(np.ones(1), d), [0.0, 1.0], lambda t: point, dimension=d)
    found = compare(a, b)
    assert (found.columns["w1"] < 1.5 * mesh.width).all()
    assert (found.columns["centroid"] < 0.5 * mesh.width**2).all()  # deposited with the first moment kept
    assert np.isnan(found.columns["l1"]).all()
    other = compare(b, a)
    np.testing.assert_allclose(other.columns["w2"], found.columns["w2"], atol=1e-9)


@pytest.mark.parametrize("manifold", [circle, sphere])
def test_densities_on_one_mesh_and_on_two(tmp_path, manifold):
    """A bump turns by 0.3; on the finer mesh it is nearly the same, and L¹ is taken on the coarser."""
    paths = {}
    for size in (32, 48):
        mesh = manifold(size)
        for angle in (0.0, 0.3):
            path = tmp_path / f"{size}-{angle}.h5"
            paths[size, angle] = write(path, mesh, [0.0], lambda t, m=mesh, s=angle: bump(m, s))
    turned = compare(paths[32, 0.0], paths[32, 0.3]).columns
    finer = compare(paths[48, 0.0], paths[48, 0.3]).columns
    across = compare(paths[48, 0.0], paths[32, 0.3]).columns
    same = compare(paths[32, 0.0], paths[48, 0.0]).columns
    for name in ("l1", "w1", "w2"):
        assert turned[name][0] == pytest.approx(finer[name][0], rel=0.02)  # second order: (2π/32)²/12 · 8
        assert across[name][0] == pytest.approx(finer[name][0], rel=0.05)
        assert same[name][0] < 0.15 * finer[name][0]
    assert 0.2 < turned["w1"][0] <= 0.3 * 1.001  # no farther than the turn angle


def test_times_that_both_have(tmp_path):
    """Every third time of one run is every second of the other, to rounding; others are omitted, as a note states."""
    a = turning(tmp_path / "a.h5", 1.0, np.arange(7) / 6 * (1 + 1e-12))
    b = turning(tmp_path / "b.h5", 0.0, np.arange(5) / 4)
    found = compare(a, b)
    np.testing.assert_allclose(found.times, [0, 0.5, 1])
    assert found.pairs == [(0, 0), (3, 2), (6, 4)]
    assert found.notes == ("A has 7 snapshots, B 5: compared at the 3 times that both have",)


def test_times_are_equal_to_nine_digits(tmp_path):
    """Rounding of a unit of time does not make another time; a time later by 1e-6 is missing in the other run."""
    a = turning(tmp_path / "a.h5", 1.0, np.array([0.0, 1.0, 2.0, 3.0]))
    b = turning(tmp_path / "b.h5", 0.5, np.array([0.0, 1.0 + 1e-6, 2.0 * (1 + 1e-11), 3.0 * (1 - 1e-11)]))
    found = compare(a, b)
    np.testing.assert_array_equal(found.times, [0.0, 2.0, 3.0])
    assert found.pairs == [(0, 0), (2, 2), (3, 3)]


def test_times_that_only_one_has(tmp_path):
    a = turning(tmp_path / "a.h5", 1.0, [0.0, 0.25, 0.5, 3.0])
    b = turning(tmp_path / "b.h5", 0.0, [0.1, 0.2, 0.6])
    found = compare(a, b)
    assert found.pairs == [(1, 1), (2, 1)]
    assert found.notes == ("B has no snapshots at A's times: its nearest earlier ones are taken, up to 0.3 before",)


def test_refusals(tmp_path):
    a = turning(tmp_path / "a.h5", 1.0, [0.0, 1.0])
    late = turning(tmp_path / "late.h5", 1.0, [2.0, 3.0])
    ball = write(tmp_path / "ball.h5", sphere(8), [0.0], initial_of(sphere(8)))
    empty = write(tmp_path / "empty.h5", circle(8), [], None)
    arguments = (
        (a, late, "a.h5 has t = 0 to 1, .*late.h5 has t = 2 to 3: expected a snapshot of the first within"),
        (a, ball, "a.h5 is particles with d = 2, .*ball.h5 is sphere: expected the same, or particles with d = 2"),
        (a, empty, "empty.h5: holds no snapshot yet"),
        (empty, None, "empty.h5: holds no snapshot yet"),
        (a, tmp_path / "none.h5", "none.h5: cannot read it"),
    )
    for first, second, message in arguments:
        with pytest.raises(FileError, match=message) as caught:
            compare(first, second)
        assert "\n" not in str(caught.value)


def initial_of(mesh):
    return lambda t: initial_uniform(mesh)


def test_the_line_and_axisymmetric_laws(tmp_path):
    """A cell's worth of mass moves along the line, and along a meridian: W₁ is the distance of the cell centers."""
    for mesh, name in ((line(40, 5.0, 1.0), "line"), (polar(40, 5), "polar")):

        def snapshot(t, mesh=mesh):
            return np.eye(mesh.cells)[20 + int(t)] / mesh.volumes

        edges = Variable("cell_edge", ("edge",), edges_of(mesh))
        path = write(tmp_path / f"{name}.h5", mesh, [0.0, 1.0], snapshot, dimension=5, variables=[edges])
        found, x = compare(path), mesh.centers[:, 0]
        if name == "polar":
            assert found.space == "polar5"
            assert "d = 5" in format_text(found)
        # equal cells move straight; unequal cells stretch, and the mean of a monotone move is the distance of the
        # centers
        assert found.columns["step_w1"][1] == pytest.approx(x[21] - x[20])
        assert found.columns["step_l1"][1] == pytest.approx(2)
        along = np.cos(x) if name == "polar" else x
        assert found.columns["step_centroid"][1] == pytest.approx(abs(along[21] - along[20]))
    with pytest.raises(FileError, match=r"is line.*is axisymmetric with d = 5"):
        compare(tmp_path / "line.h5", tmp_path / "polar.h5")


def test_a_run_with_a_free_radius(tmp_path):
    """Positions, not directions, are compared: all mass from one shell to the next moves by the difference of their
    radii."""
    directions, radii = circle(8), np.geomspace(0.5, 4.0, 4)
    mesh = circle(24)
    tiled = type(mesh)(
        **{**vars(mesh), "manifold": "free_radius_circle", "centers": np.tile(directions.centers, (3, 1))}
    )

    def snapshot(t):
        density = np.zeros((3, 8))
        density[int(t)] = 1.0
        return density.reshape(-1) / tiled.volumes / 8

    edges = Variable("radius_edge", ("edge",), radii)
    path = write(tmp_path / "r.h5", tiled, [0.0, 1.0], snapshot, variables=[edges])
    found, middle = compare(path), np.sqrt(radii[1:] * radii[:-1])
    assert found.space == "R2"
    assert found.columns["step_w1"][1] == pytest.approx(middle[1] - middle[0])
    assert spaces_of(read(path)) == ("R2",)
    assert np.linalg.norm(measure_of(read(path), 1).points, axis=1) == pytest.approx(np.repeat(middle, 8))


def test_particles_without_layer_norm_are_compared_by_position(tmp_path):
    tokens, extra = Points(np.full(2, 0.5), 2), '[stabilizers]\nlayer_norm = "none"\n'
    paths = [
        write(tmp_path / f"{size}.h5", tokens, [0.0], lambda t, s=size: s * np.eye(2), dimension=2, extra=extra)
        for size in (1.0, 3.0)
    ]
    assert compare(*paths).columns["w1"][0] == pytest.approx(2.0)


def test_a_token_at_the_origin_has_no_direction_to_compare(tmp_path):
    extra = '[stabilizers]\nlayer_norm = "none"\n'
    positions = np.array([[2.0, 0.0], [0.0, 0.0]])
    tokens = write(tmp_path / "a.h5", Points(np.full(2, 0.5), 2), [0.0], lambda t: positions, dimension=2, extra=extra)
    ring = write(tmp_path / "ring.h5", circle(8), [0.0], initial_of(circle(8)))
    with pytest.raises(FileError, match=r"a\.h5: token 2 is at the origin at t = 0, where it has no direction"):
        compare(tokens, ring)


def test_json_has_no_nan(tmp_path):
    a, b = (turning(tmp_path / f"{name}.h5", 1.0, [0.0, 1.0]) for name in "ab")
    facts = as_dict(compare(a, b))
    text = json.dumps(facts, allow_nan=False)
    assert json.loads(text)["l1"] == [None, None]
    assert facts["w1"] == pytest.approx([0, 0])
    assert facts["units"] == "radians"
    assert facts["paths"] == [str(a), str(b)]


def test_text_of_two_runs(tmp_path):
    mesh = sphere(32)
    a = write(tmp_path / "a.h5", mesh, [0.0, 2.0], lambda t: bump(mesh, t), [1, 1])
    b = write(tmp_path / "b.h5", mesh, [0.0, 2.0], lambda t: bump(mesh, 0.0), [1, 2])
    comparison = compare(a, b)
    lines = format_text(comparison).splitlines()
    assert lines[0] == f"A  {a}: sphere, density in {mesh.cells} cells (32 rings), β = 4, 2 snapshots to t = 2"
    assert lines[2].startswith("W₁, W₂: Wasserstein distances, radians along the sphere; L¹: ∫|ρ_A − ρ_B|")
    assert lines[4].split() == ["t", "L¹", "W₁", "W₂", "centroid", "clusters", "A", "clusters", "B"]
    assert lines[5].split() == ["0", "0", "0", "0", "0", "1", "1"]
    # The distance between the bumps, reduced since wide parts take other ways round.
    assert 1.6 < float(lines[6].split()[2]) < 2.0
    assert "off by at most" in lines[8]
    assert describe_next_command(comparison) == f"draw it: meanfield compare {a} {b} -o comparison.png"


def test_it_says_how_to_draw_unless_it_draws(tmp_path, capsys):
    a = turning(tmp_path / "a.h5", 1.0, np.array([0.0, 1.0]), [1, 1])
    assert main(["compare", str(a)]) == 0
    assert "draw it: " in capsys.readouterr().out
    assert main(["compare", str(a), "-o", str(tmp_path / "a.png")]) == 0
    assert "draw it: " not in capsys.readouterr().out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kinds", ["cc", "cp", "ss", "sp", "pp", "c", "s", "l"])
def test_figures(tmp_path, kinds):
    """Every kind of figure is drawn; the appearance has been checked by eye."""
    times, spaces = [0.0, 1.0, 2.0], {"c": circle(64), "s": sphere(16), "l": line(40, 5.0, 1.0)}
    d, rng = 3 if "s" in kinds else 2, np.random.default_rng(0)
    cloud = rng.standard_normal((50, d))

    def particles(t):
        return (cloud + 3 * t * np.eye(d)[0]) / np.linalg.norm(cloud + 3 * t * np.eye(d)[0], axis=1)[:, None]

    paths = []
    for k, kind in enumerate(kinds):
        path = tmp_path / f"{k}.h5"
        if kind == "p":
            paths.append(write(path, Points(np.full(50, 0.02), d), times, particles, dimension=d))
        elif kind == "l":
            mesh = spaces["l"]
            edges = Variable("cell_edge", ("edge",), edges_of(mesh))
            paths.append(
                write(path, mesh, times, lambda t: np.exp(-((spaces["l"].centers[:, 0] - t) ** 2)), variables=[edges])
            )
        else:
            mesh = spaces[kind]
            paths.append(write(path, mesh, times, lambda t, m=mesh, s=k: bump(m, 0.5 * t * (s + 1)), dimension=d))
    target = tmp_path / "figure.png"
    assert plot_result(compare(*paths), target) == target
    assert target.stat().st_size > 10_000
    with pytest.raises(FileError, match="unknown figure format"):
        plot_result(compare(*paths), tmp_path / "figure.txt")


def test_cases_that_differ_are_named_in_one_line(tmp_path):
    """The note has keys that affect tokens, with short values, but neither titles nor keys of a file's content."""
    times = [0.0, 1.0]
    a = write(tmp_path / "a.h5", Points(np.ones(1), 2), times, at_angle, dimension=2)
    extra = 'key = [[1.0, 0.0], [0.0, 1.0]]\n[output]\nsamples = 3\n[stabilizers]\nlayer_norm = "cod"\n'
    b = write(tmp_path / "b.h5", Points(np.ones(1), 2), times, at_angle, dimension=2, extra=extra)
    line = "the cases differ in attention.key and stabilizers.layer_norm (none, cod)"
    assert compare(a, b).notes[0] == line
    assert line in format_text(compare(a, b)).splitlines()
    assert not compare(a, a).notes


def test_progress_of_a_long_comparison(tmp_path, monkeypatch, capsys):
    """Every pair of snapshots is reported, and computed once: 4 steps and 5 to the last, of which one is both."""
    path = turning(tmp_path / "a.h5", 1.0, np.linspace(0, 4, 5))
    reported, pairs = [], []

    def counted(a, k, b, j, space):
        pairs.append((k, j))
        return distances(a, k, b, j, space)

    distances = comparison._distances
    monkeypatch.setattr(comparison, "_distances", counted)
    compare(path, report=lambda done, total: reported.append((done, total)))
    assert reported == [(done, 9) for done in range(1, 10)]
    assert len(pairs) == len(set(pairs)) == 8
    monkeypatch.setattr("meanfield.runtime.progress.LOG_EVERY", 0.0)
    assert main(["compare", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["times"] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert "3 of 9 pairs of snapshots compared" in err


def test_a_changed_model_of_a_resumed_run_is_noted(tmp_path):
    path = tmp_path / "run.h5"
    run("tokens_pair", path, end=0.1, samples=2)
    other = resume(path, changes={"attention.beta": 4, "time.end": 0.2}).save(tmp_path / "other.h5")
    notes = compare(path, other).notes
    assert f"{path} is resumed with attention.beta=4 from t = 0.1" in notes
    assert f"{other} is resumed with attention.beta=4 from t = 0.1" in notes
