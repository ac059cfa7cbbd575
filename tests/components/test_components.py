"""Components defined by a user: a case names them, they run, resume, plot and sweep, and no file alone loads them."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.cli.parser import main
from meanfield.components.component import LOADED
from meanfield.components.loaded import SOURCES, loaded_sources
from meanfield.components.loading import load_sources
from meanfield.model.kernel import KERNELS
from meanfield.model.layer_norm import LAYER_NORMS
from meanfield.sections.section import OWN
from meanfield.simulation import set_up
from solvers.io.run_file import read

FILES = {
    "kernel": """
import numpy as np
from meanfield import component

@component("kernel")
def own_exponential(cosines, beta):
    return np.exp(beta * cosines)
""",
    "layer_norm": """
from meanfield import component

@component("layer_norm")
def half(time, size):
    return 2.0
""",
    "reaction": """
from meanfield import component

@component("reaction", rate=1.0)
def decay(x, density, rate):
    return -rate
""",
    "feed_forward": """
import numpy as np
from meanfield import component

@component("feed_forward", strength=1.0)
def pull(x, strength):
    return np.tile(strength * np.eye(x.shape[1])[0], (len(x), 1))
""",
    "initial": """
import numpy as np
from meanfield import component

@component("initial", width=1.0)
def bump(x, width):
    return np.exp(x[:, 0] / width)
""",
    "diagnostic": """
from meanfield import component

@component("diagnostic", long_name="mean square of the first coordinate")
def first_square(x, mass):
    return mass @ x[:, 0] ** 2
""",
}
SETTINGS = {
    "kernel": {"attention.kernel": "own_exponential"},
    "layer_norm": {"stabilizers.layer_norm": "half"},
    "reaction": {"reaction": {"kind": "decay", "rate": 0.5}},
    "feed_forward": {"feed_forward": {"field": "pull", "strength": 0.3}},
    "initial": {"initial": {"kind": "bump", "width": 0.5}},
    "diagnostic": {"output.diagnostics": ["mass", "clusters", "first_square"]},
}
BASE = """
domain = { manifold = "circle", resolution = 48 }
attention = { beta = 2.0 }
initial = { kind = "von_mises_fisher", components = [{ center = [0.6, 0.8], concentration = 4.0 }] }
time = { end = 1.0 }
output = { snapshots = 4, samples = 8, checkpoint = 1e-9 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write files of components and a case, and leave no component loaded before or after the test."""
    monkeypatch.chdir(tmp_path)
    for kind, text in FILES.items():
        assert len(text.strip().splitlines()) <= 15
        (tmp_path / f"{kind}.py").write_text(text)
    (tmp_path / "case.toml").write_text(BASE)
    tables = (LOADED, KERNELS, LAYER_NORMS, *OWN.values())
    before, loaded_before = [dict(table) for table in tables], loaded_sources()
    for kind, name in [*LOADED]:
        for table in tables:
            table.pop((kind, name) if table is LOADED else name, None)
    yield tmp_path
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)
    load_sources(loaded_before)


def case_with(*kinds):
    return mf.load_case("case.toml").replace({key: value for kind in kinds for key, value in SETTINGS[kind].items()})


def density(result):
    return np.asarray(result.density)


def test_each_is_what_the_built_in_one_of_the_same_formula_is(folder):
    mf.load_components(*(folder / f"{kind}.py" for kind in FILES))
    plain = mf.simulate("case.toml")
    # The kernel is expanded by quadrature.
    assert np.abs(density(mf.simulate(case_with("kernel"))) - density(plain)).max() < 1e-9
    # The token speed is halved, so the run lasts twice as long.
    slow = mf.simulate(case_with("layer_norm").replace({"time.end": 2.0, "output.snapshots": 4}))
    assert np.abs(density(slow) - density(plain)).max() < 1e-3  # the steps differ, and the method is of third order
    decayed = mf.simulate(case_with("reaction"))
    np.testing.assert_allclose(decayed.diagnostics["mass"], np.exp(-0.5 * decayed.diagnostics.time), rtol=1e-4)
    start = mf.simulate(case_with("initial"))
    vmf = plain.case.replace({"initial": {"kind": "von_mises_fisher", "components": [
        {"center": [1.0, 0.0], "concentration": 2.0}]}})  # fmt: skip
    # Cell averages against values at cell centers.
    np.testing.assert_allclose(start.density[0], mf.simulate(vmf).density[0], rtol=1e-3)
    network = {"activation": "tanh", "inner": [[0.0, 0.0]], "bias": [np.arctanh(0.3)], "outer": [[1.0], [0.0]]}
    given = mf.simulate(plain.case.replace({"feed_forward": network}))
    assert np.abs(density(mf.simulate(case_with("feed_forward"))) - density(given)).max() < 1e-12
    measured = mf.simulate(case_with("diagnostic"))
    masses = measured.density[-1] * measured.mesh.volumes
    assert measured.diagnostics["first_square"][-1] == pytest.approx(masses @ measured.mesh.centers[:, 0] ** 2)
    assert "mean square" in measured.diagnostics.to_xarray().first_square.attrs["long_name"]


def run_killed(folder, path):
    """Run all components in this process, and kill the process after the second snapshot."""
    mf.load_components(*(folder / f"{kind}.py" for kind in FILES))
    import solvers.io.run_file

    write = solvers.io.run_file.RunFile.write_snapshot

    def killing(file, *arguments, **options):
        write(file, *arguments)
        if file.snapshots == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    solvers.io.run_file.RunFile.write_snapshot = killing
    mf.run(case_with(*FILES), path)


def test_killed_and_resumed_with_all_of_them_is_the_whole_run(folder):
    paths = [folder / f"{kind}.py" for kind in FILES]
    process = multiprocessing.get_context("fork").Process(target=run_killed, args=(folder, "killed.h5"))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(mf.CaseError, match=r"killed.h5: was computed with the user-defined .*; load it: --comp"):
        mf.resume("killed.h5")
    assert main(["plot", "killed.h5"]) == 2
    mf.load_components(*paths)
    resumed, whole = mf.resume("killed.h5"), mf.run(case_with(*FILES), "whole.h5")
    assert density(resumed).tobytes() == density(whole).tobytes()
    assert resumed.plot() is not None
    assert len(resumed.attributes["components"].splitlines()) == len(FILES)


def test_a_case_alone_imports_nothing_and_is_refused_in_a_line(folder, capsys):
    (folder / "kernel.py").write_text('raise SystemExit("it ran")')
    text = BASE.replace("beta = 2.0", 'beta = 2.0, kernel = "own_exponential"')
    (folder / "named.toml").write_text(text)
    assert main(["run", "named.toml", "-o", "run.h5"]) == 2
    said = capsys.readouterr().err
    assert 'attention.kernel = "own_exponential": expected' in said
    assert len(said.splitlines()) == 1
    for kind in ("reaction", "initial", "feed_forward", "layer_norm", "diagnostic"):
        with pytest.raises(mf.CaseError):
            case_with(kind)


def test_on_the_command_line(folder, capsys):
    (folder / "decay.toml").write_text(BASE + '[reaction]\nkind = "decay"\nrate = 0.5\n')
    assert main(["run", "decay.toml", "--component", "reaction.py", "--quiet"]) == 0
    assert main(["check", "decay.toml", "--component", "reaction.py"]) == 0
    assert main(["plot", "decay.h5", "--component", "reaction.py"]) == 0
    assert main(["resume", "decay.h5", "--until", "1.5", "--component", "reaction.py", "--quiet"]) == 0
    (folder / "reaction.py").write_text(FILES["reaction"].replace("-rate", "-2 * rate"))
    capsys.readouterr()
    assert main(["resume", "decay.h5", "--until", "2", "--component", "reaction.py"]) == 2
    assert "the reaction decay has changed: sha256" in capsys.readouterr().err
    assert read("decay.h5").attributes["components"].startswith("reaction decay ")
    assert main(["run", "decay.toml", "-o", "other.h5", "--component", "missing.py"]) == 2
    assert capsys.readouterr().err == "meanfield: component missing.py: cannot be read: No such file or directory\n"


def test_swept_in_processes_and_on_dask(folder):
    from distributed import Client, LocalCluster

    mf.load_components("reaction.py")
    keys = {"reaction.rate": [0.5, 1.0]}
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        found = [mf.sweep(case_with("reaction"), keys, jobs=1), mf.sweep(case_with("reaction"), keys, client=client)]
    for dataset in found:
        np.testing.assert_allclose(dataset.mass, np.exp([-0.5, -1.0]), rtol=1e-4)


@pytest.fixture
def package(folder, monkeypatch):
    """Install a package as Python sees it: a module, and beside the module the metadata with an entry point."""
    name = f"own_{folder.name.replace('-', '_')}"  # a new name for each test, because modules stay loaded
    site = folder / "site"
    metadata = site / f"{name}-0.3.dist-info"
    metadata.mkdir(parents=True)
    (site / f"{name}.py").write_text(FILES["reaction"] + FILES["diagnostic"])
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (metadata / "entry_points.txt").write_text(f"[meanfield.components]\nown = {name}\n")
    monkeypatch.syspath_prepend(site)
    yield site / f"{name}.py"
    sys.modules.pop(name, None)
    SOURCES.pop("own", None)


def test_an_installed_package_lists_its_components(folder, package, capsys):
    (folder / "decay.toml").write_text(BASE + '[reaction]\nkind = "decay"\nrate = 0.5\n')
    assert main(["run", "decay.toml", "--quiet"]) == 2
    assert package.stem not in sys.modules  # installed packages are not imported unasked
    assert main(["run", "decay.toml", "--component", package.stem]) == 2
    assert "an entry point of meanfield.components: own" in capsys.readouterr().err
    settings = ["--set", 'output.diagnostics=["mass", "first_square"]']
    assert main(["run", "decay.toml", "--component", "own", "--quiet", *settings]) == 0
    recorded = read("decay.h5").attributes["components"]
    (reaction,) = (one for one in mf.load_components("own") if one.kind == "reaction")
    assert f"reaction decay {reaction.sha256}" in recorded
    found = mf.sweep("decay.toml", {"reaction.rate": [0.5, 1.0]}, jobs=1)  # the sweep runs in another process
    np.testing.assert_allclose(found.mass, np.exp([-0.5, -1.0]), rtol=1e-4)
    package.write_text(package.read_text().replace("-rate", "-2 * rate"))  # the code changes, the version does not
    mf.load_components("own")
    with pytest.raises(mf.CaseError, match=r"the .* has changed: sha256 .*, in own"):
        mf.resume("decay.h5", until=2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "expected functions with @component, found none"),
        ("1 / 0", "cannot be run: ZeroDivisionError: division by zero"),
        ('from meanfield import component\n@component("kernel")\ndef gaussian(z, beta): ...', "is built in"),
        ('from meanfield import component\n@component("initial")\ndef uniform(x): ...', "is built in"),
        ('from meanfield import component\n@component("reaction")\ndef linear(x, density): ...', "is built in"),
        ('from meanfield import component\n@component("kernal")\ndef mine(z, beta): ...', "expected one of kernel"),
        ('from meanfield import component\n@component("kernel", a=1)\ndef mine(z, b): ...', "takes no parameters: a"),
    ],
)
def test_bad_files_are_refused(folder, text, message):
    Path("bad.py").write_text(text)
    with pytest.raises(mf.CaseError, match=message):
        mf.load_components("bad.py")


def test_bad_values_are_refused_by_their_keys(folder):
    mf.load_components("reaction.py", "initial.py")
    with pytest.raises(mf.CaseError, match=r'reaction\.rate = "fast": expected a number'):
        mf.load_case("case.toml", {"reaction": {"kind": "decay", "rate": "fast"}})
    with pytest.raises(mf.CaseError, match=r"reaction.*speed"):
        mf.load_case("case.toml", {"reaction": {"kind": "decay", "speed": 1.0}})
    with pytest.raises(mf.CaseError, match=r'initial\.kind = "bump": expected a built-in one, or .* kind tokens'):
        mf.load_case("case.toml", {"domain": TOKENS, **SETTINGS["initial"]})
    with pytest.raises(mf.CaseError, match=r"no_such_package: expected a file that ends in \.py, or an entry point"):
        mf.load_components("no_such_package")


FREE = {"manifold": "free_radius_circle", "resolution": 128, "radii": 16}


@pytest.mark.parametrize(
    ("changes", "built_in", "function"),
    [
        ({"domain": {"manifold": "line", "resolution": 400}, "stabilizers.layer_norm": "none"},
         {"kind": "gaussian", "mean": 0.5, "variance": 0.8}, lambda x: np.exp(-((x[:, 0] - 0.5) ** 2) / 1.6)),
        ({"domain": {"manifold": "axisymmetric", "dimension": 16, "resolution": 400}},
         {"kind": "von_mises_fisher", "components": [{"center": [1.0], "concentration": 4.0}]},
         lambda x: np.exp(4 * np.cos(x[:, 0]))),
        ({"domain": FREE, "stabilizers.layer_norm": "none"},
         {"kind": "von_mises_fisher", "components": [{"center": [0.0, 1.0], "concentration": 2.0}], "radius": 1.5},
         lambda x: np.exp(2 * x[:, 1])),
    ],
    ids=["line", "axisymmetric", "free_radius"],
)  # fmt: skip
def test_initial_densities_of_every_domain(folder, changes, built_in, function):
    """Cell-center values of a component agree with exact cell averages to second order."""
    mf.load_components(mf.component("initial")(lambda x: function(x)))
    (name,) = (name for kind, name in LOADED if kind == "initial")
    given = {"kind": name} | {key: built_in[key] for key in ("radius",) if key in built_in}
    text = 'attention = { beta = 1.0 }\ninitial = { kind = "uniform" }\ntime = { end = 1.0 }\n'
    Path("any.toml").write_text('domain = { manifold = "circle", resolution = 48 }\n' + text)
    own, exact = (problem_of(mf.load_case("any.toml", changes | {"initial": kind})) for kind in (given, built_in))
    assert own.min() >= 0
    np.testing.assert_allclose(own, exact, atol=2e-3 * exact.max())


def problem_of(case):
    """Return the initial state of a case."""
    return set_up(case).initial()


TOKENS = {"manifold": "particles", "dimension": 2, "count": 9, "seed": 4}
RING = """
import numpy as np
from meanfield import component

@component("tokens", width=1.0)
def bump(rng, count, dimension, width):
    return width * rng.standard_normal((count, dimension)) + np.eye(dimension)[0]
"""


def test_tokens_of_a_function(folder):
    """A function's tokens are drawn by domain.seed and lie on the sphere unless tokens have a radius.

    A density may have the same name.
    """
    Path("tokens.py").write_text(RING)
    mf.load_components("tokens.py")
    with pytest.raises(mf.CaseError, match=r'initial\.kind = "bump": expected .* kind initial, with .* circle'):
        case_with("initial")
    mf.load_components("initial.py")
    drawn = 0.5 * np.random.default_rng(4).standard_normal((9, 2)) + [1, 0]
    result = mf.run(mf.load_case("case.toml", {"domain": TOKENS, **SETTINGS["initial"]}), "tokens.h5")
    np.testing.assert_allclose(result.position[0], drawn / np.linalg.norm(drawn, axis=1)[:, None], rtol=1e-12)
    assert result.attributes["components"].startswith("tokens bump ")
    free = {"domain": TOKENS, "stabilizers.layer_norm": "none", **SETTINGS["initial"]}
    np.testing.assert_allclose(mf.simulate(mf.load_case("case.toml", free)).position[0], drawn, rtol=1e-12)
    on_sphere = mf.simulate(mf.load_case("case.toml", free | {"initial.radius": 2.0})).position[0]
    np.testing.assert_allclose(np.linalg.norm(on_sphere, axis=1), 2, rtol=1e-12)
    assert mf.simulate(case_with("initial")).density.shape == (5, 48)


def test_a_function_of_this_process_is_a_component(folder):
    @mf.component("reaction", rate=1.0)
    def decay(x, density, rate):
        return np.full(len(x), -rate)

    case_of = mf.load_case("case.toml").replace
    with pytest.raises(mf.CaseError, match=r"reaction.kind"):
        case_of({"reaction": {"kind": "decay", "rate": 0.5}})
    (own,) = mf.load_components(decay)
    case = case_of({"reaction": {"kind": "decay", "rate": 0.5}})
    result = mf.run(case, "own.h5")
    np.testing.assert_allclose(result.diagnostics["mass"], np.exp(-0.5 * result.diagnostics.time), rtol=1e-4)
    assert result.attributes["components"] == f"reaction decay {own.sha256}"
    with pytest.raises(mf.CaseError, match="component decay: is defined in this process only; other processes load"):
        mf.sweep(case, {"reaction.rate": [0.5, 1.0]}, jobs=1)
    others = mf.sweep("case.toml", {"attention.beta": [1.0]}, jobs=1)  # this case does not name the component
    assert others["status"].values.tolist() == ["done"]


@pytest.mark.parametrize("domain", ["circle", "particles"])
def test_a_diagnostic_may_be_an_array(folder, domain):
    """Masses in eight sectors of the circle add up to the mass, and their dimension is named in memory and in the
    file."""

    @mf.component("diagnostic", long_name="mass in each sector", dimensions={"sector": 8})
    def sectors(x, mass):
        angle = np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi)
        return np.bincount((angle // (np.pi / 4)).astype(int), mass, 8)

    mf.load_components(sectors)
    changes = {"output.diagnostics": ["mass", "sectors"]}
    if domain == "particles":
        changes |= {"domain": {"manifold": "particles", "dimension": 2, "count": 50}, "initial": {"kind": "uniform"}}
    result = mf.run(mf.load_case("case.toml").replace(changes), "own.h5")
    found = mf.open_run("own.h5").diagnostics.to_xarray().sectors
    assert found.dims == ("time", "sector")
    assert result.diagnostics["sectors"].shape == (9, 8)
    np.testing.assert_allclose(found.sum("sector"), result.diagnostics["mass"], rtol=1e-12)


def test_diagnostics_are_drawn(folder, capsys):
    """The page of a run shows a number and an array of components before built-in diagnostics; the command takes
    their names."""
    (folder / "diagnostic.py").write_text(
        FILES["diagnostic"]
        + """
@component("diagnostic", long_name="mass in each half", dimensions={"half": 2})
def halves(x, mass):
    return [mass[x[:, 0] < 0].sum(), mass[x[:, 0] >= 0].sum()]
"""
    )
    mf.load_components("diagnostic.py")
    names = ["mass", "energy", "speed", "clusters", "centroid", "first_square", "halves"]
    result = mf.run(mf.load_case("case.toml", {"output.diagnostics": names}), "run.h5")
    figure = result.plot(panels=["halves", "first_square"])
    drawn = [[line.get_ydata() for line in ax.lines] for ax in figure.axes]
    np.testing.assert_array_equal(np.transpose(drawn[0]), result.diagnostics["halves"])
    np.testing.assert_array_equal(drawn[1][0], result.diagnostics["first_square"])
    assert [ax.get_title() for ax in figure.axes] == ["mass in each half", "mean square of the first coordinate"]
    assert {"mass in each half", "mean square of the first coordinate"} < {ax.get_title() for ax in result.plot().axes}
    own = ["--component", "diagnostic.py"]
    assert main(["plot", "run.h5", *own, "-o", "own.png", "--panels", "first_square,halves"]) == 0
    assert main(["plot", "run.h5", *own, "-o", "own.png", "--panels", "first_cube"]) == 2
    assert "first_square, halves" in capsys.readouterr().err


def test_a_run_in_memory_draws_a_diagnostic_of_its_own(folder):
    @mf.component("diagnostic", long_name="mean square of x")
    def squares(x, mass):
        return float(mass @ x[:, 0] ** 2)

    mf.load_components(squares)
    result = mf.simulate(mf.load_case("case.toml"), {"output.diagnostics": ["energy", "squares"]})
    assert "mean square of x" in {ax.get_title() for ax in result.plot().axes}


def test_a_diagnostic_of_another_shape_is_refused(folder):
    @mf.component("diagnostic", dimensions={"sector": 8})
    def sectors(x, mass):
        return mass[:3]

    mf.load_components(sectors)
    case = mf.load_case("case.toml").replace({"output.diagnostics": ["sectors"]})
    with pytest.raises(mf.CaseError, match=r"component sectors: returns an array \(3,\): expected \(8,\)"):
        mf.simulate(case)
    for dimensions in ({"cluster": 3}, {"d": 2}):
        own = mf.component("diagnostic", dimensions=dimensions)(lambda x, mass: mass)
        with pytest.raises(mf.CaseError, match="is already used by other diagnostics; choose another name"):
            mf.load_components(own)
    with pytest.raises(TypeError, match="a kernel has no dimensions: sector"):
        mf.component("kernel", dimensions={"sector": 8})
    with pytest.raises(ValueError, match="expected a name and a whole number >= 1"):
        mf.component("diagnostic", dimensions={"sector": 0})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x, mass: 1 / 0,
            r"component ratio: .*test_components.py, line \d+: ZeroDivisionError: division",
        ),
        (lambda x: 1.0, r"line \d+: TypeError: .*takes 1 positional argument but 2 were given$"),
        (lambda x, mass: "much", "component ratio: returns str: expected numbers"),
    ],
)
def test_what_a_component_does_wrong_is_one_line(folder, function, message):
    function.__name__ = "ratio"
    mf.load_components(mf.component("diagnostic")(function))
    with pytest.raises(mf.CaseError, match=message):
        mf.simulate(mf.load_case("case.toml").replace({"output.diagnostics": ["ratio"]}))
