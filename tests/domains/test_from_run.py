"""Runs that begin with a snapshot of another run: identical on the same cells, the same density on others."""

import numpy as np
import pytest
from support.status import run

from meanfield.case.load import parse
from meanfield.cli.parser import main
from meanfield.simulation import set_up
from solvers.io.run_file import read
from solvers.mesh.mesh import circle, sphere

BEGINNING = """
[domain]
manifold = "sphere"
resolution = 16
[attention]
beta = 2.0
[initial]
kind = "von_mises_fisher"
components = [{ center = [1.0, 0.0, 0.0], concentration = 3.0 }]
[time]
end = 1.0
[output]
snapshots = 4
samples = 4
"""
PLANE = "initial.components=[{center = [1.0, 0.2], concentration = 3.0}]"
GAUSSIAN = "initial={kind = 'gaussian', variance = 0.2}"
DOMAINS = {
    "sphere": [],
    "circle": ["domain.manifold=circle", PLANE],
    "labels": ["domain.manifold=circle", "domain.labels=2", "attention.mask=causal", PLANE],
    "axisymmetric": [
        "domain={manifold = 'axisymmetric', resolution = 32, dimension = 8}",
        "initial.components=[{center = [1.0], concentration = 3.0}]",
    ],
    "line": ["domain={manifold = 'line', resolution = 192}", "stabilizers.layer_norm=none", GAUSSIAN],
    "free radius": [
        "domain={manifold = 'free_radius_circle', resolution = 12, radii = 8}", "stabilizers.layer_norm=pre", PLANE
    ],
    "particles": ["domain={manifold = 'particles', count = 9}"],
    "particles with a radius": ["domain={manifold = 'particles', count = 9}", "stabilizers.layer_norm=pre"],
}  # fmt: skip


def begun(tmp_path, settings=()):
    path = tmp_path / "first.h5"
    assert run(parse(BEGINNING, settings), path, quiet=True) == 0
    return read(path)


def from_run(path, *settings):
    """Return the initial values of a case that begins with the run."""
    return set_up(parse(BEGINNING, [*settings, f"initial={{kind = 'file', file = '{path}'}}"])).initial()


@pytest.mark.parametrize("name", DOMAINS)
def test_on_the_same_cells_it_is_the_snapshot(name, tmp_path):
    """The snapshot is the last one, or the last up to a time; each label of a mask begins with its share of it."""
    first = begun(tmp_path, DOMAINS[name])
    for setting, k in (("", 4), (", time = 0.6", 2), (", time = 0.5", 2)):
        initial = f"initial={{kind = 'file', file = '{first.path}'{setting}}}"
        settings = [part.replace("count = 9", "dimension = 3") for part in DOMAINS[name] if not part.startswith("init")]
        case = parse(BEGINNING, [*settings, initial])
        second = tmp_path / "second.h5"
        assert run(case, second, overwrite=True, quiet=True) == 0
        assert np.allclose(read(second).snapshot(0), first.snapshot(k), rtol=1e-15, atol=0)
        if name.startswith("particles"):
            assert np.array_equal(read(second).weights, first.weights)


def test_masses_of_tokens_come_with_them(tmp_path):
    points = "initial={kind = 'points', points = [[1, 0, 0], [0, 2, 0], [0, 0, 1]], masses = [1, 2, 5]}"
    first = begun(tmp_path, ["domain={manifold = 'particles'}", points])
    problem = set_up(parse(BEGINNING, ["domain={manifold = 'particles'}",
                                       f"initial={{kind = 'file', file = '{first.path}'}}"]))  # fmt: skip
    assert problem.space.weights == pytest.approx([0.125, 0.25, 0.625], rel=1e-15)


@pytest.mark.parametrize("place", [circle, sphere])
def test_on_finer_cells_it_is_of_second_order(place, tmp_path):
    """The errors from 16, 32 and 64 rings or cells to the finest mesh are relative to the exact density on that
    mesh."""
    name, errors = place.__name__, []
    start = [f"domain.manifold={name}", "time.end=1e-9", *([PLANE] if name == "circle" else [])]
    fine = place(200)
    exact = set_up(parse(BEGINNING, [*start, "domain.resolution=200"])).initial()
    for count in (16, 32, 64):
        first = begun(tmp_path, [*start, f"domain.resolution={count}"])
        found = from_run(first.path, f"domain.manifold={name}", "domain.resolution=200")
        assert found @ fine.volumes == pytest.approx(1.0, rel=1e-14)
        assert found.min() >= 0
        errors.append(np.abs(found - exact) @ fine.volumes)
        first.path.unlink()
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.8, f"errors {errors}, orders {orders}"


@pytest.mark.parametrize("settings", [[], ["domain={manifold = 'particles', count = 200}"]], ids=["cells", "particles"])
def test_on_coarser_cells_mass_and_first_moment_are_kept(settings, tmp_path):
    """The moment changes by the loss of sharing a point's mass among cells around it: less than (width)²/4."""
    first = begun(tmp_path, [*(settings or ["domain.resolution=48"])])
    points = first.snapshot(-1) if settings else first.cell_centers
    masses = first.weights if settings else first.snapshot(-1) * first.cell_areas
    coarse = sphere(12)
    held = from_run(first.path, "domain.resolution=12") * coarse.volumes
    before, after = masses @ points, held @ coarse.centers
    assert held.sum() == pytest.approx(1.0, rel=1e-14)
    assert np.linalg.norm(after - before) < coarse.width**2 / 4


@pytest.mark.parametrize("resolution", [8, 16, 24])
def test_mass_that_a_reaction_has_made_is_kept(resolution, tmp_path):
    first = begun(tmp_path, ["reaction = {kind = 'linear', rate = 0.5}"])
    mass = first.snapshot(-1) @ first.cell_areas
    assert mass > 1.5  # e^{1/2}
    found = from_run(first.path, f"domain.resolution={resolution}")
    assert found @ sphere(resolution).volumes == pytest.approx(mass, rel=1e-13)


REFUSED = {
    "no file": ("sphere", "file = 'nothing.h5'", 'initial.file = "nothing.h5": expected an existing file'),
    "no run": ("sphere", "file = 'case.toml'", 'initial.file = "case.toml": expected a run'),
    "another manifold": ("circle", "file = 'first.h5'", "expected a run on the circle, not one of manifold sphere"),
    "a density": ("particles", "file = 'first.h5'", "expected a run of particles with domain.dimension = 3"),
    "another domain": ("line", "file = 'first.h5'", "expected a run with the same section [domain] as this case"),
    "a radius": ("sphere", "file = 'first.h5', radius = 2.0", "initial.radius = 2.0: not available on the sphere"),
    "before time": ("sphere", "file = 'first.h5', time = -1.0", "initial.time = -1.0: expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_begin_is_told_in_a_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begun(tmp_path)
    (tmp_path / "case.toml").write_text(BEGINNING, encoding="utf-8")
    manifold, keys, expected = REFUSED[name]
    domain = f"domain={{manifold = '{manifold}'{'' if manifold == 'particles' else ', resolution = 16'}}}"
    norm = ["stabilizers.layer_norm=none"] if manifold == "line" else []
    assert main(["run", "case.toml", "--set", domain, f"initial={{kind = 'file', {keys}}}", *norm]) == 2
    shown = capsys.readouterr().err.strip()
    assert expected in shown
    assert "\n" not in shown
    assert not (tmp_path / "case.h5").exists()
