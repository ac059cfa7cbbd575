"""Recorded sessions: shortened shipped cases, variants of the cases, and sweeps, each with its commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import h5py

ROOT = Path(__file__).parents[2]
LIMITS = {"radii": 16, "count": 48, "labels": 4}  # upper limits of keys of [domain]
RESOLUTION, RESOLUTIONS = 48, {"sphere": 12, "free_radius_sphere": 8}  # manifolds named here have resolution² cells
DEGREES, TOLERANCE = 5, 1e-8
END, END_HANDED_OVER, LAYERS, SNAPSHOTS, SAMPLES = 10.0, 1e4, 4, 3, 8

# Options that no shipped case uses: the case and the overrides. A refusal is recorded as well.
VARIANTS = {
    "adaptive_circle": ("growth_circle", 'time.method="adaptive"'),
    "adaptive_tokens": ("tokens_pair", 'time.method="adaptive" time.tolerance=1e-4'),
    "gaussian_circle": ("growth_circle", 'attention.kernel="gaussian"'),
    "gaussian_heads": ("heads", 'attention.kernel="gaussian"'),
    "gaussian_tokens": ("tokens_causal", 'attention.kernel="gaussian" attention.mask="none"'),
    "mask_sphere": ("three_clusters_sphere", 'attention.mask="causal" time.end=2.0'),
    "network_sphere": ("growth_sphere", 'feed_forward={width=3,activation="gelu"}'),
    "network_tokens": ("tokens_high_dimension", 'feed_forward={width=3,activation="relu"}'),
    "noise_sphere": ("growth_sphere", "stabilizers.noise=0.02"),
    "noise_tokens": ("tokens_causal", "stabilizers.noise=0.02"),
    "reaction_linear": ("uniform", 'reaction={kind="linear",rate=0.3}'),
    "reaction_logistic": ("growth_circle", 'reaction={kind="logistic",rate=0.3}'),
    "repulsion_axisymmetric": ("collapse_high_dimension", "attention.value=[[-1.0]] domain.dimension=8"),
    "rescaled_circle": ("growth_circle", "attention.rescaled=true"),
    "scale_circle": ("growth_circle", "stabilizers.scale=2.0 stabilizers.gate=0.1 stabilizers.alpha=0.5"),
    "second_order_sphere": ("growth_sphere", 'time.method="ssprk2"'),
    "sinkhorn_sphere": ("three_clusters_sphere", 'attention.normalization="sinkhorn" time.end=2.0'),
    "sinkhorn_tokens": ("tokens_causal", 'attention.normalization="sinkhorn" attention.mask="none"'),
    "unnormalized_sphere": ("growth_sphere", 'attention.normalization="unnormalized" attention.beta=2.0'),
    "unnormalized_tokens": ("tokens_high_dimension", 'attention.normalization="unnormalized"'),
    "window_sphere": ("growth_sphere", 'attention.kernel="windowed" attention.window=1.5'),
    "window_tokens": ("tokens_causal", 'attention.kernel="windowed" attention.window=1.5 attention.mask="none"'),
    "wrong_combination": ("tokens_causal", 'attention.kernel="windowed" attention.beta=-1'),
}


@dataclass(frozen=True)
class Session:
    """Commands that share a folder.

    files   written before the commands, by name
    lines   yields the command lines, one after another; may read the files that earlier commands have written
    """

    name: str
    lines: Callable[[], Iterator[str]]
    files: dict[str, str] = field(default_factory=dict)


def sessions(movies: bool) -> list[Session]:
    """Return all sessions, whose names are unique."""
    cases = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(ROOT.glob("cases/*.toml"))}
    chosen = {name: (name, "") for name in cases} | VARIANTS
    first = {case["domain"]["manifold"]: name for name, case in reversed(cases.items())}
    figures = {name: "all" if name in first.values() else "plot" for name in cases}
    return [
        Session("commands", _describing),
        *(_sweep(path, cases) for path in sorted(ROOT.glob("sweeps/*.toml"))),
        *(
            Session(
                name, partial(_case, case, f"{shortened(cases[case])} {more}".strip(), figures.get(name, ""), movies)
            )
            for name, (case, more) in chosen.items()
        ),
    ]


def shortened(case: dict[str, Any]) -> str:
    """Return overrides with which a case takes about a second."""
    domain, initial, time, output = (case.get(name, {}) for name in ("domain", "initial", "time", "output"))
    most = LIMITS | {"resolution": RESOLUTIONS.get(domain["manifold"], RESOLUTION)}
    found = {f"domain.{key}": min(domain[key], limit) for key, limit in most.items() if key in domain}
    if "degrees" in initial:
        found["initial.degrees"] = min(initial["degrees"], DEGREES)
    if "tolerance" in time:
        found["time.tolerance"] = max(time["tolerance"], TOLERANCE)
    if "end" in time:
        found["time.end"] = min(time["end"], END_HANDED_OVER if "handover" in case else END)
    if "layers" in time:
        found["time.layers"] = min(time["layers"], LAYERS)
    if not {"every", "times"} & output.keys():
        found["output.snapshots"] = SNAPSHOTS
    return " ".join(f"{key}={value}" for key, value in (found | {"output.samples": SAMPLES}).items())


def _case(case: str, changes: str, figures: str, movies: bool) -> Iterator[str]:
    half = re.sub(r"(time\.end)=(\S+)", lambda found: f"{found[1]}={float(found[2]) / 2!r}", changes)
    half = re.sub(r"(time\.layers)=(\d+)", lambda found: f"{found[1]}={max(int(found[2]) // 2, 1)}", half)
    yield f"check {case} --set {_quoted(changes)}"
    yield f"stability {case} --set {_quoted(changes)}"
    yield f"run {case} -o one.h5 --set {_quoted(changes)}"
    if not Path("one.h5").exists():
        return
    yield f"run {case} -o one.h5 --quiet --set {_quoted(changes)}"  # refused, since the file exists
    yield f"run {case} -o two.h5 --quiet --set {_quoted(half)}"
    yield f"resume two.h5 --until {_end(Path('one.h5'))!r}"
    yield from _looking(figures)
    if movies:
        yield "movie one.h5 --quiet"
    if "time.layers" in changes:
        yield f"transformer reference {case} -o reference.h5 --quiet --set {_quoted(changes)}"


def _looking(figures: str) -> Iterator[str]:
    for file in ("one.h5", "two.h5"):
        yield f"info {file}"
        yield f"info {file} --json"
    if figures:  # some sessions draw no figures
        yield "plot one.h5"
    if figures == "all":
        yield "mergers one.h5 -o mergers.png"
        yield "compare one.h5 -o snapshots.png"
    yield "mergers one.h5 --json"
    yield "compare one.h5 two.h5"
    yield "compare one.h5 two.h5 --json"
    yield "view one.h5"
    for kind in ("vtkhdf", "netcdf", "csv"):
        yield f"export one.h5 --to {kind}"


def _quoted(changes: str) -> str:
    return " ".join(f"'{change}'" for change in changes.split())


def _end(path: Path) -> float:
    with h5py.File(path, "r") as file:
        return float(file["time"][-1])


def _sweep(path: Path, cases: dict[str, Any]) -> Session:
    """Return a session of a sweep with two values of each key, whose run files are kept."""
    import tomli_w

    table = tomllib.loads(path.read_text("utf-8"))
    case = cases[table["case"]] if isinstance(table["case"], str) else table["case"]
    table["set"] = table.get("set", {}) | _tables(shortened(case), table["keys"])
    table["keys"] = {key: _two(values) for key, values in table["keys"].items()}
    table["keep"] = {"files": True}
    return Session(f"sweep_{path.stem}", _sweeping, {"short.toml": tomli_w.dumps(table)})


def _sweeping() -> Iterator[str]:
    yield "sweep short.toml -o index.h5 --jobs 1 --quiet"
    yield "sweep short.toml -o index.h5 --jobs 1"  # no point is left to solve
    yield "info index.h5"
    yield "info index.h5 --json"
    yield "plot index.h5"


def _tables(changes: str, varied: dict[str, Any]) -> dict[str, Any]:
    """Return overrides as a table of [set], without the keys that vary."""
    pairs = (change.split("=") for change in changes.split())
    return {key: tomllib.loads(f"x = {value}")["x"] for key, value in pairs if key not in varied}


def _two(values: Any) -> Any:
    if isinstance(values, list):
        return values[:2]
    return {key: min(value, 2) if key in ("count", "seeds") else value for key, value in values.items()}


def _describing() -> Iterator[str]:
    """Yield the commands that need no run. Raises SystemExit if a command is recorded nowhere."""
    names = re.findall(r"^    ([a-z]+)\b(?=  |\n {10,})", _help(), flags=re.MULTILINE)
    recorded = {"run", "resume", "info", "plot", "mergers", "compare", "sweep", "movie", "view", "export", "check"}
    recorded |= {"cases", "schema", "stability", "transformer", "keys", "new", "convergence", "branch"}
    recorded |= {"selftest", "watch", "limit", "escape"}  # only their help: these commands have tests of their own
    if set(names) != recorded:
        raise SystemExit(f"commands {set(names) ^ recorded}: say in recorded_sessions.py how they are recorded")
    yield "--help"
    yield "--version"
    yield from (f"{name} --help" for name in names)
    yield from (f"transformer {name} --help" for name in ("read", "case", "reference"))
    yield from ("keys", "keys attention", "new circle", "new sphere --phenomenon merging", "new nowhere")
    yield "convergence growth_circle --values 8,16,32 --set time.end=1 --json"
    yield "branch noise_below --set domain.resolution=48 --json"
    yield from ("cases", "schema", "", "runn", "run --foo", "run nowhere", "plot nowhere.h5", "sweep nowhere")
    for change in (
        "attention.bet=1",
        "attention.beta=x",
        "domain.resolution=1",
        "time.end=-1",
        "domain.manifold=torus",
    ):
        yield f"check uniform --set '{change}'"


def _help() -> str:
    (script,) = entry_points(group="console_scripts", name="meanfield")
    code = f"import sys; sys.argv = ['meanfield', '--help']; from {script.module} import {script.attr} as go; go()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
