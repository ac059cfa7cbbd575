"""Snippets on the pages of long runs: each command is run verbatim, on coarse cases and few points."""

import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.minilm import minilm
from support.needs import need_module
from support.pictures import assert_words_are_known

from docs.figures import MODEL, link_model
from meanfield.cli.parser import main
from meanfield.sweeping import case as sweep_case
from meanfield.transformer.studies import stacking

ROOT = Path(__file__).parents[2]
PAGES = ("sweeps", "experiments", "studies", "reliability", "performance", "transformer", "clustering", "browser")
INSTALL = "pip install 'meanfield-transformers[transformer]'"
BRIEF = "training.epochs=1 network.layers=1 network.dimension=8 network.heads=1 network.width=8 data.most=60"
FEWER = {  # additional arguments by a word of the command
    "ladder_circle": "--set domain.resolution=64 time.end=20",
    "tokens_ladder": "--set domain.count=3 time.end=20 output.samples=50",
    "representation_field": "--set domain.count=32 time.end=1",
    "limit": "--n 16,32 --seeds 3 --jobs 1 --set time.end=1",
    **dict.fromkeys(("read", "case"), "--text texts/one.txt"),
    "ablate": "--texts texts --seeds 1 --without network",
    "histogram": "--repeat 1",
    "prompts": "--prompts texts/one.txt --repeat 1",
    "train": f"--set {BRIEF} --quiet",
    "experiment": f"--set {BRIEF} --seeds 1 --jobs 1 --quiet",
    "sweep": "--jobs 1 --quiet",
    **dict.fromkeys(("damage", "faults"), "--help"),  # tests/reliability runs both
    "tests.reliability": "--count 1",
    "benchmarks": "--help",  # all benchmarks take minutes; tests/project/test_benchmarks.py runs each
}
COARSE = (  # pattern in a sweep file, and its replacement here
    (r'(^|"domain\.)(resolution"?) = \d+', r"\1\2 = 32"),
    (r'(^|"time\.)(end"?) = [\d.]+', r"\1\2 = 0.5"),
    (r"^degrees = \d+", "degrees = 8"),
    (r"^count = \d+", "count = 4"),
    (r"count = \d+(?=[ ,}])", "count = 2"),
    (r"seeds = \d+", "seeds = 1"),
    (r"\[2, 8, 32, 128, 512\]", "[2, 3]"),
)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def lines(page: str) -> Iterator[str]:
    """Yield the lines of a page's shell blocks, without comments; those that read a model, in one line for a block."""
    for block in blocks(page, "bash"):
        found = [line.partition("  #")[0].strip() for line in block.splitlines() if line != INSTALL]
        yield from [" && ".join(found)] if MODEL in block else found


LINES = {line: f"{page}: {line.partition(' && ')[0]}" for page in PAGES for line in lines(page)}
LINES = {line: name for line, name in LINES.items() if not line.startswith(".venv/bin/meanfield")}  # test_readme.py


def coarse(text: str) -> str:
    """Return a sweep file with few points, each of a coarse case."""
    for pattern, instead in COARSE:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the commands' working folder, with the sweep file of docs/sweeps.md, and coarse shipped sweeps."""
    texts = {path.stem: coarse(path.read_text("utf-8")) for path in (ROOT / "sweeps").glob("*.toml")}
    monkeypatch.setattr(sweep_case, "shipped_texts", lambda kind: texts)
    few_atoms = partial(stacking.recover_atoms, max_atoms=2)  # more take seconds; test_turnpike.py recovers three
    monkeypatch.setattr(stacking, "recover_atoms", few_atoms)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE.toml").write_text(coarse(blocks("sweeps", "toml")[0]), "utf-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("Tokens gather in clusters.\nClusters of tokens merge.\n", "utf-8")
    link_model(tmp_path)
    return tmp_path


def run(command: str) -> None:
    """Run a command in the working folder, with fewer points, epochs or cells where the page's command takes
    minutes."""
    words = shlex.split(command.replace("$SLURM_ARRAY_TASK_ID", "1"))
    words += next((shlex.split(more) for word, more in FEWER.items() if word in words), [])
    if words[0] == "meanfield":
        if "transformer" in words:
            need_module("torch")
        if MODEL in words:
            minilm()
        assert main(words[1:]) == 0
    else:
        program = [sys.executable, *words[1:]]
        ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("line", LINES, ids=LINES.values())
def test_command(line: str, folder: Path) -> None:
    for command in line.split("&&"):
        run(command.strip())
    for figure in folder.glob("*.png"):
        assert_words_are_known(figure)


def test_sweep_on_a_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's code runs with one worker in this process instead of the batch system's cluster, and few small
    points."""
    distributed = need_module("distributed")

    class Cluster(distributed.LocalCluster):  # type: ignore[misc, name-defined]
        def __init__(self, **batch: Any) -> None:
            assert batch["processes"] == batch["cores"]
            super().__init__(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=None)

        def scale(self, n: int = 0, jobs: int | None = None) -> Any:
            return super().scale(n) if jobs is None else None  # for a batch system; its one worker exists

    monkeypatch.setitem(sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=Cluster))
    small = 'mf.load_case("tokens_high_dimension", ["domain.count=3", "domain.dimension=4", "time.end=0.1"])'
    code = blocks("sweeps", "python")[0].replace('"tokens_high_dimension"', small).replace("range(1000)", "range(2)")
    exec(compile(code, "docs/sweeps.md", "exec"), {})
    assert main(["info", "index.h5"]) == 0
    assert "6" in capsys.readouterr().out


def test_configuration_of_dask_is_yaml() -> None:
    yaml = need_module("yaml")
    (text,) = blocks("sweeps", "yaml")
    assert yaml.safe_load(text)["distributed"]["comm"]["require-encryption"] is True


def test_the_embedded_page_is_written_by_the_commands_of_its_page() -> None:
    """The build of the site runs the commands (docs/conf.py)."""
    (commands,) = lines("browser")
    (source,) = re.findall(r'<iframe [^>]*src="(.*?)"', (ROOT / "docs/browser.md").read_text("utf-8"))
    assert commands.endswith(f"-o {source}")


def test_every_snippet_is_run_by_a_test() -> None:
    """Pages with code or commands are covered by this file, test_readme.py or tests/solvers/test_examples.py."""
    readme = (ROOT / "tests/project/test_readme.py").read_text("utf-8")
    listed = re.search(r"^RUN = \((.*?)\)", readme, re.MULTILINE)
    assert listed is not None
    run_there = set(re.findall(r'"(\w+)"', listed[1])) | {"examples"}
    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
    shown = {name for name, text in pages.items() if re.search(r"^```(bash|python|toml|yaml)$", text, re.MULTILINE)}
    assert shown <= run_there | set(PAGES)
