"""Opening of HDF5 files for reading, whatever else has them open in this process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .heaps import require_sound_heaps

if TYPE_CHECKING:
    import h5py

DRIVER = "unlogged"


def open_file(path: str | Path, *, locking: bool = False, **options: Any) -> h5py.File:
    """Open a file for reading as ``h5py.File`` does, without HDF5's locks and apart from handles of other libraries.

    All handles of a file that one process opens with one driver share a state in HDF5: a second handle with other
    locks is refused while a user's is open. The driver here is HDF5's logging driver without a log, which reads as the
    default driver does. So a user's handles (h5py, xarray) act like those of another process. (It allocates otherwise:
    files are written with the default driver, always as new files, which nobody has open.)
    """
    import h5py

    _register_driver()
    return h5py.File(path, "r", driver=DRIVER, locking=locking, **options)


def open_to_read(path: str | Path, *, swmr: bool = False) -> h5py.File:
    """Open for reading. Raises FileError for a pipe, a device and a heap without end, OSError for what is no HDF5."""
    require_sound_heaps(path)
    return open_file(path, swmr=swmr)


@cache
def _register_driver() -> None:
    import h5py

    h5py.register_driver(DRIVER, lambda access: access.set_fapl_log(b"", 0, 0))
