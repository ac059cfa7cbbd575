"""Backends: one module for each device, with the same names and signatures."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from .protocol import Array as Array
from .protocol import Backend as Backend
from .protocol import HostBackend as HostBackend
from .protocol import Kernel as Kernel

if TYPE_CHECKING:
    from . import cpu, gpu

    _BOTH: tuple[HostBackend, Backend] = (cpu, gpu)  # for the type checker

DEVICES = ("cpu", "gpu")


class NoDevice(RuntimeError):
    """Error for a device that this machine lacks, or lacks the software for."""


class NotInstalled(NoDevice):
    """Error for a device whose software is not installed."""


def backend_for(array: Any) -> Backend:
    """Return the backend, the module of arrays and kernels, of the device that holds an array."""
    return _module("gpu" if hasattr(array, "__cuda_array_interface__") else "cpu")


def backend_on(device: str) -> Backend:
    """Return the backend, the module of arrays and kernels, of a device, "cpu" or "gpu".

    Raises ValueError for another name, and NoDevice for a device that is absent or cannot be used.
    """
    if device not in DEVICES:
        raise ValueError(f"device = {device!r}: expected one of {', '.join(DEVICES)}")
    backend = _module(device)
    if device == "gpu":
        _check(backend)
    return backend


def host_backend() -> HostBackend:
    """Return the backend of the CPU, which has functions that the GPU's backend lacks."""
    return cast(HostBackend, _module("cpu"))


def name_of(backend: Backend) -> str:
    """Return the name of a backend's device, "cpu" or "gpu": the inverse of :func:`backend_on`."""
    return backend.__name__.rpartition(".")[2]


@cache  # called many times in a step, which matters for small systems
def _module(device: str) -> Backend:
    """Return the backend of a device, "cpu" or "gpu", which is imported."""
    return cast(Backend, import_module(f".{device}", __name__))


def _check(backend: Backend) -> None:
    """Test the functions of the GPU's backend that every run needs; raise NoDevice if one fails.

    Raises NotInstalled, a NoDevice, if a package is missing.
    """
    from .gpu.arrays import SIMULATED

    for package, name in [("cupy", "CuPy"), *([] if SIMULATED else [("numba_cuda", "numba-cuda")])]:
        if find_spec(package) is None:
            raise NotInstalled(f"a gpu needs {name}, which is not installed")
    try:
        square = backend.zeros((2, 2))
        backend.irfft(backend.rfft(square @ square), 2)
        backend.sums_at(backend.zeros(1, "int32"), backend.zeros(1), 1)
    except Exception as error:  # CuPy's own kinds: no driver, device, library or memory
        raise NoDevice(f"no gpu can be used: {_one_line_message(error)}") from None


def _one_line_message(error: Exception) -> str:
    """Return the message of an error, or of its cause, in one line; return the error's type if there is no message."""
    return " ".join(str(error.__cause__ or error).split()) or type(error).__name__
