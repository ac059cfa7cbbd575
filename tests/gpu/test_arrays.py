"""Device arrays: accepted by functions of the backend's namespace, without unnoticed copies to the host."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from scipy import special
from support.device import CUPY, SIMULATED, gpu
from support.stand_in import ABSENT

from meanfield.case.errors import CaseError
from meanfield.cli import commands
from solvers import backends
from solvers.backends import cpu
from solvers.backends.gpu.launching import THREADS, run

only_simulated = pytest.mark.skipif(not SIMULATED, reason="what only the stand-in for the device's arrays does")
A, B = np.random.default_rng(0).random((2, 6, 8))

FOLLOWED = {
    "ufunc": lambda a, b: np.exp(a) - 2.0 * b,
    "in place": lambda a, b: np.multiply(a, b, out=a),
    "dot": lambda a, b: backends.backend_for(a).dot(a[0], b[1]),
    "einsum": lambda a, b: backends.backend_for(a).xp.einsum("ij,ij->i", a, b),
    "number": lambda a, b: np.maximum(a.max(), 0.1) * b,
    "where": lambda a, b: backends.backend_for(a).xp.where(a.sum() > 3.0, a, b),
    "stack": lambda a, b: backends.backend_for(a).xp.stack([a, b]).transpose(2, 0, 1),
    "like": lambda a, b: backends.backend_for(a).xp.ones_like(a) + backends.backend_for(b).xp.zeros_like(b),
    "norm": lambda a, b: backends.backend_for(a).xp.linalg.norm(a, axis=1),
    "index": lambda a, b: a[::2, 1:] + b[:3, None, 0] * a[0, 1:],
    "transforms": lambda a, b: _correlation(backends.backend_for(a), a, b),
}


def _correlation(backend, a, b):
    return backend.irfft(backend.rfft(a) * np.conj(backend.rfft(b)), 8)


@pytest.mark.parametrize("name", FOLLOWED)
def test_array_code_follows_its_input(name):
    found = FOLLOWED[name](gpu.to_device(A.copy()), gpu.to_device(B.copy()))
    assert not isinstance(found, np.ndarray)
    assert gpu.to_host(found).ravel() == pytest.approx(FOLLOWED[name](A.copy(), B.copy()).ravel(), rel=1e-13)


def test_arrays_are_written_in_place():
    array = gpu.to_device(A)
    array[1] = 0.0
    array[:, 0] += gpu.to_device(B)[:, 0]
    expected = A.copy()
    expected[1] = 0.0
    expected[:, 0] += B[:, 0]
    assert np.array_equal(gpu.to_host(array), expected)


@pytest.mark.parametrize("module", [cpu, gpu], ids=lambda module: module.__name__)
def test_transform_and_back(module):
    values = module.to_device(A)
    assert module.to_host(module.irfft(module.rfft(values), 8)) == pytest.approx(A, rel=1e-14)
    assert module.to_host(module.irfft(module.rfft(values), 8, "forward")) == pytest.approx(8 * A, rel=1e-14)


@only_simulated
def test_spectrum_is_spent():
    spectrum = gpu.rfft(gpu.to_device(A))
    gpu.irfft(spectrum, 8)
    assert np.isnan(gpu.to_host(spectrum)).all()


def test_silent_copy_to_the_host_is_refused():
    with pytest.raises(TypeError):
        np.asarray(gpu.to_device(A))


MIXED = [
    lambda a: np.add(a, A),
    lambda a: a + np.array(1.0),
    lambda a: A * a,
    lambda a: a[np.arange(2)],
    lambda a: gpu.xp.stack([a, A]),
]


@only_simulated
@pytest.mark.parametrize("mix", MIXED)
def test_array_of_the_host_is_refused(mix):
    with pytest.raises(TypeError, match="of the host meets one on the device"):
        mix(gpu.to_device(A))


UNTAKEN = {  # CuPy 14.2 raises an error for these; the stand-in's message
    "other ufuncs": (lambda a: np.spacing(a), "ufunc spacing"),
    "ufuncs of others": (lambda a: special.i0e(a), "ufunc i0e"),
    "reductions by ufuncs": (lambda a: np.add.reduce(a), "add.reduce"),
    "sums of runs": (lambda a: np.add.reduceat(a, [0, 2]), "add.reduceat"),
    "ufuncs where": (lambda a: np.sqrt(a, where=a > 0.5), "sqrt with where"),
    "lists in ufuncs": (lambda a: a + [1.0] * 8, "other than arrays and numbers"),
    "other functions": (lambda a: gpu.xp.insert(a, 1, 0.0), "function insert"),
    "of linalg": (lambda a: gpu.xp.linalg.vector_norm(a), "function vector_norm"),
    "first values": (lambda a: gpu.xp.max(a, initial=0.0), "max with initial"),
    "first values, methods": (lambda a: a.max(initial=0.0), "max with initial"),
    "sums where": (lambda a: a.sum(where=a > 0.5), "sum with where"),
    "einsum to an array": (lambda a: gpu.xp.einsum("ij->i", a, out=a[:, 0]), "einsum with out"),
    "kinds of sorting": (lambda a: gpu.xp.argsort(a, kind="heapsort"), "argsort with kind = 'heapsort'"),
    "repeats": (lambda a: gpu.xp.repeat(a, gpu.to_device(np.arange(6)), axis=0), "repeat by an array of counts"),
    "lists to assign": (lambda a: a.__setitem__(slice(2), [a[2], a[3]]), "a list to assign"),
    "numbers of the host": (lambda a: a.tolist(), "tolist of an array"),
    "formats": (lambda a: gpu.to_device(np.ones(2, np.longdouble)), "format"),
}


@only_simulated
@pytest.mark.parametrize("name", UNTAKEN)
def test_what_cupy_does_not_take_is_refused(name):
    attempt, message = UNTAKEN[name]
    with pytest.raises(TypeError, match=re.escape(f"CuPy does not take {message}")):
        attempt(gpu.to_device(A))


DISPATCHED = {
    "where": lambda a: np.where(a > 0.5, a, 0.0),
    "stack": lambda a: np.stack([a, a]),
    "zeros_like": np.zeros_like,
    "norm": np.linalg.norm,
    "ndim": np.ndim,
}


@only_simulated
@pytest.mark.parametrize("name", DISPATCHED)
def test_numpys_functions_are_refused(name):
    """A new release of NumPy may break the dispatch to CuPy's function of the same name."""
    with pytest.raises(TypeError, match=f"^NumPy's {name} of an array on the device: expected that of the backend"):
        DISPATCHED[name](gpu.to_device(A))


@only_simulated
def test_arrays_take_no_attributes():
    with pytest.raises(AttributeError):
        gpu.to_device(A).shape = (48,)


if CUPY is not None:  # CuPy is not part of the setup; the check needs no device

    def test_what_is_refused_by_its_name_is_not_in_cupy():
        homes = CUPY, CUPY.linalg, CUPY.ndarray
        assert not [name for name in ABSENT if any(hasattr(home, name) for home in homes)]


@only_simulated
def test_copies_to_the_host_are_counted():
    array = gpu.to_device(A)
    kind = type(array)
    before = kind.transfers
    total = array.sum()
    assert kind.transfers == before
    assert float(total) == A.sum()
    assert bool(total > 1.0)
    assert np.array_equal(gpu.to_host(array), A)
    assert kind.transfers == before + 3
    waited = kind.waits
    chosen = array[array > 0.5]
    assert len(gpu.xp.flatnonzero(array > 0.5)) == len(gpu.xp.where(array > 0.5)[0]) == len(chosen)
    assert array[:, array[0] > 0.5].shape[0] == len(array)
    array[array > 0.5] = 0.0
    assert (kind.transfers, kind.waits) == (before + 3, waited + 5)


@only_simulated
def test_what_is_not_filled_is_not_a_number():
    assert np.isnan(gpu.to_host(gpu.empty((2, 3)))).all()
    assert not gpu.to_host(gpu.zeros(3, complex)).any()


def test_kernels_are_those_of_the_array():
    assert backends.backend_for(A) is cpu
    assert backends.backend_for(gpu.to_device(A)) is gpu
    assert [backends.backend_on(device) for device in backends.DEVICES] == [cpu, gpu]


def test_device_that_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="'tpu': expected one of cpu, gpu"):
        backends.backend_on("tpu")
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with pytest.raises(backends.NotInstalled, match=r"a gpu needs CuPy, which is not installed$"):
        backends.backend_on("gpu")
    with pytest.raises(CaseError, match=r"^--device gpu: .*: pip install 'meanfield-transformers\[gpu\]'$"):
        commands._backend("gpu")
    monkeypatch.setattr(backends, "find_spec", lambda name: True)
    monkeypatch.setattr("solvers.backends.gpu.arrays.xp", SimpleNamespace(zeros=lambda *arguments: 1 / 0))
    with pytest.raises(backends.NoDevice, match="no gpu can be used: division by zero"):
        backends.backend_on("gpu")


FRAMED = ImportError("\n====\nFailed to import CuPy.\n\nMake sure of this and that.\n====\n")
FRAMED.__cause__ = OSError("libcuda.so.1: no such file")
MESSAGES = [
    (FRAMED, "libcuda.so.1: no such file"),
    (RuntimeError("Error at driver init: \nno driver"), "Error at driver init: no driver"),
    (MemoryError(), "MemoryError"),
]


@pytest.mark.parametrize(("error", "message"), MESSAGES)
@pytest.mark.parametrize("needed", ["zeros", "rfft", "sums_at"])
def test_what_every_run_needs_is_tried_and_refused_in_a_line(needed, error, message):
    """Arrays, transforms and kernels use different libraries."""

    def fails(*arguments):
        raise error

    backend = SimpleNamespace(**{**vars(gpu), needed: fails})
    with pytest.raises(backends.NoDevice) as refused:
        backends._check(backend)
    assert str(refused.value) == f"no gpu can be used: {message}"


@only_simulated
def test_a_missing_barrier_shows():
    """Each thread reads what the next one has written: after a barrier that, and without one not always."""

    def turned(values, wait, into):
        row, t = cuda.shared.array(THREADS, np.float64), cuda.threadIdx.x
        row[t] = 0.0
        cuda.syncthreads()
        row[t] = values[t]
        if wait:
            cuda.syncthreads()
        into[t] = row[(t + 1) % THREADS]

    values, kernel = np.arange(1.0, THREADS + 1), cuda.jit(turned)
    for wait in (True, False):
        into = gpu.zeros(THREADS)
        run(kernel, (1, THREADS), gpu.to_device(values), wait, into)
        assert np.array_equal(gpu.to_host(into), np.roll(values, -1)) == wait


@only_simulated
def test_an_error_in_a_thread_between_barriers_is_raised():
    def failing():
        cuda.syncthreads()
        if cuda.threadIdx.x == 3:
            raise ZeroDivisionError("thread 3")
        cuda.syncthreads()

    with pytest.raises(ZeroDivisionError, match="thread 3"):
        run(cuda.jit(failing), (1, THREADS))


@pytest.mark.parametrize(("package", "absent"), [("cpu", ["numba.cuda", "cupy"]), ("gpu", ["cupy"])])
def test_import_needs_no_device(package, absent):
    code = f"import sys, solvers.backends.{package}; print([name for name in {absent} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
