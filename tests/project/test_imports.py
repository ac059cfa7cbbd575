"""Imports point one way, and importing the packages loads nothing heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield
import solvers.mesh.mesh

SOLVERS = Path(solvers.mesh.mesh.__file__).parent
MEANFIELD = Path(meanfield.__file__).parent
EDGE = ("cli", "run", "case", "setup", "progress")  # what sees a case or a terminal
PHYSICS = [
    "attention",
    "equation",
    "initial",
    "stability",
    "clusters",
    "diagnostics",
    "heads",
    "layers",
    "causal",
    "reactions",
    "particles",
    "particles_flow",
    "particles_initial",
    "particles_field",
    "particle_sums",
    "particle_pairs",
    "particles_motion",
    "particles_steps",
    "initial_fields",
    "brownian",
    "atoms",
    "atoms_flow",
    "hand_over",
    "slow_manifold",
    "clusters_tokens",
    "pairs",
    "diagnostics_particles",
    "axisymmetric",
    "line",
    "free_radius",
    "free_radius_attention",
    "free_radius_initial",
    "feed_forward",
    "layer_norm",
    "matrices",
    "sinkhorn",
    "particle_sinkhorn",
    "sequence",
    "diagnostics_table",
    "diagnostics_clusters",
    "diagnostics_unbounded",
    "diagnostics_axisymmetric",
    "diagnostics_atoms",
    "hand_over_states",
    "initial_axisymmetric",
    "problem",
]
HEAVY = ("numba", "scipy", "h5py", "matplotlib", "ot", "distributed", "cupy", "torch", "transformers")


def imported(path):
    """Modules that a file imports when it runs: all but those under ``if TYPE_CHECKING``."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([path.parent.name] * bool(node.level) + [node.module] * bool(node.module))
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def roots(path):
    return {name.split(".")[0] for name in imported(path)}


@pytest.mark.parametrize("path", sorted(SOLVERS.rglob("*.py")), ids=lambda path: path.stem)
def test_solvers_know_no_physics(path):
    assert "meanfield" not in roots(path)
    if "backends" not in path.relative_to(SOLVERS).parts:
        assert not {"numba", "cupy"} & roots(path)


@pytest.mark.parametrize("path", sorted(MEANFIELD.rglob("*.py")), ids=lambda path: path.stem)
def test_only_backends_compile(path):
    assert not {"numba", "cupy"} & roots(path)


@pytest.mark.parametrize("path", sorted([*MEANFIELD.rglob("*.py"), *SOLVERS.rglob("*.py")]), ids=lambda path: path.stem)
def test_only_files_about_transformers_know_torch(path):
    assert path.stem.startswith("transformer_") or not {"torch", "transformers"} & roots(path)


@pytest.mark.parametrize("module", PHYSICS)
def test_physics_sees_no_case(module):
    names = imported(MEANFIELD / f"{module}.py")
    assert any(name.startswith("solvers") for name in names)  # the reader of imports reads them
    for edge in EDGE:
        seen = {name for name in names if name.startswith(f"meanfield.{edge}")}
        assert not seen, f"meanfield.{module} imports {seen}"


LIGHT = ["solvers", "meanfield", "meanfield.cli.parser", "meanfield.transformer.model", "meanfield.transformer.weights"]


SELDOM = ["scipy.optimize", "scipy.spatial", "scipy.integrate", "scipy.sparse", "matplotlib"]


@pytest.mark.parametrize("package", LIGHT)
def test_importing_loads_nothing_heavy(package):
    loaded = f"import sys, {package}; print([name for name in {HEAVY} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_run_loads_nothing_that_few_runs_use():
    """SciPy's optimize, with what it brings, once took a third of a small run's time."""
    loaded = f"import sys, meanfield.running; print([name for name in {SELDOM} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
