"""Standard streams that are closed, full, or of another encoding: no traceback, and the status of the completed
work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield.runtime.messages
from meanfield.runtime.progress import Progress
from meanfield.runtime.remaining import RemainingTime
from solvers.io.run_file import read

CASE = """
title = "β over ασ"
[domain]
manifold = "circle"
resolution = 16
[attention]
beta = 1.0
[initial]
kind = "uniform"
[time]
end = 0.01
[output]
snapshots = 2
samples = 2
"""
FULL = "standard output: No space left on device"
CLOSED = "standard output: Bad file descriptor"


def shell(command: str, folder: Path, **environment: str) -> tuple[int, str]:
    """Return the exit status and standard error of a command line in which $M is the command."""
    variables = {**os.environ, "M": f"{sys.executable} -m meanfield", **environment}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=variables, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&-", ">/dev/full", "<&- >&- 2>&-"])
def test_a_run_that_finishes_has_finished(redirection: str, tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(CASE)
    assert shell(f"$M run case.toml {redirection}", tmp_path)[0] == 0
    run = read(tmp_path / "case.h5")
    assert (run.attributes["stop_reason"], run.attributes["message"]) == ("finished", "")


SWEEP = f"""
title = "s"
[keys]
"attention.beta" = [1.0, 2.0]
{CASE.replace("[", "[case.").replace('title = "β over ασ"', "")}
"""
IN_PYTHON = """
import meanfield as mf
if __name__ == "__main__":
    mf.sweep(mf.load_case("case.toml"), {"attention.beta": [1.0]}, jobs=1).to_netcdf("done.nc", engine="h5netcdf")
"""


def test_workers_of_a_sweep_without_standard_error(tmp_path: Path) -> None:
    """The first file that a worker opens is then number 2: the pipe that signals the life of the sweep."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    assert shell("$M sweep sweep.toml --jobs 1 2>&-", tmp_path) == (0, "")
    (tmp_path / "case.toml").write_text(CASE)
    (tmp_path / "sweep.py").write_text(IN_PYTHON)
    assert shell(f"{sys.executable} sweep.py 2>&-", tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("command", "error"),
    [("cases >&-", CLOSED), ("cases >/dev/full", FULL), ("check uniform >/dev/full", FULL), ("--version >&-", CLOSED)],
)
def test_an_answer_that_cannot_be_given(command: str, error: str, tmp_path: Path) -> None:
    assert shell(f"$M {command}", tmp_path) == (2, f"meanfield: {error}\n")


def test_a_refusal_that_cannot_be_written(tmp_path: Path) -> None:
    assert shell("$M run nothing 2>&-", tmp_path) == (2, "")
    assert shell("$M run nothing 2>/dev/full", tmp_path) == (2, "")


@pytest.mark.parametrize(
    "locale", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_greek_letters_in_any_locale(locale: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(CASE, encoding="utf-8")
    assert shell("$M check case.toml > out; $M check nothing-β", tmp_path, **locale)[0] == 2
    text = (tmp_path / "out").read_text("ascii")
    assert text.startswith('title = "\\u03b2 over \\u03b1\\u03c3"')


def test_a_command_limits_the_threads_of_products(tmp_path: Path) -> None:
    """OpenBLAS reads the number when NumPy is imported, which must come later; a number of the user stays."""
    code = (
        "import os, sys; from meanfield.cli.parser import command; early = 'numpy' in sys.modules; command();"
        " print(early, os.environ['OPENBLAS_NUM_THREADS'], file=sys.stderr)"
    )
    (tmp_path / "script.py").write_text(code, encoding="utf-8")
    for number, setting in (("1", "unset OPENBLAS_NUM_THREADS"), ("2", "export OPENBLAS_NUM_THREADS=2")):
        assert shell(f"{setting}; {sys.executable} script.py keys time", tmp_path) == (0, f"False {number}\n")


def test_a_process_without_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """sys.stderr is None under pythonw or in a daemon, and ``print`` would write to standard output."""
    monkeypatch.setattr(sys, "stderr", None)
    meanfield.runtime.messages.print_message("a message")
    with Progress("title", 0.0, 1.0, quiet=False, remaining=RemainingTime(1.0, [])) as progress:
        progress.show("a line")
    assert capsys.readouterr().out == ""
