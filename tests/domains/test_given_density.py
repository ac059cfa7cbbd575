"""Initial densities from arrays, formulas and label by label: their values, and refused input."""

import numpy as np
import pytest
from support.status import DONE, run

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.domains.sphere.initial import initial_points, initial_von_mises_fisher
from meanfield.sections.formula import evaluate
from meanfield.simulation import set_up
from solvers.io.run_file import read
from solvers.mesh.mesh import circle, sphere

CASE = """
[domain]
manifold = "{}"
resolution = {}
[attention]
beta = 2.0
mask = "{}"
[initial]
{}
[time]
end = 0.2
[output]
snapshots = 1
samples = 1
"""


def density(initial, manifold="circle", resolution=64, mask="none", *changes):
    problem = set_up(parse(CASE.format(manifold, resolution, mask, initial), changes))
    return problem.initial()


def test_a_formula_is_that_function_of_the_coordinates():
    mesh = circle(64)
    angle = np.arctan2(*mesh.centers.T[::-1])
    expected = np.exp(2 * np.cos(angle)) + 0.5 * np.sin(3 * angle) ** 2
    found = density('kind = "formula"\ndensity = "exp(2*x) + 0.5*sin(3*phi)**2"')
    np.testing.assert_allclose(found, expected / (expected @ mesh.volumes), rtol=1e-12)
    mesh = sphere(16)
    x = mesh.centers / np.linalg.norm(mesh.centers, axis=1)[:, None]
    expected = 1 + 0.5 * x[:, 2] * np.cos(np.arccos(x[:, 2])) - x[:, 1] / 2
    found = density('kind = "formula"\ndensity = "1 + z*cos(theta)/2 - y/2"', "sphere", 16)
    np.testing.assert_allclose(found, expected / (expected @ mesh.volumes), rtol=1e-12)


BUMP = "kind = 'von_mises_fisher'\ncomponents = [{ center = [1.0], concentration = 4.0 }]"


@pytest.mark.parametrize(("formula", "value"), [
    ("-" * 990 + "x", 0.5), ("(" * 150 + "x" + ")" * 150, 0.5), ("abs(" * 150 + "-x" + ")" * 150, 0.5),
    ("x" + "+x" * 499, 250.0), ("x**" * 300 + "1", 0.6411857445049859), ("x-x/x*2-1", -2.5),
    ("2-(3-x)-(1+x)**2", -2.75),
], ids=lambda value: str(value)[:5])  # fmt: skip
def test_formulas_as_deep_as_their_length_allows(formula, value):
    """Python's calls nest a thousand deep. The power tower tends to the solution of x = ½ˣ."""
    assert evaluate(formula, {"x": 0.5}) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(("manifold", "formula", "built_in"), [
    ("line", "exp(-(x - 1)**2/2)", "kind = 'gaussian'\nmean = 1.0\n[stabilizers]\nlayer_norm = 'none'"),
    ("axisymmetric", "exp(4*z)", BUMP),
    ("axisymmetric", "exp(4*cos(theta))", BUMP),
])  # fmt: skip
def test_formulas_on_the_line_and_about_an_axis(manifold, formula, built_in):
    """Exact averages of a Gaussian and of e^{4z} on S^7 are the reference; center values are of second order in the
    cells."""
    size = "200\ndimension = 8" if manifold == "axisymmetric" else "200"
    exact = density(built_in, manifold, size)
    given = density(f"kind = 'formula'\ndensity = '{formula}'" + built_in.partition("mean = 1.0")[2], manifold, size)
    np.testing.assert_allclose(given, exact, atol=2e-3 * exact.max())


@pytest.mark.parametrize("text", [
    "__import__('os')", "x.real", "x[0]", "(lambda: 1)()", "open", "x if x else y", "exp(x, x)", "exp(a=x)", "[x]",
    "x @ y", "1j", "'a'", "True", "", "x" * 2000, "z", "label", "eval(x)", "(" * 500 + ")" * 500, "x := 1", "\0",
])  # fmt: skip
def test_formulas_that_are_more_than_arithmetic_are_refused(text):
    with pytest.raises(ValueError, match=r"formula|functions of|numbers, names"):
        evaluate(text, {"x": np.ones(3), "y": np.ones(3)})


@pytest.mark.parametrize(("initial", "line"), [
    ("kind = 'formula'\ndensity = 'z'", "initial.density = \"z\": expected a formula in x, y, phi and pi, not z"),
    ("kind = 'formula'\ndensity = 'label'", 'a formula in x, y, phi and pi, not label'),
    ("kind = 'formula'\ndensity = 'x'", 'initial.density = "x": expected values that are finite and nowhere negative'),
    ("kind = 'formula'\ndensity = '0*x'", "expected values that are not zero everywhere"),
    ("kind = 'formula'\ndensity = 'gamma(x)'", "functions of exp, log"),
    ("kind = 'array'\nfile = 'none.npy'", "initial.file = \"none.npy\": expected an array of numbers"),
    ("kind = 'array'\nfile = 'short.npy'", "an array (64,), a number for each cell, not (63,)"),
    ("kind = 'by_label'\nparts = [{kind = 'uniform'}]", 'initial.kind = "by_label": expected another, or'),
])  # fmt: skip
def test_refused_in_one_line(initial, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("short.npy", np.ones(63))
    with pytest.raises(CaseError) as error:
        density(initial)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_parts_are_checked_by_their_own_keys():
    parts = "kind = 'by_label'\nparts = [{kind = 'uniform'}, {kind = 'harmonic', degree = 99, amplitude = 0.1}]"
    with pytest.raises(CaseError, match=r"initial\.parts\[1\]\.degree = 99: expected at most 31"):
        density(parts, mask="causal")
    with pytest.raises(CaseError, match=r"domain\.labels = 3: expected a multiple of the number of initial\.parts, 2"):
        density(parts.replace("99", "9"), "circle", 64, "causal", "domain.labels=3")


def test_an_array_is_kept_up_to_its_mass(tmp_path):
    values = np.random.default_rng(0).random((4, 64))
    np.save(tmp_path / "rows.npy", values)
    np.save(tmp_path / "row.npy", values[0])
    mesh = circle(64)
    each = values / (values @ mesh.volumes)[:, None]
    found = density(f'kind = "array"\nfile = "{tmp_path}/row.npy"')
    np.testing.assert_allclose(found, each[0], rtol=1e-14)
    found = density(f'kind = "array"\nfile = "{tmp_path}/rows.npy"', "circle", 64, "causal", "domain.labels=4")
    np.testing.assert_allclose(found.reshape(4, -1), each / 4, rtol=1e-14)


def test_labels_begin_as_their_parts_formulas_and_tokens_say(tmp_path):
    mesh = circle(64)
    bump = "{kind = 'von_mises_fisher', components = [{center = [0, 1], concentration = 5}]}"
    parts = f"kind = 'by_label'\nparts = [{{kind = 'uniform'}}, {bump}]"
    found = density(parts, "circle", 64, "causal", "domain.labels=4").reshape(4, -1)
    bumps = initial_von_mises_fisher(mesh, [[0.0, 1.0]], [5.0], [1.0])
    for row, expected in zip(found, [np.full(64, 1 / mesh.volume)] * 2 + [bumps] * 2, strict=True):
        np.testing.assert_allclose(row, expected / 4, rtol=1e-12)
    found = density('kind = "formula"\ndensity = "1 + label*x"', "circle", 64, "causal", "domain.labels=2").reshape(
        2, -1
    )
    for row, label in zip(found, (0.25, 0.75), strict=True):
        expected = 1 + label * mesh.centers[:, 0] / np.linalg.norm(mesh.centers, axis=1)
        np.testing.assert_allclose(row, expected / (expected @ mesh.volumes) / 2, rtol=1e-12)
    tokens = np.random.default_rng(1).standard_normal((6, 2))
    np.save(tmp_path / "tokens.npy", tokens)
    found = density(f'kind = "tokens"\nfile = "{tmp_path}/tokens.npy"', "circle", 64, "causal", "domain.labels=3")
    for row, some in zip(found.reshape(3, -1), tokens.reshape(3, 2, 2), strict=True):
        np.testing.assert_allclose(row, initial_points(mesh, some) / 3, rtol=1e-14)


def test_tokens_of_a_file_are_shared_out_among_labels(tmp_path):
    np.save(tmp_path / "tokens.npy", np.eye(2)[[0, 0, 0, 1, 1]])
    given = f'kind = "tokens"\nfile = "{tmp_path}/tokens.npy"'
    found = density(given, "circle", 64, "causal", "domain.labels=2").reshape(2, -1)
    np.testing.assert_allclose(found @ circle(64).volumes, 0.5, rtol=1e-14)
    np.testing.assert_allclose(found[0], initial_points(circle(64), [[1.0, 0.0]]) / 2, rtol=1e-14)
    with pytest.raises(CaseError, match=r"domain\.labels = 8: expected at most the number of tokens, 5"):
        density(given, mask="causal")


def test_a_softmax_mask_moves_labels_that_differ(tmp_path):
    """Equal labels move equally under softmax, whatever the mask; smooth different labels do not, and files keep
    each."""
    parts = (
        "kind = 'by_label'\nparts = [{kind = 'formula', density = '1 + x/2'}, {kind = 'formula', density = '1 + y/2'}]"
    )
    case = parse(CASE.format("circle", 64, "causal", parts), ['output.diagnostics=["label_density", "label_centroid"]'])
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    file = read(tmp_path / "run.h5")
    found, mesh = file.diagnostics["label_density"], circle(64)
    assert found.shape == (2, 2, 64)
    np.testing.assert_allclose(found @ mesh.volumes, 0.5, rtol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1)[-1], file.density(-1), rtol=1e-14)
    away = np.abs(file.diagnostics["label_centroid"][-1] - file.diagnostics["label_centroid"][0])
    assert away[1, 0] > 5 * away[0, 1]  # the second label is attracted by the first, which does not see it


@pytest.mark.parametrize(("manifold", "mask"), [("circle", "none"), ("sphere", "none"), ("sphere", "causal")])
def test_a_negative_density_is_refused_with_the_key_of_its_amplitude(manifold, mask):
    given = 'kind = "harmonic"\ndegree = 2\namplitude = 3.0'
    changes = ["domain.labels=2"] if mask == "causal" else []
    with pytest.raises(CaseError, match=r"^initial\.amplitude = 3\.0: expected at most \d"):
        density(given, manifold, 16, mask, *changes)
