"""Complex fields in files and figures: netCDF's compound type, restarts, modulus and phase."""

import h5netcdf
import h5py
import numpy as np
import pytest

from solvers import Diffusion, Equation, RunFile, box, interval, read, record, restart, solve
from solvers.io.run_file import FileError
from solvers.io.verifying import verify

LINE = interval(0.0, 1.0, 12)
SCHROEDINGER = Equation(LINE, [Diffusion(LINE, 0.05j)])
START = LINE.centers[:, 0] * np.exp(3j * LINE.centers[:, 0])
NORM = {"norm": lambda u: LINE.integrate(np.abs(u) ** 2)}


def recorded(path, span=(0.0, 1.0), u0=START, **options):
    with record(path, LINE, every=0.5, fields="psi", diagnostics=NORM, **options) as recorder:
        return solve(SCHROEDINGER, u0, span, times=[span[1]], callbacks=recorder)


@pytest.fixture
def path(tmp_path):
    recorded(tmp_path / "psi.h5")
    return tmp_path / "psi.h5"


def test_programs_of_netcdf_read_complex_numbers(path):
    xarray = pytest.importorskip("xarray")
    end = read(path).field("psi", -1)
    np.testing.assert_array_equal(end, recorded(path, overwrite=True).u[-1])
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.density.dims == ("time", "cell")
        np.testing.assert_array_equal(data.density[-1], end)
    with h5netcdf.File(path) as file:
        assert file["density"].dtype == complex
        assert list(file.cmptypes) == ["_PFNC_DOUBLE_COMPLEX_TYPE"]  # a transient type would be unknown to netCDF-C
    with h5py.File(path) as file:
        assert file["density"].id.get_type().committed()


def test_the_run_has_real_fields_for_figures(path):
    run, start = read(path), START
    assert run.fields == ("psi",)
    assert run.real_fields == ("abs(psi)", "arg(psi)")
    np.testing.assert_array_equal(run.field("abs(psi)", 0), np.abs(start))
    np.testing.assert_array_equal(run.field("arg(psi)", 0), np.angle(start))
    np.testing.assert_array_equal(run.rows([2, 0])[1], start)
    assert run.diagnostics["norm"] == pytest.approx(NORM["norm"](start), abs=1e-4)
    assert verify(run).damaged == ()
    result = pytest.importorskip("meanfield").open_run(path)
    assert result.density.dtype == complex
    np.testing.assert_array_equal(result.to_xarray().density[0], start)


def test_a_complex_run_continues(path):
    recorded(path, (0.0, 1.0), checkpoint=0.0, overwrite=True)
    state = restart(path)
    assert state.dt > 0  # of a checkpoint
    assert state.values.dtype == complex
    recorded(path, (state.time, 2.0), state.values, resume=True)
    np.testing.assert_array_equal(read(path).times, [0.0, 0.5, 1.0, 1.5, 2.0])
    exact = solve(SCHROEDINGER, START, (0.0, 2.0), times=[2.0], rtol=1e-7).u[-1]
    np.testing.assert_allclose(read(path).field("psi", -1), exact, atol=1e-3)


def test_complex_and_real_numbers_are_not_mixed(path, tmp_path):
    heat = Equation(LINE, [Diffusion(LINE, 0.05)])
    with (
        pytest.raises(FileError, match=r"psi\.h5: expected complex fields, as it holds$"),
        record(path, LINE, every=0.5, fields="psi", diagnostics=NORM, resume=True) as recorder,
    ):
        solve(heat, np.ones(12), (1.0, 2.0), callbacks=recorder)
    with RunFile.create(tmp_path / "real.h5", LINE, fields=["u"]) as file:
        with pytest.raises(ValueError, match=r"^density: complex numbers, expected real ones$"):
            file.write_snapshot(0.0, START)
        file.write_snapshot(0.0, START.real)
    with (
        pytest.raises(TypeError, match=r"^diagnostics\['sum'\] returns .*: expected a real number$"),
        record(tmp_path / "sum.h5", LINE, every=0.5, diagnostics={"sum": np.sum}) as recorder,
    ):
        solve(SCHROEDINGER, START, (0.0, 1.0), callbacks=recorder)


@pytest.mark.parametrize("mesh", [LINE, box((4, 3), (1.0, 1.0))])
def test_figures_show_modulus_and_phase(mesh, tmp_path):
    pytest.importorskip("matplotlib")
    x = mesh.centers[:, 0]
    equation = Equation(mesh, [Diffusion(mesh, 0.05j)])
    with record(tmp_path / "psi.h5", mesh, every=0.1, fields="psi") as recorder:
        solution = solve(equation, x * np.exp(3j * x), (0.0, 0.1), times=[0.0, 0.1], callbacks=recorder)
    ax = solution.plot(time=0.0)
    modulus, phase = (one for one in ax.figure.axes if one.get_title())
    assert [one.get_title().split(",")[0] for one in (modulus, phase)] == ["modulus", "phase"]
    for one, values in ((modulus, np.abs(solution.u[0])), (phase, np.angle(solution.u[0]))):
        drawn = one.lines[0].get_ydata() if mesh is LINE else one.collections[0].get_array().T.ravel()
        np.testing.assert_array_equal(drawn, values)
    assert solution.plot(ax=phase).get_title().startswith("modulus")
    assert solution.movie(tmp_path / "psi.gif").stat().st_size > 0
    assert solution.to_xarray(["psi"]).psi.dtype == complex
