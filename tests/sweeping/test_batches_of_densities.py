"""Densities on the circle solved together in one array: the same results as one by one, and the selection of cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from meanfield.case.case import Case
from meanfield.case.load import parse
from meanfield.domains.sphere.batch import BATCH
from meanfield.running import run_in_memory
from meanfield.simulation import sample_schedule, set_up, snapshot_schedule
from meanfield.sweeping.tasks import Work
from meanfield.sweeping.together import merge_groups, solve_task

DENSITY = """
domain = {manifold = "circle", resolution = 64}
attention = {beta = 4.0}
initial = {kind = "perturbed", amplitude = 0.1}
time = {end = 4.0}
output = {snapshots = 3, samples = 8}
"""
ROTATED = "attention.heads=[{weight=0.4},{query=[[1.2,0],[0,1.2]],value=[[0,-1],[1,0]],weight=0.6}]"
PAIR = 'initial={kind="points",points=[[1,0],[-0.99,0.02]],masses=[0.6,0.4]}'
SAME = 1e-10  # the steps are those of a single case, so that only rounding differs
SETTINGS: dict[str, list[str]] = {
    "softmax": [],
    "unnormalized": ["attention.normalization=unnormalized", "attention.beta=1"],
    "rescaled": ["attention.normalization=unnormalized", "attention.rescaled=true"],
    "gaussian": ["attention.kernel=gaussian"],
    "windowed": ["attention.kernel=windowed", "attention.window=1.0"],
    "two heads, one that rotates": [ROTATED],
    "feed-forward": ["feed_forward={width=5,seed=1,strength=0.2}"],
    "ngpt": ["stabilizers.layer_norm=ngpt", "stabilizers.alpha=0.5"],
    "cod": ["stabilizers.layer_norm=cod"],
    "circle of radius 2": ["stabilizers.scale=2.0", "attention.beta=1.0"],
    "clusters that are nearly opposite": [PAIR],
    "logarithmic samples": ["output.spacing=log", "output.first=0.01"],
    "noise": ["stabilizers.noise=0.05"],
    "noise near the critical one": ["stabilizers.noise=0.4", "initial.amplitude=0.01"],
    "another method": ["time.method=ssprk2", "time.cfl=0.9"],
}


def cases_of(overrides: list[str]) -> list[Case]:
    """Return five cases that differ in β, seed and end."""
    seeds = overrides != [PAIR]
    found = []
    for number in range(5):
        beta = parse(DENSITY, overrides).attention.beta * (1 + 0.2 * number)
        more = [f"attention.beta={beta}", f"time.end={4.0 - 0.8 * number}", *[f"initial.seed={number}"] * seeds]
        found.append(parse(DENSITY, [*overrides, *more]))
    return found


def solved(cases: list[Case]) -> dict[int, dict[str, Any] | None]:
    schedules = ([schedule(case) for case in cases] for schedule in (sample_schedule, snapshot_schedule))
    return dict(BATCH.solve(cases, [set_up(case) for case in cases], *schedules))


@pytest.mark.parametrize("name", SETTINGS)
def test_densities_together_are_what_each_is_alone(name: str) -> None:
    cases = cases_of(SETTINGS[name])
    assert len({BATCH.key(case) for case in cases}) == 1
    found = solved(cases)
    for number, case in enumerate(cases):
        alone, tables = run_in_memory(case), found[number]
        assert tables is not None
        assert list(tables) == ["time", *alone.diagnostics]
        np.testing.assert_array_equal(tables["time"], alone.sample_times)
        for column, values in alone.diagnostics.items():
            np.testing.assert_allclose(tables[column], values, rtol=SAME, atol=SAME, err_msg=f"{number} {column}")


@pytest.mark.parametrize(
    "changes",
    [
        ["time.method=layers", "time.layers=5"], ["time.stop=steady"],
        ["attention.normalization=sinkhorn"], ["attention.mask=causal"], ["domain.precision=single"],
        ["reaction.kind=logistic", "reaction.rate=0.1"], ["handover={}"],
    ],
)  # fmt: skip
def test_others_go_alone(changes: list[str]) -> None:
    assert BATCH.key(parse(DENSITY, changes)) is None


def test_long_runs_are_few_in_an_array() -> None:
    """The limit is about 16 000 steps of 32 densities, or fewer densities, since a killed batch is lost."""
    steps_of_one_time = 64 / (2 * np.pi) / 0.9  # cells of a unit of time at speed 1, at cfl = 0.9
    sizes = [BATCH.size(parse(DENSITY, [f"time.end={end}"])) for end in (10.0, 1e4, 1e5, 1e9)]
    assert sizes == [32, int(500_000 / (1e4 * steps_of_one_time)), 1, 1]


def test_layers_of_different_kinds_are_solved_together() -> None:
    """Every row has its own layer norm, kernel, network and V."""
    kinds = [[], *(SETTINGS[name] for name in ("ngpt", "cod", "gaussian", "windowed", "feed-forward"))]
    kinds.append(["attention.value=[[0.5,0.2],[0.0,1.0]]"])
    cases = [parse(DENSITY, changes) for changes in kinds]
    assert len({BATCH.key(case) for case in cases}) == 1
    found = solved(cases)
    for number, case in enumerate(cases):
        tables = found[number]
        assert tables is not None
        energy = run_in_memory(case).diagnostics["energy"]
        np.testing.assert_allclose(tables["energy"], energy, rtol=SAME, err_msg=str(kinds[number]))


def test_cases_with_fewer_kernels_than_heads_are_solved_together() -> None:
    """Heads with equal Q and K are one head, so that the second case has one kernel."""
    cases = [parse(DENSITY, [heads, "time.end=1.0"]) for heads in (ROTATED, ROTATED.replace("1.2", "1.0"))]
    assert len({BATCH.key(case) for case in cases}) == 1
    found = solved(cases)
    for number, case in enumerate(cases):
        tables = found[number]
        assert tables is not None
        np.testing.assert_allclose(tables["energy"], run_in_memory(case).diagnostics["energy"], rtol=SAME)


def test_general_matrices_and_steep_repulsion_go_alone() -> None:
    """The kind of sums of a case is known after its setup; the other cases are still solved together."""
    cases = cases_of([])[:2]
    cases += [parse(DENSITY, [f"attention.query=[[1,{a}],[0,1]]", "attention.key=[[-2,0],[0,-2]]"]) for a in (0, 0.5)]
    found = solved(cases)
    assert [found[k] is None for k in range(4)] == [False, False, True, True]


def test_a_sweep_solves_them_together() -> None:
    """The tasks are those of a sweep: 70 points are two full batches and a rest."""
    cases = [parse(DENSITY, [f"initial.seed={seed}", "time.end=0.2"]) for seed in range(70)]
    tasks = list(Work(range(len(cases)), cases.__getitem__).tasks())
    assert [len(task) for task in tasks] == [32, 32, 6]
    results = merge_groups(solve_task(tasks[2]))
    assert {result.exit_status for result in results.values()} == {0}
    alone = run_in_memory(cases[69])
    np.testing.assert_allclose(results[69].tables["energy"], alone.diagnostics["energy"], rtol=SAME)
