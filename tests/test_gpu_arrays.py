"""The device's arrays: they follow NumPy's functions, and no copy to the host goes unseen."""

import subprocess
import sys

import numpy as np
import pytest
from device import SIMULATED, gpu

from solvers import backends
from solvers.backends import cpu

only_simulated = pytest.mark.skipif(not SIMULATED, reason="what only the stand-in for the device's arrays does")
A, B = np.random.default_rng(0).random((2, 6, 8))

FOLLOWED = {
    "ufunc": lambda a, b: np.exp(a) - 2.0 * b,
    "in place": lambda a, b: np.multiply(a, b, out=a),
    "einsum": lambda a, b: np.einsum("ij,ij->i", a, b),
    "number": lambda a, b: np.maximum(a.max(), 0.1) * b,
    "where": lambda a, b: np.where(a.sum() > 3.0, a, b),
    "stack": lambda a, b: np.stack([a, b]).transpose(2, 0, 1),
    "like": lambda a, b: np.ones_like(a) + np.zeros_like(b),
    "index": lambda a, b: a[::2, 1:] + b[:3, None, 0] * a[0, 1:],
    "transforms": lambda a, b: gpu.irfft(gpu.rfft(a) * np.conj(gpu.rfft(b)), 8),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_array_code_follows_its_input(name):
    found = FOLLOWED[name](gpu.place(A.copy()), gpu.place(B.copy()))
    assert not isinstance(found, np.ndarray)
    assert gpu.bring(found).ravel() == pytest.approx(FOLLOWED[name](A.copy(), B.copy()).ravel(), rel=1e-13)


def test_arrays_are_written_in_place():
    array = gpu.place(A)
    array[1] = 0.0
    array[:, 0] += gpu.place(B)[:, 0]
    expected = A.copy()
    expected[1] = 0.0
    expected[:, 0] += B[:, 0]
    assert np.array_equal(gpu.bring(array), expected)


@pytest.mark.parametrize("module", [cpu, gpu], ids=lambda module: module.__name__)
def test_transform_and_back(module):
    values = module.place(A)
    assert module.bring(module.irfft(module.rfft(values), 8)) == pytest.approx(A, rel=1e-14)
    assert module.bring(module.irfft(module.rfft(values), 8, "forward")) == pytest.approx(8 * A, rel=1e-14)


def test_silent_copy_to_the_host_is_refused():
    with pytest.raises(TypeError):
        np.asarray(gpu.place(A))


MIXED = [
    lambda a: np.add(a, A),
    lambda a: a + np.array(1.0),
    lambda a: A * a,
    lambda a: a[np.arange(2)],
    lambda a: np.stack([a, A]),
]


@only_simulated
@pytest.mark.parametrize("mix", MIXED)
def test_array_of_the_host_is_refused(mix):
    with pytest.raises(TypeError, match="of the host meets one on the device"):
        mix(gpu.place(A))


@only_simulated
def test_copies_to_the_host_are_counted():
    array = gpu.place(A)
    kind = type(array)
    before = kind.transfers
    total = array.sum()
    assert kind.transfers == before
    assert float(total) == A.sum()
    assert bool(total > 1.0)
    assert np.array_equal(gpu.bring(array), A)
    assert kind.transfers == before + 3
    waited = kind.waits
    chosen = array[array > 0.5]
    assert len(np.flatnonzero(array > 0.5)) == len(chosen)
    assert (kind.transfers, kind.waits) == (before + 3, waited + 2)


@only_simulated
def test_what_is_not_filled_is_not_a_number():
    assert np.isnan(gpu.bring(gpu.empty((2, 3)))).all()
    assert not gpu.bring(gpu.zeros(3, complex)).any()


def test_kernels_are_those_of_the_array():
    assert backends.kernels_for(A) is cpu
    assert backends.kernels_for(gpu.place(A)) is gpu
    assert [backends.kernels_on(device) for device in backends.DEVICES] == [cpu, gpu]


def test_device_that_cannot_be_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="'tpu': expected one of cpu, gpu"):
        backends.kernels_on("tpu")
    monkeypatch.setattr("solvers.backends.gpu.arrays.SIMULATED", False)
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with pytest.raises(backends.NoDevice, match="needs CuPy"):
        backends.kernels_on("gpu")
    monkeypatch.setattr(backends, "find_spec", lambda name: True)
    monkeypatch.setattr("solvers.backends.gpu.arrays._cupy", lambda: 1 / 0)
    with pytest.raises(backends.NoDevice, match="no gpu can be used: division by zero"):
        backends.kernels_on("gpu")


@pytest.mark.parametrize(("package", "absent"), [("cpu", ["numba.cuda", "cupy"]), ("gpu", ["cupy"])])
def test_import_needs_no_device(package, absent):
    code = f"import sys, solvers.backends.{package}; print([name for name in {absent} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
