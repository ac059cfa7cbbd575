"""Commands, code and cases in README and in docs: all run, long ones on a coarse mesh."""

import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from support.needs import need_module

from meanfield.cli.parser import main

ROOT = Path(__file__).parents[2]
RUN = ("start", "tutorial", "files", "cases", "python", "tokens", "pde", "transformer")
PAGES = {  # pages whose commands and code are run, in this order and in one folder
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md",
        *(f"docs/{page}.md" for page in RUN),
    )
}
README = PAGES["README.md"]
EVERY_PAGE = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SMALL = ["domain.resolution=16", "time.end=5"]  # additional overrides of `run`: the runs on the pages take a minute
SMALLER = {
    "small.h5": [],
    "first.h5": [],
    "tutorial.h5": [],
    "tokens.h5": ["domain.count=20", "time.end=5"],
    "quantiles.h5": ["domain.count=20", "time.end=5"],
    "ladder_circle": ["domain.resolution=128", "time.end=100"],
    "layers.h5": ["output.samples=10"],
    "representation_field": ["domain.count=32", "time.end=5"],
}


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def commands(page):
    """Return every single command of a page's shell blocks."""
    return [part.strip() for block in blocks(page, "bash") for line in block.splitlines() for part in line.split("&&")]


INSTALL = ".venv/bin/pip install -e"
SETUP = (
    "python3 -m venv .venv",
    ".venv/bin/pip install --no-compile -e .",  # bytecode of modules that are never imported takes 140 MB
    f"{INSTALL} '.[test]'",
    ".venv/bin/python -m pytest -n 2",
)
MEANFIELD = [command for page in PAGES for command in commands(page) if command.startswith(".venv/bin/meanfield ")]
CODE = [pytest.param(code, id=f"{page} {n}") for page in PAGES for n, code in enumerate(blocks(page, "python"))]


class Ran(NamedTuple):
    """Result of a command or of code: the result of the call, and what is printed."""

    status: object
    stdout: str
    stderr: str


def run(call: Callable[[], object], folder: Path) -> Ran:
    """Call a function in a folder, in this process: starting one for each command takes longer than most commands."""
    with chdir(folder), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = call()
    return Ran(status, out.getvalue(), err.getvalue())


def run_code(code: str, folder: Path) -> str:
    """Return what a program prints that runs in a folder."""
    return run(lambda: exec(compile(code, "page", "exec"), {"__name__": "__main__"}), folder).stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return the folder with the pages' cases, and the results of their commands, run in the pages' order."""
    folder = tmp_path_factory.mktemp("readme")
    for page in PAGES:
        names = re.findall(r"[Ss]ave this as `(.*?\.toml)`", PAGES[page])
        for text, name in zip(blocks(page, "toml"), names, strict=True):
            (folder / name).write_text(text, encoding="utf-8")
    results = {}
    for command in MEANFIELD:
        arguments = shlex.split(command)[1:]
        smaller = next((changes for word, changes in SMALLER.items() if word in arguments), SMALL)
        changes = ["--set", *smaller] if arguments[0] == "run" and smaller else []
        results[command] = run(lambda arguments=[*arguments, *changes]: main(arguments), folder)
    return folder, results


def test_shell_commands_are_known():
    """The README's commands that are not run here are the setup and the tests, which .ci/run runs."""
    others = [command for command in commands("README.md") if command not in MEANFIELD]
    assert others == [*SETUP, ".venv/bin/pip install -e '.[transformer]'"]


@pytest.mark.parametrize("command", MEANFIELD)
def test_command(ran, command):
    if "reference" in command:
        need_module("torch")
    result = ran[1][command]
    assert result.status == 0, result.stderr


def test_commands_write_what_the_pages_name(ran):
    for name in ("metastable_sphere.h5", "metastable_sphere.png", "pair.h5", "pair.png", "compared.png", "ladder.png"):
        assert (ran[0] / name).stat().st_size > 0


@pytest.mark.parametrize("code", CODE)
def test_python(ran, code):
    if "mf.transformer" in code:
        need_module("torch")
    assert run_code(code, ran[0])  # a result, which the code has compared with an exact value


def test_python_that_reads_prints_the_mass(ran):
    printed = run_code(blocks("README.md", "python")[0], ran[0])
    assert float(printed.split()[1]) == pytest.approx(1.0, abs=1e-12)  # rounding of the sum over cells
    assert printed.split()[4] == "30.0"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")])
def test_case_is_complete(page):
    for case in blocks(page, "toml"):
        assert {"domain", "attention", "initial", "time"} <= tomllib.loads(case).keys()


def test_layout_is_what_the_file_holds(ran):
    import h5py

    sometimes = "on request", "[handover]", "of a free radius"
    lines = PAGES["docs/files.md"].splitlines()
    always = "\n".join(line for line in lines if not any(word in line for word in sometimes))
    rows = re.findall(r"^\| (`[a-z].*?) \| ([a-z].*?) \|", always, re.MULTILINE)
    names = [name for cell, _ in rows for name in re.findall(r"`([a-z_/]+)`", cell)]
    assert len(names) == 13
    with h5py.File(ran[0] / "metastable_sphere.h5") as file:
        missing = [name for name in names if name not in file and f"diagnostics/{name}" not in file]
    assert missing == []


def test_table_lists_the_commands():
    listed = re.findall(r"^\| `meanfield ([a-z]+)", PAGES["docs/cases.md"], flags=re.MULTILINE)
    program = [sys.executable, "-m", "meanfield", "--help"]
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert listed == re.findall(r"^    ([a-z]+)(?:  |$)", text, flags=re.MULTILINE)


def test_measured_figures_are_those_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import table

    results = json.loads((ROOT / "benchmarks/results/cpu.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/performance.md").read_text("utf-8")
    assert page.partition(table.BEGIN)[2].partition(table.END)[0].strip() == table.markdown(results)


def links_of(page):
    """Return the targets of links and figures, without formulas and code blocks, which have brackets too."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(\$\$?).+?\1", "", text, flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    heads = re.findall(r"^##+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    anchors = {"#" + re.sub(r"[^a-z ]", "", head.lower()).replace(" ", "-") for head in heads}
    links = [link for link in links_of(page) if link not in anchors]
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []
    for figure in (link for link in links if link.endswith(".png")):
        assert 10_000 < (page.parent / figure).stat().st_size < 400_000


def test_every_page_is_listed_by_the_site():
    links = set(links_of(ROOT / "README.md"))
    site = {
        f"docs/{name}.md"
        for name in re.findall(r"^([a-z_]+)$", (ROOT / "docs/index.md").read_text("utf-8"), re.MULTILINE)
    }
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - {"docs/index.md"}
    assert pages <= site, "a page that the site does not list"
    assert links >= {"docs/index.md", "docs/start.md", "docs/cases.md", "docs/pde.md"}


def test_the_readme_is_short():
    assert README.count("\n") <= 200
