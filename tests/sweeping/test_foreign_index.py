"""An index takes no values from another file: links and storage elsewhere are refused in a line."""

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.sweeping.results import read_points, read_sweep, tables_of

SECRET = 12345.0


def solve_into(path):
    case = mf.load_case("tokens_drift", {"time.end": 1, "output.samples": 3})
    return mf.sweep(case, {"attention.beta": [1, 2]}, path=path, jobs=1)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "index.h5"
    solve_into(path)
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


CHANGES = [(change, name) for change in (linked_group, soft_link, dataset_for_group) for name in GROUPS] + [
    (change, name) for change in (linked_dataset, soft_link, virtual, external, group_for_dataset) for name in DATASETS
]


def foreign(index, folder, change, name):
    """Return a copy of an index with a waiting point and values from elsewhere, in the shapes of its own."""
    other, path = folder / "other.h5", folder / "index.h5"
    path.write_bytes(index.read_bytes())
    with h5py.File(path, "r+") as file:
        with h5py.File(other, "w") as secret:
            if change is linked_group:
                file.copy(name, secret, "secret")
            else:
                secret["secret/mass"] = np.full(2, SECRET)
        file["status"][1], file.attrs["state"] = "waiting", "interrupted"
        change(file, name, str(other))
    return path


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_values_from_elsewhere_are_refused(index, tmp_path, change, name):
    path = foreign(index, tmp_path, change, name)
    with pytest.raises(mf.FileError, match=str(path)) as error:
        read_all(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("change", "name"), [pair for pair in CHANGES if not pair[1].startswith("parameters")])
def test_no_sweep_goes_on_with_values_from_elsewhere(index, tmp_path, change, name):
    path = foreign(index, tmp_path, change, name)
    before = path.read_bytes()
    with pytest.raises(mf.FileError, match=str(path)):
        solve_into(path)
    assert path.read_bytes() == before
