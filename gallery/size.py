"""Sizes of ensembles: small ones in tests and in the built site, full ones by ``python -m gallery --full``."""

from __future__ import annotations

import os

NAME = "MEANFIELD_GALLERY"


def size(quick: int, full: int) -> int:
    """Return ``full`` if the environment variable MEANFIELD_GALLERY is full, else ``quick``."""
    return full if os.environ.get(NAME) == "full" else quick
