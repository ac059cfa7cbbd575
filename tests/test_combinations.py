"""Every switch of a layer with every other: a pair runs, or is refused in one line that names the key.

A run is two steps on a tiny mesh. Which switches a manifold refuses, and which pairs exclude each other anywhere, is
written down here: anything else has to run, and nothing may end in a traceback.
"""

import re
from itertools import combinations

import numpy as np
import pytest

from meanfield.case import CaseError, parse
from meanfield.setup import set_up
from solvers.evolution import State

BASES = {  # domain, usual layer norm, d
    "circle": ("resolution = 16", "post", 2),
    "sphere": ("resolution = 6", "post", 3),
    "axisymmetric": ("resolution = 16\ndimension = 5", "post", 5),
    "line": ("resolution = 32\noutermost = 10.0", "none", 1),
    "free_radius_circle": ("resolution = 8\nradii = 16\ninnermost = 0.2\noutermost = 5.0", "pre", 2),
    "free_radius_sphere": ("resolution = 4\nradii = 16\ninnermost = 0.2\noutermost = 5.0", "pre", 3),
}
START = {"line": 'kind = "gaussian"\nvariance = 0.5'}
ON_SPHERES = ("norm: post", "norm: ngpt", "norm: cod")
CARRIED = ("norm: pre", "norm: peri", "norm: mix")
REACTIONS = ("reaction: linear", "reaction: logistic", "reaction: replicator")
LAYERS = ("depth: layers", "depth: no residual")
FREE = (*ON_SPHERES, "noise", "scale", *LAYERS, "mask", "kernel: gaussian", "kernel: windowed", *REACTIONS,
        "normalization: sinkhorn", "value: heads")  # fmt: skip
REFUSED = {
    "circle": (*CARRIED, "norm: none", "gate"),
    "sphere": (*CARRIED, "norm: none", "gate"),
    "axisymmetric": (*CARRIED, "norm: none", "gate", "scale", *LAYERS, "mask", "kernel: gaussian", "kernel: windowed",
                     "normalization: sinkhorn", "query", "value: matrix", "value: random", "value: heads",
                     "feed-forward", *REACTIONS),
    "line": (*ON_SPHERES, *CARRIED, "scale", "mask", "kernel: gaussian", "kernel: windowed", "normalization: sinkhorn",
             "value: random", "value: heads", "feed-forward", *REACTIONS),
    "free_radius_circle": FREE,
    "free_radius_sphere": FREE,
}  # fmt: skip
REFUSED = {manifold: frozenset(names) for manifold, names in REFUSED.items()}
EXCLUSIVE = {  # anywhere
    *((depth, other) for depth in LAYERS for other in ("noise", "mask", *REACTIONS)),
    ("depth: no residual", "gate"),
    *(("mask", other) for other in ("normalization: sinkhorn", *REACTIONS)),  # both sides of a kernel; labels' masses
    *(
        (local, other)
        for local in ("kernel: windowed", "normalization: sinkhorn")
        for other in ("query", "value: heads")
    ),
    ("query", "value: heads"),  # a head has its own
}


def switches(d):
    """Name → overrides of a case in R^d. Names that share the word before the colon are choices of one thing."""
    matrix = np.eye(d) + 0.3 * np.eye(d, k=1)
    skew = matrix.tolist() if d > 1 else [[0.5]]
    back = (-np.eye(d)).tolist()
    return {
        **{
            f"norm: {n}": [f"stabilizers.layer_norm={n}"] for n in ("post", "ngpt", "cod", "pre", "peri", "mix", "none")
        },
        "noise": ["stabilizers.noise=0.1"],
        "gate": ["stabilizers.gate=0.2"],
        "scale": ["stabilizers.scale=1.5"],
        "depth: layers": ["time.method=layers", "time.layers=2", "time.step=0.1"],
        "depth: no residual": ["time.method=layers", "time.layers=2", "stabilizers.residual=false"],
        "depth: ssprk2": ["time.method=ssprk2"],
        "mask": ["attention.mask=causal"],
        "kernel: gaussian": ["attention.kernel=gaussian"],
        "kernel: windowed": ["attention.kernel=windowed", "attention.window=1.0"],
        "normalization: unnormalized": ["attention.normalization=unnormalized"],
        "normalization: sinkhorn": ["attention.normalization=sinkhorn"],
        "beta 0": ["attention.beta=0"],
        "query": [f"attention.query={skew}"],
        "value: matrix": [f"attention.value={skew}"],
        "value: random": ['attention.value={ensemble = "ginibre", seed = 1}'],
        "value: -1": [f"attention.value={back}"],
        "value: heads": [f"attention.heads=[{{value = {skew}, weight = 0.5}}, {{query = {skew}, weight = 0.5}}]"],
        "feed-forward": ["feed_forward.width=3"],
        "reaction: linear": ["reaction.kind=linear", "reaction.rate=0.5"],
        "reaction: logistic": ["reaction.kind=logistic", "reaction.rate=0.5"],
        "reaction: replicator": ["reaction.kind=replicator", "reaction.rate=0.5", f"reaction.vector={[1.0] * d}"],
    }


def attempt(manifold, overrides):
    """None after two good steps, else the refusal."""
    domain, norm, _ = BASES[manifold]
    start = START.get(manifold, 'kind = "perturbed"\namplitude = 0.3\ndegrees = 2')
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
    try:
        case = parse(text, overrides)
        problem = set_up(case)
        state = State(0.0, problem.initial())
    except CaseError as refusal:
        return str(refusal)
    state = problem.advance(state, case.time.end, (), case.time.cfl, lambda state: state.steps >= 2)
    found = problem.diagnostics(case.output.diagnostics, None)(state.time, state.values)
    assert 1 <= state.steps <= 2
    assert state.values.min() >= 0
    assert all(np.isfinite(value).all() for value in found.values())
    if case.reaction is None or case.reaction.__struct_config__.tag == "replicator":
        assert abs(found["mass"] - 1) < 1e-12
    return None


def said_well(refusal):
    """Whether a refusal is one line that names a key, its value and what was expected."""
    return re.fullmatch(r"[a-z_]+(\.[a-z_]+|\[\d+\])+ = .+: expected .+", refusal) is not None


@pytest.mark.parametrize("manifold", BASES)
def test_each_switch_alone(manifold):
    found = {name: attempt(manifold, changes) for name, changes in switches(BASES[manifold][2]).items()}
    refusals = {name: text for name, text in found.items() if text}
    assert set(refusals) == set(REFUSED[manifold]), refusals
    assert all(said_well(text) for text in refusals.values()), refusals


@pytest.mark.parametrize("manifold", BASES)
def test_each_pair_of_switches(manifold):
    table = switches(BASES[manifold][2])
    excluded = {frozenset(pair) for pair in EXCLUSIVE}
    ran = 0
    for pair in combinations(table, 2):
        if pair[0].split(":")[0] == pair[1].split(":")[0]:
            continue  # choices of one thing
        refusal = attempt(manifold, table[pair[0]] + table[pair[1]])
        refused = frozenset(pair) in excluded or not REFUSED[manifold].isdisjoint(pair)
        assert (refusal is not None) == refused, f"{pair}: {refusal}"
        assert refusal is None or said_well(refusal), refusal
        ran += refusal is None
    assert ran >= 10


@pytest.mark.parametrize("manifold", BASES)
def test_as_many_switches_as_go_together(manifold):
    """Sets that no switch can be added to without an excluded pair: what all of whose pairs run runs as well."""
    table, excluded = switches(BASES[manifold][2]), {frozenset(pair) for pair in EXCLUSIVE}
    random = np.random.default_rng(0)
    for _ in range(20):
        chosen: list[str] = []
        for name in random.permutation([name for name in table if name not in REFUSED[manifold]]):
            others = {other.split(":")[0] for other in chosen}
            if name.split(":")[0] not in others and not any(frozenset((name, c)) in excluded for c in chosen):
                chosen.append(name)
        refusal = attempt(manifold, [change for name in chosen for change in table[name]])
        assert refusal is None, f"{chosen}: {refusal}"


@pytest.mark.parametrize(("changes", "refusal"), [
    (["domain.labels=2"], "domain.labels = 2: expected a divisor of the number of points, 3"),
    (["initial.masses=[1, 1, 1]"], "initial.masses = [1.0, 1.0, 1.0]: expected no such key with a causal mask"),
])  # fmt: skip
def test_points_under_a_causal_mask_are_dealt_to_labels_of_equal_mass(changes, refusal):
    points = ["attention.mask=causal", "initial.kind=points", "initial.points=[[1, 0], [0, 1], [-1, 1]]"]
    assert attempt("circle", points) is None
    assert attempt("circle", points + changes).startswith(refusal)
