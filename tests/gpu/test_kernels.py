"""Kernels of the device, compared with the same kernels of the CPU, with the arguments of real calls."""

from dataclasses import replace

import numpy as np
import pytest
from support.device import gpu

from meanfield.clusters.on_cells import find_clusters
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.heads import Head
from solvers.backends import Backend, cpu
from solvers.backends.cpu import launching as cpu_launching
from solvers.backends.gpu import launching, legendre
from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.remap.push_forward import PushForward
from solvers.terms.advection import Advection
from solvers.terms.conservation_law import ConservationLaw
from solvers.terms.diffusion import Diffusion
from solvers.terms.limiters import LIMITERS, Reconstruction
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.transforms import pairwise
from solvers.transforms.anisotropic.blocks import BlockMatrix
from solvers.transforms.exponential import exponential_gradient_multipliers, exponential_multipliers
from solvers.transforms.harmonics import harmonic_transform
from solvers.transforms.zonal import zonal_operator

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the simulator uses NumPy's numbers, which warn

EQUAL = 1e-12  # relative to the largest number of an array: the order of sums differs, and a·b + c is one operation
SINGLE = 3e-6  # rounding of float32, 6e-8, of differences of neighbors that are a twentieth of them, and twice that
MESHES = [circle(32), sphere(8)]
WALLED = from_edges(np.linspace(0.0, 1.0, 12), "line")
COMPILED = {name for name in Backend.__annotations__ if hasattr(getattr(cpu, name, None), "py_func")}


def copied(arguments):
    return [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]


def densities(mesh):
    random = np.random.default_rng(1)
    yield np.exp(2.0 * mesh.centers[:, 0]) * (1.0 + 0.1 * random.random(mesh.cells))  # partly resolved
    # Unresolved cells, and cells without mass.
    yield np.where(random.random(mesh.cells) < 0.2, random.random(mesh.cells), 0.0)


def use_every_kernel(mesh):
    """Launch every kernel, except those called directly by a test below, through operations on small meshes."""
    random = np.random.default_rng(0)
    velocity = random.standard_normal(mesh.centers.shape)
    cpu.launch(cpu.project_to_tangent, mesh.cells, mesh.centers, velocity)
    cpu.launch(cpu.apply_matrix, mesh.cells, random.standard_normal((mesh.centers.shape[1],) * 2), velocity.copy())
    cpu.launch(cpu.scale_softmax, mesh.cells, random.random(mesh.cells), velocity.copy(), 1.0)
    cpu.launch(cpu.scale_softmax, mesh.cells, random.random(mesh.cells), velocity[:, :2].copy(), 1.0)
    start, stage, rate = random.random((3, mesh.cells))
    cpu.launch(cpu.advance, mesh.cells, start, stage, rate.copy(), 0.3, 0.75, 0.4)
    cpu.launch(cpu.advance_first, mesh.cells, stage, rate.copy(), 0.3, 0.0, 0.4, start, stage.copy())
    cpu.launch(cpu.advance_first, mesh.cells, stage, rate.copy(), 0.3, 0.2, -np.inf, start, stage[:0])
    BlockMatrix([random.random((3, 2)), random.random((1, 3))], cpu).apply(random.random((2, 5)))
    harmonic_transform(mesh, 9).power(random.random(mesh.cells))
    harmonic_transform(mesh, 9).synthesis(harmonic_transform(mesh, 9).analysis(random.random(mesh.cells)))
    value, gradient = (make(mesh.centers.shape[1], 4.0, 9) for make in MULTIPLIERS)
    operator, move = zonal_operator(mesh, value, gradient), PushForward(mesh)
    advection = Advection(mesh, lambda t, u: velocity, nonnegative=True)
    by_faces = Advection(replace(mesh, manifold="another"), lambda t, u: velocity, nonnegative=True)
    diffusion = Diffusion(mesh, 1.0, nonnegative=True)
    for limiter in LIMITERS:
        signed = Advection(mesh, lambda t, u: velocity, limiter=limiter, nonnegative=limiter == "none")
        signed.prepare(0.0, np.abs(velocity[:, 0]) if limiter == "none" else velocity[:, 0].copy())
    law = ConservationLaw(mesh, lambda u, x: u[:, None] * x, lambda u, x: np.abs(u))
    law.prepare(0.0, velocity[:, 0].copy())
    law.rate(0.1, np.zeros(mesh.cells))
    normals, sides = mesh.face_normals.copy(), np.zeros((len(velocity.T), 2 * mesh.faces))
    Reconstruction(mesh, "koren").vectors_at_faces(velocity.T.copy(), normals, normals[:, ::-1].copy(), sides)
    for density in densities(mesh):
        operator.apply(density * mesh.volumes)
        for each in (advection, by_faces):
            each.rate(0.5 * each.prepare(0.0, density), np.zeros(mesh.cells))
        diffusion.step(0.5, density.copy())
        find_clusters(mesh, density)
        move.apply(density, lambda x: unit(x + [0.3, 0.2, 0.1][: x.shape[1]]))
    diffusion.step(0.05, (np.arange(mesh.cells) == 5) / mesh.volumes)  # undershoots


MULTIPLIERS = (exponential_multipliers, exponential_gradient_multipliers)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def calls():
    """Return (kernel's name, work, arguments) of launches on the CPU, two of each kernel and each shape of its
    arguments."""
    found, counts = [], {}

    def launch(kernel, work, *arguments):
        shapes = (kernel.__name__, *(np.shape(argument) for argument in arguments))
        counts[shapes] = counts.get(shapes, 0) + 1
        if counts[shapes] <= 2:
            found.append((kernel.__name__, work, copied(arguments)))
        return original(kernel, work, *arguments)

    original = cpu.launch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "launch", launch)
        patch.setattr(cpu, "empty", cpu.zeros)  # entries that a kernel skips are compared as well
        for mesh in MESHES:
            use_every_kernel(mesh)
        walled = Advection(WALLED, lambda t, u: np.sin(5.0 * WALLED.centers), nonnegative=True)
        walled.prepare(0.0, 1.0 + WALLED.centers[:, 0])
    return found


def run_on_both(name, work, arguments):
    """Return the arguments after a kernel and its return values, on the CPU and on the device."""
    here = copied(arguments)
    there = [gpu.to_device(argument) for argument in copied(arguments)]
    returned = cpu.launch(getattr(cpu, name), work, *here), gpu.launch(getattr(gpu, name), work, *there)
    return paired(name, here, there), returned


def paired(name, here, there):
    """Return the arrays among both arguments, with parts of remapped mass summed, since the device has other parts."""
    arrays = [(a, gpu.to_host(b)) for a, b in zip(here, there, strict=True) if isinstance(a, np.ndarray)]
    if name.startswith("remap"):
        arrays[-1] = tuple(landed.sum(axis=0) for landed in arrays[-1])
    return arrays


def difference(expected, found):
    assert expected.shape == found.shape
    if not expected.size:
        return 0.0
    expected = 1.0 * expected  # also truth values
    return np.abs(expected - found).max() / max(np.abs(expected).max(), np.finfo(float).tiny)


@pytest.mark.parametrize("name", sorted(COMPILED - {"exponential_sums"}))
def test_kernel_does_what_the_cpu_s_does(calls, name):
    changed = False
    for call in (call for call in calls if call[0] == name):
        arrays, returned = run_on_both(*call)
        worst = max(difference(here, there) for here, there in arrays)
        assert worst < EQUAL, f"{name}: {worst:.1e}"
        if returned[1][0] is not None:
            assert difference(np.max(returned[0]), gpu.to_host(returned[1][0]).max()) < EQUAL
        before = [argument for argument in call[2] if isinstance(argument, np.ndarray)]
        changed |= any(not np.array_equal(old, here) for old, (here, _) in zip(before, arrays, strict=True))
    assert changed, f"no call of {name} changed anything"


def tiles_for(backend, targets, sources, weights, number):
    """Return the arguments of exponential_sums in the layout of :mod:`solvers.transforms.pairwise` for these
    kernels."""
    tiles = pairwise._pack_tiles(targets, backend.PAIR_BYTES // number.itemsize, number)
    padded = pairwise._append_log_weights(sources, weights, None, backend.PAIR_SOURCES, number)
    groups = pairwise._pack_groups(sources, weights, backend.PAIR_SOURCES, number)
    scale = np.full(tiles.shape[::2], np.finfo(number).min, number)
    return tiles, padded, groups, scale, np.empty((len(tiles), groups.shape[1], tiles.shape[2]), number)


def sums_by(backend, targets, sources, weights, running, causal, number):
    """Return scale (n,) and sums (n, 1 + d) by the exponential_sums of one backend."""
    tiles, padded, groups, scale, sums = tiles_for(backend, targets, sources, weights, np.dtype(number))
    if not running:
        scale[:] = 1.0
    to_device, to_host = (gpu.to_device, gpu.to_host) if backend is gpu else (np.asarray, np.asarray)
    tiles, padded, groups, scale, sums = map(to_device, (tiles, padded, groups, scale, sums))
    backend.launch(backend.exponential_sums, 1, tiles, padded, groups, running, causal, scale, sums)
    rows = to_host(sums).transpose(0, 2, 1).reshape(-1, groups.shape[1])
    return to_host(scale).reshape(-1)[: len(targets)], rows[: len(targets)]


def tokens(count, dimension):
    random = np.random.default_rng(3)
    return 3.0 * random.standard_normal((count, dimension)), random.random(count)


# 17 components and the exponent exceed the memory available at once; 130 targets are two tiles
SUMS = [(True, True, 2, 130), (False, True, 2, 130), (True, False, 17, 20), (False, False, 2, 20)]


@pytest.mark.parametrize(("running", "causal", "dimension", "count"), SUMS)
def test_sums_over_pairs_do_what_the_cpu_s_do(running, causal, dimension, count):
    points, weights = tokens(count, dimension)
    targets, weights[::9] = points / dimension, 0.0
    expected = sums_by(cpu, targets, points, weights, running, causal, float)
    found = sums_by(gpu, targets, points, weights, running, causal, float)
    assert max(map(difference, expected, found)) < EQUAL


def test_basins_are_the_cpu_s():
    mesh = sphere(8)
    level = np.random.default_rng(2).random(mesh.cells)
    arguments = (level, 1.2, mesh.cell_start, mesh.side_neighbors, np.zeros(mesh.cells, dtype=np.int32))
    expected = np.empty(mesh.cells, dtype=np.int32)
    cpu.persistent_basins(*arguments, expected)
    found = gpu.to_device(np.zeros(mesh.cells, dtype=np.int32))
    gpu.persistent_basins(*map(gpu.to_device, arguments), found)
    assert len(np.unique(expected)) > 1
    assert np.array_equal(gpu.to_host(found), expected)


def test_array_of_the_host_is_refused():
    there, here = gpu.to_device(np.ones(3)), np.ones(3)
    with pytest.raises(TypeError, match=r"advance: an array \(3,\) is on the host"):
        gpu.launch(gpu.advance, 3, there, there, here, 0.1, 0.5)


def test_pieces_land_in_any_number_of_turns(calls, monkeypatch):
    """Pieces are processed in groups, so that their parts fit into memory."""
    for name in ("remap_on_curve", "remap_on_sphere"):
        call = next(call for call in calls if call[0] == name)
        expected, _ = run_on_both(*call)
        monkeypatch.setattr("solvers.backends.gpu.remapping.PIECES", 40)
        found, _ = run_on_both(*call)
        assert difference(expected[-1][1], found[-1][1]) < EQUAL


def test_threads_add_more_than_one_group_of_rings():
    """A thread of a transform of many rings adds several groups of them."""
    half, random = legendre.LANES * legendre.RINGS_TOGETHER + 3, np.random.default_rng(0)
    theta = (np.arange(half) + 0.5) * np.pi / (2 * half)
    modes, coefficients = random.standard_normal((1, 4, 6, half)), np.zeros((1, 6, 6), complex)
    arguments = (np.cos(theta), np.sin(theta), modes, coefficients, np.empty((0, 0, 0)))
    arrays, _ = run_on_both("legendre_analysis", 1, arguments)
    assert max(difference(here, there) for here, there in arrays) < EQUAL


def test_any_number_of_threads_gives_the_same(calls, monkeypatch):
    monkeypatch.setattr("solvers.backends.gpu.launching.THREADS", 4)
    name, _, arguments = next(call for call in calls if call[0] == "outgoing_flux_on_surface")
    results = []
    for threads in (1, 1000):
        there = [gpu.to_device(argument) for argument in copied(arguments)]
        gpu.launch(getattr(gpu, name), threads, *there)
        results.append(gpu.to_host(there[-1]))
    assert np.array_equal(*results)


def test_threads_beyond_the_items_are_the_last_ones():
    """The work of a cell is counted by its sides: idle threads must not be spread among active ones."""
    share = launching._on_device(cpu_launching.share)
    shares = [getattr(share, "py_func", share)(worker, 40, 10) for worker in range(40)]
    assert shares == [(i, i + 1) for i in range(10)] + [(10, 10)] * 30


def in_single(argument):
    if not isinstance(argument, np.ndarray) or argument.dtype.kind not in "fc":
        return argument
    return argument.astype({"f": np.float32, "c": np.complex64}[argument.dtype.kind])


@pytest.mark.parametrize("name", sorted(COMPILED - {"exponential_sums"}))
def test_kernel_in_float32(calls, name):
    for _, work, arguments in (call for call in calls if call[0] == name):
        exact = copied(arguments)
        cpu.launch(getattr(cpu, name), work, *exact)
        found = [gpu.to_device(in_single(argument)) for argument in copied(arguments)]
        gpu.launch(getattr(gpu, name), work, *found)
        for one, other in paired(name, exact, found):
            assert difference(one, other) < SINGLE


def test_sums_over_pairs_in_float32():
    points, weights = tokens(130, 2)
    arguments = points / 2, points, weights
    expected = sums_by(cpu, *arguments, True, True, np.float64)
    found = sums_by(gpu, *(in_single(argument) for argument in arguments), True, True, np.float32)
    # exponents of up to 10 are rounded to 1e-6, and so are their exponentials
    assert max(map(difference, expected, found)) < 1e-5


@pytest.mark.parametrize("mesh", [circle(24), sphere(4)], ids=["circle", "sphere"])
def test_whole_step_in_float32(mesh):
    """A number passes 1e3 operations, each with a random rounding of 6e-8; the error is at least 1e-7, for float32
    is used."""
    start = next(densities(mesh))
    start /= start @ mesh.volumes

    def stepped(backend, number):
        there = mesh.on(backend, number)
        equation = mean_field_equation(there, Velocity(Attention(there, 4.0)), 0.1)
        state = State(0.0, backend.to_device(start.astype(number)))
        return evolve(state, equation, STEPPERS["ssprk3"], 1.0, after_step=lambda state: True, rtol=None)

    exact, single = stepped(cpu, np.float64), stepped(gpu, np.float32)
    assert single.values.dtype == mesh.on(gpu, np.float32).centers.dtype == np.float32
    assert abs(single.dt / exact.dt - 1.0) < 1e-5
    error = difference(exact.values, gpu.to_host(single.values))
    assert 1e-8 < error < 2e-6, f"{error:.1e}"


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(("lost", "held"), [(0, 30), (1, 1), (1, 90), (4, 3), (7, 90), (20, 50), (90, 90)])
def test_sums_that_were_lost_are_the_cpu_s(d, lost, held):
    """Few targets have their sources in parts, some without any, and other cases have more targets than threads."""
    random = np.random.default_rng(0)
    targets, sources, vectors = 9 * random.standard_normal((90, d)), *random.standard_normal((2, 90, d))
    mask, weights = np.zeros(90, bool), np.zeros(90)
    mask[random.permutation(90)[:lost]], weights[random.permutation(90)[:held]] = True, random.random(held)
    before = random.random(90), random.random(90), vectors
    results = []
    for backend in (cpu, gpu, gpu):
        there = [backend.to_device(array.copy()) for array in (mask, targets, sources, weights)]
        sums = tuple(backend.to_device(array.copy()) for array in before)
        held = backend.true_indices(there[3] != 0)
        backend.redo_sums(there[0], *held, there[1].__getitem__, *there[2:], sums, pairwise.exponential_sums)
        results.append([backend.to_host(array) for array in sums])
    for old, expected, found, again in zip(before, *results, strict=True):
        assert np.abs(found - expected).max() < EQUAL * np.abs(expected).max()
        assert np.array_equal(found, again)
        assert np.array_equal(found[~mask], old[~mask])


@pytest.mark.sampled
@pytest.mark.parametrize("empty", ["exact", "nan"])
@pytest.mark.parametrize("query", [1.0, -1.0, "matrix"])
@pytest.mark.parametrize("mesh", [circle(24), sphere(5)], ids=["circle", "sphere"])
def test_velocities_far_from_all_mass_are_the_cpu_s(mesh, query, empty):
    d = mesh.ambient_dimension
    head = Head(query=np.diag([1.0, 0.8, 0.9][:d]) if query == "matrix" else query)
    density = np.where(mesh.centers @ np.ones(d) > 1.4, 1.0, 0.0)
    expected, found = (
        backend.to_host(Attention(mesh.on(backend), 30.0, heads=[head]).output(backend.to_device(density), empty=empty))
        for backend in (cpu, gpu)
    )
    np.testing.assert_allclose(found, expected, atol=1e-11)  # NaN in the same cells
