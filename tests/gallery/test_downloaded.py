"""Entries of the gallery as scripts that a user downloads: they need the installed distribution, and nothing else."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from meanfield.gallery.table import ENTRIES, FOLDER, name_of

PACKAGES = {"meanfield", "solvers"}
FAST = ("merging/antipodal_counterexample", "noise/critical_coupling", "pde/onsager")  # tokens, densities, a PDE


def modules_of(entry: Path) -> set[str]:
    """Return the top-level modules that a script imports."""
    nodes = list(ast.walk(ast.parse(entry.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {f"{'.' * node.level}{node.module}" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in plain | parts}


def dependencies() -> set[str]:
    """Return the names of the distributions that an installation without extras requires."""
    needed = [line for line in requires("meanfield-transformers") or () if "extra ==" not in line]
    return {re.match(r"[\w.-]+", line)[0].lower() for line in needed}


def test_entries_import_the_distribution_and_its_dependencies() -> None:
    known, distributions = dependencies(), packages_distributions()
    for entry in ENTRIES:
        for module in modules_of(entry) - PACKAGES - sys.stdlib_module_names:
            assert known & {name.lower() for name in distributions.get(module, ())}, f"{name_of(entry)}: {module}"


@pytest.mark.parametrize("name", FAST)
def test_a_downloaded_script_runs(tmp_path: Path, name: str) -> None:
    script = shutil.copy(FOLDER / f"{name}.py", tmp_path)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verdicts = ("reproduced", "consistent with", "refuted")
    assert done.stdout.splitlines()[-1].startswith(tuple(f"verdict    {word}" for word in verdicts)), done.stdout
