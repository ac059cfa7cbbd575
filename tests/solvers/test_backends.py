"""Both backends satisfy the protocol Backend: every name, kernels with the same arguments."""

from inspect import isfunction, signature

import pytest
from support.device import gpu

from solvers.backends import Backend, Kernel, backend_for, backend_on, cpu, name_of

FUNCTIONS = {name for name, value in vars(Backend).items() if isfunction(value) and not name.startswith("_")}
KERNELS = {name for name, kind in Backend.__annotations__.items() if kind == "Kernel"}
NUMBERS = {name for name in Backend.__annotations__ if name.isupper()}


def arguments(function):
    return list(signature(getattr(function, "py_func", function)).parameters)


@pytest.mark.parametrize("backend", [cpu, gpu], ids=name_of)
def test_a_backend_has_the_names_of_the_protocol_and_no_others(backend):
    assert set(backend.__all__) == FUNCTIONS | KERNELS | NUMBERS
    assert all(callable(getattr(backend, name)) for name in FUNCTIONS | KERNELS)
    assert all(isinstance(getattr(backend, name), int) for name in NUMBERS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS | KERNELS))
def test_backends_take_the_same_arguments(name):
    """A function those of the protocol, a kernel worker and workers first."""
    one, other = (arguments(getattr(backend, name)) for backend in (cpu, gpu))
    assert one == other
    if name in FUNCTIONS:
        assert ["self", *one] == arguments(getattr(Backend, name))
    else:
        assert one[:2] == ["worker", "workers"]


def test_the_protocol_knows_arrays_and_kernels():
    assert Kernel is not None
    assert len(KERNELS) > 25
    assert backend_for(cpu.zeros(1)) is cpu is backend_on("cpu")
    assert backend_for(gpu.zeros(1)) is gpu
