"""Protection of imports from files of the working folder, such as a ``solvers.py`` or ``numpy.py`` of the user's.

``python -m meanfield`` puts the working folder first on the import path, and a command removes it. This module imports
only modules that Python has loaded at its start, because files of the user may precede all others.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_PACKAGE)


def secure_imports() -> None:
    """Remove the working folder from the import path of a command, and import the ``solvers`` beside this package.

    Raises ImportError, with the file's path, where a program of the user's would import another ``solvers``.
    """
    called = (getattr(sys, "argv", None) or [""])[0]
    if called == "-m" and not sys.flags.safe_path:  # the value that Python sets until it has found the module
        _leave_out_working_folder()
    ours, found = os.path.join(_ROOT, "solvers"), find_spec("solvers")
    path = _path(found)
    if not os.path.isdir(ours) or _same(path, ours):
        return
    if _is_command(called) or _is_namespace(found):
        _import_solvers(ours)
        return
    message = f"{path}: would be imported instead of the module solvers; rename it or work in another folder"
    raise ImportError(message, name="solvers", path=path)


def _leave_out_working_folder() -> None:
    """Remove the first folder of the import path, where Python has put the working folder or that of the script.

    If it is the source folder of this package, it is moved to the end of the path instead.
    """
    folder = sys.path.pop(0)
    if _same(folder, _ROOT):
        sys.path.append(folder)


def _is_command(called: str) -> bool:
    """Return whether ``called``, the first element of sys.argv, is that of a ``meanfield`` command.

    It is "-m" during the start of ``python -m``, a script ``meanfield``, or a file in the folder of this package.
    """
    script = os.path.basename(called)
    return called == "-m" or script.partition(".")[0] == "meanfield" or _same(os.path.dirname(called), _PACKAGE)


def _is_namespace(found: ModuleSpec | None) -> bool:
    """Return whether no module is found, or only folders without one, such as those that an uninstallation leaves."""
    return found is None or (found.origin is None and found.submodule_search_locations is not None)


def _import_solvers(folder: str) -> None:
    """Import the package ``solvers`` of a folder, in place of another package of this name."""
    file = os.path.join(folder, "__init__.py")
    spec = spec_from_file_location("solvers", file, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["solvers"] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _path(found: ModuleSpec | None) -> str:
    """Return the path of the file of a module or of the folder of a package, or "" for None."""
    if found is None:
        return ""
    folders = list(found.submodule_search_locations or ())
    return os.path.abspath(folders[0] if folders else found.origin or found.name)


def _same(one: str, other: str) -> bool:
    """Return whether two paths lead to the same existing file or folder."""
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
