"""Figure of the README, made by the README's main example: ``python docs/figure.py``. The script takes about a minute.

The picture is stored in 256 colors, a third of the bytes without a visible difference.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

FIGURE = Path(__file__).with_name("metastable_sphere.png")
MAX_BYTES = 400_000  # every clone of the repository contains the figure


def main() -> None:
    """Run the case, plot it, and store the figure. Raises ValueError for a file of more than MAX_BYTES."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        for arguments in (["run", "metastable_sphere"], ["plot", "metastable_sphere.h5"]):
            subprocess.run([sys.executable, "-m", "meanfield", *arguments], cwd=folder, check=True)
        drawn = Path(folder, FIGURE.name)
        with Image.open(drawn) as image:
            image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(drawn, optimize=True)
        picture = drawn.read_bytes()
    if len(picture) > MAX_BYTES:
        raise ValueError(f"{FIGURE.name}: {len(picture)} bytes, expected at most {MAX_BYTES}")
    FIGURE.write_bytes(picture)


if __name__ == "__main__":
    main()
