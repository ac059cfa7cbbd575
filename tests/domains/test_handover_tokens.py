"""Tokens handed over to atoms: merging times in any dimension, and the tokens between mergers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.exact_atoms import pair_time_equal
from support.status import DONE, resume, run

from meanfield.analysis.info import describe
from meanfield.analysis.mergers import report
from meanfield.case.errors import CaseError
from meanfield.case.load import load, parse
from meanfield.domains.atoms.flow import MERGE_ANGLE, AtomMerger
from meanfield.domains.atoms.handover_states import TokenStates
from meanfield.domains.atoms.setup import FIRST_CHECK
from meanfield.domains.atoms.velocity import Atoms
from meanfield.runtime.cost import estimate
from meanfield.simulation import set_up
from solvers.io.run_file import RunFile, read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import State

PAIR = """
[domain]
manifold = "particles"
[attention]
beta = {beta}
[initial]
kind = "points"
points = [{first}, {second}]
[handover]
[time]
end = {end}
[output]
times = {times}
samples = 10
spacing = "log"
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("beta", "dimension"), [(9, 2), (16, 5), (25, 20)])
def test_two_tokens_meet_at_the_time_of_the_closed_form(beta, dimension, tmp_path):
    """The cosine is ½ within 1e-5 of 2e4, 2e8 and 6e13: errors of 1e-9 a step, β times as much of the time."""
    expected = pair_time_equal(beta)
    first, second = np.zeros((2, dimension))
    first[0], second[:2] = 1.0, (np.cos(2.0), np.sin(2.0))
    times = [expected * (1 - 1e-5), expected * (1 + 1e-5)]
    case = parse(PAIR.format(beta=beta, first=first.tolist(), second=second.tolist(), end=2 * expected, times=times))
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    file = read(tmp_path / "run.h5")
    before, after = (file.positions(k)[0] @ file.positions(k)[1] for k in (0, 1))
    assert before < 0.5 < after
    (merger,) = report(file)["mergers"]
    assert merger["time"] == pytest.approx(expected, rel=0.01 if beta > 9 else 0.02)  # e^{β/2} later
    assert merger["time"] in file.sample_times


CLOUD = """
[domain]
manifold = "particles"
count = 20
dimension = 3
[attention]
beta = 6.0
[initial]
kind = "uniform"
[time]
end = 60.0
[output]
snapshots = 6
samples = 120
"""


def test_tokens_are_where_they_are_without_it(tmp_path):
    """Diagnostics also agree, except near a merger, which atoms report a little later."""
    plain, handed = tmp_path / "plain.h5", tmp_path / "handed.h5"
    assert run(parse(CLOUD), plain, quiet=True) == DONE
    assert run(parse(CLOUD, ["handover={}", "output.spacing=linear"]), handed, quiet=True) == DONE
    plain, handed = read(plain), read(handed)
    assert 5 < handed.attributes["hand_over_time"] < 50
    assert handed.attributes["hand_over_angle"] < 1e-7
    assert max(np.abs(plain.positions(k) - handed.positions(k)).max() for k in range(7)) < MERGE_ANGLE
    same = np.isin(handed.sample_times, plain.sample_times)
    for name in ("energy", "centroid", "pairs_close", "mass"):
        assert handed.diagnostics[name][same] == pytest.approx(plain.diagnostics[name], abs=1e-3, rel=1e-6), name
    assert describe(tmp_path / "handed.h5")["hand_over_time"] > 5


def states(masses=(0.25, 0.25, 0.5)):
    return TokenStates(np.array(masses), 2, 1.0, 0.25)


def on_circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_tokens_have_collapsed_when_each_is_near_its_cluster():
    assert states().have_collapsed(on_circle(0.0, 1e-4, 2.0))
    assert not states().have_collapsed(on_circle(0.0, 1e-3, 2.0))
    assert not states().have_collapsed(on_circle(0.0, 0.2, 2.0))  # one cluster at this scale


def test_tokens_in_more_clusters_than_can_be_followed_are_not_handed_over():
    tokens = TokenStates(np.full(80, 1 / 80), 2, 1.0, 0.02)
    assert not tokens.have_collapsed(on_circle(*np.repeat(np.arange(40), 2) * np.pi / 20))
    few = TokenStates(np.full(60, 1 / 60), 2, 1.0, 0.02)
    assert few.have_collapsed(on_circle(*np.repeat(np.arange(30), 2) * np.pi / 15))


def test_check_tells_what_the_handover_of_many_tokens_waits_for():
    """Many tokens on the circle form √(3β/2) clusters."""
    assert "\nhandover      " not in estimate(load("tokens_ladder", ["domain.count=16"]))
    assert estimate(load("tokens_ladder")).count("in advance, then some for each merger of their atoms") == 1
    many = estimate(load("tokens_ladder", ["domain.count=200"]))
    assert many.endswith("handover      only once 200 tokens are at most 16 clusters")
    circle = estimate(load("tokens_ladder", ["domain.count=200", "domain.dimension=2", "attention.beta=2000"]))
    assert circle.endswith("at most 32 clusters; about 55 form at first")


def test_tokens_go_where_their_atom_goes():
    held = states()
    values = held.values_after_handover(on_circle(-1e-5, 1e-5, 2.0))
    assert held.are_atoms(values)
    assert np.abs(held.snapshot(values) - on_circle(0.0, 0.0, 2.0)).max() < 1e-12
    atoms = held.atoms(values)
    order = np.argsort(atoms.positions[:, 0])
    assert atoms.masses[order] == pytest.approx([0.5, 0.5])
    there = Atoms(on_circle(0.3, 2.2)[:: 1 if order[0] else -1], atoms.masses)
    moved = held.values_after_step(values, there, ())
    assert np.abs(held.snapshot(moved) - on_circle(0.3, 0.3, 2.2)).max() < 1e-12


def test_tokens_of_atoms_that_merged_go_on_together():
    """Atoms 0 and 2 merge, and then 1 joins."""
    held = TokenStates(np.full(4, 0.25), 2, 1.0, 0.25)
    values = np.column_stack([on_circle(0.0, 1.0, 2.0, 3.0), [0, 1, 2, 3]])
    mergers = [
        AtomMerger(1.0, (0.25, 0.25), on_circle(0.0)[0], (0, 2)),
        AtomMerger(1.0, (0.5, 0.25), on_circle(0.0)[0], (0, 1)),
    ]
    moved = held.values_after_step(values, Atoms(on_circle(0.5, 3.0), np.array([0.75, 0.25])), mergers)
    assert np.abs(held.snapshot(moved) - on_circle(0.5, 0.5, 0.5, 3.0)).max() < 1e-12
    assert held.atoms(moved).masses == pytest.approx([0.75, 0.25])


REFUSED = {
    "stabilizers.layer_norm=pre": "stabilizers.layer_norm",
    "stabilizers.noise=0.1": "stabilizers.noise",
    "attention.mask=causal": "attention.mask",
    "sequence={}": "sequence",
    "domain.dimension=200": "domain.dimension",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_atoms_cannot_be_is_refused(setting):
    with pytest.raises(CaseError, match=REFUSED[setting]):
        parse(CLOUD, ["handover={}", setting])


@pytest.mark.parametrize("domain", ['manifold = "particles"', 'manifold = "circle"\nresolution = 64'])
def test_a_run_goes_on_to_the_same_handover_from_any_step_before_it(domain, monkeypatch):
    """The run is killed at the start, within the first interval, and at its end while the error is computed."""
    monkeypatch.setattr("meanfield.domains.atoms.setup.FIRST_CHECK", 5.0)  # some steps
    text = PAIR.format(beta=9, first=[1.0, 0.0], second=[-0.4, 0.9], end=1e3, times=[0.0, 1e3])
    case = parse(text.replace('manifold = "particles"', domain))
    kept, problem = [], set_up(case)

    def keep(state):
        kept.append(replace(state, values=state.values.copy()))
        return math.isfinite(problem.run_scalars["hand_over_time"])

    integrate(State(0.0, problem.initial()), problem.dynamics, case.time.end, (), keep)
    first = problem.run_scalars["hand_over_time"]
    shape = problem.initial().shape  # atoms have another shape
    before = [state for state in kept if state.values.shape == shape]
    assert before[-1].time == first
    assert len(before) > 1
    for state in before:
        again = set_up(case)
        run_scalars = again.run_scalars
        integrate(
            state,
            again.dynamics,
            case.time.end,
            (),
            lambda _, run_scalars=run_scalars: run_scalars["hand_over_time"] > 0,
        )
        assert again.run_scalars["hand_over_time"] == first


def test_a_run_that_starts_again_before_its_handover_has_none(tmp_path):
    """A run without its checkpoint is computed again from time 0, here to a time before the handover."""
    text = PAIR.format(beta=9, first=[1.0, 0.0], second=[-0.4, 0.9], end=10.0, times=[0.0, 10.0])
    path = tmp_path / "run.h5"
    assert run(parse(text), path, quiet=True) == DONE
    time = read(path).attributes["hand_over_time"]
    assert resume(path, until=11.0, quiet=True) == DONE
    assert read(path).attributes["hand_over_time"] == time > 0
    RunFile.append(path, snapshots=0).close(stop_reason="interrupted")
    assert resume(path, until=time / 2, quiet=True) == DONE
    assert math.isnan(read(path).attributes["hand_over_time"])


@pytest.mark.parametrize("spacing", ["linear", "log"])
@pytest.mark.parametrize("domain", ['manifold = "particles"', 'manifold = "circle"\nresolution = 64'])
def test_a_handover_waits_for_no_sample(domain, spacing):
    """Samples to t = 1e14 may be 1e11 apart, which no density reaches."""
    text = PAIR.format(beta=9, first=[1.0, 0.0], second=[-0.4, 0.9], end=1e14, times=[0.0, 1e14])
    assert parse(text.replace('spacing = "log"', "")).output.first == 0.1
    case = parse(text.replace('manifold = "particles"', domain), [f"output.spacing={spacing}", "output.samples=2"])
    problem = set_up(case)

    def handed_over_or_late(state):
        return not math.isnan(problem.run_scalars["hand_over_time"]) or state.time > 1.0

    integrate(State(0.0, problem.initial()), problem.dynamics, case.time.end, (), handed_over_or_late)
    assert problem.run_scalars["hand_over_time"] == FIRST_CHECK


def test_tokens_that_do_not_move_are_handed_over(tmp_path):
    """V = 0: there is no time in which a token moves by a radian."""
    text = PAIR.format(beta=9, first=[1.0, 0.0], second=[-0.4, 0.9], end=1e3, times=[0.0, 1e3])
    assert run(parse(text, ["attention.value=[[0.0, 0.0], [0.0, 0.0]]"]), tmp_path / "run.h5", quiet=True) == DONE
    kept = read(tmp_path / "run.h5")
    assert kept.attributes["hand_over_time"] == FIRST_CHECK
    assert kept.positions(-1) == pytest.approx(kept.positions(0), abs=1e-15)
