"""Damaged attributes of files without a digest, as of killed writers: refused in a line, or harmless."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.status import run

from meanfield.case.load import load
from meanfield.cli.parser import main
from solvers.io.run_file import read

SHORT = ["output.snapshots=2", "output.samples=4"]
CASES = {
    "circle": ("growth_circle", [*SHORT, "domain.resolution=48", "time.end=0.1"]),
    "sphere": ("growth_sphere", [*SHORT, "domain.resolution=12", "time.end=0.1"]),
    "atoms": ("merging_pair_circle", [*SHORT, "domain.resolution=48"]),
    "handed over": ("merging_far_circle", [*SHORT, "domain.resolution=48"]),
    "tokens": ("tokens_high_dimension", [*SHORT, "domain.count=8", "domain.dimension=3", "time.end=0.1"]),
    "plane": ("contraction_plane", [*SHORT, "domain.resolution=16", "domain.radii=32", "time.end=0.01"]),
}
VIEW, MERGERS, INFO, RESUME = "view {0} -o page.html", "mergers {0}", "info {0}", "resume {0} --until 30"
DAMAGED = [  # kind of run, dataset of the attribute (or the file), name, value, command
    ("circle", "/", "digest", np.arange(3.0), INFO),
    ("circle", "/", "exploded", np.arange(3.0), VIEW),
    # Fewer cells than the file has: kernels once read and wrote beyond their arrays.
    ("circle", "/", "resolution", 3, VIEW),
    ("circle", "/", "resolution", True, VIEW),
    ("sphere", "/", "resolution", 1152, VIEW),
    ("atoms", "/", "hand_over_time", "text", VIEW),
    ("tokens", "diagnostics/energy", "log_unit", ["a", "b"], VIEW),
    ("tokens", "diagnostics/clusters", "scale", np.nan, VIEW),
    ("tokens", "diagnostics/clusters", "scale", "text", VIEW),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for name, case in CASES.items():
        run(load(*case), folder / f"{name}.h5", quiet=True)
    return folder


def damaged(runs: Path, kind: str, owner: str, name: str, value: Any) -> str:
    """Write a copy of a run here, with another value of an attribute and without a digest, and return its path."""
    shutil.copy(runs / f"{kind}.h5", "run.h5")
    with h5py.File("run.h5", "r+") as file:
        file.attrs["digest"] = ""
        file[owner].attrs[name] = value
        # Otherwise the attribute would be a user's addition, which does not matter.
        file.attrs["contents"] += f"\n@{name}"
    return "run.h5"


def require_refused(command: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.format(path).split()) == 2
    error = capsys.readouterr().err
    assert "damaged: " in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(("kind", "owner", "name", "value", "command"), DAMAGED)
def test_a_damaged_attribute_is_refused(
    kind: str, owner: str, name: str, value: Any, command: str, runs: Path, in_folder: None, capsys: Any
) -> None:
    require_refused(command, damaged(runs, kind, owner, name, value), capsys)


@pytest.mark.parametrize(
    ("kind", "command", "line", "other"),
    [
        ("circle", RESUME, "resolution = 48", "resolution = 64"),
        ("plane", RESUME, "resolution = 16", "resolution = 32"),
        ("plane", MERGERS, "resolution = 16", "resolution = 32"),
        ("plane", VIEW, "resolution = 16", "resolution = 32"),
        ("tokens", RESUME, "count = 8", "count = 800"),
    ],
)
def test_a_case_of_other_cells_or_tokens_is_refused(
    kind: str, command: str, line: str, other: str, runs: Path, in_folder: None, capsys: Any
) -> None:
    """The file is not continued, and clusters are not computed from its data."""
    with h5py.File(runs / f"{kind}.h5") as file:
        case = str(file.attrs["case"])
    assert line in case
    path = damaged(runs, kind, "/", "case", case.replace(line, other))
    before = Path(path).read_bytes()
    require_refused(command, path, capsys)
    assert Path(path).read_bytes() == before


@pytest.mark.filterwarnings("error")
def test_an_energy_of_no_such_unit_has_no_steps(runs: Path, in_folder: None, capsys: Any) -> None:
    """The exponential of the unit's logarithm overflows."""
    assert main(["mergers", damaged(runs, "atoms", "diagnostics/energy", "log_unit", 10**18)]) == 0
    assert not capsys.readouterr().err


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PLACES: dict[str, Callable[[h5py.File], object]] = {  # other content at the place of the file's last checkpoint
    "another dataset": lambda file: file.create_dataset("checkpoint/bytes", data=np.zeros((3, 3), dtype=np.int16)),
    "numbers of a fixed size": lambda file: file.create_dataset("checkpoint/bytes", data=np.zeros(8, dtype=np.uint8)),
    "a link elsewhere": lambda file: file.__setitem__("checkpoint/bytes", h5py.ExternalLink("other.h5", "/bytes")),
    "nothing": lambda file: None,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_without_room_for_a_checkpoint_is_not_gone_on_with(
    place: str, runs: Path, in_folder: None, capsys: Any
) -> None:
    """The file can be read, and no other file is written."""
    path, other = damaged(runs, "circle", "/", "title", "x"), Path("other.h5")
    with h5py.File(path, "r+") as file, h5py.File(other, "w") as others:
        del file["checkpoint/bytes"]
        PLACES[place](file)
        others.create_dataset("bytes", data=np.zeros(8, dtype=np.uint8), maxshape=(None,))
    before = other.read_bytes()
    assert len(read(path).times) == 3
    require_refused("resume {0} --until 0.2", path, capsys)
    assert other.read_bytes() == before


@pytest.mark.parametrize("name", ["time", "density", "diagnostics/mass"])
def test_a_run_whose_rows_cannot_grow_is_not_gone_on_with(name: str, runs: Path, in_folder: None, capsys: Any) -> None:
    """The file can be read, as after a program has packed it."""
    path = damaged(runs, "circle", "/", "title", "x")
    with h5py.File(path, "r+") as file:
        values = file[name][...]
        del file[name]
        file[name] = values
    assert len(read(path).times) == 3
    require_refused("resume {0} --until 0.2", path, capsys)


@pytest.mark.parametrize(
    ("kind", "name", "values", "command"),
    [
        ("circle", "time", 0.0, "plot {0} -o figure.png"),
        ("circle", "diagnostics/time", 0.0, VIEW),
        ("tokens", "weight", 0.0, VIEW),
        ("tokens", "weight", -1.0, VIEW),
        ("tokens", "weight", np.nan, "plot {0} -o figure.png"),
    ],
)
def test_times_that_do_not_increase_and_tokens_without_mass_are_refused(
    kind: str, name: str, values: float, command: str, runs: Path, in_folder: None, capsys: Any
) -> None:
    path = damaged(runs, kind, "/", "title", "x")
    with h5py.File(path, "r+") as file:
        file[name][...] = values
    require_refused(command, path, capsys)


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("mass", 0, -1.0),
        ("center", 1, np.nan),
        ("parents", 2, [0.0, 5.0]),
        ("parents", 2, [1.0, 1.0]),
        ("parents", 2, [np.nan, np.inf]),
        ("parents", 1, [0.0, 1.0]),
        ("parents", slice(None), -1.0),
        ("time", 0, 1e9),
    ],
)
def test_events_of_no_atoms_are_refused(
    name: str, row: int | slice, value: Any, runs: Path, in_folder: None, capsys: Any
) -> None:
    path = damaged(runs, "handed over", "/", "title", "x")
    with h5py.File(path, "r+") as file:
        assert file["events/parents"][:].tolist() == [[-1, -1], [-1, -1], [0, 1]]
        file[f"events/{name}"][row] = value
    if name == "parents" and row == slice(None):  # three atoms that never touch
        assert main(["mergers", path]) == 0
    else:
        require_refused(MERGERS, path, capsys)


def test_a_group_of_events_that_a_user_has_added_is_left_alone(runs: Path, in_folder: None) -> None:
    shutil.copy(runs / "circle.h5", "run.h5")
    with h5py.File("run.h5", "r+") as file:
        file.create_group("events").create_dataset("time", data=[3.0, 2.0])
        file["events"].attrs["columns"] = ["time"]
    assert not read("run.h5").events
    assert main(["resume", "run.h5", "--until", "0.2", "--quiet"]) == 0
    with h5py.File("run.h5") as file:
        assert file["events/time"][:].tolist() == [3.0, 2.0]


def test_a_cluster_without_mass_is_refused(runs: Path, in_folder: None, capsys: Any) -> None:
    path = damaged(runs, "atoms", "/", "title", "x")
    with h5py.File(path, "r+") as file:
        file["diagnostics/cluster_mass"][1:] = 0.0
    require_refused("mergers {}", path, capsys)
