"""What the README shows works: its commands, its code and its case are run, long ones on a coarse mesh."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.needs import need_module

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALL = ["domain.resolution=16", "time.end=5"]  # what `run` is given in addition: the README's runs take a minute
SMALLER = {
    "tokens.h5": ["domain.count=20", "time.end=5"],
    "ladder_circle": ["domain.resolution=128", "time.end=100"],
    "layers.h5": ["output.samples=10"],
    "representation_field": ["domain.count=32", "time.end=5"],
}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def commands():
    """Every single command of the README's shell blocks."""
    return [part.strip() for block in blocks("bash") for line in block.splitlines() for part in line.split("&&")]


SETUP = ("python3 -m venv .venv", ".venv/bin/pip install -e '.[test]'", ".venv/bin/python -m pytest -n 2")
MEANFIELD = [command for command in commands() if command.startswith(".venv/bin/meanfield ")]


def run(arguments, folder):
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A folder where the README's case was saved, and the results of its commands, in the README's order."""
    folder = tmp_path_factory.mktemp("readme")
    [case] = blocks("toml")
    (folder / "pair.toml").write_text(case, encoding="utf-8")
    results = {}
    for command in MEANFIELD:
        arguments = [str(Path(sys.executable).with_name("meanfield")), *shlex.split(command)[1:]]
        smaller = next((changes for word, changes in SMALLER.items() if word in arguments), SMALL)
        results[command] = run([*arguments, "--set", *smaller] if arguments[1] == "run" else arguments, folder)
    return folder, results


def test_shell_commands_are_known():
    """Those that are not run here are the set-up and the tests, which .ci/run runs, and the benchmarks."""
    others = [command for command in commands() if command not in MEANFIELD]
    benchmark = "python -m benchmarks all --json benchmarks/results/cpu.json --readme README.md"
    assert others == [*SETUP, ".venv/bin/pip install -e '.[transformer]'", f".venv/bin/{benchmark}"]


@pytest.mark.parametrize("command", MEANFIELD)
def test_command(ran, command):
    if "reference" in command:
        need_module("torch")
    result = ran[1][command]
    assert result.returncode == 0, result.stderr


def test_commands_write_what_the_readme_names(ran):
    for name in ("metastable_sphere.h5", "metastable_sphere.png", "pair.h5", "pair.png", "compared.png", "ladder.png"):
        assert (ran[0] / name).stat().st_size > 0


@pytest.mark.parametrize("code", blocks("python"), ids=["reading", "running", "solving", "solving with a term"])
def test_python(ran, code):
    result = run([sys.executable, "-c", code], ran[0])
    assert result.returncode == 0, result.stderr
    assert "mass" in result.stdout


def test_python_that_reads_prints_the_mass(ran):
    printed = run([sys.executable, "-c", blocks("python")[0]], ran[0]).stdout
    assert float(printed.split()[1]) == pytest.approx(1.0, abs=1e-12)  # rounding of the sum over cells
    assert printed.split()[4] == "5.0"


def test_case_is_complete():
    [case] = blocks("toml")
    assert {"domain", "attention", "initial", "time"} <= tomllib.loads(case).keys()


def test_layout_is_what_the_file_holds(ran):
    import h5py

    rows = re.findall(r"^\| (`[a-z].*?) \| ([a-z].*?) \|", README.partition("## A case of your own")[0], re.MULTILINE)
    names = [name for cell, _ in rows for name in re.findall(r"`([a-z_/]+)`", cell)]
    assert len(names) == 12
    with h5py.File(ran[0] / "metastable_sphere.h5") as file:
        missing = [name for name in names if name not in file and f"diagnostics/{name}" not in file]
    assert missing == []


def test_table_lists_the_commands():
    listed = re.findall(r"^\| `meanfield ([a-z]+)", README, flags=re.MULTILINE)
    text = run([sys.executable, "-m", "meanfield", "--help"], ROOT).stdout
    assert listed == re.findall(r"^    ([a-z]+)(?:  |$)", text, flags=re.MULTILINE)


def test_measured_figures_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import table

    results = json.loads((ROOT / "benchmarks/results/cpu.json").read_text(encoding="utf-8"))
    measured = README.partition(table.BEGIN)[2].partition(table.END)[0].strip()
    assert measured == table.markdown(results)


def test_figures_are_there_and_small():
    names = re.findall(r"^!\[.*\]\((.*)\)$", README, flags=re.MULTILINE)
    studies = re.findall(r"^!\[.*\]\((.*)\)$", (ROOT / "docs/studies.md").read_text("utf-8"), flags=re.MULTILINE)
    assert len(names) == 3
    for name in [*names, *(f"docs/{study}" for study in studies)]:
        assert 10_000 < (ROOT / name).stat().st_size < 400_000


def test_links_lead_somewhere():
    text = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)  # formulas have brackets too
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]
    heads = re.findall(r"^## (.*)$", README, flags=re.MULTILINE)
    anchors = {"#" + re.sub(r"[^a-z ]", "", head.lower()).replace(" ", "-") for head in heads}
    assert [link for link in links if link not in anchors and not (ROOT / link).exists()] == []
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages <= set(links), "a page that no link leads to"
