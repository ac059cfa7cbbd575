"""Matrices that change from layer to layer, as in a trained Transformer."""

import h5py
import numpy as np
import pytest
from scipy.linalg import expm

from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.case.overrides import inline
from meanfield.model.matrices import matrices_of_layers
from meanfield.simulation import set_up
from solvers.timestepping.integrate import integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.state import State

CASE = """
[domain]
manifold = "circle"
resolution = 256
[attention]
beta = 3.0
file = "{path}"
[initial]
kind = "points"
points = [[1.0, 0.0]]
[time]
end = 1.5
step = 0.5
"""
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def saved(path, **arrays):
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    return path


@pytest.mark.parametrize("name", ["weights.npz", "weights.h5"])
def test_each_layer_turns_by_its_own_matrix_for_its_own_time(tmp_path, name):
    """Skew V rotates the cluster at its own rate: 1, −2 and 3 for half a unit of time each make 1 radian."""
    path = saved(tmp_path / name, value=np.stack([TURN, -2 * TURN, 3 * TURN]))
    problem = set_up(parse(CASE.format(path=path)))
    state = State(0.0, problem.initial())
    angles = []

    def look(state):
        center = (state.values * problem.space.volumes) @ problem.space.centers
        angles.append(np.arctan2(center[1], center[0]))

    class Halves:
        def due(self, count):
            return 0.5 * count

    integrate(state, problem.dynamics, 1.5, [Observer(look, Halves())])
    assert state.time == 1.5
    np.testing.assert_allclose(angles, [0.0, 0.5, -0.5, 1.0], atol=0.01)  # 1 % of a path of 1 radian


@pytest.mark.parametrize("manifold", ["circle", "particles"])
@pytest.mark.parametrize("weights", [[1.0, 1.0], [0.7, -0.2]])
def test_heads_of_a_file_are_those_of_the_case(tmp_path, manifold, weights):
    """Equal heads in a file and in the case have equal velocities: the sum with weights in both."""
    random = np.random.default_rng(1)
    matrices = {name: random.standard_normal((2, 2, 2)) for name in ("query", "key", "value")}
    path = saved(tmp_path / "w.npz", **{name: m[None] for name, m in matrices.items()}, weight=np.array(weights))
    heads = [{name: m[k].tolist() for name, m in matrices.items()} | {"weight": weights[k]} for k in range(2)]
    domain = f'domain={{manifold="{manifold}"' + (",dimension=2}" if manifold == "particles" else ",resolution=64}")
    points = "initial.points=[[1.0,0.0],[0.6,0.8],[-0.3,1.0]]"
    given = inline({"beta": 3.0, "heads": heads})
    ends = []
    for changes in ([], [f"attention={given}"]):
        problem = set_up(parse(CASE.format(path=path).replace("step = 0.5\n", ""), [domain, points, *changes]))
        state = State(0.0, problem.initial())
        integrate(state, problem.dynamics, 0.5)
        ends.append(state.values)
    np.testing.assert_allclose(*ends, rtol=1e-12, atol=1e-12)


def test_the_last_layer_lasts(tmp_path):
    path = saved(tmp_path / "one.npz", value=TURN[None])
    problem = set_up(parse(CASE.format(path=path)))
    state = State(0.0, problem.initial())
    integrate(state, problem.dynamics, 1.5)
    center = (state.values * problem.space.volumes) @ problem.space.centers
    np.testing.assert_allclose(center / np.linalg.norm(center), expm(1.5 * TURN)[:, 0], atol=0.015)


def test_a_stop_is_heard_within_a_layer(tmp_path):
    path = saved(tmp_path / "weights.npz", value=np.stack([TURN, TURN, TURN]))
    problem = set_up(parse(CASE.format(path=path)))
    state = State(0.0, problem.initial())
    integrate(state, problem.dynamics, 1.5, after_step=lambda state: state.steps == 3)
    assert state.steps == 3


REFUSED = {
    "nothing": ({}, "expected arrays query, key or value"),
    "shape": ({"value": np.zeros((2, 3, 3))}, r"value has shape \(2, 3, 3\): expected \(layers, 2, 2\)"),
    "layers": (
        {"value": np.zeros((2, 2, 2)), "key": np.zeros((3, 2, 2))},
        "the same number of layers and heads in each array",
    ),
    "no weights": (
        {"value": np.zeros((3, 2, 2, 2))},
        r"2 heads without weights: expected an array weight \(2,\), 1 for the sum of heads, 0.5 for their mean",
    ),
    "weights": (
        {"value": np.zeros((3, 2, 2, 2)), "weight": np.ones(3)},
        r"weight has shape \(3,\): expected \(2,\) or \(3, 2\)",
    ),
    "finite weights": ({"value": np.zeros((1, 2, 2)), "weight": [np.inf]}, "weight is not finite"),
    "finite": ({"value": np.full((1, 2, 2), np.nan)}, "value is not finite"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_files_that_do_not_fit_are_refused_in_one_line(tmp_path, what):
    arrays, message = REFUSED[what]
    path = saved(tmp_path / "weights.npz", **arrays)
    with pytest.raises(CaseError, match=f"attention.file = .*{message}") as caught:
        set_up(parse(CASE.format(path=path)))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CaseError, match=r"attention.file = .*none.npz: no such file"):
        set_up(parse(CASE.format(path=tmp_path / "none.npz")))
    with pytest.raises(ValueError, match=r"expected a file that ends in .npz or .h5"):
        matrices_of_layers(saved(tmp_path / "weights.npz", value=TURN[None]).rename(tmp_path / "weights.txt"), 2)
