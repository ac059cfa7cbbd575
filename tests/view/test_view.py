"""Content of the page of `meanfield view` for every run file; tests/view/test_view_page.py opens the page in a
browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import colormaps
from support.run_data import counted, law

from meanfield.analysis.snapshot_clusters import cluster_finder
from meanfield.cli.parser import main
from meanfield.domains.table import DOMAINS
from meanfield.figures.color_scale import Scale
from meanfield.figures.figure import load
from meanfield.figures.free_radius import directions_of
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import cell_angles
from meanfield.view.data import describe, encode, levels, thin_data
from meanfield.view.page import view
from meanfield.view.panels import curve_of, linear, panels, radii
from solvers.io.run_file import Column, FileError, RunFile, read
from solvers.mesh.mesh import Mesh, circle, sphere

CASE = """title = {title}
domain = {{manifold = "{manifold}", resolution = {resolution}}}
attention.beta = 4
initial.kind = "uniform"
time.end = 5.0
"""
SNAPSHOTS = 5
HOSTILE = "<!--<script>"  # HTML would look for the end of this script
COLUMNS = (
    Column("energy"),
    Column("clusters"),
    Column("mass"),
    Column("speed"),
    Column("centroid", (("d", 3),)),
    Column("power", (("degree", 11),)),
    Column("surprise", (("part", 2),)),  # a diagnostic of a later version
)
MESHES = {"sphere": lambda: sphere(16), "circle": lambda: circle(64)}


def blobs(mesh: Mesh, k: int) -> np.ndarray:
    """Return a density (cells,) of two unequal blobs on a background, further apart and sharper with each k.

    No reflection maps the density to itself.
    """
    places = np.array([[1.0, 0.3 * k, 0.4], [1.0, -0.3 * k, -0.2]])[:, : mesh.centers.shape[1]]
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    bumps = np.exp((3 + 10 * k) * (mesh.centers @ places.T - 1)) @ [0.6, 0.4]
    return 0.1 / mesh.volume + 0.9 * bumps / (mesh.volumes @ bumps)


def sample(k: int) -> dict[str, object]:
    power = 1e-6 * np.exp(0.5 * k) * np.arange(1, 12.0)
    return {
        "energy": 1.0 + k,
        "clusters": min(k, 2),
        "mass": 1 + 1e-15 * k,
        "speed": 0.1 + k,
        "centroid": np.array([0.1 * k, 0, 0]),
        "power": power,
        "surprise": np.array([k, -k]),
        HOSTILE: k,
    }


def run_file(
    path: Path,
    manifold: str = "sphere",
    snapshots: int = SNAPSHOTS,
    title: str = "Two blobs that part",
    columns: tuple[Column, ...] = COLUMNS,
    stop: str = "finished",
) -> Path:
    mesh = MESHES[manifold]()
    case = CASE.format(title=json.dumps(title), manifold=manifold, resolution=64 if manifold == "circle" else 16)
    with RunFile.create(path, mesh, columns, {"case": case}) as file:
        for k in range(snapshots):
            file.write_snapshot(float(k), blobs(mesh, k))
            file.write_sample(float(k), {column.name: sample(k)[column.name] for column in columns})
        path.with_suffix(".copy.h5").write_bytes(path.read_bytes())  # the file that a killed process leaves
        file.close(stop_reason=stop)
    return path


RUNS = {
    "axisymmetric": ["domain.dimension=64", "domain.resolution=48"],
    "line": ["domain.resolution=128", "domain.outermost=30", "initial.kind=gaussian", "stabilizers.layer_norm=none"],
    "free_radius_circle": ["domain.radii=12", "stabilizers.layer_norm=pre"],
    "free_radius_sphere": ["domain.resolution=6", "domain.radii=8", "stabilizers.layer_norm=peri"],
}


def real_run(path: Path, manifold: str) -> Path:
    """Run a small case on a manifold whose files describe more of their mesh, and return the run file."""
    case = path.with_suffix(".toml")
    case.write_text(CASE.format(title='"Small"', manifold=manifold, resolution=16).replace("4\n", "1\n"))
    start = [] if manifold == "line" else ['initial={kind="perturbed",amplitude=0.5,degrees=2}']
    settings = [*start, *RUNS[manifold], "time.end=0.1", f"output.snapshots={SNAPSHOTS - 1}", "output.samples=8"]
    assert main(["run", str(case), "--quiet", "-o", str(path), "--set", *settings]) == 0
    return path


@pytest.mark.parametrize("manifold", RUNS)
def test_real_runs_of_every_manifold_come_back_from_the_page(tmp_path: Path, manifold: str) -> None:
    run = real_run(tmp_path / "run.h5", manifold)
    description, found = held(view(run, tmp_path / "run.html"))
    data = load(run)
    shown = directions_of(data) if data.has_radius else data
    assert found.shape == (SNAPSHOTS, len(shown.density(0)))
    scale, count = description["scale"], 256 ** description["bytes"]
    edges = description["axis"]["edges"] if description["axis"] else None
    assert edges is None or (len(edges) == found.shape[1] + 1 and np.all(np.diff(edges) > 0))
    for k in (0, SNAPSHOTS - 1):
        part = (found[k] + 0.5) / count
        low, high = scale["low"], scale["high"]
        decoded = 1 + low + part * (high - low) if scale["deviation"] else low * (high / low) ** part
        step = (high - low) if scale["deviation"] else np.log(high / low)
        off = decoded - shown.ratio(k) if scale["deviation"] else np.log(decoded / shown.ratio(k).clip(low))
        assert np.abs(off).max() <= 0.5001 * step / count  # half a level, and rounding
    titles = [panel["title"] for panel in description["panels"]]
    assert ("radius quantiles of the tokens" in titles) == data.has_radius
    assert (description["uniform"] is None) == (manifold == "line")


def test_radii_of_the_panel_hold_their_part_of_the_mass() -> None:
    panel = radii(law("free_radius_circle", np.linspace(0, 10, 41)))
    assert [curve["label"] for curve in panel["curves"]] == ["5%", "50%", "95%"]
    for curve, normal in zip(panel["curves"], (-1.645, 0, 1.645), strict=True):
        assert len(curve["times"]) == len(curve["values"]) == 41
        # log r is normal with variance ¼ about log 0.5 and log 50, in cells of width 0.19.
        expected = np.log([0.5, 50.0]) + 0.5 * normal
        assert np.log([curve["values"][0], curve["values"][-1]]) == pytest.approx(expected, abs=0.03)


def held(page: Path) -> tuple[dict, np.ndarray]:
    """Return the content of a page: the description of the run, and the levels (snapshots, cells)."""
    text = page.read_text(encoding="utf-8")
    description = json.loads(re.search(r'id="run">(.*?)</script>', text, re.DOTALL)[1])
    packed = base64.b64decode(re.search(r'id="levels">(.*?)</script>', text, re.DOTALL)[1])
    differences = np.frombuffer(zlib.decompress(packed), f"<u{description['bytes']}")
    return description, np.cumsum(differences.reshape(-1, description["cells"]), axis=0, dtype=differences.dtype)


@pytest.mark.parametrize("manifold", MESHES)
def test_densities_come_back_from_the_page(tmp_path: Path, manifold: str) -> None:
    run = run_file(tmp_path / "run.h5", manifold)
    assert view(run, tmp_path / "run.html") == tmp_path / "run.html"
    description, found = held(tmp_path / "run.html")
    run_data = load(run)
    low, high = description["scale"]["low"], description["scale"]["high"]
    count = 256 ** description["bytes"]
    assert found.shape == (SNAPSHOTS, len(run_data.density(0)))
    for k, ratio in enumerate(run_data.ratio(k) for k in range(SNAPSHOTS)):
        decoded = low * (high / low) ** ((found[k] + 0.5) / count)
        # The error is half a level of the logarithmic scale, and rounding.
        assert np.abs(np.log(decoded / ratio.clip(low))).max() <= 0.5001 * np.log(high / low) / count
    assert description["times"] == [0, 1, 2, 3, 4]
    assert description["timeLabels"] == ["t = 0", "t = 1", "t = 2", "t = 3", "t = 4"]
    find = cluster_finder(read(run))
    for k, words in enumerate(description["clusters"]):
        assert words.split()[0] == str(find(k).count)
        assert [mark[-1] for mark in description["marks"][k]] == pytest.approx(find(k).masses, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_leading_bits_of_a_level_are_its_colour(dtype: type[np.uint8] | type[np.uint16]) -> None:
    scale, ratio = Scale(0.01, 300.0, deviation=False), np.geomspace(0.001, 300, 1000)
    color = levels(ratio, scale, dtype) >> (8 * np.dtype(dtype).itemsize - 8)
    expected = colormaps["viridis"](scale.norm(scale.values(ratio)), bytes=True)
    assert np.array_equal(colormaps["viridis"](color.astype(int), bytes=True), expected)


@pytest.mark.parametrize("manifold", MESHES)
def test_marks_are_the_blobs(tmp_path: Path, manifold: str) -> None:
    run_data = load(run_file(tmp_path / "run.h5", manifold))
    mesh, k = MESHES[manifold](), SNAPSHOTS - 1
    density = lambda _: blobs(mesh, k)  # noqa: E731
    run_data = replace(run_data, times=run_data.times[:1], density=density, clusters=counted(mesh, density))
    description, _ = describe(run_data)
    [marks] = description["marks"]
    near = 2 * np.pi / 32  # a cell
    assert [np.angle(np.exp(1j * mark[-2])) for mark in marks] == pytest.approx(
        [np.arctan(0.3 * k), -np.arctan(0.3 * k)], abs=near
    )
    if manifold == "sphere":
        latitudes = np.arctan(np.array([0.4, -0.2]) / np.hypot(1, 0.3 * k))
        assert [mark[0] for mark in marks] == pytest.approx(np.pi / 2 - latitudes, abs=near)
    for *_, mass in marks:
        assert 0.25 < mass < 0.65


def test_circle_cluster_across_angle_zero_is_one_mark() -> None:
    ratio = np.zeros(64)
    ratio[[63, 0, 1]] = 20, 24, 20
    density = lambda k: ratio / (2 * np.pi)  # noqa: E731
    run_data = RunData("", "circle", np.array([64]), 9.0, 0.0, "", np.zeros(1), density, {})
    run_data = replace(run_data, clusters=counted(circle(64), density))
    [[[angle, mass]]] = describe(run_data)[0]["marks"]
    assert angle == pytest.approx(np.pi / 64, abs=1e-5)
    assert mass == pytest.approx(1.0, abs=1e-5)


def test_long_and_fine_runs_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    run = run_file(tmp_path / "run.h5")
    monkeypatch.setattr("meanfield.view.data.SNAPSHOTS", 3)
    monkeypatch.setattr("meanfield.view.data.SAMPLES", 4)
    monkeypatch.setattr("meanfield.view.data.RINGS", 8)
    view(run, tmp_path / "run.html")
    shown = capsys.readouterr().err
    assert "3 of 5 snapshots are shown" in shown
    assert re.search(r"averaged over \d+ of 344 cells", shown), shown
    description, found = held(tmp_path / "run.html")
    assert description["times"] == [0, 2, 4]
    assert description["sampleTimes"] == [0, 1, 3, 4]
    assert len(description["rings"]) == 8
    assert found.shape == (3, sum(description["rings"]))


def test_averaging_keeps_mass_and_linear_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = sphere(64)
    run_data = RunData(
        "", "sphere", mesh.ring_cells, 4.0, 0.0, "", np.zeros(1), lambda k: 1 + 0.5 * mesh.centers[:, 2], {}
    )
    monkeypatch.setattr("meanfield.view.data.RINGS", 20)
    coarse, _ = thin_data(run_data)
    theta, _, area = cell_angles(coarse.ring_cells)
    assert len(coarse.ring_cells) == 16
    values = coarse.density(0)
    # A cell belongs to the coarse cell that contains its center: the error is a tenth of a coarse cell's height, 0.2.
    assert np.abs(values - 1 - 0.5 * np.cos(theta)).max() < 0.03
    assert values @ area == pytest.approx(mesh.volumes.sum(), rel=2e-3)


def test_hundred_rough_snapshots_at_128_rings_stay_small() -> None:
    mesh, random = sphere(128), np.random.default_rng(0)
    # All cells differ, which is the worst case for compression.
    rough = random.lognormal(size=(100, mesh.cells)) / mesh.volume
    run_data = RunData("", "sphere", mesh.ring_cells, 4.0, 0.0, "", np.arange(100.0), lambda k: rough[k], {})
    assert len(encode(run_data, Scale(0.01, 100.0, deviation=False))) < 4e6


def test_panels_hold_every_diagnostic(tmp_path: Path) -> None:
    found = {panel["title"]: panel for panel in panels(load(run_file(tmp_path / "run.h5")))}
    titles = ["energy E", "clusters", "centroid |∫xρ|", "power by degree l", "speed √∫|X|²ρ", "mass − 1", "surprise"]
    assert list(found) == titles
    assert found["energy E"]["curves"][0]["values"] == [1, 2, 3, 4, 5]
    assert found["centroid |∫xρ|"]["curves"][0]["values"] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert found["mass − 1"]["curves"][0]["values"] == pytest.approx([0, 1e-15, 2e-15, 3e-15, 4e-15], abs=3e-16)
    assert [curve["label"] for curve in found["power by degree l"]["curves"]][:8] == [f"l = {l}" for l in range(1, 9)]
    growth = found["power by degree l"]["curves"][8]
    assert growth["dashed"]
    assert growth["label"].startswith("e^(2λt), l = ")
    assert len(found["surprise"]["curves"]) == 2
    for panel in found.values():
        shown = [v for c in panel["curves"] for v in c["values"] if v is not None]
        assert panel["low"] <= min(shown) <= max(shown) <= panel["high"]


def test_the_predicted_growth_is_that_of_a_mode_that_the_density_has(tmp_path: Path) -> None:
    """Degree 3 grows fastest, but only degree 2 differs from rounding."""
    run_data = load(run_file(tmp_path / "run.h5"))
    power = np.full((5, 4), 1e-33)
    power[:, 2] = 1e-6
    found = panels(replace(run_data, diagnostics={**run_data.diagnostics, "power": power}, growth=np.arange(4.0)))
    [panel] = [one for one in found if one["title"] == "power by degree l"]
    assert [curve["label"] for curve in panel["curves"] if curve.get("dashed")] == ["e^(2λt), l = 2, λ = 2"]


@pytest.mark.parametrize("manifold", MESHES)
@pytest.mark.parametrize("kind", ["one snapshot", "no diagnostics", "log time", "uniform", "zero speed", "not finite"])
def test_every_run_has_a_description_that_json_can_hold(tmp_path: Path, manifold: str, kind: str) -> None:
    run_data = load(run_file(tmp_path / "run.h5", manifold))
    cells = len(run_data.density(0))
    spoilt = {**run_data.diagnostics, "energy": np.array([1, np.inf, np.nan, 2, 3])}
    run_data = {
        "one snapshot": replace(run_data, times=np.zeros(1)),
        "no diagnostics": replace(run_data, diagnostics={}),
        "log time": replace(run_data, times=np.array([0, 1e-3, 1e-2, 0.1, 1e2])),
        "uniform": replace(run_data, density=lambda k: np.full(cells, 1 / DOMAINS[manifold].volume)),
        "zero speed": replace(run_data, diagnostics={**run_data.diagnostics, "speed": np.zeros(5)}),
        "not finite": replace(run_data, diagnostics=spoilt),
    }[kind]
    description, densities = describe(thin_data(run_data)[0])
    json.dumps(description, allow_nan=False)
    assert len(zlib.decompress(base64.b64decode(densities))) == len(run_data.times) * cells * description["bytes"]
    assert description["timeRange"][0] < description["timeRange"][1]
    assert all(panel["low"] < panel["high"] for panel in description["panels"])
    values = [v for panel in description["panels"] if panel["log"] for c in panel["curves"] for v in c["values"]]
    assert all(value is None or value > 0 for value in values)
    assert (description["panels"] == []) == (kind == "no diagnostics")


def test_what_is_constant_but_for_rounding_has_an_axis_whose_ticks_differ() -> None:
    """An axis as narrow as the rounding of its numbers would have endless ticks."""
    panel = linear("energy", [curve_of(26.7 + 4e-15 * np.arange(5.0), "#000000")])
    assert panel["high"] - panel["low"] > 1.0


def test_texts_cannot_break_out(tmp_path: Path) -> None:
    title = "</script><script>alert(1)</script> @LEVELS@ & more"
    view(run_file(tmp_path / "run.h5", title=title, columns=(Column(HOSTILE),)), tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "alert(1)</script>" not in text
    assert HOSTILE not in text
    assert held(tmp_path / "run.html")[0]["panels"][0]["title"] == HOSTILE
    assert "<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; @LEVELS@ &amp; more</h1>" in text


def test_page_names_nothing_on_the_network(tmp_path: Path) -> None:
    text = view(run_file(tmp_path / "run.h5"), tmp_path / "run.html").read_text(encoding="utf-8")
    assert set(re.findall(r"\w+://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"@[A-Z]+@", text)


def test_killed_and_running_files_are_shown(tmp_path: Path) -> None:
    run_file(tmp_path / "run.h5")
    killed = view(tmp_path / "run.copy.h5", tmp_path / "killed.html")
    assert held(killed)[1].shape[0] == SNAPSHOTS
    assert "killed at t = 4 of 5" in killed.read_text(encoding="utf-8").replace("\u00a0", " ")
    case = CASE.format(title='"live"', manifold="sphere", resolution=16)
    with RunFile.create(tmp_path / "live.h5", sphere(16), (), {"case": case}) as file:
        file.write_snapshot(0.0, blobs(sphere(16), 0))
        assert held(view(tmp_path / "live.h5", tmp_path / "live.html"))[1].shape[0] == 1
        file.close(stop_reason="finished")


def test_what_cannot_be_shown_is_refused_in_one_line(tmp_path: Path) -> None:
    run, empty = run_file(tmp_path / "run.h5"), run_file(tmp_path / "empty.h5", snapshots=0)
    (tmp_path / "taken.html").write_bytes(b"old")
    shutil.copy(run, tmp_path / "named.html")
    before = sorted(tmp_path.iterdir())
    for file, name, message in [
        (run, "run.pdf", r"run\.pdf: unknown kind of page '\.pdf'; expected \.html, \.htm"),
        (run, "taken.html", r"taken\.html: exists already; --overwrite replaces it"),
        (run, "nowhere/run.html", "nowhere does not exist"),
        (empty, "run.html", "holds no snapshot"),
        (tmp_path / "missing.h5", "run.html", r"missing\.h5"),
        (tmp_path / "named.html", "named.html", "is the run itself"),
    ]:
        with pytest.raises(FileError, match=message) as caught:
            view(file, tmp_path / name, overwrite=name == "named.html")
        assert "\n" not in str(caught.value)
    assert (tmp_path / "taken.html").read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == before


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(run_file(tmp_path / "run.h5", snapshots=2))
    assert main(["view", run]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'run.html'}\n"
    assert main(["view", run]) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main(["view", run, "--overwrite", "-o", str(tmp_path / "run.html")]) == 0
