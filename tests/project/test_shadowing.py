"""A user's own solvers.py or numpy.py in the working folder, and the alias meanfield.solvers."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield
import solvers

DECOY = "raise AssertionError('imported')\n"


def run(folder, *command, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["solvers.py", "numpy.py", "h5py.py", "random.py", "typing.py", "runpy.py", "solvers/__init__.py"]
)
def test_the_module_run_by_name_imports_nothing_from_the_working_folder(tmp_path, name):
    decoy = tmp_path / name
    decoy.parent.mkdir(exist_ok=True)
    decoy.write_text(DECOY)
    done = run(tmp_path, sys.executable, "-m", "meanfield", "check", "uniform")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_imports_the_solvers_beside_its_package(tmp_path):
    """The command also searches the working folder if PYTHONPATH names that folder."""
    (tmp_path / "solvers.py").write_text(DECOY)
    command = str(Path(sys.executable).with_name("meanfield"))
    done = run(tmp_path, command, "check", "uniform", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_that_an_uninstallation_has_left_behind_does_no_harm(tmp_path):
    """Compiled code in ``solvers/**/__pycache__`` forms a package without a module, which Python would import."""
    (tmp_path / "solvers" / "backends" / "__pycache__").mkdir(parents=True)
    code = "import meanfield, solvers; print(solvers.sphere(4).cells > 0)"
    done = run(tmp_path, sys.executable, "-c", code, PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert run(tmp_path, sys.executable, "-m", "meanfield", "check", "uniform").returncode == 0


def test_python_raises_an_import_error_with_the_path(tmp_path):
    (tmp_path / "solvers.py").write_text(DECOY)
    code = "try:\n    import meanfield\nexcept ImportError as error:\n    print(error, error.path, sep='\\n')"
    done = run(tmp_path, sys.executable, "-c", code)
    assert done.stdout.splitlines()[0].startswith(f"{tmp_path / 'solvers.py'}: would be imported instead of")
    assert done.stdout.splitlines()[1] == str(tmp_path / "solvers.py")


def test_the_alias_has_the_names_of_solvers():
    from meanfield.solvers import Advection

    assert Advection is solvers.Advection
    assert all(getattr(meanfield.solvers, name) is getattr(solvers, name) for name in solvers.__all__)
    assert dir(meanfield.solvers) == sorted(solvers.__all__)
    with pytest.raises(AttributeError, match=r"^module 'meanfield\.solvers' has no attribute 'nothing'$"):
        _ = meanfield.solvers.nothing
    with pytest.raises(AttributeError, match=r"^module 'meanfield' has no attribute 'nothing'$"):
        _ = meanfield.nothing


def test_solvers_imports_relative_to_itself():
    """No module of the package imports it by an absolute name, so that the package can have another name."""
    for path in Path(solvers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not [name for name in names if name.split(".")[0] in ("solvers", "meanfield")], path
