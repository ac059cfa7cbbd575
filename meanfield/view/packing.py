"""Encoding of arrays of levels as text: each snapshot as the difference from the previous one, modulo the levels."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import Floats

Levels = NDArray[np.unsignedinteger]
COMPRESSION = 9


def pack_frames(frames: Iterable[Levels]) -> str:
    """Return snapshots (values,) of unsigned integers as text: differences in time, deflated by zlib, in base64.

    The integers are little-endian; the first snapshot is unchanged.
    """
    packer, parts = zlib.compressobj(COMPRESSION), []
    before: Levels | None = None
    for now in frames:
        change = now if before is None else (now - before).astype(now.dtype)
        parts.append(packer.compress(change.astype(now.dtype.newbyteorder("<")).tobytes()))
        before = now
    return base64.b64encode(b"".join([*parts, packer.flush()])).decode("ascii")


def quantize_levels(parts: Floats, dtype: type[np.uint8] | type[np.uint16]) -> Levels:
    """Return fractions of a scale, from 0 to 1, as integer levels, rounded down as Matplotlib does for colors."""
    largest = int(np.iinfo(dtype).max)
    return (parts * (largest + 1)).clip(0, largest).astype(dtype)
