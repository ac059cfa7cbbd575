"""Tools that some tests need and some machines lack: without one the test is skipped, or fails where all must run.

With MEANFIELD_TEST_ALL set, as `.ci/run` does, a missing tool is a failure: a test that is skipped everywhere shows
nothing.
"""

from __future__ import annotations

import importlib
import os
import shutil
from types import ModuleType
from typing import NoReturn

import pytest


def need(tool: str) -> str:
    """Return the path of a program such as "ffmpeg" or "chromium". Skip the calling test, or fail, without the
    program."""
    path = shutil.which(tool)
    return path if path is not None else missing(f"{tool} is not on the PATH")


def need_module(name: str) -> ModuleType:
    """Return a Python module such as "vtkmodules.vtkIOHDF". Skip the calling test, or fail, without the module."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        return missing(f"module {error.name} is not installed")


def missing(what: str) -> NoReturn:
    if os.environ.get("MEANFIELD_TEST_ALL"):
        pytest.fail(f"{what}, and MEANFIELD_TEST_ALL is set", pytrace=False)
    pytest.skip(what, allow_module_level=True)
