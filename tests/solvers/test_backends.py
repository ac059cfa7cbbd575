"""The protocol Backend in both backends: every name, and kernels with the same arguments."""

from inspect import isfunction, ismodule, signature

import numpy as np
import pytest
from support.device import gpu

from solvers.backends import Backend, HostBackend, Kernel, backend_for, backend_on, cpu, host_backend, name_of


def functions(protocol):
    return {name for name, value in vars(protocol).items() if isfunction(value) and not name.startswith("_")}


def kernels(protocol):
    return {name for name, kind in protocol.__annotations__.items() if kind == "Kernel"}


FUNCTIONS, KERNELS = functions(Backend), kernels(Backend)
NUMBERS = {name for name in Backend.__annotations__ if name.isupper()}
NUMBERS_OF_THE_HOST = {name for name in HostBackend.__annotations__ if name.isupper()}
OF_THE_HOST = {cpu: functions(HostBackend) | kernels(HostBackend), gpu: set()}


def arguments(function):
    return list(signature(getattr(function, "py_func", function)).parameters)


@pytest.mark.parametrize("backend", [cpu, gpu], ids=name_of)
def test_a_backend_has_the_names_of_the_protocol_and_no_others(backend):
    found = {name for name, value in vars(backend).items() if not name.startswith("_") and not ismodule(value)}
    found.discard("xp")  # a module on the host
    numbers = NUMBERS | (NUMBERS_OF_THE_HOST if backend is cpu else set())
    assert found == FUNCTIONS | KERNELS | numbers | OF_THE_HOST[backend]
    assert all(callable(getattr(backend, name)) for name in found - numbers)
    assert all(isinstance(getattr(backend, name), int | float) for name in numbers)


@pytest.mark.parametrize("name", sorted(FUNCTIONS | KERNELS))
def test_backends_take_the_same_arguments(name):
    """A function has the arguments of the protocol, a kernel begins with worker and workers."""
    one, other = (arguments(getattr(backend, name)) for backend in (cpu, gpu))
    assert one == other
    if name in FUNCTIONS:
        assert ["self", *one] == arguments(getattr(Backend, name))
    else:
        assert one[:2] == ["worker", "workers"]


@pytest.mark.parametrize("name", sorted(OF_THE_HOST[cpu]))
def test_the_host_takes_the_arguments_of_its_protocol(name):
    found = arguments(getattr(cpu, name))
    if name in functions(HostBackend):
        assert ["self", *found] == arguments(getattr(HostBackend, name))
    else:
        assert found[:2] == ["worker", "workers"]


def test_the_namespace_of_the_host_is_numpy():
    assert cpu.xp is np
    assert gpu.xp.zeros_like(gpu.zeros(1)).__class__ is gpu.zeros(1).__class__


def test_the_protocol_knows_arrays_and_kernels():
    assert Kernel is not None
    assert len(KERNELS) > 25
    assert backend_for(cpu.zeros(1)) is cpu is backend_on("cpu") is host_backend()
    assert backend_for(gpu.zeros(1)) is gpu
