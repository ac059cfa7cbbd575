"""Folder of 31 short texts: ten of this package, and the beginnings of texts that Python and scikit-learn ship.

    python docs/studies/texts.py texts

The latter are 36 words each from 14 descriptions of data sets (scikit-learn, BSD license) and 7 topics of the language
reference (Python, PSF license).
"""

import sys
from importlib import resources
from pathlib import Path
from pydoc_data.topics import topics

from sklearn.datasets import descr

from meanfield.transformer.sources import read_texts

TOPICS = ("class", "customization", "exceptions", "execmodel", "naming", "objects", "try")
FIRST, COUNT = 12, 36  # words: those before are titles


def write_texts(folder: Path) -> None:
    """Write the texts as files NAME.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(file.name for file in resources.files(descr).iterdir() if file.name.endswith(".rst"))
    found = {name.removesuffix(".rst"): (resources.files(descr) / name).read_text("utf-8") for name in files}
    found |= {name: topics[name] for name in TOPICS}
    for name, words in found.items():
        (folder / f"{name}.txt").write_text(" ".join(words.split()[FIRST : FIRST + COUNT]), encoding="utf-8")
    for words, name in read_texts(None):
        (folder / name).write_text(words, encoding="utf-8")


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]))
