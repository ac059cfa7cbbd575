"""Data sets: digits of scikit-learn, stripes, characters of texts, local files; downloaded: MNIST, newsgroups."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from meanfield.case.errors import CaseError, refusal
from meanfield.transformer.loading import INSTALL, first_line
from meanfield.transformer.networks.files import Array, Part, read_arrays, read_groups
from meanfield.transformer.networks.network import Shape
from meanfield.transformer.networks.section import Data, TrainingCase
from meanfield.transformer.sources import read_text, read_texts
from solvers.mesh.mesh import Floats, Integers

SIDE = 8  # pixels on a side of an image
STRIPES = 400  # synthetic images, a quarter of them for each of four orientations
MAX_CHARACTERS, MAX_WORDS = 96, 4096  # distinct characters, or words, of newsgroups; all others are UNKNOWN
UNKNOWN = "�"
STRIDE = 3  # characters from one passage to the next in data where passages may overlap


@dataclass(frozen=True)
class Examples:
    """Examples of a data set: inputs (examples, n, features), or words (examples, n), and labels.

    Words are numbers in a vocabulary. Labels are (examples,), or (examples, n) for a label of each token.
    """

    inputs: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Task:
    """Learning task: the shape of input and output, training examples and test examples."""

    shape: Shape
    train: Examples
    test: Examples


def task_of(case: TrainingCase) -> Task:
    """Return the learning task of a training case: its training and test examples, and the shape of input and output.

    Raises CaseError if data or the device are missing, or a text is shorter than its passages.
    """
    device = case.training.device
    if device == "cuda" and not torch.cuda.is_available():
        raise refusal("training.device", device, '"cpu": PyTorch finds no CUDA device')
    task = TASKS[case.data.kind](case.data)
    precision = getattr(torch, case.training.precision)
    train, test = (
        Examples(
            part.inputs.to(device, precision if task.shape.features else part.inputs.dtype), part.labels.to(device)
        )
        for part in (task.train, task.test)
    )
    return Task(task.shape, train, test)


def _digits(data: Data) -> Task:
    """Return the task of reading 1797 handwritten digits of 8×8 pixels (Alpaydin and Kaynak, 1998), from scikit-learn.

    Pixels from 0 to 16 are scaled to [−1, 1].
    """
    found = _fetch_data("digits", "load_digits")
    return _image_task(data, [(found.images / 8 - 1, found.target)], 10)


def _mnist(data: Data) -> Task:
    """Return the task of reading 70 000 handwritten digits of 28×28 pixels (LeCun, Cortes, Burges).

    The images are downloaded from openml.org by scikit-learn, and pixels from 0 to 255 are scaled to [−1, 1]. The
    images of ``data.file``, if given, replace these, see :func:`_images`.
    """
    if data.file is not None:
        return _images(data)
    from pandas import CategoricalDtype

    label = {
        28**2: CategoricalDtype([str(digit) for digit in range(10)])
    }  # otherwise pandas 3 converts labels to numbers, which scikit-learn cannot read
    options = {"version": 1, "as_frame": False, "parser": "pandas", "read_csv_kwargs": {"dtype": label}}
    found = _fetch_data("mnist", "fetch_openml", "mnist_784", **options)
    images = np.asarray(found.data, dtype=float).reshape(-1, 28, 28) / 127.5 - 1
    return _image_task(data, [(images, np.asarray(found.target).astype(np.int32))], 10)


def _newsgroups(data: Data) -> Task:
    """Return the task of finding the newsgroup, one of 20, from the first characters or words of a message.

    Headers, footers and quotations are removed, and messages shorter than ``data.length`` left out. The vocabulary is
    that of the training part of a folder with two parts. Raises CaseError if fewer than two messages remain in a part.
    """
    if data.file is None:
        found = _fetch_data("newsgroups", "fetch_20newsgroups", subset="all", remove=("headers", "footers", "quotes"))
        parts, groups = [(found.data, np.asarray(found.target))], 20
    else:
        parts, groups = read_groups(data.file)
    split = [([_pieces(text, data) for text in texts], labels) for texts, labels in parts]
    counts = Counter(piece for pieces in split[0][0] for piece in pieces)
    most = MAX_WORDS if data.tokens == "words" else MAX_CHARACTERS
    words = [*sorted(piece for piece, _ in counts.most_common(most - 1)), UNKNOWN]
    encoded = [_encode_messages(data, pieces, labels, words) for pieces, labels in split]
    return Task(Shape(data.length, 0, len(words), groups), *_divide(data, encoded))


def _pieces(text: str, data: Data) -> list[str]:
    """Return the characters of a text, or its words and punctuation marks in lower case."""
    return re.findall(r"\w+|[^\w\s]", text.lower()) if data.tokens == "words" else list(" ".join(text.split()))


def _encode_messages(data: Data, texts: list[list[str]], labels: Integers, words: list[str]) -> Part:
    """Return the words of long enough messages as numbers (messages, length), and their labels (messages,)."""
    long_enough = [k for k, pieces in enumerate(texts) if len(pieces) >= data.length]
    if len(long_enough) < 2:
        longest = sorted(map(len, texts))[-2:][0]
        raise CaseError(f"data.length = {data.length}: expected at most {longest}: fewer than two messages are longer")
    inputs = np.stack([_encode_text(texts[k][: data.length], words) for k in long_enough])
    return inputs, labels[long_enough].astype(np.int32)


def _images(data: Data) -> Task:
    """Return the task of classifying the gray images of ``data.file``, with pixels scaled to [−1, 1]."""
    parts = [(_as_images(data, x), y) for x, y in read_arrays(str(data.file))]
    low, high = min(float(x.min()) for x, _ in parts), max(float(x.max()) for x, _ in parts)
    if low == high:
        raise refusal("data.file", data.file, "images with more than one value")
    return _image_task(data, [(2 * (x - low) / (high - low) - 1, y) for x, y in parts], _classes(parts))


def _as_images(data: Data, x: Floats) -> Floats:
    """Return images (examples, rows, columns) from x of this shape, or (examples, pixels) of square images."""
    side = round(x[0].size ** 0.5)
    if x.ndim == 2 and side**2 == x.shape[1]:
        x = x.reshape(-1, side, side)
    if x.ndim != 3 or (data.tokens == "patches" and (x.shape[1] % data.patch or x.shape[2] % data.patch)):
        raise refusal(
            "data.file", data.file, f"images with sides divisible by data.patch = {data.patch}, not {x.shape[1:]}"
        )
    return x.astype(float)


def _arrays(data: Data) -> Task:
    """Return the task of classifying the examples of ``data.file``: (examples, n, features), or words (examples, n)."""
    parts = read_arrays(str(data.file))
    first = parts[0][0]
    are_words = first.ndim == 2 and all(x.dtype.kind in "iu" and x.min() >= 0 for x, _ in parts)
    if not (first.ndim == 3 or are_words):
        raise refusal("data.file", data.file, "x (examples, n, features), or whole numbers (examples, n) from 0")
    words = 1 + max(int(x.max()) for x, _ in parts) if are_words else 0
    typed = [(x.astype(np.int64 if are_words else float), y) for x, y in parts]
    shape = Shape(first.shape[1], 0 if are_words else first.shape[2], words, _classes(parts))
    return Task(shape, *_divide(data, typed))


def _classes(parts: list[Part]) -> int:
    """Return the number of classes among the labels of the parts of a data set."""
    return 1 + max(int(y.max()) for _, y in parts)


def _fetch_data(kind: str, name: str, *options: Any, **named: Any) -> Any:
    """Load a data set by scikit-learn, which caches it, and return it. Raises CaseError if it is not available."""
    try:
        from sklearn import datasets
    except ImportError:
        raise CaseError(f"data.kind = {kind}: scikit-learn is not installed: {INSTALL}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning of each attempt to download
            return getattr(datasets, name)(*options, **named)
    except (OSError, ValueError) as error:  # no network, or a response that is no data set
        raise CaseError(f"data.kind = {kind}: cannot be downloaded: {first_line(error)}") from None


def _stripes(data: Data) -> Task:
    """Return the task of finding the orientation, one of four, of stripes in synthetic images with noise.

    The images are drawn from a fixed seed.
    """
    random = np.random.default_rng(0)
    label = np.arange(STRIPES, dtype=np.int32) % 4
    row, column = np.mgrid[:SIDE, :SIDE]
    across = np.cos(label[:, None, None] * np.pi / 4) * column + np.sin(label[:, None, None] * np.pi / 4) * row
    phase = random.uniform(0, 2 * np.pi, STRIPES)[:, None, None]
    images = np.sin(2 * np.pi / 4 * across + phase) + 0.5 * random.standard_normal(across.shape)
    return _image_task(data, [(images, label)], 4)


def _image_task(data: Data, parts: list[Part], classes: int) -> Task:
    """Return the task of classifying images (examples, rows, columns) with labels (examples,) in ``classes`` classes.

    Two ``parts`` are the training and the test examples; one part is divided at random. Tokens are patches or rows of
    pixels.
    """
    tokens = [(images if data.tokens == "rows" else _patches(images, data.patch), labels) for images, labels in parts]
    _, n, features = tokens[0][0].shape
    return Task(Shape(n, features, 0, classes), *_divide(data, tokens))


def _divide(data: Data, parts: list[Part]) -> tuple[Examples, Examples]:
    """Return training and test examples: the two parts of a source, or its only part, divided at random.

    At most ``data.most`` examples are drawn from each part of the source.
    """
    drawn = [np.random.default_rng(data.seed).permutation(len(labels))[: data.most] for _, labels in parts]
    if len(parts) == 2:
        (train, test), numbers = parts, drawn
        return _examples(train, numbers[0]), _examples(test, numbers[1])
    order = drawn[0]
    held = min(max(round(data.test * len(order)), 1), len(order) - 1)  # neither part is empty
    return _examples(parts[0], order[held:]), _examples(parts[0], order[:held])


def _examples(part: Part, chosen: Array) -> Examples:
    """Return the ``chosen`` examples of a part of the data as tensors."""
    inputs, labels = part
    return Examples(
        torch.from_numpy(np.ascontiguousarray(inputs[chosen])), torch.from_numpy(labels[chosen].astype(np.int64))
    )


def _patches(images: Floats, size: int) -> Floats:
    """Return the square patches (examples, patches, size²) of images (examples, rows, columns), row by row."""
    down, across = images.shape[1] // size, images.shape[2] // size
    cut = images.reshape(-1, down, size, across, size).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(cut.reshape(len(images), down * across, size**2))


def _passages(data: Data) -> Task:
    """Return the task of finding the text, one of ten, that contains a passage.

    The test examples are from the end of each text.
    """
    texts = [text for text, _ in read_texts(None)]
    words = sorted(set("".join(texts)))
    parts = [_split(text, data) for text in texts]
    train, test = (
        _classified_examples([_windows(_encode_text(part[k], words), data.length, STRIDE) for part in parts])
        for k in (0, 1)
    )
    return Task(Shape(data.length, 0, len(words), len(texts)), train, test)


def _characters(data: Data) -> Task:
    """Return the task of finding the next character after each character of a passage.

    The test examples are from the end of the text.
    """
    texts = [text for text, _ in [read_text(None), *read_texts(None)]]
    text = "\n".join(texts) if data.file is None else read_text(data.file, "data.file")[0]
    words = sorted(set(text))
    train, test = (
        _next_character_examples(_windows(_encode_text(part, words), data.length + 1, step))
        for part, step in zip(_split(text, data), (STRIDE, data.length), strict=True)
    )
    return Task(Shape(data.length, 0, len(words), len(words), by_token=True), train, test)


def _split(text: str, data: Data) -> tuple[str, str]:
    """Split a text into its beginning, for training, and its end, the fraction ``data.test`` of its characters.

    Raises CaseError if either part is not longer than a passage.
    """
    cut = round((1 - data.test) * len(text))
    parts = text[:cut], text[cut:]
    if min(map(len, parts)) <= data.length:
        raise refusal("data.length", data.length, f"less than {min(map(len, parts))}, the characters of a part")
    return parts


def _encode_text(text: Sequence[str], words: list[str]) -> Integers:
    """Return the numbers of the words of a text; the last number stands for unknown words."""
    number_of = {word: k for k, word in enumerate(words)}
    return np.array([number_of.get(word, len(words) - 1) for word in text], dtype=np.int64)


def _windows(numbers: Integers, length: int, step: int) -> Integers:
    """Return passages (passages, length) of encoded characters; each begins ``step`` characters after the previous."""
    return np.lib.stride_tricks.sliding_window_view(numbers, length)[::step].copy()


def _classified_examples(passages: list[Integers]) -> Examples:
    """Return the passages of several texts, an array for each text, as examples labeled by the number of the text."""
    labels = np.repeat(np.arange(len(passages)), [len(part) for part in passages])
    return Examples(torch.from_numpy(np.concatenate(passages)), torch.from_numpy(labels))


def _next_character_examples(passages: Integers) -> Examples:
    """Return passages (passages, length + 1) as examples, each labeled by the next character at every position."""
    return Examples(torch.from_numpy(passages[:, :-1].copy()), torch.from_numpy(passages[:, 1:].copy()))


TASKS: dict[str, Callable[[Data], Task]] = {
    "digits": _digits,
    "stripes": _stripes,
    "mnist": _mnist,
    "images": _images,
    "arrays": _arrays,
    "newsgroups": _newsgroups,
    "passages": _passages,
    "characters": _characters,
}
