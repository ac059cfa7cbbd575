"""Input of `solve` and of terms that would give a wrong answer: refused in a line, or converted as intended."""

import re
from dataclasses import replace

import numpy as np
import pytest

from solvers import (
    Advection,
    ConservationLaw,
    Convolution,
    DenseKernel,
    Diffusion,
    DriftDiffusion,
    Equation,
    FaceFluxes,
    Flux,
    Laplacian,
    Noise,
    NonlinearDiffusion,
    Robin,
    Source,
    State,
    SteadyState,
    StreamFunction,
    Threshold,
    Value,
    Zonal,
    box,
    circle,
    convergence_study,
    deposit_points,
    harmonic_transform,
    interval,
    limit_positivity,
    read_triangles,
    solve,
    zonal_operator,
)
from solvers.timestepping.evolution import evolve

LINE, CIRCLE, PLANE = interval(0.0, 1.0, 16), circle(64), box((4, 4), (1.0, 1.0))
X = LINE.centers[:, 0]
TURN = np.stack([-CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]], axis=1)
HEAT = Equation(LINE, [Diffusion(LINE, 0.1)])


def test_a_field_that_does_not_change_is_solved_in_a_few_steps():
    """A constant transported through a periodic interval has an exactly zero rate, and no length of step."""
    mesh = interval(0.0, 1.0, 64, periodic=True)
    equation = Equation(mesh, [Advection(mesh, lambda t, u: np.ones((64, 1)))])
    found = solve(equation, np.ones(64), (0.0, 0.1))
    assert np.array_equal(found.u[-1], np.ones(64))
    assert found.steps < 20, found.message


@pytest.mark.parametrize("u0", [[1, 2] * 8, np.arange(16), X < 0.5, X.astype(np.float16), X[::-1]])
def test_initial_fields_of_any_numbers_are_copied(u0):
    kept = np.array(u0)
    found = solve(HEAT, u0, (0.0, 0.1))
    assert found.u.dtype == np.float64
    assert found.u[-1] @ LINE.volumes == pytest.approx(kept.astype(float) @ LINE.volumes, rel=1e-12)
    assert np.array_equal(u0, kept)


def test_a_read_only_field_is_taken():
    u0 = X.copy()
    u0.flags.writeable = False
    assert np.array_equal(solve(HEAT, u0, (0.0, 0.1)).u[0], u0)


def changing(t, u):
    u *= -1.0
    return u


def changing_wind(t, u):
    u *= -1.0
    return TURN


def gone(t, u):
    return np.where(TURN > 0.99, np.nan, TURN)


def with_wind(velocity):
    return solve(Equation(CIRCLE, [Advection(CIRCLE, velocity)]), np.ones(64), (0.0, 0.1))


def pointing_in(face):
    mesh = box((4, 4), (1.0, 1.0))
    normals = mesh.face_normals.copy()
    normals[face] *= -1
    return replace(mesh, face_normals=normals)


NAN_LATER = Equation(CIRCLE, [Advection(CIRCLE, lambda t, u: TURN * (np.nan if t > 0.05 else 1.0))])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: solve(HEAT, np.ones((0, 16)), (0, 1)), r"u0 of shape \(0, 16\): expected \(16,\) or"),
        (lambda: solve(HEAT, np.ones((2, 2, 16)), (0, 1)), r"u0 of shape \(2, 2, 16\): expected \(16,\) or"),
        (lambda: solve(HEAT, lambda x: x, (0, 1)), "u0 of a function: expected numbers, one for each cell"),
        (lambda: solve(HEAT, X, (0, 1), times=5), "times = 5: expected a list of times"),
        (lambda: Equation(LINE, [Diffusion(interval(0, 2, 16), 1.0)]), r"Diffusion on another mesh \(interval of 16"),
        (
            lambda: Equation(None, [Diffusion(LINE, 1.0), Diffusion(interval(0, 2, 16), 1.0)]),
            r"Diffusion on another mesh \(interval of 16 cells\)",
        ),
        (lambda: with_wind(changing_wind), "velocity changes the field u that it is given: expected a new array"),
        (lambda: solve(Equation(None, [changing]), [1.0], (0, 1)), "changing changes the field u that it is given"),
        (lambda: with_wind(gone), "at time 0, .* the rate of change by Advection of gone is not finite"),
        (lambda: solve(NAN_LATER, np.ones(64), (0, 1)), "at time 0.05, .* just after that time is not finite"),
        (lambda: with_wind(lambda u: TURN), r"velocity = <lambda>\(u\): expected a function of \(t, u\)"),
        (lambda: Equation(None, [lambda u: -u]), r"f = <lambda>\(u\): expected a function of \(t, u\)"),
        (lambda: Equation(None, [lambda t, u: -u], limit=3), r"limit = int: expected a function of \(u\)"),
        (
            lambda: Equation(None, [lambda t, u: -u], limit=lambda: 3),
            r"limit = <lambda>\(\): expected a function of \(u\)",
        ),
        (lambda: ConservationLaw(LINE, lambda: 1, lambda u, x: u), r"flux = <lambda>\(\): expected .* \(u, x\)"),
        (lambda: Value(lambda x: x), r"g of Value = <lambda>\(x\): expected a function of \(t, x\)"),
        (lambda: Flux(None), r"g of Flux = None: expected a number, or a function of \(t, x\)"),
        (lambda: Robin(1.0, 1.0, "hot"), "g of Robin = 'hot': expected a number"),
        (lambda: solve(Equation(None, [lambda t, u: None]), [1.0], (0, 1)), "<lambda> = NoneType: expected an array"),
        (
            lambda: solve(Equation(LINE, [Diffusion(LINE, 1.0, nonnegative=True)]), X - 0.5, (0, 1)),
            "u0 of least value -0.46875: expected a density >= 0, by nonnegative=True of Diffusion",
        ),
        (
            lambda: evolve(
                State(0.0, X - 0.5), Equation(None, [Advection(LINE, changing, nonnegative=True)]), "euler", 1.0
            ),
            "state.values of least value -0.46875: expected a density >= 0",
        ),
        (
            lambda: solve(Equation(LINE, [NonlinearDiffusion(LINE, lambda u: (u - 1) ** 2)]), X, (0, 1)),
            "phi decreases at u = 0.03125: expected an increasing function",
        ),
        (lambda: Diffusion(pointing_in(5), 1.0), r"mesh.face_normals\[5\] = \[-1. -0.\]: expected a unit vector"),
        (lambda: Diffusion(pointing_in(0), 1.0), r"mesh.face_normals\[0\]"),
        (lambda: interval(0, 1, 8, stretch=2), r"stretch = 2: expected a function of \[0, 1\]"),
        (lambda: solve(Equation(None, [lambda t, u: -u]), 1.0, (0, 1)), r"u0 of shape \(\): expected an array"),
        (lambda: box((4, 4), ((0, 1, 2), (0, 1))), r"extent = .*: expected a length or \(low, high\) for each axis"),
        (lambda: harmonic_transform(LINE, 3), "mesh of a interval: expected a circle or a sphere of rings"),
        (lambda: zonal_operator(LINE, X, X), "mesh of a interval: expected a circle or a sphere of rings"),
        (
            lambda: deposit_points(LINE, np.ones((1, 1)), np.ones(1)),
            "mesh of a interval: expected a circle, a sphere of rings",
        ),
        (lambda: deposit_points(CIRCLE, np.ones((1, 3)), np.ones(1)), r"points of shape \(1, 3\): expected \(1, 2\)"),
        (lambda: DenseKernel(LINE, 3.0), r"kernel = float: expected a function of \(x, y\)"),
        (lambda: solve(HEAT, X, (0, 1)).to_xarray(["volume"]), r"fields = \['volume'\]: expected 1 names, each once"),
        (lambda: solve(HEAT, [[1, 2], [3]], (0, 1)), "u0: rows of unequal lengths: expected"),
        (lambda: solve(HEAT, X, (1.0, 1 + 1e-13)), r"t_span = .*: expected t1 − t0 of 2.2e-11 or more"),
        (lambda: Laplacian(LINE).solve(1j * X), "f of complex128: expected real numbers"),
        (lambda: solve(HEAT, X, (0, 1), method=Noise(CIRCLE, 1.0, 0.1)), r"mesh of Noise has \d+ cells: expected 16"),
        (lambda: solve(HEAT, X, (0, 1), times="ab"), "times = 'ab': expected a list of times"),
        (lambda: solve(HEAT, X, (0, 1), method=["ark4"]), r"method = \['ark4'\]: expected 'auto'"),
        (lambda: solve(HEAT, X, (0, 1), events=lambda u: 1.0), r"events\[0\] = <lambda>\(u\): expected .* \(t, u\)"),
        (lambda: solve(HEAT, X, (0, 1), events=lambda t, u: None), r"events\[0\] returns None: expected one number"),
        (lambda: solve(HEAT, X, (0, 1), events=lambda t, u: u), r"events\[0\] returns shape \(16,\): expected one"),
        (lambda: solve(HEAT, X, (0, 1), events=lambda t, u: np.nan), r"events\[0\] returns nan at time 0"),
        (lambda: solve(HEAT, X, (0, 1), events=SteadyState), r"events\[0\] = SteadyState: expected an object"),
        (lambda: solve(HEAT, X, (0, 1), callbacks=lambda t, u: None), r"callbacks\[0\] = .* of \(state\)"),
        (
            lambda: solve(HEAT, X, (0, 1), events=lambda t, u: t > 0.5),
            r"events\[0\] returns False: expected one",
        ),
        (lambda: Threshold("high"), "level = 'high': expected a finite number"),
        (lambda: SteadyState(-1.0), "rtol = -1.0: expected"),
        (lambda: Diffusion(LINE, 1.0, boundaries=Value(0.0)), "boundaries = Value.*: expected a dict"),
        (lambda: Zonal(CIRCLE, lambda: 1.0), r"kernel = <lambda>\(\): expected a function of \(z\)"),
        (lambda: Zonal(CIRCLE, lambda z: np.nan * z), "kernel: expected finite numbers"),
        (lambda: Zonal(CIRCLE, lambda z: 1j * z), "kernel of dtype complex128: expected real numbers"),
        (lambda: Zonal(CIRCLE, lambda z: z[:2]), r"kernel of shape \(2,\): expected \(\d+,\), as z has"),
        (lambda: convergence_study(lambda n: 0.0, 8), "resolutions = 8: expected a list of numbers"),
        (lambda: convergence_study(lambda n: X, (8, 16, 32)), "problem returns ndarray: expected a number or"),
        (lambda: evolve(HEAT, State(0.0, X), "euler", 1.0), "state, equation = Equation, State: expected a State and"),
        (lambda: read_triangles("nowhere.msh"), "nowhere.msh: expected an existing file"),
    ],
)
def test_what_would_be_wrong_is_named_in_a_line(run, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError, ArithmeticError), match=message) as caught:
        run()
    assert "\n" not in str(caught.value)


def heat_between(condition):
    return solve(Equation(LINE, [Diffusion(LINE, 1.0, boundaries={"left": condition})]), X, (0, 1))


def rate_of(mesh, term):
    return term.prepare(0.0, np.ones(mesh.cells))


COEFFICIENTS = {
    "diffusion coefficient": lambda f: Diffusion(LINE, lambda x: f(16)),
    "diffusion coefficient of a field": lambda f: Diffusion(LINE, [1.0, lambda x: f(16)]),
    "phi": lambda f: rate_of(LINE, NonlinearDiffusion(LINE, lambda u: f(16))),
    "potential of place": lambda f: DriftDiffusion(LINE, 1.0, lambda x: f(16)),
    "potential of the state": lambda f: rate_of(LINE, DriftDiffusion(LINE, 1.0, lambda t, u: f(16))),
    "velocity": lambda f: rate_of(CIRCLE, Advection(CIRCLE, lambda t, u: f(64))),
    "face fluxes": lambda f: rate_of(LINE, Advection(LINE, FaceFluxes(lambda t, u: f(17)))),
    "psi": lambda f: rate_of(PLANE, Advection(PLANE, StreamFunction(lambda t, x: f(len(x))))),
    "flux": lambda f: rate_of(CIRCLE, ConservationLaw(CIRCLE, lambda u: f(64), lambda u: u)),
    "speed": lambda f: rate_of(CIRCLE, ConservationLaw(CIRCLE, lambda u: u, lambda u: f(64))),
    "<lambda> of a source": lambda f: rate_of(LINE, Source(lambda t, u: f(16))),
    "boundaries['left'] of Value": lambda f: heat_between(Value(lambda t, x: f(1))),
    "boundaries['left'] of Flux": lambda f: heat_between(Flux(lambda t, x: f(1))),
    "boundaries['left'] of Robin": lambda f: heat_between(Robin(1.0, 1.0, lambda t, x: f(1))),
    "kernel of Zonal": lambda f: Zonal(CIRCLE, lambda z: f(len(z))),
    "kernel of Convolution": lambda f: Convolution(LINE, lambda r: f(len(r))),
    "gradient of Convolution": lambda f: Convolution(LINE, lambda r: r[:, 0], lambda r: f(len(r))),
    "kernel of DenseKernel": lambda f: DenseKernel(LINE, lambda x, y: f(16))(X),
}
RESULTS = {
    "text": lambda n: "high",
    "an array of text": lambda n: np.full(n, "high"),
    "complex numbers": lambda n: np.full(n, 1j),
    "nothing": lambda n: None,
    "another shape": lambda n: np.ones(n + 1),
}


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_functions_that_return_no_real_numbers_in_their_shape_are_named(name, result):
    expected = ValueError if result == "another shape" else TypeError
    with pytest.raises(expected, match=f"^{re.escape(name.partition(' of ')[0])} .*expected ") as caught:
        COEFFICIENTS[name](RESULTS[result])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda given: Diffusion(LINE, np.full(16, given)), "diffusion coefficient"),
        (lambda given: Zonal(CIRCLE, given), "kernel"),
        (
            lambda given: NonlinearDiffusion(LINE, np.sqrt, boundaries={"left": Value(given)}),
            r"(g of Value|boundaries\['left'\])",
        ),
        (lambda given: Robin([given], 1.0, 0.0), "a of Robin"),  # which may be complex
        (lambda given: Robin(1.0, given, 0.0), "b of Robin"),
        (lambda given: DriftDiffusion(LINE, 1.0, given), "potential"),
    ],
)
@pytest.mark.parametrize("given", ["high", 1j, None, np.full(16, 1j), np.full(16, "high")], ids=str)
def test_coefficients_that_are_no_real_numbers_are_named(make, message, given):
    with pytest.raises(TypeError, match=f"^{message} .*: expected .*number"):
        make(given)


@pytest.mark.parametrize("rows", [lambda g: Value(g), lambda g: Zonal(CIRCLE, g), lambda g: DriftDiffusion(LINE, 1, g)])
def test_rows_of_unequal_lengths_are_named(rows):
    with pytest.raises(TypeError, match=r"^(g of Value|kernel|potential): rows of unequal lengths: expected "):
        rows([[1.0], [1.0, 2.0]])


def test_a_source_may_be_a_number_or_integers():
    """∂ₜu = 1 and ∂ₜu = 2 as a number and as integers."""
    assert solve(Equation(LINE, [lambda t, u: 1.0]), X, (0, 1)).u[-1] == pytest.approx(X + 1)
    assert solve(Equation(LINE, [lambda t, u: np.full(16, 2)]), X, (0, 1)).u[-1] == pytest.approx(X + 2)


def test_coefficients_may_be_functions_of_place():
    by_function = Diffusion(LINE, lambda x: 1 + x[:, 0]), DriftDiffusion(LINE, 0.5, lambda x: x[:, 0] ** 2)
    by_array = Diffusion(LINE, 1 + X), DriftDiffusion(LINE, 0.5, X**2)
    for one, other in zip(by_function, by_array, strict=True):
        rates = np.zeros((2, 16))
        for term, rate in zip((one, other), rates, strict=True):
            term.prepare(0.0, np.sin(X))
            term.rate(0.0, rate)
        assert np.array_equal(*rates)


def test_terms_without_a_mesh_before_them_are_sorted():
    """Diffusion among the explicit terms is implicit by default, whatever the cells."""
    found = solve(Equation(None, [Diffusion(LINE, 1.0), lambda t, u: -u]), np.cos(np.pi * X), (0.0, 1.0))
    assert "ark4" in found.message
    assert found.steps < 100, found.message


def test_a_potential_of_place_may_have_parameters_of_its_own():
    """V(x, k=2) is a function of position, not of time and the state."""
    with_default = DriftDiffusion(LINE, 0.5, lambda x, k=2.0: k * x[:, 0])
    np.testing.assert_array_equal(
        with_default.jacobian(1)[0].toarray(), DriftDiffusion(LINE, 0.5, 2 * X).jacobian(1)[0].toarray()
    )


def test_every_method_limits_the_state():
    """u̇ = −1 from ½ to t = 1 is kept ≥ 0."""
    equation = Equation(None, [lambda t, u: -np.ones_like(u)], limit=limit_positivity)
    for method in ("ssprk3", "dopri5", "dop853"):
        assert solve(equation, np.array([0.5]), (0.0, 1.0), method=method).u[-1] == 0.0


def test_a_run_that_a_callback_ends_has_its_last_state():
    found = solve(
        Equation(None, [lambda t, u: -u]), [1.0], (0.0, 1.0), times=[1.0], callbacks=lambda state: state.time > 0.3
    )
    assert 0.3 < found.t[-1] < 1.0
    assert found.u[-1] == pytest.approx(np.exp(-found.t[-1]), rel=1e-3)
    assert "ended by a callback at time" in found.message


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_small_numbers_err_by_the_absolute_tolerance(method):
    """A circle of radius 1e-7, with atol scaled by 1e-8, is as accurate as one of radius 1."""
    factor = 1e-7
    turning = Equation(None, [lambda t, u: np.stack([u[1], -u[0]])])
    found = solve(turning, factor * np.array([[1.0], [0.0]]), (0.0, 6.0), method=method, atol=1e-8 * factor)
    assert found.u[-1, 0, 0] / factor == pytest.approx(np.cos(6.0), abs=5e-4)


@pytest.mark.parametrize("method", ["dop853", "implicit"])
def test_a_cfl_that_does_nothing_is_refused(method):
    with pytest.raises(ValueError, match=f"cfl = 0.5: expected None with method = '{method}'"):
        solve(HEAT, X, (0.0, 1.0), method=method, cfl=0.5)


def test_a_flux_may_be_a_function_of_u_alone():
    laws = (
        ConservationLaw(CIRCLE, lambda u: u**2 / 2, abs),
        ConservationLaw(CIRCLE, lambda u, x: u**2 / 2, lambda u, x: u),
    )
    found = [solve(Equation(None, [law]), 1.5 + CIRCLE.centers[:, 0], (0.0, 0.2)).u[-1] for law in laws]
    np.testing.assert_array_equal(*found)
