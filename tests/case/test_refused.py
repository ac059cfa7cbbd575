"""Cases and calls that are refused in one line instead of a wrong result, a traceback or an endless loop."""

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.components.component import component
from meanfield.components.in_case import parameters_of, section_of
from meanfield.model.attention import Attention
from meanfield.model.errors import ArgumentError
from meanfield.model.kernel import KERNELS
from solvers import Diffusion, Equation, interval, solve
from solvers.mesh.mesh import circle
from solvers.recording.record import record

CASE = {
    "domain": {"manifold": "circle", "resolution": 16},
    "attention": {"beta": 2.0},
    "initial": {"kind": "uniform"},
    "time": {"end": 0.1},
}
OTHERS = {
    "line": ({"resolution": 96}, {"kind": "gaussian"}, "none"),
    "axisymmetric": ({"resolution": 16}, {"kind": "uniform"}, "post"),
    "free_radius_circle": ({"resolution": 16, "radii": 16}, {"kind": "gaussian"}, "pre"),
}


@pytest.mark.parametrize("manifold", OTHERS)
def test_a_domain_with_one_head_has_no_weight_of_it(manifold):
    domain, initial, norm = OTHERS[manifold]
    case = CASE | {"domain": {"manifold": manifold, **domain}, "initial": initial, "stabilizers": {"layer_norm": norm}}
    mf.load_case(case | {"attention": {"beta": 2.0, "heads": [{"weight": 1.0}]}})
    with pytest.raises(mf.CaseError, match=r"^attention.heads\[0\].weight = 0.5: expected one head of weight 1 "):
        mf.load_case(case | {"attention": {"beta": 2.0, "heads": [{"weight": 0.5}]}})


def test_a_quoted_key_with_a_bracket_is_an_unknown_key(tmp_path):
    """The search for the line of such a key once did not end."""
    path = tmp_path / "case.toml"
    path.write_text('"a[b" = 1\n')
    with pytest.raises(mf.CaseError, match="unknown key"):
        mf.load_case(path)


def test_a_number_in_a_formula_is_a_double():
    case = CASE | {"initial": {"kind": "formula", "density": f"1{'0' * 400} + x"}}
    with pytest.raises(mf.CaseError, match=r"expected numbers of absolute value at most 1.8e\+308"):
        mf.load_case(case)


def test_one_label_begins_with_what_labels_begin_with():
    """Causal masks with one label also accept by_label and the name ``label`` in a formula."""
    causal = CASE | {"domain": CASE["domain"] | {"labels": 1}, "attention": {"beta": 2.0, "mask": "causal"}}
    exact = mf.simulate(causal).density[0]
    for initial in ({"kind": "by_label", "parts": [{"kind": "uniform"}]}, {"kind": "formula", "density": "label"}):
        found = mf.simulate(causal | {"initial": initial}).density[0]
        np.testing.assert_allclose(found, exact, rtol=1e-14)  # rounding of the normalization


def test_a_file_of_a_label_is_not_overwritten(tmp_path):
    path = tmp_path / "own.h5"
    with h5py.File(path, "w") as file:
        file["density"] = np.ones(16)
    parts = [{"kind": "uniform"}, {"kind": "array", "file": str(path)}]
    case = CASE | {"attention": {"beta": 2.0, "mask": "causal"}, "initial": {"kind": "by_label", "parts": parts}}
    before = path.read_bytes()
    with pytest.raises(mf.FileError, match=r"is initial.parts\[1\].file of the case itself"):
        mf.run(case, path, overwrite=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("domain", [CASE["domain"], {"manifold": "particles", "dimension": 2}])
def test_a_solution_on_an_interval_is_no_initial_density(tmp_path, domain):
    path, mesh = tmp_path / "pde.h5", interval(0.0, 1.0, 16)
    with record(path, mesh, every=0.1) as recorder:
        solve(Equation(None, [Diffusion(mesh, 0.1)]), np.ones(16), (0, 0.1), callbacks=[recorder])
    with pytest.raises(mf.CaseError, match=r"^initial.file = .*written, not of interval"):
        mf.simulate(CASE | {"domain": domain, "initial": {"kind": "file", "file": str(path)}})


@pytest.mark.parametrize("until", [np.nan, np.inf])
def test_a_resume_without_end_leaves_the_file_as_it_is(tmp_path, until):
    path = tmp_path / "run.h5"
    mf.run(CASE, path)
    before = path.read_bytes()
    with pytest.raises(mf.CaseError, match=f"^until = {until}: expected a finite time"):
        mf.resume(path, until)
    assert path.read_bytes() == before


@pytest.mark.parametrize("changes", [["attention.mask=causal"], {"output": {"diagnostics": ["mass"]}}])
def test_a_change_by_way_of_another_key_is_refused(tmp_path, changes):
    """The mask determines domain.labels; a whole section [output] has other diagnostics."""
    path = tmp_path / "run.h5"
    mf.run(CASE, path)
    with pytest.raises(mf.CaseError, match="cannot change within a run"):
        mf.resume(path, 0.2, changes=changes)


def test_a_copy_that_cannot_be_written_is_one_line(tmp_path):
    result = mf.run(CASE, tmp_path / "run.h5")
    with pytest.raises(mf.FileError, match="cannot write it: No such file or directory"):
        result.save(tmp_path / "nowhere" / "copy.h5")


@pytest.mark.parametrize("window", [0.0, -1.0, 7.0, np.nan, "wide"])
def test_a_window_is_an_angle(window):
    with pytest.raises(ArgumentError, match=r"^window = "):
        Attention(circle(16), 2.0, kernel="windowed", window=window)


def test_a_kernel_record_takes_its_window():
    exact = Attention(circle(16), 2.0, kernel="windowed", window=0.5).rate
    assert Attention(circle(16), 2.0, kernel=KERNELS["windowed"], window=0.5).rate == exact
    with pytest.raises(ArgumentError, match=r"^window = None"):
        Attention(circle(16), 2.0, kernel=KERNELS["windowed"])


@pytest.mark.parametrize("degrees", [0, -1, 2.5])
def test_degrees_of_linear_theory_are_counted(degrees):
    with pytest.raises(mf.CaseError, match=f"^degrees = {degrees}: expected a whole number >= 1"):
        mf.stability(CASE, degrees=degrees)


def test_parameters_of_a_component_may_be_a_radius_or_a_list():
    bump = component("reaction", radius=0.5, center=[1.0, 0.0])(lambda x, density, **given: 0.0)
    assert parameters_of(section_of(bump)(radius=2.0)) == {"radius": 2.0, "center": (1.0, 0.0)}
    with pytest.raises(ValueError, match="choose another name"):
        component("initial", radius=0.5)


def test_a_component_that_is_refused_is_not_loaded():
    from meanfield.components.component import LOADED

    @component("diagnostic", dimensions={"time": 3})
    def three_times(x, mass):
        return np.ones(3)

    with pytest.raises(mf.CaseError, match="choose another name"):
        mf.load_components(three_times)
    assert ("diagnostic", "three_times") not in LOADED
