"""Limits of the machine: a case beyond memory or disk is refused before the start, and --force continues."""

import resource
from pathlib import Path

import pytest

from meanfield.case.load import parse
from meanfield.cli.parser import main
from meanfield.running import run
from meanfield.runtime import limits
from meanfield.runtime.cost import as_bytes, estimate, file_bytes, memory_bytes
from solvers.io.run_file import read

CASE = """
[domain]
manifold = "circle"
resolution = 32
[attention]
beta = 1.0
[initial]
kind = "uniform"
[time]
end = 0.01
[output]
snapshots = 1
samples = 1
"""


def test_needs_are_those_that_check_prints() -> None:
    tokens = parse(CASE, ['domain={manifold = "particles", dimension = 3, count = 10}', "time.method=ssprk3"])
    assert (memory_bytes(parse(CASE)), memory_bytes(tokens)) == (400 * 32, 8 * 12 * 30)
    for case in (parse(CASE), tokens):
        lines = estimate(case).splitlines()
        assert f"# memory        about {as_bytes(memory_bytes(case))}" in lines
        assert f"# file          at most about {as_bytes(file_bytes(case))} for 2 snapshots" in lines
        assert not any("TOO LARGE" in line for line in lines)


@pytest.mark.parametrize(
    "changes",
    [
        ["output.snapshots=100", "domain.resolution=512"],
        ["output.samples=1000"],
        ['attention.mask="causal"', "domain.labels=8", 'output.diagnostics=["label_density"]', "output.samples=200"],
        ['domain={manifold = "particles", dimension = 3, count = 200}', "output.samples=100"],
    ],
)
def test_a_file_is_not_larger_than_was_said(changes: list[str], tmp_path: Path) -> None:
    """The size exceeds the estimate by at most a fifth: snapshots, samples of any size, checkpoint and minimum sizes
    count."""
    case = parse(CASE, changes)
    run(case, tmp_path / "run.h5", quiet=True)
    assert (tmp_path / "run.h5").stat().st_size < 1.2 * file_bytes(case)


def test_snapshots_are_those_of_the_schedule(tmp_path: Path) -> None:
    """0.3/0.1 is 2.9999999999999996, and a snapshot is due at 0.3."""
    case = parse(CASE.replace("snapshots = 1", "every = 0.1"), ["time.end=0.3"])
    assert estimate(case).splitlines()[-2].endswith(" for 4 snapshots")
    run(case, tmp_path / "run.h5", quiet=True)
    assert read(tmp_path / "run.h5").snapshots == 4


@pytest.mark.parametrize("name", ["available_memory", "free_disk"])
def test_what_does_not_fit_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("case.toml").write_text(CASE)
    monkeypatch.setattr(limits, name, lambda *folder: 100.0)
    assert main(["run", "case.toml", "--quiet"]) == 2
    error = capsys.readouterr().err
    size = as_bytes(file_bytes(parse(CASE)))
    expected = {
        "available_memory": "memory: about 12.8 kB are needed, 100 bytes are available; --force",
        "free_disk": f"the file: about {size} are needed, 100 bytes are free in {tmp_path}; --force",
    }
    assert error.startswith(f"meanfield: {expected[name]}")
    assert not Path("case.h5").exists()
    assert main(["check", "case.toml"]) == 0
    assert "# TOO LARGE " in capsys.readouterr().out
    assert main(["run", "case.toml", "--quiet", "--force"]) == 0
    assert Path("case.h5").exists()


def test_limits_of_the_process_count(tmp_path: Path) -> None:
    assert 2**20 < limits.available_memory() < 2**60
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, hard))
        assert limits.free_disk(tmp_path) <= 10_000_000
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert limits.free_disk(tmp_path / "nowhere") > 10_000_000


def test_tokens_followed_beyond_rounding_are_announced(tmp_path, capsys):
    """Two tokens at β = 40 merge after e^{52}; their velocities, 1e-25, are lost to rounding without a handover."""
    from meanfield.cli.parser import main

    path = tmp_path / "run.h5"
    more = ["--set", "attention.beta=40", "output.samples=2", "output.snapshots=2"]
    assert main(["check", "tokens_pair", *more, "time.end=1e30"]) == 0
    assert "# rounding      velocities below 1e-16 are lost" in capsys.readouterr().out
    assert main(["run", "tokens_pair", "-o", str(path), *more, "time.end=1e30"]) == 0
    assert "a section [handover] follows them" in capsys.readouterr().err
    for other in (["tokens_pair", *more], ["tokens_ladder", "--set", "time.end=1e30"]):
        assert main(["check", *other]) == 0
        assert "rounding" not in capsys.readouterr().out
