"""Tokens in a sequence: diffusion between neighbors alone, on the sphere and off the sphere, and with attention."""

import numpy as np
import pytest
from scipy.linalg import expm
from support.device import SIMULATED, gpu
from support.status import DONE, run

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.domains.particles.sequence import SequenceDiffusion
from meanfield.runtime.cost import estimate
from meanfield.simulation import set_up
from solvers.io.run_file import read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import State

KAPPA, LENGTH, MODE = 0.05, 2.0, 3
CASE = """
[domain]
manifold = "particles"
count = {count}
dimension = {d}
[sequence]
length = 2.0
diffusion = 0.05
[attention]
beta = 3.0
value = {value}
[stabilizers]
layer_norm = "{norm}"
gate = {gate}
[initial]
kind = "waves"
mean = {mean}
amplitude = {amplitude}
modes = 2
[time]
end = {end}
"""


def case_of(*settings, count=16, value=((0.0, 0.0), (0.0, 0.0)), norm="post", gate=0.0, amplitude=0.3, end=1.0):
    d = len(value)
    matrix, mean = np.asarray(value).tolist(), [1.0, *[0.0] * (d - 1)]
    text = CASE.format(count=count, d=d, value=matrix, norm=norm, gate=gate, mean=mean, amplitude=amplitude, end=end)
    return parse(text, settings)


def moved(case, start, backend=None, parts=1):
    """Return the state at the end, reached in at least ``parts`` parts."""
    state, problem = State(0.0, start.copy()), set_up(case, backend)
    for part in range(1, parts + 1):
        integrate(state, problem.dynamics, case.time.end * part / parts)
    return state


def places(count):
    return LENGTH * (np.arange(count) + 0.5) / count


def wave(count):
    return np.cos(MODE * np.pi / LENGTH * places(count))


# The angle of a field on the circle obeys the heat equation, independent of the normalization u/|u|.


@pytest.mark.parametrize("method", ["adaptive", "ssprk3", "ssprk2"])
def test_angle_of_a_field_on_the_circle_diffuses_at_second_order(method):
    errors = []
    for count in (32, 64, 128):
        angle = 0.8 * wave(count)
        case = case_of(f"time.method={method}", count=count)  # V = 0: attention does not bound the steps
        end = moved(case, np.stack([np.cos(angle), np.sin(angle)], axis=1), parts=count // 8).values
        expected = angle * np.exp(-KAPPA * (MODE * np.pi / LENGTH) ** 2)
        errors.append(np.abs(np.arctan2(end[:, 1], end[:, 0]) - expected).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 1.9).all(), f"errors {errors}, orders {orders}"


@pytest.mark.parametrize(("method", "error"), [("adaptive", 1e-8), ("ssprk3", 1e-13)])  # a step is exact
def test_mode_decays_as_its_differences_say(method, error):
    count = 24
    h = LENGTH / count
    start = np.stack([1 + 0.5 * wave(count), 0.2 * wave(count)], axis=1)
    case = case_of(f"time.method={method}", count=count, norm="none", gate=0.3)
    decay = KAPPA * (2 / h * np.sin(MODE * np.pi / LENGTH * h / 2)) ** 2
    expected = np.exp(-0.3) * np.stack([1 + 0.5 * wave(count) * np.exp(-decay), 0.2 * wave(count) * np.exp(-decay)], 1)
    allowed = error if method == "adaptive" else 2e-3  # the gate's part is of third order in the step
    assert np.abs(moved(case, start).values - expected).max() < allowed
    alone = start.copy()
    SequenceDiffusion(KAPPA, LENGTH).step(1.0, alone)
    assert np.abs(alone - expected * np.exp(0.3)).max() < 1e-13


@pytest.mark.parametrize("count", [23, 24])
def test_a_periodic_field_has_modes_of_its_own(count):
    """cos kx and sin kx with k = 2πm/L decay at the same rate, that of the differences; sums are constant."""
    h, k = LENGTH / count, 2 * np.pi * MODE / LENGTH
    start = np.stack([1 + np.cos(k * places(count)), np.sin(k * places(count))], axis=1)
    decay = KAPPA * (2 / h * np.sin(k * h / 2)) ** 2
    diffusion, end = SequenceDiffusion(KAPPA, LENGTH, periodic=True), start.copy()
    expected = (start - [1, 0]) * np.exp(-0.7 * decay) + [1, 0]
    assert diffusion.step(0.7, end) == 0
    assert np.abs(end - expected).max() < 1e-13
    assert np.abs(diffusion.rate(start) + decay * (start - [1, 0])).max() < 1e-11
    closed = start.copy()
    SequenceDiffusion(KAPPA, LENGTH).step(0.7, closed)
    assert np.abs(closed - expected).max() > 1e-2


@pytest.mark.parametrize("norm", ["post", "none"])
def test_a_periodic_sequence_commutes_with_shifts(norm):
    case = case_of("sequence.ends=periodic", count=20, norm=norm, value=((0.5, 0.0), (0.0, 0.5)))
    start = np.random.default_rng(3).standard_normal((20, 2))
    start /= np.linalg.norm(start, axis=1)[:, None]
    found, shifted = moved(case, start).values, moved(case, np.roll(start, 7, axis=0)).values
    assert np.abs(np.roll(found, 7, axis=0) - shifted).max() < 1e-7  # steps to 1e-10, chosen by sums in another order
    closed = case_of(count=20, norm=norm, value=((0.5, 0.0), (0.0, 0.5)))
    assert np.abs(moved(closed, start).values - found).max() > 1e-3


def test_tokens_diffuse_after_each_layer():
    case = case_of("time.method=layers", "time.layers=4", "time.step=0.25", norm="none", gate=0.3)
    start = np.stack([1 + 0.5 * wave(16), 0.2 * wave(16)], axis=1)
    expected = (1 - 0.25 * 0.3) ** 4 * start
    SequenceDiffusion(KAPPA, LENGTH).step(1.0, expected)
    assert np.abs(moved(case, start).values - expected).max() < 1e-13


def test_step_keeps_sums_and_stays_within_what_it_was():
    values = np.random.default_rng(0).standard_normal((33, 3))
    end = values.copy()
    SequenceDiffusion(KAPPA, LENGTH).step(0.7, end)
    assert np.abs(end.sum(axis=0) - values.sum(axis=0)).max() < 1e-12
    assert (end.min(axis=0) >= values.min(axis=0)).all()
    assert (end.max(axis=0) <= values.max(axis=0)).all()


def test_rate_is_that_of_a_step():
    values = np.random.default_rng(1).standard_normal((20, 3))
    for on_sphere in (False, True):
        start = values / np.linalg.norm(values, axis=1)[:, None] if on_sphere else values
        diffusion, end, dt = SequenceDiffusion(KAPPA, LENGTH, on_sphere), start.copy(), 1e-6
        diffusion.step(dt, end)
        assert (end - start) / dt == pytest.approx(diffusion.rate(start), abs=1e-3)  # dt times the second derivative


def test_one_long_step_is_as_good_as_many_short_ones():
    """A rough field on the sphere is handled by substeps that follow its curvature, however long the step."""
    start = np.random.default_rng(2).standard_normal((24, 3))
    start /= np.linalg.norm(start, axis=1)[:, None]
    diffusion, once, often = SequenceDiffusion(KAPPA, LENGTH, on_sphere=True), start.copy(), start.copy()
    diffusion.step(0.5, once)
    for _ in range(2000):
        diffusion.step(0.5 / 2000, often)
    assert np.abs(once - often).max() < 0.01  # vectors of length 1 that turned by about 1
    assert np.abs(once - start).max() > 0.5


@pytest.mark.parametrize("method", ["adaptive", "ssprk3", "layers"])
def test_mix_holds_the_radius_until_its_switch(method):
    """Mix and post agree until the switch, diffusion included; afterwards the field leaves the sphere."""
    depth = ["time.layers=8", "time.step=0.125"] if method == "layers" else []
    common = [f"time.method={method}", *depth]
    post = case_of(*common, value=np.eye(3))
    start = set_up(post).initial()
    held = case_of(*common, "stabilizers.switch=1.0", norm="mix", value=np.eye(3))
    let_go = case_of(*common, "stabilizers.switch=0.5", norm="mix", value=np.eye(3))
    # Error of steps in the radius, which mix does not normalize.
    error = {"adaptive": 1e-9, "ssprk3": 1e-5}.get(method, 1e-12)
    assert np.abs(moved(held, start).values - moved(post, start).values).max() < error
    assert np.abs(np.linalg.norm(moved(let_go, start).values, axis=1) - 1).max() > 1e-3


# A constant field moves as one token: ORACLES, "representation field"


@pytest.mark.parametrize("method", ["adaptive", "ssprk3"])
@pytest.mark.parametrize("norm", ["post", "none"])
def test_constant_field_moves_as_one_token(method, norm):
    value = np.array([[0.3, -1.0], [1.2, 0.1]])
    gate = 0.2 if norm == "none" else 0.0
    case = case_of(f"time.method={method}", "time.cfl=0.02", value=value, norm=norm, gate=gate, amplitude=0.0)
    end = moved(case, np.tile([1.0, 0.0], (16, 1))).values
    expected = expm(value - gate * np.eye(2)) @ [1.0, 0.0]
    if norm == "post":
        expected = expected / np.linalg.norm(expected)
    assert np.abs(end - expected).max() < (1e-8 if method == "adaptive" else 1e-5)  # steps of third order


def test_mode_of_a_nearly_constant_field_decays_by_attention_and_diffusion():
    count, small = 64, 1e-6
    case = case_of(count=count, value=np.eye(2))
    start = np.stack([np.ones(count), small * wave(count)], axis=1)
    end = moved(case, start / np.linalg.norm(start, axis=1)[:, None]).values[:, 1]
    h = LENGTH / count
    rate = 1 + KAPPA * (2 / h * np.sin(MODE * np.pi / LENGTH * h / 2)) ** 2
    assert np.abs(end / small - wave(count) * np.exp(-rate)).max() < 2e-3  # 1e-9 in each step, over the small amplitude


def test_without_diffusion_tokens_move_as_without_a_sequence():
    case = case_of("sequence.diffusion=0", value=np.eye(3), end=3.0)
    other = parse(CASE.replace("[sequence]\nlength = 2.0\ndiffusion = 0.05\n", "").format(
        count=16, d=3, value=np.eye(3).tolist(), norm="post", gate=0.0, mean=[1.0, 0.0, 0.0], amplitude=0.3, end=3.0
    ))  # fmt: skip
    start = set_up(case).initial()
    assert np.abs(moved(case, start).values - moved(other, start).values).max() < 1e-8  # 1e-9 a step, for either path


# Files


def test_drift_and_roughness_are_what_they_are_called(tmp_path):
    case = case_of("output.snapshots=1", "output.samples=1", value=np.eye(3), amplitude=0.5, end=2.0)
    assert run(case, tmp_path / "run.h5", quiet=True) == DONE
    file = read(tmp_path / "run.h5")
    start, end = file.positions(0), file.positions(1)
    assert file.diagnostics["drift"] == pytest.approx([0.0, 1 - (start * end).sum(axis=1).mean()], abs=1e-14)
    h = LENGTH / len(start)
    expected = [h * (((u[1:] - u[:-1]) / h) ** 2).sum() for u in (start, end)]
    assert file.diagnostics["roughness"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("settings", [[], ["time.method=ssprk3"], ["time.method=ssprk2", "time.cfl=0.1"]])
def test_steps_on_the_device_are_the_cpu_s(settings):
    case = case_of(*settings, value=np.eye(3), end=0.05)
    start = set_up(case).initial()
    here, there = moved(case, start), moved(case, start, gpu)
    assert here.steps == there.steps > 0
    assert SIMULATED or not isinstance(there.values, np.ndarray)
    assert np.abs(gpu.to_host(there.values) - here.values).max() < 1e-12


REFUSED = {
    "sequence.diffusion=-1": "sequence.diffusion",
    "sequence.length=0": "sequence.length",
    "initial.modes=9": "initial.modes",
    "initial.mean=[1.0]": "initial.mean",
    "initial.radius=2": "initial.radius",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_cannot_be_is_refused_by_its_key(setting):
    with pytest.raises(CaseError, match=REFUSED[setting]):
        case_of(setting)


@pytest.mark.parametrize(("diffusion", "method"), [(0.01, "adaptive"), (50.0, "ssprk3")])
def test_method_is_one_that_stiff_diffusion_does_not_slow_down(diffusion, method):
    assert case_of(f"sequence.diffusion={diffusion}").time.method == method


def test_a_tolerance_asks_for_steps_that_find_themselves_stiff_or_not():
    case = case_of("sequence.diffusion=50.0", "time.tolerance=1e-8")
    assert case.time.method == "adaptive"
    assert "at least about 1.9e+03, for diffusion is stiff" in estimate(case)  # 0.6 · 50 · (16/2)²
    assert "stiff" not in estimate(case_of())


def test_sequence_is_for_particles():
    with pytest.raises(CaseError, match="sequence"):
        parse("""
domain = {manifold = "circle", resolution = 16}
attention = {beta = 1.0}
initial = {kind = "uniform"}
time = {end = 1.0}
sequence = {diffusion = 0.1}
""")
