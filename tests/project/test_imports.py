"""Import rules: rooms import in one direction, domains are not compared by name outside their room, imports are
light."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import meanfield
import solvers.mesh.mesh
from meanfield.domains.table import DOMAINS

SOLVERS = Path(solvers.mesh.mesh.__file__).parents[1]
MEANFIELD = Path(meanfield.__file__).parent
ROOMS = [  # each may import itself and those before it; meanfield itself, the version and the lazy names, is free
    "solvers.backends.protocol", "solvers.backends.sizes", "solvers.backends.formulas", "solvers.backends.cpu",
    "solvers.backends.gpu",
    "solvers.backends", "solvers.mesh", "solvers.transforms",
    "solvers.io", "solvers.terms", "solvers.remap", "solvers.timestepping", "solvers.text", "solvers.analysis",
    "solvers.recording", "solvers",
    "meanfield.shadowing", "meanfield.shipped", "meanfield.solvers", "meanfield.model.errors", "meanfield.model.kernel",
    "meanfield.model.layer_norm", "meanfield.model.normalization", "meanfield.model.trained_parts",
    "meanfield.sections",
    "meanfield.domains", "meanfield.model", "meanfield.equation", "meanfield.clusters", "meanfield.diagnostics",
    "meanfield.case", "meanfield.domains.common", "meanfield.domains.sphere", "meanfield.domains.axisymmetric",
    "meanfield.domains.line", "meanfield.domains.free_radius", "meanfield.domains.particles",
    "meanfield.domains.atoms", "meanfield.domains.trained", "meanfield.components", "meanfield.simulation",
    "meanfield.runtime", "meanfield.running",
    "meanfield.sweeping", "meanfield.analysis", "meanfield.figures", "meanfield.export", "meanfield.movie",
    "meanfield.view", "meanfield.domains.pictures", "meanfield.results", "meanfield.gallery", "meanfield.transformer",
    "meanfield.cli", "meanfield.__main__",
]  # fmt: skip
NEW_DOMAINS = sorted(
    {f"meanfield.domains.{path.parent.name}" for path in MEANFIELD.glob("domains/*/section.py")} - {*ROOMS}
)
LAST = ROOMS.index("meanfield.domains.trained") + 1
ROOMS[LAST:LAST] = NEW_DOMAINS  # may import the domains above
RECORDS = ("domain", "section", "table", "unbounded")  # files of domains/* that hold only data of a case
MAX_FILES = 20
HEAVY = ("numba", "scipy", "h5py", "matplotlib", "ot", "distributed", "cupy", "torch", "transformers", "xarray")


def module_of(path):
    parts = path.relative_to(MEANFIELD.parent if MEANFIELD in path.parents else SOLVERS.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """Return the innermost room that holds a module; records of domains, and pictures of domains, form a room each."""
    if module.startswith("meanfield.domains.") and module.split(".")[-1] in RECORDS:
        return "meanfield.domains"
    if module.startswith("meanfield.domains.") and module.endswith(".pictures"):
        return "meanfield.domains.pictures"
    return max((room for room in ROOMS if f"{module}.".startswith(f"{room}.")), key=len, default="meanfield")


@cache
def tree_of(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path):
    """Return the modules that a file imports when it runs: all except those under ``if TYPE_CHECKING``."""
    found, package = set(), module_of(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            found.update(name if is_module(name) else base for name in names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree_of(path))
    return found


def is_module(name):
    path = {"meanfield": MEANFIELD, "solvers": SOLVERS}.get(name.split(".")[0], Path("nowhere")).parent
    path = path.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def roots(path):
    return {name.split(".")[0] for name in imported(path)}


FILES = sorted([*MEANFIELD.rglob("*.py"), *SOLVERS.rglob("*.py")])
EXAMPLES = sorted(Path("gallery").rglob("*.py"))


def test_rooms_import_in_one_direction():
    wrong = []
    for path in FILES:
        room = room_of(module_of(path))
        allowed = {"meanfield", *(ROOMS if room == "meanfield" else ROOMS[: ROOMS.index(room) + 1])}
        names = {name for name in imported(path) if name.split(".")[0] in ("meanfield", "solvers")}
        wrong += [f"{room} may not import {name}" for name in names if room_of(name) not in allowed]
    assert not wrong


def test_only_backends_compile():
    outside = [path for path in FILES if not room_of(module_of(path)).startswith("solvers.backends")]
    assert not [path for path in outside if {"numba", "cupy"} & roots(path)]


def test_only_backends_know_the_module_of_a_device():
    """Files elsewhere request the backend of an array, of a device or of the host."""
    by_name = re.compile(r"backends\.(cpu|gpu)\b|backends import .*\b(cpu|gpu)\b")
    outside = [path for path in [*FILES, *EXAMPLES] if SOLVERS / "backends" not in path.parents]
    assert not [path for path in outside if by_name.search(path.read_text(encoding="utf-8"))]


def test_numba_is_used_by_its_public_interface():
    """Internals, which may change with the next release, and code written for LLVM are not used."""
    used = [(path, f"{name}.") for path in FILES for name in imported(path)]
    assert not [pair for pair in used if pair[1].startswith(("numba.core.", "llvmlite."))]


def test_underscore_names_belong_to_this_project():
    """Underscore names of other libraries may change with the next release. ``os._exit`` is documented."""
    nodes = [(path, node) for path in FILES for node in ast.walk(tree_of(path))]
    own = {"_exit"} | {name for _, node in nodes for name in defined(node)}
    used = [(path, name) for path, node in nodes for name in accessed(node) if re.match("_[^_]", name)]
    assert len(used) > 1000
    assert not [f"{path}: {name}" for path, name in used if name not in own]


def defined(node):
    """Return the names of this project that a node of a syntax tree defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            return [name]
    return []


def accessed(node):
    """Return the names that a node of a syntax tree imports, or reads or sets as an attribute."""
    match node:
        case ast.Attribute(attr=name):
            return [name]
        case ast.ImportFrom(names=aliases):
            return [alias.name for alias in aliases]
    return []


def test_only_files_about_transformers_import_torch():
    others = [path for path in FILES if "transformer" not in path.parts]
    assert not [path for path in others if {"torch", "transformers"} & roots(path)]


def test_a_folder_is_a_room_that_says_what_lives_there():
    for folder in sorted({path.parent for path in FILES}):
        assert len(list(folder.glob("*.py"))) <= MAX_FILES, folder
        text = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
        assert len(text) > 20, folder


def names_of_domains(node):
    """Return the names of domains among the constants of an expression."""
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and part.value in DOMAINS}


def test_nothing_outside_its_room_compares_the_name_of_a_domain():
    paths = [path for path in FILES if MEANFIELD in path.parents and (MEANFIELD / "domains") not in path.parents]
    nodes = [(path, node) for path in paths for node in ast.walk(tree_of(path)) if compares_a_domain(node)]
    assert not [f"{path}: {ast.unparse(node)}" for path, node in nodes]


def compares_a_domain(node):
    """Return whether a node of a syntax tree compares the name of a domain, or selects by the name."""
    match node:
        case ast.Compare():
            return bool(names_of_domains(node))
        case ast.Dict(keys=keys):
            return len(set().union(*(names_of_domains(key) for key in keys if key))) > 1
        case ast.match_case(pattern=pattern):
            return bool(names_of_domains(pattern))
        case ast.Subscript(value=ast.Dict(keys=keys)) | ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys))):
            return any(names_of_domains(key) for key in keys if key)
        case ast.Call(func=ast.Attribute(attr=name) as function):
            return "with" in name and "manifold" in ast.unparse(function)
    return False


LIGHT = ("solvers", "meanfield", "meanfield.solvers", "meanfield.cli.parser", "meanfield.transformer.model",
         "meanfield.transformer.families", "meanfield.transformer")  # fmt: skip

PARTS_OF_SCIPY = "[name for name in ('scipy.fft', 'scipy.special', 'scipy.sparse') if name in sys.modules]"
SELDOM = ["scipy.optimize", "scipy.spatial", "scipy.integrate", "scipy.sparse", "matplotlib"]


def test_importing_loads_nothing_heavy():
    loaded = f"import sys, {', '.join(LIGHT)}; print([name for name in {HEAVY} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_run_loads_nothing_that_few_runs_use():
    """SciPy's optimize, with its own imports, once took a third of a small run's time."""
    loaded = f"import sys, meanfield.running; print([name for name in {SELDOM} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_small_runs_load_no_part_of_scipy(tmp_path):
    """Importing scipy.fft or scipy.special takes 0.15 s, a sixth of a small run; Numba itself loads scipy.linalg."""
    run = ["--quiet", "--overwrite", "-o", str(tmp_path / "run.h5"), "--set", "time.end=0.1"]
    runs = [
        ["run", "growth_circle", *run],
        ["run", "tokens_pair", *run],
        ["run", "uniform", *run, "domain.resolution=8"],
    ]
    code = f"import sys; from meanfield.cli.parser import main; [main(run) for run in {runs}]; print({PARTS_OF_SCIPY})"

    def loaded():
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return shown.stdout.split("\n")[-2]

    assert loaded() == "[]" or loaded() == "[]"  # a process that compiles, the first, loads more modules of Numba
