"""A user's own solvers.py or numpy.py in the working folder: one line names the file. The alias meanfield.solvers."""

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


@pytest.mark.parametrize("name", ["solvers.py", "numpy.py", "h5py.py", "random.py", "typing.py", "solvers/__init__.py"])
def test_the_module_run_by_name_names_the_file(tmp_path, name):
    decoy = tmp_path / name
    decoy.parent.mkdir(exist_ok=True)
    decoy.write_text(DECOY)
    shown = decoy.parent if decoy.parent != tmp_path else decoy
    done = run(tmp_path, sys.executable, "-m", "meanfield", "cases")
    module = Path(name).parts[0].removesuffix(".py")
    line = (
        f"meanfield: {shown}: would be imported instead of the module {module}; rename it or work in another folder\n"
    )
    assert (done.returncode, done.stderr, done.stdout) == (2, line, "")


def test_the_command_names_the_file(tmp_path):
    """The command looks into the working folder where PYTHONPATH says so."""
    (tmp_path / "solvers.py").write_text(DECOY)
    command = str(Path(sys.executable).with_name("meanfield"))
    done = run(tmp_path, command, "cases", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"meanfield: {tmp_path / 'solvers.py'}: would be imported instead of")
    assert done.stderr.count("\n") == 1
    assert run(tmp_path, command, "cases").returncode == 0


def test_python_raises_an_import_error_with_the_path(tmp_path):
    (tmp_path / "solvers.py").write_text(DECOY)
    code = "try:\n    import meanfield\nexcept ImportError as error:\n    print(error, error.path, sep='\\n')"
    done = run(tmp_path, sys.executable, "-c", code)
    assert done.stdout.splitlines()[0].startswith(f"{tmp_path / 'solvers.py'}: would be imported instead of")
    assert done.stdout.splitlines()[1] == str(tmp_path / "solvers.py")


def test_folders_and_files_that_shadow_nothing_are_no_hindrance(tmp_path):
    """A folder without Python in it, a module of the user's own, one that Python has loaded already."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "mine.py").write_text("")
    done = run(tmp_path, sys.executable, "-m", "meanfield", "cases")
    assert (done.returncode, done.stderr) == (0, "")


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
    """No module of the package names it absolutely, so that it can live under another name."""
    for path in Path(solvers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not [name for name in names if name.split(".")[0] in ("solvers", "meanfield")], path
