"""Run times of the shipped cases with compiled kernels: ``python -m benchmarks.cases`` writes `cases/seconds.json`.

`meanfield cases` shows these times. The times of one machine distinguish a run of a second from one of a minute.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from meanfield.case.load import load, shipped
from meanfield.running import run

TARGET = Path(__file__).parents[1] / "cases" / "seconds.json"


def main() -> None:
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in shipped():
            load_and_run(name, Path(folder))  # compile first
            seconds[name] = round(load_and_run(name, Path(folder)), 1)
            print(f"{name:24} {seconds[name]:6.1f} s", flush=True)
    TARGET.write_text(json.dumps(seconds, indent=1) + "\n", "ascii")


def load_and_run(name: str, folder: Path) -> float:
    """Run a case into a file and return the seconds that this takes."""
    began = time.perf_counter()
    run(load(name), folder / f"{name}.h5", overwrite=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
