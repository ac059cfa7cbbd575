"""Layouts from which the packages run: a source folder that is not installed contains the shipped cases and sweeps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_INSTALLED = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]  # without the finder of an editable installation
from meanfield.cli.parser import main
for arguments in (["check", "uniform"], ["cases", "--search", "noise"], ["sweep", "uniform"]):
    print(main(arguments))
from meanfield.sweeping.case import load_sweep
print(len(load_sweep("hysteresis").title) > 0)
"""


@pytest.mark.skipif(not (ROOT / "meanfield").exists(), reason="the installed packages are tested")
def test_a_source_folder_that_is_not_installed_has_its_cases_and_sweeps(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", NOT_INSTALLED]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == "meanfield: uniform: is a case; solve it with: meanfield run uniform\n"
    assert [line for line in done.stdout.splitlines() if line in ("0", "2", "True")] == ["0", "0", "2", "True"]
