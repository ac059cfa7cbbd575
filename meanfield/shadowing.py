"""Files of a user that stand before modules of the same name: a ``solvers.py`` or ``numpy.py`` in the working folder.

Imports only what Python has loaded at its start, for the user's files may stand before anything else.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from itertools import pairwise

_BAD_INPUT = 2  # the exit status of commands
_DEPENDENCIES = ("numpy", "scipy", "numba", "llvmlite", "h5py", "matplotlib", "msgspec", "tomli_w", "tqdm", "finufft",
                 "ot", "cupy", "numba_cuda", "distributed", "torch", "transformers")  # fmt: skip


def refuse_shadowed() -> None:
    """Refuse a user's file that would be imported in place of a module that this package needs.

    Raises ImportError with the file's path; in the command, prints that line and exits with status 2.
    """
    path = _shadowing_solvers() or (_shadowing_any(sys.path[0]) if _run_by_name() else None)
    if path is None:
        return
    name = os.path.basename(path).partition(".")[0]
    message = f"{path}: would be imported instead of the module {name}; rename it or work in another folder"
    if not (_run_by_name() or os.path.basename(sys.argv[0]).partition(".")[0] == "meanfield"):
        raise ImportError(message, name=name, path=path)
    sys.stderr.write(f"meanfield: {message}\n")
    sys.exit(_BAD_INPUT)


def _run_by_name() -> bool:
    """Whether this process is ``python -m meanfield``, where Python looks into the working folder first."""
    return ("-m", "meanfield") in pairwise(sys.orig_argv)


def _shadowing_solvers() -> str | None:
    """The path from which ``solvers`` would be imported, None where it is the package beside this one."""
    found, ours = find_spec("solvers"), os.path.join(os.path.dirname(os.path.dirname(__file__)), "solvers")
    path = found and _path(found)
    return path if path and not _same(path, ours) else None


def _shadowing_any(folder: str) -> str | None:
    """The first path in ``folder`` that stands before a module which is found elsewhere, None where there is none."""
    known = sys.stdlib_module_names.union(_DEPENDENCIES)
    for name in sorted({entry.partition(".")[0] for entry in os.listdir(folder or ".")} & known):
        in_folder = PathFinder.find_spec(name, [folder])
        elsewhere = PathFinder.find_spec(name, sys.path[1:])
        if in_folder and in_folder.origin and elsewhere and not _same(_path(in_folder), _path(elsewhere)):
            return _path(in_folder)
    return None


def _path(found: ModuleSpec) -> str:
    """The file of a module, the folder of a package."""
    folders = list(found.submodule_search_locations or ())
    return os.path.abspath(folders[0] if folders else found.origin or found.name)


def _same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
