"""Files of layers and of matrices that a case names: no data from outside them, one line for wrong contents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from reliability.files import make_arrays

from meanfield.cli.parser import main

FILES = {"layers.h5": ("uses_layers.toml", "layers/out"), "matrices.h5": ("uses_matrices_h5.toml", "value")}
Change = Callable[[h5py.File, str, tuple[int, ...]], object]


def _virtual(file: h5py.File, name: str, shape: tuple[int, ...]) -> None:
    layout = h5py.VirtualLayout(shape, "f8")
    layout[...] = h5py.VirtualSource("other.h5", "secret", shape)
    file.create_virtual_dataset(name, layout)


CHANGES: dict[str, Change] = {
    "external storage": lambda file, name, shape: file.create_dataset(
        name, shape, "f8", external=[("secret", 0, 10**4)]
    ),
    "virtual": _virtual,
    "external link": lambda file, name, shape: file.__setitem__(name, h5py.ExternalLink("other.h5", "/secret")),
    "soft link": lambda file, name, shape: file.__setitem__(name, h5py.SoftLink("/elsewhere")),
    "huge": lambda file, name, shape: file.create_dataset(name, (10**6, 10**6), "f8", chunks=(1000, 1000)),
    "text": lambda file, name, shape: file.create_dataset(name, data=np.full(shape, b"a")),
    "number": lambda file, name, shape: file.create_dataset(name, data=1.0),
    "empty": lambda file, name, shape: file.create_dataset(name, (0, *shape[1:]), "f8"),
    "flat": lambda file, name, shape: file.create_dataset(name, data=np.ones(shape[0])),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FILES)
def test_arrays_that_are_none_are_refused_in_a_line(
    name: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_arrays(tmp_path)
    monkeypatch.chdir(tmp_path)
    case, dataset = FILES[name]
    with h5py.File(name, "r+") as file:
        array = file[dataset][...]
        file.move(dataset, "elsewhere")
        with h5py.File("other.h5", "w") as other:
            other["secret"] = array
        Path("secret").write_bytes(array.tobytes())
        CHANGES[change](file, dataset, array.shape)
    for command in (["check", case], ["run", case, "-o", "new.h5", "--quiet"]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert name in error
        assert error.count("\n") == 1
    assert not Path("new.h5").exists()


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("epsilon", "text"), ("rotary_scale", np.arange(2.0)), ("norm", 3), ("start_has_positions", np.arange(2))],
)
def test_attributes_of_layers_that_are_wrong_are_refused_in_a_line(
    attribute: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_arrays(tmp_path)
    monkeypatch.chdir(tmp_path)
    with h5py.File("layers.h5", "r+") as file:
        file.attrs[attribute] = value
    assert main(["run", "uses_layers.toml", "-o", "new.h5", "--quiet"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("meanfield: domain.file = layers.h5")
    assert error.count("\n") == 1


def test_what_a_user_adds_to_a_file_of_layers_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_arrays(tmp_path)
    monkeypatch.chdir(tmp_path)
    with h5py.File("layers.h5", "r+") as file:
        file.create_group("layers/mine")["deep"] = np.ones(3)
        file["layers/note"] = "text"
        file["layers/link"] = h5py.ExternalLink("nowhere.h5", "/a")
    assert main(["run", "uses_layers.toml", "-o", "new.h5", "--quiet"]) == 0
