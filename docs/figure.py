"""Make the README's figure by the README's main example: ``python docs/figure.py``. About a minute.

The picture is stored in 256 colours, a third of the bytes and no difference to see.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

FIGURE = Path(__file__).with_name("metastable_sphere.png")
LARGEST = 400_000  # bytes: it is part of every clone


def main() -> None:
    """Run the case, draw it, store the figure. Raises ValueError where it would be too large."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        for arguments in (["run", "metastable_sphere"], ["plot", "metastable_sphere.h5"]):
            subprocess.run([sys.executable, "-m", "meanfield", *arguments], cwd=folder, check=True)
        drawn = Path(folder, FIGURE.name)
        with Image.open(drawn) as image:
            image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(drawn, optimize=True)
        picture = drawn.read_bytes()
    if len(picture) > LARGEST:
        raise ValueError(f"{FIGURE.name}: {len(picture)} bytes, expected at most {LARGEST}")
    FIGURE.write_bytes(picture)


if __name__ == "__main__":
    main()
