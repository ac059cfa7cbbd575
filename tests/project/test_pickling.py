"""Pickling and copying of every public object: the copy gives bitwise the same results as the original."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meanfield as mf
import solvers as s
from tests.support.public_objects import EQUATIONS, MESHES, Wind, bump, data, face_flux, half_square, stream

Example = tuple[Callable[[], Any], Callable[[Any], Any]]  # a constructor, and a probe of the object
CIRCLE, INTERVAL = MESHES["circle"], MESHES["interval"]
POINTS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": deepcopy,
}
WITHOUT_OBJECTS = {
    "Integrator": "a protocol",
    "Term": "a protocol",
    "StiffTerm": "a protocol",
    "RunFile": "an open file",
    "Run": "tests/solvers/io/test_run_file.py",
    "Result": "tests/results/test_pickles.py",
}


def rate(term: Any) -> np.ndarray:
    """Return the rate of a term at a state."""
    state, found = bump(term.mesh), np.zeros(term.mesh.cells)
    stable = term.prepare(0.3, state)
    term.rate(0.01, found)
    return np.append(found, stable)


def solved(equation: s.Equation, state: np.ndarray, method: str) -> s.Solution:
    return s.solve(equation, state, (0.2, 0.25), method=method, callbacks=three_steps)


def three_steps(state: s.State) -> bool:
    return bool(state.steps >= 3)


def fields(mesh: s.Mesh) -> list[Any]:
    names = ("centers", "volumes", "face_cells", "face_centers", "face_normals", "face_areas", "face_curvatures")
    arrays = [getattr(mesh, name) for name in (*names, "cell_start", "cell_sides", "ring_cells", "side_cells")]
    ends = np.zeros(0) if mesh.face_ends is None else mesh.face_ends()
    return [*arrays, mesh.face_conductances(), ends, mesh.width, repr(mesh)]


def plainly(value: Any) -> Any:
    """Return a comparable form of a value: boundary data at a time, otherwise the repr."""
    return value.g(0.3, POINTS) if callable(getattr(value, "g", None)) else repr(value)


def a_term(name: str) -> Example:
    return lambda: EQUATIONS[name]()[0].terms[0], rate


def of_mesh(make: Callable[[s.Mesh], Any], probe: Callable[[Any], Any], mesh: str = "circle") -> Example:
    return lambda: make(MESHES[mesh]()), probe


def a_solution() -> s.Solution:
    return solved(*EQUATIONS["diffusion with conditions of time"]())


def noisy(noise: s.Noise) -> np.ndarray:
    return s.solve(s.Equation(noise.mesh, [still]), bump(noise.mesh), (0.0, 0.02), method=noise).u


def still(time: float, values: np.ndarray) -> np.ndarray:
    return 0 * values


def attended(attention: Any) -> Any:
    return attention.output(bump(attention.mesh))


@mf.component("reaction", strength=1.0)
def birth(density: np.ndarray, mesh: s.Mesh, strength: float) -> np.ndarray:
    return strength * density


def an_attention() -> Any:
    heads = [mf.Head(query=np.diag([1.0, 2.0, 0.5]), value=0.5), mf.Head()]
    return mf.Attention(MESHES["sphere"](), 3.0, "sinkhorn", heads=heads, kernel="gaussian")


def an_outcome() -> Any:
    arrays = {"cosine": mf.transformer.Labelled(("layer",), [1.0, 2.0])}
    return mf.transformer.Outcome(arrays, attrgetter("title"), print, title="two layers")


EXAMPLES: dict[str, Example] = {
    "Advection": a_term("advection on a sphere, donor cells"),
    "Column": (lambda: s.Column("degree", (3,)), plainly),
    "ConservationLaw": a_term("conservation law"),
    "ConvergenceStudy": (lambda: s.ConvergenceStudy((8, 16), (0.1, 0.02), (np.nan, 2.3), True), plainly),
    "Convolution": of_mesh(lambda mesh: s.Convolution(mesh, gaussian), lambda pull: pull.drift(bump(pull.mesh)), "box"),
    "DenseKernel": of_mesh(lambda mesh: s.DenseKernel(mesh, pairs), lambda kernel: kernel(bump(kernel.mesh))),
    "Diffusion": (lambda: EQUATIONS["diffusion by a tensor"]()[0].stiff, rate),
    "DriftDiffusion": a_term("drift and diffusion, potential of time"),
    "Equation": (lambda: EQUATIONS["two stiff terms and a source"](), lambda found: solved(*found).u),
    "Euler": (s.Euler, plainly),
    "Every": (lambda: s.Every(0.5), plainly),
    "Exploding": (lambda: s.Exploding("at time 1"), plainly),
    "FaceFluxes": (lambda: s.FaceFluxes(face_flux), lambda flux: rate(s.Advection(INTERVAL(), flux))),
    "FileError": (lambda: s.FileError("run.h5: damaged"), plainly),
    "Flux": (lambda: s.Flux(data), plainly),
    "Laplacian": of_mesh(s.Laplacian, lambda laplacian: laplacian.solve(laplacian.mesh.centers[:, 0]), "sphere"),
    "Listed": (lambda: s.Listed((0.5, 1.0)), plainly),
    "Logarithmic": (lambda: s.Logarithmic(0.1, 10.0, 5), plainly),
    "Mesh": of_mesh(lambda mesh: mesh, fields, "sphere"),
    "NonFinite": (lambda: s.NonFinite("at time 1"), plainly),
    "NonlinearDiffusion": a_term("nonlinear diffusion"),
    "Observer": (lambda: s.Observer(three_steps, s.Every(0.5)), plainly),
    "Outflow": (s.Outflow, plainly),
    "Periodic": (s.Periodic, plainly),
    "PointHarmonics": (lambda: s.PointHarmonics(POINTS, 4), lambda points: points.analysis(np.arange(3.0))),
    "PushForward": of_mesh(s.PushForward, lambda push: push.apply(bump(push.mesh), np.negative)),
    "Robin": (lambda: s.Robin(1.0, 2.0, data), plainly),
    "ShallowWater": (s.ShallowWater, plainly),
    "Solution": (a_solution, lambda solution: [solution.t, solution.u, solution(0.2 + 1e-6), fields(solution.mesh)]),
    "Source": (lambda: s.Source(three_times), lambda term: (term.prepare(0.3, POINTS), term.f(0.3, POINTS))[1]),
    "State": (lambda: s.State(0.5, np.arange(3.0)), lambda state: [state.time, state.values]),
    "Noise": of_mesh(lambda mesh: s.Noise(mesh, 0.1, 0.01, seed=3), noisy),
    "SteadyState": (s.SteadyState, plainly),
    "StreamFunction": (lambda: s.StreamFunction(stream), lambda psi: rate(s.Advection(MESHES["torus"](), psi))),
    "Threshold": (lambda: s.Threshold(2.0), lambda event: event(0.0, np.arange(3.0))),
    "Value": (lambda: s.Value(data), plainly),
    "Wall": (s.Wall, plainly),
    "Zonal": of_mesh(lambda mesh: s.Zonal(mesh, half_square), lambda zonal: zonal.drift(bump(zonal.mesh)), "sphere"),
    "Attention": (an_attention, attended),
    "Case": (lambda: mf.load_case("metastable_sphere", ["attention.beta=4"]), plainly),
    "CaseError": (lambda: _refusal("attention.beta=x"), plainly),
    "Component": (lambda: birth, lambda component: component(np.ones(3), None, 2.0)),
    "FeedForward": (
        lambda: mf.FeedForward(np.eye(3), np.zeros(3), np.eye(3), "gelu"), lambda network: network(POINTS)
    ),
    "Head": (lambda: mf.Head(query=np.eye(3)), plainly),
    "LayerNorm": (lambda: mf.LayerNorm("peri"), lambda norm: norm.speed_scale(0.0, 2.0, POINTS)),
    "Labelled": (lambda: mf.transformer.Labelled(("layer",), [1.0, 2.0], "cosine"), plainly),
    "Outcome": (an_outcome, lambda outcome: [outcome["cosine"], outcome.summary]),
    "TextWarning": (lambda: mf.transformer.TextWarning("text.txt: 9 tokens"), plainly),
    "LivePlot": (lambda: mf.LivePlot("energy"), lambda plot: [plot.names, plot.draw()]),
    "Reaction": (lambda: EQUATIONS["attention on a circle"]()[0].terms[-1], lambda term: term.growth(np.arange(3.0))),
}  # fmt: skip


def gaussian(offsets: np.ndarray) -> np.ndarray:
    return np.exp(-(offsets**2).sum(axis=1))


def pairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.exp(-((x - y) ** 2).sum(axis=2))


def three_times(time: float, u: np.ndarray) -> np.ndarray:
    return 3.0 * u


def _refusal(change: str) -> mf.CaseError:
    with pytest.raises(mf.CaseError) as caught:
        mf.load_case("metastable_sphere", [change])
    return caught.value


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    else:
        np.testing.assert_array_equal(one, other)


def _public() -> list[tuple[Any, str]]:
    names = [(package, name) for package in (s, mf, mf.transformer) for name in package.__all__]
    return [(package, name) for package, name in names if not inspect.ismodule(getattr(package, name))]


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(("package", "name"), _public(), ids=lambda value: getattr(value, "__name__", value))
def test_every_public_object_survives(package: Any, name: str, how: str) -> None:
    """Every class has an example, which a new class needs here; functions and tables are taken directly."""
    public = getattr(package, name)
    if not inspect.isclass(public):
        copied = COPIES[how](public)
        assert list(copied) == list(public) if isinstance(public, dict) else copied is public
        return
    if name in WITHOUT_OBJECTS:
        return
    make, probe = EXAMPLES[name]
    value = make()
    expected = probe(COPIES[how](value))
    assert_same(probe(value), expected)
    assert_same(probe(COPIES[how](value)), expected)  # with all results cached meanwhile


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", MESHES)
def test_every_mesh_survives(name: str, how: str) -> None:
    mesh = MESHES[name]()
    copied = COPIES[how](mesh)
    assert_same(fields(copied), fields(mesh))
    assert not copied.centers.flags.writeable
    assert not COPIES[how](mesh).volumes.flags.writeable


@pytest.mark.parametrize("name", EQUATIONS)
def test_every_equation_survives(name: str) -> None:
    equation, state, method = EQUATIONS[name]()
    found = solved(equation, state, method)
    equation.prepare(0.2, state)  # so that the terms have been used
    for copied in COPIES.values():
        assert_same(solved(copied(equation), state, method).u, found.u)
        assert_same(copied(found).u, found.u)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized", "sinkhorn"])
@pytest.mark.parametrize("matrix", ["query", "key", "value", None])
@pytest.mark.parametrize("mesh", ["circle", "sphere"])
def test_attention_of_every_kind_of_head_survives(mesh: str, matrix: str | None, normalization: str) -> None:
    """Sums over sources have another form for each matrix."""
    space = {"circle": s.circle, "sphere": s.sphere}[mesh](24)
    head = mf.Head(**({matrix: np.diag([1.0, 2.0, 0.5][: space.centers.shape[1]])} if matrix else {}))
    attention = mf.Attention(space, 3.0, normalization, heads=[head])
    expected = attended(attention)
    for copied in COPIES.values():
        assert_same(attended(copied(attention)), expected)


@pytest.mark.parametrize("how", COPIES)
def test_an_open_recorder_is_not_copied(how: str, tmp_path: Path) -> None:
    refused = pytest.raises(TypeError, match=r"run\.h5: a recorder holds its file open and cannot be copied")
    with s.record(tmp_path / "run.h5", CIRCLE(), every=0.1) as recorder, refused:
        COPIES[how](recorder)


def test_a_mesh_by_formula_is_sent_as_its_formula() -> None:
    mesh = s.sphere(64)
    assert mesh.centers.shape == (mesh.cells, 3)
    assert len(pickle.dumps(mesh)) < 10 * mesh.cells  # bytes: volumes alone have 8 a cell


def _of_other_process(name: str) -> s.Solution:
    return solved(*EQUATIONS[name]())


def test_solutions_come_from_other_processes() -> None:
    names = ["diffusion with conditions of time", "advection on a circle, donor cells"]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for name, found in zip(names, pool.map(_of_other_process, names), strict=True):
            expected = solved(*EQUATIONS[name]())
            assert_same([found.t, found.u], [expected.t, expected.u])
            assert_same(found(0.2 + 1e-6), expected(0.2 + 1e-6))


def test_functions_without_a_name_are_sent_by_cloudpickle() -> None:
    """joblib and Dask use cloudpickle: pickle finds functions only by name."""
    cloudpickle, mesh = pytest.importorskip("cloudpickle"), CIRCLE()
    equation = s.Equation(mesh, [s.Advection(mesh, Wind(mesh)), lambda t, u: u - u**3])
    found = s.solve(equation, bump(mesh), (0.0, 0.01))
    for copied in (pickle.loads(cloudpickle.dumps(found)), deepcopy(found)):
        assert_same([copied.t, copied.u, copied(0.005)], [found.t, found.u, found(0.005)])
