"""Compiled kernels: their folder, several processes that compile at once, and a missing folder."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numba
import platformdirs
import pytest
from numba import njit

from solvers.backends import cpu
from solvers.backends.cpu import caching
from solvers.backends.cpu.caching import compiled, kernel_folder


@pytest.fixture
def folder_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path | None]:
    """Return a function that finds the folder under given variables, as a new process does."""

    def found(**variables: str) -> Path | None:
        for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return caching.kernel_folder.__wrapped__()

    return found


def test_every_kernel_is_kept_there_and_no_other_function() -> None:
    """Functions of a user keep their own settings."""
    modules = [module for module in vars(cpu).values() if isinstance(module, ModuleType)]
    kernels = [value for module in modules for value in vars(module).values() if hasattr(value, "py_func")]
    folder = kernel_folder()
    assert folder is not None
    assert len(kernels) > 30
    assert all(folder in Path(kernel.stats.cache_path).parents for kernel in kernels)
    before = numba.config.CACHE_DIR, numba.config.DISABLE_JIT
    compiled()(function_to_compile)
    assert before == (numba.config.CACHE_DIR, numba.config.DISABLE_JIT)
    assert folder not in Path(njit(cache=True)(cpu.advance.py_func).stats.cache_path).parents


def test_the_folder(folder_of: Callable[..., Path | None], tmp_path: Path) -> None:
    """The folder lies in NUMBA_CACHE_DIR, otherwise in the user's cache; never beside the sources."""
    chosen = folder_of(NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert chosen is not None
    assert chosen.parent == tmp_path / "chosen"
    assert numba.__version__ in chosen.name
    assert sys.implementation.cache_tag in chosen.name
    own = folder_of(HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "caches"))
    assert own is not None
    assert own.parent == platformdirs.user_cache_path("solvers") / "kernels"
    assert own.name == chosen.name


def test_the_folder_is_another_where_any_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder_of: Callable[..., Path | None]
) -> None:
    """A function may be inlined in another file's function; rewriting the same files is no change."""
    sources = tmp_path / "cpu"
    shutil.copytree(Path(cpu.__file__).parent, sources)
    monkeypatch.setattr(caching, "__file__", str(sources / "caching.py"))
    before = folder_of(NUMBA_CACHE_DIR=str(tmp_path))
    os.utime(sources / "rings" / "sides.py", (1.0, 1.0))
    assert folder_of(NUMBA_CACHE_DIR=str(tmp_path)) == before
    with open(sources / "rings" / "sides.py", "a") as source:
        source.write("# changed\n")
    assert folder_of(NUMBA_CACHE_DIR=str(tmp_path)) != before


@pytest.mark.parametrize(
    "variables",
    [
        {"NUMBA_CACHE_DIR": "/dev/null"},  # a file
        {"NUMBA_CACHE_DIR": "/dev/null/inside"},
        {"HOME": "/dev/null"},
        {"HOME": "/proc/nobody"},  # nothing can be created here
    ],
    ids=str,
)
def test_where_nothing_can_be_written_there_is_no_folder_and_a_line_says_so(
    variables: dict[str, str], folder_of: Callable[..., Path | None], caplog: pytest.LogCaptureFixture, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert folder_of(**variables) is None
    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]
    assert ": cannot keep compiled kernels (" in caplog.messages[0]
    assert not list(tmp_path.iterdir())


def test_a_user_whom_the_system_does_not_know_has_no_folder(
    folder_of: Callable[..., Path | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Platformdirs raises an error; older versions return "~", which would be a folder in the working folder."""
    monkeypatch.chdir(tmp_path)

    def without_home(name: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    for found in (without_home, lambda name: Path("~/.cache", name)):
        monkeypatch.setattr(caching, "user_cache_path", found)
        assert folder_of() is None
    assert not list(tmp_path.iterdir())


IN_MEMORY = """
import numpy as np
from solvers.backends.cpu import cells
x = np.ones(3)
cells.advance(0, 1, np.zeros(3), x, np.ones(3), 0.5, 0.5, -np.inf)
print(x, type(cells.advance).__name__)
"""


def test_kernels_run_from_memory_and_where_a_user_has_switched_his_own_off() -> None:
    """NUMBA_DISABLE_JIT is for functions that a user debugs: Python cannot run kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": "/dev/null", "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", IN_MEMORY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[0.75 0.75 0.75] CPUDispatcher\n"
    assert done.stderr.startswith("/dev/null: cannot keep compiled kernels (Not a directory); ")
    assert done.stderr.count("\n") == 1


def function_to_compile(x: float) -> float:
    return x + 1.0


class Compiler:
    """A dispatcher whose compilation is ``step``, with its exceptions."""

    py_func = staticmethod(function_to_compile)

    def __init__(self, folder: Path, step: Callable[[str], str]) -> None:
        self.stats, self.step = SimpleNamespace(cache_path=str(folder)), step

    def compile(self, signature: str) -> str:
        return self.step(signature)


def test_one_process_compiles_a_function_and_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that add a signature at once would choose the same file; locks belong to an open file, as of two
    processes."""
    monkeypatch.setattr(caching, "_compiling", nullcontext())
    done = list[str]()

    def first(signature: str) -> str:
        later = pool.submit(caching._compile, Compiler(tmp_path, lambda other: done.append(other) or other), "second")
        with pytest.raises(TimeoutError):
            later.result(0.2)
        done.append(signature)
        return signature

    with ThreadPoolExecutor(1) as pool:
        assert caching._compile(Compiler(tmp_path, first), "first") == "first"
    assert done == ["first", "second"]


def test_one_that_is_suspended_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "LONGEST_WAIT", 0.05)
    suspended = caching._hold_lock(tmp_path / "lock")
    with ThreadPoolExecutor(1) as other:
        other.submit(suspended.__enter__).result()
        with caching._hold_lock(tmp_path / "lock"):
            pass
        other.submit(suspended.__exit__, None, None, None).result()


def test_a_disk_without_locks_needs_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with caching._hold_lock(tmp_path / "file" / "lock"):
        pass


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), EOFError("Ran out of input")])
def test_code_that_cannot_be_written_or_read_is_compiled(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk may become full, and a crash may truncate a file of code."""
    line, errors = function_to_compile.__code__.co_firstlineno, [error]
    index = tmp_path / f"test_caching.function_to_compile-{line}.py3.nbi"
    index.touch()

    def compile_again(signature: str) -> str:
        if errors:
            raise errors.pop()
        return signature

    for _ in range(2):
        assert caching._compile(Compiler(tmp_path, compile_again), "float64") == "float64"
    assert not index.exists()
    assert len(caplog.messages) == 1
