"""A model's attention as a case, which is exact for models of attention and layer norm alone."""

import errno
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
from support.tiny_transformers import HEADS, LAYERS, D, hidden, saved, text_file

from meanfield.case.load import load
from meanfield.cli.parser import main
from solvers.io.run_file import read

COMMAND = ["transformer", "case", "--mean-field"]
FLOAT32 = (
    3e-6  # embeddings are stored in float32: their lengths agree to 1e-7, and layers amplify the error about 5 times
)


def case_of(model, folder, *more):
    arguments = [
        "transformer",
        "case",
        "--mean-field",
        str(model),
        "--text",
        text_file(folder),
        "-o",
        str(folder / "case"),
        *more,
    ]
    assert main(arguments) == 0
    return folder / "case" / "case.toml"


def solved(path):
    output = path.with_suffix(".h5")
    assert main(["run", str(path), "-o", str(output), "--quiet"]) == 0
    run = read(output)
    return np.stack([run.positions(k) for k in range(run.snapshots)])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "more"),
    [("bert", {}), ("roberta", {}), ("distilbert", {}), ("albert", {}), ("albert", {"num_hidden_groups": LAYERS})],
)
def test_layers_of_the_case_are_those_of_a_plain_model(tmp_path, kind, more):
    """Layer norm follows attention, and the case omits its ε, 1e-12 beside squares of about 1."""
    model = saved(tmp_path / "model", kind, plain=True, layer_norm_eps=1e-12, **more)
    expected = unit(hidden(model))
    assert np.abs(np.diff(expected, axis=0)).max(axis=(1, 2)).min() > 0.1  # every layer moves tokens
    np.testing.assert_allclose(solved(case_of(model, tmp_path)), expected, atol=1e-9)


def test_layers_of_the_case_are_those_of_a_plain_gpt2(tmp_path):
    """Layer norm with its gains precedes attention, tokens attend to earlier tokens only, and all lengths grow
    equally."""
    model = saved(tmp_path / "model", "gpt2", plain=True, layer_norm_epsilon=1e-12)
    states = hidden(model)
    centered = states - states.mean(axis=2, keepdims=True)
    path = case_of(model, tmp_path)
    positions = solved(path)
    np.testing.assert_allclose(positions[:-1], centered[:-1], atol=FLOAT32)
    # The model normalizes its last states.
    np.testing.assert_allclose(unit(positions[-1]), unit(centered[-1]), atol=FLOAT32)
    assert load(str(path)).attention.mask == "causal"


def test_tied_layers_give_the_same_case_for_every_layer(tmp_path):
    model = saved(tmp_path / "model", "albert")
    texts, arrays = [], []
    for layer in ([], *(["--layer", str(k)] for k in range(1, LAYERS + 1))):
        path = case_of(model, tmp_path, *layer, "--overwrite")
        texts.append([line for line in path.read_text("utf-8").splitlines() if not line.startswith("title")])
        with h5py.File(path.parent / "attention.h5") as file:
            arrays.append({name: file[name][:] for name in ("query", "key", "value")})
    for text, array in zip(texts[1:], arrays[1:], strict=True):
        assert text == texts[0]
        for name in array:
            np.testing.assert_array_equal(array[name], arrays[0][name])


def test_a_layer_of_a_model_is_one_of_all_its_layers(tmp_path):
    model = saved(tmp_path / "model", "bert")
    with h5py.File(case_of(model, tmp_path).parent / "attention.h5") as file:
        every = file["value"][:]
    with h5py.File(case_of(model, tmp_path, "--layer", "2", "--overwrite").parent / "attention.h5") as file:
        one = file["value"][:]
    assert every.shape == (LAYERS, HEADS, D // HEADS, D)
    np.testing.assert_array_equal(one, every[1:2])


def test_the_case_says_what_it_leaves_out(tmp_path):
    text = case_of(saved(tmp_path / "model", "bert"), tmp_path).read_text("utf-8")
    assert "a reconstruction" in text
    assert "Left out: biases, the network, gains of layer norm, lengths of single states" in text


def refusal(model, folder, capsys, *arguments):
    """Return the one line in which a model is refused, after asserting that no case is written."""
    case = folder / "case"
    assert main([*COMMAND, str(model), "--text", text_file(folder), "-o", str(case), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not case.exists()
    return error


@pytest.mark.parametrize(
    ("kind", "more", "arguments", "message"),
    [
        ("bert", {}, ["--layer", "4"], "--layer 4: expected 1 to 3, the layers of"),
        (
            "gpt2",
            {"scale_attn_by_inverse_layer_idx": True},
            [],
            "scale_attn_by_inverse_layer_idx = True: expected False",
        ),
        ("albert", {"inner_group_num": 2}, [], "inner_group_num = 2: expected 1"),
        ("gpt2", {"is_causal": False}, [], "is_causal = False: expected True"),
        ("gpt_neox", {}, [], "gpt_neox has RMS norm or rotary positions: expected layer norm"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, capsys, kind, more, arguments, message):
    model = saved(tmp_path / "model", kind, **more)
    assert message in refusal(model, tmp_path, capsys, *arguments)


def test_another_family_is_refused_with_those_that_are_known(tmp_path, capsys):
    from support.tiny_transformers import add_tokenizer, transformers

    config = transformers.GPTNeoConfig(
        vocab_size=16, hidden_size=D, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]]
    )
    config.save_pretrained(tmp_path / "neo")  # the test needs no weights
    add_tokenizer(tmp_path / "neo")
    refused = refusal(tmp_path / "neo", tmp_path, capsys)
    assert "attention of gpt_neo: expected one of bert, camembert" in refused


def test_a_case_that_is_there_is_kept(tmp_path, capsys):
    model = saved(tmp_path / "model", "bert")
    before = case_of(model, tmp_path).read_bytes()
    assert main([*COMMAND, str(model), "-o", str(tmp_path / "case")]) == 2
    assert "exists already; --overwrite replaces it" in capsys.readouterr().err
    assert (tmp_path / "case" / "case.toml").read_bytes() == before


@pytest.mark.parametrize("name", ["attention.h5", "tokens.npy"])
def test_other_files_of_these_names_are_kept(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"mine")
    assert main([*COMMAND, "no/such/model", "-o", str(tmp_path)]) == 2
    assert f"{name}: exists already" in capsys.readouterr().err
    assert (tmp_path / name).read_bytes() == b"mine"


FULL_DISK = """
import resource, signal, sys
from meanfield.cli.parser import main
sys.dont_write_bytecode = True  # a truncated file would stay and break other tests
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
*arguments, sizes = sys.argv[1:]
for size in sizes.split():
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))
    print(main(arguments))
"""


def test_a_full_disk_is_told_in_a_line_and_harms_no_case(tmp_path):
    """A limit on the file size simulates the full disk: in the layout, in the numbers, or in the last of them."""
    model = saved(tmp_path / "model", "bert")
    before = case_of(model, tmp_path)
    matrices = before.with_name("attention.h5")
    kept = matrices.read_bytes()
    sizes = " ".join(str(int(part * len(kept))) for part in (0.05, 0.5, 0.95))
    command = [*COMMAND, str(model), "--overwrite", "--text", text_file(tmp_path), "-o", str(before.parent), sizes]
    done = subprocess.run([sys.executable, "-c", FULL_DISK, *command], capture_output=True, text=True)
    assert done.stdout == "2\n2\n2\n", done.stderr
    refusal = f"meanfield: {before.parent}: cannot write: File too large"
    assert [line for line in done.stderr.splitlines() if line.startswith("meanfield")] == 3 * [refusal]
    assert "Traceback" not in done.stderr
    assert matrices.read_bytes() == kept
    assert sorted(path.name for path in before.parent.iterdir()) == ["attention.h5", "case.toml", "tokens.npy"]


@pytest.mark.parametrize("failing", ["numpy.save", "pathlib.Path.write_text"])
def test_a_disk_that_is_full_after_the_matrices_harms_no_case(tmp_path, monkeypatch, capsys, failing):
    model = saved(tmp_path / "model", "bert")
    folder = case_of(model, tmp_path).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(failing, full)
        arguments = ["--text", str(tmp_path / "text.txt"), "-o", str(folder), "--overwrite", "--layer", "1"]
        assert main([*COMMAND, str(model), *arguments]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"meanfield: {folder}: cannot write: No space left on device"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
