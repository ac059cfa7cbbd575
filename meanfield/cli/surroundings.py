"""Files of settings in the working folder, which commands do not follow, and variables that no command can follow."""

from __future__ import annotations

import os
import re
from contextlib import chdir
from importlib import import_module


def ignore_settings_of_folder() -> None:
    """Keep Matplotlib and Numba from the settings in the working folder, which may name programs and libraries to load.

    Settings of the user hold: those of ``MATPLOTLIBRC``, of Matplotlib's folder in the user's home, of ``NUMBA_...``.
    """
    if os.path.lexists("matplotlibrc"):
        with chdir(os.path.dirname(os.path.abspath(__file__))):
            import_module("matplotlib")
    if os.path.lexists(".numba_config.yaml"):
        os.environ.setdefault("NUMBA_CUDA_DRIVER", "")  # the others of Numba's settings name no code


def problem_of_variables() -> str | None:
    """Return a line on a variable with which Numba cannot be imported; None where there is none."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if re.fullmatch(r"\s*(-\d+|0+)\s*", threads):
        return f"NUMBA_NUM_THREADS={threads}: expected a whole number >= 1"
    return None
