"""Data sets in scikit-learn's download cache: small files of the true formats, readable by scikit-learn's loaders."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import pickle
from pathlib import Path

import numpy as np

NUMBER, FILE = 554, "https://www.openml.org/data/v1/download/52667"  # MNIST at openml.org


def keep_mnist(home: Path, images: np.ndarray, digits: np.ndarray) -> None:
    """Write MNIST into the cache: ARFF with 784 pixels and a class, and openml.org's description of that file."""
    pixels = [f"pixel{k + 1}" for k in range(images.shape[1])]
    head = ["@RELATION mnist_784", *(f"@ATTRIBUTE {name} REAL" for name in pixels)]
    rows = [",".join(map(str, [*image, digit])) for image, digit in zip(images, digits, strict=True)]
    arff = "\n".join([*head, "@ATTRIBUTE class {0,1,2,3,4,5,6,7,8,9}", "@DATA", *rows, ""]).encode()
    facts = {"id": str(NUMBER), "name": "mnist_784", "version": "1", "format": "ARFF", "status": "active", "url": FILE}
    facts |= {"file_id": "52667", "description": "", "md5_checksum": hashlib.md5(arff).hexdigest()}
    quality = {"name": "NumberOfInstances", "value": str(float(len(images)))}
    answers = {
        "data/list/data_name/mnist_784/limit/2/data_version/1": {"data": {"dataset": [{"did": NUMBER} | facts]}},
        f"data/{NUMBER}": {"data_set_description": facts},
        f"data/features/{NUMBER}": {"data_features": {"feature": [*map(_feature, range(785), [*pixels, "class"])]}},
        f"data/qualities/{NUMBER}": {"data_qualities": {"quality": [quality]}},
    }
    for path, answer in answers.items():
        _keep(home / f"openml/openml.org/api/v1/json/{path}.gz", json.dumps(answer).encode())
    _keep(home / "openml/openml.org/data/v1/download/52667.gz", arff)


def keep_newsgroups(home: Path, texts: list[str], groups: np.ndarray) -> None:
    """Write the compressed pickle of both halves of the newsgroups into the cache."""
    from sklearn.utils import Bunch  # part of the extra `transformer`, which some environments lack

    names = [f"group.{k}" for k in range(20)]
    halves = {
        half: Bunch(data=texts[k::2], target=groups[k::2], target_names=names, filenames=np.array(texts[k::2]))
        for k, half in enumerate(("train", "test"))
    }
    (home / "20news-bydate_py3.pkz").write_bytes(codecs.encode(pickle.dumps(halves), "zlib_codec"))


def _feature(index: int, name: str) -> dict[str, str]:
    kind, target = ("nominal", "true") if name == "class" else ("numeric", "false")
    others = {"is_target": target, "is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    return {"index": str(index), "name": name, "data_type": kind, **others}


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))
