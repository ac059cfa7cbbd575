"""Digests of the files of a recorded session, and the size of the differences between two sessions.

A key is PATH of a figure, page or table; PATH:DATASET, PATH:GROUP@ATTRIBUTE of an HDF5 file; texts.json:COMMAND.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image, ImageSequence

EXECUTION = {
    "start",
    "wall_time",
    "versions",
    "git_commit",
    "command",
    "history",
    "writers",
}  # facts of the execution, not of the result
CHECKPOINT = (
    "checkpoint"  # group of the checkpoint's bytes, with wall times, in a run file; "digest" depends on all bytes
)
LINKS = {"REFERENCE_LIST", "DIMENSION_LIST"}  # references within the file, whose values are addresses


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each item of each file in a folder, without checkpoints, which hold wall times."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and ".checkpoint-" not in path.name]
    return {
        str(path.relative_to(folder)) + key: hashlib.sha256(content).hexdigest()
        for path in files
        for key, content in _items(path)
    }


def _items(path: Path) -> Iterator[tuple[str, bytes]]:
    if h5py.is_hdf5(path):
        for key, value in hdf5_items(path).items():
            yield f":{key}", _bytes(value)
    elif path.name == "texts.json":
        for line, text in json.loads(path.read_text(encoding="utf-8")).items():
            yield f":{line}", json.dumps(text).encode()
    elif path.suffix in (".png", ".gif"):
        yield "", _bytes(pixels(path))
    else:
        yield "", path.read_bytes()


def hdf5_items(path: Path) -> dict[str, Any]:
    """Return datasets by name and attributes by GROUP@NAME, without those of one execution."""
    items: dict[str, Any] = {}

    def visit(name: str, node: h5py.Group | h5py.Dataset) -> None:
        if name.rpartition("/")[2] in EXECUTION or name.split("/")[0] == CHECKPOINT:
            return
        if isinstance(node, h5py.Dataset):
            items[name] = node.asstr()[()] if h5py.check_string_dtype(node.dtype) else node[()]
        for key in set(node.attrs) - EXECUTION - LINKS - {"digest", "contents"}:
            value = node.attrs[key]
            items[f"{name}@{key}"] = _without_execution(value) if key == "segments" else np.asarray(value)

    with h5py.File(path, "r", locking=False) as file:
        visit("", file)
        file.visititems(visit)
    return items


def _without_execution(segments: str) -> str:
    """Return the segments of a resumed run, one line of JSON each, reduced to cases and times."""
    parts = [json.loads(line) for line in segments.splitlines()]
    return "\n".join(json.dumps({key: value for key, value in x.items() if key not in EXECUTION}) for x in parts)


def pixels(path: Path) -> np.ndarray:
    """Return the pixels (frames, height, width, 4) of a picture or a movie."""
    with Image.open(path) as image:
        return np.array([np.asarray(frame.convert("RGBA")) for frame in ImageSequence.Iterator(image)])


def _bytes(value: Any) -> bytes:
    value = np.asarray(value)
    content = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    return f"{value.dtype} {value.shape}".encode() + content


def differences(a: Path, b: Path, key: str) -> str:
    """Return a description of the difference between the folders ``a`` and ``b`` at a key."""
    name, _, item = key.partition(":")
    one, other = a / name, b / name
    if name.endswith("texts.json"):
        return _texts(*(json.loads(path.read_text(encoding="utf-8"))[item] for path in (one, other)))
    if item:
        return _arrays(hdf5_items(one)[item], hdf5_items(other)[item])
    if one.suffix in (".png", ".gif"):
        return _pictures(pixels(one), pixels(other))
    return _lines(*(path.read_text(encoding="utf-8", errors="replace") for path in (one, other)))


def _arrays(one: Any, other: Any) -> str:
    one, other = np.asarray(one), np.asarray(other)
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{one.dtype} {one.shape} became {other.dtype} {other.shape}"
    if one.dtype.kind not in "fiu":
        return _lines(str(one), str(other))
    with np.errstate(invalid="ignore", divide="ignore"):
        absolute = np.abs(one.astype(float) - other)
        relative = absolute / np.maximum(np.abs(one), np.abs(other))
    unlike = int(np.sum(one != other))
    largest = [float(np.nanmax(x)) if np.isfinite(x).any() else float("nan") for x in (absolute, relative)]
    return f"{unlike} of {one.size} values, at most {largest[0]:.3g} (relative {largest[1]:.3g})"


def _pictures(one: np.ndarray, other: np.ndarray) -> str:
    if one.shape != other.shape:
        return f"frames, height, width {one.shape[:3]} became {other.shape[:3]}"
    unlike = np.abs(one.astype(int) - other).max(axis=-1)
    return f"{np.count_nonzero(unlike)} of {unlike.size} pixels, at most {unlike.max()} of 255"


def _texts(one: dict[str, Any], other: dict[str, Any]) -> str:
    parts = [] if one["status"] == other["status"] else [f"status {one['status']} became {other['status']}"]
    parts += [f"{name}:{_lines(one[name], other[name])}" for name in ("out", "err") if one[name] != other[name]]
    return "; ".join(parts)


def _lines(one: str, other: str, most: int = 6, width: int = 160) -> str:
    lines: Callable[[str], list[str]] = str.splitlines
    found = [x for x in difflib.unified_diff(lines(one), lines(other), lineterm="", n=0) if x[:3] not in ("---", "+++")]
    shown = [f"\n    {line[:width]}" for line in found if not line.startswith("@@")]
    return "".join(shown[:most]) + (f"\n    ... {len(shown) - most} lines more" if len(shown) > most else "")
