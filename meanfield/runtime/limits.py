"""Limits of the machine: memory and disk that there are, against what a case needs, before it is run."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.runtime.cost import as_bytes, file_bytes, memory_bytes

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_ADVICE = "--force runs it nevertheless"


def require_room(case: Case, output: str | Path) -> None:
    """Raise CaseError, in one line, for a case that needs more memory, or a larger file, than there is room for."""
    if exceeded := list(exceeded_limits(case, Path(output).parent)):
        raise CaseError(f"{'; '.join(exceeded)}; {_ADVICE}")


def exceeded_limits(case: Case, folder: Path) -> list[str]:
    """What a case needs more of than there is, each in some words; its file would lie in ``folder``."""
    needs = (
        ("memory", memory_bytes(case), available_memory(), "are available"),
        ("the file", file_bytes(case), free_disk(folder), f"are free in {folder.absolute()}"),
    )
    return [
        f"{what}: about {as_bytes(need)} are needed, {as_bytes(room)} {where}"
        for what, need, room, where in needs
        if need > room
    ]


def available_memory() -> float:
    """Bytes that this process can still have: of the machine, of its control group, of its own limit."""
    return max(min(_machine_memory(), _group_memory(), _own_memory()), 0.0)


def free_disk(folder: Path) -> float:
    """Bytes that a new file in a folder can have; infinite where that cannot be known."""
    max_size = _limit("RLIMIT_FSIZE")
    try:
        return min(max_size, float(shutil.disk_usage(folder).free))
    except OSError:
        return max_size


def _limit(name: str) -> float:
    """Return a limit of this process in bytes, infinite where there is none."""
    if resource is None:
        return math.inf
    limit = resource.getrlimit(getattr(resource, name))[0]
    return math.inf if limit == resource.RLIM_INFINITY else float(limit)


def _machine_memory() -> float:
    """Return the memory that is available, or all that there is; infinite where the system names neither."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else math.inf


def _group_memory() -> float:
    """Memory left to a container: its limit less what it uses."""
    limit, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if not (limit and used and limit[0].isdecimal() and used[0].isdecimal()):
        return math.inf
    return float(limit[0]) - float(used[0])


def _own_memory() -> float:
    """Return the address space that this process may still take, in bytes."""
    limit, sizes = _limit("RLIMIT_AS"), _lines("/proc/self/statm")
    if resource is None or math.isinf(limit) or not sizes:
        return limit
    return limit - float(int(sizes[0].split()[0]) * resource.getpagesize())


def _lines(path: str) -> list[str]:
    """Lines of a file of the system; none where the system has no such file."""
    try:
        return Path(path).read_text("ascii").splitlines()
    except OSError:
        return []
