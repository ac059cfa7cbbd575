"""How long each shipped case runs, kernels compiled: ``python -m benchmarks.cases`` writes `cases/seconds.json`.

`meanfield cases` shows these times. They are of one machine, and distinguish a run of a second from one of a minute.
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
            load_and_run(name, Path(folder))  # once to compile
            seconds[name] = round(load_and_run(name, Path(folder)), 1)
            print(f"{name:24} {seconds[name]:6.1f} s", flush=True)
    TARGET.write_text(json.dumps(seconds, indent=1) + "\n", "ascii")


def load_and_run(name: str, folder: Path) -> float:
    """Seconds that a run takes, its file included."""
    began = time.perf_counter()
    run(load(name), folder / f"{name}.h5", overwrite=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
