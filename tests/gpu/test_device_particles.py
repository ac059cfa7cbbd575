"""Particles on the device, compared with the CPU: velocities, whole steps and whole runs, and copies to the host."""

from dataclasses import replace

import numpy as np
import pytest
from support.device import SIMULATED, gpu
from support.status import run

from meanfield.case.load import parse
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.domains.particles.pair_sums import PairSums
from meanfield.domains.particles.steps import dynamics_adaptive, dynamics_explicit, dynamics_layers
from meanfield.domains.particles.sums import token_sums
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.feed_forward import feed_forward_random
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LAYER_NORMS, LayerNorm
from solvers.io.run_file import read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import Exploding, NonFinite, State

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the simulator uses NumPy's numbers, which warn

EQUAL = 1e-12  # relative to the largest number: the order of sums differs
SINGLE = 2e-6  # rounding of float32, 6e-8, of exponents up to 4, and of the sums of 16 terms
START = tokens_uniform(16, 3, seed=3)
MASSES = np.random.default_rng(4).random(16)
MATRIX = np.random.default_rng(5).standard_normal((3, 3))
MATRICES = Head(query=MATRIX, key=MATRIX.T + 1.0, value=MATRIX, weight=0.5)
LAWS = {
    "identities": ParticleVelocity(4.0),
    "masses": ParticleVelocity(4.0, masses=MASSES / MASSES.sum()),
    "causal": ParticleVelocity(4.0, causal=True),
    "unnormalized": ParticleVelocity(2.0, "unnormalized"),
    "two heads, matrices": ParticleVelocity(1.0, heads=(MATRICES, Head(query=-1.0, weight=0.5))),
    "gaussian": ParticleVelocity(2.0, kernel="gaussian"),
    "gaussian, matrices": ParticleVelocity(1.0, heads=(MATRICES,), kernel="gaussian"),
    "windowed": ParticleVelocity(2.0, kernel="windowed", window=1.0),
    "windowed, causal": ParticleVelocity(2.0, kernel="windowed", window=1.0, causal=True),
    "sinkhorn": ParticleVelocity(0.2, "sinkhorn", masses=MASSES / MASSES.sum()),
    "network": ParticleVelocity(2.0, feed_forward=feed_forward_random(3, 5, "gelu")),
    **{name: ParticleVelocity(2.0, norm=LayerNorm(name, switch=0.05)) for name in LAYER_NORMS},
}


def placed(law):
    return law if law.masses is None else replace(law, masses=gpu.to_device(law.masses))


def difference(expected, found):
    assert expected.shape == found.shape
    return np.abs(expected - gpu.to_host(found)).max() / np.abs(expected).max()


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_the_cpu_s(name):
    law = LAWS[name]
    assert difference(law.output_at(START), placed(law).output_at(gpu.to_device(START))) < EQUAL
    expected = layer_map(law, START, 0.1)
    assert difference(expected, layer_map(placed(law), gpu.to_device(START), 0.1)) < EQUAL


def test_many_tokens_on_the_sphere_go_by_pairs_there():
    """The CPU's transform is not array code, and its selection would copy lengths to the host."""
    points = tokens_uniform(5000, 3)
    assert isinstance(token_sums(gpu.to_device(points), 2.0, Head()), PairSums)
    assert not isinstance(token_sums(points, 2.0, Head()), PairSums)


@pytest.mark.parametrize("name", ["identities", "causal", "two heads, matrices"])
def test_laws_in_float32(name):
    law = LAWS[name]
    found = law.output_at(gpu.to_device(START.astype(np.float32)))
    assert found.dtype == np.float32
    error = difference(law.output_at(START), found)
    assert 1e-9 < error < SINGLE, f"{error:.1e}"


def always(law):
    return lambda k: law


DYNAMICS = {
    "adaptive": lambda law: dynamics_adaptive(always(law), tolerance=1e-6),
    "ssprk3": lambda law: dynamics_explicit(always(law), "ssprk3"),
    "ssprk2, noisy": lambda law: dynamics_explicit(always(law), "ssprk2", noise=0.1, seed=4),
    "layers": lambda law: dynamics_layers(always(law), 0.1),
}
# test_laws_are_the_cpu_s has the velocities of all layer norms: these have a radius, and a switch in time.
STEPPED = [*((advance, "identities") for advance in DYNAMICS), ("adaptive", "pre"), ("ssprk3", "mix")]


def advanced(advance, law, positions, until=0.1):
    state, kind = State(0.0, positions), type(positions)
    before = getattr(kind, "transfers", 0)
    integrate(state, DYNAMICS[advance](law), until)
    return state, getattr(kind, "transfers", 0) - before


@pytest.mark.parametrize(("advance", "name"), STEPPED)
def test_steps_are_the_cpu_s(advance, name):
    law = LAWS[name]
    expected, _ = advanced(advance, law, START.copy())
    found, transfers = advanced(advance, placed(law), gpu.to_device(START))
    assert found.steps == expected.steps > 0
    assert found.dt == pytest.approx(expected.dt, rel=1e-8)  # the error that determines dt is partly rounding
    assert difference(expected.values, found.values) < EQUAL
    if SIMULATED:  # one number a step, and three for the choice of the first step, one more if that is refused
        # and two checks of the first values in each of two segments
        assert transfers <= expected.steps + (6 if advance != "adaptive" else 9)


def test_goes_on_bit_for_bit_on_the_device():
    whole, _ = advanced("adaptive", LAWS["identities"], gpu.to_device(START[:4]), 1.5)
    part = State(0.0, gpu.to_device(START[:4]))
    while part.time < 1.5:
        part = State(part.time, gpu.to_device(gpu.to_host(part.values)), part.steps, part.dt)
        integrate(part, DYNAMICS["adaptive"](LAWS["identities"]), 1.5, after_step=lambda state: True)
    assert part.steps == whole.steps > 2
    assert part.dt == whole.dt
    assert np.array_equal(gpu.to_host(part.values), gpu.to_host(whole.values))


def test_what_is_not_finite_is_told_from_the_device():
    blown = ParticleVelocity(0.0, heads=(), norm=LayerNorm("none"), feed_forward=lambda points: points**3)
    lost = ParticleVelocity(0.0, heads=(), norm=LayerNorm("none"), feed_forward=lambda points: points + np.nan)
    with pytest.raises(Exploding, match=r"at time 0\.5"):
        advanced("adaptive", blown, gpu.to_device(np.array([[1.0, 0.0]])), 1.0)
    for advance in ("adaptive", "ssprk3", "layers"):
        with pytest.raises(NonFinite, match="at time 0"):
            advanced(advance, lost, gpu.to_device(START))


CASE = """
title = "Some tokens"
[domain]
manifold = "particles"
dimension = 3
count = 16
seed = 1
[attention]
beta = 4.0
[initial]
kind = "uniform"
[time]
end = 0.02
[output]
snapshots = 1
samples = 2
"""
CASES = {
    "adaptive": [],
    "noise": ['time.method="ssprk3"', "stabilizers.noise=0.1"],
    "layers": ['time.method="layers"', "time.step=0.01", "time.layers=2"],
    "network": ["feed_forward.width=4", "feed_forward.seed=0"],
    "radius": ['stabilizers.layer_norm="pre"'],
}


@pytest.mark.parametrize("name", CASES)
def test_runs_are_the_cpu_s(name, tmp_path):
    case = parse(CASE, CASES[name])
    assert run(case, tmp_path / "here.h5", quiet=True) == 0
    assert run(case, tmp_path / "there.h5", quiet=True, backend=gpu) == 0
    here, there = read(tmp_path / "here.h5"), read(tmp_path / "there.h5")
    assert here.attributes["device"] == "cpu"
    assert there.attributes["device"] == "gpu"
    assert len(here.times) == 2
    for k in range(2):
        assert difference(here.positions(k), there.positions(k)) < EQUAL
    for values in here.diagnostics:
        assert there.diagnostics[values] == pytest.approx(here.diagnostics[values], rel=1e-10, abs=EQUAL, nan_ok=True)
