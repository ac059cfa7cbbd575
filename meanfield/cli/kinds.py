"""Kind of a command's argument: case, sweep, run file or index of a sweep; errors name the command that takes it.

The file also validates the path of a figure before a command computes anything.
"""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

from meanfield.shipped import shipped_folder

_MAX_BYTES = 2**24  # bytes read of a case or a sweep, more than any valid file has
HDF5 = b"\x89HDF\r\n\x1a\n"  # the first bytes of an HDF5 file


def require_kind(name_or_path: str, *kinds: str) -> None:
    """Raise CaseError, with the command to use, for an argument that is known to be none of the given kinds.

    Kinds are those of ``kind_of``.
    """
    from meanfield.case.errors import CaseError

    found = kind_of(name_or_path)
    if found and found not in kinds:
        raise CaseError(f"{name_or_path}: is {WORDS[found].format(shlex.quote(name_or_path))}")


def require_file(path: str, *kinds: str) -> None:
    """Raise CaseError for a file known to be none of the given kinds, and OSError if the file cannot be opened."""
    from meanfield.runtime.paths import require_readable

    require_kind(path, *kinds)
    require_readable(path)


def require_figure(output: str | None) -> None:
    """Raise FileError if a figure cannot be drawn at the path ``output``; None requests no figure."""
    if output is not None:
        from meanfield.figures.saving import figure_target

        figure_target(Path(output))


def kind_of(name_or_path: str) -> str:
    """Return the kind of a command's argument: ``case``, ``sweep``, ``run`` or ``index`` (of a sweep).

    The kind is empty for a missing file, or for a file whose reader will report its kind.
    """
    path = Path(name_or_path)
    if not path.is_file():
        return next((kind for kind in ("case", "sweep") if _is_shipped(name_or_path, kind)), "")
    with path.open("rb") as file:
        if file.read(len(HDF5)) != HDF5:
            return _kind_of_text(path)
    from meanfield.sweeping.results import is_sweep

    return "index" if is_sweep(path) else "run"


def _is_shipped(name: str, kind: str) -> bool:
    """Return whether the package has a file of this name and kind, "case" or "sweep"."""
    return Path(name).name == name and (shipped_folder(f"{kind}s") / f"{name}.toml").is_file()


def _kind_of_text(path: Path) -> str:
    """Return the kind of a text file, ``case`` or ``sweep``, by the tables that only one of them has; else empty."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8-sig")
        tables = tomllib.loads(text).keys()
    except (ValueError, RecursionError):
        return ""
    return "sweep" if "keys" in tables else "case" if tables & {"domain", "attention", "initial"} else ""


WORDS = {
    "case": "a case; solve it with: meanfield run {0}",
    "sweep": "a sweep; solve it with: meanfield sweep {0}",
    "run": "a run's file; plot it with: meanfield plot {0}, resume it with: meanfield resume {0}",
    "index": "the index of a sweep; plot it with: meanfield plot {0}, describe it with: meanfield info {0}",
}
