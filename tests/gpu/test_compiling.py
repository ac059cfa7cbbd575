"""PTX of kernels on disk, the parameters of kernels, and loops that are written out."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.device import gpu

from solvers.backends.gpu import compiling
from solvers.backends.gpu.unrolling import with_loops_written_out

HEADER = """
.version 9.0
.visible .entry _ZN4add_B2v1(
	.param .u64 .ptr .align 1 _ZN4add_B2v1_param_0,
	.param .u64 _ZN4add_B2v1_param_1,
	.param .u64 _ZN4add_B2v1_param_2,
	.param .u64 _ZN4add_B2v1_param_3,
	.param .u64 .ptr .align 1 _ZN4add_B2v1_param_4,
	.param .u64 _ZN4add_B2v1_param_5,
	.param .u64 _ZN4add_B2v1_param_6,
	.param .f64 _ZN4add_B2v1_param_7,
	.param .u8 _ZN4add_B2v1_param_8
)
{
"""
KINDS = ((np.dtype(float), 1, "C"), (float,), (bool,))
SIDES = 3


def test_parameters_are_those_of_an_array_and_of_numbers():
    name, parameters = compiling._ENTRY.search(HEADER).groups()
    assert name == "_ZN4add_B2v1"
    assert [int(bits) for bits in compiling._PARAMETER.findall(parameters)] == compiling._bits(KINDS)
    assert compiling._bits(((np.dtype(np.int32), 2, "C"), (np.dtype(np.float32),))) == [64] * 9 + [32]


def test_kinds_of_arguments():
    array = gpu.to_device(np.zeros((3, 4), np.float32))
    assert compiling._kind(array) == (np.float32, 2, "C")
    assert compiling._kind(array.T) == (np.float32, 2, "F")
    assert compiling._kind(array[:, ::2]) == (np.float32, 2, "A")
    assert compiling._kind(array.sum()) == (np.float32, 0, "C")
    assert [compiling._kind(number) for number in (1.0, 2, True, np.float32(1))] == [
        (float,), (int,), (bool,), (np.float32,),
    ]  # fmt: skip


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Return the signatures for which a kernel has been compiled; the folder of kernels is empty at first."""
    signatures = []

    def compile_to_ptx(function, signature, **options):
        signatures.append(f"{signature}")
        return f"{HEADER}// {len(signatures)}", None

    monkeypatch.setattr(compiling.cuda, "compile", compile_to_ptx, raising=False)
    monkeypatch.setattr(compiling, "_capability", lambda: (9, 0))
    monkeypatch.setattr(compiling, "version", lambda package: "0.30")
    monkeypatch.setattr(compiling, "kernel_folder", lambda: tmp_path)
    return signatures


def add(array, number, flag):
    """Stand for a kernel."""


KERNEL = SimpleNamespace(py_func=add)


def test_code_is_compiled_once_for_each_signature(compiled, tmp_path):
    first = compiling._code(KERNEL, KINDS)
    assert compiling._code(KERNEL, KINDS) == first
    assert len(compiled) == len(list(tmp_path.iterdir())) == 1
    assert compiling._code(KERNEL, KINDS[:2]) != first
    assert len(compiled) == len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda code: code[:-4], lambda code: b"", lambda code: b"\xff" + code])
def test_damaged_code_is_compiled_again(compiled, tmp_path, damage):
    compiling._code(KERNEL, KINDS)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert compiling._code(KERNEL, KINDS).endswith("// 2")
    assert compiling._code(KERNEL, KINDS).endswith("// 2")


def test_without_a_folder_each_process_compiles(compiled, monkeypatch):
    monkeypatch.setattr(compiling, "kernel_folder", lambda: None)
    assert compiling._code(KERNEL, KINDS) != compiling._code(KERNEL, KINDS)


def table(values):
    """Return products of sides in a matrix, and a sum over a loop that is not constant."""
    found = np.zeros((SIDES, SIDES + 1))
    for k in range(SIDES):
        for m in range(1, SIDES + 1):
            if m > k:
                found[k, m] += (k + 1) * m
    total = 0.0
    for value in values:
        total += value
    for k in range(2):
        total += k
    return found, total


def test_loops_over_constants_are_written_out():
    written_out = with_loops_written_out(table)
    assert written_out is not table
    expected, found = table([1.0, 2.0]), written_out([1.0, 2.0])
    assert np.array_equal(expected[0], found[0])
    assert expected[1] == found[1]
    assert "k" in written_out.__code__.co_varnames  # of the loop over plain numbers, which stays
    assert "m" not in written_out.__code__.co_varnames
