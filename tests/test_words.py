"""Nobody who reads the physics can tell where it runs: words of devices stand where a mesh is placed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORDS = re.compile(r"cuda|cupy|(?<![a-z])gpus?(?![a-z])|devices?(?![a-z])", re.IGNORECASE)
PLACED = {"meanfield/setup.py"}  # the mesh is given to its kernels
COMMAND_LINE = {"meanfield/cli.py", "meanfield/cli_commands.py", "meanfield/cli_options.py"}
BACKENDS = "solvers/backends/"


def files_with_words():
    paths = (path for folder in ("meanfield", "solvers") for path in ROOT.glob(f"{folder}/**/*.py"))
    files = (path.relative_to(ROOT).as_posix() for path in paths)
    return {file for file in files if not file.startswith(BACKENDS) and WORDS.search((ROOT / file).read_text())}


def test_words_of_devices_stand_where_the_mesh_is_placed_and_on_the_command_line():
    assert files_with_words() == PLACED | COMMAND_LINE


FOUND = ["import cupy", "kernels on the GPU", "device = 1", "cuda.jit", "on_gpu(x)", "devices"]


@pytest.mark.parametrize("text", FOUND)
def test_words_are_found(text):
    assert WORDS.search(text)


@pytest.mark.parametrize("text", ["how they deviate", "deviceful", "gpurge"])
def test_other_words_are_not(text):
    assert not WORDS.search(text)
