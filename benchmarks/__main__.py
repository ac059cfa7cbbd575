"""Timings and accuracies: ``python -m benchmarks [NAME ...] [--json FILE] [--page FILE] [--history FILE]``."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import (
    accuracy,
    cost,
    examples,
    gpu,
    layer,
    machine,
    memory,
    notebook,
    pairs,
    peers,
    remaining,
    samples,
    shallow_water,
    startup,
    steps,
    sweep,
    table,
    texts,
    tokens,
    training,
    writing,
)
from benchmarks.measure import Figure

BENCHMARKS: dict[str, Callable[[], Iterable[Figure]]] = {
    "velocity": cost.velocity,
    "flux": cost.flux,
    "scaling": cost.scaling,
    "general": layer.general,
    "steps": steps.steps,
    "pairs": pairs.pairs,
    "tokens": tokens.tokens,
    "memory": memory.memory,
    "notebook": notebook.notebook,
    "peers": peers.peers,
    "texts": texts.texts,
    "examples": examples.examples,
    "startup": startup.startup,
    "remaining": remaining.remaining,
    "samples": samples.samples,
    "shallow_water": shallow_water.shallow_water,
    "sweep": sweep.sweep,
    "training": training.training,
    "writing": writing.writing,
    "accuracy": accuracy.accuracy,
    "gpu": gpu.gpu,
    "gpu_over_cpu": gpu.gpu_over_cpu,
    "launches": gpu.launches,
}
RESULTS = Path(__file__).parent / "results"
ALONE = {
    "examples",
    "gpu",
    "gpu_over_cpu",
    "launches",
    "peers",
    "remaining",
    "shallow_water",
    "texts",
    "training",
}  # run by name only, since these need a GPU, other packages or minutes


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the requested files. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        default=["all"],
        help=f"{', '.join(BENCHMARKS)}; or all but {', '.join(sorted(ALONE))}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here, with machine and versions")
    parser.add_argument("--page", type=Path, metavar="FILE", help="replace the table of measured numbers in this file")
    parser.add_argument("--history", type=Path, metavar="FILE", help="add a line for this commit to this table")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - {*BENCHMARKS, "all"}:
        parser.error(f"{', '.join(sorted(unknown))}: expected one or more of {', '.join(BENCHMARKS)}, all")

    figures = []
    for name in [name for name in BENCHMARKS if name not in ALONE] if "all" in options.names else options.names:
        for figure in BENCHMARKS[name]():
            figures.append(figure)
            print(table.line(figure), flush=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = table.to_json(figures, date, machine.machine() | gpu.machine(), machine.versions())
    kept = options.json or (RESULTS / "gpu.json" if options.names == ["gpu"] and gpu.machine() else None)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    if options.page is not None:
        results = json.loads(text)
        rows = table.markdown(results)
        if options.names == ["examples"]:
            rows = f"{table.heading(results)}\n\n{examples.markdown(figures)}"
        table.update_page(options.page, rows)
    if options.history is not None:
        table.add_to_history(options.history, json.loads(text), machine.commit())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
