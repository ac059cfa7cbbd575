"""Functions of `meanfield.transformer`: numbers, files and tables of the commands, and refusals that name arguments."""

import pickle
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.tiny_transformers import LAYERS, MOST, TEXT, saved, text_file

import meanfield as mf
from meanfield.cli.parser import main
from meanfield.figures.saving import save
from solvers.io.run_file import read

TEXTS = {"one": TEXT, "two": "b d f a", "three": "a c e g i k"}
PROMPTS = ["a b c d", "e f g h i", "l k j"]
BRIEF = [
    "network.dimension=8", "network.heads=2", "network.layers=1", "network.width=8", "data.kind=stripes",
    "data.tokens=rows", "training.epochs=2",
]  # fmt: skip
LAYERED = {"time": {"method": "layers", "layers": 3, "step": 0.1}, "output": {"snapshots": 3}}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "bert", "bert")


def texts_folder(folder):
    """Write TEXTS to files whose names sort in another order than the keys, and return the folder."""
    (folder / "texts").mkdir()
    for k, words in enumerate(TEXTS.values()):
        (folder / "texts" / f"{k}.txt").write_text(words)
    return str(folder / "texts")


def positions(result):
    return np.stack([result.position[k] for k in range(len(result.time))])


def assert_same_runs(path, *results):
    run = read(path)
    expected = np.stack([run.positions(k) for k in range(run.snapshots)])
    for result in results:
        np.testing.assert_array_equal(positions(result), expected)
        for name, values in run.diagnostics.items():
            np.testing.assert_array_equal(result.diagnostics[name], values)


def test_read_gives_the_numbers_of_the_command(model, tmp_path):
    text, path = text_file(tmp_path), str(tmp_path / "command.h5")
    assert main(["transformer", "read", str(model), "--text", text, "--drop", "first", "-o", path, "--quiet"]) == 0
    in_file = mf.transformer.read(model, tmp_path / "function.h5", text=text, drop=["first"])
    in_memory = mf.transformer.read(model, text=Path(text), drop="first")
    assert (in_file.path, in_memory.path) == (tmp_path / "function.h5", None)
    assert_same_runs(path, in_file, in_memory)
    for name in ("token_text", "state_length"):
        with h5py.File(path) as one, h5py.File(tmp_path / "function.h5") as other:
            np.testing.assert_array_equal(one[name][()], other[name][()])
    assert in_memory.to_xarray().sizes["token"] == len(TEXT.split()) - 1


def test_reference_gives_the_numbers_of_the_command(tmp_path):
    path, changes = str(tmp_path / "command.h5"), ['time={method="layers",layers=3,step=0.1}', "output.snapshots=3"]
    assert main(["transformer", "reference", "tokens_equiangular", "-o", path, "--quiet", "--set", *changes]) == 0
    case = mf.load_case("tokens_equiangular", changes)
    assert_same_runs(path, mf.transformer.reference(case), mf.transformer.reference(case, tmp_path / "function.h5"))


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--without", "network,biases", "--weights", "rotated", "--seed", "2", "--repeat", "2"],
         {"without": ("network", "biases"), "weights": "rotated", "seed": 2, "repeat": 2}),
        (["--mean-field", "--layer", "2"], {"mean_field": True, "layer": 2}),
    ],
)  # fmt: skip
def test_case_writes_the_files_of_the_command(model, tmp_path, options, arguments):
    text, folder = text_file(tmp_path), tmp_path / "case"
    assert main(["transformer", "case", str(model), "--text", text, "-o", str(folder), *options]) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    written = mf.transformer.case(model, folder, text=text, overwrite=True, **arguments)
    assert written == folder / "case.toml"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert len(mf.simulate(written).time) == 1 + LAYERS * arguments.get("repeat", 1)


STUDIES = {
    "ablate": (["--seeds", "1", "--without", "network"], {"seeds": 1, "without": ["network"]}),
    "histogram": (["--repeat", "2", "--seed", "1"], {"repeat": 2, "seed": 1}),
    "prompts": (["--repeat", "2"], {"repeat": 2}),
    "fit": (["--held", "1", "--rank", "2", "--width", "4", "--steps", "3"],
            {"held": 1, "rank": 2, "width": 4, "steps": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_gives_the_numbers_tables_and_figure_of_the_command(name, model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("meanfield.transformer.studies.turnpike.STARTS", 1)
    options, arguments = STUDIES[name]
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(PROMPTS))
    source = {
        "histogram": ["--text", text_file(tmp_path)], "prompts": ["--prompts", str(prompts)],
    }.get(name) or ["--texts", texts_folder(tmp_path)]  # fmt: skip
    given = {"histogram": text_file(tmp_path), "prompts": PROMPTS}.get(name, source[1])
    path = tmp_path / "command.h5"
    assert main(["transformer", name, str(model), *source, "-o", str(path), *options]) == 0
    printed = capsys.readouterr().out
    outcome = pickle.loads(pickle.dumps(getattr(mf.transformer, name)(model, given, **arguments)))
    assert capsys.readouterr() == ("", "")
    assert_same_outcomes(outcome, path, printed, tmp_path)


def assert_same_outcomes(outcome, path, printed, folder):
    """Assert that the command's file, figure and output are those of the outcome."""
    assert printed == f"{outcome.summary}\n{path}\n{path.with_suffix('.png')}\n"
    written = outcome.save(folder / "function.h5")
    with h5py.File(path) as one, h5py.File(written) as other:
        assert list(one) == list(other)
        assert {*one.attrs} == {*other.attrs}
        for name in outcome.arrays:
            np.testing.assert_array_equal(one[name][()], other[name][()])
            values = outcome[name]
            stored = one[name].asstr("utf-8")[()] if values.dtype.kind == "U" else one[name][()]
            np.testing.assert_array_equal(values, stored)
    for name, array in outcome.to_xarray().variables.items():
        assert array.dims == outcome.arrays[name].dims
    drawn = folder / "function.png"
    save(outcome.plot(), drawn)
    assert drawn.read_bytes() == path.with_suffix(".png").read_bytes()
    with pytest.raises(mf.FileError, match="exists already; overwrite=True replaces it"):
        outcome.save(written)


@pytest.mark.parametrize("name", ["information", "scaling"])
def test_experiment_gives_the_numbers_of_the_command(name, tmp_path, capsys):
    path = tmp_path / "command.h5"
    arguments = ["transformer", "experiment", name, "--seeds", "1", "-o", str(path), "--quiet", "--set", *BRIEF]
    assert main(arguments) == 0
    printed, lines = capsys.readouterr().out, []
    outcome = mf.transformer.experiment(name, overrides=BRIEF, seeds=1, show=lines.append)
    assert len(lines) == (4 if name == "information" else 0)
    assert_same_outcomes(pickle.loads(pickle.dumps(outcome)), path, printed, tmp_path)


def test_train_gives_the_numbers_of_the_command(tmp_path, capsys):
    path, lines = tmp_path / "command.h5", []
    assert main(["transformer", "train", "digits", "-o", str(path), "--until", "1", "--quiet", "--set", *BRIEF]) == 0
    in_memory = mf.transformer.train("digits", overrides=BRIEF, until=1)
    assert in_memory.plot().axes
    mf.transformer.train("digits", tmp_path / "function.h5", overrides=BRIEF, until=1, show=lines.append)
    assert [line.partition(":")[0] for line in lines] == ["epoch 1 of 2"]
    with h5py.File(path) as one, h5py.File(tmp_path / "function.h5") as other:
        for name in ("loss", "test_accuracy", "weights/head.bias"):
            np.testing.assert_array_equal(one[name][()], other[name][()])
        assert one["loss"][()].tolist() == in_memory.history.loss
    assert mf.transformer.train(tmp_path / "function.h5").epochs == 2  # training continues from the file
    assert capsys.readouterr().err == ""


def test_training_that_explodes_is_the_result_of_the_error():
    changes = [*BRIEF, "network.layer_norm=none", "training.rate=100", "training.explosion=100"]
    with pytest.raises(mf.NonFinite, match=r"^training exploded at step \d+: ") as caught:
        mf.transformer.train("digits", overrides=changes)
    assert caught.value.result.stopped.startswith("exploded")


REFUSALS = {
    "ablate": [({"seeds": 0}, "seeds = 0: expected an integer >= 1"), ({"drop": "last"}, "drop = last: expected one"),
               ({"without": ["nose"]}, "without = nose: expected parts"), ({"texts": "nowhere"}, "texts = nowhere: ")],
    "histogram": [({"text": "some words"}, 'text = "some words": expected an existing file, or "-"'),
                  ({"repeat": 0}, "repeat = 0: expected"), ({"seed": -1}, "seed = -1: expected an integer >= 0")],
    "prompts": [({"prompts": "a b"}, 'prompts = "a b": expected an existing file, or "-" .*, or a list of prompts'),
                ({"prompts": ["a b"]}, r"prompts = \['a b'\]: 1 line: expected at least two")],
    "fit": [({"rank": 1.5}, "rank = 1.5: expected an integer >= 1")],
    "case": [({"folder": "x", "layer": 2}, "layer = 2: only allowed with mean_field=True"),
             ({"folder": "x", "mean_field": True, "repeat": 2}, "repeat = 2: not allowed with mean_field=True"),
             ({"folder": "x", "mean_field": True, "seed": 2}, "seed = 2: not allowed with mean_field=True"),
             ({"folder": "x", "seed": 2}, "seed = 2: only allowed with weights random or rotated"),
             ({"folder": "x", "text": "some words"}, 'text = "some words": expected an existing file, or "-"'),
             ({"folder": "x", "weights": "own"}, "weights = own: expected one of trained, random, rotated")],
    "read": [({"drop": ["last"]}, "drop = last: expected one of special, first"),
             ({"command": "mine"}, "command = mine: only allowed with path"),
             ({"show": print}, "show = print: only allowed with path"),
             ({"text": "two\nlines"}, r'text = "two\\nlines": expected an existing file, or "-"'),
             ({"text": "x" * 300}, 'text = "xxx'),
             ({"text": Path()}, r'text = ".": expected an existing file')],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_arguments(name):
    for arguments, message in REFUSALS[name]:
        with pytest.raises(mf.CaseError, match=f"^{message}"):
            getattr(mf.transformer, name)("no/such/model", **arguments)


def test_refusals_of_training_name_arguments(tmp_path):
    for arguments, message in (
        ({"until": 0}, "until = 0: expected an integer >= 1"),
        ({"training": "x.h5", "path": "y.h5"}, "path = y.h5: not allowed with a file: training continues in this file"),
        ({"command": "mine"}, "command = mine: only allowed with path"),
        ({"training": "x.h5", "overrides": {"training.epochs": 3}}, "overrides = training.epochs=3: not allowed"),
    ):
        with pytest.raises(mf.CaseError, match=f"^{message}"):
            mf.transformer.train(**{"training": "digits"} | arguments)
    for arguments, message in (
        ({"name": "sensation"}, "name = sensation: expected one of information"),
        ({"jobs": 2}, "jobs = 2: only allowed with the experiments positions, robustness, stabilizers"),
        ({"jobs": 2, "dask": "here:1", "name": "stabilizers"}, "jobs = 2: not allowed with dask"),
        ({"dask": "here:1"}, "dask = here:1: only allowed with the experiments positions, robustness, stabilizers"),
    ):
        with pytest.raises(mf.CaseError, match=f"^{message}"):
            mf.transformer.experiment(**{"name": "scaling"} | arguments)
    (tmp_path / "x.h5").touch()
    for function, given in ((mf.transformer.train, "digits"), (mf.transformer.reference, {})):
        source = given or mf.load_case("tokens_equiangular", LAYERED)
        with pytest.raises(mf.FileError, match="exists already; overwrite=True replaces it"):
            function(source, tmp_path / "x.h5")


def test_a_text_that_is_cut_warns(model, tmp_path, capsys):
    text = text_file(tmp_path, "a b c " * MOST)
    with pytest.warns(mf.transformer.TextWarning, match=f"tokens, {model} takes {MOST}: the rest is cut off"):
        mf.transformer.read(model, text=text)
    assert capsys.readouterr() == ("", "")


def test_names_load_without_torch():
    code = (
        "import sys, meanfield as mf; [getattr(mf.transformer, name) for name in mf.transformer.__all__]; "
        "print([name for name in ('torch', 'transformers', 'matplotlib', 'xarray') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
