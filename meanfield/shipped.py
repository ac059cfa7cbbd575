"""Shipped cases, sweeps and entries of the gallery, in an installed package and in a source folder."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def shipped_folder(kind: str) -> Traversable:
    """Return the folder of the shipped "cases", "sweeps" or "gallery/entries".

    A wheel has the folder inside the package, a source folder beside it. The folder beside the package could not be
    found by imports, which may refer to another installed source folder.
    """
    installed = resources.files("meanfield") / kind
    return installed if installed.is_dir() else Path(__file__).parents[1] / kind


def shipped_texts(kind: str) -> dict[str, str]:
    """Return the TOML texts of the shipped "cases" or "sweeps" by name, in order."""
    files = sorted(shipped_folder(kind).iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): file.read_text("utf-8") for file in files if file.name.endswith(".toml")}
