"""Arrays of levels as text of the page: each snapshot as its difference to the one before, modulo the levels."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import Floats

Levels = NDArray[np.unsignedinteger]
COMPRESSION = 9


def packed(frames: Iterable[Levels]) -> str:
    """Snapshots (values,) of unsigned integers, little-endian differences in time, deflated (zlib) and in base64."""
    packer, parts = zlib.compressobj(COMPRESSION), []
    before: Levels | None = None
    for now in frames:
        change = now if before is None else (now - before).astype(now.dtype)
        parts.append(packer.compress(change.astype(now.dtype.newbyteorder("<")).tobytes()))
        before = now
    return base64.b64encode(b"".join([*parts, packer.flush()])).decode("ascii")


def leveled(parts: Floats, dtype: type[np.uint8] | type[np.uint16]) -> Levels:
    """Parts of a scale, 0 to 1, as levels, rounded down as matplotlib does to find a colour."""
    largest = int(np.iinfo(dtype).max)
    return (parts * (largest + 1)).clip(0, largest).astype(dtype)
