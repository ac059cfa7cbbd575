"""The command line: exit statuses, one-line refusals that leave nothing behind, arguments passed on by commands."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import pytest

from meanfield.case.load import load, parse
from meanfield.cli.kinds import kind_of
from meanfield.cli.parser import main, root_parser
from meanfield.runtime.cost import estimate
from meanfield.runtime.messages import print_message
from meanfield.runtime.signals import Interrupted, Terminated
from solvers.backends import backend_on
from solvers.io.run_file import FileError
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.state import NonFinite

CASE = """
title = "mine"
[domain]
manifold = "circle"
resolution = 64
[attention]
beta = 4
[initial]
kind = "uniform"
[time]
end = 10
"""
SLOW = ("numba", "scipy", "h5py", "matplotlib", "numpy", "msgspec")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a separate folder that holds the case file mine.toml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # help is wrapped to the width of the terminal of the tests
    (tmp_path / "mine.toml").write_text(CASE)
    return tmp_path


class Calls(list[tuple[Any, ...]]):
    """Replacement of the modules behind the commands, which records the calls."""

    def run(self, case: object, path: str, **options: object) -> int:
        self.append(("run", case, str(path), options))
        return 3

    def resume(self, path: str, **options: object) -> int:
        self.append(("resume", str(path), options))
        return 0

    def describe(self, path: str) -> dict[str, object]:
        return {"title": "β", "path": str(path)}

    def plot(self, path: str, figure: Path, panels: object = None) -> Path:
        self.append(("plot", str(path), str(figure)))
        return figure


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setitem(sys.modules, "meanfield.running", calls)
    monkeypatch.setitem(sys.modules, "meanfield.figures.figure", calls)
    report = "beta is {}, tokens {}"
    stability = SimpleNamespace(
        stability=lambda case, tokens: SimpleNamespace(report=report.format(case.attention.beta, tokens))
    )
    monkeypatch.setitem(sys.modules, "meanfield.results.theory", stability)
    info = SimpleNamespace(describe=calls.describe, format_text=lambda facts: "text of " + facts["path"])
    monkeypatch.setitem(sys.modules, "meanfield.analysis.info", info)
    return calls


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, **options)


def seconds_of_children() -> float:
    """Return the processor time of processes started here that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def test_help_loads_nothing_heavy_and_is_fast() -> None:
    code = f"""
import sys
from meanfield.cli.parser import main, root_parser
from meanfield.cli.kinds import kind_of
try:
    main(["--help"])
finally:
    print(sorted(set({SLOW}) & set(sys.modules)), file=sys.stderr)
"""
    done = process("-c", code)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    before = seconds_of_children()
    for _ in range(3):
        process("-m", "meanfield", "--help", check=True)
    spent = (seconds_of_children() - before) / 3
    print(f"meanfield --help: {spent:.3f} s")
    assert spent < 0.3  # the limit in INTERFACE; processor time, since processes wait on a busy machine


@pytest.mark.parametrize("command", ["run", "resume", "info", "plot", "check", "cases", "schema", "stability"])
def test_help_of_each_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    options = [line for line in out.splitlines() if line.startswith("  -") and "--help" not in line]
    assert " ".join(out.split()).count("default: ") == len(options)


def test_usage_names_every_option() -> None:
    parsers = [root_parser()]
    for parser in parsers:  # the loop appends the subcommands of each parser
        parsers.extend(parser.commands.values())
        if not parser.commands:
            listed = [line.split("  ")[1] for line in parser.format_help().splitlines() if line.startswith("  -")]
            options = [re.findall(r"--?[a-z-]+", names) for names in listed if "--help" not in names]
            named = set(re.findall(r"--?[a-z-]+", str(parser.usage)))
            assert all(named & set(names) for names in options), f"{parser.prog}: {options}"


def test_no_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "first steps:" in capsys.readouterr().out


def test_version() -> None:
    done = process("-m", "meanfield", "--version")
    assert done.stdout.split() == ["meanfield", importlib.metadata.version("meanfield-transformers")]


REFUSED = [
    (["rnu", "mine.toml"], 'rnu: no such command; did you mean "run"?'),
    (["xyz"], "xyz: no such command; expected one of run, resume, info"),
    (["--zork"], "--zork: unexpected argument; expected one of --help, --version"),
    (["run"], "the following arguments are required: CASE; usage: meanfield run CASE [-o FILE.h5]"),
    (["run", "--set", "time.end=1"], "the following arguments are required: CASE; usage: "),
    (["run", "mine.toml", "--overwite"], '--overwite: unexpected argument; did you mean "--overwrite"?'),
    (["run", "mine.toml", "other.toml"], "other.toml: unexpected argument"),
    (["run", "mine.toml", "--over"], '--over: unexpected argument; did you mean "--overwrite"?'),
    (["run", "nine.tml"], "nine.tml: no such file, nor a shipped case"),
    (["run", "."], ".: is a folder; expected a case file"),
    (["run", "mine.toml", "--set", "attention.bta=1"], 'attention.bta: unknown key; did you mean "beta"?'),
    (["run", "mine.toml", "--set", "attention.beta=-1"], "attention.beta = -1: expected a number >= 0"),
    (["run", "mine.toml", "--set", "time.end=1", "time.cfl=nan"], "time.cfl = nan: expected a finite number"),
    (["run", "mine.toml", "-o", "no/such/a.h5"], "no/such/a.h5: the folder no/such does not exist"),
    (["run", "mine.toml", "-o", "mine.toml/a.h5"], "mine.toml/a.h5: the folder mine.toml does not exist"),
    (["run", "mine.toml", "-o", "/proc/a.h5"], "/proc/a.h5: the folder /proc cannot be written: "),
    (["run", "mine.toml", "-o", "."], ".: is a folder; expected a file to write"),
    (["run", "mine.toml", "-o", "mine.toml"], "mine.toml: exists already; --overwrite replaces it"),
    (["run", "mine.toml", "-o", "mine.toml", "--overwrite"], "mine.toml: is the case itself"),
    (["resume", "no.h5"], "no.h5: No such file or directory"),
    (["resume", "."], ".: Is a directory"),
    (["resume", "mine.toml", "--until", "-1"], "argument --until: -1: expected a finite number > 0"),
    (["resume", "mine.toml", "--until", "nan"], "argument --until: nan: expected a finite number > 0"),
    (["resume", "mine.toml", "--until", "soon"], "argument --until: soon: expected a finite number > 0"),
    (["info", "no.h5"], "no.h5: No such file or directory"),
    (["plot", "no.h5"], "no.h5: No such file or directory"),
    (
        ["check", "mine.toml", "--set", "domain.resolution=0"],
        "domain.resolution = 0: expected an integer >= 8",
    ),
    (["stability", "nope"], "nope: no such file, nor a shipped case"),
    *(
        ([command, "clusters_circle"], "clusters_circle: is a sweep; solve it with: meanfield sweep clusters_circle")
        for command in ("run", "check", "stability")
    ),
    *(
        ([command, name], f"{name}: is a case; solve it with: meanfield run {name}")
        for command in ("sweep", "plot", "info", "resume", "mergers", "movie", "view", "compare")
        for name in ("uniform", "mine.toml")
    ),
    (["sweep", "no.toml"], "no.toml: no such file, nor a shipped sweep"),
]


@pytest.mark.parametrize(("arguments", "expected"), REFUSED, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str], expected: str, calls: Calls, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"meanfield: {expected}")
    assert len(err.splitlines()) == 1
    assert (out, calls) == ("", [])
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]
    assert (folder / "mine.toml").read_text() == CASE


@pytest.mark.parametrize(
    ("arguments", "function"),
    [
        (["branch", "noise_above"], "meanfield.analysis.branches.branch.branch_of"),
        (["escape", "noise_above"], "meanfield.results.escapes.escape"),
        (["convergence", "mine.toml"], "meanfield.analysis.convergence.convergence_of"),
        (["limit", "mine.toml"], "meanfield.results.token_numbers.limit"),
        (["mergers", "run.h5"], "meanfield.analysis.mergers.report"),
        (["compare", "run.h5", "run.h5"], "meanfield.analysis.comparison.compare"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_computed(
    arguments: list[str],
    function: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def computing(*_: object) -> None:
        raise AssertionError("something is computed")

    with h5py.File(folder / "run.h5", "w"):
        pass
    monkeypatch.setattr(function, computing)
    for output, expected in (
        ("figure.txt", "unknown figure format '.txt'"),
        ("no/figure.png", "the folder no does not exist"),
        ("mine.png", "exists already and was not created by meanfield"),
    ):
        (folder / "mine.png").write_text("a picture of somebody")
        assert main([*arguments, "-o", output]) == 2
        assert expected in capsys.readouterr().err
    assert (folder / "mine.png").read_text() == "a picture of somebody"


def test_what_a_file_is(folder: Path) -> None:
    (folder / "s.toml").write_text('case = "uniform"\n[keys]\n"attention.beta" = [1.0]\n')
    (folder / "damaged.toml").write_text("keys = ")
    (folder / "latin.toml").write_bytes(b"\xe9")
    for name, kind in (("run.h5", "run"), ("index.h5", "sweep")):
        with h5py.File(folder / name, "w") as file:
            file.attrs["kind"] = kind
    kinds = {"mine.toml": "case", "s.toml": "sweep", "run.h5": "run", "index.h5": "index"}
    kinds |= {"uniform": "case", "hysteresis": "sweep", "nope": "", ".": "", "damaged.toml": "", "latin.toml": ""}
    assert {name: kind_of(name) for name in kinds} == kinds
    for command, name in (("run", "run.h5"), ("sweep", "index.h5"), ("mergers", "index.h5"), ("check", "s.toml")):
        assert main([command, name]) == 2


def test_bad_input_in_a_process() -> None:
    done = process("-m", "meanfield", "run", "mine.toml", "--set", "attention.beta=many")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'meanfield: attention.beta = "many": expected a number >= 0\n'


@pytest.mark.parametrize("command", ["resume", "info", "plot"])
def test_a_file_that_is_not_a_run_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "mine.toml"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("meanfield: mine.toml")
    assert len(err.splitlines()) == 1


def test_run_passes_case_path_and_options(calls: Calls) -> None:
    status = main(["run", "--set", "time.end=2", "title=a b", "mine.toml", "--quiet", "--set", "time.cfl=0.1"])
    case = load("mine.toml", ["time.end=2", "title=a b", "time.cfl=0.1"])
    command = "meanfield run --set time.end=2 'title=a b' mine.toml --quiet --set time.cfl=0.1"
    assert status == 0
    options = {
        "overwrite": False,
        "quiet": True,
        "command": command,
        "backend": backend_on("cpu"),
        "show": print_message,
    }
    assert calls == [("run", case, "mine.h5", options)]


@pytest.mark.parametrize(
    ("name", "path"), [("uniform", "uniform.h5"), ("../{}/mine.toml", "mine.h5"), ("v0.5", "v0.5.h5")]
)
def test_default_output_is_the_cases_name_in_this_folder(name: str, path: str, calls: Calls, folder: Path) -> None:
    (folder / "v0.5").write_text(CASE)
    main(["run", name.format(folder.name)])
    assert calls[0][2] == path
    assert not Path(path).exists()  # the check of writability does not create the file


def test_run_refuses_an_existing_output_unless_told(
    calls: Calls, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = folder / "mine.h5"
    output.write_text("precious")
    assert main(["run", "mine.toml"]) == 2
    assert capsys.readouterr().err.startswith("meanfield: mine.h5: exists already; --overwrite replaces it")
    assert calls == []
    main(["run", "mine.toml", "--overwrite"])
    assert calls[0][3]["overwrite"] is True
    assert output.read_text() == "precious"  # the run itself replaces the file, once it has data to write


@pytest.fixture
def some_file(folder: Path) -> None:
    """Create a file mine.h5 for commands that only pass its name on."""
    (folder / "mine.h5").touch()


@pytest.mark.usefixtures("some_file")
def test_resume_passes_file_and_options(calls: Calls) -> None:
    assert main(["resume", "mine.h5", "--until", "1e3", "--set", "time.cfl=0.2", "attention.beta=4"]) == 0
    command = "meanfield resume mine.h5 --until 1e3 --set time.cfl=0.2 attention.beta=4"
    changes = ["time.cfl=0.2", "attention.beta=4"]
    expected = {"until": 1000.0, "changes": changes, "quiet": False, "command": command}
    expected |= {"backend": backend_on("cpu"), "show": print_message}
    assert calls == [("resume", "mine.h5", expected)]


@pytest.mark.usefixtures("some_file")
def test_info_as_text_and_as_json(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "mine.h5"]) == 0
    assert capsys.readouterr().out == "text of mine.h5\n"
    assert main(["info", "mine.h5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"title": "β", "path": "mine.h5"}


@pytest.mark.usefixtures("some_file")
def test_plot_prints_the_figure_that_it_wrote(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "mine.h5"]) == 0
    assert main(["plot", "mine.h5", "-o", "b.pdf"]) == 0
    assert capsys.readouterr().out == "mine.png\nb.pdf\n"
    assert calls == [("plot", "mine.h5", "mine.png"), ("plot", "mine.h5", "b.pdf")]


def test_stability_prints_the_report(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stability", "mine.toml", "--set", "attention.beta=5"]) == 0
    assert main(["stability", "mine.toml", "--tokens", "100"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "beta is 5.0, tokens None"
    assert second.endswith("tokens 100")


def test_cases_lists_names_times_and_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cases"]) == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert ["uniform", "s", load("uniform").title] in [[line[0], *line[2:]] for line in lines]


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$ref"] == "#/$defs/Case"


def test_check_prints_the_resolved_case_and_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "mine.toml", "--set", "time.end=100"]) == 0
    out = capsys.readouterr().out
    assert parse(out) == load("mine.toml", ["time.end=100"])  # the cost is in comments
    assert "# cells         64\n# cell width    0.09817 (mean), 5.1 in the smallest scale 0.5\n" in out
    assert "\n# memory        about 25.6 kB\n" in out
    assert "kB for 101 snapshots\n" in out
    assert "# time steps    at most about 1.1e+03\n" in out  # 100 / (0.9 · 2π/64) = 1132


def test_check_says_what_a_velocity_of_tokens_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "tokens_drift"]) == 0
    few = "at most 4e+08 pairs of tokens, fewer if there are many: a transform replaces them"
    density = 'manifold = "sphere" costs the same for any number of tokens'
    assert f"# velocity      {few}; {density}\n" in capsys.readouterr().out
    assert main(["check", "tokens_high_dimension", "--set", "attention.heads=[{weight=0.5},{weight=0.5}]"]) == 0
    every = "8.2e+03 pairs of tokens, each in 64 dimensions: four times as many for twice the tokens"  # 2 · 64²
    assert f"# velocity      {every}\n" in capsys.readouterr().out
    line = ["domain.dimension=1", "stabilizers.layer_norm=none", "initial.kind=gaussian"]
    assert main(["check", "tokens_high_dimension", "--set", *line]) == 0
    assert "pairs of tokens, each in 1 dimension: four times as many for twice the tokens\n" in capsys.readouterr().out
    assert main(["check", "representation_field", "--set", "attention.pattern={local = 1}"]) == 0
    assert "attention.pattern: about twice as many for twice the tokens\n" in capsys.readouterr().out
    assert main(["check", "representation_field"]) == 0  # no density has an order of tokens
    assert "manifold = " not in capsys.readouterr().out.split("# velocity")[1]


@pytest.mark.parametrize(("method", "limit"), [("adaptive", "time.tolerance"), ("ssprk3", "the CFL condition")])
def test_check_says_what_limits_steps_of_tokens(method: str, limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "tokens_pair", "--set", f"time.method={method}"]) == 0
    assert f"# time steps    limited by {limit}, not known in advance\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("output.every=3", "for 4 snapshots"),  # 0, 3, 6, 9
        ("output.times=[1, 2]", "for 2 snapshots"),
        ("attention.normalization=unnormalized", "at most about 6.2e+03"),  # e⁴ times 10 / (0.9 · 2π/64)
        ("reaction={kind='linear', rate=100}", "limited by the CFL condition and the reaction, not known in advance"),
        ("stabilizers.noise=0.1", "at most about 2e+02, and some tens where noise smooths initial points"),
    ],
)
def test_estimate(override: str, expected: str) -> None:
    assert expected in estimate(parse(CASE, [override]))


@pytest.mark.parametrize(("manifold", "mesh"), [("circle", circle(48)), ("sphere", sphere(48))])
def test_cells_and_width_are_those_of_the_mesh(manifold: str, mesh: Any) -> None:
    case = parse(CASE, [f"domain.manifold={manifold}", "domain.resolution=48"])
    cells, width = case.domain.cells_and_width()
    assert cells == mesh.cells
    assert width == pytest.approx(mesh.width, rel=1e-14)  # the same formula, rounded differently


class Fails:
    """Replacement of `meanfield.running` that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self, *arguments: object, **options: object) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "meanfield: interrupted\n"),
        (Interrupted("interrupted at t = 1; continue"), 130, "meanfield: interrupted at t = 1; continue\n"),
        (Terminated("interrupted at t = 1; continue"), 130, "meanfield: interrupted at t = 1; continue\n"),
        (NonFinite("stopped on a non-finite state"), 3, "meanfield: stopped on a non-finite state\n"),
        (FileError("mine.h5: is in use"), 2, "meanfield: mine.h5: is in use\n"),
        (PermissionError(13, "Permission denied", "a.h5"), 2, "meanfield: a.h5: Permission denied\n"),
    ],
)
def test_errors_that_are_the_users(
    error: BaseException,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "meanfield.running", Fails(error))
    assert main(["run", "mine.toml"]) == status
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("no file named"), ZeroDivisionError()])
def test_other_errors_keep_their_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meanfield.running", Fails(error))
    with pytest.raises(type(error)):
        main(["run", "mine.toml"])


@pytest.mark.parametrize("command", ["schema", "cases"])  # more, and less, than a buffer holds
def test_a_reader_that_has_gone_is_no_error(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    command_line = [sys.executable, "-m", "meanfield", command]
    done = subprocess.run(command_line, stdout=writer, stderr=subprocess.PIPE, env=buffered, timeout=300)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


FILES = {"initial": 'initial={kind="tokens",file="them.npy"}', "attention": 'attention={beta=1.0,file="them.npz"}'}


@pytest.mark.parametrize("command", ["check", "run", "transformer reference"])
@pytest.mark.parametrize("section", FILES)
def test_a_file_that_a_case_names_is_there(command: str, section: str, folder: Path, capsys: Any) -> None:
    assert main([*command.split(), "mine.toml", "--set", FILES[section]]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f'meanfield: {section}.file = "them.np')
    assert error.endswith('": expected an existing file\n')
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("command", ["run", "transformer reference"])
@pytest.mark.parametrize("section", FILES)
def test_a_run_does_not_replace_a_file_of_its_case(command: str, section: str, folder: Path, capsys: Any) -> None:
    name = "them.npy" if section == "initial" else "them.npz"
    (folder / name).write_bytes(b"mine")
    assert main([*command.split(), "mine.toml", "--set", FILES[section], "-o", name, "--overwrite"]) == 2
    assert f"{name}: is {section}.file of the case itself" in capsys.readouterr().err
    assert (folder / name).read_bytes() == b"mine"


@pytest.mark.parametrize("threads", ["0", "-1", "", "1.5", "abc"])
def test_numbers_of_threads_that_numba_cannot_use_are_refused(
    threads: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    assert main(["cases"]) == 2
    assert capsys.readouterr().err == f"meanfield: NUMBA_NUM_THREADS={threads}: expected a whole number >= 1\n"


def test_plot_draws_given_times_without_texts(capsys: pytest.CaptureFixture[str]) -> None:
    options = root_parser().parse_args(["plot", "a.h5", "--times", "0,2.5", "--no-title"])
    assert (options.times, options.no_title, options.no_caption) == ((0.0, 2.5), True, False)
    assert main(["plot", "a.h5", "--times", "0,x"]) == 2
    assert "--times: 0,x: expected times, such as 0,2.5,10" in capsys.readouterr().err
