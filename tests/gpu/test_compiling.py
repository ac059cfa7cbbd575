"""PTX of kernels on disk, the parameters of kernels, and loops that are written out."""

from types import SimpleNamespace

import numpy as np
import pytest

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
KINDS = (("d", 1, "C"), ("d",), ("?",))
SIDES = 3


def test_parameters_are_those_of_an_array_and_of_numbers():
    name, parameters = compiling._ENTRY.search(HEADER).groups()
    assert name == "_ZN4add_B2v1"
    assert [int(bits) for bits in compiling._PARAMETER.findall(parameters)] == compiling._bits(KINDS)
    assert compiling._bits((("i", 2, "C"), ("f",))) == [64] * 9 + [32]


class _Launched:
    """Stand for a kernel that Numba launches: a function of the arguments."""

    def __init__(self, function):
        self.py_func, self._function = function, function

    def __getitem__(self, shape):
        return self._function


class _Array:
    """Stand for an array on a device: what a launch reads of it."""

    def __init__(self, array):
        self.dtype, self.shape, self.strides = array.dtype, array.shape, array.strides
        self.data = SimpleNamespace(ptr=array.ctypes.data)


TABLE = np.zeros((3, 4), np.float32)
LAYOUTS = {
    "rows": TABLE,
    "columns": TABLE.T,
    "every other": TABLE[:, ::2],
    "a number": TABLE[0, :1].reshape(()),
    "one row": TABLE[:1],
    "one column": TABLE[:, :1],
    "empty": TABLE[:0, ::2],
    "backward": TABLE[::-1],
    "repeated": np.broadcast_to(TABLE[:1], (3, 4)),
    "three axes": np.zeros((2, 3, 4)).transpose(0, 2, 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_kinds_of_arrays_are_those_of_numpy(name):
    array = LAYOUTS[name]
    layout = "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"
    kinds, numbers = compiling._kinds_and_numbers((_Array(array),))
    assert kinds == ((array.dtype.char, array.ndim, layout),)
    assert numbers == [0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides]
    assert len(numbers) == len(compiling._bits(kinds))


def test_kinds_of_numbers():
    numbers = (1.0, 2, True, np.float32(1), np.bool_(False))
    kinds, passed = compiling._kinds_and_numbers(numbers)
    assert passed == list(numbers)
    assert [np.dtype(kind[0]) for kind in kinds] == [float, int, bool, np.float32, bool]


def test_arguments_of_other_layouts_have_their_own_launchers(monkeypatch):
    made, launches = [], []

    def launcher(kernel, kinds):
        made.append(kinds)
        return lambda shape, arguments, numbers: launches.append((shape, len(numbers)))

    monkeypatch.setattr(compiling, "_launcher", launcher)
    monkeypatch.setattr(compiling, "_launchers", {})
    for array in (TABLE, TABLE.T, TABLE):
        compiling.launch_compiled(add, (2, 16), (_Array(array), 1.0))
    assert made == [(("f", 2, "C"), ("d",)), (("f", 2, "F"), ("d",))]
    assert launches == 3 * [((2, 16), 10)]


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


def test_numba_finds_row_stack_while_it_compiles_and_launches(compiled, monkeypatch):
    """numba-cuda 0.30.4 reads ``numpy.row_stack``, which NumPy 2.5 has not."""
    monkeypatch.delattr(np, "row_stack", raising=False)
    compile_to_ptx, found = compiling.cuda.compile, []

    def read_row_stack(*arguments, **options):
        found.append(vars(np)["row_stack"]([[1.0], [2.0]]).shape)
        return compile_to_ptx(*arguments, **options)

    monkeypatch.setattr(compiling.cuda, "compile", read_row_stack)
    monkeypatch.setattr(compiling, "_launchers", {})
    kernel = _Launched(lambda *arguments: found.append(vars(np)["row_stack"](arguments).shape))
    compiling.launch_compiled(kernel, (1, 1), (1.0,))  # another number of parameters than that of HEADER
    assert found == [(2, 1), (1, 1)]
    assert not hasattr(np, "row_stack")


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
