"""Masked arrays, whose hidden numbers would still be used: refused in every array argument of a user."""

import numpy as np
import pytest

import meanfield as mf
from solvers import (
    Advection,
    ConservationLaw,
    Convolution,
    DenseKernel,
    Diffusion,
    DriftDiffusion,
    Equation,
    FaceFluxes,
    NonlinearDiffusion,
    PointHarmonics,
    State,
    Value,
    Zonal,
    circle,
    convergence_study,
    deposit_points,
    exponential_sums,
    interval,
    push_forward,
    solve,
    triangles,
)
from solvers.mesh.interval import from_edges
from solvers.timestepping.evolution import evolve

LINE, CIRCLE = interval(0.0, 1.0, 16), circle(64)
X = LINE.centers[:, 0]
HEAT = Equation(LINE, [Diffusion(LINE, 0.1)])
ONE, ONES = np.ones(16), np.ones(64)
TURN = np.stack([-CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]], axis=1)
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[0, 1, 2], [1, 3, 2]])


def masked(values, count=1):
    """Return the values, with the first ``count`` of them masked."""
    values = np.asarray(values)
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) < count)


def run(*terms, mesh=LINE, u0=ONE):
    return solve(Equation(mesh, list(terms)), u0, (0.0, 0.1))


def wall(g):
    return run(Diffusion(LINE, 1.0, boundaries={"left": Value(g)}))


REFUSED = {
    "u0": lambda: solve(HEAT, masked(X), (0.0, 0.1)),
    "u0 list": lambda: solve(HEAT, [masked(X), X], (0.0, 0.1)),
    "u0 fields": lambda: solve(HEAT, masked(np.stack([X, X])), (0.0, 0.1)),
    "times": lambda: solve(HEAT, X, (0.0, 0.1), times=masked([0.0, 0.1])),
    "t": lambda: solve(HEAT, X, (0.0, 0.1))(masked([0.0, 0.1])),
    "integrate": lambda: LINE.integrate(masked(X)),
    "gradient": lambda: LINE.gradient(masked(X)),
    "divergence": lambda: LINE.divergence(masked(X[:, None])),
    "interpolate": lambda: LINE.interpolate(masked(X), [[0.5]]),
    "points of an interpolation": lambda: LINE.interpolate(X, masked([[0.5]])),
    "state.values": lambda: evolve(State(0.0, masked(X)), HEAT, "euler", 0.1),
    "diffusion coefficient": lambda: Diffusion(LINE, masked(ONE)),
    "diffusion coefficient tensor": lambda: Diffusion(LINE, masked(np.ones((16, 1, 1)))),
    "diffusion coefficient of place": lambda: Diffusion(LINE, lambda x: masked(x[:, 0])),
    "potential": lambda: run(DriftDiffusion(LINE, 0.5, masked(X))),
    "potential of place": lambda: run(DriftDiffusion(LINE, 0.5, lambda x: masked(x[:, 0]))),
    "potential of state": lambda: run(DriftDiffusion(LINE, 0.5, lambda t, u: masked(u))),
    "velocity": lambda: run(Advection(CIRCLE, lambda t, u: masked(TURN)), mesh=CIRCLE, u0=ONES),
    "face fluxes": lambda: run(Advection(LINE, FaceFluxes(lambda t, u: masked(np.zeros(17))))),
    "flux": lambda: run(ConservationLaw(CIRCLE, lambda u, x: masked(u), lambda u, x: u), mesh=CIRCLE, u0=ONES),
    "flux of u": lambda: run(ConservationLaw(CIRCLE, lambda u: masked(u), abs), mesh=CIRCLE, u0=ONES),
    "speed": lambda: run(ConservationLaw(CIRCLE, lambda u, x: u, lambda u, x: masked(u)), mesh=CIRCLE, u0=ONES),
    "phi": lambda: run(NonlinearDiffusion(LINE, lambda u: masked(u))),
    "f": lambda: run(lambda t, u: masked(u)),
    "g": lambda: wall(masked([1.0])),
    "boundaries": lambda: wall(lambda t, x: masked(np.ones(len(x)))),
    "kernel": lambda: Zonal(CIRCLE, masked([1.0, 0.5])),
    "kernel of z": lambda: Zonal(CIRCLE, lambda z: masked(z)),
    "u of Zonal": lambda: Zonal(CIRCLE, np.array([1.0, 0.5])).potential(masked(ONES)),
    "u of DenseKernel": lambda: DenseKernel(LINE, lambda x, y: (x * y).sum(axis=-1))(masked(ONE)),
    "u of Convolution": lambda: Convolution(LINE, lambda z: np.exp(-(z[..., 0] ** 2))).potential(masked(ONE)),
    "kernel of x, y": lambda: DenseKernel(LINE, lambda x, y: masked((x * y).sum(axis=-1)))(ONE),
    "kernel of x - y": lambda: Convolution(LINE, lambda z: masked(z[..., 0])).potential(ONE),
    "points": lambda: deposit_points(CIRCLE, masked([[1.0, 0.0]]), np.ones(1)),
    "masses": lambda: deposit_points(CIRCLE, np.array([[1.0, 0.0]]), masked([1.0])),
    "density": lambda: push_forward(CIRCLE, masked(ONES), lambda x: x),
    "weights": lambda: exponential_sums(TURN, TURN, masked(ONES)),
    "points of harmonics": lambda: PointHarmonics(masked(TURN), 3),
    "weights of harmonics": lambda: PointHarmonics(TURN, 3).analysis(masked(ONES)),
    "points of triangles": lambda: triangles(masked(CORNERS[0]), CORNERS[1]),
    "corners": lambda: triangles(CORNERS[0], masked(CORNERS[1])),
    "edges": lambda: from_edges(masked(np.linspace(0.0, 1.0, 5)), "line"),
    "exact": lambda: convergence_study(lambda n: (interval(0, 1, n), np.ones(n)), (8, 16), exact=lambda x: masked(x)),
    "query": lambda: mf.Head(query=masked(np.eye(2))),
    "inner": lambda: mf.FeedForward(masked(np.eye(2)), np.ones(2), np.eye(2)),
    "density of attention": lambda: mf.Attention(CIRCLE, 1.0).output(masked(ONES)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hidden_numbers_are_refused_in_a_line(name):
    with pytest.raises((ValueError, TypeError), match=r": \d+ of \d+ masked: expected numbers") as caught:
        REFUSED[name]()
    assert "\n" not in str(caught.value)


def test_a_mask_that_hides_nothing_is_taken():
    for hidden in (masked(X, 0), np.ma.masked_array(X)):
        found = solve(HEAT, hidden, (0.0, 0.1))
        assert type(found.u) is np.ndarray
        np.testing.assert_array_equal(found.u, solve(HEAT, X, (0.0, 0.1)).u)
