"""Limits of the machine: available memory and disk, compared with the needs of a case before the run."""

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

_ADVICE = "--force runs the case nevertheless"


def require_room(case: Case, output: str | Path) -> None:
    """Raise CaseError, with a message of one line, if a case needs more memory or disk than is available."""
    if exceeded := list(exceeded_limits(case, Path(output).parent)):
        raise CaseError(f"{'; '.join(exceeded)}; {_ADVICE}")


def exceeded_limits(case: Case, folder: Path) -> list[str]:
    """Return one message for each resource, memory or disk of ``folder``, of which a case needs more than its limit."""
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
    """Return the bytes that this process can still allocate within the limits of machine, control group and process."""
    return max(min(_machine_memory(), _group_memory(), _own_memory()), 0.0)


def free_disk(folder: Path) -> float:
    """Return the bytes available for a new file in a folder, at most the limit of file sizes; infinite if unknown."""
    max_size = _limit("RLIMIT_FSIZE")
    try:
        return min(max_size, float(shutil.disk_usage(folder).free))
    except OSError:
        return max_size


def _limit(name: str) -> float:
    """Return a limit of this process in bytes, infinite if there is none; ``name`` is a constant of ``resource``."""
    if resource is None:
        return math.inf
    limit = resource.getrlimit(getattr(resource, name))[0]
    return math.inf if limit == resource.RLIM_INFINITY else float(limit)


def _machine_memory() -> float:
    """Return the available memory of the machine in bytes, else its total memory; infinite if neither is reported."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else math.inf


def _group_memory() -> float:
    """Return the memory in bytes left to a container (Linux control group); infinite without a limit."""
    limit, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if not (limit and used and limit[0].isdecimal() and used[0].isdecimal()):
        return math.inf
    return float(limit[0]) - float(used[0])


def _own_memory() -> float:
    """Return the address space that this process may still allocate in bytes; infinite without a limit."""
    limit, sizes = _limit("RLIMIT_AS"), _lines("/proc/self/statm")
    if resource is None or math.isinf(limit) or not sizes:
        return limit
    return limit - float(int(sizes[0].split()[0]) * resource.getpagesize())


def _lines(path: str) -> list[str]:
    """Return the lines of a system file, such as /proc/meminfo; an empty list where the system has no such file."""
    try:
        return Path(path).read_text("ascii").splitlines()
    except OSError:
        return []
