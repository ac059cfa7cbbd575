"""Pictures of the pages, and comparisons of figures with them.

A picture is old if the code draws other texts now, which are the description of each PNG file, or other colors.
"""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from docs.figures import COMMANDS, DOCS
from meanfield.cli.parser import main

PICTURES = {Path(name).name: (DOCS / name).with_suffix(".png") for name in COMMANDS}
BLOCKS = 100  # blocks across and down a picture, whose mean colors are compared
TOLERANCE = 16  # largest difference of mean colors, of 255: less than a line that enters a block, about 25


def draw_and_compare(name: str, folder: Path) -> None:
    """Draw the figure of a picture from the run in a folder, and assert that the stored picture has its content."""
    (command,) = [commands[-1] for key, commands in COMMANDS.items() if Path(key).name == name]
    with chdir(folder):
        assert main(shlex.split(command)) == 0
    stored, figure = PICTURES[name], folder / f"{name}.png"
    assert description(stored) == description(figure), remedy(name)
    difference = np.abs(mean_colors(stored) - mean_colors(figure)).max(axis=2)
    assert difference.max() < TOLERANCE, f"{remedy(name)}; block {divmod(int(difference.argmax()), BLOCKS)}"


def assert_words_are_known(figure: Path) -> None:
    """Assert that the picture of a figure's name, if there is one, has all words of the figure.

    The figure may be that of a smaller run, with other numbers and fewer words.
    """
    if stored := PICTURES.get(figure.stem):
        assert words(figure) <= words(stored), remedy(figure.stem)


def remedy(name: str) -> str:
    """Return a line that says how to make a picture anew."""
    (key,) = [key for key in COMMANDS if Path(key).name == name]
    return f"the picture {name} is old: python docs/figures.py {key}"


def description(figure: Path) -> list[str]:
    """Return the texts of a figure."""
    with Image.open(figure) as image:
        return str(image.info["Description"]).splitlines()


def words(figure: Path) -> set[str]:
    """Return the words of a figure's texts without numbers."""
    return set(re.findall(r"[^\W\d_]+", " ".join(description(figure))))


def mean_colors(figure: Path) -> NDArray[np.float64]:
    """Return the mean colors (BLOCKS, BLOCKS, 3) of a figure's blocks."""
    with Image.open(figure) as image:
        return np.asarray(image.convert("RGB").resize((BLOCKS, BLOCKS), Image.Resampling.BOX), float)
