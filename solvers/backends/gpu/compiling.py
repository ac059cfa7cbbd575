"""GPU kernels as PTX from Numba, stored on disk, and launched by CuPy.

Numba's launcher takes 100 to 300 µs of host time for eight arrays, and its own cache on disk does not detect a change
in a function of another file. CuPy's launch of the same code takes 40 µs. The PTX is stored in the folder of the CPU's
compiled kernels, whose name has a hash of all sources of the backends, so that a process compiles only new kernels.

Numba passes an array as 5 + 2 ndim numbers (:func:`_numbers`). This layout is not part of its stable interface.
Therefore the parameters in the PTX are counted, and Numba launches a kernel whose parameters differ.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba import cuda, from_dtype, types

from ..cpu.caching import kernel_folder

Kind = tuple[Any, ...]  # format, number of axes and memory layout of an argument
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)")
_launchers: dict[tuple[Any, ...], Callable[..., None]] = {}


def launch_compiled(kernel: Any, shape: tuple[int, int], arguments: tuple[Any, ...]) -> None:
    """Launch a kernel decorated by Numba's ``cuda.jit`` on ``shape`` = (blocks, threads), compiled for its arguments.

    The arguments are numbers and CuPy's arrays.
    """
    kinds = tuple(map(_kind, arguments))
    launcher = _launchers.get((kernel, kinds))
    if launcher is None:
        launcher = _launchers[kernel, kinds] = _launcher(kernel, kinds)
    launcher(shape, arguments)


def _kind(argument: Any) -> Kind:
    """Return the format of an argument, a type or NumPy's dtype; for an array also its number of axes and its layout.

    The layout is C for an array with contiguous rows, F for contiguous columns, A for any other array.
    """
    if isinstance(argument, bool | int | float | np.generic):
        return (getattr(argument, "dtype", type(argument)),)
    flags = argument.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return argument.dtype, argument.ndim, layout


def _launcher(kernel: Any, kinds: tuple[Kind, ...]) -> Callable[..., None]:
    """Return a function (shape, arguments) that launches a kernel for arguments of these kinds on this device."""
    code = _code(kernel, kinds)
    found = _ENTRY.search(code)
    if found is None or [int(bits) for bits in _PARAMETER.findall(found[2])] != _bits(kinds):
        return lambda shape, arguments: kernel[shape](*arguments)
    with TemporaryDirectory() as folder:  # CuPy reads PTX from files only
        file = Path(folder, "kernel.ptx")
        file.write_text(code, "utf-8")
        function = import_module("cupy").RawModule(path=str(file)).get_function(found[1])

    def launch(shape: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        numbers: list[Any] = []
        for argument, kind in zip(arguments, kinds, strict=True):
            numbers.extend(_numbers(argument) if len(kind) > 1 else (argument,))
        function((shape[0],), (shape[1],), tuple(numbers))

    return launch


def _numbers(array: Any) -> tuple[int, ...]:
    """Return the numbers by which Numba passes an array: two null pointers, size, itemsize, address, shape, strides."""
    return (0, 0, array.size, array.itemsize, array.data.ptr, *array.shape, *array.strides)


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
    """Return the PTX of a kernel for arguments of these kinds, from the folder of kernels if it is there."""
    signature = types.void(*map(_type, kinds))
    file = _file(kernel, f"{signature}")
    with suppress(OSError, UnicodeDecodeError):
        if file is not None:
            seal, _, code = file.read_text("utf-8").partition("\n")
            if seal == _seal(code):
                return code
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
