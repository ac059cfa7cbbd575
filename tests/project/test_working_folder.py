"""Files of the working folder named like modules or settings: no command runs them."""

import os
import subprocess
import sys
import threading

import pytest
from support.sweeping import CASE, write

from meanfield.case.load import load
from meanfield.runtime.children import can_start_python
from meanfield.sweeping.local_pool import with_processes
from meanfield.sweeping.separate_process import solve_in_separate_process
from meanfield.sweeping.tasks import Work
from meanfield.transformer.experiments.workers import Workers

LIBRARIES = (
    "solvers", "numpy", "scipy", "numba", "llvmlite", "h5py", "matplotlib", "msgspec", "tomli_w", "tqdm",
    "platformdirs", "filelock", "ot", "xarray", "h5netcdf", "PIL", "cupy", "torch", "distributed", "yaml",
    "sitecustomize",
)  # fmt: skip
# Python's own -m imports these from the working folder before any line of the package runs.
BEFORE_US = subprocess.run(
    [sys.executable, "-P", "-c", "import runpy, sys; print(*sys.modules)"], capture_output=True, text=True, check=True
).stdout.split()
NAMES = (*(sys.stdlib_module_names - set(BEFORE_US)), *LIBRARIES)
SWEEP = '[keys]\n"attention.beta" = [2.0, 4.0]\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working folder, with files that append their name to the file ``ran``."""
    folder, ran = tmp_path / "work", tmp_path / "ran"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({name!r} + ' ')\n")
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho program >> {ran}\n")
    program.chmod(0o755)
    (folder / "matplotlibrc").write_text(f"animation.ffmpeg_path: {program}\nbackend: module://random\n")
    write(folder / "case.toml", CASE.replace("case.", ""))
    write(folder / "sweep.toml", SWEEP, CASE)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    yield folder
    assert not ran.exists(), ran.read_text()


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "meanfield", *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_import_nothing_from_the_working_folder(folder):
    command("run", "case.toml", "-o", "run.h5", "--quiet")
    command("sweep", "sweep.toml", "-o", "sweep.h5", "--jobs", "2", "--quiet")


def test_the_settings_of_the_working_folder_choose_no_program(folder):
    """Matplotlib reads the folder's settings before the user's; the command passed instead is not the folder's
    program."""
    code = (
        "import sys; from meanfield.cli.surroundings import ignore_settings_of_folder as ignore; ignore();"
        "from matplotlib import rcParams; print(rcParams['animation.ffmpeg_path'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ffmpeg\n"


def test_a_process_of_a_thread_imports_nothing_from_the_working_folder(folder):
    (result,) = solve_in_separate_process({0: (folder / "case.toml").read_text()}, False, 60.0).values()
    assert result.status == "done"


def test_processes_of_experiments_import_nothing_from_the_working_folder(folder):
    assert list(Workers(2).map(abs, [-1, 2])) == [1, 2]
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.parametrize(("name", "is_python"), [
    ("python3.13t", True), ("Python", True), ("pypy3", True), ("pythonw.exe", True), ("happyd", False),
    ("photocopy", False), ("therapy.exe", False), ("", False),
])  # fmt: skip
def test_python_is_recognized_by_its_name(monkeypatch, name, is_python):
    monkeypatch.setattr(sys, "executable", name and f"/opt/python/{name}")
    assert can_start_python() == is_python


def test_an_application_that_is_no_python_starts_itself_nowhere(folder, monkeypatch):
    """``sys.executable`` of a frozen application is the application."""
    monkeypatch.setattr(sys, "executable", str(folder / "program"))
    assert list(Workers(2).map(abs, [-1, 2])) == [1, 2]
    work = Work([0, 1], lambda number: load(folder / "case.toml"))
    assert [result.status for results in with_processes(2)(work) for result in results.values()] == ["done", "done"]
    monkeypatch.setattr("meanfield.sweeping.separate_process._own", threading.local())
    with pytest.raises(RuntimeError, match=r"^a time limit requires a Python interpreter, and '.*program' is none$"):
        solve_in_separate_process({0: ""}, False, 60.0)
