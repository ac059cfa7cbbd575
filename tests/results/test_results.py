"""Results in Python: the same class and values in memory and in a file, as arrays, in xarray and as figures."""

import html
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
import solvers
from meanfield import case as records
from meanfield.case.overrides import inline
from meanfield.cli.parser import main
from solvers.io import memory
from solvers.io.checkpoint import Checkpoints

CASE = """
title = "Clusters on the circle"
domain = { manifold = "circle", resolution = 64 }
attention = { beta = 3.0 }
initial = { kind = "von_mises_fisher", components = [
    { center = [1.0, 0.0], concentration = 9.0 },
    { center = [0.0, 1.0], concentration = 9.0, mass = 0.5 },
] }
time = { end = 3.0 }
output = { snapshots = 6, samples = 30 }
"""
TOKENS = CASE.replace(
    '{ manifold = "circle", resolution = 64 }', '{ manifold = "particles", dimension = 2, count = 40 }'
)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = tmp_path_factory.mktemp("case") / "case.toml"
    path.write_text(CASE)
    return mf.load_case(path)


@pytest.fixture(scope="module")
def both(case, tmp_path_factory):
    return mf.simulate(case), mf.run(case, tmp_path_factory.mktemp("run") / "run.h5")


def bits(result):
    arrays = [result.time, np.asarray(result.density), result.diagnostics.time, *result.diagnostics.values()]
    return [array.tobytes() for array in arrays]


def test_in_memory_and_in_a_file_are_the_same_bytes(both):
    memory, file = both
    assert bits(memory) == bits(file)
    assert (memory.case, memory.stop_reason, memory.path) == (file.case, "finished", None)
    facts = {
        name: value
        for name, value in file.attributes.items()
        if name not in ("start", "wall_time", "command", "digest")
    }
    assert facts == {name: memory.attributes[name] for name in facts}
    assert set(memory.attributes) == set(file.attributes)


def test_a_saved_result_is_the_file_of_a_run_and_goes_on_as_it_does(both, tmp_path):
    memory, file = both
    saved = memory.save(tmp_path / "saved.h5")
    copied = file.save(tmp_path / "copied.h5")
    assert bits(mf.open_run(saved)) == bits(file)
    assert main(["info", str(saved), "--verify"]) == 0
    with pytest.raises(mf.FileError, match="exists already"):
        memory.save(saved)
    assert bits(mf.resume(saved, until=4.0)) == bits(mf.resume(copied, until=4.0))
    assert Checkpoints(saved).read()[1]["time"] == 4.0


def test_rows_of_a_file_are_read_when_they_are_indexed(both):
    memory, file = both
    whole = memory.density
    assert file.density.shape == whole.shape == (7, 64)
    rows = (-1, 2, slice(1, 5, 2), slice(None, None, -1), [4, 1], np.array([True, False] * 3 + [True]))
    for key in (*rows, (2, 3), (-1, slice(3)), (slice(2), 5), ..., (slice(None), [0, 5])):
        np.testing.assert_array_equal(file.density[key], whole[key], str(key))
    np.testing.assert_array_equal(file.density * 2 + 1, whole * 2 + 1)
    np.testing.assert_array_equal(np.sum(file.density, axis=1), whole.sum(axis=1))
    with pytest.raises(IndexError):
        file.density[7]


def test_case_mesh_and_messages(both, case):
    memory, file = both
    assert file.case == case == memory.case
    np.testing.assert_allclose(file.density[-1] @ file.mesh.volumes, memory.diagnostics["mass"][-1], rtol=1e-15)
    assert file.message == ""
    with pytest.raises(AttributeError, match="position: the result holds a density on a mesh"):
        _ = file.position
    with pytest.raises(KeyError, match="did you mean 'energy'"):
        file.diagnostics["enrgy"]


def test_particles(tmp_path):
    (tmp_path / "case.toml").write_text(TOKENS)
    memory, file = mf.simulate(tmp_path / "case.toml"), mf.run(tmp_path / "case.toml", tmp_path / "run.h5")
    np.testing.assert_array_equal(memory.position, file.position)
    assert file.position.shape == (7, 40, 2)
    assert file.weight.sum() == pytest.approx(1.0, abs=1e-15)
    assert file.clusters().count == int(file.diagnostics["clusters"][-1])
    assert file.to_xarray().position.dims == ("time", "point", "d") or "token" in file.to_xarray().position.dims
    with pytest.raises(AttributeError, match="mesh: the result holds particles"):
        _ = file.mesh


def test_replace_gives_another_case(case):
    other = case.replace({"attention.beta": 4, "initial": {"kind": "uniform"}, "output.times": np.array([0.5, 1.0])})
    assert (other.attention.beta, other.output.times, other.output.snapshots) == (4.0, (0.5, 1.0), None)
    assert case.attention.beta == 3.0
    tokens = case.replace({"domain": {"manifold": "particles", "dimension": 2, "count": 9}})
    assert "entropy" not in tokens.output.diagnostics
    with pytest.raises(mf.CaseError, match=r'attention\.beta = "x": expected a number'):
        case.replace({"attention.beta": "x"})
    with pytest.raises(mf.CaseError, match="expected a list of KEY=VALUE"):
        mf.load_case("uniform", "attention.beta=4")


@pytest.mark.parametrize("number", [0, 1], ids=["memory", "file"])
def test_xarray_has_coordinates_units_and_names(both, number):
    result = both[number]
    snapshots, diagnostics = result.to_xarray(), result.diagnostics.to_xarray()
    assert snapshots.density.dims == ("time", "cell")
    assert {"time", "cell_center", "cell_area"} <= set(snapshots.coords)
    assert (snapshots.density.attrs["units"], snapshots.cell_area.attrs["units"]) == ("rad-1", "rad")
    assert snapshots.density.attrs["long_name"]
    mass = (snapshots.density * snapshots.cell_area).sum("cell").sel(time=3.0)
    assert float(mass) == pytest.approx(1.0, abs=1e-12)
    assert diagnostics.clusters.sel(time=3) == result.diagnostics["clusters"][-1]
    assert diagnostics.centroid.sel(time=1.02, method="nearest").shape == (2,)
    assert diagnostics.power.dims == ("time", "degree")


def test_files_open_in_xarray_with_the_times_of_samples(both):
    import xarray

    opened = xarray.open_dataset(both[1].path, group="diagnostics", engine="h5netcdf")
    assert opened.clusters.coords["time"].dims == ("time",)
    assert opened.clusters.sel(time=3) == both[1].diagnostics["clusters"][-1]
    assert not [name for name in opened.dims if "phony" in name]


@pytest.mark.parametrize("number", [0, 1], ids=["memory", "file"])
def test_everything_is_made_of_either(both, number, tmp_path):
    result = both[number]
    assert result.clusters().masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.clusters(0.0).count >= 0
    assert len(result.mergers()) == len(both[0].mergers())
    assert result.export(tmp_path / "run.csv", "csv").read_text().startswith("time,mass")
    assert result.view(tmp_path / "run.html").stat().st_size > 10_000
    assert result.movie(tmp_path / "run.gif").stat().st_size > 10_000
    assert "state     finished" in repr(result)
    assert result._repr_html_().startswith('<img alt="Clusters on the circle"')
    with pytest.raises(ValueError, match="time = -1"):
        result.clusters(-1.0)


def test_figures_take_axes_and_panels(both):
    from matplotlib.figure import Figure

    result, figure = both[0], Figure()
    ax = figure.subplots()
    assert result.plot(ax=ax, panels="clusters") is figure
    assert ax.get_title() == "clusters" or ax.lines
    assert len(result.plot(panels=["energy", "clusters"]).axes) == 2  # without the entropy
    assert len(result.plot(times=[0], title=False, caption=False).axes) > 2
    assert result.plot()._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="panels = 'enrgy': expected one or more of density, profiles, entropy"):
        result.plot(panels="enrgy")
    with pytest.raises(ValueError, match="expected the name of one recorded diagnostic"):
        result.plot(ax=ax, panels=["energy", "clusters"])


@pytest.mark.parametrize("style", ["screen", "dark"])
def test_figures_are_filled_in_place_of_new_ones(both, style):
    from matplotlib.figure import Figure

    result = both[0]
    whole, page = Figure(figsize=(9, 7)), result.plot(style=style)
    assert result.plot(figure=whole, style=style) is whole
    assert [ax.get_title() for ax in whole.axes] == [ax.get_title() for ax in page.axes]
    assert whole.get_facecolor() == page.get_facecolor()
    assert whole.get_size_inches().tolist() == [9, 7]
    assert whole.get_layout_engine() is not None  # labels have room, however the figure was created
    both_parts = Figure(figsize=(12, 4))
    left, right = both_parts.subfigures(1, 2)
    result.plot(figure=left, panels="clusters", style=style)
    result.plot(figure=right, panels=["speed", "mass"], style=style)
    assert [ax.get_title().split()[0] for ax in both_parts.axes] == ["clusters", "speed", "mass"]
    with pytest.raises(ValueError, match="ax and figure: expected one of the two"):
        result.plot(both_parts.axes[0], figure=left)
    with pytest.raises(ValueError, match="dpi = 90: expected none with figure, which has its own"):
        result.plot(figure=left, dpi=90)
    with pytest.raises(ValueError, match="panels = 'enrgy': expected one or more of"):
        result.plot(figure=left, panels="enrgy")


def test_theory_and_distances(both, case):
    theory = mf.stability(case)
    assert theory.rates[0] == pytest.approx(0.0, abs=1e-15)
    assert theory.rates[theory.fastest] == theory.rates.max()
    assert "growth" in repr(theory)
    assert mf.compare(both[0], both[1]).columns["l1"].max() == 0.0
    assert mf.compare(both[1].path).columns


def test_bad_input_is_one_line_and_nothing_is_printed(both, case, tmp_path, capfd):
    with pytest.raises(mf.CaseError, match=r"no such file, nor a shipped case"):
        mf.simulate("no_such_case")
    with pytest.raises(mf.FileError, match=r"exists already; overwrite=True"):
        mf.run(case, both[1].path)
    with pytest.raises(mf.FileError, match="cannot read it: No such file"):
        mf.open_run(tmp_path / "missing.h5")
    with pytest.raises(mf.CaseError, match="device = 'tpu': expected 'cpu' or 'gpu'"):
        mf.simulate(case, device="tpu")
    mf.resume(both[1].path)  # the run is complete
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("package", [mf, solvers], ids=["meanfield", "solvers"])
def test_all_names_exist_and_types_ship(package):
    assert len(set(package.__all__)) == len(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    assert (Path(package.__file__).parent / "py.typed").is_file()


SECTIONS = {
    "domain": {"manifold": "circle", "resolution": 32},
    "attention": {"beta": 2.0, "query": np.array([[1.0, 2.0], [0.0, 1.0]])},
    "initial": {"kind": "perturbed", "seed": np.int64(3)},
    "time": {"end": 0.5},
}


def built(resolution=32, **attention):
    return records.Case(
        domain=records.Circle(resolution=resolution),
        attention=records.Attention(**{"beta": 2.0, "query": SECTIONS["attention"]["query"]} | attention),
        initial=records.Perturbed(seed=np.int64(3)),
        time=records.Time(end=0.5),
    )


def test_a_case_built_of_sections_is_that_of_a_file(tmp_path):
    file = tmp_path / "case.toml"
    lines = [f"{table}.{key} = {inline(value)}" for table, keys in SECTIONS.items() for key, value in keys.items()]
    file.write_text("\n".join(lines))
    expected = mf.load_case(file)
    assert mf.load_case(SECTIONS) == expected
    assert mf.load_case(built()) == expected
    assert mf.simulate(built()).case == expected
    assert mf.load_case(built(), {"attention.beta": 3}) == expected.replace({"attention.beta": 3})


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (lambda: built(resolution=-8), "domain.resolution = -8: expected an integer >= 8"),
        (lambda: built(beta="4"), 'attention.beta = "4": expected a number'),
        (lambda: built(query=np.eye(3)), "attention.query = .*: expected a 2×2 matrix"),
        (lambda: built(query=object()), "case: <object.*: expected numbers, texts, lists and sections"),
        (lambda: SECTIONS | {"domain": 3}, "domain = 3: expected a table"),
        (lambda: {}, "missing; expected a section"),
    ],
)
def test_cases_built_in_python_are_checked_as_a_file_is(case, message):
    with pytest.raises(mf.CaseError, match=message):
        mf.simulate(case())


def test_cases_and_clusters_are_shown_in_notebooks(both, case):
    shown = case.replace({"title": "a < b"})._repr_html_()
    assert "<b>a &lt; b</b>" in shown
    assert "circle, β = 3, softmax attention" in shown
    text = html.unescape(shown.split("<pre>")[1].split("</pre>")[0])
    assert mf.load_case(tomllib.loads(text)) == case.replace({"title": "a < b"})
    found = both[0].clusters()
    rows = re.findall(r"<tr><td>(\d+)</td><td>(.*?)</td><td>(.*?)</td></tr>", found._repr_html_())
    assert [float(mass) for _, mass, _ in rows] == pytest.approx(found.masses, rel=1e-5)  # six digits


def test_meshes_and_clusters_are_shown_in_a_line(both):
    for result in both:
        assert "64 cells in R^2" in repr(result.mesh)
        assert len(repr(result.clusters())) < 400


def test_a_run_in_memory_is_laid_out_as_a_file_when_it_is_saved(case, tmp_path, monkeypatch):
    """An HDF5 file in memory takes as long as hundreds of steps of a small run."""
    made = []
    image = memory.image
    monkeypatch.setattr(memory, "image", lambda *given: made.append(given) or image(*given))
    result = mf.simulate(case)
    assert result.density.shape == (7, 64)
    assert len(result.clusters().masses) > 0
    assert not made
    result.save(tmp_path / "run.h5")
    assert len(made) == 1
