"""Initial densities and tokens from arrays and functions, and cases by keyword sections."""

import pickle

import numpy as np
import pytest

import meanfield as mf
from meanfield.case import Attention, Circle, Perturbed, Time
from meanfield.runtime.cost import estimate
from meanfield.simulation import set_up

CIRCLE = {"domain": {"manifold": "circle", "resolution": 16}, "attention": {"beta": 2}, "time": {"end": 0.1}}
SPHERE = CIRCLE | {"domain": {"manifold": "sphere", "resolution": 8}}
POLAR = CIRCLE | {"domain": {"manifold": "axisymmetric", "resolution": 16, "dimension": 3}}
LINE = {
    "domain": {"manifold": "line", "resolution": 64},
    "attention": {"beta": 1},
    "stabilizers": {"layer_norm": "none"},
    "time": {"end": 0.1},
}
PARTICLES = CIRCLE | {"domain": {"manifold": "particles", "count": 5, "dimension": 2}}
FORMULA = {"kind": "formula", "density": "exp(2*x)"}


@pytest.mark.parametrize(
    ("tables", "formula", "function"),
    [
        (CIRCLE, "exp(2*x)", lambda x: np.exp(2 * x[:, 0])),
        (SPHERE, "1 + x*z", lambda x: 1 + x[:, 0] * x[:, 2]),
        (POLAR, "exp(z)", lambda x: np.exp(np.cos(x[:, 0]))),
        (LINE, "exp(-x**2)", lambda x: np.exp(-(x[:, 0] ** 2))),
    ],
    ids=["circle", "sphere", "axisymmetric", "line"],
)
def test_a_function_is_the_density_of_its_formula(tables, formula, function):
    expected = set_up(mf.load_case(tables, initial={"kind": "formula", "density": formula})).initial()
    case = mf.load_case(tables, initial=function)
    np.testing.assert_allclose(set_up(case).initial(), expected, rtol=1e-6, atol=1e-100)
    again = mf.load_case(tables, initial=np.array(case.initial.density))
    assert again == case


def test_a_case_with_numbers_is_written_resumed_and_repeated(tmp_path):
    case = mf.load_case(CIRCLE, initial=lambda x: 1 + x[:, 0] ** 2)
    result = mf.run(case, tmp_path / "run.h5")
    assert mf.open_run(tmp_path / "run.h5").case == case == pickle.loads(pickle.dumps(case))
    longer = mf.resume(tmp_path / "run.h5", until=0.2)
    np.testing.assert_allclose(longer.density[-1], mf.simulate(case, end=0.2).density[-1], rtol=1e-7)  # other samples
    repeated = mf.simulate(result.case, initial=result.density[0])
    np.testing.assert_allclose(repeated.density[-1], result.density[-1], rtol=1e-12)


@pytest.mark.parametrize("tables", [CIRCLE, PARTICLES], ids=["density", "particles"])
@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist], ids=["array", "list"])
def test_tokens_are_points(tables, kind):
    tokens = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    expected = {"kind": "points", "points": tokens.tolist()}
    base = tables | {"domain": {key: value for key, value in tables["domain"].items() if key != "count"}}
    assert mf.load_case(tables, initial=kind(tokens)) == mf.load_case(base, initial=expected)


def test_labels_have_rows():
    causal = CIRCLE | {"attention": {"beta": 2, "mask": "causal"}}
    rows = 1 + np.arange(2 * 16).reshape(2, 16)
    density = set_up(mf.load_case(causal, initial=rows)).initial().reshape(2, 16)
    np.testing.assert_allclose(density / density[:, :1], rows / rows[:, :1], rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda values: mf.load_case(CIRCLE | {"initial": values}),
        lambda values: mf.load_case(CIRCLE, {"initial": values}),
        lambda values: mf.load_case(CIRCLE, initial=values),
        lambda values: mf.load_case(mf.load_case(CIRCLE, initial=FORMULA), initial=values),
        lambda values: mf.load_case(CIRCLE, initial=FORMULA).replace({"initial": values}),
        lambda values: mf.load_case(CIRCLE, initial=FORMULA).replace(initial=values),
        lambda values: mf.Case(**CIRCLE, initial=values),
    ],
)
def test_every_call_takes_arrays(call):
    values = np.arange(16.0)
    assert call(values).initial.density == tuple(values)


def test_negligible_numbers_are_zero():
    density = mf.load_case(CIRCLE, initial=lambda x: np.exp(400 * x[:, 0] - 400)).initial.density
    assert min(density) == 0 < max(density)


@pytest.mark.parametrize(
    ("tables", "given", "message"),
    [
        (CIRCLE, np.ones(5), r"initial\.density = \[1\.0, .*\]: expected 16 numbers, one for each cell, not 5$"),
        (CIRCLE, np.ones((5, 7)), r"an array \(5, 7\): expected a number for each cell, or an array \(n, 2\) of token"),
        (CIRCLE, -np.ones(16), r"initial\.density\[0\] = -1\.0: expected a number >= 0$"),
        (CIRCLE, np.full(16, np.nan), r"initial\.density\[0\] = nan: expected a finite number$"),
        (CIRCLE, np.full(16, 1j), "expected an array of numbers$"),
        (CIRCLE, [[1, 2], [3]], r"initial = \[\[1, 2\], \[3\]\]: expected an array of numbers$"),
        (CIRCLE, lambda x: x, r"returns an array \(16, 2\): expected a function of x \(16, 2\) that returns"),
        (CIRCLE, np.ma.masked_array(np.ones(16), np.arange(16) == 3), r"initial: 1 of 16 masked: expected numbers"),
        (CIRCLE, lambda x: np.ma.masked_array(x[:, 0], x[:, 0] > 0.9), r"initial: \d of 16 masked: expected numbers"),
        (PARTICLES, np.ma.masked_array(np.eye(2), np.eye(2) > 0), r"initial: 2 of 4 masked: expected numbers"),
        (CIRCLE, 3, "initial = 3: expected a table$"),
        (PARTICLES, np.ones(3), r"initial = an array \(3,\): expected an array \(n, d\) of tokens$"),
        (PARTICLES, np.ones, r"initial = the function ones: expected an array \(n, d\) of tokens on the domain "),
        (CIRCLE | {"domain": {"manifold": "circel"}}, np.ones(3), '^domain.manifold = "circel": .*mean "circle"'),
    ],
)  # fmt: skip
def test_other_arrays_and_functions_are_refused(tables, given, message):
    with pytest.raises(mf.CaseError, match=message):
        mf.load_case(tables, initial=given)


def test_zeros_are_refused_by_the_set_up():
    with pytest.raises(mf.CaseError, match=r"initial\.density = .*: expected values that are not zero everywhere"):
        mf.simulate(CIRCLE, initial=np.zeros(16))


def test_keyword_sections_are_a_case_file():
    given = {"kind": "perturbed", "seed": 1, "degrees": 4}
    case = mf.Case(**CIRCLE, initial=given, title="a title")
    assert case == mf.load_case(CIRCLE | {"initial": given, "title": "a title"})
    assert (
        mf.Case(CIRCLE["domain"], Attention(beta=2.0), Perturbed(seed=1, degrees=4), Time(end=0.1), "a title") == case
    )
    alias = mf.Case({"manifold": "S1", "resolution": np.int64(16)}, {"beta": np.float64(2)}, given, {"end": 0.1})
    assert alias.domain == Circle(resolution=16)


def test_records_alone_are_not_checked():
    assert mf.Case(Circle(resolution=16), Attention(beta=-1.0), Perturbed()).attention.beta == -1


def test_invalid_sections_are_refused_in_one_message():
    with pytest.raises(mf.CaseError, match=r"attention\.beta = -2: expected .*\n?") as error:
        mf.Case(**(CIRCLE | {"attention": {"beta": -2}}), initial={"kind": "uniform"})
    assert "domain" not in str(error.value)
    with pytest.raises(mf.CaseError, match=r"^time\.end: missing; expected a number > 0$"):
        mf.Case(CIRCLE["domain"], {"beta": 2}, {"kind": "uniform"})


@pytest.mark.parametrize(
    ("domain", "beta", "resolution"),
    [
        ({"manifold": "circle"}, 0, 112),
        ({"manifold": "circle"}, 9, 304),
        ({"manifold": "circle"}, 1e5, 4096),
        ({"manifold": "sphere"}, 9, 80),
        ({"manifold": "axisymmetric", "dimension": 3}, 9, 160),
        ({"manifold": "axisymmetric", "dimension": 64}, 9, 400),
    ],
    ids=str,
)
def test_the_default_resolution_follows_from_beta_and_the_dimension(domain, beta, resolution):
    case = mf.Case(domain=domain, attention={"beta": beta}, initial={"kind": "uniform"}, time={"end": 1})
    assert case.domain.resolution == resolution
    scale = min(beta**-0.5 if beta else 1, (case.domain.d - 2) ** -0.5 if case.domain.d > 3 else 1)
    stated = f" {scale / case.domain.cells_and_width()[1]:.2g} in the smallest scale {scale:.3g}\n"
    assert (stated in estimate(case)) == (scale < 1)
    assert mf.load_case(case, beta=2).domain.resolution == resolution  # a case is one value
