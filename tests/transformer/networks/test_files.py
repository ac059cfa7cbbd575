"""Local data: npz, IDX and JSON files, folders of messages, and refusals in one line."""

import gzip
import json
import struct

import numpy as np
import pytest
from support.downloads import keep_newsgroups

torch = pytest.importorskip("torch")

from meanfield.case.errors import CaseError  # noqa: E402
from meanfield.cli.parser import main  # noqa: E402
from meanfield.transformer.networks.data import task_of  # noqa: E402
from meanfield.transformer.networks.section import TrainingCase  # noqa: E402

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (20, 28, 28), dtype=np.uint8)
IMAGES[0, 0, :2] = 0, 255
LABELS = np.arange(20) % 10


def task(path, kind="mnist", *overrides):
    return task_of(TrainingCase().replace([f"data.kind={kind}", f"data.file={path}", "data.patch=7", *overrides]))


def write_idx(path, array, number=8, order=">"):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, number, array.ndim, *array.shape)
    content = head + array.astype(array.dtype.newbyteorder(order)).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_pair(folder, half, images, labels, ending=""):
    write_idx(folder / f"{half}-images-idx3-ubyte{ending}", images)
    write_idx(folder / f"{half}-labels-idx1-ubyte{ending}", labels.astype(np.uint8))


def as_npz(folder):
    np.savez(folder / "a.npz", x=IMAGES, y=LABELS)
    return folder / "a.npz"


def as_json(folder):
    (folder / "a.json").write_text(json.dumps({"x": IMAGES.tolist(), "y": LABELS.tolist()}))
    return folder / "a.json"


def as_idx(folder):
    write_pair(folder, "train", IMAGES, LABELS)
    return folder / "train-images-idx3-ubyte"


def as_zipped_idx(folder):
    write_pair(folder, "train", IMAGES, LABELS, ".gz")
    return folder


@pytest.mark.parametrize("write", [as_npz, as_json, as_idx, as_zipped_idx])
def test_images_of_each_format_are_the_same_examples(write, tmp_path):
    found = task(write(tmp_path))
    order = np.random.default_rng(0).permutation(20)
    assert (found.shape.length, found.shape.features, found.shape.classes) == (16, 49, 10)
    assert (len(found.train), len(found.test)) == (15, 5)
    first = IMAGES[order[0]].astype(float)
    np.testing.assert_allclose(found.test.inputs[0, 1], first[:7, 7:14].ravel() / 127.5 - 1, atol=1e-6)
    np.testing.assert_array_equal(found.train.labels, LABELS[order[5:]])


def test_the_folder_of_the_npm_package_has_a_file_for_each_digit(tmp_path):
    """A digit 10 that does not exist shows that labels are numbers, not places in the order of the alphabet."""
    for digit in range(11):
        pixels = IMAGES[digit == LABELS] / 255
        (tmp_path / f"{digit}.json").write_text(json.dumps({"data": pixels.ravel().tolist()}))
    found = task(tmp_path, "mnist", "data.test=0.5", "data.tokens=rows")
    order = np.random.default_rng(0).permutation(20)
    by_digit = np.concatenate([IMAGES[digit == LABELS] for digit in range(10)])
    np.testing.assert_allclose(found.test.inputs, by_digit[order[:10]] / 127.5 - 1, atol=1e-6)
    np.testing.assert_array_equal(found.test.labels, np.repeat(np.arange(10), 2)[order[:10]])


def test_two_files_are_training_and_test_examples(tmp_path):
    write_pair(tmp_path, "train", IMAGES[:12], LABELS[:12], ".gz")
    write_pair(tmp_path, "t10k", IMAGES[12:], LABELS[12:])
    found = task(tmp_path, "images", "data.most=10")
    assert (len(found.train), len(found.test)) == (10, 8)
    assert sorted(found.test.labels.tolist()) == sorted(LABELS[12:].tolist())
    np.savez(tmp_path / "k.npz", x_train=IMAGES[:12], y_train=LABELS[:12], x_test=IMAGES[12:], y_test=LABELS[12:])
    assert len(task(tmp_path / "k.npz", "images").train) == 12


def test_arrays_are_states_of_tokens_or_words(tmp_path):
    states, words = RANDOM.standard_normal((20, 5, 3)), RANDOM.integers(0, 7, (20, 5))
    words[0, 0] = 6
    np.savez(tmp_path / "a.npz", x=states, y=LABELS)
    found = task(tmp_path / "a.npz", "arrays", "training.precision=float64")
    assert (found.shape.length, found.shape.features, found.shape.words) == (5, 3, 0)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_array_equal(found.train.inputs, states[order[5:]])
    np.savez(tmp_path / "b.npz", x=words, y=LABELS)
    found = task(tmp_path / "b.npz", "arrays")
    assert (found.shape.length, found.shape.features, found.shape.words) == (5, 0, 7)
    np.testing.assert_array_equal(found.train.inputs, words[order[5:]])


def test_a_command_trains_on_a_local_file(tmp_path, capsys):
    path = as_npz(tmp_path)
    arguments = ["transformer", "train", "mnist", "--set", f"data.file={path}", "training.epochs=1", "network.layers=1"]
    assert main([*arguments, "-o", str(tmp_path / "run.h5"), "--quiet"]) == 0
    assert "after 1 epochs" in capsys.readouterr().out


HEADER = "From: someone@somewhere\nSubject: any\n\n"
BODIES = [
    "the first line of number {}\n> a quoted line\nthe second line of it",
    "In article 5 someone wrote:\nthe body {} has\n\nmany paragraphs of words\n--\nsignature",
    "only a line {} of words, and of marks: !",
    "\n\nlines after\n\nempty ones {}\n----\n",
]


def write_messages(root, texts, groups):
    for k, (text, group) in enumerate(zip(texts, groups, strict=True)):
        folder = root / f"group.{group:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{k:04}").write_bytes(text.encode("latin-1"))


def test_messages_of_a_folder_are_those_that_scikit_learn_reads(tmp_path, monkeypatch):
    """Headers, footers and quotations are removed as in ``sklearn.datasets.fetch_20newsgroups``."""
    texts = [HEADER + BODIES[k % 4].format(k) for k in range(80)]
    groups = np.arange(80) % 20
    keep_newsgroups(tmp_path, texts, groups)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    write_messages(tmp_path / "news", texts, groups)
    theirs = task_of(TrainingCase().replace(["data.kind=newsgroups", "data.length=12"]))
    ours = task(tmp_path / "news", "newsgroups", "data.length=12")
    assert theirs.shape == ours.shape

    def rows(found):
        both = [(*x.tolist(), int(y)) for part in (found.train, found.test) for x, y in zip(part.inputs, part.labels)]  # noqa: B905
        return sorted(both)

    assert rows(ours) == rows(theirs)


def test_folders_by_date_are_training_and_test_messages(tmp_path):
    for half, count in (("train", 12), ("test", 8)):
        texts = [f"{HEADER}Words of {half} {k} words" for k in range(count)]
        write_messages(tmp_path / f"20news-bydate-{half}", texts, np.arange(count) % 4)
    found = task(tmp_path, "newsgroups", "data.tokens=words", "data.length=4")
    assert (len(found.train), len(found.test), found.shape.classes) == (12, 8, 4)
    assert found.shape.words == 3 + 12 + 1  # "words", "of", "train", twelve numbers, and all further words
    assert set(found.test.inputs[:, 2].tolist()) == {found.shape.words - 1}  # "test" is not a training word


def damaged(folder, name):
    path = folder / name
    path.write_bytes(b"\x00\x00\x08\x03\x00\x00\x00\x02short")
    return path


def write_npz(folder, **arrays):
    np.savez(folder / "b.npz", **arrays)
    return folder / "b.npz"


REFUSED = {
    "missing": (lambda folder: folder / "none.npz", "cannot be read: .*No such file"),
    "ending": (lambda folder: folder / "none.csv", "expected an npz, json or images-idx3 file"),
    "zip": (lambda folder: damaged(folder, "a.npz"), "cannot be read"),
    "idx": (lambda folder: damaged(folder, "a-images-idx3-ubyte"), "cannot be read"),
    "json": (lambda folder: damaged(folder, "a.json"), "cannot be read"),
    "empty": (lambda folder: folder, "cannot be read: one or two files"),
    "key": (lambda folder: write_npz(folder, x=IMAGES), "cannot be read: no "),
    "pickle": (lambda folder: write_npz(folder, x=np.array([{}]), y=LABELS[:1]), "cannot be read: Object arrays"),
    "lengths": (lambda folder: write_npz(folder, x=IMAGES, y=LABELS[:5]), "cannot be read: examples"),
    "one example": (lambda folder: write_npz(folder, x=IMAGES[:1], y=LABELS[:1]), "cannot be read: examples"),
    "smaller test images": (
        lambda folder: write_npz(folder, x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:, 7:], y_test=LABELS),
        "training examples .28, 28., but test examples .21, 28.",
    ),
    "nan": (lambda folder: write_npz(folder, x=IMAGES * np.nan, y=LABELS), "not finite"),
    "sides": (lambda folder: write_npz(folder, x=IMAGES[:, :27], y=LABELS), "expected images with sides divisible"),
    "one value": (lambda folder: write_npz(folder, x=0 * IMAGES, y=LABELS), "expected images with more than one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_without_examples_are_refused_in_a_line(name, tmp_path):
    write, message = REFUSED[name]
    with pytest.raises(CaseError, match=rf"^data\.file = .*{message}") as error:
        task(write(tmp_path), "images")
    assert "\n" not in str(error.value)


def test_a_folder_without_groups_is_refused_in_a_line(tmp_path):
    with pytest.raises(CaseError, match="expected a folder with two or more folders of messages"):
        task(tmp_path, "newsgroups")
