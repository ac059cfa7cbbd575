"""Texts that models read: from a file, a folder, the standard input, or this package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import numpy as np

from meanfield.case.errors import CaseError, refusal
from solvers.mesh.mesh import Floats

TEXTS = resources.files("meanfield.transformer") / "texts"
Texts = str | Path | Mapping[str, str] | None


def read_texts(folder: Texts) -> list[tuple[str, str]]:
    """Return (text, name) of each file ``*.txt`` in a folder, in the order of the names.

    None is ten texts of the package; a mapping of names to texts is used unchanged. Raises CaseError for a folder
    without texts, or a file that is not text.
    """
    if folder is None:
        return [
            (file.read_text("utf-8"), file.name) for file in sorted((TEXTS / "ten").iterdir(), key=lambda f: f.name)
        ]
    if isinstance(folder, Mapping):
        found = [(words, name) for name, words in folder.items()]
    else:
        found = [read_text(path) for path in sorted(Path(folder).glob("*.txt"))]
    if not found:
        raise CaseError(f"texts = {folder}: expected a folder with files *.txt")
    return found


def read_text_or_image(text: str | Path | None) -> tuple[str | Floats, str]:
    """Read a text, or an image from a file ``.npy`` of numbers (channels, height, width), with its origin.

    Raises CaseError as ``read_text``, and for a file that is no array of numbers.
    """
    if text is None or Path(text).suffix != ".npy":
        return read_text(text)
    try:
        image = np.load(text, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise refusal("text", str(text), f"an array of numbers in a file .npy ({error})") from None
    if not isinstance(image, np.ndarray) or image.dtype.kind not in "fiu" or not np.isfinite(image).all():
        raise refusal("text", str(text), "an array of finite numbers in a file .npy")
    return image.astype(float), str(text)


def read_text(text: str | Path | None, name: str = "text", more: str = "") -> tuple[str, str]:
    """Read a text from a file, and return the text and a description of its origin.

    text   path of a file in UTF-8, "-" for the standard input, None for the text of the package
    name   name of the argument, for messages
    more   further valid values, for messages

    Raises CaseError for a file that is empty, is not text, or cannot be opened.
    """
    if text is None:
        words, source = (TEXTS / "forest.txt").read_text("utf-8"), "default text"
    elif str(text) == "-":
        words, source = sys.stdin.read(), "standard input"
    else:
        try:
            if Path(text).is_char_device() or Path(text).is_block_device():
                raise refusal(name, str(text), f'a file, or "-" for the standard input{more}')
            words, source = Path(text).read_text("utf-8-sig"), str(text)
        except UnicodeDecodeError:
            raise CaseError(f"{text}: not UTF-8 text") from None
        except OSError as error:
            expected = f'an existing file, or "-" for the standard input{more}'
            raise refusal(name, str(text), f"{expected} ({error.strerror})") from None
    if not words.strip():
        raise CaseError(f"{source}: holds no text")
    return words, source
