"""Diagnostics of many densities at once: a value depends on its own density alone, to the last bit."""

from typing import Any

import numpy as np
import pytest

import meanfield as mf
from meanfield.clusters.on_cells import find_clusters, find_clusters_of_rows
from meanfield.domains.sphere.diagnostics import diagnostics_round
from meanfield.domains.sphere.initial import initial_von_mises_fisher
from meanfield.equation import Velocity
from meanfield.model.attention import Attention
from meanfield.model.heads import Head
from meanfield.simulation import set_up
from solvers.mesh.mesh import circle, sphere

CASES: dict[str, dict[str, Any]] = {
    "circle": {},
    "odd circle": {"domain": {"resolution": 513}},
    "sums in many parts": {"domain": {"resolution": 9000}},
    "unnormalized": {"attention": {"normalization": "unnormalized"}},
    "heads": {"attention": {"heads": [{"weight": 0.5}, {"weight": 0.5, "value": [[0.0, 1.0], [-1.0, 0.0]]}]}},
    "general matrix": {"attention": {"query": [[1.0, 0.5], [0.0, 1.0]]}},
    "opposite": {"attention": {"query": [[-1.0, 0.0], [0.0, -1.0]], "beta": 9.0}},
    "no beta": {"attention": {"beta": 0.0}},
    "window": {"attention": {"kernel": "windowed", "window": 0.5}},
    "ngpt": {"stabilizers": {"layer_norm": "ngpt"}},
    "speed by time": {"stabilizers": {"layer_norm": "cod"}},
    "field": {"feed_forward": {"activation": "relu", "width": 4, "seed": 1}},
    "labels": {"domain": {"labels": 3, "resolution": 32}, "attention": {"mask": "causal"}},
    "sphere": {"domain": {"manifold": "sphere", "resolution": 16}},
    "sphere with heads": {
        "domain": {"manifold": "sphere", "resolution": 16},
        "attention": {"heads": [{"weight": 0.5}, {"weight": 0.5, "value": np.diag([1.0, 2.0, 1.0]).tolist()}]},
    },
}


def diagnostics_and_states(changes: dict[str, Any]):
    """Return all diagnostics of a case, and densities: smooth, of few cells, uniform, and with empty cells."""
    data: dict[str, Any] = {
        "domain": {"manifold": "circle", "resolution": 64},
        "attention": {"beta": 4.0},
        "initial": {"kind": "perturbed"},
        "time": {"end": 1.0},
    }
    for section, keys in changes.items():
        data[section] = data.get(section, {}) | keys
    case = mf.load_case(data)
    problem, random = set_up(case), np.random.default_rng(1)
    start = problem.initial()
    states = [start * np.exp(size * random.standard_normal(start.shape)) for size in (0.0, 1e-9, 0.1, 3.0, 30.0)]
    states += [np.where(random.random(start.shape) < 0.9, 0.0, start), np.where(states[-1] < 1e-3, 0.0, states[-1])]
    volumes = np.tile(problem.space.volumes, len(start) // problem.space.cells)
    return problem.diagnostics(case.output.diagnostics, None), [values / (values @ volumes) for values in states]


@pytest.mark.parametrize("name", CASES)
def test_a_value_does_not_depend_on_the_states_beside_it(name):
    diagnostics, states = diagnostics_and_states(CASES[name])
    times = [0.5 * k for k in range(len(states))]
    expected = [diagnostics(*each) for each in zip(times, states, strict=True)]
    for first, last in ((0, 7), (1, 4), (2, 7), (3, 5)):
        rows = diagnostics.of_states(times[first:last], states[first:last])
        assert rows.keys() == set(diagnostics.names)
        for key, column in rows.items():
            own = np.array([values[key] for values in expected[first:last]])
            assert column.tobytes() == own.tobytes(), key


def test_each_state_has_the_velocity_of_its_time():
    """Heads change between the samples, as those of layers do."""
    mesh = circle(32)
    before, after = (
        Velocity(Attention(mesh, 3.0, heads=[Head(value=v, query=q)])) for v, q in ((1.0, 1.0), (-2.0, 2.5))
    )
    names, density = ("speed", "energy"), initial_von_mises_fisher(mesh, [[1.0, 0.0]], [2.0], [1.0])
    diagnostics = diagnostics_round(names, mesh, lambda time: before if time < 1 else after)
    rows = diagnostics.of_states([0.0, 0.5, 1.0], [density] * 3)
    for name in names:
        own = [diagnostics_round(names, mesh, velocity)(0.0, density)[name] for velocity in (before, before, after)]
        assert rows[name].tolist() == own
        assert own[0] != pytest.approx(own[2], rel=0.01)


@pytest.mark.parametrize("mesh", [circle(97), sphere(10)], ids=["circle", "sphere"])
def test_clusters_of_many_densities(mesh):
    """The clusters are those of each density, also of a uniform one, plateaus, and many peaks, some of equal mass."""
    random = np.random.default_rng(0)
    peaks = np.zeros((2, mesh.cells))
    peaks[0, :: mesh.cells // 8] = 1.0
    peaks[1, [3, mesh.cells // 2]] = 1.0, 2.0
    rows = np.concatenate([np.ones((1, mesh.cells)), peaks, random.random((3, mesh.cells)) ** 9])
    rows /= (rows @ mesh.volumes)[:, None]
    found = find_clusters_of_rows(mesh, rows)
    assert found.counts[0] == 0
    assert found.counts[1] > 2
    for k, row in enumerate(rows):
        own, count = find_clusters(mesh, row), found.counts[k]
        assert own.count == count
        assert own.masses.tobytes() == found.masses[k, :count].tobytes()
        assert own.centers.tobytes() == found.centers[k, :count].tobytes()
        assert own.basin.tobytes() == found.basins[k].tobytes()
        assert (np.diff(own.masses) <= 0).all()
        held = np.array([row[own.basin == j] @ mesh.volumes[own.basin == j] for j in range(count)])
        assert own.masses == pytest.approx(held, rel=1e-12)  # rounding of sums in another order
