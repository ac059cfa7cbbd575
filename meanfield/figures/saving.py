"""Writing of figures: atomically, and only over figures of this package."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.runtime.messages import print_message
from solvers.io.repair import FileError
from solvers.io.replacing import replacement
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SUFFIXES = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}  # metadata key of the program
PROGRAM = "meanfield figure"
FONTS: Any = {"pdf.fonttype": 42, "svg.fonttype": "none"}  # text stays text: embedded TrueType, no outlines, no Type 3
DPI = 160  # pixels an inch: the smallest text is legible at half of them


def figure_target(figure: Path) -> Path:
    """Return the path of a figure unchanged after checking that the figure can be written there.

    Raises FileError for an unknown suffix, for a path that cannot be written, and for an existing file that this
    package has not drawn.
    """
    if figure.suffix.lower() not in SUFFIXES:
        raise FileError(f"{figure}: unknown figure format {figure.suffix!r}; expected {', '.join(SUFFIXES)}")
    if not figure.parent.is_dir():
        raise FileError(f"{figure}: the folder {figure.parent} does not exist")
    if not os.access(figure.parent, os.W_OK) or figure.is_dir():
        raise FileError(f"{figure}: cannot be written")
    if os.path.lexists(figure) and not _is_drawn_here(figure):
        raise FileError(f"{figure}: exists already and was not created by meanfield; choose another path with -o")
    return figure


def save(figure: Figure, target: Path, dpi: int = DPI) -> Path:
    """Write ``figure`` to ``target`` in the format of its suffix and return ``target``. Raises FileError on failure.

    A PNG file has the texts of the figure as its description; a PDF or SVG file holds the texts anyway.
    """
    import matplotlib

    suffix = target.suffix.lower()
    metadata = {SUFFIXES[suffix]: PROGRAM} | ({"Description": "\n".join(texts(figure))} if suffix == ".png" else {})
    with (
        matplotlib.rc_context(FONTS),
        report_missing_glyphs(target),
        disk_errors(target, "cannot write it"),
        replacement(target) as new,
    ):
        figure.savefig(new, dpi=dpi, format=suffix[1:], metadata=metadata)
    return target


@contextmanager
def report_missing_glyphs(target: Path) -> Iterator[None]:
    """Print one line on the characters that the font of a figure lacks, instead of a warning for each of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph", UserWarning)
        yield
    missing = ""
    for one in caught:
        if glyph := re.match(r"Glyph (\d+) ", str(one.message)):
            missing += chr(int(glyph[1]))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:
        lacking = "".join(dict.fromkeys(missing))
        print_message(f"{target}: the font lacks {lacking}; font.family in a matplotlibrc selects another font")


def texts(figure: Figure) -> list[str]:
    """Return the visible texts of a figure without the numbers at the ticks of its axes."""
    shown = [text for text in _texts_of(figure) if text.get_visible()]
    return [text.get_text() for text in shown if text.get_text()]


def _texts_of(artist: Artist) -> Iterator[Text]:
    """Yield the texts in the parts of an artist, as its ``findobj`` does, but without those of ticks."""
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    for part in [artist.label, artist.get_offset_text()] if isinstance(artist, Axis) else artist.get_children():
        yield from _texts_of(part)
    if isinstance(artist, Text):
        yield artist


def _is_drawn_here(figure: Path) -> bool:
    """Return whether a file was drawn by this package, which its metadata name as the program."""
    return figure.is_file() and not figure.is_symlink() and PROGRAM.encode() in figure.read_bytes()
