"""An index takes no values from another file: links and storage elsewhere are refused in a line."""

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.sweeping.results import read_points, read_sweep, tables_of

SECRET = 12345.0


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "index.h5"
    case = mf.load_case("tokens_drift", {"time.end": 1, "output.samples": 3})
    mf.sweep(case, {"attention.beta": [1, 2]}, path=path, jobs=1)
    return path


def linked_group(file, name, other):
    del file[name]
    file[name] = h5py.ExternalLink(other, "/secret")


def linked_dataset(file, name, other):
    del file[name]
    file[name] = h5py.ExternalLink(other, "/secret/mass")


def soft_link(file, name, other):
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def virtual(file, name, other):
    shape = file[name].shape
    del file[name]
    layout = h5py.VirtualLayout(shape, float)
    layout[...] = h5py.VirtualSource(other, "/secret/mass", shape)
    file.create_virtual_dataset(name, layout)


def external(file, name, other):
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, float, external=[(other, 0, h5py.h5f.UNLIMITED)])


def group_for_dataset(file, name, other):
    del file[name]
    file.create_group(name)


def dataset_for_group(file, name, other):
    del file[name]
    file[name] = np.zeros(2)


def read_all(path):
    found = read_sweep(path)
    return dict(found.scalars), list(tables_of(found)), read_points(path)


GROUPS = ("result", "samples", "parameters")
DATASETS = ("result/mass", "samples/time", "samples/mass", "samples/count", "status", "parameters/attention.beta")


@pytest.mark.parametrize(
    ("change", "name"),
    [(change, name) for change in (linked_group, soft_link, dataset_for_group) for name in GROUPS]
    + [
        (change, name)
        for change in (linked_dataset, soft_link, virtual, external, group_for_dataset)
        for name in DATASETS
    ],
)
def test_values_from_elsewhere_are_refused(index, tmp_path, change, name):
    other, path = tmp_path / "other.h5", tmp_path / "index.h5"
    with h5py.File(other, "w") as file:
        file["secret/mass"] = np.full(2, SECRET)
        file["secret/time"] = np.full((2, 3), SECRET)
    path.write_bytes(index.read_bytes())
    with h5py.File(path, "r+") as file:
        change(file, name, str(other))
    with pytest.raises(mf.FileError, match=str(path)) as error:
        read_all(path)
    assert "\n" not in str(error.value)
