"""Kernels that several processes compile at once are kept in Numba's cache under their own signatures."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from numba import config, njit
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from solvers.backends import cpu
from solvers.backends.cpu import caching
from solvers.backends.cpu.caching import LockedCache, LockedFiles


def files(folder: Path, stamp: str = "source") -> LockedFiles:
    """Of one function, as a process has them; locks are an opened file's, so that threads stand for processes."""
    return LockedFiles(str(folder), "kernel", stamp)


def test_two_that_write_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes when the first has read the index and not yet written it."""
    write, second = IndexDataCacheFile._save_index, list[Future[None]]()

    def late(*arguments: object) -> None:
        if not second:
            second.append(pool.submit(files(tmp_path).save, "float32", "code for float32"))
            with suppress(TimeoutError):
                second[0].result(0.2)
        write(*arguments)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(IndexDataCacheFile, "_save_index", late)
        files(tmp_path).save("float64", "code for float64")
        second[0].result()
    for key in ("float32", "float64"):
        assert files(tmp_path).load(key) == f"code for {key}"


def test_one_that_reads_while_another_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the source: the new index must not lead to the old code, which has the same name."""
    files(tmp_path, "old source").save("float64", "old code")
    write, found = IndexDataCacheFile._save_data, list[Future[str | None]]()

    def late(*arguments: object) -> None:
        found.append(pool.submit(files(tmp_path).load, "float64"))
        with suppress(TimeoutError):
            found[0].result(0.2)
        write(*arguments)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(IndexDataCacheFile, "_save_data", late)
        files(tmp_path).save("float64", "new code")
        assert found[0].result() == "new code"


def test_a_cache_that_cannot_be_locked_is_read(tmp_path: Path) -> None:
    files(tmp_path).save("float64", "code")
    (tmp_path / "kernel.nbi.lock").unlink()
    assert files(tmp_path).load("float64") == "code"


def test_every_kernel_is_kept_so_and_no_other_function() -> None:
    """Numba's own classes are as they were, and functions of a user's keep their ways."""
    modules = [module for module in vars(cpu).values() if isinstance(module, ModuleType)]
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    assert len(kernels) > 30
    assert all(isinstance(kernel._cache._cache_file, LockedFiles) for kernel in kernels)
    assert type(njit(cache=True)(cpu.advance.py_func)._cache._cache_file) is IndexDataCacheFile
    assert IndexDataCacheFile.save.__module__ == IndexDataCacheFile.load.__module__ == "numba.core.caching"


KERNEL = """
from solvers.backends.cpu.caching import compiled

@compiled()
def kernel(x):
    return x + {0}
"""


def test_code_is_kept_until_a_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own or that of any other kernel, which may be inlined in it; not where the same files are written again."""
    other = tmp_path / "other.py"
    monkeypatch.setattr(caching, "_kernels", lambda: (other,))
    other.write_text("x = 1")

    def called(number: int) -> tuple[float, int]:
        caching._hash.cache_clear()  # as in another process
        source = tmp_path / "kernels.py"
        source.write_text(KERNEL.format(number))
        found = ModuleType("kernels")
        exec(compile(source.read_text(), str(source), "exec"), found.__dict__)
        result = found.kernel(1.0)
        return result, sum(found.kernel.stats.cache_hits.values())

    assert called(1) == (2.0, 0)
    os.utime(other, (1.0, 1.0))
    assert called(1) == (2.0, 1)
    other.write_text("x = 2")
    assert called(1) == (2.0, 0)
    assert called(2) == (3.0, 0)


def function_to_compile(x: float) -> float:
    return x + 1.0


def test_one_process_compiles_a_function_and_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    first, second, done = LockedCache(function_to_compile), LockedCache(function_to_compile), list[str]()

    def compile_later() -> None:
        with second.alone():
            done.append("second")

    with ThreadPoolExecutor(1) as pool:
        with first.alone():
            assert not second.is_missing()
            later = pool.submit(compile_later)
            with pytest.raises(TimeoutError):
                later.result(0.2)
            done.append("first")
        later.result()
    assert done == ["first", "second"]
    assert second.is_missing()


def test_where_nothing_can_be_written_nothing_is_compiled_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could load the code, and every run would compile it once more."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    cache = LockedCache(function_to_compile)
    monkeypatch.setattr(LockedCache, "_lock", lambda self: None)
    assert not cache.is_missing()
    with cache.alone(), cache.alone():
        pass


def test_one_that_is_suspended_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(caching, "LONGEST_WAIT", 0.05)
    with LockedCache(function_to_compile).alone(), LockedCache(function_to_compile).alone():
        pass


LOADING = """
import sys
import numpy as np
from numba import config, njit
from solvers.backends.cpu import cells
ones = np.ones(3)
cells.apply_matrix(0, 1, np.eye(3), np.ones((2, 3)))  # memory of its own, from Numba's run time
cells.advance(0, 1, ones, ones.copy(), ones.copy(), 0.1, 0.1)
print("numba.typed.typedlist" in sys.modules)
print(njit(lambda x: sorted([x, 2.0]))(1.0))
"""


def test_code_on_disk_is_loaded_without_what_only_a_compilation_needs(tmp_path: Path) -> None:
    """Numba would read the tables of all functions that it knows, 0.1 s; what is compiled afterwards still has them."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    shown = [
        subprocess.run(
            [sys.executable, "-c", LOADING], env=environment, check=True, capture_output=True, text=True
        ).stdout.split("\n", 1)
        for _ in range(2)
    ]
    assert [first for first, _ in shown] == ["True", "False"]
    assert shown[0][1] == shown[1][1] == "[1.0, 2.0]\n"
