"""Sizes of ensembles: small by default, full by ``python -m meanfield.gallery --full``."""

from __future__ import annotations

import os

NAME = "MEANFIELD_GALLERY"


def size(quick: int, full: int) -> int:
    """Return ``full`` if the environment variable MEANFIELD_GALLERY is full, else ``quick``."""
    return full if os.environ.get(NAME) == "full" else quick
