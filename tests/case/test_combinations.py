"""Every switch of a layer with every other: a pair runs, or is refused in one line that names the key.

A run is two steps on a tiny mesh, or of a few tokens. Combinations excluded by the table of case/combinations.py are
refused, all others have to run, and none may end in a traceback.
"""

import re
import runpy
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from support.status import DONE, run

from meanfield.case.combinations import BY_DOMAIN, EXCLUSIONS
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.domains.table import DOMAINS
from meanfield.model.layer_norm import SPHERICAL_NORMS
from meanfield.sections.section import tag_of
from meanfield.simulation import set_up
from solvers.io.run_file import read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import State

BASES = {  # manifold, the rest of the domain, default layer norm, d
    "circle": ("circle", "resolution = 16", "post", 2),
    "sphere": ("sphere", "resolution = 6", "post", 3),
    "axisymmetric": ("axisymmetric", "resolution = 16\ndimension = 5", "post", 5),
    "line": ("line", "resolution = 96\noutermost = 10.0", "none", 1),
    "free_radius_circle": (
        "free_radius_circle", "resolution = 8\nradii = 16\ninnermost = 0.2\noutermost = 5.0", "pre", 2
    ),
    "free_radius_sphere": (
        "free_radius_sphere", "resolution = 4\nradii = 16\ninnermost = 0.2\noutermost = 5.0", "pre", 3
    ),
    "particles in 2": ("particles", "count = 6\ndimension = 2", "post", 2),
    "particles in 3": ("particles", "count = 6\ndimension = 3", "post", 3),
    "particles in 8": ("particles", "count = 6\ndimension = 8", "post", 8),
}  # fmt: skip
START = {
    "line": 'kind = "gaussian"\nvariance = 0.5',
    **dict.fromkeys(("particles in 3", "particles in 8"), 'kind = "uniform"'),
}
OPTIONS_OF = {  # options of meanfield.case.combinations that a switch selects
    **{f"norm: {norm}": {"spherical norm"} for norm in SPHERICAL_NORMS},
    **{f"norm: {norm}": {"radial norm"} for norm in ("pre", "peri", "mix")},
    "norm: none": {"radial norm", "no layer norm"},
    "depth: layers": {"layers"},
    "depth: no residual": {"layers", "no residual"},
    "depth: adaptive": {"adaptive"},
    "handover": {"handover"},
    "mask": {"causal mask"},
    "kernel: gaussian": {"kernels"},
    "kernel: windowed": {"kernels", "windowed"},
    "normalization: sinkhorn": {"sinkhorn"},
    "normalization: rescaled": {"rescaled"},
    "query": {"matrices", "query or key matrices"},
    "value: matrix": {"matrices"},
    "value: random": {"matrices"},
    "value: heads": {"matrices", "heads", "query or key matrices"},
    "value: file": {"file", "query or key matrices"},
    **{f"reaction: {kind}": {"reaction"} for kind in ("linear", "logistic", "replicator")},
    **{name: {name} for name in ("noise", "gate", "scale", "sequence", "feed-forward")},
}
OF_ONE_TOKEN = {"query", "value: matrix"}  # multiples of the identity for d = 1
ONE_OR_THE_OTHER = [{"query", "value: heads"}, {"query", "value: file"}]  # a head and a file have their own matrices
KINDS = {"bumps": "von_mises_fisher"}  # kinds of [initial] whose switch has another name
NOT_IN_PAIRS = (
    "depth: ssprk3",
    "initial: uniform",
    "initial: perturbed",
    "initial: harmonic",
    "initial: bumps",
    "initial: moebius",
    "initial: equiangular",
    "initial: interval",
    "initial: waves",
)  # tested only in larger sets


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Write matrices-d.npz and tokens-d.npy into the folder of each test."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for d in (1, 2, 3, 5, 8):
        matrices = {name: random.standard_normal((2, 2, d, d)) for name in ("query", "key", "value")}
        np.savez(f"matrices-{d}.npz", **matrices, weight=[0.5, 0.5])
        np.save(f"tokens-{d}.npy", random.standard_normal((12, d)))


def to_be_refused(base, names):
    """Return whether the table of combinations excludes a set of switches on this domain."""
    manifold, _, norm, d = BASES[base]
    kind = DOMAINS[manifold]
    norms = [name for name in names if name.startswith("norm: ")] or [f"norm: {norm}"]
    chosen = [*norms, *(name for name in names if not (d == 1 and name in OF_ONE_TOKEN))]
    options = set().union(*(OPTIONS_OF.get(name, set()) for name in chosen))
    if "mask" in names and not kind.has_tokens:
        options.add("labels")
    starts = {name.removeprefix("initial: ") for name in names if name.startswith("initial: ")}
    possible = {tag_of(start) for start in kind.initial}
    return (
        not options & set(BY_DOMAIN) <= kind.features
        or any({first, second} <= options for first, second, _ in EXCLUSIONS)
        or any(both <= set(names) for both in ONE_OR_THE_OTHER)
        or norms[0].removeprefix("norm: ") not in kind.layer_norms
        or not {KINDS.get(start, start) for start in starts} <= possible
        or (kind.has_tokens and "gaussian" in starts and "radial norm" not in options)
        or (kind.has_tokens and d > 3 and not starts.isdisjoint({"perturbed", "harmonic"}))
    )


def switches(base):
    """Return name → overrides of a case. Names with the same word before the colon are alternatives."""
    d = BASES[base][3]
    matrix = np.eye(d) + 0.3 * np.eye(d, k=1)
    skew = matrix.tolist() if d > 1 else [[0.5]]
    back = (-np.eye(d)).tolist()
    axis = [1.0] if base == "axisymmetric" else np.eye(d)[0].tolist()
    norms = ("post", "ngpt", "cod", "pre", "peri", "mix", "none")
    return {
        **{f"norm: {norm}": [f"stabilizers.layer_norm={norm}"] for norm in norms},
        "noise": ["stabilizers.noise=0.1"],
        "gate": ["stabilizers.gate=0.2"],
        "scale": ["stabilizers.scale=1.5"],
        "depth: layers": ["time.method=layers", "time.layers=2", "time.step=0.1"],
        "depth: no residual": ["time.method=layers", "time.layers=2", "stabilizers.residual=false"],
        "depth: ssprk3": ["time.method=ssprk3"],
        "depth: ssprk2": ["time.method=ssprk2"],
        "depth: adaptive": ["time.method=adaptive", "time.tolerance=1e-3"],
        "handover": ["handover.spread=1.0"],
        "sequence": ["sequence.diffusion=0.01"],
        "mask": ["attention.mask=causal"],
        "kernel: gaussian": ["attention.kernel=gaussian"],
        "kernel: windowed": ["attention.kernel=windowed", "attention.window=1.0"],
        "normalization: unnormalized": ["attention.normalization=unnormalized"],
        "normalization: rescaled": ["attention.normalization=unnormalized", "attention.rescaled=true"],
        "normalization: sinkhorn": ["attention.normalization=sinkhorn"],
        "beta 0": ["attention.beta=0"],
        "query": [f"attention.query={skew}"],
        "value: matrix": [f"attention.value={skew}"],
        "value: random": ['attention.value={ensemble = "ginibre", seed = 1}'],
        "value: -1": [f"attention.value={back}"],
        "value: heads": [f"attention.heads=[{{value = {skew}, weight = 0.5}}, {{query = {skew}, weight = 0.5}}]"],
        "value: file": [f"attention.file=matrices-{d}.npz"],
        "feed-forward": ["feed_forward.width=3"],
        "reaction: linear": ["reaction.kind=linear", "reaction.rate=0.5"],
        "reaction: logistic": ["reaction.kind=logistic", "reaction.rate=0.5"],
        "reaction: replicator": ["reaction.kind=replicator", "reaction.rate=0.5", f"reaction.vector={[1.0] * d}"],
        "initial: uniform": ["initial.kind=uniform"],
        "initial: perturbed": ["initial.kind=perturbed", "initial.amplitude=0.3", "initial.degrees=2"],
        "initial: harmonic": ["initial.kind=harmonic", "initial.degree=2", "initial.amplitude=0.3"],
        "initial: bumps": [
            "initial.kind=von_mises_fisher", f"initial.components=[{{center = {axis}, concentration = 1.0}}]"
        ],
        "initial: moebius": ["initial.kind=moebius", f"initial.axis={axis}", "initial.parameter=0.5"],
        "initial: tokens": ["initial.kind=tokens", f"initial.file=tokens-{d}.npy"],
        "initial: gaussian": ["initial.kind=gaussian", "initial.variance=0.5"],
        "initial: equiangular": ["initial.kind=equiangular", "initial.cosine=0.2", "domain.count=2"],
        "initial: waves": ["initial={kind = 'waves', mean = %s, amplitude = 0.3, modes = 2}" % ([1.0] * d)],
        "initial: interval": ["initial.kind=interval", "initial.low=-1.0", "initial.high=1.0"],
    }  # fmt: skip


def case_of(base, overrides):
    """Return the case of a base with overrides. Raises CaseError."""
    manifold, domain, norm, _ = BASES[base]
    start = START.get(base, 'kind = "perturbed"\namplitude = 0.3\ndegrees = 2')
    if any(override.startswith("initial.file") for override in overrides):
        domain = domain.replace("count = 6\n", "")  # the file determines the count
    text = f"""
[domain]
manifold = "{manifold}"
{domain}
[attention]
beta = 1.5
[stabilizers]
layer_norm = "{norm}"
[initial]
{start}
[time]
end = 0.5
"""
    return parse(text, overrides)


def attempt(base, overrides):
    """Return None after two successful steps, otherwise the refusal."""
    try:
        case = case_of(base, overrides)
        problem = set_up(case)
        state = State(0.0, problem.initial())
        problem.prepare(state)
    except CaseError as refusal:
        return str(refusal)
    state = integrate(state, problem.dynamics, case.time.end, (), lambda state: state.steps >= 2)
    found = problem.diagnostics(case.output.diagnostics, None)(state.time, state.values)
    assert 1 <= state.steps <= 2
    assert np.isfinite(state.values).all()
    assert case.domain.has_tokens or state.values.min() >= 0
    assert all(np.isfinite(value).all() for name, value in found.items() if not name.startswith("cluster_"))
    if case.reaction is None or case.reaction.__struct_config__.tag == "replicator":
        assert abs(found["mass"] - 1) < 1e-12
    return None


def said_well(refusal):
    """Return whether each line of a refusal names a key, its value and the expected value."""
    line = r"[a-z_]+(\.[a-z_]+|\[\d+\])+ = .+: (expected|only allowed|not allowed|not available|not valid for) .+"
    return all(re.fullmatch(line, text) for text in refusal.splitlines())


def largest_sets(base, count):
    """Yield (names, overrides) of ``count`` maximal sets of switches."""
    table, random = switches(base), np.random.default_rng(0)
    for _ in range(count):
        chosen: list[str] = []
        for name in random.permutation(list(table)):
            others = {other.split(":")[0] for other in chosen}
            if name.split(":")[0] not in others and not to_be_refused(base, [*chosen, name]):
                chosen.append(name)
        yield chosen, [change for name in chosen for change in table[name]]


@pytest.mark.parametrize("base", BASES)
def test_each_switch_alone(base):
    found = {name: attempt(base, changes) for name, changes in switches(base).items()}
    refusals = {name: text for name, text in found.items() if text}
    assert set(refusals) == {name for name in found if to_be_refused(base, [name])}, refusals
    assert all(said_well(text) for text in refusals.values()), refusals


@pytest.mark.sampled(4)
@pytest.mark.parametrize("base", BASES)
def test_each_pair_of_switches(base):
    table = switches(base)
    ran = 0
    for pair in combinations([name for name in table if name not in NOT_IN_PAIRS], 2):
        if pair[0].split(":")[0] == pair[1].split(":")[0]:
            continue  # alternatives
        refusal = attempt(base, table[pair[0]] + table[pair[1]])
        assert (refusal is not None) == to_be_refused(base, pair), f"{pair}: {refusal}"
        assert refusal is None or said_well(refusal), refusal
        ran += refusal is None
    assert ran >= 10


@pytest.mark.parametrize("base", BASES)
def test_as_many_switches_as_go_together(base):
    """A set whose pairs all run runs as well."""
    for chosen, changes in largest_sets(base, 20):
        assert (refusal := attempt(base, changes)) is None, f"{chosen}: {refusal}"


@pytest.mark.parametrize("base", [base for base in BASES if base.startswith(("particles", "circle", "sphere"))])
def test_runs_of_them_to_the_end_leave_a_file(base):
    for index, (chosen, changes) in enumerate(largest_sets(base, 6)):
        case = case_of(base, [*changes, "output.snapshots=2", "output.samples=2"])
        assert run(case, f"{index}.h5", quiet=True) == DONE, chosen
        file = read(f"{index}.h5")
        assert file.snapshots == 3, chosen
        assert np.isfinite(file.snapshot(-1)).all(), chosen


@pytest.mark.parametrize(("changes", "refusal"), [
    (["domain.labels=2"], "domain.labels = 2: expected a divisor of the number of points, 3"),
    (["initial.masses=[1, 1, 1]"], "initial.masses = [1.0, 1.0, 1.0]: not allowed with a causal mask"),
])  # fmt: skip
def test_points_under_a_causal_mask_are_dealt_to_labels_of_equal_mass(changes, refusal):
    points = ["attention.mask=causal", "initial.kind=points", "initial.points=[[1, 0], [0, 1], [-1, 1]]"]
    assert attempt("circle", points) is None
    assert attempt("circle", points + changes).startswith(refusal)


def test_the_page_of_combinations_is_the_table():
    """The page lists all shipped domains; a new one needs no page."""
    names = runpy.run_path(str(Path(__file__).parents[2] / "docs/combinations.py"))
    text = names["PAGE"].read_text("utf-8")
    heading = next(line for line in text.splitlines() if line.startswith("|"))
    listed = {name: kind for name, kind in DOMAINS.items() if f"`{name}`" in heading}
    assert {base[0] for base in BASES.values()} <= {*listed}
    assert text == names["page"](listed)


def test_the_page_on_cases_names_the_layer_norms_of_each_domain():
    text = (Path(__file__).parents[2] / "docs/cases.md").read_text("utf-8")
    rows = [line.split(" | ") for line in text.split("\n") if line.startswith("| `") and line.count("|") == 4]
    found = {name: row[2].rstrip(" |") for row in rows for name in re.findall(r"`(\w+)`", row[0]) if name in DOMAINS}
    words = {name: ", ".join(kind.layer_norms) for name, kind in DOMAINS.items()}
    assert found == {name: words[name] for name in found} | {"transformer": "part of the model"}
    assert {base[0] for base in BASES.values()} <= {*found}
