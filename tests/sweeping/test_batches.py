"""Points solved together in one array: the same results as one by one, and the selection of these points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sweeping import write

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.case.load import parse, to_toml
from meanfield.domains.common.problem import Problem
from meanfield.domains.particles import systems
from meanfield.domains.particles.batch import BATCH, solve_batch
from meanfield.running import run_in_memory
from meanfield.simulation import sample_schedule, set_up
from meanfield.sweeping import local_pool, together
from meanfield.sweeping.case import parse_sweep
from meanfield.sweeping.driver import DONE, sweep
from meanfield.sweeping.results import read_sweep
from meanfield.sweeping.tasks import Work
from meanfield.sweeping.together import merge_groups, solve_task
from solvers.transforms.pairwise import exponential_sums
from solvers.transforms.systems import sums_of_systems

TOKENS = """
domain = {manifold = "particles", dimension = 3, count = 12}
attention = {beta = 4.0}
initial = {kind = "uniform"}
time = {end = 6.0}
output = {snapshots = 1, samples = 7}
"""
MATRICES = "attention.query=[[1.0,0.5,0.0],[-0.5,1.0,0.0],[0.0,0.0,0.7]]"
THREE_HEADS = (
    'attention.heads=[{weight=0.4},{query={ensemble="ginibre",seed=2},value=[[0,1,0],[-1,0,0],[0,0,1]],weight=0.4},'
    "{value=[[0,0,1],[1,0,0],[0,1,0]],weight=0.2}]"
)
SAME = 1e-9  # each step has an error of 1e-10, so that rounding may move a result by this much
SETTINGS: dict[str, list[str]] = {
    "softmax": [],
    "unnormalized": ["attention.normalization=unnormalized", "attention.beta=1"],  # at 4 rounding grows to 1e-8
    "rescaled": ["attention.normalization=unnormalized", "attention.rescaled=true"],
    "causal": ["attention.mask=causal"],
    "matrices": [MATRICES],
    "three heads, two kernels": [THREE_HEADS],
    "feed-forward": ["feed_forward={width=5,seed=1,strength=0.2}"],
    "ngpt": ["stabilizers.layer_norm=ngpt", "stabilizers.alpha=0.5"],
    "cod": ["stabilizers.layer_norm=cod"],
    "no layer norm": ["stabilizers.layer_norm=none", "stabilizers.gate=2.0", "attention.beta=0.5"],
    "many dimensions": ["domain.dimension=12"],
    "sphere of radius 2": ["stabilizers.scale=2.0", "attention.beta=1.0"],
    "logarithmic samples": ["output.spacing=log", "output.first=0.01"],
}


def solved(cases: list[Case]) -> dict[int, dict[str, Any] | None]:
    problems: list[Problem] = [set_up(case) for case in cases]
    return dict(solve_batch(cases, problems, [sample_schedule(case) for case in cases]))


@pytest.mark.parametrize("name", SETTINGS)
def test_systems_together_are_what_each_is_alone(name: str) -> None:
    """The systems have other β, seeds, ends and tolerances: times agree to the bit, diagnostics to the tolerance of
    steps."""
    of_each = [[], ["domain.seed=1"], ["domain.seed=2", "time.end=2.5"], ["domain.seed=3", "time.tolerance=1e-7"]]
    cases = [parse(TOKENS, [*SETTINGS[name], *changes]) for changes in of_each]
    assert len({BATCH.key(case) for case in cases}) == 1
    found = solved(cases)
    for number, case in enumerate(cases):
        alone, tables = run_in_memory(case), found[number]
        assert tables is not None
        np.testing.assert_array_equal(tables["time"], alone.sample_times)
        assert list(tables) == ["time", *alone.diagnostics]
        for column, values in alone.diagnostics.items():
            np.testing.assert_allclose(tables[column], values, rtol=SAME, atol=SAME, err_msg=f"{number} {column}")


def test_networks_on_spheres_of_different_radii_are_not_solved_together() -> None:
    """The network acts on directions as F(gθ)/g, which depends on the radius g; attention alone has another β."""
    radii = [["stabilizers.scale=1.0"], ["stabilizers.scale=2.0"]]
    assert len({BATCH.key(parse(TOKENS, radius)) for radius in radii}) == 1
    network = SETTINGS["feed-forward"]
    assert len({BATCH.key(parse(TOKENS, [*network, *radius])) for radius in radii}) == 2


def test_the_error_of_each_is_its_own() -> None:
    """A system's result does not depend on the others, to the bit: a stiff one, a lost one, another order."""
    cases = [parse(TOKENS, [f"domain.seed={seed}"]) for seed in range(3)]
    harder = parse(TOKENS, ["attention.beta=80", "time.tolerance=1e-12"])
    few, more = solved(cases), solved([harder, *reversed(cases)])
    for number in range(3):
        one, other = few[number], more[3 - number]
        assert one is not None
        assert other is not None
        for column, values in one.items():
            np.testing.assert_array_equal(values, other[column], column)


def test_two_tokens_meet_as_the_exact_solution_says() -> None:
    """The angle a of each of 20 pairs follows ȧ = −sin a at β = 0: tan(a/2) falls by e^{−t}."""
    angles = np.linspace(0.2, 3.0, 20)
    points = [
        f"initial={{kind='points',points=[[1.0,0.0],[{float(np.cos(a))!r},{float(np.sin(a))!r}]]}}" for a in angles
    ]
    base = TOKENS.replace("dimension = 3, count = 12", "dimension = 2").replace("beta = 4.0", "beta = 0.0")
    cases = [parse(base, [point, "time.end=1.5"]) for point in points]
    found = solved(cases)
    for number, angle in enumerate(angles):
        tables = found[number]
        assert tables is not None
        exact = 2 * np.arctan(np.tan(angle / 2) * np.exp(-tables["time"]))
        lengths = np.linalg.norm(tables["centroid"], axis=1)
        np.testing.assert_allclose(lengths, np.cos(exact / 2), atol=1e-9)  # steps err by 1e-10 each


@pytest.mark.parametrize("dimension", [2, 3, 8, 9])
@pytest.mark.parametrize("causal", [False, True])
def test_sums_of_systems_are_those_of_pairs(dimension: int, causal: bool) -> None:
    """Sums are by the kernel, and by products of matrices in many dimensions; points without weight do not
    contribute."""
    random = np.random.default_rng(0)
    towards, points = 5 * random.standard_normal((2, 6, 7, dimension))
    weights = random.random((6, 7))
    weights[:, 0 if causal else 3] *= np.arange(6) > 1
    weights[:, 0] += causal  # a target without sources has no mean
    found = sums_of_systems(towards, points, weights, causal=causal)
    for k in range(6):
        for values, alone in zip(
            found, exponential_sums(towards[k], points[k], weights[k], causal=causal), strict=True
        ):
            np.testing.assert_allclose(values[k], alone, rtol=1e-12, atol=1e-13)  # of sums of 7 terms


@pytest.mark.parametrize(
    "changes",
    [
        ["stabilizers.noise=0.1"], ["time.method=layers", "time.layers=5"], ["time.stop=steady"],
        ["attention.kernel=gaussian"], ["attention.normalization=sinkhorn"], ["stabilizers.layer_norm=pre"],
        ["stabilizers.layer_norm=mix"], ["sequence={diffusion=0.1}"], ["domain.count=400"],
    ],
)  # fmt: skip
def test_others_go_alone(changes: list[str]) -> None:
    assert BATCH.key(parse(TOKENS, changes)) is None


@pytest.mark.parametrize("changes", [["domain.count=13"], ["domain.dimension=2"], ["attention.mask=causal"]])
def test_what_differs_in_kind_goes_apart(changes: list[str]) -> None:
    assert BATCH.key(parse(TOKENS, changes)) != BATCH.key(parse(TOKENS))


def test_a_case_that_cannot_go_on_is_solved_alone_and_says_why() -> None:
    """Tokens with unnormalized attention and without a layer norm blow up; a run that ends before does not."""
    blows_up = ["stabilizers.layer_norm=none", "attention.normalization=unnormalized", "attention.beta=3"]
    goes_on = [*blows_up, "time.end=1e-3"]
    task = {n: to_toml(parse(TOKENS, changes)) for n, changes in enumerate((blows_up, goes_on))}
    results = merge_groups(solve_task(task))
    assert [results[n].exit_status for n in range(2)] == [3, 0]
    assert results[0].reason.startswith("stopped on")
    assert results[0].reason == together.solve_point(task[0]).reason


SWEEP = """
[keys]
"attention.beta" = [1.0, 4.0]
"domain.seed" = {seeds = 5}
"time.method" = ["adaptive", "ssprk3"]
[case]
"""


def test_a_sweep_solves_together_what_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default solves points together in this process: no worker starts, and only points of the other method go
    alone."""
    monkeypatch.setattr(local_pool, "_Worker", None)
    monkeypatch.setattr(Work, "few", 99)
    alone: list[str] = []
    solve = together.solve_point
    monkeypatch.setattr(together, "solve_point", lambda case, *rest: (alone.append(case), solve(case, *rest))[1])
    text = SWEEP + TOKENS
    plan = parse_sweep(text)
    tasks = list(Work(range(20), lambda number: plan.points[number].case).tasks(at_once=10))
    assert sorted(len(task) for task in tasks) == [10, 10]
    file = write(tmp_path / "s.toml", text.replace('"time.method" = ["adaptive", "ssprk3"]\n', ""))
    assert sweep(file, tmp_path / "s.h5", quiet=True) == DONE
    assert not alone
    found = read_sweep(tmp_path / "s.h5")
    assert found.status.tolist() == ["done"] * 10
    single = run_in_memory(parse_sweep(file.read_text()).points[7].case)
    np.testing.assert_allclose(found.scalars["centroid"][7], single.diagnostics["centroid"][-1], atol=SAME)


@pytest.mark.parametrize(
    ("error", "statuses", "reason"),
    [
        (CaseError("component mine: line 3"), ["done", "done"], ""),
        (MemoryError(), ["done", "done"], ""),
        (ZeroDivisionError("division by zero"), ["failed", "failed"], "ZeroDivisionError: division by zero"),
    ],
)
def test_what_fails_in_a_batch_is_tried_alone_or_reported(
    error: Exception, statuses: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of one point's input is reported for that point; a fault of the package is raised."""
    case = parse(TOKENS)

    def broken(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr(systems.RatesOfSystems, "__call__", broken)  # not used by a single point
    results = merge_groups(solve_task({0: to_toml(case), 1: to_toml(case)}))
    assert [result.status for result in results.values()] == statuses
    assert {result.reason for result in results.values()} == {reason}


def test_work_does_not_grow_with_the_number_of_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over pairs are computed for all systems at once, for steps and diagnostics: as often for nine as for
    three."""
    calls: list[int] = []

    def counted(towards: Any, *others: Any, **options: Any) -> Any:
        calls.append(len(towards))
        return sums_of_systems(towards, *others, **options)

    monkeypatch.setattr(systems, "sums_of_systems", counted)

    def work(copies: int) -> int:
        calls.clear()
        cases = [parse(TOKENS, [f"attention.beta={beta}"]) for beta in (1.0, 4.0, 9.0) * copies]
        problems, schedules = [set_up(case) for case in cases], [sample_schedule(case) for case in cases]
        assert all(tables is not None for _, tables in solve_batch(cases, problems, schedules))
        assert max(calls) == len(cases)
        return len(calls)

    assert work(3) == work(1)
