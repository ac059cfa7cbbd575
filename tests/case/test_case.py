"""Case files: accepted cases, the text of each refusal, and completeness of the resolved case."""

from __future__ import annotations

import pickle
import re
import tomllib
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from meanfield.case.errors import CaseError
from meanfield.case.load import load, parse, shipped, to_toml
from meanfield.case.short_names import full_names
from meanfield.sections.evolution import Handover
from meanfield.sections.initial import Perturbed, Uniform

CIRCLE = """
[domain]
manifold = "circle"
resolution = 64
[attention]
beta = 4
[initial]
kind = "uniform"
[time]
end = 10
"""
SPHERE = CIRCLE.replace("circle", "sphere")
VMF = 'initial={kind = "von_mises_fisher", components = [%s]}'
POINTS = 'initial={kind = "points", points = [%s], masses = [%s]}'
MINUS = "[[-1, 0, 0], [0, -1, 0], [0, 0, -1]]"
UNNORMALIZED = "attention.normalization=unnormalized"


def refusal(text: str, *overrides: str) -> str:
    """Return the first line with which a case is refused."""
    with pytest.raises(CaseError) as caught:
        parse(text, overrides)
    line = str(caught.value).splitlines()[0]
    assert line == str((caught.value.parts or (caught.value,))[0])
    assert not any(jargon in line for jargon in ("$", "`float`", "`int`", "`object`", "`array`", "field"))
    return line


def test_defaults() -> None:
    case = parse(CIRCLE)
    assert (case.title, case.stabilizers.noise, case.attention.normalization) == ("", 0.0, "softmax")
    assert (case.time.method, case.time.cfl) == ("ssprk3", 0.9)
    assert parse(CIRCLE, ["stabilizers.noise=0.1"]).time.cfl == 0.5
    assert (case.output.snapshots, case.output.every, case.output.times) == (100, None, None)
    assert (case.output.spacing, case.output.first, case.output.samples) == ("linear", None, 400)
    assert case.output.diagnostics == (
        "mass", "entropy", "energy", "speed", "centroid", "clusters", "power", "cluster_mass", "cluster_center",
        "pairs", "pairs_close",
    )  # fmt: skip
    assert case.output.checkpoint == 60.0


def test_integer_where_a_float_is_expected_becomes_one() -> None:
    assert isinstance(parse(CIRCLE).attention.beta, float)


def test_a_perturbation_is_small_by_default() -> None:
    initial = parse(CIRCLE, ["initial.kind=perturbed"]).initial
    assert isinstance(initial, Perturbed)
    assert initial.amplitude == 0.01


ACCEPTED = [
    (CIRCLE, []),
    (SPHERE, ["title=Two words, and more", "stabilizers.noise=0.1", "time.method=ssprk2", "time.cfl=1"]),
    (SPHERE, ['title="ρ \\" \\\\ \\n \\u0007"']),
    (SPHERE, ["initial.kind=perturbed", "initial.amplitude=1e-3", "initial.seed=9223372036854775807"]),
    (SPHERE, ["initial.kind=harmonic", "initial.degree=3", "initial.order=-3", "initial.amplitude=-0.1"]),
    (
        SPHERE,
        [VMF % "{center = [0, 0, 2], concentration = 0}, {center = [1, 0, 0], concentration = 9, mass = 0}"],
    ),
    (SPHERE, ["initial.kind=moebius", "initial.axis=[1, 1, 0]", "initial.parameter=-0.3"]),
    (CIRCLE, [POINTS % ("[1, 0], [0, 1.5]", "0, 1")]),
    (CIRCLE, ["initial={kind = 'points', points = [[1, 0]]}"]),
    (CIRCLE, ["output.times=[0, 0.1, 10]", "output.spacing=linear", "output.diagnostics=[]"]),
    (CIRCLE, ["output.every=0.1", "output.spacing=log", "output.first=1e-9", "output.checkpoint=1"]),
    (CIRCLE, [UNNORMALIZED, "attention.beta=700"]),
    (CIRCLE, [UNNORMALIZED, "attention.beta=1e5", "attention.rescaled=true"]),
    (SPHERE, [UNNORMALIZED, "attention.beta=1e5", "attention.rescaled=true", f"attention.key={MINUS}"]),
    (CIRCLE, ["attention.value=[[-1, 0], [0, -1]]", "attention.query=[[2, 0], [0, 2]]"]),
]


@pytest.mark.parametrize(("text", "overrides"), ACCEPTED)
def test_resolved_case_parses_to_itself(text: str, overrides: list[str]) -> None:
    case = parse(text, overrides)
    assert parse(to_toml(case)) == case


def test_resolved_case_spells_out_the_defaults() -> None:
    resolved = tomllib.loads(to_toml(parse(CIRCLE, ["output.spacing=log"])))
    assert resolved["output"]["snapshots"] == 100
    assert resolved["output"]["first"] == 1e-3
    assert resolved["stabilizers"] == {
        "layer_norm": "post",
        "alpha": 1.0,
        "scale": 1.0,
        "residual": True,
        "gate": 0.0,
        "noise": 0.0,
    }


def test_a_case_is_frozen() -> None:
    with pytest.raises(AttributeError):
        parse(CIRCLE).attention.beta = 5.0  # type: ignore[misc]


REFUSED = {
    "time.step=0.1": "time.step = 0.1: only allowed with time.method",
    "stabilizers.alpha=2": 'alpha = 2.0: only allowed with stabilizers.layer_norm = "ngpt"',
    "attention.value=[[0, -1e101], [0, 0]]": "attention.value = -1e+101: expected numbers of at most 1e+100 in size",
    "attention.heads=[{value={ensemble='goe', scale=1e308}}]": "attention.heads[0].value.scale = 1e+308: expected num",
    "reaction={kind='linear', rate=-1e300}": "reaction.rate = -1e+300: expected numbers of at most 1e+100",
    "feed_forward={activation='relu', width=50000001}": "width = 50000001: expected at most 50000000 in 2 dimensions",
    # unknown keys, with suggestions
    "attention.bta=1": 'attention.bta: unknown key; did you mean "beta"?',
    "stabilisers.noise=1": 'stabilisers: unknown key; did you mean "stabilizers"?',
    "sweep.beta=1": "sweep: unknown key; expected one of domain, attention, initial, time,",
    "reaction.kind=logistic": "reaction.rate: missing; expected a number",
    "initial.kind=unifrom": 'initial.kind = "unifrom": expected one of "uniform", "perturbed",',
    "initial.amplitude=1": 'initial.amplitude = 1: not valid for kind "uniform"; only for "perturbed"',
    "domain.manifold=spher": '"transformer"; did you mean "sphere"?',
    "time.method=rk4": 'time.method = "rk4": expected one of "adaptive", "auto", "layers", "ssprk2", "ssprk3"',
    # missing
    "attention={}": "attention.beta: missing; expected a number >= 0",
    "initial={}": 'initial.kind: missing; expected one of "uniform",',
    "initial.kind=moebius": "initial.axis: missing; expected a list, each item a number",
    # types
    "domain.resolution=many": 'domain.resolution = "many": expected an integer >= 8',
    "domain.resolution=64.5": "domain.resolution = 64.5: expected an integer >= 8",
    "attention.beta=true": "attention.beta = true: expected a number >= 0",
    "attention.rescaled=1": "attention.rescaled = 1: expected true or false",
    "title=3": "title = 3: expected a string",
    "time.end=1979-05-27": 'time.end = "1979-05-27": expected a number > 0',
    "time=[1]": "time = [1]: expected a table",
    "initial=uniform": 'initial = "uniform": expected a table',
    "initial.kind=3": 'initial.kind = 3: expected one of "uniform"',
    "attention.query=[[1, 'x']]": 'attention.query[0][1] = "x": expected a number',
    "output.times=3": "output.times = 3: expected a non-empty list, each item a number >= 0",
    "output.diagnostics=['mas']": 'output.diagnostics = "mas": expected one or more of',
    # ranges
    "attention.beta=-1.0": "attention.beta = -1.0: expected a number >= 0",
    "attention.beta=100001": "attention.beta = 100001.0: expected a number <= 100000",
    "stabilizers.noise=-0.1": "stabilizers.noise = -0.1: expected a number >= 0",
    "domain.resolution=0": "domain.resolution = 0: expected an integer >= 8",
    "domain.resolution=7": "domain.resolution = 7: expected an integer >= 8 and <= 100000000",
    "domain.resolution=100000001": "expected an integer >= 8 and <= 100000000",
    "time.end=0": "time.end = 0: expected a number > 0",
    "time.cfl=0": "time.cfl = 0: expected a number > 0 and <= 1",
    "time.cfl=1.1": "time.cfl = 1.1: expected a number > 0 and <= 1",
    "output.snapshots=0": "output.snapshots = 0: expected an integer >= 1",
    "output.snapshots=1000001": "output.snapshots = 1000001: expected an integer from 1 to 1000000",
    "output.every=1e-6": "output.every = 1e-06: expected at least time.end / 1000000",
    "output.samples=10000001": "output.samples = 10000001: expected an integer from 1 to 10000000",
    "output.checkpoint=0": "output.checkpoint = 0: expected a number > 0",
    # not finite, or too long
    "attention.beta=nan": "attention.beta = nan: expected a finite number",
    "time.end=inf": "time.end = inf: expected a finite number",
    "time.end=1e400": "time.end = inf: expected a finite number",
    "output.times=[0, -inf]": "output.times[1] = -inf: expected a finite number",
    "stabilizers.odd=nan": "stabilizers.odd = nan: expected a finite number",
    "initial.seed=9223372036854775808": 'initial.seed = "0x8000000000000000": expected a number of at',
    "output.samples=0x" + "f" * 9000: "expected a number of at most 64 bits",
    # combinations
    "attention.rescaled=true": "attention.rescaled = true: expected false, unless attention.norm",
    "attention.key=[[1]]": "attention.key = [[1.0]]: expected a 2×2 matrix",
    "attention.value=[]": "attention.value = []: expected a 2×2 matrix",
    "attention.value=[[1, 0], [0]]": "attention.value = [[1.0, 0.0], [0.0]]: expected a 2×2 matrix",
    "attention={beta = 1, heads = [{}], key = [[1, 0], [0, 1]]}": "not allowed beside attention.heads",
    "attention={beta = 1, heads = []}": "attention.heads = []: expected a non-empty list",
    "attention={beta = 1, heads = [{value = [[1]]}]}": "attention.heads[0].value = [[1.0]]: expected a 2×2 matrix",
    "attention.query={ensemble = 'gin'}": 'attention.query.ensemble = "gin": expected one of "ginibre",',
    "attention={beta = 1, file = 'w.npz', heads = [{}]}": 'attention.file = "w.npz": not allowed beside',
    "attention.kernel=windowed": 'attention.window = null: expected an angle with attention.kernel = "windowed"',
    "attention.window=1": "attention.window = 1.0: expected an angle with",
    "attention={beta = 1, kernel = 'windowed', window = 1, key = [[1, 0], [0, 2]]}": "multiples of the identity",
    # labels, feed-forward, reaction
    "domain.labels=4": 'domain.labels = 4: only allowed with attention.mask = "causal"',
    "attention={beta = 1, normalization = 'sinkhorn', mask = 'causal'}": '"none" with sinkhorn',
    "feed_forward={}": "feed_forward.width = null: expected a width, for random weights, or inner, bias and outer",
    "feed_forward={width = 3, bias = [1]}": "feed_forward.width = 3: not allowed beside inner, bias and outer",
    "feed_forward={inner = [[1, 0]], bias = [1, 2], outer = [[1], [1]]}": "feed_forward.bias = [1.0, 2.0]: expected 1",
    "feed_forward={inner = [[1]], bias = [1], outer = [[1], [1]]}": "feed_forward.inner = [[1.0]]: expected rows of 2",
    "feed_forward={inner = [[1, 0]], bias = [1], outer = [[1]]}": "feed_forward.outer = [[1.0]]: expected 2 rows of 1",
    "reaction={kind = 'replicator', rate = 1}": "reaction.vector = null: expected 2 numbers, or reaction.matrix",
    "reaction={kind = 'replicator', rate = 1, vector = [1]}": "reaction.vector = [1.0]: expected 2 numbers",
    "reaction={kind = 'replicator', rate = 1, matrix = [[1]]}": "reaction.matrix = [[1.0]]: expected a 2×2 matrix",
    "reaction={kind = 'logistic', rate = 1, capacity = 0}": "reaction.capacity = 0: expected a number > 0",
    # stabilizers
    "stabilizers.layer_norm=pre": '"post", "ngpt" or "cod" on the circle; pre is for domain.manifold = ',
    "stabilizers.gate=1": "stabilizers.gate = 1.0: expected 0 on the circle: layer norm removes the component along x",
    "stabilizers.switch=1": 'stabilizers.switch = 1.0: only allowed with stabilizers.layer_norm = "mix"',
    "stabilizers.residual=false": 'stabilizers.residual = false: expected true, unless time.method = "layers"',
    "time.layers=4": 'time.layers = 4: only allowed with time.method = "layers"',
    "time={method = 'layers'}": "time.layers: missing; expected an integer >= 1",
    "time={}": "time.end: missing; expected a number > 0",
    # manifolds
    "domain.radii=8": 'domain.radii = 8: not valid for manifold "circle"; only for "free_radius_circle"',
    "domain.dimension=3": 'domain.dimension = 3: not valid for manifold "circle"; only for "axisymmetric", "particles"',
    "domain.manifold=line": 'stabilizers.layer_norm = "post": expected "none" on the line',
    "domain.manifold=free_radius_circle": 'stabilizers.layer_norm = "post": expected "pre", "peri", "mix" or "none"',
    "initial={kind = 'gaussian'}": 'initial.kind = "gaussian": expected one of uniform, perturbed,',
    "initial={kind = 'uniform', radius = 2}": "initial.radius = 2.0: not available on the circle",
    "output.diagnostics=['escaped']": 'output.diagnostics = "escaped": expected one or more of mass, entropy,',
    "output={every = 1, snapshots = 5}": "output.every = 1.0: not allowed beside output.snapshots",
    "output={every = 1, times = [1]}": "output.times = [1.0]: not allowed beside output.every",
    "output={spacing = 'linear', first = 1}": 'not allowed with output.spacing = "linear"',
    "output.times=[1, 1]": "output.times = [1.0, 1.0]: expected increasing numbers",
    "output.times=[1, 11]": "output.times = [1.0, 11.0]: expected numbers from 0 to time.end = 10.0",
    "output.times=[-1, 1]": "output.times[0] = -1: expected a number >= 0",
    "output.times=[]": "output.times = []: expected a non-empty list",
    "output.diagnostics=['mass', 'mass']": "expected each name once",
    # initial densities
    "initial={kind = 'perturbed', amplitude = 0}": "initial.amplitude = 0: expected a number > 0",
    "initial={kind = 'perturbed', amplitude = 101}": "amplitude = 101.0: expected a number > 0 and <= 100",
    "initial={kind = 'perturbed', amplitude = 1, seed = -1}": "initial.seed = -1: expected an integer >= 0",
    "initial={kind = 'perturbed', amplitude = 1, degrees = 32}": "at most 31 with domain.resolution = 64",
    "initial={kind = 'harmonic', amplitude = 1, degree = 0}": "initial.degree = 0: expected an integer >= 1",
    "initial={kind = 'harmonic', amplitude = 1, degree = 2, order = 1}": "initial.order = 1: expected 0 on",
    VMF % "": "initial.components = []: expected a non-empty list, each item a table",
    VMF % "{center = [1, 0], concentration = -1}": "initial.components[0].concentration = -1: expected",
    VMF % "{center = [1, 0]}": "initial.components[0].concentration: missing; expected a number >= 0",
    VMF % "{center = 1, concentration = 1}": "initial.components[0].center = 1: expected a list",
    VMF % "{center = [1, 0, 0], concentration = 1}": "expected a vector of 2 numbers, on the circle",
    VMF % "{center = [0, 0], concentration = 1}": "center = [0.0, 0.0]: expected a vector that is not zero",
    VMF % "{center = [1e200, 0], concentration = 1}": "a vector that is not zero (norm from 1e-150 to",
    VMF % "{center = [1, 0], concentration = 1, mass = 0}": "mass = [0.0]: expected masses with a",
    VMF % "{center = [1, 0], concentration = 1, mas = 0}": 'mas: unknown key; did you mean "mass"?',
    "initial={kind = 'moebius', axis = [0, 0], parameter = 1}": "initial.axis = [0.0, 0.0]: expected a",
    POINTS % ("", ""): "initial.points = []: expected a non-empty list",
    POINTS % ("[1, 0]", "1, 1"): "initial.masses = [1.0, 1.0]: expected one number for each of 1 points",
    POINTS % ("[1, 0]", "0"): "initial.masses = [0.0]: expected masses with a positive, finite sum",
    POINTS % ("[1, 0], [0, 1]", "1e308, 1e308"): "expected masses with a positive, finite sum",
    POINTS % ("[1, 0], [0, 1]", "2, -1"): "initial.masses[1] = -1: expected a number >= 0",
    POINTS % ("[1, 0], [0]", "1, 1"): "initial.points[1] = [0.0]: expected a vector of 2 numbers",
    # overrides themselves
    "time.end": 'override "time.end": expected KEY=VALUE',
    "=3": 'override "=3": expected KEY=VALUE',
    "time..end=3": "expected KEY=VALUE",
    "time.end=": "expected KEY=VALUE",
    "time.end=3\ntime.cfl=1": "expected KEY=VALUE",
    "time.end=[1, 2": "expected a TOML value after =",
    "attention.beta.x=4": "attention.beta = 4: expected a table",
}


@pytest.mark.parametrize("override", REFUSED, ids=lambda override: override[:40])
def test_refusal_names_key_value_and_expectation(override: str) -> None:
    assert REFUSED[override] in refusal(CIRCLE, override)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (("output.spacing=log", "time.end=5e-324"), "output.first = 0.0: expected a number > 0 and < time.end"),
        (("output.spacing=log", "output.first=10"), "output.first = 10.0: expected a number > 0 and < time.end = 10.0"),
        (["domain.resolution=8601"], "domain.resolution = 8601: expected an integer >= 4 and <= 8600"),
        (["initial={kind='harmonic', amplitude=1, degree=2, order=-3}"], "order = -3: expected -2 to 2"),
        (["initial={kind='perturbed', amplitude=1, degrees=64}"], "at most 63 with domain.resolution = 64"),
        ([UNNORMALIZED, "attention.rescaled=true", "attention.file=m.npz", "time.step=1"], "false with attention.file"),
        ([UNNORMALIZED, "attention.beta=701"], "<= 700; beyond, e^beta overflows (attention.rescaled = true"),
        (
            [UNNORMALIZED, "attention.beta=400", "attention.key=[[2, 0, 0], [0, 2, 0], [0, 0, 2]]"],
            "attention.beta = 400.0: expected a number <= 700, times the scales of query and key",
        ),
    ],
)
def test_refusal_on_the_sphere(overrides: list[str], expected: str) -> None:
    assert expected in refusal(SPHERE, *overrides)


@pytest.mark.parametrize(
    ("case", "override", "expected"),
    [
        (
            "contraction_line",
            "domain.core=1e-300",
            "domain.core = 1e-300: expected a number from 1e-11, 1e-12 of domain.",
        ),
        ("contraction_line", "domain.core=1e300", "domain.core = 1e+300: expected a number from 1e-11"),
        ("blow_up_line", "domain.resolution=128", "initial.variance = 0.2: expected at least 0.648, since a Gaussian"),
        (
            "contraction_line",
            "domain.outermost=1e300",
            "domain.outermost = 1e+300: expected a number from 1e-100 to 1e+100",
        ),
        ("contraction_plane", "domain.innermost=1e-300", "domain.innermost = 1e-300: expected a number from "),
        ("contraction_plane", "domain.radii=100000000000", "domain.radii = 100000000000: expected at most "),
        (
            "contraction_plane",
            "domain.expansion=1e300",
            "domain.expansion = 1e+300: expected numbers of at most 1e+100",
        ),
    ],
)
def test_meshes_that_cannot_be_computed_with(case: str, override: str, expected: str) -> None:
    with pytest.raises(CaseError, match=re.escape(expected)):
        load(case, [override])


def test_a_handover_beside_a_sequence_says_which_section_is_too_many() -> None:
    message = "sequence.diffusion = 0.1: not allowed beside [handover]"
    with pytest.raises(CaseError, match=re.escape(message)):
        load("tokens_ladder", ["sequence.diffusion=0.1"])


@pytest.mark.parametrize("section", ["domain", "attention", "initial", "time"])
def test_missing_section(section: str) -> None:
    data = tomllib.loads(CIRCLE)
    del data[section]

    assert refusal(tomli_w.dumps(data)).startswith(f"{section}.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[domain]\nmanifold = circle", "case, line 2, column 12: not TOML: Invalid value"),
        ("[domain", "case, line 1, column 8: not TOML: Expected ']' at the end of a table declaration"),
        ("a = 1\na = 2", "case, line 2, column 6: not TOML: Cannot overwrite a value"),
        ("a = " + "1" * 5000, "case: not TOML: "),
        ("a = " + "[" * 5000, "case: not TOML: nested too deeply"),
        ("", "domain.manifold: missing; expected a section [domain] with it"),
    ],
)
def test_broken_text(text: str, expected: str) -> None:
    assert refusal(text).startswith(expected)


def test_the_manifold_outside_its_section_is_named_with_it() -> None:
    assert "manifold: unknown key; did you mean domain.manifold?" in refusal('manifold = "circle"')


def test_hostile_key_stays_on_one_line() -> None:
    assert refusal('"a\\nb`c\\u001b\\u2028" = 1\n' + CIRCLE).startswith('"a\\nb`c\\u001b\\u2028": unknown key')


def test_override_replaces_the_files_choice_of_snapshots() -> None:
    text = CIRCLE + "[output]\nsnapshots = 7\n"
    output = parse(text, ["output.every=2"]).output
    assert (output.snapshots, output.every) == (None, 2.0)
    assert "output.times" in refusal(text, "output.every=2", "output.times=[1]")  # two overrides conflict


def test_override_of_the_kind_starts_the_initial_density_anew() -> None:
    text = CIRCLE.replace('"uniform"', '"perturbed"\namplitude = 1.0\nseed = 3')
    assert parse(text, ["initial.kind=uniform"]).initial == Uniform()
    assert parse(text, ["initial.kind=perturbed"]).initial == Perturbed(amplitude=1.0, seed=3)


def test_linear_spacing_drops_the_first_time_of_the_file() -> None:
    text = CIRCLE + '[output]\nspacing = "log"\nfirst = 1.0\n'
    assert parse(text).output.first == 1.0
    assert parse(text, ["output.spacing=linear"]).output.first is None


@pytest.mark.parametrize(
    ("time", "step", "end"),
    [
        ("end = 4.0, layers = 8", 0.5, 4.0),
        ("layers = 8", 1.0, 8.0),
        ("end = 4.0, layers = 8, step = 0.25", 0.25, 2.0),
    ],
)
def test_the_step_of_layers_follows_from_the_end(time: str, step: float, end: float) -> None:
    """More layers to the same end are a finer map of the same flow; a given step determines the end."""
    case = parse(CIRCLE, [f"time={{method = 'layers', {time}}}"])
    assert (case.time.step, case.time.end) == (step, end)
    assert parse(CIRCLE, [f"time={{method = 'layers', {time}}}", "stabilizers.residual=false"]).time.end == 8.0


@pytest.mark.parametrize(("end", "layers"), [(1.0, 49), (2.0, 98), (1.0, 103), (0.7, 7)])
def test_the_last_layer_is_not_before_the_end(end: float, layers: int) -> None:
    """49 · (1/49) is less than 1: an output time at the end would be refused."""
    case = parse(CIRCLE, [f"time={{method = 'layers', end = {end}, layers = {layers}}}", f"output.times=[0, {end}]"])
    assert end <= case.time.end < end * (1 + 1e-15)
    assert parse(to_toml(case)) == case


def test_steps_of_particles_have_no_bound() -> None:
    assert load("tokens_pair").flow_steps == np.inf


def test_an_error_keeps_its_fields_in_a_copy() -> None:
    part = CaseError("attention.beta: missing", "attention.beta", is_missing=True)
    for copy in (
        pickle.loads(pickle.dumps(CaseError("two", "attention", [part]))),
        deepcopy(CaseError("two", "attention", [part])),
    ):
        assert (str(copy), copy.key, copy.is_missing) == ("two", "attention", False)
        assert [(str(one), one.key, one.is_missing) for one in copy.parts] == [(str(part), "attention.beta", True)]


def test_last_override_wins() -> None:
    assert parse(CIRCLE, ["attention.beta=5", "attention.beta=6"]).attention.beta == 6.0


def test_scales_and_bounds_of_the_kernel() -> None:
    minus, double = "[[-1, 0], [0, -1]]", "[[2, 0], [0, 2]]"
    case = parse(CIRCLE, [f"attention.query={double}", f"attention.value={minus}"])
    plain = case.attention
    assert (plain.beta_effective, plain.value_scale, case.speed_bound) == (8.0, -1.0, 1.0)
    grown = parse(CIRCLE, [UNNORMALIZED, f"attention.key={minus}"]).attention
    assert (grown.beta_effective, grown.log_kernel_bound) == (-4.0, 4.0)
    assert parse(CIRCLE, [UNNORMALIZED, "stabilizers.scale=1.5"]).speed_bound == pytest.approx(np.exp(4.0 * 1.5**2))
    rescaled = parse(CIRCLE, [UNNORMALIZED, "attention.rescaled=true"]).attention
    assert rescaled.log_kernel_bound == 0.0


def test_load_from_a_path_and_by_name(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + CIRCLE.replace("\n", "\r\n").encode())  # as saved by Windows editors
    assert load(str(path), ["attention.beta=7"]) == parse(CIRCLE, ["attention.beta=7"])
    assert load("uniform").initial == Uniform()


def test_a_folder_of_the_name_does_not_hide_a_shipped_case(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uniform").mkdir()
    assert load("uniform").initial == Uniform()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("unifrm", None, 'unifrm: no such file, nor a shipped case; did you mean "uniform"?'),
        ("uniform.tml", None, 'nor a shipped case; did you mean "uniform"?'),
        ("zzz.toml", None, "zzz.toml: no such file, nor a shipped case; `meanfield cases` lists them"),
        ("a.toml", b"\x89HDF\r\n\x1a\n", "a.toml: not a case file: not UTF-8 text"),
        ("a.toml", b"[domain]\nx = ", "a.toml, line 2, column 5: not TOML: "),
        ("n" * 5000, None, ": cannot be read: File name too long"),
    ],
)
def test_unreadable_file(name: str, content: bytes | None, expected: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(CaseError) as caught:
        load(name)
    assert expected in str(caught.value)


def test_shipped_cases_are_valid_and_titled() -> None:
    assert "uniform" in shipped()
    for name, title in shipped().items():
        assert load(name).title == title != ""


MANY = """\
beta = 3
[domain]
manifold = "S2"
resolution = 3
[attention]
beta = "x"
[[attention.heads]]
weight = 1.0
[[attention.heads]]
weihgt = 1.0
[initial]
kind = "perturbed"
degrees = -3
[time]
end = -1
"""


def test_all_faults_of_a_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text(MANY)
    with pytest.raises(CaseError) as caught:
        load(str(path))
    assert str(caught.value).replace(f"{path}, ", "").splitlines() == [
        "line 1: beta: unknown key; did you mean attention.beta?",
        "line 4: domain.resolution = 3: expected an integer >= 4 and <= 8600",
        'line 6: attention.beta = "x": expected a number >= 0',
        'line 10: attention.heads[1].weihgt: unknown key; did you mean "weight"?',
        "line 13: initial.degrees = -3: expected an integer >= 1",
        "line 15: time.end = -1: expected a number > 0",
    ]


def test_all_impossible_combinations_are_told_at_once(tmp_path: Path) -> None:
    """A setting from an override has no line."""
    path = tmp_path / "two.toml"
    path.write_text(CIRCLE + "tolerance = 1e-3\n")
    with pytest.raises(CaseError) as caught:
        load(str(path), ["output.first=20", "output.spacing=log"])
    first, second = caught.value.parts
    assert str(first) == f'{path}, line 11: time.tolerance = 0.001: only allowed with time.method = "adaptive"'
    assert str(second).startswith("output.first = 20.0: expected a number > 0 and < time.end")


def test_other_words_for_circle_and_sphere() -> None:
    assert parse(CIRCLE.replace("circle", "S1")) == parse(CIRCLE)
    assert parse(CIRCLE, ["domain.manifold=S2"]) == parse(SPHERE)


def test_the_former_name_of_the_section_handover(tmp_path: Path) -> None:
    path = tmp_path / "former.toml"
    path.write_text(CIRCLE + "[hand_over]\nspread = 0.5\n")
    case = load(str(path))
    assert case.handover is not None
    assert case.handover.spread == 0.5
    assert load(str(path), ["handover.spread=0.5"]) == load(str(path), ["hand_over.spread=0.5"]) == case
    assert case.replace({"hand_over.spread": 0.7}).handover == Handover(spread=0.7)
    assert full_names({"hand_over.spread": 0.5}) == {"handover.spread": 0.5}
    path.write_text(CIRCLE + "[hand_over]\nspread = -1.0\n")
    with pytest.raises(CaseError, match=r"former.toml, line 12: handover.spread = -1"):
        load(str(path))
    path.write_text(CIRCLE + "[hand_over]\n[handover]\n")
    with pytest.raises(CaseError, match="hand_over: not allowed beside handover, its present name"):
        load(str(path))
