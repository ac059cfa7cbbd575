"""Cases of every kind on the device, compared with the CPU: steps or layers with each switch, and some whole runs."""

import numpy as np
import pytest
from support.device import SIMULATED, gpu
from support.status import resume, run

from meanfield.case.load import parse
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention
from meanfield.simulation import set_up
from solvers.backends import cpu
from solvers.io.run_file import read
from solvers.mesh.interval import polar
from solvers.mesh.mesh import sphere
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import State
from solvers.transforms.anisotropic.bilinear import Bilinear
from solvers.transforms.polar import log_masses

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the simulator uses NumPy's numbers, which warn

EQUAL = 1e-12  # relative to the largest number of an array
WAVES = 'kind = "perturbed"\ndegrees = 2\namplitude = 0.5'
LUMPS = 'kind = "points"\npoints = {points}'
CASE = """
[domain]
manifold = "{manifold}"
resolution = {resolution}
[attention]
beta = 2.0
[initial]
{initial}
[time]
end = 0.5
[output]
snapshots = 2
samples = 2
diagnostics = ["mass", "entropy"]
"""
SINKHORN = ["attention.normalization=sinkhorn", "attention.beta=0.5"]  # few iterations
RESOLUTION, DIMENSION = {"circle": 10, "sphere": 4}, {"circle": 2, "sphere": 3}


def text_of(manifold, lumps=False):
    points = np.eye(DIMENSION[manifold]).tolist()
    initial = LUMPS.format(points=points) if lumps else WAVES
    return CASE.format(manifold=manifold, resolution=RESOLUTION[manifold], initial=initial)


def switches(d):
    """Return name → overrides of a case in R^d; names with "lumps" have point masses."""
    matrix = (np.eye(d) + 0.3 * np.eye(d, k=1) - 0.2 * np.eye(d, k=-1)).tolist()
    other = np.diag([1.0, -0.5, 0.7][:d]).tolist()
    layers = ["time.method=layers", "time.layers=2", "time.step=0.1"]
    return {
        "plain": [],
        "lumps": [],
        "matrices": [f"attention.query={matrix}", f"attention.value={other}"],
        "matrices, lumps": [f"attention.query={matrix}", "attention.beta=40"],
        "heads": [f"attention.heads=[{{value = {other}, weight = 0.5}}, {{query = {matrix}, weight = 0.5}}]"],
        "gaussian": ["attention.kernel=gaussian"],
        "gaussian, matrices": ["attention.kernel=gaussian", f"attention.key={matrix}"],
        "windowed": ["attention.kernel=windowed", "attention.window=1.0"],
        "unnormalized": ["attention.normalization=unnormalized"],
        "sinkhorn": SINKHORN,
        "sinkhorn, matrices": [*SINKHORN, f"attention.query={matrix}"],
        "ngpt": ["stabilizers.layer_norm=ngpt"],
        "feed-forward": ["feed_forward.width=3", "feed_forward.activation=gelu"],
        "noise": ["stabilizers.noise=0.1"],
        "noise, lumps": ["stabilizers.noise=0.1"],
        "replicator": ["reaction.kind=replicator", "reaction.rate=0.5", f"reaction.vector={[1.0] * d}"],
        "linear": ["reaction.kind=linear", "reaction.rate=0.5"],
        "labels": ["attention.mask=causal", "domain.labels=2"],
        "labels, noise": ["attention.mask=causal", "domain.labels=2", "stabilizers.noise=0.1"],
        "layers": layers,
        "layers, lumps": layers,
        "layers, stretched": [*layers, "time.step=4.0", f"attention.value={matrix}"],
        "layers without residual": [*layers[:2], "stabilizers.residual=false"],
    }


# Cases that wait for more: convergence, choice of a split, undershoots
MORE = ("sinkhorn", "layers", "noise, lumps")
ON_SPHERE = ["lumps", "matrices", "gaussian, matrices", "unnormalized", "noise, lumps", "labels", "layers, stretched"]
CASES = [("circle", name) for name in switches(2)] + [("sphere", name) for name in ON_SPHERE]


def advanced(case, backend, steps):
    """Return the problem, the state after ``steps`` steps, and the count of :func:`transfers` for each step but the
    first."""
    problem, counts = set_up(case, backend), []
    state = State(0.0, problem.initial())

    def after(state):
        problem.check(state)  # as in a run
        counts.append(transfers())
        return state.steps >= steps

    integrate(state, problem.dynamics, case.time.end, after_step=after)
    return problem, state, np.diff(counts)


def transfers():
    """Return the number of copies to the host so far, and of sizes of arrays that had to be waited for."""
    kind = type(gpu.zeros(1))
    return kind.transfers + kind.waits if SIMULATED else 0


def in_attempts(noise, others=0):
    """Return the copies to the host in a step of one to three attempts, with ``others`` counted once.

    Each attempt needs the length of the next step, moments of the values and of their rates as one array, and with
    noise the least value after each half step of diffusion.
    """
    attempt = 2 + (2 if noise else 0)
    return [others + attempts * attempt for attempts in (1, 2, 3)]


def difference(expected, found):
    """Return the difference relative to the largest value; NaN, which atoms have as entropy, equals NaN."""
    assert np.array_equal(np.isnan(expected), np.isnan(found))
    return np.nanmax(np.abs(found - expected)) / np.nanmax(np.abs(expected))


@pytest.mark.sampled
@pytest.mark.parametrize(("manifold", "name"), CASES)
def test_steps_are_the_cpu_s(manifold, name):
    dear = manifold == "sphere" or name == "sinkhorn"
    steps = 1 if dear else 10 if name == "noise, lumps" else 2  # an undershoot acts for 8 steps
    case = parse(text_of(manifold, "lumps" in name), ["time.end=20", *switches(DIMENSION[manifold])[name]])
    _, expected, _ = advanced(case, None, steps)
    problem, found, counts = advanced(case, gpu, steps)
    assert found.steps == expected.steps == steps
    assert problem.attributes == {"device": "gpu"}
    worst = difference(expected.values, gpu.to_host(found.values))
    assert worst < EQUAL, f"{worst:.1e}"
    if SIMULATED and not name.startswith(MORE):
        expected = in_attempts(noise="noise" in name)
        assert set(counts[-1:]) <= set(expected), "more than the time step and moments have come to the host"


@pytest.mark.parametrize("amounts", [0, 50])
def test_sums_at_places_are_the_cpu_s_to_the_bit(amounts):
    random = np.random.default_rng(0)
    places, values = random.integers(0, 7, amounts).astype(np.int32), random.random(amounts)
    found = gpu.sums_at(gpu.to_device(places), gpu.to_device(values), 9)
    assert np.array_equal(gpu.to_host(found), cpu.sums_at(places, values, 9))


class LessTrusted(Bilinear):
    max_loss = 5.6
    min_normalizer = (0.3, 0.0)


def test_sums_with_a_matrix_by_both_grids_are_the_cpu_s(monkeypatch):
    """The grids are small: some cells are near where b vanishes, and the Z of others counts as lost."""
    monkeypatch.setattr("solvers.transforms.anisotropic.bilinear.exponential_degree", lambda dimension, beta: 3)
    mesh = sphere(10)
    matrix = np.array([[1.0, 0.3, 0.0], [0.0, 0.5, 0.2], [0.0, 0.0, 0.1]])
    masses = np.exp(mesh.centers[:, 0]) * mesh.volumes
    expected, operator = LessTrusted(mesh, matrix).apply(masses), LessTrusted(mesh.on(gpu), matrix)
    found = operator.apply(gpu.to_device(masses))
    assert 0 < len(operator._targets.near) < mesh.cells
    lengths = operator._lengths()
    usual = [gpu.to_host(scale) for scale in (operator._targets.scale(lengths), lengths)]
    assert ((expected[0] != usual[0]) & (expected[0] != usual[1])).any()  # lost sums have a scale of their own
    assert max(map(difference, expected, map(gpu.to_host, found))) < EQUAL


FREE_RADIUS = """
[domain]
manifold = "free_radius_{manifold}"
resolution = {resolution}
radii = 5
innermost = 0.2
outermost = 2.5
[attention]
beta = {beta}
[stabilizers]
layer_norm = "{norm}"
[initial]
kind = "gaussian"
variance = 0.1
[time]
end = 20.0
method = "ssprk2"
"""
FREE = [("circle", "pre", 2.0, []), ("circle", "none", 40.0, []), ("circle", "peri", 2.0, ["feed_forward.width=3"]),
        ("circle", "none", 1.0, ["attention.query=[[1.0, 0.5], [0.0, 1.0]]", "attention.normalization=unnormalized"]),
        ("sphere", "none", 0.1, ["time.end=0.2", "domain.radii=4"])]  # fmt: skip


@pytest.mark.parametrize(("manifold", "norm", "beta", "settings"), FREE)
def test_steps_with_a_radius_are_the_cpu_s(manifold, norm, beta, settings, monkeypatch):
    """The sums are by transforms between shells, by pairs (none, β = 40, and matrices), and from the directions
    only."""
    monkeypatch.setattr(
        "solvers.transforms.shells.SphereShells.largest_exponent", 0.7
    )  # a lower degree: less work for the simulator
    text = FREE_RADIUS.format(manifold=manifold, resolution={"circle": 8, "sphere": 4}[manifold], norm=norm, beta=beta)
    case, steps = parse(text, settings), 1
    _, expected, _ = advanced(case, None, steps)
    problem, found, _ = advanced(case, gpu, steps)
    assert found.steps == expected.steps == steps
    assert problem.attributes == {"device": "gpu"}
    assert difference(expected.values, gpu.to_host(found.values)) < EQUAL


def equal_runs(here, there):
    here, there = read(here), read(there)
    assert list(there.times) == list(here.times)
    for k in range(len(here.times)):
        assert difference(here.snapshot(k), there.snapshot(k)) < EQUAL
    for name in here.diagnostics:
        assert difference(here.diagnostics[name], there.diagnostics[name]) < EQUAL


def on_both(case, folder):
    """Return files of a run on the host and of one on the device."""
    files = folder / "here.h5", folder / "there.h5"
    assert run(case, files[0], quiet=True) == run(case, files[1], quiet=True, backend=gpu) == 0
    return files


def test_matrices_of_a_file_by_layer(tmp_path):
    np.savez(tmp_path / "weights.npz", value=np.random.default_rng(0).standard_normal((2, 2, 2, 2)), weight=[0.5, 0.5])
    settings = [f"attention.file='{tmp_path}/weights.npz'", "time.step=0.02", "time.end=0.04"]
    files = on_both(parse(text_of("circle"), settings), tmp_path)
    equal_runs(*files)
    assert [read(file).attributes["device"] for file in files] == ["cpu", "gpu"]


def test_run_that_hands_over_to_atoms(tmp_path):
    """The density is on the device, the atoms on the host."""
    settings = ["handover.spread=1.9", "time.end=2.0", "output.samples=2", "attention.beta=4"]
    here, there = on_both(parse(text_of("circle", lumps=True), settings), tmp_path)
    times = [read(file).attributes["hand_over_time"] for file in (here, there)]
    assert times[0] == times[1] > 0
    equal_runs(here, there)


@pytest.mark.parametrize("first", [None, gpu], ids=["from the host", "to the host"])
def test_run_goes_on_elsewhere(tmp_path, first):
    case, other = parse(text_of("circle")), None if first is gpu else gpu
    assert run(case, tmp_path / "whole.h5", quiet=True) == 0
    half = parse(text_of("circle"), ["time.end=0.25", "output.snapshots=1", "output.samples=1"])
    assert run(half, tmp_path / "parts.h5", quiet=True, backend=first) == 0
    assert resume(tmp_path / "parts.h5", until=0.5, quiet=True, backend=other) == 0
    equal_runs(tmp_path / "whole.h5", tmp_path / "parts.h5")
    assert read(tmp_path / "parts.h5").attributes["device"] == ("cpu" if other is None else "gpu")


SHORT = """
[time]
end = 4.0
[output]
snapshots = 2
samples = 2
"""
LINE = (
    """
[domain]
manifold = "line"
resolution = 14
outermost = 100.0
core = 1.0
[attention]
beta = 1.0
[stabilizers]
layer_norm = "none"
[initial]
kind = {initial}
"""
    + SHORT
)
GAUSSIAN = '"formula"\ndensity = "exp(-(x - 0.3)**2)"'  # on cells too coarse for the kind "gaussian"
POINTS = '"points"\npoints = [[0.4], [-0.9], [0.8]]'
LAYERS = ["time.method=layers", "time.layers=2", "time.step=0.3"]
NOISE = ["stabilizers.noise=0.1"]
LINES = [
    (GAUSSIAN, []),
    (POINTS, ["attention.beta=9"]),
    (GAUSSIAN, NOISE),
    (POINTS, NOISE),
    (GAUSSIAN, ["stabilizers.gate=0.3"]),
    (GAUSSIAN, ["attention.normalization=unnormalized", "attention.value=[[-1.0]]"]),
    (GAUSSIAN, LAYERS),
    (POINTS, LAYERS),
    (GAUSSIAN, [*LAYERS[:2], "stabilizers.residual=false"]),
]


AXISYMMETRIC = (
    """
[domain]
manifold = "axisymmetric"
dimension = {dimension}
resolution = 14
[attention]
beta = 4.0
[initial]
kind = {initial}
"""
    + SHORT
)
RIPPLES = '"perturbed"\ndegrees = 3\namplitude = 0.5'
CIRCLES = '"points"\npoints = [[0.9], [-0.3]]'
AXIAL = [
    (3, RIPPLES, []),
    (3, CIRCLES, []),
    (3, RIPPLES, NOISE),
    (3, CIRCLES, NOISE),
    (64, RIPPLES, []),
    (64, CIRCLES, NOISE),
    (3, RIPPLES, ["attention.normalization=unnormalized"]),
    (5, RIPPLES, ["stabilizers.layer_norm=ngpt"]),
]
WITHOUT_LAYER_NORM = [(LINE.format(initial=initial), settings, 2) for initial, settings in LINES]
WITH_AN_AXIS = [(AXISYMMETRIC.format(dimension=d, initial=initial), settings, 1) for d, initial, settings in AXIAL]


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "settings", "numbers"), WITHOUT_LAYER_NORM + WITH_AN_AXIS)
def test_steps_on_an_interval_are_the_cpu_s(text, settings, numbers):
    """The copies to the host in a step are those of in_attempts; on the line also the mass at the ends of the mesh."""
    case, steps = parse(text, settings), 3 if settings is NOISE else 2
    _, expected, _ = advanced(case, None, steps)
    problem, found, counts = advanced(case, gpu, steps)
    assert found.steps == expected.steps == steps
    assert found.time == pytest.approx(expected.time, rel=EQUAL)
    assert problem.attributes == {"device": "gpu"}
    worst = difference(expected.values, gpu.to_host(found.values))
    assert worst < EQUAL, f"{worst:.1e}"
    if SIMULATED and settings[:2] != LAYERS[:2] and "points" not in text:  # point masses undershoot
        assert counts[-1] in in_attempts(settings is NOISE, others=numbers - 1)


WHOLE = {
    "line": (LINE.format(initial=GAUSSIAN), ["output.diagnostics=['mass', 'centroid', 'variance', 'escaped']"]),
    "line, layers": (LINE.format(initial=GAUSSIAN), LAYERS),
    "axisymmetric": (AXISYMMETRIC.format(dimension=8, initial=CIRCLES), ["stabilizers.noise=0.01"]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_runs_on_an_interval_are_the_cpu_s(name, tmp_path):
    text, settings = WHOLE[name]
    here, there = on_both(parse(text, ["time.end=0.3", *settings]), tmp_path)
    equal_runs(here, there)
    assert read(there).attributes["device"] == "gpu"
    assert len(read(there).diagnostics) > 1


@pytest.mark.parametrize("dimension", [2, 64])
def test_uniform_law_is_steady_to_the_bit(dimension):
    law = AxisymmetricAttention(polar(16, dimension).on(gpu), dimension, 4.0)
    assert not gpu.to_host(law.normalizer_and_velocity(law.uniform)[1]).any()


@pytest.mark.parametrize("limited", [True, False])
def test_drift_and_diffusion_are_the_cpu_s(limited):
    """A point mass next to empty cells undershoots; nothing is copied to the host where undershoots are allowed."""
    mesh, stepped = polar(16, 8), []
    for backend in (cpu, gpu):
        density = backend.to_device(np.eye(16)[5])
        log_uniform = log_masses(mesh, 8) - np.log(mesh.volumes)
        term, before = IntervalDriftDiffusion(mesh.on(backend), 1.0, log_uniform, nonnegative=True), transfers()
        lowest = term.step(0.05, density, limited)
        assert transfers() - before <= (
            2 if limited else 1
        )  # a limited step also checks that its first values are finite
        stepped.append((backend.to_host(density), float(lowest)))
    (expected, lowest), (found, found_lowest) = stepped
    assert difference(expected, found) < EQUAL
    assert found_lowest == pytest.approx(lowest, rel=1e-10)  # the remainder of two densities that nearly cancel
    assert lowest < 0
    assert (expected.min() < 0) is not limited


@pytest.mark.parametrize("count", [1, 2, 3, 16, 33])
def test_tridiagonal_equations_are_solved_as_on_the_cpu(count):
    """Columns are diagonally dominant, some rows are not: drift towards few cells."""
    random = np.random.default_rng(count)
    below, above = -np.exp(6.0 * random.standard_normal((2, count - 1)))
    diagonal = 1.0 - np.append(below, 0.0) - np.append(0.0, above)
    arguments = below, diagonal, above, random.standard_normal(count)
    expected = cpu.solve_tridiagonal(*arguments)
    matrix = np.diag(diagonal) + np.diag(below, -1) + np.diag(above, 1)
    residual = np.abs(matrix @ expected - arguments[-1]).max()
    assert residual < 1e-13 * np.abs(matrix * expected).max()
    assert difference(expected, gpu.to_host(gpu.solve_tridiagonal(*map(gpu.to_device, arguments)))) < EQUAL
