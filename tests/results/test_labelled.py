"""Lines of a notebook on results as xarray Datasets: in memory, from plain files, and of sweeps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray

import meanfield as mf

CIRCLE = {
    "domain": {"manifold": "circle", "resolution": 64},
    "attention": {"beta": 3.0},
    "initial": {"kind": "perturbed"},
    "time": {"end": 3.0},
    "output": {"snapshots": 6, "samples": 30},
}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Snapshots and diagnostics of a run: in memory, in a file, and as plain xarray opens the file."""
    path = tmp_path_factory.mktemp("labelled") / "run.h5"
    memory, stored = mf.simulate(CIRCLE), mf.run(CIRCLE, path)
    opened = xarray.open_dataset(path), xarray.open_dataset(path, group="diagnostics")
    yield {
        "memory": (memory.to_xarray(), memory.diagnostics.to_xarray()),
        "file": (stored.to_xarray(), stored.diagnostics.to_xarray()),
        "plain": opened,
    }
    for dataset in opened:
        dataset.close()


@pytest.fixture(params=["memory", "file", "plain"])
def both(request, datasets):
    plt.close("all")
    yield datasets[request.param]
    plt.close("all")


def test_energy_plots_against_time(both):
    _, ds = both
    (line,) = ds.energy.plot()
    np.testing.assert_array_equal(line.get_xdata(), ds.time)
    assert line.axes.get_xlabel() == "model time [1]"


def test_density_plots_against_the_angle(both):
    ds, _ = both
    (line,) = ds.density.sel(time=3, method="nearest").plot(x="angle")
    assert line.axes.get_xlabel() == "angle [rad]"
    assert (np.diff(line.get_xdata()) > 0).all()


def test_interpolation_in_time_keeps_the_mass(both):
    for ds in both:
        assert ds.interp(time=1.03).sizes == {name: n for name, n in ds.sizes.items() if name != "time"}
    ds, _ = both
    assert float((ds.density.interp(time=1.03) * ds.cell_area).sum()) == pytest.approx(1.0, abs=1e-12)


def test_powers_have_degrees(both):
    _, ds = both
    np.testing.assert_allclose(ds.power.sel(degree=0), 1.0, rtol=1e-12)
    assert ds.power.isel(time=-1).plot()[0].axes.get_xlabel() == "degree"


def test_datasets_are_written_as_netcdf(both, tmp_path):
    for number, ds in enumerate(both):
        ds.load().to_netcdf(tmp_path / f"{number}.nc", engine="h5netcdf")


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("axisymmetric", {"domain": {"manifold": "axisymmetric", "dimension": 4, "resolution": 16}}, {"angle"}),
        ("sphere", {"domain": {"manifold": "sphere", "resolution": 16}}, {"longitude", "latitude"}),
        ("labels", {"domain": {"manifold": "circle", "resolution": 16, "labels": 2}}, {"angle"}),
    ],
)
def test_cells_have_the_coordinates_of_their_domain(name, changes, expected, tmp_path):
    mask = "causal" if name == "labels" else "none"
    settings = {"initial": {"kind": "uniform"}, "attention": {"beta": 1.0, "mask": mask}, "time": {"end": 0.01}}
    mf.run(settings | changes, tmp_path / "run.h5")
    for ds in (mf.open_run(tmp_path / "run.h5").to_xarray(), xarray.open_dataset(tmp_path / "run.h5")):
        assert expected == set(ds.density.coords) - {"time", "cell_center", "cell_area"}
        assert all(ds[coordinate].dims == ("cell",) and ds[coordinate].units for coordinate in expected)
        ds.close()
    if name == "labels":
        assert mf.open_run(tmp_path / "run.h5").diagnostics.to_xarray().label.values.tolist() == [0, 1]


def test_free_radii_are_coordinates():
    ds = mf.simulate("layer_norm_pre", {"domain.resolution": 16, "domain.radii": 16}, end=0.01).to_xarray()
    assert {"radius"} < set(ds.density.coords) & {"radius", "angle", "longitude", "latitude"}
    radii, edges = np.unique(ds.radius), ds.radius_edge.values
    assert ((edges[:-1] < radii) & (radii < edges[1:])).all()


@pytest.fixture(scope="module")
def sphere():
    return mf.simulate("metastable_sphere", resolution=16, end=0.1)


@pytest.mark.parametrize("grid", [(180, 360), (7, 5), (16, 64), (1, 1)])
def test_a_regular_grid_conserves_the_mass_and_makes_no_extrema(sphere, grid):
    ds = sphere.to_xarray(grid=grid)
    assert ds.density.dims == ("time", "latitude", "longitude")
    assert ds.density.shape[1:] == grid
    np.testing.assert_allclose((ds.density * ds.cell_area).sum(("latitude", "longitude")), 1.0, rtol=1e-12)
    assert ds.density.max() <= sphere.density.max() * (1 + 1e-12)
    assert ds.density.min() >= sphere.density.min() * (1 - 1e-12)
    north = ds.density.isel(time=0).sel(latitude=90, longitude=0, method="nearest")
    if grid == (180, 360):  # within the first cell of the mesh
        assert float(north) == pytest.approx(sphere.density[0][0], rel=1e-12)


def test_a_grid_on_another_domain_is_refused():
    with pytest.raises(ValueError, match=r"grid = \(4, 8\): only allowed for a density on the sphere"):
        mf.simulate(CIRCLE).to_xarray(grid=(4, 8))


@pytest.mark.parametrize("grid", [(4,), (0, 4), 3])
def test_a_grid_that_is_no_pair_of_numbers_is_refused(sphere, grid):
    with pytest.raises(ValueError, match="expected the numbers of latitudes and longitudes"):
        sphere.to_xarray(grid=grid)


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "index"])
def test_sweeps_select_by_short_names(stored, tmp_path):
    keys = {"beta": [2.0, 4.0], "initial.seed": [0, 1]}
    ds = mf.sweep(CIRCLE, keys, jobs=1, path=tmp_path / "index.h5" if stored else None)
    np.testing.assert_array_equal(ds.sel(beta=4).energy, ds.sel({"attention.beta": 4}).energy)
    assert float(ds.sel(beta=4, seed=1).power.sel(degree=0)) == pytest.approx(1.0, rel=1e-12)
    assert ds.energy.sel(seed=0).plot(x="beta")[0].axes.get_xlabel() == "beta"
    plt.close("all")
