"""Entropy and energy mean the same in every domain, and files state the unit and the reference of theirs."""

import h5py
import numpy as np
import pytest
from support.status import DONE, resume, run

from meanfield.case.load import parse
from meanfield.diagnostics.table import energy_unit, entropy_is_relative
from meanfield.model.functionals import energy
from solvers.io.run_file import FileError, read
from solvers.transforms.polar import log_area

CASE = """
[domain]
manifold = "{}"
resolution = {}
[attention]
beta = {}
[initial]
kind = "von_mises_fisher"
components = [{{center = [{}1], concentration = 4}}]
[time]
end = 1e-6
[output]
snapshots = 1
samples = 1
diagnostics = ["entropy", "energy"]
"""


def recorded(folder, name, resolution, beta):
    text = CASE.format(name, resolution, beta, "0, 0, " if name == "sphere" else "")
    if name == "axisymmetric":
        text = text.replace("[attention]", "dimension = 3\n[attention]")
    path = folder / f"{name}.h5"
    run(parse(text), path, quiet=True)
    return read(path)


def test_a_sphere_and_polar_angles_have_the_same_entropy_and_energy(tmp_path):
    sphere, polar = recorded(tmp_path, "sphere", 96, 3.0), recorded(tmp_path, "axisymmetric", 384, 3.0)
    k = 4.0  # ρ = e^{k cos θ} k/(4π sinh k): H = k(coth k − 1/k) + log(k/(4π sinh k))
    exact = k / np.tanh(k) - 1 + np.log(k / (4 * np.pi * np.sinh(k)))
    for found in (sphere, polar):
        assert found.diagnostics["entropy"][0] == pytest.approx(exact, abs=2e-3)  # cell averages, O(h²)
    assert polar.diagnostics["energy"][0] == pytest.approx(sphere.diagnostics["energy"][0], rel=2e-3)
    assert not entropy_is_relative(polar, True)
    assert energy_unit(polar, 3.0) == energy_unit(sphere, 3.0) == 0.0


def test_an_older_file_is_read_by_its_own_convention(tmp_path):
    found = recorded(tmp_path, "axisymmetric", 64, 3.0)
    with h5py.File(found.path, "a") as file:
        del file["diagnostics/entropy"].attrs["reference"], file["diagnostics/energy"].attrs["log_unit"]
        file["diagnostics/energy"].attrs["long_name"] = "interaction energy, in units of e^|beta|"
    assert entropy_is_relative(read(found.path), True)
    assert not entropy_is_relative(read(found.path), False)
    assert energy_unit(read(found.path), -3.0) == 3.0


def test_energies_beyond_the_range_of_numbers_are_in_the_unit_of_the_largest_kernel():
    masses, normalizer = np.array([0.25, 0.75]), np.array([1.0, 1.0])
    assert energy(masses, normalizer, 800.0, 800.0, np.zeros(2)) == pytest.approx(1 / 1600, rel=1e-15)
    assert energy(masses, normalizer, 5.0, 5.0, np.zeros(2)) == pytest.approx(np.exp(5) / 10, rel=1e-15)


@pytest.mark.parametrize(("dimension", "area"), [(2, 2 * np.pi), (3, 4 * np.pi), (4, 2 * np.pi**2)])
def test_area_of_spheres(dimension, area):
    assert log_area(dimension) == pytest.approx(np.log(area), rel=1e-15)


def test_rows_of_another_unit_are_not_added(tmp_path):
    found = recorded(tmp_path, "axisymmetric", 64, 750.0)
    assert resume(found.path, until=2e-6, quiet=True) == DONE
    with pytest.raises(FileError, match=r"its energy is in units of e\^750, not e\^760 as from here on; run anew"):
        resume(found.path, until=3e-6, changes=["attention.beta=760"], quiet=True)
    with h5py.File(found.path, "a") as file:
        del file["diagnostics/entropy"].attrs["reference"]
    with pytest.raises(FileError, match="its entropy is relative to the uniform density, of an older version"):
        resume(found.path, until=3e-6, quiet=True)
