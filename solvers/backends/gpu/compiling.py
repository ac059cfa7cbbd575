"""GPU kernels as PTX from Numba, stored on disk, and launched by CuPy.

Numba's launcher takes 100 to 300 µs of host time for eight arrays, and its own cache on disk does not detect a change
in a function of another file. CuPy's launch of the same code takes 40 µs. The PTX is stored in the folder of the CPU's
compiled kernels, whose name has a hash of all sources of the backends, so that a process compiles only new kernels.

Numba passes an array as 5 + 2 ndim numbers: two null pointers, size, itemsize, address, shape and strides. This layout
is not part of its stable interface. Therefore the parameters in the PTX are counted, and Numba launches a kernel whose
parameters differ.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
from numba import cuda, from_dtype, types

from ..cpu.caching import kernel_folder

Kind = tuple[Any, ...]  # character of NumPy's format of an argument; for an array also number of axes and layout
Launcher = Callable[[tuple[int, int], tuple[Any, ...], list[Any]], None]  # of a shape, arguments, and their numbers
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)")
_KINDS: dict[type, Kind] = {number: (np.dtype(number).char,) for number in (float, int, bool)}
_launchers: dict[tuple[Any, ...], Launcher] = {}
_lending = Lock()


def launch_compiled(kernel: Any, shape: tuple[int, int], arguments: tuple[Any, ...]) -> None:
    """Launch a kernel decorated by Numba's ``cuda.jit`` on ``shape`` = (blocks, threads), compiled for its arguments.

    The arguments are numbers and CuPy's arrays.
    """
    kinds, numbers = _kinds_and_numbers(arguments)
    launcher = _launchers.get((kernel, kinds))
    if launcher is None:
        launcher = _launchers[kernel, kinds] = _launcher(kernel, kinds)
    launcher(shape, arguments, numbers)


def _kinds_and_numbers(arguments: tuple[Any, ...]) -> tuple[tuple[Kind, ...], list[Any]]:
    """Return the kind of each argument, and all arguments as the list of numbers that a compiled kernel takes."""
    kinds: list[Kind] = []
    numbers: list[Any] = []
    for argument in arguments:
        kind = _KINDS.get(type(argument))
        if kind is not None:
            numbers.append(argument)
        elif isinstance(argument, np.generic):
            kind = (argument.dtype.char,)
            numbers.append(argument)
        else:
            kind, before, after = _array_kind(argument.dtype.char, argument.shape, argument.strides)
            numbers += before
            numbers.append(argument.data.ptr)
            numbers += after
        kinds.append(kind)
    return tuple(kinds), numbers


@lru_cache(4096)
def _array_kind(
    char: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[Kind, tuple[int, ...], tuple[int, ...]]:
    """Return the kind (format character, number of axes, layout) of an array, and its kernel arguments for Numba.

    Numba passes an array as a list of numbers. The second result holds the numbers before the address: 0, 0, size and
    itemsize. The third holds those after it: shape and strides. The layout is C for contiguous rows, F for contiguous
    columns, and A otherwise.
    """
    itemsize, size = np.dtype(char).itemsize, prod(shape)
    is_c = _is_contiguous(shape[::-1], strides[::-1], itemsize)
    layout = "C" if is_c else "F" if _is_contiguous(shape, strides, itemsize) else "A"
    return (char, len(shape), layout), (0, 0, size, itemsize), (*shape, *strides)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether an array has no gaps, where its first axis is the one that changes fastest."""
    step = itemsize
    for count, stride in zip(shape, strides, strict=True):
        if count > 1 and stride != step:
            return 0 in shape
        step *= count
    return True


def _launcher(kernel: Any, kinds: tuple[Kind, ...]) -> Launcher:
    """Return a function that launches a kernel for arguments of these kinds on this device."""
    code = _code(kernel, kinds)
    found = _ENTRY.search(code)
    if found is None or [int(bits) for bits in _PARAMETER.findall(found[2])] != _bits(kinds):
        return lambda shape, arguments, numbers: _launch_by_numba(kernel, shape, arguments)
    with TemporaryDirectory() as folder:  # CuPy reads PTX from files only
        file = Path(folder, "kernel.ptx")
        file.write_text(code, "utf-8")
        function = import_module("cupy").RawModule(path=str(file)).get_function(found[1])

    return lambda shape, arguments, numbers: function((shape[0],), (shape[1],), tuple(numbers))


def _launch_by_numba(kernel: Any, shape: tuple[int, int], arguments: tuple[Any, ...]) -> None:
    """Launch a kernel by Numba, which compiles it at the first launch."""
    with _row_stack_lent():
        kernel[shape](*arguments)


@contextmanager
def _row_stack_lent() -> Iterator[None]:
    """Give NumPy its former function ``row_stack``, an alias of ``vstack``, while Numba compiles.

    numba-cuda 0.30.4 reads it at the first compilation; NumPy 2.5 no longer has it.
    """
    with _lending:
        is_lent = not hasattr(np, "row_stack")
        if is_lent:
            vars(np)["row_stack"] = np.vstack
        try:
            yield
        finally:
            if is_lent:
                del vars(np)["row_stack"]


def _bits(kinds: tuple[Kind, ...]) -> list[int]:
    """Return the sizes in bits of the parameters by which arguments of these kinds are passed."""
    sizes: list[int] = []
    for kind in kinds:
        sizes += [64] * (5 + 2 * kind[1]) if len(kind) > 1 else [8 * np.dtype(kind[0]).itemsize]
    return sizes


def _type(kind: Kind) -> Any:
    """Return Numba's type of an argument of a kind."""
    item = from_dtype(np.dtype(kind[0]))
    return types.Array(item, kind[1], kind[2]) if len(kind) > 1 else item


def _code(kernel: Any, kinds: tuple[Kind, ...]) -> str:
    """Return the PTX of a kernel for arguments of these kinds: the stored one if it is valid, else newly compiled."""
    signature = types.void(*map(_type, kinds))
    file = _file(kernel, f"{signature}")
    with suppress(OSError, UnicodeDecodeError):
        if file is not None:
            seal, _, code = file.read_text("utf-8").partition("\n")
            if seal == _seal(code):
                return code
    with _row_stack_lent():
        code = cuda.compile(kernel.py_func, signature, device=False, abi="numba", cc=_capability())[0]
    if file is not None:
        _store(file, code)
    return str(code)


def _file(kernel: Any, signature: str) -> Path | None:
    """Return the file of a kernel's PTX for a signature and the current device; None if no folder can be written."""
    folder = kernel_folder()
    if folder is None:
        return None
    function, (major, minor) = kernel.py_func, _capability()
    key = hashlib.sha256(f"{version('numba-cuda')} {function.__module__} {signature}".encode()).hexdigest()[:16]
    return folder / f"{function.__name__}-{major}{minor}-{key}.ptx"


def _seal(code: str) -> str:
    """Return the first line of a file of PTX, a comment with the hash of the code, which detects damage."""
    return f"// {hashlib.sha256(code.encode()).hexdigest()}"


def _store(file: Path, code: str) -> None:
    """Write PTX to a file, so that no process reads a part of it; do nothing if it cannot be written."""
    with suppress(OSError), TemporaryDirectory(dir=file.parent) as folder:
        part = Path(folder, file.name)
        part.write_text(f"{_seal(code)}\n{code}", "utf-8")
        os.replace(part, file)


@cache
def _capability() -> tuple[int, int]:
    """Return the compute capability of the current device, such as (9, 0)."""
    digits = import_module("cupy").cuda.Device().compute_capability
    return int(digits[:-1]), int(digits[-1])
